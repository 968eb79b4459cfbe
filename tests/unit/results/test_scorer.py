"""Scorers and learners' states."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import classroom


@pytest.fixture(scope="module")
def table():
    return classroom(40, 8, 40)


@pytest.fixture(scope="module")
def fit(table):
    return dy.DynAEsti("2PL").fit(table)


@pytest.fixture(scope="module")
def scorer(fit):
    return fit.scorer()


def history(rng, n, items=8, start=0.0):
    times = start + np.sort(rng.uniform(0, 1, n)).round(2)
    return [(float(t), f"i{rng.integers(items):02d}", float(rng.integers(2))) for t in times]


def replayed(scorer, answers, state=None):
    state = scorer.start() if state is None else state
    for answer in answers:
        state = scorer.add(state, *answer)
    return state


def test_answers_one_by_one_are_near_to_grafting(fit, scorer, table):
    """The filter is one assumed-density pass: near to all answers grafted together."""
    for person in ("p000", "p007", "p031"):
        own = table[table["id"] == person].sort_values("date", kind="stable")
        state = replayed(scorer, own[["date", "item", "resp"]].itertuples(index=False))
        at = [float(own["date"].max()), 1.3]
        truth = fit.ability(at=at, ids=[person])
        found = scorer.ability(state, at)
        assert_allclose(found.mean, truth["mean"], atol=0.06)
        assert_allclose(found.sd, truth["sd"], rtol=0.08)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_long_slide_is_followed(fit, scorer, seed):
    """By the third cumulant, without which early answers of the slide count for too much."""
    rng = np.random.default_rng(seed)
    calm = [(0.01 * k, f"i{rng.integers(8):02d}", float(rng.integers(2))) for k in range(60)]
    slide = [(0.7 + 0.0005 * k, f"i{rng.integers(8):02d}", 0.0) for k in range(150)]
    whole = pd.DataFrame(calm + slide, columns=["date", "item", "resp"]).assign(id="new")
    now = float(whole["date"].max())
    truth = fit.score(whole, at=[now])
    found = scorer.ability(replayed(scorer, calm + slide), now)
    normal = scorer.start()
    third = 4  # the time, the weight, the site's two, and then the third cumulant
    for answer in calm + slide:
        numbers = np.where(np.arange(normal.numbers.size) == third, 0.0, normal.numbers)
        normal = scorer.add(replace(normal, numbers=numbers), *answer)
    without = scorer.ability(normal, now)
    assert abs(found.mean - truth["mean"].iloc[0]) < 0.6 * abs(without.mean - truth["mean"].iloc[0])
    assert found.sd == pytest.approx(truth["sd"].iloc[0], rel=0.1)
    assert without.sd != pytest.approx(truth["sd"].iloc[0], rel=0.15)


def test_nothing_known_is_the_population(fit, scorer):
    at = [0.2, 0.9, 1.5]
    found = scorer.ability(scorer.start(), at, level=0.9)
    marginals = fit.marginals(np.full(3, -1), fit.to_clock(at))
    assert_allclose(found.mean, (marginals.weights * marginals.means).sum(axis=0), atol=1e-9)
    variance = (marginals.weights * (marginals.sds**2 + marginals.means**2)).sum(axis=0)
    assert_allclose(found.sd, np.sqrt(variance - found.mean**2), rtol=1e-6)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 30), max_size=6))
def test_any_split_into_saved_states_gives_the_same_bits(scorer, seed, cuts):
    answers = history(np.random.default_rng(seed), 30)
    whole = replayed(scorer, answers)
    state = scorer.start()
    ends = sorted({0, *cuts, 30})
    for a, b in pairwise(ends):
        state = scorer.state(replayed(scorer, answers[a:b], state).to_bytes())
    assert state == whole
    assert scorer.ability(state, 2.0) == scorer.ability(whole, 2.0)


def test_many_states_in_one_call_are_the_same(scorer):
    rng = np.random.default_rng(0)
    logs = [history(rng, 6) for _ in range(5)]
    states = [scorer.start() for _ in logs]
    for k in range(6):
        rows = [log[k] for log in logs]
        states = scorer.add_each(states, *zip(*rows, strict=True))
    single = [replayed(scorer, log) for log in logs]
    for one, other in zip(states, single, strict=True):
        assert_allclose(one.numbers, other.numbers, rtol=1e-9, atol=1e-12)
    together = scorer.ability(states, [2.0] * 5)
    alone = [scorer.ability(state, 2.0) for state in single]
    for name in ("mean", "sd", "lower", "upper"):
        assert_allclose(getattr(together, name), [getattr(one, name) for one in alone], rtol=1e-9)
    assert scorer.add_each([], [], [], []) == []


def test_states_do_not_grow(scorer):
    rng = np.random.default_rng(1)
    short = replayed(scorer, history(rng, 10))
    long = replayed(scorer, history(rng, 300))
    assert len(short.to_bytes()) == len(long.to_bytes()) < 1024


def test_four_rbfs_fit_into_a_kilobyte():
    kernels = [0.5 * dy.Level() + 0.5 * dy.RBF(h) for h in (1.0, 2.0, 4.0, 8.0)]
    from dynaesti.inference import markov_form, start_filter
    from dynaesti.results.scoring.state import State

    state = State(start_filter(markov_form(tuple(kernels)), np.full(4, 0.25)), b"\0" * 8)
    assert len(state.to_bytes()) <= 1024


def test_late_answers_and_wrong_ones_are_refused(scorer):
    state = scorer.add(scorer.start(), 0.5, "i01", 1)
    with pytest.raises(dy.LateAnswer, match="before the last answer"):
        scorer.add(state, 0.4, "i01", 1)
    with pytest.raises(dy.InputError, match="never seen"):
        scorer.add(state, 0.6, "i99", 1)
    with pytest.raises(dy.InputError, match="categories"):
        scorer.add(state, 0.6, "i01", 3)
    with pytest.raises(dy.InputError, match="expected a number"):
        scorer.add(state, 0.6, "i01", "yes")
    with pytest.raises(dy.InputError, match="finite"):
        scorer.add(state, float("nan"), "i01", 1)
    with pytest.raises(dy.InputError, match="nothing of the fit needs"):
        scorer.add(state, 0.6, "i01", 1, rater="B")
    with pytest.raises(dy.InputError, match="before the state's last answer"):
        scorer.ability(state, 0.3)
    with pytest.raises(dy.InputError, match="needs 'age'"):
        scorer.start(age=3)


def test_damaged_and_foreign_states_are_refused(scorer, table):
    data = scorer.add(scorer.start(), 0.5, "i01", 1).to_bytes()
    with pytest.raises(dy.StorageError, match="damaged"):
        scorer.state(data[:-1])
    with pytest.raises(dy.StorageError, match="damaged"):
        scorer.state(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    with pytest.raises(dy.StorageError, match="newer"):
        scorer.state(b"dys9" + data[4:])
    with pytest.raises(dy.InputError, match="expected bytes"):
        scorer.state("text")
    other = dy.DynAEsti("1PL", iterations=2, standard_errors=False).fit(table).scorer()
    with pytest.raises(dy.InputError, match="another scorer"):
        other.state(data)


def test_a_saved_scorer_is_the_same(scorer, tmp_path):
    again = dy.load(scorer.save(tmp_path / "run.dynscore"))
    assert again.fingerprint == scorer.fingerprint
    state = replayed(scorer, history(np.random.default_rng(2), 12))
    assert again.state(state.to_bytes()) == state
    one, other = (s.predict(state, ["i00", "i03"], 1.2) for s in (scorer, again))
    assert_allclose(other["p1"], one["p1"], rtol=1e-9)


def test_predictions_are_those_of_grafting(fit, scorer):
    """Of someone new the same; the items' own uncertainty is averaged over in both."""
    truth = fit.predict({"id": ["new"] * 2, "item": ["i00", "i05"], "date": [0.4, 0.4]})
    found = scorer.predict(scorer.start(), ["i00", "i05"], 0.4)
    assert_allclose(found["p1"], truth["p1"], atol=1e-6)


def test_next_items(fit, scorer):
    state = replayed(scorer, history(np.random.default_rng(4), 20))
    ability = scorer.ability(state, 1.1)
    best = scorer.next_item(state, 1.1, count=8)
    # by brute force on a fine grid
    at = np.linspace(ability.mean - 6 * ability.sd, ability.mean + 6 * ability.sd, 400)
    density = scorer.marginals(state, 1.1).density(at)
    truth = fit.information_at(at) @ (density / density.sum())
    assert best["item"].tolist() == [f"i{k:02d}" for k in np.argsort(-truth)]
    assert_allclose(best["information"], np.sort(truth)[::-1], rtol=0.02)
    easy = scorer.next_item(state, 1.1, target=0.8)["expected"].iloc[0]
    assert easy == min(best["expected"], key=lambda p: abs(p - 0.8))
    chances = scorer.predict(state, best["item"].tolist(), 1.1)["p1"]
    assert_allclose(best["expected"], chances, atol=0.02)
    rest = scorer.next_item(state, 1.1, exclude=best["item"].tolist()[:3])
    assert rest["item"].iloc[0] == best["item"].iloc[3]
    assert not len(scorer.next_item(state, 1.1, stop=10 * ability.sd))
    drawn = {
        scorer.next_item(state, 1.1, exposure=3, seed=seed)["item"].iloc[0] for seed in range(20)
    }
    assert drawn == set(best["item"].tolist()[:3])
    never = {best["item"].iloc[0]: 0.0}
    assert scorer.next_item(state, 1.1, exposure=never)["item"].iloc[0] == best["item"].iloc[1]
    with pytest.raises(dy.InputError, match="target"):
        scorer.next_item(state, 1.1, target=1.5)


def test_areas_get_their_shares(scorer):
    areas = {f"i{k:02d}": "a" if k < 4 else "b" for k in range(8)}
    given = []
    for _ in range(8):
        content = dy.Content(areas, {"a": 0.5, "b": 0.5}, given)
        chosen = scorer.next_item(scorer.start(), 0.5, content=content, exclude=given)
        given += chosen["item"].tolist()
    assert sorted(given) == sorted(areas)
    halves = [areas[item] for item in given]
    assert all(halves[k] != halves[k + 1] for k in range(0, 8, 2))


def test_mastery_and_when_to_practise(scorer):
    state = scorer.start()
    for k in range(12):
        state = scorer.add(state, 0.5 + 0.001 * k, f"i{k % 8:02d}", 1)
    sure = scorer.mastery(state, 0.0, 0.6)
    assert 0.9 < sure < 1
    later = scorer.mastery(state, 0.0, [0.6, 3.0])
    assert later[0] == pytest.approx(sure)
    assert later[1] < sure
    when = scorer.practise_by(state, 0.0, 40.0, probability=float(0.5 * (later[1] + sure)))
    assert 0.6 < when < 3.0
    assert scorer.mastery(state, 0.0, when) == pytest.approx(0.5 * (later[1] + sure), abs=1e-3)
    assert scorer.practise_by(state, 0.0, 0.6, probability=0.5) is None
    assert scorer.time_to_mastery(state, 0.0, probability=0.7) == pytest.approx(0.511)
    assert scorer.time_to_mastery(scorer.start(), 9.0) is None
    with pytest.raises(dy.InputError, match="probability"):
        scorer.time_to_mastery(state, 0.0, probability=2)


def with_effects(table):
    number = table["id"].str[1:].astype(int)
    rng = np.random.default_rng(0)
    return table.assign(
        age=10.0 + number % 5,
        treat=np.where(number % 2 == 0, "yes", "no"),
        rater=rng.choice(["A", "B", "C"], len(table)),
    )


@pytest.fixture(scope="module")
def effects_fit(table):
    formula = "age * time + rater + practice(item)"
    estimator = dy.DynAEsti("2PL", effects=formula, groups="treat", iterations=10)
    return estimator.fit(with_effects(table))


def test_effects_and_groups_are_those_of_the_fit(effects_fit, table):
    """Someone new, by grafting and by states: personal columns, those of answers, practice."""
    rows = with_effects(table)
    scorer = effects_fit.scorer()
    own = rows[rows["id"] == "p003"].sort_values("date", kind="stable").iloc[:10]
    own = own.assign(id="new")
    state = scorer.start(age=float(own["age"].iloc[0]), treat=own["treat"].iloc[0])
    for row in own.itertuples():
        state = scorer.add(state, row.date, row.item, row.resp, rater=row.rater)
    state = scorer.state(state.to_bytes())
    at = [float(own["date"].max()), 1.2]
    truth = effects_fit.score(own, at=at)
    found = scorer.ability(state, at)
    assert_allclose(found.mean, truth["mean"], atol=0.06)
    next_row = own.tail(1).assign(date=1.2, rater="B")
    seen = dy.evaluation.next_answers(effects_fit, pd.concat([own, next_row]))
    chance = scorer.predict(state, next_row["item"].iloc[0], 1.2, rater="B")["p1"].iloc[0]
    assert chance == pytest.approx(seen["p1"].iloc[-1], abs=0.015)


def test_columns_that_effects_need_are_asked_for(effects_fit):
    scorer = effects_fit.scorer()
    with pytest.raises(dy.InputError, match="'age'"):
        scorer.start(treat="yes")
    with pytest.raises(dy.InputError, match="is not one of the fit's"):
        scorer.start(age=3, treat="perhaps")
    state = scorer.start(age=12)  # of no known group: the average
    with pytest.raises(dy.InputError, match="'rater' of every answer"):
        scorer.add(state, 0.5, "i01", 1)
    with pytest.raises(dy.InputError, match="has not seen"):
        scorer.add(state, 0.5, "i01", 1, rater="Z")
    with pytest.raises(dy.InputError, match="belongs to start"):
        scorer.add(state, 0.5, "i01", 1, rater="A", age=3)


@pytest.mark.parametrize("model", ["GRM", "gaussian", "poisson"])
def test_other_item_models(model):
    drawn = dy.simulate.responses(people=30, items=5, per_person=20, seed=2)
    table = pd.DataFrame(drawn.table)
    rng = np.random.default_rng(0)
    noise = {"GRM": rng.integers(0, 2, len(table)), "poisson": rng.poisson(1.0, len(table)),
             "gaussian": rng.normal(0, 0.7, len(table))}[model]  # fmt: skip
    table["resp"] = table["resp"] + noise
    fit = dy.DynAEsti(model, iterations=8, standard_errors=False).fit(table)
    own = table[table["id"] == "p03"].sort_values("date", kind="stable")
    scorer = fit.scorer()
    state = replayed(scorer, own[["date", "item", "resp"]].itertuples(index=False))
    at = [float(own["date"].max())]
    truth = fit.ability(at=at, ids=["p03"])
    found = scorer.ability(state, at)
    assert_allclose(found.mean, truth["mean"], atol=1e-4 if model == "gaussian" else 0.06)
    assert len(scorer.next_item(state, at[0], count=3)) == 3


def test_each_ones_own_clock_and_dates(table):
    dated = table.assign(date=pd.Timestamp("2024-01-01") + pd.to_timedelta(table["date"], "D"))
    fit = dy.DynAEsti("2PL", clock="person", iterations=5, standard_errors=False).fit(dated)
    scorer = fit.scorer()
    state = scorer.add(scorer.start(), "2024-03-01", "i01", 1)
    state = scorer.add(state, np.datetime64("2024-03-01T12:00"), "i02", 0)
    assert scorer.ability(state).time == 0.5
    calendar = dy.DynAEsti("2PL", iterations=5, standard_errors=False).fit(dated).scorer()
    state = calendar.add(calendar.start(), "2024-03-01", "i01", 1)
    assert calendar.ability(state, "2024-03-02").time == np.datetime64("2024-03-02")


def test_people_of_a_fit_have_states(fit, effects_fit, table):
    own = table[table["id"] == "p004"].sort_values("date", kind="stable")
    scorer = fit.scorer()
    by_hand = replayed(scorer, own[["date", "item", "resp"]].itertuples(index=False))
    state = fit.state("p004")
    assert state.answers == len(own)
    assert_allclose(scorer.ability(state, 1.2).mean, scorer.ability(by_hand, 1.2).mean, atol=0.01)
    with pytest.raises(dy.InputError, match="never seen"):
        fit.state("nobody")
    truth = effects_fit.ability(at=[1.2], ids=["p005"])
    found = effects_fit.scorer().ability(effects_fit.state("p005"), 1.2)
    assert found.mean == pytest.approx(truth["mean"].iloc[0], abs=0.06)
    assert found.sd == pytest.approx(truth["sd"].iloc[0], rel=0.1)


def test_shards_make_the_same_scorer(fit, scorer, table, tmp_path):
    shards = dy.prepare(table, tmp_path / "shards", shards=3)
    apart = dy.DynAEsti("2PL").fit(shards, out=tmp_path / "run")
    other = apart.scorer()
    states = [one.add(one.start(), 0.2, "i03", 1) for one in (scorer, other)]
    told = [one.ability(state, 0.6) for one, state in zip((scorer, other), states, strict=True)]
    assert told[1].mean == pytest.approx(told[0].mean, abs=1e-4)
    assert type(told[0].time) is float
    known = [one.state(fit.ids[5]) for one in (fit, apart)]
    assert known[0].answers == known[1].answers
