"""Diagnostics of a fit: quantile residuals, Q3, person fit along time, checks by drawn answers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest

import dynaesti as dy
from dynaesti.errors import InputError
from dynaesti.tables import as_frame
from support.simulated import classroom


def drawn(model="2PL", people=80, seed=2):
    return dy.simulate.responses(people, 8, 16, model=model, seed=seed).table


@pytest.fixture(scope="module")
def fit():
    return dy.DynAEsti("2PL").fit(drawn())


@pytest.mark.parametrize("model", ["2PL", "GRM", "poisson", "gaussian", "beta"])
def test_quantile_residuals_are_standard_normal(model):
    table = classroom(60, 8, 16, model=model) if model != "2PL" else drawn()
    found = dy.evaluation.quantile_residuals(dy.DynAEsti(model).fit(table))
    residual = np.asarray(found["residual"])
    assert kstest(residual, "norm").pvalue > 0.001
    again = dy.evaluation.quantile_residuals(dy.DynAEsti(model).fit(table))
    assert_allclose(residual, again["residual"])


def test_the_distribution_function_is_the_sum_of_probabilities(fit):
    found = fit.leave_one_out[0]
    resp = fit.responses.resp
    assert_allclose(found.below, np.where(resp == 1, found.chances[:, 0], 0.0))
    assert_allclose(found.upto, np.where(resp == 1, 1.0, found.chances[:, 0]))
    assert (found.category == resp).all()


def test_q3_finds_items_that_go_together(fit):
    sound = dy.evaluation.q3(fit)
    assert len(sound) == 8 * 7 / 2
    assert np.abs(sound["z"]).mean() == pytest.approx(0.8, abs=0.3)  # of standard normals
    assert not sound["flag"].any()
    rng = np.random.default_rng(1)
    people = 200
    theta = rng.normal(size=people)
    shared = rng.normal(size=people)  # of a text that two items share
    rows = [
        (f"p{p:03d}", f"i{k}", int(rng.random() < 1 / (1 + np.exp(-z))), float(k))
        for p in range(people)
        for k in range(8)
        for z in [theta[p] + 2.5 * shared[p] * (k < 2)]
    ]
    table = pd.DataFrame(rows, columns=["id", "item", "resp", "date"])
    found = dy.evaluation.q3(dy.DynAEsti("1PL", bandwidth=np.inf).fit(table))
    assert {found["item"][0], found["other"][0]} == {"i0", "i1"}
    assert found["flag"][0]
    assert found["excess"][0] > 0.2
    assert found["n"][0] == people
    assert found["flag"][1:].sum() == 0


def test_lz_is_standard_normal_and_finds_who_guesses(fit):
    found = dy.evaluation.person_fit(fit)
    assert np.asarray(found["lz"]).std() == pytest.approx(1.0, abs=0.25)
    table = pd.DataFrame(drawn(people=60))
    odd = table["id"] == "p05"
    by_item = table.groupby("item")["resp"].transform("mean")
    # right where others are wrong, from the middle on
    late = odd & (table.groupby("id").cumcount() >= 8)
    table.loc[late, "resp"] = (by_item < by_item.median()).astype(int)
    odd_fit = dy.DynAEsti("2PL").fit(table)
    along = dy.evaluation.person_fit(odd_fit, by="time", bins=2)
    assert list(along.columns) == ["id", "time", "infit", "outfit", "n", "lz", "p"]
    assert len(along) == 120
    mine = along[along["id"] == "p05"]["lz"].to_numpy()
    assert mine[1] < mine[0]
    assert mine[1] < np.quantile(along["lz"], 0.05)
    with pytest.raises(InputError, match="by: 'ability'"):
        dy.evaluation.person_fit(fit, by="ability")


def test_drawn_answers_are_like_those_given_or_not(fit):
    found = dy.evaluation.predictive_check(fit, draws=40)
    assert ((found["p"] > 0.01) & (found["p"] < 0.99)).all()
    assert (found["lower"] <= found["upper"]).all()
    # answers that repeat the one before: the model does not draw so many
    table = pd.DataFrame(drawn(people=60)).sort_values(["id", "date"])
    sticky = table.groupby("id").cumcount() % 4 > 0
    table["resp"] = table["resp"].where(~sticky).ffill()
    wrong = dy.evaluation.predictive_check(
        dy.DynAEsti("2PL", bandwidth=np.inf).fit(table), draws=40
    ).set_index("statistic")
    assert wrong.loc["equal to the one before", "p"] < 0.02
    with pytest.raises(InputError, match="draws"):
        dy.evaluation.predictive_check(fit, draws=3)


def test_ordered_vigorish():
    """Two categories give the usual one; three average their thresholds."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    base = np.full((200, 2), 0.5)
    chances = np.stack([1 - p, p], axis=1)
    assert_allclose(
        dy.evaluation.imv_ordered(base, chances, y), dy.evaluation.imv(base[:, 1], p, y)
    )
    table = dy.simulate.responses(80, 6, 16, model="GRM", seed=1).table
    train, test = dy.evaluation.split(table, 0.3, by="last")
    scores = dy.evaluation.held_out(dy.DynAEsti("GRM").fit(train), test)
    assert 0 < scores.imv < 1
    assert np.isnan(scores.auc)


def test_scores_by_horizon():
    """Curves that move are forecast worse, the farther ahead."""
    table = dy.simulate.responses(150, 10, 40, level=0.0, bandwidth=10.0, seed=3).table
    train, test = dy.evaluation.split(table, 0.4, by="last")
    fit = dy.DynAEsti("2PL").fit(train)
    found = dy.evaluation.by_horizon(fit, test, bins=3)
    assert found["n"].sum() <= len(test)
    assert (found["from"].to_numpy()[1:] >= found["to"].to_numpy()[:-1]).all()
    assert found["imv"][0] > found["imv"][2]
    with pytest.raises(InputError, match="nobody of the fit answers later"):
        dy.evaluation.by_horizon(fit, train)


def test_shards_give_what_memory_gives(tmp_path):
    table = drawn()
    memory = dy.DynAEsti("2PL").fit(table)
    sharded = dy.DynAEsti("2PL").fit(dy.prepare(table, tmp_path / "shards", shards=3))
    for check in (dy.evaluation.item_fit, dy.evaluation.q3):
        ours, theirs = check(sharded), check(memory)
        for name in ours.columns:
            if ours[name].dtype.kind == "f":
                assert_allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-6)
    for check in (dy.evaluation.person_fit, dy.evaluation.quantile_residuals):
        ours, theirs = (as_frame(check(f)).sort("id") for f in (sharded, memory))
        assert list(ours["id"]) == list(theirs["id"])
    by_id = [as_frame(dy.evaluation.person_fit(f)).sort("id")["lz"] for f in (sharded, memory)]
    assert_allclose(*by_id, atol=1e-5)
    assert len(dy.evaluation.predictive_check(sharded, draws=10)) == 8
