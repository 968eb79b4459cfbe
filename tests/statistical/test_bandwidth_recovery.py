"""Bandwidths drawn are found again."""

import numpy as np
import pytest
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
