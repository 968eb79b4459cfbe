"""The audit: exact where it can be checked, honest where grafting is off, and what it does without
a small form.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import polling


def test_safe_on_polls():
    x, _, votes = polling(1)
    curve = dy.CurvFiFE().fit(x, dy.Bernoulli(votes))
    audit = curve.audit()
    assert audit.safe
    assert audit.verdict.startswith("Safe")
    assert audit.pareto_k < 0.5
    assert audit.ess > 8000
    assert abs(audit.log_evidence - curve.log_evidence) < 0.02
    assert_allclose(audit.mean(x), curve.mean(x), atol=0.01)
    assert_allclose(audit.quantile(x, [0.15, 0.85]), curve.interval(x, 0.7), atol=0.02)
    assert_allclose(np.asarray(curve.exact(x)["sd"]), curve.sd(x), rtol=0.05)


def test_exact_for_a_constant_under_a_beta_posterior():
    votes = np.repeat([1, 0], [2, 0])
    audit = dy.CurvFiFE(bandwidth=np.inf).fit([0.0, 1.0], dy.Bernoulli(votes)).audit(200_000)
    assert audit.mean([0.5])[0] == pytest.approx(3 / 4, abs=3e-3)  # Beta(3, 1)
    assert audit.sd([0.5])[0] == pytest.approx(np.sqrt(3 / 80), abs=3e-3)
    assert audit.quantile([0.5], 0.1)[0] == pytest.approx(0.1 ** (1 / 3), abs=5e-3)
    assert audit.log_evidence == pytest.approx(np.log(1 / 3), abs=5e-3)


def test_gaussian_emissions_need_no_correction():
    t = np.linspace(0, 1, 40)
    audit = dy.CurvFiFE().fit(t, dy.Gaussian(np.sin(5 * t), 0.2)).audit()
    assert audit.safe
    assert audit.log_evidence == pytest.approx(audit.curve.log_evidence, abs=0.02)


def test_impossible_for_half_of_the_prior():
    """P(every value > 0) for a constant: one half, from particles of which half cannot be."""
    audit = (
        dy.CurvFiFE(dy.RBF(np.inf, amplitude=1.0))
        .fit([1.0, 2.0, 3.0], [lambda y: np.where(y > 0, 0.0, -np.inf)] * 3)
        .audit()
    )
    assert audit.log_evidence == pytest.approx(np.log(0.5), abs=0.02)
    assert audit.mean([2.0])[0] == pytest.approx(np.sqrt(2 / np.pi), abs=0.02)


def test_no_times_no_rows():
    assert (
        len(dy.CurvFiFE(bandwidth=3.0).fit([1.0, 2.0, 3.0], dy.Bernoulli([0, 1, 1])).exact([])) == 0
    )


def test_without_a_small_form_it_says_what_it_did():
    x, _, votes = polling(1, 60)
    audit = dy.CurvFiFE(dy.Matern32(0.4)).fit(x, dy.Bernoulli(votes)).audit()
    assert "has no small form" in audit.how
    assert audit.safe
    dense = dy.CurvFiFE(dy.Matern32(0.4)).fit(x[:12], dy.Bernoulli(votes[:12]))
    assert_allclose(dense.audit(60_000).mean(x[:12]), dense.mean(x[:12]), atol=0.01)


def test_formula_and_table_give_the_same_audit():
    x, _, votes = polling(2, 40)
    one = dy.CurvFiFE(bandwidth=0.3).fit(x, dy.Bernoulli(votes)).audit(4000, seed=5)
    functions = [lambda y, v=v: np.log(np.maximum(y if v else 1 - y, 1e-300)) for v in votes]
    two = dy.CurvFiFE(bandwidth=0.3, link="probit").fit(x, functions).audit(4000, seed=5)
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-6)
    assert_allclose(one.mean(x), two.mean(x), atol=1e-6)
