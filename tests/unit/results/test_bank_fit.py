"""Fits of banks: items and population stated, people to come."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm

import dynaesti as dy

BANK = {
    "q1": {"a": 1.0, "b": 0.0},
    "q2": {"a": 1.5, "b": 1.0, "c": 0.2},
    "q3": {"a": 0.8, "b": -1.0},
}
ANSWERS = {
    "id": ["ann", "ann", "ann", "bob"],
    "item": ["q1", "q2", "q3", "q1"],
    "resp": [1, 1, 0, 0],
    "date": [1.0, 2.0, 3.0, 3.0],
}


def exact(answers, mean, sd):
    """Mean and sd of a constant ability given (item, response) pairs, by a sum over a fine grid."""
    z = np.linspace(mean - 9 * sd, mean + 9 * sd, 20_001)
    w = norm.pdf(z, mean, sd)
    for item, resp in answers:
        own = {"c": 0.0, **BANK[item]}
        p = own["c"] + (1 - own["c"]) * expit(own["a"] * (z - own["b"]))
        w = w * (p if resp else 1 - p)
    m = (w * z).sum() / w.sum()
    return m, np.sqrt((w * (z - m) ** 2).sum() / w.sum())


@pytest.mark.parametrize("population", [(0.0, 1.0), (0.7, 1.6)])
def test_scores_equal_sums_over_a_grid(population):
    fit = dy.Fit.from_bank(BANK, population=population)
    found = fit.score(ANSWERS, at=[0.0])
    truth = [exact([("q1", 1), ("q2", 1), ("q3", 0)], *population), exact([("q1", 0)], *population)]
    assert_allclose(np.array([found["mean"], found["sd"]]).T, truth, atol=2e-4)


def test_predictions_of_newcomers_are_averages_over_the_population():
    fit = dy.Fit.from_bank(BANK, population=(0.5, 1.2))
    found = fit.predict({"id": ["new"], "item": ["q2"], "date": [0.0]})
    z = np.linspace(-12, 12, 20_001)
    w = norm.pdf(z, 0.5, 1.2)
    truth = (w * (0.2 + 0.8 * expit(1.5 * (z - 1.0)))).sum() / w.sum()
    assert found["p1"][0] == pytest.approx(truth, abs=1e-4)


def test_a_bank_with_people_is_a_fit_with_everything_held():
    table = dy.simulate.responses(people=20, items=3, per_person=10, seed=3).table
    bank = {f"i{k}": values for k, values in enumerate(BANK.values())}
    kernel = dy.Level(0.6) + dy.Matern32(30.0, 0.8)
    grown = dy.Fit.from_bank(bank, population=(0.2, 1.1), kernel=kernel).update(table)
    models = {"i0": "2PL", "i1": "3PL", "i2": "2PL"}
    held = dy.DynAEsti(models, fixed=bank, population=(0.2, 1.1), kernel=kernel).fit(table)
    assert grown.log_evidence == pytest.approx(held.log_evidence, abs=1e-6)
    at = [10.0, 60.0]
    assert_allclose(grown.ability(at)["mean"], held.ability(at)["mean"], atol=1e-5)
    assert_allclose(grown.ability(at)["sd"], held.ability(at)["sd"], atol=1e-5)
    assert "as stated" in grown.summary()
    assert len(grown.update({**ANSWERS, "item": ["i0", "i1", "i2", "i0"]}).ids) == 22


def test_items_of_a_fit_are_a_bank():
    table = dy.simulate.responses(people=60, items=6, per_person=12, seed=1).table
    fit = dy.DynAEsti("2PL", bandwidth=np.inf).fit(pd.DataFrame(table))
    bank = dy.Fit.from_bank(fit.items)
    assert_allclose(bank.items["b"], fit.items["b"], atol=1e-9)
    new = pd.DataFrame({"id": ["x"] * 6, "item": fit.items["item"], "resp": [1, 1, 1, 0, 0, 0]})
    new["date"] = 0.0
    ours, theirs = bank.score(new, at=[0.0]), fit.score(new, at=[0.0])
    assert isinstance(ours, pd.DataFrame)
    assert ours["mean"][0] == pytest.approx(theirs["mean"][0], abs=1e-6)


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("GRM", {"a": 1.2, "b1": -1.0, "b2": 0.5}),
        ("GPCM", {"a": 1.2, "b1": 0.5, "b2": -0.5}),
        ("PCM", {"b1": -0.3, "b2": 0.8}),
        ("NRM", {"alpha1": 0.5, "alpha2": 1.5, "delta1": 0.1, "delta2": -0.4}),
    ],
)
def test_categories_stand_for_the_responses_that_are_stated(model, parameters):
    other = {name: value + 0.2 for name, value in parameters.items()}
    bank = {"x": parameters, "y": other, "z": {"a": 1.0, "b": 0.0}}
    models = {"x": model, "y": model, "z": "2PL"}
    fit = dy.Fit.from_bank(bank, model=models, categories=[1, 2, 3])
    found = fit.predict({"id": ["new"], "item": ["x"], "date": [0.0]})
    p = np.array([found[f"p{k}"][0] for k in (1, 2, 3)])
    assert p.sum() == pytest.approx(1.0)
    assert found["expected"][0] == pytest.approx(p @ [1, 2, 3])
    for name, value in parameters.items():
        assert fit.items[name][0] == pytest.approx(value)
    with pytest.raises(dy.ResponseError, match="outside"):
        fit.score({"id": ["ann"], "item": ["x"], "resp": [4]})


def test_amounts_are_in_the_unit_of_the_bank():
    bank = {"speed": {"a": 2.0, "b": -1.0, "sigma": 0.5}, "goals": {"a": 0.5, "b": 0.3}}
    fit = dy.Fit.from_bank(bank, model={"speed": "gaussian", "goals": "poisson"})
    found = fit.score({"id": ["ann"], "item": ["speed"], "resp": [4.0]}, at=[0.0])
    precision = 1 + 2.0**2 / 0.5**2
    assert found["mean"][0] == pytest.approx((4.0 - 2.0) * 2.0 / 0.5**2 / precision, abs=1e-3)
    assert found["sd"][0] == pytest.approx(precision**-0.5, rel=1e-3)


def test_dates_are_taken_from_the_first_data_or_counted_from_the_origin():
    moving = dy.Fit.from_bank(BANK, bandwidth=20.0)
    days = pd.to_datetime(["2024-01-01", "2024-01-11", "2024-01-21", "2024-01-21"])
    stamped = pd.DataFrame({**ANSWERS, "date": days})
    counted = {**ANSWERS, "date": [0.0, 10.0, 20.0, 20.0]}
    assert_allclose(moving.score(stamped)["mean"], moving.score(counted)["mean"], atol=1e-8)
    grown = moving.update(stamped)
    assert grown.responses.unit == "days"
    later = {"id": ["ann"], "item": ["q1"], "date": ["2024-02-01"]}
    assert 0 < grown.predict(later)["p1"][0] < 1
    scorer = dy.Fit.from_bank(BANK, kernel=dy.Matern32(20.0), origin="2024-01-01").scorer()
    state = scorer.add(scorer.start(), "2024-01-05", "q1", 1)
    assert scorer.ability(state, "2024-01-05").mean > 0


def test_a_bank_is_saved_and_follows_learners(tmp_path):
    fit = dy.Fit.from_bank(BANK)
    again = dy.load(fit.save(tmp_path / "bank.dyn"))
    assert repr(again) == "<Fit of a bank of 3 items (2PL, 3PL), without people>"
    assert_allclose(again.score(ANSWERS)["mean"], fit.score(ANSWERS)["mean"])
    scorer = again.scorer()
    state = scorer.start()
    for item, resp in [("q1", 1), ("q2", 1), ("q3", 0)]:
        state = scorer.add(state, 1.0, item, resp)
    mean = exact([("q1", 1), ("q2", 1), ("q3", 0)], 0.0, 1.0)[0]
    assert scorer.ability(state).mean == pytest.approx(mean, abs=0.02)
    assert "without people" in fit.summary()


@pytest.mark.parametrize(
    "question",
    [
        lambda fit: fit.ability(),
        lambda fit: fit.curve("ann"),
        lambda fit: fit.change("ann", 0, 1),
        lambda fit: fit.changes(0, 1),
        lambda fit: fit.people(),
        lambda fit: fit.plausible_values([0.0]),
        lambda fit: fit.uncertain("ann", [0.0]),
        lambda fit: fit.reliability(),
        lambda fit: fit.items_alone(),
        lambda fit: fit.health,
        lambda fit: fit.live("ann"),
        lambda fit: fit.state("ann"),
        lambda fit: fit.next_item("ann", 0.0),
        lambda fit: fit.to_datatree(),
        lambda fit: dy.evaluation.item_fit(fit),
        lambda fit: dy.evaluation.drift(fit),
        lambda fit: dy.evaluation.flag_items(fit),
        lambda fit: dy.evaluation.compare(fit, fit),
        lambda fit: dy.evaluation.compare_with_static(dy.DynAEsti(), fit),
        lambda fit: fit.plot.curves_data(["ann"]),
        lambda fit: fit.plot.many_data(),
        lambda fit: fit.plot.information_over_time_data(),
    ],
)
def test_questions_about_people_say_that_there_are_none(question):
    with pytest.raises(dy.InputError, match=r"bank of items without people.*update\(data\)"):
        question(dy.Fit.from_bank(BANK))


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ({}, {}, "empty"),
        ({"q": {"a": 1.0}}, {}, "do not say which model"),
        ({"q": {"a": 1.0, "b1": 0.0, "b2": 1.0}}, {}, "name it"),
        ({"q": {"a": 1.0, "c": 0.1}}, {}, r"lack parameters \(first: 'q'\).* a, b, c"),
        ({"q": {"a": 1.0, "b": 0.0}}, {"model": "GRM"}, "for each step"),
        ({"q": {"a": 1.0, "b": "x"}}, {}, "b of item 'q'"),
        ({"q": {"a": 1.0, "b": 0.0}}, {"kernel": "rbf"}, "no answers from which to learn"),
        ({"q": {"a": 1.0, "b": 0.0}}, {"bandwidth": "learn"}, "no answers from which to learn"),
        ({"q": {"a": 1.0, "b": 0.0}}, {"population": (0, -1)}, "population sd"),
        ({"q": {"a": 1.0, "b": 0.0}}, {"population": 3}, "population"),
        ({"q": {"a": 1.0, "b": 0.0}}, {"clock": "wall"}, "clock"),
        ({"q": {"a": 1.0, "b": 0.0}}, {"origin": 3.0}, "origin: expected a date"),
        ({"q": {"a": 1.0, "b1": 0.0, "b2": 1.0}}, {"model": "GRM", "categories": [1]}, "categor"),
        (3, {}, "items: expected a mapping"),
    ],
)
def test_what_cannot_be_a_bank_is_refused_in_words(given, options, words):
    with pytest.raises(dy.InputError, match=words):
        dy.Fit.from_bank(given, **options)


def test_a_moving_ability_needs_times():
    with pytest.raises(dy.DynaestiError, match="time"):
        dy.Fit.from_bank(BANK, bandwidth=20.0).score({"id": ["a"], "item": ["q1"], "resp": [1]})


@pytest.mark.parametrize("kind", ["columns", "frame", "file"])
def test_tables_of_other_packages_are_banks(tmp_path, kind):
    columns = {"Item": ["x", "y"], "a1": [1.0, -1.2], "d": [0.5, 0.0], "g": [0.0, 0.0]}
    given = columns
    if kind == "frame":
        given = pd.DataFrame(columns)
    if kind == "file":
        given = tmp_path / "bank.csv"
        pd.DataFrame(columns).to_csv(given, index=False)
    fit = dy.Fit.from_bank(
        given,
    )
    assert fit.model_names() == "2PL"
    assert_allclose(fit.items["a"], [1.0, -1.2])
    assert_allclose(fit.items["b"], [-0.5, 0.0], atol=1e-6)


def test_new_items_join_a_bank():
    drawn = dy.simulate.responses(people=80, items=6, per_person=12, seed=5)
    truth = {f"i{k}": {"a": 1.0, "b": (k - 2.5) / 2} for k in range(5)}
    grown = dy.Fit.from_bank(truth).update(drawn.table, new_items=True)
    assert "i5" in list(grown.items["item"])
    assert np.isfinite(np.asarray(grown.items["b"], dtype=float)).all()
