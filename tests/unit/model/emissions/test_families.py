"""Families against scipy.stats, and what they refuse."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, ndtr

import dynaesti as dy
from support.oracles import log_prob_at

pytestmark = pytest.mark.nojit
X = np.linspace(-3, 3, 7)


def test_families_meet_scipy():
    p, rate = ndtr(X), np.exp(X)
    assert_allclose(log_prob_at(dy.Bernoulli([1, 0]), "probit"), [np.log(p), np.log1p(-p)])
    assert_allclose(
        log_prob_at(dy.Binomial([3, 0], [7, 2]), "probit"),
        [stats.binom.logpmf(3, 7, p), stats.binom.logpmf(0, 2, p)],
    )
    assert_allclose(
        log_prob_at(dy.Poisson([3, 0], [2.0, 0.5]), "log"),
        [stats.poisson.logpmf(3, 2 * rate), stats.poisson.logpmf(0, rate / 2)],
    )
    size, mu = 4.0, 1.5 * rate
    assert_allclose(
        log_prob_at(dy.NegativeBinomial([5], size, 1.5), "log"),
        [stats.nbinom.logpmf(5, size, size / (size + mu))],
    )
    assert_allclose(log_prob_at(dy.Gaussian([1.0], 0.3)), [stats.norm.logpdf(1.0, X, 0.3)])
    assert_allclose(log_prob_at(dy.StudentT([1.0], 0.3, 5)), [stats.t.logpdf(1.0, 5, X, 0.3)])
    cuts = np.array([-1.0, 0.5])
    above = expit(X[:, None] - cuts)
    assert_allclose(
        np.exp(log_prob_at(dy.Ordinal([0, 1, 2], cuts))),
        [1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]],
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dy.Bernoulli([0, 2]), "1 of 2 values are neither 0 nor 1"),
        (lambda: dy.Bernoulli([0, np.nan]), "not finite"),
        (lambda: dy.Bernoulli(["yes", "no"]), "expected numbers, got 'yes' at position 0"),
        (lambda: dy.Bernoulli([[0, 1]]), "one dimension"),
        (lambda: dy.Binomial([5], [3]), "larger than their trials"),
        (lambda: dy.Binomial([5, 1], [3, 3, 3]), "3 values for 2 observations"),
        (lambda: dy.Poisson([1.5]), "whole numbers"),
        (lambda: dy.Poisson([1], exposure=0.0), "not positive"),
        (lambda: dy.Gaussian([1.0], sd=-1.0), "not positive"),
        (lambda: dy.Ordinal([3], [0.0, 1.0]), "above the highest grade 2"),
        (lambda: dy.Ordinal([1], [1.0, 0.0]), "not strictly rising"),
        (lambda: dy.ItemResponses([1], "5PL"), "no item model '5PL'"),
        (lambda: dy.ItemResponses([1], "3PL", a=1, b=0), "takes a, b, c"),
        (lambda: dy.ItemResponses([1], "3PL", a=1, b=0, c=1.2), "outside 0 ≤ c < d ≤ 1"),
        (
            lambda: dy.ItemResponses([4], "GRM", a=1, b=[0, 1]),
            "above the item's highest category 2",
        ),
        (lambda: dy.Table([0, 1, 2, 3], [[0, 0, np.nan, 0]]), "NaN or \\+inf"),
        (lambda: dy.Table([0, 1, 2, 3], [[-np.inf] * 4]), "-inf everywhere"),
        (lambda: dy.Table([0, 2, 1, 3], [[0] * 4]), "strictly rising"),
        (lambda: dy.Table([0, 1, 2, 3], [[0] * 3]), "one row an emission"),
    ],
)
def test_bad_families_are_refused_in_words(make, says):
    with pytest.raises(dy.InputError, match=says):
        make()
