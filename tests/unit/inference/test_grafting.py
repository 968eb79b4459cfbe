"""Grafting against exact regression, the paper's loop, closed forms, and its own hard cases."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.kernels import component
from support.oracles import papers_grafting, rbf
from support.simulated import draw_curve, polling


@pytest.mark.nojit
def test_gaussian_emissions_are_exact_regression_in_one_sweep():
    rng = np.random.default_rng(0)
    t, sd = np.sort(rng.uniform(0, 5, 30)), rng.uniform(0.001, 0.5, 30)
    t -= t[0]  # components count time from the first instant
    y = np.sin(t) + sd * rng.normal(size=30)
    c = component(t, dy.Gaussian(y, sd), dy.RBF(1.0))
    k = rbf(t, t, 1.0)
    noisy = k + np.diag(sd**2 + 1e-4)
    mean, var = c.posterior.marginals(t)
    assert c.sweeps == 1
    assert c.converged
    truth_sd = np.sqrt(np.diag(k - k @ np.linalg.solve(noisy, k)))
    assert np.abs((mean - k @ np.linalg.solve(noisy, y)) / truth_sd).max() < 1e-4
    assert_allclose(np.sqrt(var), truth_sd, rtol=1e-4)
    evidence = -0.5 * y @ np.linalg.solve(noisy, y) - 0.5 * np.linalg.slogdet(2 * np.pi * noisy)[1]
    assert abs(c.log_evidence - evidence) < 1e-5


def test_digits_survive_large_values_and_small_noise():
    """Values near a million known to 0.001: centred before they are squared."""
    t = np.linspace(0, 1, 50)
    y = 1e6 + np.sin(6 * t)
    curve = dy.CurvFiFE().fit(t, dy.Gaussian(y, 0.001))
    assert np.abs(curve.mean(t) - y).max() < 0.003


def test_grafting_is_the_papers_algorithm():
    """The appendix's formulae, iterated in plain NumPy, settle at the same sites."""
    x, _, votes = polling(5, 40)
    precision, shift = papers_grafting(rbf(x, x, 0.3) + 1e-4 * np.eye(40), votes)
    c = component(x, dy.Bernoulli(votes), dy.RBF(0.3))
    assert_allclose(c.ep.sites.precision, precision, atol=1e-5)
    assert_allclose(c.ep.sites.shift, shift, atol=1e-5)


def test_negative_sites_are_kept():
    rng = np.random.default_rng(1)
    x = np.linspace(0, 1, 300)
    theta = draw_curve(rng, x, 0.3)
    b = rng.normal(size=300)
    p = 0.25 + 0.75 / (1 + np.exp(-1.5 * (theta - b)))
    c = component(
        x,
        dy.ItemResponses((rng.random(300) < p).astype(int), "3PL", a=1.5, b=b, c=0.25),
        dy.RBF(0.3),
    )
    assert 0.02 < (c.ep.sites.precision < 0).mean() < 0.3
    assert c.converged


def test_contradicting_and_near_deterministic_emissions_settle():
    t = np.repeat(np.linspace(0, 1, 20), 2) + np.tile([0.0, 1e-6], 20)
    contradict = component(t, dy.Gaussian(np.tile([-1.0, 1.0], 20), 0.01), dy.RBF(0.3))
    assert contradict.converged
    assert_allclose(contradict.posterior.marginals(t)[0], 0.0, atol=0.02)
    sure = component(
        np.linspace(0, 1, 40),
        dy.ItemResponses(np.tile([0, 1], 20), "2PL", a=60.0, b=np.linspace(-1, 1, 40)),
        dy.RBF(0.5),
    )
    assert sure.converged
    steps = component(
        np.linspace(0, 1, 30),
        [
            lambda y, s=s: np.where(s * y > 0, 0.0, -30.0)
            for s in np.where(np.arange(30) < 15, -1, 1)
        ],
        dy.RBF(0.3),
    )
    assert steps.converged
    assert (steps.posterior.marginals(np.array([0.1, 0.9]))[0] * [-1, 1] > 0).all()


def test_emissions_at_one_instant_are_one_site():
    """72 answers at one time share one nugget: the same as their product in one function."""
    votes = np.repeat([1.0, 0.0], [50, 22])
    many = component(np.zeros(72) + 3.0, dy.Bernoulli(votes), dy.RBF(1.0))
    one = component([3.0], dy.Binomial([50], [72]), dy.RBF(1.0))
    assert many.instants.size == 1
    assert_allclose(many.ep.sites, one.ep.sites, rtol=1e-7)


def test_a_constant_curve_is_exact_quadrature():
    rng = np.random.default_rng(2)
    votes = (rng.random(60) < 0.3).astype(int)
    curve = dy.CurvFiFE(bandwidth=np.inf).fit(np.arange(60), dy.Bernoulli(votes))
    k = votes.sum()
    from scipy.special import betaln

    assert (
        abs(curve.log_evidence - betaln(k + 1, 60 - k + 1)) < 1e-8
    )  # the uniform prior's closed form
    assert curve.loo.sum() == pytest.approx(
        sum(np.log((k + 1 - v) / 61 if v else 1 - (k + 1) / 61) for v in votes), abs=1e-6
    )


def test_failure_to_converge_is_reported(monkeypatch):
    from dynaesti.inference import grafting

    monkeypatch.setattr(
        grafting.graft, "__defaults__", (None, grafting.EPSettings(max_sweeps=2), None)
    )
    x, _, votes = polling(0)
    with pytest.warns(dy.ConvergenceWarning, match="did not converge"):
        curve = dy.CurvFiFE(bandwidth=0.2).fit(x, dy.Bernoulli(votes))
    assert not curve.converged
    assert "NOT converge" in curve.summary()
    with pytest.warns(dy.ConvergenceWarning, match="did not converge"):
        curve.update([0.5], dy.Bernoulli([1]))
    with pytest.warns(dy.ConvergenceWarning, match="for 2 of 2 curves"):
        dy.CurvFiFE(bandwidth=0.2).fit_many(np.repeat([1, 2], 50), x, dy.Bernoulli(votes))


def test_warnings_stay_silent_on_ordinary_data():
    x, _, votes = polling(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dy.CurvFiFE().fit(x, dy.Bernoulli(votes))


def test_a_line_through_its_own_centre():
    """The prior variance is 0 at the middle time: no crash, and a rising line for rising votes."""
    curve = dy.CurvFiFE(dy.Trend()).fit([0, 1, 2, 3, 4], dy.Bernoulli([0, 0, 1, 1, 1]))
    assert curve.median([0.0])[0] < 0.5 < curve.median([4.0])[0]
    assert curve.median([2.0])[0] == pytest.approx(0.5, abs=1e-6)


def test_a_narrow_window_is_found():
    """A likelihood that is possible only within 0.03 of a point."""
    window = [lambda y: np.where(np.abs(y - 0.4) < 0.03, 0.0, -np.inf)]
    c = component([0.0], window, dy.RBF(1.0))
    assert c.posterior.marginals(np.zeros(1))[0][0] == pytest.approx(0.4, abs=0.01)
