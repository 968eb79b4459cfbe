"""Coins are called coins, and people who differ are left as they are."""

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.estimation.noise_check import NoiseSettings, probability_of_ability, with_spread
from dynaesti.estimation.people import PeopleInMemory
from support.simulated import classroom


def coins(seed, people=30, items=16):
    """Answers that depend on nothing."""
    rng = np.random.default_rng(seed)
    return {
        "id": np.repeat(np.arange(people), items),
        "item": np.tile(np.arange(items), people),
        "resp": rng.integers(0, 2, people * items),
        "date": rng.uniform(0, 100, people * items),
    }


@pytest.mark.parametrize("model", ["1PL", "2PL"])
def test_coins_have_next_to_no_reliability(model):
    fits = [dy.DynAEsti(model, standard_errors=False).fit(coins(seed)) for seed in range(4)]
    assert all(fit.converged and len(fit.trace) < 40 for fit in fits)
    assert np.median([fit.reliability() for fit in fits]) < 0.05
    words = fits[0].summary()
    assert "hardly show that people differ" in words
    assert "Ability explains nothing" in words


def test_people_who_differ_stay_as_they_are():
    fit = dy.DynAEsti("2PL", bandwidth=0.4).fit(classroom(40, 8, 30))
    assert fit.ability_probability == 1.0
    assert "Knowing who answers helps" in fit.summary()


def test_the_odds_are_those_of_a_dense_average():
    """Against the sum over a fine grid of spreads, each with an E-step of its own."""
    fit = dy.DynAEsti("2PL", bandwidth=np.inf, cohort=None).fit(coins(3, 24, 8))
    bank, priors = with_spread(fit.bank, fit.priors, 1 / fit.ability_probability)
    people = PeopleInMemory(fit.sites, 1)
    few = NoiseSettings(choice=0.0)
    fine = NoiseSettings(choice=0.0, spreads=tuple(np.linspace(0.1, 6.0, 120)))
    found, exact = (probability_of_ability(people, people, bank, priors, s) for s in (few, fine))
    assert found == pytest.approx(exact, abs=0.01)


def test_less_spread_leaves_the_cohort_where_it_was():
    """What newcomers are predicted by their date, in the items' unit, does not move."""
    table = dy.simulate.responses(people=40, items=8, per_person=20, growth=2.0, seed=2).table
    fit = dy.DynAEsti("2PL", standard_errors=False).fit(table)
    assert fit.has_cohort
    times = np.array([10.0, 90.0])
    group = np.full(2, -1)
    bank, priors = with_spread(fit.bank, fit.priors, 0.2)
    for one, other in ((fit.bank, bank),):
        before = one.log_likelihood(fit.priors.cohort.mean(times, group))
        after = other.log_likelihood(priors.cohort.mean(times, group))
        np.testing.assert_allclose(after, before, atol=1e-10)


def test_anchored_scales_and_few_people_are_not_judged():
    anchors = {k: {"a": 1.0, "b": 0.0} for k in range(16)}
    assert dy.DynAEsti("2PL", fixed=anchors).fit(coins(1)).ability_probability == 1.0
    assert dy.DynAEsti("2PL").fit(coins(1, people=6)).ability_probability == 1.0
