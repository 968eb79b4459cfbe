"""Adaptive importance sampling.

Far humps and thin tails are found, whatever the first proposal saw of them.
"""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from dynaesti.inference.audit.proposals import StudentComponent, _slice_move, adaptive_sample
from dynaesti.inference.audit.psis import smooth_weights
from support.oracles import log_normal


def test_a_proposal_that_fits_is_kept():
    def log_likelihood(points):
        return log_normal(points, np.ones(5), 0.5)

    first = StudentComponent(1.0, np.full(5, 2 / 3), np.sqrt(1 / 3) * np.eye(5))
    points, log_weights = adaptive_sample(
        log_likelihood, first, 4000, np.random.default_rng(0), unimodal=True
    )
    assert len(points) == 4000
    weights, _ = smooth_weights(log_weights)
    assert 1 / np.sum(weights**2) > 0.8 * 4000
    assert logsumexp(log_weights) - np.log(4000) == pytest.approx(
        log_normal(np.zeros(5), np.ones(5), 1.5), abs=0.02
    )


def test_slice_moves_leave_the_posterior_as_it_is():
    """Particles of the exact posterior stay its particles.

    Mean and variance of a Gaussian one, at any power of the likelihood.
    """
    rng = np.random.default_rng(1)
    power, var = 0.5, 1 / (1 + 0.5 / 0.2)
    points = rng.normal(var * power / 0.2 * 1.0, np.sqrt(var), size=(20_000, 2))
    logs = log_normal(points, np.ones(2), 0.2)
    for _ in range(3):
        points, logs = _slice_move(
            lambda x: log_normal(x, np.ones(2), 0.2), points, logs, power, rng
        )
    assert points.mean(axis=0) == pytest.approx(np.full(2, var * power / 0.2), abs=0.015)
    assert points.var(axis=0) == pytest.approx(np.full(2, var), rel=0.04)
    assert logs == pytest.approx(log_normal(points, np.ones(2), 0.2))


def test_likelihoods_that_are_impossible_nearly_everywhere():
    """The normal tail beyond 1.5.

    Particles of the prior that cannot be are replaced by those that can.
    """

    def log_likelihood(points):
        return np.where(points[:, 0] > 1.5, 0.0, -np.inf)

    first = StudentComponent(1.0, np.array([3.0, 0.0]), np.diag([0.1, 0.3]))
    for seed in range(3):
        _, log_weights = adaptive_sample(log_likelihood, first, 20_000, np.random.default_rng(seed))
        assert logsumexp(log_weights) - np.log(20_000) == pytest.approx(norm.logsf(1.5), abs=0.05)


@pytest.mark.parametrize("count", [30, 900, 5000])
def test_a_likelihood_as_sharp_as_a_needle_and_few_draws(count):
    """All resampled points alike, one dimension, draws too few to learn from.

    Nothing breaks, and the weights are finite.
    """

    def log_likelihood(points):
        return -1e8 * np.abs(points[:, 0] - 1.0)

    first = StudentComponent(1.0, np.array([1.0]), np.array([[1e-7]]))
    points, log_weights = adaptive_sample(log_likelihood, first, count, np.random.default_rng(0))
    assert len(points) == count
    assert np.isfinite(log_weights).all()
