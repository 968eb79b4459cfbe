"""The audit where grafting is off: flagged, and corrected by importance sampling."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import hard_case


def two_humps(share, apart, sd):
    return lambda y: np.logaddexp(
        np.log(share) - 0.5 * ((y - apart) / sd) ** 2,
        np.log(1 - share) - 0.5 * ((y + apart) / sd) ** 2,
    )


def test_a_curve_that_settled_on_one_hump_of_two():
    """A nearly constant curve, emissions with a hump either side.

    The Gaussian sits on one and fits it well. Truth: draws of the prior.
    """
    f = two_humps(0.55, 1.5, 0.5)
    curve = dy.CurvFiFE(dy.RBF(20.0, amplitude=1.0, nugget=0.0)).fit(np.arange(6.0), [f] * 6)
    prior = (
        np.random.default_rng(0).standard_normal((400_000, 6))
        @ np.linalg.cholesky(
            np.exp(-0.5 * ((np.arange(6)[:, None] - np.arange(6)) / 20) ** 2) + 1e-10 * np.eye(6)
        ).T
    )
    log_w = f(prior).sum(axis=1)
    w = np.exp(log_w - log_w.max())
    for seed in range(3):
        audit = curve.audit(seed=seed)
        assert not audit.safe
        assert audit.mean([1.0])[0] == pytest.approx(w @ prior[:, 1] / w.sum(), abs=0.05)
        assert audit.log_evidence == pytest.approx(np.log(w.mean()) + log_w.max(), abs=0.04)


def test_moments_that_agree_do_not_make_it_safe():
    """Two needles either side of 0: mean and sd are right, and there is nothing in the middle."""
    audit = dy.CurvFiFE(bandwidth=3.0).fit([1.0, 2.0, 3.0], [two_humps(0.5, 2.0, 0.1)] * 3).audit()
    assert max(audit.off) < 0.2
    assert not audit.safe


def test_likelihoods_far_sharper_than_the_nugget():
    """Polls of a million: nearly Gaussian, and the audit must not lose them between the nodes of
    the nugget.
    """
    curve = dy.CurvFiFE(bandwidth=2.0).fit(
        [1.0, 2.0, 3.0], dy.Binomial([500_000, 700_000, 300_000], [10**6] * 3)
    )
    audit = curve.audit()
    assert audit.safe
    assert audit.log_evidence == pytest.approx(curve.log_evidence, abs=0.02)
    t = np.arange(20.0)
    counts = (1e5 * np.exp(0.5 + 0.3 * np.sin(t / 3))).astype(int)
    assert (
        dy.CurvFiFE(dy.RBF(3.0, amplitude=1.0), mean=12.0).fit(t, dy.Poisson(counts)).audit().safe
    )


def test_hard_cases_are_flagged_and_corrected():
    """Steep guessing: the grafted Gaussian is off by more than 0.1 sd.

    The corrected marginals agree with a run five times as long.
    """
    x, answers = hard_case()
    curve = dy.CurvFiFE(bandwidth=0.2).fit(x, answers)
    t = np.linspace(0, 1, 25)
    audit, gold = curve.audit(20_000, seed=1), curve.audit(100_000, seed=2)
    assert not audit.safe
    assert audit.verdict.startswith("Not safe")
    assert max(gold.off) > 0.1
    rms = np.sqrt(np.mean(((audit.mean(t) - gold.mean(t)) / gold.sd(t)) ** 2))
    assert rms < 0.04  # both runs have noise
    assert_allclose(audit.sd(t), gold.sd(t), rtol=0.12)
