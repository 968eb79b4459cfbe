"""Every family of emissions: chances that add up, curves that meet brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.kernels import component
from support.oracles import brute_force_emissions, log_prob_at


@pytest.mark.nojit
@pytest.mark.parametrize(
    "family",
    [
        dy.ItemResponses([0, 1, 2], "GRM", a=2.0, b=[-1.0, 1.0]),
        dy.ItemResponses([0, 1, 2], "GPCM", a=2.0, b=[-1.0, 1.0]),
        dy.ItemResponses([0, 1], "3PL", a=2.0, b=0.0, c=0.0),
        dy.Ordinal([0, 1, 2], [-1.0, 1.0]),
    ],
)
def test_categories_sum_to_one_even_far_out(family):
    far = np.array([-300.0, -40.0, 0.3, 40.0, 300.0])
    values = log_prob_at(family, x=far)
    assert np.all(np.isfinite(values))
    assert_allclose(np.exp(values).sum(axis=0), 1.0)


CASES = {
    "votes": (dy.Bernoulli([1, 1, 0]), "probit", 0.01, 0.01, 0.005),
    "binomials": (dy.Binomial([3, 8, 2], [10, 10, 10]), "probit", 0.01, 0.01, 0.005),
    "counts": (dy.Poisson([0, 3, 2]), "log", 0.01, 0.01, 0.005),
    "grades": (dy.Ordinal([0, 2, 1], [-1.0, 1.0]), "identity", 0.01, 0.01, 0.005),
    "guesses": (
        dy.ItemResponses([1, 1, 0], "3PL", a=2.0, b=0.5, c=0.25),
        "identity",
        0.05,
        0.04,
        0.02,
    ),
}


@pytest.mark.nojit
@pytest.mark.parametrize("case", CASES)
def test_three_emissions_meet_brute_force(case):
    """With three emissions the posterior is far from Gaussian.

    The hardest case, and still close.
    """
    emissions, link, mean_off, sd_off, evidence_off = CASES[case]
    times = np.array([0.0, 0.4, 1.0])
    c = component(times, emissions, dy.RBF(0.5), link)
    mean, sd, evidence = brute_force_emissions(times, emissions, link, 0.5)
    got_mean, got_var = c.posterior.marginals(times)
    assert_allclose(got_mean, mean, atol=mean_off)
    assert_allclose(np.sqrt(got_var + 1e-4), sd, rtol=sd_off)
    assert abs(c.log_evidence - evidence) < evidence_off
