"""Scores of predictions, diagnostics and comparisons."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti import evaluation as evaluate
from support.simulated import classroom


def test_binary_scores_by_hand():
    p, y = np.array([0.9, 0.2, 0.6, 0.4]), np.array([1, 0, 0, 1])
    scores = evaluate.binary_scores(p, y)
    assert_allclose(scores.log_loss, -np.log([0.9, 0.8, 0.4, 0.4]).mean())
    assert_allclose(scores.brier, np.mean([0.01, 0.04, 0.36, 0.36]))
    assert_allclose(scores.auc, 0.75)  # of four pairs three are in order
    assert evaluate.binary_scores(np.full(4, 0.5), y).imv == 0.0


def test_the_vigorish_of_a_known_coin():
    """A model that knows a coin of 0.9 against one that says 0.5: (w1 − w0)/w0 with w0 = 0.5."""
    y = np.repeat([1, 0], [900, 100])
    assert_allclose(evaluate.imv(np.full(1000, 0.5), np.full(1000, 0.9), y), 0.8, atol=1e-9)


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
    people = evaluate.person_fit(fit).set_index("id")
    assert people.loc["p003", "outfit"] > people["outfit"].quantile(0.8)


def test_static_answers_are_predicted_without_themselves():
    """Where all answers of a person share one ability, leaving one out is the posterior of the
    rest.
    """
    table = classroom(30, 5, 6, seed=2)
    fit = dy.DynAEsti(bandwidth=np.inf).fit(table)
    found, ability = fit.without_each()
    r = fit.responses
    for k in range(0, len(r), 7):
        rest = r.part(np.flatnonzero((r.person == r.person[k]) & (np.arange(len(r)) != k)))
        mean = fit._scored(
            rest, np.full(rest.people.size, -1), np.searchsorted(r.items, rest.items)
        ).ability([0.0])["mean"][0]
        assert_allclose(ability[k], mean, atol=1e-6)
        assert 0 < found.expected[k] < 1


@pytest.mark.parametrize(
    "kernel",
    [
        dy.RBF(),
        dy.Matern32(),
        0.3 * dy.Level() + 0.7 * dy.RBF(),
        dy.Level(amplitude="learn") + dy.Matern32(),
        dy.RBF(np.inf),
    ],
)
def test_answers_one_by_one_settle_as_grafting_does(monkeypatch, kernel):
    """Rank-one steps and derivatives against integrating every site in every sweep.

    Steep items with guessing, so that both work.
    """
    table = classroom(30, 8, 60)
    fit = dy.DynAEsti(
        "3PL",
        kernel=kernel,
        iterations=3,
        fixed={f"i{k:02d}": {"a": 4.0, "c": 0.3} for k in range(8)},
    ).fit(table)
    rng = np.random.default_rng(0)
    more = [
        (float(t), f"i{rng.integers(8):02d}", float(rng.integers(2)))
        for t in rng.uniform(0.2, 1.1, 12)
    ]

    def played():
        live = fit.live("p003")
        for answer in more:
            live = live.add(*answer)
        return live

    quick = played()
    for name in ("update_low_rank", "update_level_matern32"):
        monkeypatch.setattr(f"dynaesti.inference.online.curve.{name}", lambda *_: (False, 0.0))
    slow = played()
    assert_allclose(
        quick.marginals([0.1, 0.6, 1.1]).means, slow.marginals([0.1, 0.6, 1.1]).means, atol=2e-6
    )
    assert_allclose(
        quick.marginals([0.1, 0.6, 1.1]).sds, slow.marginals([0.1, 0.6, 1.1]).sds, rtol=3e-6
    )
    assert_allclose(quick.weights, slow.weights, atol=2e-6)


def test_two_fits_side_by_side():
    table = classroom(40, 5, 20)
    one, two = dy.DynAEsti(bandwidth=0.4).fit(table), dy.DynAEsti("3PL", bandwidth=0.4).fit(table)
    shown = evaluate.compare(one, two, table)
    assert list(shown["parameters"]) == [10, 15]
    with pytest.raises(dy.InputError, match="is none of 'random', 'last', 'people'"):
        evaluate.split(table, 0.2, by="first")


def test_live_updates_equal_scoring():
    """Answers that come one by one give the curve of all of them together."""
    table = classroom(60, 6, 40)
    late = (table["id"] == "p002") & (table["date"] > 0.9)
    fit = dy.DynAEsti().fit(table[~late])
    live = fit.live("p002")
    for row in table[late].sort_values("date").itertuples():
        live = live.add(row.date, row.item, row.resp)
    at = [0.3, 0.7, 0.95]
    whole = fit.score(table[table["id"] == "p002"], at=at)
    mix = live.marginals(at)
    assert_allclose((mix.weights * mix.means).sum(axis=0), whole["mean"], atol=2e-6)
    again = live.add(0.95, "i00", 1.0).add(
        0.95, "i01", 0.0
    )  # two at one instant, one of them asked before
    both = pd.concat(
        [
            table[table["id"] == "p002"],
            pd.DataFrame({"id": "p002", "item": ["i00", "i01"], "resp": [1.0, 0.0], "date": 0.95}),
        ]
    )
    assert_allclose(again.ability(at)["mean"], fit.score(both, at=at)["mean"], atol=2e-6)
    assert_allclose(again.ability(at)["sd"], fit.score(both, at=at)["sd"], rtol=1e-5)
    with pytest.raises(dy.InputError, match="outside the item's categories"):
        live.add(1.0, "i00", 4.0)


@pytest.mark.nojit
@pytest.mark.parametrize(
    "kernel",
    [dy.RBF(0.4), dy.Level(amplitude=0.6) + dy.Matern32(0.4, amplitude=0.8), dy.RBF(np.inf)],
)
def test_live_updates_stay_within_their_arrays(kernel):
    """A compiled loop would write beyond an array of another shape without a word.

    So once without the compiler.
    """
    table = classroom(4, 4, 8)
    fit = dy.DynAEsti("2PL", kernel=kernel, iterations=2, standard_errors=False).fit(table)
    live = fit.live("p001").add(1.1, "i00", 1.0)
    more = {"id": ["p001"], "item": ["i00"], "resp": [1.0], "date": [1.1]}
    assert_allclose(
        live.ability([0.5, 1.2])["mean"],
        fit.update(more).ability([0.5, 1.2], ["p001"])["mean"],
        atol=1e-5,
    )


def test_simple_forecasts_are_what_they_say():
    from dynaesti.results.evaluation.baselines import constant, elo, item_and_person

    table = classroom(40, 6, 30)
    train, test = evaluate.split(table, 0.3, seed=1)
    values = np.array([0.0, 1.0])
    assert_allclose(
        constant(train, test, values)[0, 1], (train.resp.sum() + 0.5) / (len(train) + 1)
    )
    chances = item_and_person(train, train, values)[:, 1]
    for group, size in (
        (train.person, train.people.size),
        (train.item, train.items.size),
    ):  # shrunken: sums fit but for the priors' pull
        gap = np.bincount(group, train.resp - chances, size)
        assert np.abs(gap).max() < 3.0
    assert (
        evaluate.binary_scores(item_and_person(train, test, values)[:, 1], test.resp).log_loss
        < 0.69
    )
    three = pd.DataFrame(
        {"id": "a", "item": ["x", "y", "x"], "resp": [1.0, 0.0, 1.0], "date": [1, 2, 3]}
    )
    first, last = (
        dy.Responses.read(three).part(np.array([0, 1])),
        dy.Responses.read(three).part(np.array([2])),
    )
    up = 0.8 * 0.5  # after the right answer to x
    p = 1 / (1 + np.exp(-up))  # of y
    ability = up - 0.8 / 1.05 * p
    assert_allclose(elo(first, last), 1 / (1 + np.exp(-up - ability)))
