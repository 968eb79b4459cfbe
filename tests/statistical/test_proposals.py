"""Importance sampling finds humps that its first proposal missed."""

import numpy as np
import pytest
from scipy.special import logsumexp

from dynaesti.inference.audit.proposals import StudentComponent, adaptive_sample
from dynaesti.inference.audit.psis import smooth_weights
from support.oracles import log_normal

CENTRES = np.array([[1.5, 0.0, 0.5], [-1.5, 1.0, -0.5], [0.0, -2.5, 0.0]])
SHARES, SD = np.array([0.9, 0.07, 0.03]), 0.25


def three_humps(points):
    """A likelihood with three humps far apart, the small ones ten sds from the large one."""
    return logsumexp(
        np.stack([log_normal(points, c, SD**2) for c in CENTRES]), axis=0, b=SHARES[:, None]
    )


def truth():
    """Log evidence, mean and share of each hump under a standard normal prior, in closed form."""
    logs = np.log(SHARES) + log_normal(np.zeros(3), CENTRES, 1 + SD**2)
    share = np.exp(logs - logsumexp(logs))
    return logsumexp(logs), share @ CENTRES / (1 + SD**2), share


@pytest.mark.parametrize(
    "width", [0.35, 0.7, 1.0]
)  # too narrow, or just right for the large hump, and so blind to the others
@pytest.mark.parametrize("seed", range(3))
def test_humps_that_the_first_proposal_missed(seed, width):
    evidence, mean, share = truth()
    spread = SD / np.sqrt(1 + SD**2)
    first = StudentComponent(1.0, CENTRES[0] / (1 + SD**2), width * spread * np.eye(3))
    points, log_weights = adaptive_sample(three_humps, first, 20_000, np.random.default_rng(seed))
    assert len(points) == log_weights.size == 20_000
    weights, _ = smooth_weights(log_weights)
    assert logsumexp(log_weights) - np.log(20_000) == pytest.approx(evidence, abs=0.03)
    assert weights @ points == pytest.approx(mean, abs=0.02)
    nearest = ((points[:, None] - CENTRES / (1 + SD**2)) ** 2).sum(axis=2).argmin(axis=1)
    assert np.bincount(nearest, weights=weights) == pytest.approx(share, abs=0.01)
