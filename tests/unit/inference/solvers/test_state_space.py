"""State space: long series, small chains."""

import numpy as np
from numpy.testing import assert_allclose

import dynaesti as dy
from support.kernels import solve


def test_long_series_in_state_space_keep_their_digits():
    """20,000 points at tiny gaps: variances stay positive and agree with a low-rank neighbour."""
    t = np.linspace(0, 1, 20_000)
    tau, nu = np.full(t.size, 0.6), np.sin(9 * t)
    mean, var, _, proper = solve("statespace", dy.Matern52(0.3), tau, nu, t)
    assert proper
    assert var.min() > 0
    few = slice(None, None, 400)
    coarse = solve("dense", dy.Matern52(0.3), 400 * tau[few], 400 * nu[few], t[few])
    assert_allclose(mean[few][5:-5], coarse[0][5:-5], atol=5e-3)


def test_chains_of_one_state_and_their_constant():
    days, votes = np.arange(12.0), dy.Bernoulli([0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1])
    chain, dense = (
        dy.CurvFiFE(dy.Matern12(), solver=solver).fit(days, votes)
        for solver in ("statespace", "dense")
    )
    assert_allclose(chain.mean(days), dense.mean(days), atol=2e-3)  # as grafted, and refined
