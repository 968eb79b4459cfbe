"""Tables as files: every value comes back, nothing is a formula, both CSV writers agree."""

from datetime import datetime

import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynaesti as dy
from dynaesti.tables.csv_writer import _lines, _lines_by_arrow, csv_text
from dynaesti.tables.digits import decimals

TRICKY = [0.0, -0.0, 1.0, 1e-5, 1e-4, 123456789.123, 1e9, 999999999.0, 1e16, 1e22, 5e-324, -7.25]


@pytest.mark.parametrize("lines", [_lines, _lines_by_arrow])
def test_cells_are_written_so_that_they_come_back(lines):
    frame = dy.Frame(
        {
            "id": ["a,b", 'q"u', "l\nm", "c\rd", "=1+1", "-5", "é", "", None, 1, 1.0, True],
            "x": [*TRICKY[:9], float("nan"), float("inf"), float("-inf")],
            "n": range(12),
            "time": np.array(["2024-01-01T10", "2024-01-01T10:00:00.25", "NaT"] * 4, "M8[ns]"),
        }
    )
    rows = lines(frame).decode()
    assert rows.splitlines(keepends=True)[0] == '"a,b",0.0,0,2024-01-01T10:00:00\n'
    assert "'=1+1,0.0001,4,2024-01-01T10:00:00.250000\n" in rows
    assert ",nan," not in rows
    assert "\n1,,9," in rows
    assert "\n1.0,inf,10," in rows
    assert "\nTrue,-inf,11,\n" in rows


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats() | st.sampled_from(TRICKY),
            st.text(st.characters(exclude_categories=["Cs"])) | st.none() | st.integers(),
            st.datetimes() | st.none(),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_arrow_writes_the_same_text(rows):
    x, labels, times = zip(*rows, strict=True)
    moments = np.array([np.datetime64("NaT") if t is None else np.datetime64(t) for t in times])
    frame = dy.Frame({"x": x, "id": labels, "time": moments.astype("M8[us]")})
    assert _lines_by_arrow(frame) == _lines(frame)


def test_floats_come_back_to_the_same_bits(tmp_path):
    x = np.random.default_rng(1).normal(size=500) * 10.0 ** np.arange(-250, 250)
    path = dy.write_frame(dy.Frame({"x": x}), tmp_path / "t.csv")
    np.testing.assert_array_equal(np.loadtxt(path, skiprows=1), x)


def test_the_csv_of_an_empty_table_is_its_heading():
    assert csv_text(dy.Frame({"a": [], "=b": []})) == "a,'=b\n"


def test_excel_holds_numbers_dates_and_text(tmp_path):
    frame = dy.Frame(
        {
            "id": ["=cmd()", "q2", "http://a.b"],
            "n": [1, 2, 10**17],
            "x": [0.123456789, float("inf"), float("nan")],
            "time": np.array(["2024-05-01T10", "1850-01-01", "NaT"], "M8[s]"),
        }
    )
    path = dy.write_frame(frame, tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(path)
    (sheet,) = book.worksheets
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert rows[0] == ["id", "n", "x", "time"]
    assert rows[1] == ["=cmd()", 1, 0.123456789, datetime(2024, 5, 1, 10)]
    assert sheet["A2"].data_type == "s"  # a text, not a formula
    assert rows[2] == ["q2", 2, "inf", "1850-01-01T00:00:00"]
    assert rows[3] == ["http://a.b", str(10**17), None, None]
    assert sheet.freeze_panes == "A2"


def test_excel_refuses_what_a_sheet_cannot_hold(tmp_path):
    with pytest.raises(dy.InputError, match="an Excel sheet holds 1,048,575"):
        dy.write_frame(dy.Frame({"n": np.zeros(2**20)}), tmp_path / "t.xlsx")
    with pytest.raises(dy.InputError, match="cells hold 32,767"):
        dy.write_frame(dy.Frame({"id": ["x" * 40_000]}), tmp_path / "t.xlsx")
    assert not list(tmp_path.iterdir())


def test_latex_is_rounded_and_escaped(tmp_path):
    frame = dy.Frame(
        {"item_id": ["50%_a&b", "q2"], "b": [-1.23456, 0.0], "n": [10, 2], "se": [np.inf, np.nan]}
    )
    assert dy.write_frame(frame, tmp_path / "t.tex").read_text().splitlines() == [
        r"% \usepackage{booktabs}",
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r"item\_id & b & n & se \\",
        r"\midrule",
        r"50\%\_a\&b & $-1.23$ & 10 & $\infty$ \\",
        r"q2 & 0.00 & 2 &  \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_decimals_follow_the_size_of_values():
    assert decimals(np.array([0.001, 0.0123, 0.5])) == 4
    assert decimals(np.array([0.3, 0.5])) == 3
    assert decimals(np.array([1.25, 3.5])) == 2
    assert decimals(np.array([1234.5, 2000.25])) == 1
    assert decimals(np.array([5.0, 2.0])) == 0
    assert decimals(np.array([1, 2])) == 0


def test_frames_of_other_libraries_are_written_too(tmp_path):
    table = pd.DataFrame({"id": ["a", 7], "x": [1.5, None]})
    for name in ("t.csv", "t.parquet", "t.xlsx", "t.tex"):
        dy.write_frame(table, tmp_path / name)
    assert (tmp_path / "t.csv").read_text() == "id,x\na,1.5\n7,\n"
    assert pq.read_table(tmp_path / "t.parquet")["id"].to_pylist() == ["a", "7"]
    with pytest.raises(dy.InputError, match=r"ends in none of \.csv"):
        dy.write_frame(table, tmp_path / "t.doc")
