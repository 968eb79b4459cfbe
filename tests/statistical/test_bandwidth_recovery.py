"""Bandwidths drawn are found again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

import dynaesti as dy
from support.simulated import draw_curve


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
