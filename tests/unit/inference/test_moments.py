"""Tilted moments against adaptive quadrature and closed forms, on tables and by formula."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import norm

from dynaesti.core import Ragged
from dynaesti.inference.site_likelihood import Integration, SiteLikelihood
from dynaesti.inference.sites import Moments, SiteFactors
from dynaesti.model.emissions.families import Bernoulli, Binomial, Gaussian, Poisson, StudentT
from dynaesti.model.emissions.item_responses import ItemResponses
from dynaesti.model.emissions.tables import Functions
from dynaesti.model.links import BUILT_IN
from support.oracles import adaptive_moments
from support.simulated import polling

pytestmark = pytest.mark.nojit


def match(emissions, link, mean, var, members=None, tabulated=True, guess=None):
    """Moments of one group (all emissions by default) under one cavity."""
    members = np.arange(len(emissions)) if members is None else members
    groups = Ragged(np.array([0, members.size]), members)
    likelihood = SiteLikelihood(emissions, BUILT_IN[link], groups)
    log_z, m, v = (
        np.zeros(1),
        np.array([mean if guess is None else guess[0]]),
        np.array([var if guess is None else guess[1]]),
    )
    likelihood.match(
        np.array([0]),
        np.array([0]),
        Moments(np.array([float(mean)]), np.array([float(var)])),
        log_z,
        Moments(m, v),
        Integration(tabulated),
    )
    return log_z[0], m[0], v[0]


@pytest.mark.parametrize("tabulated", [True, False])
@pytest.mark.parametrize("vote", [0, 1])
@pytest.mark.parametrize(
    ("mean", "sd"), [(0.0, 1.0), (-3.0, 0.5), (2.0, 0.05), (1.0, 0.01), (-5.0, 1.2)]
)
def test_probit_votes_meet_the_closed_form(vote, mean, sd, tabulated):
    sign = 2 * vote - 1
    z = sign * mean / np.sqrt(1 + sd**2)
    ratio = norm.pdf(z) / ndtr(z)
    m = mean + sign * sd**2 * ratio / np.sqrt(1 + sd**2)
    v = sd**2 - sd**4 * ratio * (z + ratio) / (1 + sd**2)
    got = match(Bernoulli([vote]), "probit", mean, sd**2, tabulated=tabulated)
    assert_allclose(got, (np.log(ndtr(z)), m, v), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("tabulated", [True, False])
@pytest.mark.parametrize(("a", "b", "c"), [(1.0, 0.0, 0.2), (4.0, 1.0, 0.33), (8.0, 2.0, 0.5)])
@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (1.0, 0.3), (-2.0, 1.4)])
def test_steep_guessing_items_meet_quadrature(a, b, c, mean, sd, tabulated):
    item = ItemResponses([1], "3PL", a=a, b=b, c=c)
    assert_allclose(
        match(item, "identity", mean, sd**2, tabulated=tabulated),
        adaptive_moments(item, "identity", mean, sd, points=[b]),
        rtol=2e-7,
        atol=1e-9,
    )


@pytest.mark.parametrize("tabulated", [True, False])
def test_a_poll_of_1500_and_1500_votes_at_one_instant_are_exact(tabulated):
    poll = Binomial([900], [1500])
    truth = adaptive_moments(poll, "probit", 0.0, 1.0, lo=-0.3, hi=0.8)
    got = match(poll, "probit", 0.0, 1.0, tabulated=tabulated)
    assert_allclose(got[1:], truth[1:], rtol=1e-7)
    votes = Bernoulli(np.repeat([1, 0], [900, 600]))
    merged = match(votes, "probit", 0.0, 1.0, tabulated=tabulated)
    assert abs(merged[1] - truth[1]) < 1e-5 * np.sqrt(truth[2])
    assert_allclose(merged[2], truth[2], rtol=1e-5)


def test_counts_in_the_thousands_and_far_guesses_are_found():
    count = Poisson([5000])
    truth = adaptive_moments(count, "log", 8.0, 1.0, lo=8.3, hi=8.7)
    for guess in (None, (8.0, 1e-6), (12.0, 0.01), (2.0, 9.0)):
        assert_allclose(
            match(count, "log", 8.0, 1.0, guess=guess, tabulated=False), truth, rtol=1e-8
        )


@pytest.mark.parametrize(
    ("mean", "sd", "scale"), [(0.0, 20.0, 0.3), (0.0, 1.0, 0.01), (-5.0, 1.0, 0.5)]
)
def test_heavy_tails_within_wide_cavities(mean, sd, scale):
    value = StudentT([3.0], scale)
    near = [3.0 + k * scale for k in (-30, -8, -2, 0, 2, 8, 30)]
    assert_allclose(
        match(value, "identity", mean, sd**2, tabulated=False),
        adaptive_moments(value, "identity", mean, sd, points=near),
        rtol=5e-5,
    )


def test_a_sharp_function_is_found_within_a_wide_cavity():
    sharp = Functions([lambda y: -0.5 * ((y - 0.777) / 1e-4) ** 2])
    log_z, m, v = match(sharp, "identity", 0.0, 1.0)
    prec = 1 + 1e8
    assert_allclose((m, v), (0.777e8 / prec, 1 / prec), rtol=1e-8)
    assert_allclose(
        log_z,
        norm.logpdf(0.777, 0, np.sqrt(1 + 1e-8)) + np.log(1e-4 * np.sqrt(2 * np.pi)),
        rtol=1e-8,
    )


def test_table_and_formula_agree_on_every_vote():
    _, _, votes = polling(1)
    emissions, n = Bernoulli(votes), 100
    rng = np.random.default_rng(0)
    mean, var = rng.normal(size=n), rng.uniform(1e-4, 1.5, n)
    groups = Ragged(np.arange(n + 1), np.arange(n))
    likelihood = SiteLikelihood(emissions, BUILT_IN["probit"], groups)
    both = []
    for tabulated in (True, False):
        log_z, m, v = np.zeros(n), mean.copy(), var.copy()
        every, cavity = np.arange(n), Moments(mean, var)
        likelihood.match(every, every, cavity, log_z, Moments(m, v), Integration(tabulated))
        both.append((log_z, m, v))
    assert_allclose(both[0], both[1], rtol=1e-7, atol=1e-9)


def test_gaussian_members_are_left_to_the_fixed_part():
    likelihood = SiteLikelihood(
        Gaussian([1.0, 3.0], [0.5, 1.0]),
        BUILT_IN["identity"],
        Ragged(np.array([0, 2]), np.array([0, 1])),
    )
    fixed = likelihood.gaussian_factors(np.zeros(2))
    assert_allclose([fixed.natural.precision[0], fixed.natural.shift[0]], [5.0, 7.0])
    assert_allclose(fixed.constant[0], norm.logpdf(0, 1, 0.5) + norm.logpdf(0, 3, 1.0))
    assert len(likelihood.non_gaussian.values) == 0


@pytest.mark.parametrize("slack", [1e-7, 1e-5, 3e-4])
def test_moments_that_follow_their_cavity_stay_within_their_slack(slack):
    """By derivative against integrating anew, for cavities that wander.

    And at once where the move is too large.
    """
    from dynaesti.inference.moments.match import match_sites, match_sites_cached
    from dynaesti.inference.moments.table import likelihood_table

    rng = np.random.default_rng(0)
    x = np.linspace(-8, 8, 321)
    a, b = rng.uniform(0.5, 2.5, 40), rng.normal(size=40)
    table = likelihood_table(
        -8.0, float(x[1] - x[0]), np.log(0.2 + 0.8 / (1 + np.exp(-a[:, None] * (x - b[:, None]))))
    )
    sites, start = np.arange(40), np.arange(41)
    factors = SiteFactors(sites, start, sites, np.ones(40))
    m, v = rng.normal(size=40), rng.uniform(0.1, 0.8, 40)
    known = np.full((40, 8), np.nan)
    for size in (0.0, 1e-3, 1e-2, 0.1, 0.3):
        cav_m, cav_v = m + size * rng.normal(size=40), v * np.exp(size * rng.normal(size=40))
        fast, slow = (np.zeros((3, 40)) for _ in range(2))
        for out in (fast, slow):
            out[1], out[2] = cav_m, cav_v
        cavity = Moments(cav_m, cav_v)
        found = Moments(fast[1], fast[2])
        assert match_sites_cached(sites, factors, table, cavity, known, slack, fast[0], found) == -1
        found = Moments(slow[1], slow[2])
        assert match_sites(sites, factors, table, cavity, slow[0], found) == -1
        sd = np.sqrt(slow[2])
        assert np.abs((fast[1] - slow[1]) / sd).max() < 3 * slack
        assert np.abs(fast[2] / slow[2] - 1).max() < 3 * slack
        assert np.abs(fast[0] - slow[0]).max() < max(3e-7, 0.3 * slack)
