"""CurvFiFE: bad input refused in words with nothing half-done."""

from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy

VOTES = dy.Bernoulli([0, 1, 0, 1, 1, 1])
DAYS = np.array([0.0, 1.0, 2.5, 4.0, 6.0, 7.0])


def fit(times, emissions=VOTES, **options):
    return dy.CurvFiFE(**options).fit(times, emissions)


@pytest.mark.parametrize(
    ("times", "emissions", "says"),
    [
        (
            [0, 1, np.nan, 3, 4, 5],
            VOTES,
            "times: 1 of 6 values are not finite \\(first: position 2\\)",
        ),
        ([0, 1, np.inf, 3, 4, 5], VOTES, "not finite"),
        ([0, 1, 2], VOTES, "3 times, 6 emissions"),
        ([], dy.Bernoulli([]), "no observations"),
        (["a"] * 6, VOTES, "text such as 'a' where times belong"),
        ([None] * 6, VOTES, "times"),
        (np.zeros((2, 3)), VOTES, "one dimension"),
        (
            pd.to_datetime(["2024-01-01", None, "2024-01-02"]),
            dy.Bernoulli([0, 1, 1]),
            "missing \\(NaT\\)",
        ),
        (pd.to_timedelta([1, 2, 3], unit="D"), dy.Bernoulli([0, 1, 1]), "durations"),
        (np.ones(6), VOTES, "no time scale to learn"),
        ([3.0], dy.Bernoulli([1]), "no time scale to learn"),
        (DAYS, [0, 1, 0, 1, 1, 1], "entry 0 is int"),
        (DAYS, np.ones(6), "expected a family"),
        (DAYS, "010111", "expected a family"),
        (DAYS, [lambda y: np.full_like(y, -np.inf)] * 6, "impossible"),
        (DAYS, [lambda y: np.where(y > 0, np.nan, 0.0)] * 6, "log-likelihood is nan at y ="),
        (DAYS, [lambda y: np.full_like(y, np.inf)] * 6, "log-likelihood is inf"),
        (DAYS, [lambda y: y[:3]] * 6, "must work on arrays"),
        (DAYS, [lambda y: 1 / 0] * 6, "emission 0: its function raised ZeroDivisionError"),
    ],
)
def test_bad_data_are_refused_in_words(times, emissions, says):
    with pytest.raises(dy.InputError, match=says):
        fit(times, emissions)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"bandwidth": -1.0}, "positive number"),
        ({"bandwidth": 0}, "positive number"),
        ({"bandwidth": "auto"}, "none of learn"),
        ({"bandwidth": [1, 2]}, "positive number"),
        ({"kernel": "rbf"}, "expected a kernel"),
        ({"link": "tan"}, "none of identity"),
        ({"kernel": dy.RBF(), "bandwidth": 1.0}, "not both"),
        ({"solver": "magic"}, "none of dense"),
        ({"mean": "zero"}, "expected a number"),
        ({"mean": np.nan}, "finite"),
        ({"folds": 1}, "folds: expected a whole number"),
        ({"link": "identity"}, "need y to be numbers between 0 and 1"),
        ({"kernel": dy.RBF("cv") + dy.Matern32("loo")}, "different methods"),
        ({"mean": lambda t: "x"}, "mean: the function raised"),
    ],
)
def test_bad_options_are_refused_in_words(options, says):
    with pytest.raises(dy.InputError, match=says):
        fit(DAYS, **options)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dy.Bernoulli(np.ma.array([0, 1, 1], mask=[0, 1, 0])), "1 values are masked"),
        (lambda: dy.Bernoulli(np.array([0, 1j])), "complex"),
        (lambda: dy.Bernoulli([[0], [1, 1]]), "different lengths"),
        (lambda: dy.Gaussian([10**400], 1.0), "expected numbers"),
        (lambda: dy.Ordinal([0, 0], []), "give \\(K,\\) or"),
        (lambda: dy.ItemResponses([1], "GRM", a=-1.0, b=[0.0, 1.0]), "positive slope"),
        (lambda: fit(DAYS, dy.Bernoulli), "Bernoulli is a class"),
        (
            lambda: fit([datetime(2024, 1, 1), None], dy.Bernoulli([0, 1])),
            "1 of 2 values are missing",
        ),
        (
            lambda: fit([pd.Timestamp("2024-01-01"), pd.NaT], dy.Bernoulli([0, 1])),
            "1 of 2 values are missing",
        ),
        (lambda: fit(DAYS, dy.Poisson([1] * 6), link="logit"), "need y to be positive"),
        (
            lambda: fit(DAYS, dy.Table(np.linspace(-1, 1, 9), np.zeros((6, 9))), link="probit"),
            "4 of 9 values are not numbers between",
        ),
        (lambda: fit(DAYS, dy.Gaussian(np.ones(6), 1e-200)), "too extreme|positive"),
        (lambda: dy.load(5), "expected a file name"),
        (lambda: fit(DAYS).sample([1.0], 0), "size: expected"),
        (lambda: fit(DAYS).sample([1.0], 2, seed="a"), "seed: expected"),
        (lambda: fit(DAYS).interval([1.0], "0.7"), "level"),
        (lambda: fit(DAYS).grid(-1), "points: expected"),
        (lambda: fit(DAYS).audit().quantile([1.0], 2.0), "not between 0 and 1"),
        (lambda: dy.CurvFiFE(seed="a"), "seed: expected"),
        (lambda: fit(DAYS, link=(lambda x: 1 / 0, lambda y: y)), "link: a function raised"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_bad_input(make, says):
    with pytest.raises(dy.InputError, match=says):
        make()


def test_what_happens_to_an_array_later_does_not_reach_the_fit():
    votes = np.array([0.0, 1, 0, 1, 1, 1])
    curve = fit(DAYS, dy.Bernoulli(votes))
    before = curve.loo.copy()
    votes[:] = 1 - votes
    assert_allclose(fit(DAYS, curve.observations.emissions).loo, before, rtol=0)


def test_one_observation_is_fine_with_a_given_bandwidth():
    curve = fit([3.0], dy.Bernoulli([1]), bandwidth=2.0)
    assert_allclose(curve.mean([3.0]), 2 / 3, atol=3e-3)  # Laplace's rule of succession
    assert_allclose(
        fit(np.ones(3), dy.Bernoulli([1, 1, 0]), bandwidth=np.inf).mean([1.0]), 3 / 5, atol=2e-3
    )


def test_emissions_name_their_links():
    with pytest.raises(dy.InputError, match="suggest different links"):
        fit(DAYS, [dy.Bernoulli([0, 1, 1]), dy.Poisson([1, 2, 3])])
    assert fit(DAYS, dy.Poisson([1, 2, 3, 4, 5, 6])).link.name == "log"


def test_bad_questions_are_refused_in_words():
    curve = fit(DAYS)
    for ask, says in [
        (lambda: curve.quantile([1.0], 1.5), "not between 0 and 1"),
        (lambda: curve.interval([1.0], 2), "not between 0 and 1"),
        (lambda: curve.mean([np.nan]), "not finite"),
        (lambda: curve.audit(draws=5), "draws: expected a whole number of at least 200"),
        (lambda: curve.update([1.0, 2.0], dy.Bernoulli([1])), "2 times, 1 emissions"),
    ]:
        with pytest.raises(dy.InputError, match=says):
            ask()


def test_weight_at_the_shortest_bandwidth_is_told():
    t = np.arange(60.0)
    with pytest.warns(dy.BandwidthWarning, match="shortest that these times can show"):
        dy.CurvFiFE().fit(t, dy.Binomial(np.tile([1, 999], 30), 1000))
