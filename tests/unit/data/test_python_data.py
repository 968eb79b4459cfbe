"""What Python holds answers in: open files, records, lists, levels of headings."""

import csv
import io
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import dynaesti as dy

ROWS = [("ada", "q1", 1, 1.0), ("ada", "q2", 0, 2.0), ("ben", "q1", 0, 1.0), ("ben", "q2", 1, 2.0)]
TEXT = "id,item,resp,date\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in ROWS)


@dataclass
class Answer:
    id: str
    item: str
    resp: int
    date: float


FORMS = {
    "text stream": lambda: io.StringIO(TEXT),
    "byte stream": lambda: io.BytesIO(TEXT.encode("utf-16")),
    "rows of csv": lambda: list(csv.reader(io.StringIO(TEXT))),
    "dict reader": lambda: csv.DictReader(io.StringIO(TEXT)),
    "dataclasses": lambda: [Answer(*row) for row in ROWS],
    "lists": lambda: [list(row) for row in ROWS],
    "records": lambda: pd.DataFrame(ROWS, columns=["id", "item", "resp", "date"]).to_records(),
    "levels of headings": lambda: pd.DataFrame(
        ROWS, columns=pd.MultiIndex.from_product([["id", "item", "resp", "date"], [""]])
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_come_to_the_same_answers(form):
    found = dy.Responses.read(FORMS[form]())
    assert found.people.tolist() == ["ada", "ben"]
    assert found.items.tolist() == ["q1", "q2"]
    assert found.resp.tolist() == [1, 0, 0, 1]
    assert (found.offsets + found.axis.origin).tolist() == [1, 2, 1, 2]


def test_an_open_workbook(tmp_path):
    frame = pd.DataFrame({"name": ["ada", "ben"], "Q1": [1, 0], "Q2": [0, 1]})
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    with (tmp_path / "a.xlsx").open("rb") as stream:
        assert len(dy.Responses.read(stream, timeless=True)) == 4


def test_a_mapping_of_people():
    table = {"ada": {"Q1": 1, "Q2": 0}, "ben": {"Q1": 0, "Q2": 1}}
    found = dy.Responses.read(table, timeless=True)
    assert found.people.tolist() == ["ada", "ben"]
    assert found.resp.tolist() == [1, 0, 0, 1]


def test_levels_of_headings_are_one_heading():
    columns = pd.MultiIndex.from_product([["Algebra", "Sets"], ["Q1", "Q2"]])
    frame = pd.DataFrame([[1, 0, 1, 1], [0, 1, 1, 0]], columns=columns)
    found = dy.Responses.read(frame, timeless=True)
    assert found.items.tolist() == ["Algebra Q1", "Algebra Q2", "Sets Q1", "Sets Q2"]


def test_periods_are_their_first_instants():
    frame = pd.DataFrame(ROWS, columns=["id", "item", "resp", "date"])
    frame["date"] = pd.PeriodIndex(["2024-01", "2024-02"] * 2, freq="M")
    assert dy.Responses.read(frame).offsets.tolist() == [0, 31, 0, 31]


def test_a_long_table_called_wide_is_read_as_that():
    frame = pd.DataFrame(ROWS, columns=["id", "item", "resp", "date"])
    found = dy.Responses.read(frame, wide=True)
    assert found.items.tolist() == ["resp"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TEXT, r"hand over io.StringIO\(text\)"),
        (TEXT.encode(), r"hand over io.BytesIO\(text\)"),
        (csr_matrix(np.eye(3)), "sparse matrix, whose empty entries may be zeros or no answers"),
        ([], "it is empty"),
        (io.StringIO(""), "it is empty, or was read to its end before"),
        ("https://example.org/a.csv", "addresses of the web are not fetched"),
        (date(2024, 1, 1), "expected a data frame"),
    ],
)
def test_what_is_nearly_data_is_refused_in_words(data, message):
    with pytest.raises(dy.DynaestiError, match=message):
        dy.Responses.read(data)


def test_codes_for_words_that_nobody_answered_are_told():
    table = {"id": [1, 1], "item": [1, 2], "resp": ["never", "often"]}
    found = dy.Responses.read(table, timeless=True, code={"never": 0, "often": 1, "always": 2})
    assert "code: no response is 'always'" in found.notes


@pytest.mark.parametrize("part", ["values", "array"])
def test_arrays_of_pandas_columns_are_columns(part):
    """`frame["id"].values` of text, of numbers with gaps and of categories are no NumPy arrays."""
    frame = pd.DataFrame(
        {
            "id": ["ada", "ada", "bob", "bob"],
            "item": pd.Categorical(["q", "r", "q", "r"]),
            "resp": pd.array([1, 0, None, 1], dtype="Int64"),
            "date": pd.to_datetime(["2024-01-01", "2024-02-01"] * 2),
        }
    )
    found = dy.Responses.read({name: getattr(frame[name], part) for name in frame})
    whole = dy.Responses.read(frame)
    assert (found.people.tolist(), found.items.tolist()) == (["ada", "bob"], ["q", "r"])
    np.testing.assert_array_equal(found.resp, whole.resp)
    np.testing.assert_array_equal(found.offsets, whole.offsets)
