"""The page of abilities that do not move, who fell behind, and what was answered to items."""

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.report.data import page_data
from dynaesti.report.summary import beside_others
from dynaesti.results import changes_between_own_times


@pytest.fixture(scope="module")
def one_test():
    """Fifteen pupils answer twelve questions once, without a date."""
    rng = np.random.default_rng(1)
    table = {"Name": [f"pupil {k:02d}" for k in range(15)]}
    for k in range(12):
        table[f"Q{k + 1}"] = (rng.random(15) < 0.2 + 0.05 * np.arange(15)).astype(int).tolist()
    found = dy.Responses.read(table, timeless=True)
    return dy.DynAEsti("2PL", bandwidth=np.inf).fit(found)


def test_a_single_test_lists_everyone(one_test):
    page = page_data(one_test, None)
    assert page["facts"]["still"]
    table = page["changes"]["columns"]
    assert list(table) == ["who", "ability", "±", "answers"]
    assert len(table["who"]) == 15
    expected = one_test.people()["ability"]
    np.testing.assert_allclose(table["ability"], np.round(expected, 2), atol=0.0051)
    bands = np.array(page["changes"]["bands"])
    assert (bands[:, 0] < table["ability"]).all()
    assert (bands[:, 1] > table["ability"]).all()
    said = str(page["lead"]) + str(page["findings"]) + str(page["words"])
    assert "0.000" not in str(page["lead"])
    assert "from 0 to 0" not in said
    assert "The most able are" in said


def test_nobody_moves_in_the_table_of_people(one_test):
    people = one_test.people()
    for name in ("change", "sd", "lower", "upper"):
        assert set(people[name]) == {0.0}


@pytest.fixture(scope="module")
def a_class():
    """Everybody rises by 2 but one, who falls by as much."""
    rng = np.random.default_rng(5)
    people, sittings, items = 20, 10, 10
    who = np.repeat(np.arange(people), sittings * items)
    day = np.tile(np.repeat(np.arange(sittings) * 7.0, items), people)
    item = np.tile(np.arange(items), people * sittings)
    rise = np.where(who == 7, -2.0, 2.0) * (day / day.max() - 0.5)
    ability = rng.normal(size=people)[who] + rise
    chance = 1 / (1 + np.exp(-1.5 * (ability - np.linspace(-1.5, 1.5, items)[item])))
    resp = (rng.random(chance.size) < chance) * 1
    names = np.array([f"p{k:02d}" for k in range(people)])
    return dy.DynAEsti("2PL").fit({"id": names[who], "item": item, "resp": resp, "date": day})


def test_who_falls_behind_is_named(a_class):
    page = page_data(a_class, None)
    people = str(page["findings"][1]["parts"])
    assert "Clearly fell behind the others" in people
    assert "p07" in people
    first, last = a_class.sites.layout.spans
    found = changes_between_own_times(a_class, np.arange(20), first, last)
    words = beside_others(found)
    assert words[7] == "behind"
    assert (words == "behind").sum() <= 2
    assert page["changes"]["columns"]["beside"][7] == "behind"


def test_items_show_what_was_answered(a_class):
    items = page_data(a_class, None)["items"]
    r = a_class.responses
    for k, points in enumerate(items["observed"]):
        at, share, error, n = np.array(points).T
        assert n.sum() == (r.item == k).sum()
        assert (np.diff(at) > 0).all()
        assert abs((share * n).sum() / n.sum() - r.resp[r.item == k].mean()) < 1e-2
        assert (error > 0).all()
