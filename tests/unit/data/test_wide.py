"""Wide tables, matrices and tuples are the long table; answer keys and choices of items."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dynaesti as dy
from support.oracles import assert_same_responses

read = dy.Responses.read


@pytest.fixture(scope="module")
def long():
    """Answers of 6 people to 4 items at three sittings, some of them missing."""
    rng = np.random.default_rng(0)
    rows = [
        (f"p{k}", f"Q{j}", float(rng.integers(0, 2)), sitting)
        for sitting in (1, 5, 9)
        for k in range(6)
        for j in range(1, 5)
        if rng.random() < 0.9
    ]
    return pd.DataFrame(rows, columns=["id", "item", "resp", "date"])


@pytest.fixture(scope="module")
def wide(long):
    table = long.pivot(index=["id", "date"], columns="item", values="resp").reset_index()
    return table.rename_axis(columns=None).assign(Total=1.0, remark="fine")


@pytest.mark.parametrize(
    "made", [lambda t: t, pl.from_pandas, pa.Table.from_pandas, lambda t: t.to_dict("list")]
)
def test_a_wide_table_is_the_long_one(wide, long, made):
    found = read(made(wide))
    assert_same_responses(found, read(long))
    notes = " | ".join(found.notes)
    assert "4 columns are items (Q1 … Q4)" in notes
    assert "beside the items: Total, remark" in notes


def test_a_wide_file_is_the_long_one(wide, long, tmp_path):
    wide.to_csv(tmp_path / "w.csv", index=False)
    assert_same_responses(read(tmp_path / "w.csv"), read(long))
    shards = dy.prepare(tmp_path / "w.csv", tmp_path / "s", shards=2, only="Q[12]")
    assert shards.rows == long["item"].isin(["Q1", "Q2"]).sum()


def test_layouts_are_overridden(wide, long):
    with pytest.raises(dy.ResponseError, match="no column for item"):
        read(wide, wide=False)
    assert read(wide, items=["Q1", "Q3"]).items.tolist() == ["Q1", "Q3"]
    assert read(wide, wide=True, items="Q*").items.size == 4
    assert_same_responses(read(long, wide=False), read(long))
    with pytest.raises(dy.ResponseError, match="did you mean 'Q1'"):
        read(wide, only=["Q11"])
    with pytest.raises(dy.ResponseError, match="none of the columns holds answers"):
        read({"id": ["a"], "date": [1], "text": ["what was said"]}, wide=True)


def test_cells_are_named_where_they_stand(wide, tmp_path):
    wide.astype(object).assign(Q2="oops").to_csv(tmp_path / "w.csv", index=False)
    with pytest.raises(dy.ResponseError, match=r"'oops' in w\.csv, line 2, column 'Q2'"):
        read(tmp_path / "w.csv", items="Q*")


def test_items_without_numbers_are_found_by_what_they_hold():
    table = pd.DataFrame(
        {"algebra": [1, 0, 1], "sets": [0, None, 1], "logic": [1, 1, 0]},
        index=pd.Index(["a", "b", "c"], name="student"),
    )
    found = read(table, timeless=True)
    assert found.people.tolist() == ["a", "b", "c"]
    assert found.items.tolist() == ["algebra", "logic", "sets"]
    anonymous = read(table.reset_index(drop=True), timeless=True)
    assert any("each row is a person" in note for note in anonymous.notes)


def test_first_and_last_names_are_one_name():
    found = read(
        {"Vorname": ["Ada", "Ben"], "Nachname": ["L", "K"], "f1": [0, 1], "f2": ["-", 1]},
        timeless=True,
    )
    assert found.people.tolist() == ["Ada L", "Ben K"]
    assert found.dropped == 1


def test_a_fit_of_a_wide_table_takes_further_ones(wide):
    fit = dy.DynAEsti("1PL", bandwidth=3.0, standard_errors=False).fit(wide, only=["Q1", "Q2"])
    predicted = fit.predict(wide.assign(date=11.0).drop(columns=["Q3", "Q4"]))
    assert set(predicted["item"]) == {"Q1", "Q2"}


def test_matrices_and_tuples():
    nan = float("nan")
    matrix = np.array([[1, 0, nan], [0, 1, 1]])
    expected = dy.Responses.from_matrices(matrix, np.zeros(3))
    assert_same_responses(read(matrix, timeless=True), expected)
    assert_same_responses(read([[1, 0, None], [0, 1, 1]], timeless=True), expected)
    found = read([("ada", "q", 1, 3.0), ("ben", "q", 0, 5.0)])
    assert found.offsets.tolist() == [0.0, 2.0]
    assert len(read([("ada", "q", 1)], timeless=True)) == 1
    with pytest.raises(dy.ResponseError, match="tuples of 2 members"):
        read([("ada", 1)])
    with pytest.raises(dy.ResponseError, match="differ in length"):
        read([[1, 0], [1]])


CHOICES = {"student": ["KEY", "ada", "ben"], "f1": ["A", "a ", "B"], "f2": ["C", "B", None]}


@pytest.mark.parametrize(
    "key", ["KEY", "A,C", "f1=A,f2=C", {"f1": "A", "f2": "C"}, ["A", "C"], {"f1": "A|D", "f2": "c"}]
)
def test_multiple_choice_is_scored_by_a_key(key):
    table = CHOICES if key == "KEY" else {name: v[1:] for name, v in CHOICES.items()}
    found = read(table, timeless=True, key=key)
    assert dict(zip(found.people[found.person], found.resp, strict=True)) == {"ada": 0, "ben": 0}
    assert found.resp.tolist() == [1.0, 0.0, 0.0]
    assert found.dropped == 1
    assert any("scored by the key of 2 items" in note for note in found.notes)


@pytest.mark.parametrize("text", ["item,key\nf1,A\nf2,C\n", "f1,f2\nA,C\n", "f1,A\nf2,C\nf3,B\n"])
def test_keys_in_files(tmp_path, text):
    (tmp_path / "key.csv").write_text(text)
    table = {name: v[1:] for name, v in CHOICES.items()}
    assert read(table, timeless=True, key=tmp_path / "key.csv").resp.tolist() == [1.0, 0.0, 0.0]


def test_keys_that_do_not_fit_are_refused():
    with pytest.raises(dy.ResponseError, match="1 of 2 items have no right answer"):
        read(CHOICES, timeless=True, key={"f1": "A"})
    with pytest.raises(dy.ResponseError, match="3 answers for 2 items"):
        read(CHOICES, timeless=True, key="A,B,C")
    with pytest.raises(dy.ResponseError, match="no such file"):
        read(CHOICES, timeless=True, key="kee.csv")
    with pytest.raises(dy.ResponseError, match="id of no row"):
        read(CHOICES, timeless=True, key="nobody")
    with pytest.raises(dy.ResponseError, match="are right: key="):
        read(CHOICES, timeless=True)


def test_long_tables_are_scored_and_chosen_from_too(long):
    found = read(long, key={f"Q{k}": 1 for k in range(1, 5)}, only="Q[1-4]")
    assert_same_responses(found, read(long))
