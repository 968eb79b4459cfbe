"""Simulated adaptive sessions: honest about the truth they draw, and the same for every policy."""

import numpy as np
import pytest

import dynaesti as dy


@pytest.fixture(scope="module")
def fit():
    return dy.DynAEsti("2PL").fit(
        dy.simulate.responses(people=60, items=30, per_person=40, seed=1).table
    )


@pytest.fixture(scope="module")
def found(fit):
    return dy.evaluation.adaptive(fit, learners=400, after=(5, 15), seed=3).to_dict()


def test_bands_cover_and_sds_are_errors(found):
    """Answers are drawn from the model that the states assume."""
    cover = np.array(found["cover"])
    assert (abs(cover - 0.7) < 4 * np.sqrt(0.7 * 0.3 / 400)).all()
    assert (abs(np.array(found["rmse"]) / found["sd"] - 1) < 4 / np.sqrt(2 * 400)).all()
    assert (abs(np.array(found["bias"])) < 4 * np.array(found["sd"]) / 20).all()


def test_information_tells_most_and_a_target_is_met(found):
    rows = dict(zip(zip(found["policy"], found["after"], strict=True), range(6), strict=True))
    best, easy, random = (
        rows[name, 15] for name in ("most informative", "right 4 times in 5", "at random")
    )
    assert found["rmse"][best] < found["rmse"][random]
    assert found["score"][easy] > found["score"][best] + 0.1
    assert found["items"][random] == 30
    assert found["most_given"][best] == 1.0  # everyone begins with the same item
    assert found["answers"] == [5.0, 15.0] * 3


def test_policies_meet_the_same_learners(fit):
    labels = fit.item_labels.tolist()
    policies = {
        "by options": {},
        "again": {},
        "by hand": lambda state, given: labels[len(given)] if len(given) < 4 else None,
        "spared": {"exposure": 5},
        "sure": {"stop": 100.0},
    }
    options = {"learners": 30, "after": [6], "times": [10.0, 60.0]}
    found = dy.evaluation.adaptive(fit, policies, **options).to_dict()
    assert found["rmse"][0] == found["rmse"][1]
    assert found["answers"] == [6.0, 6.0, 4.0, 6.0, 0.0]
    assert found["most_given"][3] < 1.0
    again = dy.evaluation.adaptive(fit.scorer(), policies, **options).to_dict()
    assert again["rmse"] == found["rmse"]
    other = dy.evaluation.adaptive(fit, policies, **options, seed=1).to_dict()
    assert other["rmse"] != found["rmse"]


def test_effects_and_each_ones_own_clock():
    table = dy.simulate.responses(people=30, items=10, per_person=15, seed=2).table
    table = {**table, "rater": np.where(np.arange(len(table["id"])) % 3 == 0, "A", "B")}
    options = {"iterations": 60, "standard_errors": False}
    fit = dy.DynAEsti("2PL", effects="rater + practice(item)", clock="person", **options).fit(table)
    found = dy.evaluation.adaptive(fit, learners=20, after=[4], times=[5.0, 9.0], rater="A")
    assert len(found) == 3
    with pytest.raises(dy.InputError, match="'rater'"):
        dy.evaluation.adaptive(fit, learners=20, after=[4])


def test_what_cannot_be_compared_is_refused(fit):
    for policies, words in (
        ({"x": "best"}, "options of next_item"),
        ({"x": {"target": 2}}, "target"),
        ({"x": lambda state, given: "nothing"}, "never seen"),
    ):
        with pytest.raises(dy.InputError, match=words):
            dy.evaluation.adaptive(fit, policies, learners=3, after=[2])
    with pytest.raises(dy.InputError, match="there are 30 items"):
        dy.evaluation.adaptive(fit, after=[31])


def test_answers_are_those_of_the_model(fit):
    """How many are right, against what is predicted of someone of whom nothing is known."""
    policies = {"x": lambda state, given: "i03"}
    found = dy.evaluation.adaptive(fit, policies, learners=2000, after=[1], times=40.0)
    chance = fit.scorer().predict(fit.scorer().start(), ["i03"], 40.0).to_dict()["p1"][0]
    error = np.sqrt(chance * (1 - chance) / 2000)
    assert abs(found.to_dict()["score"][0] - chance) < 4 * error
