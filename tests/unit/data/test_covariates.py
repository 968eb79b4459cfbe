"""Columns beside the responses, and practice against counting by hand."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dynaesti as dy
from dynaesti.data import Covariate, practice_counts
from dynaesti.errors import MissingColumnError, ResponseError

TABLE = {
    "id": ["b", "a", "a", "b"],
    "item": [1, 1, 2, 2],
    "resp": [0, 1, 1, 0],
    "date": [1.0, 2.0, 1.0, 3.0],
    "age": ["30", "20", "20", "30"],
    "lang": ["de", None, "fr", "de"],
}


def test_columns_are_numbers_or_categories_in_the_order_of_the_responses():
    r = dy.Responses.read(TABLE, covariates=["age", "lang"])
    assert_array_equal(r.covariates["age"].values, [20, 20, 30, 30])
    lang = r.covariates["lang"]
    assert [lang.levels[int(k)] for k in lang.values] == ["fr", "(none)", "de", "de"]
    as_category = dy.Responses.read(TABLE, covariates={"age": "category"}).covariates["age"]
    assert as_category.levels == ("20", "30")


def test_rows_without_a_number_are_refused_by_name():
    with pytest.raises(ResponseError, match=r"'age'.*1 of 4 rows have no number"):
        dy.Responses.read({**TABLE, "age": [1, None, 2, 3]}, covariates={"age": "number"})
    with pytest.raises(MissingColumnError, match="no column 'agee'"):
        dy.Responses.read(TABLE, covariates=["agee"])


def test_selections_and_unions_carry_them():
    r = dy.Responses.read(TABLE, covariates=["age", "lang"])
    more = dy.Responses.read(
        {**TABLE, "date": [7, 7, 7, 7], "lang": ["it", "de", "de", "it"]},
        covariates=["age", "lang"],
    )
    both = r.append(more)
    lang = both.covariates["lang"]
    names = [lang.levels[int(k)] for k in lang.values]
    assert names == ["fr", "(none)", "de", "de", "de", "de", "it", "it"]
    assert_array_equal(both.select_people(np.array([1])).covariates["age"].values, [30] * 4)
    assert_array_equal(dy.Responses.concatenate([r, more]).covariates["age"].values.size, 8)


def test_levels_among_others():
    column = Covariate(np.array([0.0, 1.0, 2.0, -1.0]), ("x", "y", "z"))
    assert_array_equal(column.among(["z", "x"]).values, [1, -1, 0, -1])


@pytest.mark.parametrize("seed", range(5))
def test_practice_is_what_counting_finds(seed):
    rng = np.random.default_rng(seed)
    n = 300
    person, code = rng.integers(0, 5, n), rng.integers(0, 4, n)
    times = np.round(rng.uniform(0, 10, n))  # many at the same time
    counts = rng.integers(0, 2, n).astype(float)
    found = practice_counts(person, times, code, counts)
    slow = [
        sum(
            counts[j]
            for j in range(n)
            if person[j] == person[i] and code[j] == code[i] and times[j] < times[i]
        )
        for i in range(n)
    ]
    assert_array_equal(found, slow)


def test_columns_of_the_warehouse_are_mentioned_and_not_used():
    table = {**TABLE, "cov_age": [1, 2, 3, 4], "rater": [1, 1, 2, 2], "other": [0, 0, 0, 0]}
    r = dy.Responses.read(table)
    assert any(note.startswith("not used: cov_age, rater (effects can") for note in r.notes)
    assert not r.covariates
    both = dy.Responses.read(table, covariates=["cov_age", "rater"])
    assert not any("not used" in note for note in both.notes)
