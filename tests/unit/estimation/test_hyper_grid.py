"""Bandwidths: averaged, picked, adaptive grids.

Statistical claims by simulation with fixed seeds.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

import dynaesti as dy
from dynaesti.estimation.hyper_grid import BANDWIDTH_CENTRE, BANDWIDTH_SD, STATIC_PRIOR
from dynaesti.estimation.population import select_priors_greedily
from support.simulated import draw_curve, polling


def test_the_grid_follows_the_evidence():
    """A long precise series pins the bandwidth.

    The nodes gather there and none of the weight is at an end.
    """
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 1500)
    curve = dy.CurvFiFE().fit(x, dy.Binomial(rng.binomial(50, ndtr(draw_curve(rng, x, 0.04))), 50))
    weights = np.array([p.weight for p in sorted(curve.priors, key=lambda p: p.kernel.bandwidth)])
    assert 0.03 < curve.bandwidth < 0.055
    assert (weights > 0.02).sum() >= 3
    assert weights[0] < 0.02


@pytest.mark.parametrize("h", [0.01, 0.02])
def test_short_bandwidths_are_found(h):
    """Far below the first grid: the ends move out before anything is refined."""
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 400)
    emissions = dy.Binomial(rng.binomial(50, ndtr(draw_curve(rng, x, h))), 50)
    for method in ("learn", "evidence"):
        assert 0.7 * h < dy.CurvFiFE(bandwidth=method).fit(x, emissions).bandwidth < 1.4 * h
    many = dy.CurvFiFE().fit_many(np.repeat([1, 2], 200), np.tile(x[:200], 2), emissions)
    typical = np.exp(many.weights[:, 0] @ np.log([min(f.kernel.bandwidth, 1.0) for f in many.fits]))
    assert 0.6 * h < typical < 1.7 * h


@pytest.mark.parametrize("method", ["evidence", "loo", "cv"])
def test_picking_finds_the_best_on_a_fine_grid(method):
    x, _, votes = polling(3)
    picked = dy.CurvFiFE(bandwidth=method, seed=4).fit(x, dy.Bernoulli(votes))
    assert len(picked.priors) == 1
    assert picked.method == method
    fits = [dy.CurvFiFE(bandwidth=h).fit(x, dy.Bernoulli(votes)) for h in np.geomspace(0.03, 2, 60)]
    if method == "evidence":
        assert picked.log_evidence > max(f.log_evidence for f in fits) - 0.02
    elif method == "loo":
        assert picked.loo.sum() > max(f.loo.sum() for f in fits) - 0.05
    else:
        assert (
            picked.loo.sum() > max(f.loo.sum() for f in fits) - 1.5
        )  # another criterion, but near the same place


@pytest.mark.parametrize("kernel", [dy.Matern32(), dy.RBF(), dy.Level() + dy.Matern52()])
def test_learning_with_a_forced_chain(kernel):
    """Priors of the list have chains of different sizes, a constant among them.

    The same as densely.
    """
    x, _, votes = polling(3, 24)
    chain, dense = (
        dy.CurvFiFE(kernel, solver=name, refine=False).fit(x, dy.Bernoulli(votes))
        for name in ("statespace", "dense")
    )
    assert_allclose(chain.mean(x), dense.mean(x), atol=1e-5)
    assert chain.log_evidence == pytest.approx(dense.log_evidence, abs=1e-5)


def test_cross_validation_is_held_out_likelihood():
    """The paper's k-fold score by its definition.

    Refit without a fold, integrate the held-out likelihood over the curve.
    """
    from dynaesti.inference.cross_validation import cross_validate
    from dynaesti.inference.observations import observe

    x, _, votes = polling(3, 30)
    score = cross_validate(observe(x, dy.Bernoulli(votes), None), [dy.RBF(0.3)], None, 5, seed=1)[0]
    fold = np.random.default_rng(1).permutation(30) % 5
    expected = 0.0
    for k in range(5):
        out = fold == k
        latent = (
            dy.CurvFiFE(bandwidth=0.3, refine=False).fit(x[~out], dy.Bernoulli(votes[~out])).latent
        )
        z = (2 * votes[out] - 1) * latent.mean(x[out]) / np.sqrt(1 + latent.sd(x[out]) ** 2 + 1e-4)
        expected += np.log(ndtr(z)).sum()
    assert score == pytest.approx(expected, abs=1e-5)


def test_counts_near_500_find_their_level_and_amplitude():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 10, 80)
    truth = 6.2 + 0.3 * np.sin(x)
    curve = dy.CurvFiFE().fit(x, dy.Poisson(rng.poisson(np.exp(truth))))
    assert_allclose(curve.latent.mean(x), truth, atol=0.06)
    assert np.all(curve.mean(x) > 300)
    assert curve.audit().safe


def test_a_gross_outlier_does_not_set_the_scale():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 40))
    y = np.sin(x) + 0.1 * rng.normal(size=40)
    y[7] = 1e4
    curve = dy.CurvFiFE().fit(x, dy.StudentT(y, 0.1))
    rest = np.delete(np.arange(40), 7)
    assert np.abs(curve.median(x[rest]) - np.sin(x[rest])).max() < 0.4


def test_scaled_sums_learn_both_bandwidths():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 200)
    theta = 0.7 * draw_curve(rng, x, 0.6) + 0.7 * draw_curve(rng, x, 0.05)
    curve = dy.CurvFiFE(0.5 * dy.RBF() + 0.5 * dy.RBF()).fit(
        x, dy.Binomial(rng.binomial(20, ndtr(theta)), 20)
    )
    best = max(curve.priors, key=lambda p: p.weight).kernel
    low, high = sorted(summand.bandwidth for summand in best.summands)
    assert low < 0.1
    assert high > 0.2


def cover(curve, x, truth):
    q = curve.quantile(x, [0.15, 0.85, 0.025, 0.975])
    return np.mean((q[0] < truth) & (truth < q[1])), np.mean((q[2] < truth) & (truth < q[3]))


def test_polling_study():
    """200 seeds of the paper's polling problem.

    Accuracy and coverage (the paper's code: 0.094, 0.64, 0.92).
    """
    errors, covers = [], []
    for seed in range(200):
        x, truth, votes = polling(seed)
        curve = dy.CurvFiFE().fit(x, dy.Bernoulli(votes))
        errors.append(np.sqrt(np.trapezoid((curve.median(x) - truth) ** 2, x)))
        covers.append(cover(curve, x, truth))
    assert np.mean(errors) <= 0.096
    inner, outer = np.mean(covers, axis=0)
    assert 0.68 <= inner <= 0.76
    assert 0.935 <= outer <= 0.975


@pytest.mark.parametrize("kind", ["polls", "counts", "answers"])
def test_bands_cover_what_the_prior_draws(kind):
    """500 curves from the prior itself, bandwidth included.

    Calibrated to a percentage point (simulation error 0.9 points at 70 %).
    """
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 100)
    covers = []
    for _ in range(500):
        h = (
            np.inf
            if rng.random() < STATIC_PRIOR
            else BANDWIDTH_CENTRE * np.exp(BANDWIDTH_SD * rng.normal())
        )
        theta = draw_curve(rng, x, h)
        if kind == "polls":
            curve = (
                dy.CurvFiFE()
                .fit(x, dy.Bernoulli((rng.random(100) < ndtr(theta)).astype(int)))
                .latent
            )
        elif kind == "counts":
            curve = (
                dy.CurvFiFE(dy.RBF(amplitude=1.0), mean=2.0)
                .fit(x, dy.Poisson(rng.poisson(np.exp(2 + theta))))
                .latent
            )
            theta = 2 + theta
        else:
            a, b, c = (
                np.exp(0.2 * rng.normal(size=100)),
                rng.normal(size=100),
                0.2 * rng.random(100),
            )
            p = c + (1 - c) / (1 + np.exp(-a * (theta - b)))
            curve = dy.CurvFiFE().fit(
                x, dy.ItemResponses((rng.random(100) < p).astype(int), "3PL", a=a, b=b, c=c)
            )
        covers.append(cover(curve, x, theta))
    inner, outer = np.mean(covers, axis=0)
    assert 0.69 <= inner <= 0.71
    assert 0.94 <= outer <= 0.96


def test_representatives_serve_few_as_well_as_many():
    """Neighbours share the heavy end of the list.

    A far prior that a fifth of the curves need is taken all the same.
    """
    rng = np.random.default_rng(0)
    at = np.array([0.0, 0.1, 0.2, 0.3, 3.0, 3.1])
    wants = np.where(np.arange(200) < 160, 0.15, 3.05)
    logs = -4.0 * (at[:, None] - wants) ** 2 + 0.01 * rng.standard_normal((6, 200))
    chosen = select_priors_greedily(logs, np.zeros(6), 2, 0.5)
    assert chosen[0] < 4 <= chosen[1]
    assert (
        select_priors_greedily(logs, np.zeros(6), 6, 0.5).size <= 3
    )  # near ones add next to nothing
    assert select_priors_greedily(logs[:1], np.zeros(1), 4, 0.5).tolist() == [0]
