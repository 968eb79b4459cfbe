"""Frames of our own: what goes in comes out, in print, by column and by row."""

import pickle
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dynaesti as dy
from dynaesti.tables import as_frame


@pytest.fixture
def frame():
    return dy.Frame(
        {
            "id": ["b", "a", None],
            "n": [3, 1, 2],
            "x": [0.5, float("nan"), -2.0],
            "time": np.array(["2024-01-01", "2024-01-02T10:00:00.5", "NaT"], "M8[ns]"),
            "flag": [True, False, True],
        }
    )


def test_columns_keep_their_types(frame):
    assert frame.columns == ["id", "n", "x", "time", "flag"]
    assert frame.shape == (3, 5)
    assert len(frame) == 3
    assert frame["n"].dtype == np.int64
    assert frame["flag"].dtype == bool
    assert frame["id"].tolist() == ["b", "a", None]
    assert frame["time"].to_list()[:2] == [
        datetime(2024, 1, 1),
        datetime(2024, 1, 2, 10, 0, 0, 500_000),
    ]
    assert type(frame["x"].to_numpy()) is np.ndarray
    assert type(frame.rows()[0]["n"]) is int
    assert dy.Frame({"mixed": [1, "a"]})["mixed"].tolist() == [1, "a"]
    assert dy.Frame({"long": [2**70]})["long"].tolist() == [2**70]
    assert dy.Frame({"none": []}).shape == (0, 1)


def test_rows_and_columns_are_chosen_as_in_other_libraries(frame):
    assert frame[["n", "id"]].columns == ["n", "id"]
    assert frame[frame["n"] > 1]["n"].tolist() == [3, 2]
    assert frame[1:]["n"].tolist() == [1, 2]
    assert frame.head(1)["id"].tolist() == ["b"]
    assert frame.sort("x")["n"].tolist() == [2, 3, 1]
    assert frame.sort("x", descending=True)["n"].tolist() == [3, 2, 1]
    assert frame.sort("id")["n"].tolist() == [1, 3, 2]
    frame["twice"] = frame["n"] * 2
    assert frame["twice"].tolist() == [6, 2, 4]
    with pytest.raises(KeyError, match="there are id, n, x"):
        frame["y"]
    with pytest.raises(dy.InputError, match="expected the name of a column"):
        frame[3]
    with pytest.raises(dy.InputError, match="differ in length: a 1, b 2"):
        dy.Frame({"a": [1], "b": [1, 2]})
    with pytest.raises(dy.InputError, match="2 values for 3 rows"):
        frame["short"] = [1, 2]


def test_a_frame_is_the_callers_own():
    values = np.zeros(3)
    frame = dy.Frame({"x": values})
    frame["x"][0] = 9
    assert values[0] == 0


def test_a_frame_becomes_one_of_any_library_and_back(frame):
    for kind, native in (
        (pd.DataFrame, frame.to_pandas()),
        (pl.DataFrame, frame.to_polars()),
        (pa.Table, frame.to_arrow()),
    ):
        assert isinstance(native, kind)
        back = as_frame(native)
        assert back.columns == frame.columns
        assert back["id"].tolist()[:2] == ["b", "a"]
        assert back["n"].tolist() == [3, 1, 2]
        np.testing.assert_array_equal(back["x"], frame["x"])
        np.testing.assert_array_equal(back["time"].astype("M8[ns]"), frame["time"])
    assert pl.DataFrame(frame).shape == (3, 5)
    assert as_frame(pickle.loads(pickle.dumps(frame))).shape == (3, 5)


def test_a_frame_prints_as_a_table(frame):
    assert repr(frame[["id", "n", "x"]]).splitlines() == [
        "id  n       x",
        "b   3   0.500",
        "a   1",
        "    2  -2.000",
    ]
    long = dy.Frame({"n": np.arange(100), **{f"column{k}": np.zeros(100) for k in range(20)}})
    lines = repr(long).splitlines()
    assert lines[-2] == "… 80 rows more"
    assert lines[-1].startswith("… and columns column12, column13")
    assert max(map(len, lines[:-1])) <= 120


def test_a_frame_is_a_table_in_a_notebook_and_names_are_no_html():
    html = dy.Frame({"<b>": ["<script>alert(1)</script>"]})._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<th>&lt;b&gt;</th>" in html
