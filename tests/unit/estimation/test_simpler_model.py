"""Whether one slope for all items would do."""

import numpy as np
import pytest

import dynaesti as dy
from support.simulated import classroom


def answers(seed, spread, people=300, items=20):
    """Constant abilities, and log slopes of the given spread."""
    rng = np.random.default_rng(seed)
    a, b = np.exp(spread * rng.normal(size=items)), rng.normal(size=items)
    chance = 1 / (1 + np.exp(-a * (rng.normal(size=(people, 1)) - b)))
    return {
        "id": np.repeat(np.arange(people), items),
        "item": np.tile(np.arange(items), people),
        "resp": (rng.random(chance.shape) < chance).ravel() * 1,
        "date": np.zeros(people * items),
    }


def simpler(fit):
    return fit.options["simpler_model"]


@pytest.mark.parametrize("seed", range(3))
def test_one_slope_is_named_where_items_have_one(seed):
    static = dy.DynAEsti("2PL", bandwidth=np.inf, standard_errors=False)
    found = static.fit(answers(seed, 0.0))
    name, gain = simpler(found)
    assert name == "1PL"
    assert 5 < gain < 30
    assert "one slope for all items (1PL)" in found.summary()
    assert simpler(static.fit(answers(seed, 0.5))) is None


def test_evidence_lost_is_bounded_by_what_a_refit_loses():
    """EM's inequality: at the same counts the simpler model seems no better than when refitted."""
    table = answers(4, 0.1)
    without = {"priors": None, "bandwidth": np.inf, "standard_errors": False}
    two, one = (dy.DynAEsti(model, **without).fit(table) for model in ("2PL", "1PL"))
    _, gain = simpler(two)
    cost = 0.5 * 20 * np.log(300)  # of twenty slopes, each seen by 300 answers
    refitted = one.log_evidence - two.log_evidence + cost
    assert gain <= refitted + 0.1
    assert gain == pytest.approx(refitted, abs=10)


def test_models_without_a_simpler_one_say_nothing():
    table = classroom(40, 5, 20)
    for options in ({"model": "1PL"}, {"model": "3PL"}, {"direction": "free"}):
        assert simpler(dy.DynAEsti(**options, bandwidth=0.4).fit(table)) is None


def test_difficulties_of_few_people_on_many_items_do_not_fall_together():
    rng = np.random.default_rng(0)
    items, people = 400, 6
    rows = [(p, k) for p in range(people) for k in rng.choice(items, 150, replace=False)]
    who, item = np.array(rows).T
    ability, b = rng.normal(size=people), rng.normal(size=items)
    chance = 1 / (1 + np.exp(b[item] - ability[who]))
    table = {"id": who, "item": item, "resp": (rng.random(who.size) < chance) * 1}
    table["date"] = rng.uniform(0, 10, who.size)
    agreement = {}
    for model in ("1PL", "2PL"):
        fit = dy.DynAEsti(model, standard_errors=False).fit(table)
        place = dict(zip(fit.items["item"], fit.items["b"], strict=True))
        found = np.array([place[k] for k in sorted(place)])
        agreement[model] = np.corrcoef(found, b[sorted(place)])[0, 1]
        assert found.std() > 0.5
    assert agreement["2PL"] > agreement["1PL"] - 0.03
    assert 0.3 < np.median(fit.items["a"]) < 2.0  # six people hardly show the unit
