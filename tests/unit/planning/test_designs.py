"""Designs: who answers what and when, typical items, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.planning.designs import Design

DESIGN = Design(
    people=12,
    items=5,
    answers=8,
    rise=1.0,
    groups=None,
    model="2PL",
    slope=None,
    guessing=None,
    span=50.0,
    bandwidth=None,
    stays=0.5,
    occasions=None,
    assignment="shuffled",
)


def rng():
    return np.random.default_rng(0)


def test_shuffled_items_come_again_only_after_all_were_met():
    item = DESIGN.assigned(rng())
    assert item.shape == (12, 8)
    assert (np.sort(item[:, :5], axis=1) == np.arange(5)).all()
    assert all(np.unique(row[5:]).size == 3 for row in item)
    assert np.unique(item[:, 0]).size > 1


def test_ordered_items_are_met_in_one_order():
    item = replace(DESIGN, assignment="ordered").assigned(rng())
    assert (item == np.arange(8) % 5).all()


def test_random_items_come_at_any_time():
    item = replace(DESIGN, assignment="random", people=2000).assigned(rng())
    assert np.bincount(item.ravel()) == pytest.approx(np.full(5, 3200), rel=0.06)


def test_times_are_ones_own_or_those_of_the_occasions():
    own = DESIGN.times(rng())
    assert (np.diff(own, axis=1) >= 0).all()
    assert own.min() >= 0
    assert own.max() <= 50
    waves = replace(DESIGN, occasions=3).times(rng())
    assert waves[0].tolist() == [0, 0, 0, 25, 25, 25, 50, 50]
    assert (waves == waves[0]).all()


def test_answers_follow_abilities_which_rise():
    """Steep items, and twice everything: the share right rises as abilities do, and they by 4."""
    drawn = replace(DESIGN, people=4000, rise=4.0, slope=3.0, stays=1.0).draw(rng())
    times = drawn.table["date"]
    ability = drawn.ability.ravel()
    slope, start = np.polyfit(times, ability, 1)
    assert (slope * 50, start) == pytest.approx((4.0, -2.0), abs=0.1)
    late, early = times > 45, times < 5
    assert drawn.table["resp"][late].mean() > drawn.table["resp"][early].mean() + 0.3
    assert list(drawn.table) == ["id", "item", "resp", "date"]


def test_the_treated_half_rises_by_more():
    drawn = replace(DESIGN, people=4000, rise=1.0, groups=2.0, stays=1.0).draw(rng())
    treated = drawn.table["group"] == "treated"
    assert treated.mean() == 0.5
    rises = [
        50 * np.polyfit(drawn.table["date"][mine], drawn.ability.ravel()[mine], 1)[0]
        for mine in (~treated, treated)
    ]
    assert rises == pytest.approx([1.0, 3.0], abs=0.15)
    assert replace(DESIGN, groups=2.0).effect == 2.0


def test_typical_items_have_the_slope_and_the_guessing_asked_for():
    many = replace(DESIGN, items=4000, model="3PL", slope=1.8, guessing=0.25)
    table = many.world.described(many.item_parameters(rng()))
    assert np.median(table["a"]) == pytest.approx(1.8, rel=0.03)
    assert np.median(table["c"]) == pytest.approx(0.25, rel=0.05)
    usual = replace(many, slope=None, guessing=None)
    assert np.median(usual.world.described(usual.item_parameters(rng()))["a"]) == pytest.approx(
        1.0, rel=0.03
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"people": 9}, "people: expected a whole number of at least 10"),
        ({"people": 2.5}, "people: "),
        ({"items": 1}, "items: "),
        ({"answers": 1}, "answers: "),
        ({"people": 10**9}, "people: "),
        ({"rise": np.nan}, "rise: "),
        ({"groups": np.inf}, "groups: "),
        ({"span": 0.0}, "span: "),
        ({"bandwidth": -1.0}, "bandwidth: "),
        ({"stays": 1.5}, "stays: expected a fraction"),
        ({"assignment": "chaos"}, "assignment: expected one of shuffled"),
        ({"occasions": 1}, "occasions: "),
        ({"occasions": 9}, "occasions: 9 occasions for 8 answers"),
        ({"model": "5PL"}, "model: expected one of 1PL"),
        ({"model": "golf"}, "model: "),
        ({"slope": 0.0}, "slope: "),
        ({"model": "1PL", "slope": 2.0}, "slope: all 1PL items have slope 1"),
        ({"guessing": 0.2}, "guessing: 2PL items are not guessed; plan with model='3PL'"),
        ({"model": "3PL", "guessing": 1.0}, "guessing: expected a probability"),
    ],
)
def test_designs_that_cannot_be_are_refused(wrong, said):
    with pytest.raises(dy.InputError) as error:
        replace(DESIGN, **wrong)
    assert str(error.value).startswith(said)
