"""Items beside ability: shares, correlations, flags."""

import numpy as np
import pytest

import dynaesti as dy
from support.simulated import classroom

pytestmark = pytest.mark.filterwarnings("ignore::dynaesti.HealthWarning")


def answers(seed, people=120, items=15, slopes=None, difficulties=None):
    """Everyone's answer to every item, of constant abilities."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.7, 1.8, items) if slopes is None else np.asarray(slopes)
    b = rng.normal(size=items) if difficulties is None else np.asarray(difficulties)
    chance = 1 / (1 + np.exp(-a * (rng.normal(size=(people, 1)) - b)))
    return {
        "id": np.repeat(np.arange(people), items),
        "item": np.tile(np.arange(items), people),
        "resp": (rng.random(chance.shape) < chance).ravel() * 1,
        "date": np.zeros(people * items),
    }


def static(table, **options):
    return dy.DynAEsti("2PL", bandwidth=np.inf, standard_errors=False, **options).fit(table)


def flags(fit):
    found = dy.evaluation.flag_items(fit)
    return dict(zip(found["item"], found["flag"], strict=True))


def test_shares_and_correlations_are_those_of_the_answers():
    fit = static(answers(1))
    found = dy.evaluation.flag_items(fit)
    resp = fit.responses.resp.reshape(120, 15)
    ability = fit.leave_one_out[1].reshape(120, 15)
    np.testing.assert_allclose(found["share"], resp.mean(axis=0), rtol=1e-12)
    exact = [np.corrcoef(resp[:, k], ability[:, k])[0, 1] for k in range(15)]
    np.testing.assert_allclose(found["item_rest"], exact, rtol=1e-9)
    fits = dy.evaluation.item_fit(fit)
    for name in ("infit", "outfit"):
        np.testing.assert_allclose(found[name], fits[name], rtol=1e-12)


def test_graded_items_count_points():
    fit = dy.DynAEsti("GRM", bandwidth=np.inf).fit(classroom(40, 5, 20, model="GRM"))
    r = fit.responses
    top = r.resp.max()
    share = [r.resp[r.item == k].mean() / top for k in range(5)]
    np.testing.assert_allclose(dy.evaluation.flag_items(fit)["share"], share, rtol=1e-12)


def test_each_kind_of_item_gets_its_word():
    a = [-1.5, 0.0, 1.2, 1.2, *np.linspace(0.8, 1.6, 12)]
    b = [0.0, 0.0, -5.5, 5.5, *np.linspace(-1, 1, 12)]
    found = flags(static(answers(2, people=1500, items=16, slopes=a, difficulties=b)))
    assert [found[k] for k in range(4)] == ["wrong key?", "useless", "too easy", "too hard"]
    assert not any(found[k] for k in range(4, 16))


def test_an_item_that_stops_rising_misfits():
    table = answers(3, people=1500)
    rng = np.random.default_rng(0)
    ability = np.repeat(np.bincount(table["id"], table["resp"]), 15)
    odd = table["item"] == 4  # right for the middle third only
    middle = (ability > 5) & (ability < 9)
    table["resp"] = np.where(odd, rng.random(odd.size) < 0.2 + 0.6 * middle, table["resp"]) * 1
    assert flags(static(table))[4] in ("misfits", "useless")
    assert sum(bool(flag) for flag in flags(static(table)).values()) == 1


def test_signs_are_not_keys_where_directions_are_free():
    table = answers(4, slopes=[-1.5, *np.linspace(0.8, 1.6, 14)])
    assert flags(static(table))[0] == "wrong key?"
    assert flags(static(table, direction="free"))[0] == ""


def test_few_answers_are_not_judged():
    found = flags(static(answers(5, people=20, slopes=[-2.0, *np.linspace(0.8, 1.6, 14)])))
    assert not any(found.values())


def test_amounts_have_no_share():
    rng = np.random.default_rng(0)
    table = {"id": np.repeat(np.arange(40), 5), "item": np.tile(np.arange(5), 40)}
    table |= {"resp": 1e6 + rng.normal(size=200), "date": np.zeros(200)}
    found = dy.evaluation.flag_items(dy.DynAEsti("Gaussian", bandwidth=np.inf).fit(table))
    assert np.isnan(found["share"]).all()


def test_tables_and_summaries_tell():
    fit = static(answers(7, slopes=[-1.5, *np.linspace(0.8, 1.6, 14)]))
    assert fit.items["flag"][0] == "wrong key?"
    assert "1 item of 15 flagged: 0 (wrong key?)." in fit.summary()


@pytest.mark.parametrize("drift", [False, True])
def test_drift_joins_where_it_is_asked_for(drift):
    rng = np.random.default_rng(8)
    table = answers(8, people=400, difficulties=np.linspace(-1, 1, 15))
    table["date"] = rng.uniform(0, 100, table["id"].size)
    leaked = (table["item"] == 12) & (table["date"] > 50)
    table["resp"] = np.where(leaked & (rng.random(leaked.size) < 0.6), 1, table["resp"])
    found = dy.evaluation.flag_items(static(table), drift=drift)
    assert ("drifts" in found["flag"][12]) is drift


def test_fewer_strokes_are_better():
    """Items whose lower responses are better are not taken for wrongly keyed."""
    fit = dy.DynAEsti(dy.PivotPartialCredit(), unit="years").fit(
        dy.examples.golf(players=30), id="player", item="hole", resp="strokes", time="year"
    )
    items = fit.items
    assert set(items["flag"].tolist()) == {""}
    assert (items["item_rest"] > 0).all()
    marks = fit.plot.answers_data(["Palm"])
    best = marks["share"][np.asarray(marks["resp"]) <= 2]
    assert best.min() > marks["share"][np.asarray(marks["resp"]) >= 6].max()
