"""Scores of predictions, diagnostics and comparisons."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti import evaluation as evaluate
from dynaesti.results.evaluation.model_comparison import leave_one_out_logs
from dynaesti.results.updates import NewResponses, fit_new_people
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


def test_static_answers_are_predicted_without_themselves():
    """Where all answers of a person share one ability, leaving one out is the posterior of the
    rest.
    """
    table = classroom(30, 5, 6, seed=2)
    fit = dy.DynAEsti(bandwidth=np.inf).fit(table)
    found, ability = fit.leave_one_out
    r = fit.responses
    for k in range(0, len(r), 7):
        rest = r.select_responses(
            np.flatnonzero((r.person == r.person[k]) & (np.arange(len(r)) != k)), drop_unused=True
        )
        new = NewResponses(
            rest, np.full(rest.people.size, -1), np.searchsorted(r.items, rest.items)
        )
        mean = fit_new_people(fit, new).ability([0.0])["mean"][0]
        assert_allclose(ability[k], mean, atol=1e-6)
        assert 0 < found.expected[k] < 1


def test_two_fits_side_by_side():
    table = classroom(40, 5, 20)
    one, two = dy.DynAEsti(bandwidth=0.4).fit(table), dy.DynAEsti("3PL", bandwidth=0.4).fit(table)
    shown = evaluate.compare(one, two, table)
    moving = [fit.priors.cohort.effective_parameters for fit in (one, two)]
    assert list(shown["parameters"]) == [10 + moving[0], 15 + moving[1]]
    losses = [-leave_one_out_logs(fit) for fit in (one, two)]
    assert_allclose(shown["loo"], [-loss.sum() for loss in losses])
    for fit, loss in zip((one, two), losses, strict=True):  # items pay for what they learned
        gain = loss.sum() + np.log(fit.leave_one_out[0].given).sum()
        assert 0.4 * 5 < gain < 2 * 15
    assert_allclose(shown["loo_difference"][1], shown["loo"][1] - shown["loo"][0], atol=1e-9)
    assert shown["loo_difference"][0] == 0
    assert_allclose(shown["aic"], -2 * shown["log_evidence"] + 2 * shown["parameters"])
    by_person = np.bincount(one.responses.person, losses[0] - losses[1])
    assert_allclose(shown["loo_se"][1], by_person.std(ddof=1) * np.sqrt(by_person.size), rtol=0.05)
    with pytest.raises(dy.InputError, match="is none of 'random', 'last', 'people'"):
        evaluate.split(table, 0.2, by="first")


def test_all_that_is_learned_counts():
    table = classroom(40, 5, 20)
    fixed = {"bandwidth": 0.4, "cohort": None}
    assert dy.DynAEsti(**fixed).fit(table).n_parameters == 10
    assert dy.DynAEsti("1PL", **fixed).fit(table).n_parameters == 6  # and the spread
    anchored = dy.DynAEsti(fixed={"i00": {"a": 1.0, "b": 0.0}}, **fixed).fit(table)
    assert anchored.n_parameters == 8 + 2
    learned = dy.DynAEsti(cohort=None).fit(table)
    # centre and spread of bandwidth and share of the level, however many kernels are left
    assert learned.n_parameters == 10 + 4


@pytest.mark.parametrize(("model", "priors"), [("2PL", "weak"), ("2PL", None), ("1PL", "weak")])
def test_leave_one_out_is_that_of_fits_without_the_answer(model, priors):
    """Refitted without it, each of some answers is predicted as the jackknife says."""
    drawn = dy.simulate.responses(people=60, items=6, per_person=8, seed=3).table
    table = {name: np.array(column) for name, column in drawn.items()}
    static = dy.DynAEsti(model, bandwidth=np.inf, priors=priors, standard_errors=False)
    fit = static.fit(table)
    r = fit.responses
    labels = (r.people[r.person], r.items[r.item], r.axis.restore(r.offsets), r.resp)
    place = {row: k for k, row in enumerate(zip(*(one.tolist() for one in labels), strict=True))}
    found = leave_one_out_logs(fit)
    rough = np.log(fit.leave_one_out[0].given)
    errors = []
    for row in np.random.default_rng(0).choice(table["id"].size, 25, replace=False):
        kept = np.arange(table["id"].size) != row
        left = {name: column[[row]] for name, column in table.items()}
        right = static.fit({k: column[kept] for k, column in table.items()}).predict(left)["p1"][0]
        exact = np.log(right if left["resp"][0] else 1 - right)
        k = place[tuple(left[name][0].item() for name in ("id", "item", "date", "resp"))]
        errors.append((found[k] - exact, rough[k] - exact))
    jackknife, without = np.sqrt(np.mean(np.square(errors), axis=0))
    assert jackknife < 0.45 * without
    assert abs(np.mean(errors, axis=0)[0]) < 0.35 * np.mean(errors, axis=0)[1]


def test_fits_of_other_answers_are_not_compared_by_leave_one_out():
    one = dy.DynAEsti(bandwidth=np.inf).fit(classroom(40, 5, 20))
    other = dy.DynAEsti(bandwidth=np.inf).fit(classroom(30, 5, 20))
    shown = evaluate.compare(one, other)
    assert np.isnan(shown["loo_difference"][1])
    assert np.isfinite(shown["loo"]).all()


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
        dy.Responses.read(three).select_responses(np.array([0, 1]), drop_unused=True),
        dy.Responses.read(three).select_responses(np.array([2]), drop_unused=True),
    )
    up = 0.8 * 0.5  # after the right answer to x
    p = 1 / (1 + np.exp(-up))  # of y
    ability = up - 0.8 / 1.05 * p
    assert_allclose(elo(first, last), 1 / (1 + np.exp(-up - ability)))


def test_scores_take_lists_and_refuse_what_is_no_score():
    assert dy.evaluation.auc([0.1, 0.9], [0, 1]) == 1.0
    assert dy.evaluation.imv([0.5, 0.5], [0.1, 0.9], [0, 1]) > 0
    with pytest.raises(dy.InputError, match="one length"):
        dy.evaluation.auc([0.1], [0, 1])
    table = dy.simulate.responses(people=3, items=3, per_person=3, seed=1).table
    responses = dy.Responses.read(table)
    with pytest.raises(dy.InputError, match="pairs of training and test"):
        dy.evaluation.against_baselines(dy.DynAEsti("2PL"), responses)


def test_items_of_which_nothing_is_known_are_compared():
    """Without priors, an item that everybody solved has no information."""
    table = {k: np.array(v) for k, v in classroom(40, 5, 20).items()}
    table["resp"] = np.where(table["item"] == table["item"][0], 1, table["resp"])
    fits = [
        dy.DynAEsti(model, bandwidth=np.inf, priors=None).fit(table) for model in ("1PL", "2PL")
    ]
    shown = evaluate.compare(*fits)
    assert np.isfinite(shown["loo"]).all()
    assert np.isfinite(shown["loo_se"]).all()
