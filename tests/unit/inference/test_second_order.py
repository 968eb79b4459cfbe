"""The second-order correction.

Against brute force, where it must do nothing, and that it survives what curves go through.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.oracles import brute_force_curve
from support.simulated import hard_case, polling


@pytest.mark.parametrize(("counts", "h"), [((3, 0, 1), 1.0), ((0, 0, 0), 2.0), ((7, 2, 0), 0.7)])
def test_most_of_graftings_error_is_gone(counts, h):
    """Poisson counts at three instants: sds and evidence against brute force."""
    t = np.array([0.0, 0.5, 1.0])
    kernel = dy.RBF(h, amplitude=1.0, nugget=0.0)
    curve = dy.CurvFiFE(kernel, mean=0.0, refine=False).fit(t, dy.Poisson(np.array(counts)))
    factorial = {0: 1, 1: 1, 2: 2, 3: 6, 7: 5040}
    sd, evidence = brute_force_curve(
        t, [lambda x, k=k: k * x - np.exp(x) - np.log(factorial[k]) for k in counts], h
    )
    better = curve.refined()
    assert_allclose(better.latent.mean(t), curve.latent.mean(t))
    before, after = np.abs(curve.latent.sd(t) / sd - 1), np.abs(better.latent.sd(t) / sd - 1)
    assert before.max() > 2e-3
    assert after.max() < 0.35 * before.max()
    assert abs(better.log_evidence - evidence) < 0.35 * abs(curve.log_evidence - evidence)


def test_gaussian_emissions_and_constants_are_exact_already():
    t = np.linspace(0, 1, 30)
    regression = dy.CurvFiFE(dy.RBF(0.3, amplitude=1.0), mean=0.0, refine=False).fit(
        t, dy.Gaussian(np.sin(5 * t), 0.2)
    )
    assert_allclose(regression.refined().sd(t), regression.sd(t), rtol=1e-12)
    constant = dy.CurvFiFE(bandwidth=np.inf, refine=False).fit(t, dy.Bernoulli(t > 0.2))
    assert_allclose(constant.refined().sd(t), constant.sd(t), rtol=1e-9)
    assert constant.refined().log_evidence == pytest.approx(constant.log_evidence, abs=1e-9)


def test_a_refined_curve_is_a_curve(tmp_path):
    """Mixtures, samples, covariances, derivatives, updates and files agree with its sds."""
    x, _, votes = polling(3)
    curve = dy.CurvFiFE(refine=False).fit(x[:90], dy.Bernoulli(votes[:90])).refined()
    t = np.linspace(0, 1, 7)
    assert sum(p.weight for p in curve.priors) == pytest.approx(1.0)
    assert_allclose(np.sqrt(np.diag(curve.covariance(t))), curve.latent.sd(t), rtol=1e-9)
    assert_allclose(
        curve.latent.sample(t, 40_000, seed=1).std(axis=0), curve.latent.sd(t), rtol=0.02
    )
    assert np.isfinite(curve.derivative(t).sd).all()
    assert_allclose(dy.load(curve.save(tmp_path / "c.dyn")).sd(t), curve.sd(t), rtol=1e-12)
    assert_allclose(curve.refined().sd(t), curve.sd(t), rtol=1e-12)
    grown = curve.update(x[90:], dy.Bernoulli(votes[90:]))
    plain = (
        dy.CurvFiFE(refine=False)
        .fit(x[:90], dy.Bernoulli(votes[:90]))
        .update(x[90:], dy.Bernoulli(votes[90:]))
    )
    assert_allclose(grown.sd(t), plain.refined().sd(t), rtol=1e-5)
    assert np.abs(grown.sd(t) / plain.sd(t) - 1).max() > 1e-5


def test_other_solvers_say_the_same_or_say_why_not():
    x, _, votes = polling(5, 40)
    kernel, t = dy.RBF(0.3), np.linspace(0, 1, 9)
    low, dense = (
        dy.CurvFiFE(kernel, solver=name).fit(x, dy.Bernoulli(votes)).latent.sd(t)
        for name in ("lowrank", "dense")
    )
    assert_allclose(low, dense, rtol=1e-5)
    chain = dy.CurvFiFE(dy.Matern32(0.3), refine=False).fit(x, dy.Bernoulli(votes))
    assert 1e-4 < np.abs(chain.refined().latent.sd(t) / chain.latent.sd(t) - 1).max() < 0.02
    x, _, votes = polling(5, 80)
    long = dy.CurvFiFE(dy.Matern32(0.3)).fit(x, dy.Bernoulli(votes))
    with pytest.warns(
        dy.ConvergenceWarning, match=r"100% of the weight stay.*no form in few weights.*curve.audit"
    ):
        assert_allclose(long.refined().sd(t), long.sd(t))
    with pytest.warns(
        dy.ConvergenceWarning, match="100% of the weight stay"
    ):  # too many instants by now: a curve all the same
        grown = chain.refined().update(x[40:] + 1.0, dy.Bernoulli(votes[40:]))
    assert np.isfinite(grown.sd(t)).all()


def test_a_fit_refines_what_it_can_and_keeps_doing_so():
    """By default, quietly, through updates and files; told by the summary."""
    x, _, votes = polling(3, 60)
    t = np.linspace(0, 1, 7)
    for kernel, possible in ((None, True), (dy.Matern32(0.3), False)):
        plain = dy.CurvFiFE(kernel, refine=False).fit(x, dy.Bernoulli(votes))
        curve = dy.CurvFiFE(kernel).fit(x, dy.Bernoulli(votes))
        assert (np.abs(curve.sd(t) / plain.sd(t) - 1).max() > 1e-5) == possible
        assert ("second order" in curve.summary()) == possible
        if possible:
            assert_allclose(curve.sd(t), plain.refined().sd(t), rtol=1e-12)
            first = dy.CurvFiFE(kernel).fit(x[:30], dy.Bernoulli(votes[:30]))
            grown = first.update(x[30:], dy.Bernoulli(votes[30:]))
            assert grown.refining
            assert "second order" in grown.summary()


def test_sums_over_pairs_of_sites():
    """By weights, against every pair of two different sites, written out."""
    from dynaesti.inference.second_order import _pairs

    rng = np.random.default_rng(0)
    phi, skew = 0.4 * rng.normal(size=(30, 5)), rng.normal(size=30)
    between = phi @ phi.T
    np.fill_diagonal(between, 0.0)
    wide, gain = _pairs(np.ascontiguousarray(phi.T), skew)
    assert_allclose(
        wide, 0.5 * np.einsum("i,j,ia,jb,ij->ab", skew, skew, phi, phi, between**2), atol=1e-10
    )
    assert gain == pytest.approx(np.einsum("i,j,ij->", skew, skew, between**3) / 12, abs=1e-10)


def test_no_small_correction_is_left_to_the_audit():
    x, answers = hard_case(a=8.0, b=0.0, c=0.5)
    curve = dy.CurvFiFE(bandwidth=0.2).fit(x, answers)
    with pytest.warns(dy.ConvergenceWarning, match="stay as they are"):
        same = curve.refined()
    assert_allclose(same.sd(x), curve.sd(x))
