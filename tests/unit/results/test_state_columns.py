"""Columns of states: the same bits as answer by answer, in Polars and DuckDB too."""

import duckdb
import numpy as np
import polars as pl
import pytest

import dynaesti as dy


def drawn(rng, n=40, dates=False):
    """Answers of a few new learners, in the order of their times."""
    time = np.sort(rng.uniform(50.0, 60.0, n))
    if dates:
        time = np.datetime64("2024-03-01", "us") + (time * 86_400_000_000).astype("timedelta64[us]")
    return {
        "id": [f"n{k}" for k in rng.integers(0, 6, n)],
        "time": time,
        "item": [f"i{k}" for k in rng.integers(0, 6, n)],
        "resp": rng.integers(0, 2, n).astype(float),
    }


def by_hand(scorer, rows):
    """State of each learner, answer by answer."""
    out = {}
    for who, *answer in zip(*rows.values(), strict=True):
        out[who] = scorer.add(out.get(who, scorer.start()), *answer)
    return out


@pytest.fixture(scope="module", params=["numbers", "dates"])
def case(request, small):
    table = small.copy()
    if request.param == "dates":
        days = (1e6 * 86_400 * table["date"]).astype("timedelta64[us]")
        table["date"] = np.datetime64("2024-01-01", "us") + days
    fit = dy.DynAEsti("2PL", iterations=5, standard_errors=False)
    with pytest.warns(dy.errors.ConvergenceWarning):
        scorer = fit.fit(table).scorer()
    return scorer, drawn(np.random.default_rng(1), dates=request.param == "dates")


def close(scorer, found, rows):
    """Bytes of each learner against states by hand."""
    truth = by_hand(scorer, rows)
    assert sorted(found) == sorted(truth)
    for who, data in found.items():
        state = scorer.state(data)
        assert state.answers == truth[who].answers
        np.testing.assert_allclose(state.numbers, truth[who].numbers, rtol=1e-9, atol=1e-12)


def test_polars(case):
    scorer, rows = case
    frame = pl.DataFrame(rows)
    # a list of answers a learner, in two nights
    states = pl.DataFrame({"id": [], "state": []}, schema={"id": pl.String, "state": pl.Binary})
    for night in (frame[:25], frame[25:]):
        new = night.group_by("id", maintain_order=True).agg("time", "item", "resp")
        both = new.join(states, on="id", how="full", coalesce=True)
        states = both.select("id", state=scorer.polars.add("state", "time", "item", pl.col("resp")))
    close(scorer, dict(states.rows()), rows)
    told = states.select("id", scorer.polars.ability("state").struct.unnest())
    who, mean, sd, lower, upper = told.rows()[0]
    now = scorer.ability(by_hand(scorer, rows)[who])
    assert (mean, sd, lower, upper) == pytest.approx((now.mean, now.sd, now.lower, now.upper))
    # one answer a row, and a time of one's own
    first = frame.unique("id", keep="first", maintain_order=True)
    later = first.with_columns(pl.lit(rows["time"][-1]).alias("at")).select(
        scorer.polars.ability(scorer.polars.add(None, "time", "item", "resp"), "at")
    )
    state = scorer.add(scorer.start(), *(rows[name][0] for name in ("time", "item", "resp")))
    truth = scorer.ability(state, rows["time"][-1])
    assert later.item(0, 0)["sd"] == pytest.approx(truth.sd)


def test_duckdb(case):
    scorer, rows = case
    new = pl.DataFrame(rows)  # noqa: F841  named in the query
    with duckdb.connect() as connection:
        scorer.register(connection)
        found = connection.sql(
            "SELECT id, dynaesti_follow(NULL, list(time ORDER BY time), list(item ORDER BY time), "
            "list(resp ORDER BY time)) AS state FROM new GROUP BY id"
        )
        close(scorer, dict(found.fetchall()), rows)
        (one,) = connection.sql(
            "SELECT dynaesti_ability(dynaesti_add(NULL, time, item, resp)).mean FROM new "
            "ORDER BY time LIMIT 1"
        ).fetchall()
        with pytest.raises(duckdb.Error, match="state"):
            connection.sql("SELECT dynaesti_ability('nothing'::BLOB)").fetchall()
    state = scorer.add(scorer.start(), *(rows[name][0] for name in ("time", "item", "resp")))
    assert one[0] == pytest.approx(scorer.ability(state).mean)


def test_columns_of_people_and_answers(small):
    number = small["id"].str[1:].astype(int)
    table = small.assign(age=10.0 + number % 5, rater=np.where(np.arange(len(small)) % 2, "A", "B"))
    estimator = dy.DynAEsti("2PL", effects="age + rater", iterations=60, standard_errors=False)
    scorer = estimator.fit(table).scorer()
    (data, other) = scorer.add_column(
        [None, None],
        [[50.0, 51.0], []],
        [["i1", "i2"], []],
        [[1, 0], []],
        [[1.0, 2.0], []],
        age=[12, 11],
        rater=[["A", "B"], []],
    )
    state = scorer.add(scorer.start(age=12), 50.0, "i1", 1, rater="A")
    state = scorer.add(state, 51.0, "i2", 0, 2.0, rater="B")
    assert scorer.state(data).answers == 2
    assert data == state.to_bytes()
    assert scorer.state(other) == scorer.start(age=11)
    found = scorer.ability_column([data, other], 52.0)
    assert found["mean"][0] == pytest.approx(scorer.ability(state, 52.0).mean)


def test_columns_that_do_not_fit_are_refused(case):
    scorer, rows = case
    when = rows["time"][0]
    with pytest.raises(dy.InputError, match="item: 1 values for 2 states"):
        scorer.add_column([None, None], [when, when], ["i1"], [1, 1])
    with pytest.raises(dy.InputError, match="resp: row 0 has 1 values and 2 times"):
        scorer.add_column([None], [[when, when]], [["i1", "i2"]], [[1]])
    with pytest.raises(dy.LateAnswer):
        scorer.add_column([None], [[rows["time"][5], when]], [["i1", "i2"]], [[1, 0]])
