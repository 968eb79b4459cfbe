"""Bandwidths: averaged, picked, adaptive grids.

Statistical claims by simulation with fixed seeds.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

import dynaesti as dy
from support.simulated import draw_curve, polling


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
