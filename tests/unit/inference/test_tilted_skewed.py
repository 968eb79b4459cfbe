"""Moments of skewed distributions times likelihoods."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import polygamma
from scipy.stats import gamma

from dynaesti.inference.online import tilted_skewed
from dynaesti.inference.online.tilted_skewed import integrate_tilted

# compiled, it has no way in from Python
log_gamma = getattr(tilted_skewed.log_gamma, "py_func", tilted_skewed.log_gamma)
UNIT = np.linspace(-30.0, 30.0, 4001)


def moments(mean, variance, skewness, log_likelihood):
    before = np.array([[mean, variance, skewness * variance**1.5]])
    bracket = np.array([[mean, np.sqrt(variance)]])
    values = log_likelihood(mean + np.sqrt(variance) * UNIT)[None]
    found = np.full((1, 4), np.nan)
    assert integrate_tilted(before, bracket, UNIT, values, 1e-6, 1e-8, found)
    return found[0]


@pytest.mark.parametrize("skewness", [0.0, 1e-6, -1e-4, 0.02, 0.3, -0.5])
def test_before_any_answer_the_moments_are_those_given(skewness):
    log_mass, mean, variance, third = moments(0.7, 0.04, skewness, np.zeros_like)
    assert log_mass == pytest.approx(0, abs=1e-8)
    assert mean == pytest.approx(0.7, abs=1e-8)
    assert variance == pytest.approx(0.04, rel=1e-8)
    assert third == pytest.approx(skewness * 0.2**3, rel=5e-4, abs=1e-7)


def test_larger_skewness_is_taken_for_the_largest():
    assert moments(0, 1, 2.0, np.zeros_like)[3] == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("skewness", [-0.01, -0.2, -0.5])
def test_the_distribution_is_that_of_the_log_of_a_gamma_variable(skewness):
    """Its constants against SciPy's functions, and its density against SciPy's."""
    shape, start, spread, height = log_gamma(skewness)
    assert start == pytest.approx(polygamma(0, shape) - np.log(shape), rel=1e-7)
    assert spread == pytest.approx(np.sqrt(polygamma(1, shape)), rel=1e-8)
    of_gamma = polygamma(2, shape) / polygamma(1, shape) ** 1.5
    assert of_gamma == pytest.approx(skewness, rel=5e-4)
    z = np.linspace(-4, 4, 9)
    w = start + spread * z
    value = shape * np.exp(w)  # the gamma variable; its log has slope `spread` in z
    truth = gamma.logpdf(value, shape) + np.log(value * spread)
    assert_allclose(height + shape * (w - np.expm1(w)), truth, atol=1e-7)


def test_a_likelihood_tilts_the_density():
    """Against the same integral over the density itself."""
    shape, start, spread, _ = log_gamma(-0.3)

    def log_p(y):
        return -np.logaddexp(0, -3 * (y - 1.0))

    y = np.linspace(-8, 8, 200_001)
    w = start + spread * (y - 0.2) / 0.5
    p = np.exp(shape * (w - np.expm1(w)))
    p /= p.sum()
    mass = (p * np.exp(log_p(y))).sum()
    p *= np.exp(log_p(y)) / mass
    mean = (p * y).sum()
    truth = [np.log(mass), mean, (p * (y - mean) ** 2).sum(), (p * (y - mean) ** 3).sum()]
    assert_allclose(moments(0.2, 0.25, -0.3, log_p), truth, rtol=1e-6, atol=1e-9)


def test_impossible_answers_have_no_mass():
    before = np.array([[0.0, 1.0, 0.0]])
    found = np.full((1, 4), np.nan)
    unit = np.linspace(-7, 7, 33)
    nowhere = np.full((1, 33), -np.inf)
    assert integrate_tilted(before, before[:, :2].copy(), unit, nowhere, 1e-6, 1e-8, found)
    assert found[0, 0] == -np.inf
