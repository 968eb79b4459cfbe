"""Predictions of answers held out, and fit statistics, on simulated classes."""

import numpy as np

import dynaesti as dy
from dynaesti import evaluation as evaluate
from support.oracles import in_pandas
from support.simulated import classroom


def test_held_out_answers_are_calibrated():
    table = classroom(200, 10, 40, seed=1)
    train, test = evaluate.split(table, 0.25, seed=2)
    assert len(train) + len(test) == len(table)
    fit = dy.DynAEsti(bandwidth=0.4).fit(train)
    scores = evaluate.held_out(fit, test)
    assert scores.log_loss < 0.65
    assert scores.auc > 0.65
    bins = evaluate.calibration(fit, test, 5)
    away = (bins["observed"] - bins["predicted"]) / bins["se"]
    assert np.abs(away).max() < 4


def test_moving_abilities_predict_better_where_abilities_move():
    table = classroom(150, 10, 60, seed=4, bandwidth=0.15)
    both = evaluate.dynamic_against_static(dy.DynAEsti(), table, seed=3)
    loss = dict(zip(both["abilities"], both["log_loss"], strict=True))
    assert loss["dynamic"] < loss["static"]
    last = evaluate.split(table, 0.2, by="last")
    assert last[1].clock_times.mean() > last[0].clock_times.mean()


def test_fit_statistics_are_near_one_and_find_the_odd_ones():
    table = classroom(200, 10, 30, seed=6)
    rng = np.random.default_rng(0)
    noise = table["id"] == "p003"
    table.loc[noise, "resp"] = rng.integers(0, 2, noise.sum()) * 1.0
    fit = dy.DynAEsti(bandwidth=0.4).fit(table)
    items = evaluate.item_fit(fit)
    assert (items["infit"].between(0.85, 1.15)).all()
    assert (items["outfit"].between(0.7, 1.4)).all()
    by_time = evaluate.item_fit(fit, by="time")
    assert np.abs(by_time["z"]).mean() < 1.3
    people = in_pandas(evaluate.person_fit(fit)).set_index("id")
    assert people.loc["p003", "outfit"] > people["outfit"].quantile(0.8)
