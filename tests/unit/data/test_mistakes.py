"""Mistakes that people make in tables: each is named, none takes a question or a pupil away."""

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.data.checks import check_responses
from dynaesti.errors import ResponseError


def wide(n=40, **cells):
    """A wide table of three questions, with some cells of its first column as given by row."""
    rng = np.random.default_rng(1)
    table = {
        "Name": [f"pupil {k % 10}" for k in range(n)],
        "Date": [f"2024-02-{k // 10 + 5:02d}" for k in range(n)],
    }
    for item in ("Q1", "Q2", "Q3"):
        table[item] = [str(one) for one in rng.integers(0, 2, n)]
    for row, cell in cells.items():
        table["Q1"][int(row[1:])] = cell
    return table


@pytest.mark.parametrize("cell", ["O", "?", "1*", "half"])
def test_an_odd_cell_is_named_and_its_question_stays(cell):
    with pytest.raises(ResponseError, match=r"1 of 120 rows hold text .*row 7, column 'Q1'"):
        dy.Responses.read(wide(r7=cell))


@pytest.mark.parametrize("cell", ["abs", "krank", "Abwesend"])
def test_absent_pupils_gave_no_answer_and_that_is_told(cell):
    found = dy.Responses.read(wide(r7=cell, r8=cell))
    assert len(found) == 118
    assert any("counted as no answer" in note for note in found.notes)


def choices(**cells):
    rng = np.random.default_rng(2)
    table = {"id": list(range(30)), "date": list(range(30))}
    for item in ("Q1", "Q2", "Q3"):
        table[item] = rng.choice(list("ABCD"), 30).tolist()
    for row, cell in cells.items():
        table["Q2"][int(row[1:])] = cell
    return table


KEY = {"Q1": "A", "Q2": "C", "Q3": "D"}


def test_what_no_one_can_choose_is_not_wrong_but_asked_for():
    with pytest.raises(ResponseError, match=r"'later' \(1 times\).*code=\{'later': nan\}"):
        dy.Responses.read(choices(r3="later"), key=KEY)
    assert len(dy.Responses.read(choices(r3="later"), key=KEY, code={"later": np.nan})) == 89
    assert len(dy.Responses.read(choices(r3="later"), key=KEY, code={"later": 0})) == 90
    assert len(dy.Responses.read(choices(r3="abs"), key=KEY)) == 89
    assert len(dy.Responses.read(choices(r3="AB"), key=KEY)) == 90  # two chosen: wrong


def test_a_key_by_which_nothing_is_right_is_refused():
    with pytest.raises(ResponseError, match="not one of 90 answers is right"):
        dy.Responses.read(choices(), key="XYZ")
    with pytest.raises(ResponseError, match="id of no row"):
        dy.Responses.read(choices(), key="KEY")


def test_letters_without_a_key_ask_for_one():
    with pytest.raises(ResponseError, match="which answers are right"):
        dy.Responses.read(choices())


def cautions(table):
    return [str(one) for one in check_responses(dy.Responses.read(table)).cautions]


def test_a_mistyped_date_is_a_caution():
    table = wide()
    assert not cautions(table)
    table["Date"][11] = "2042-02-06"
    (told,) = cautions(table)
    assert "3 answers lie far in time" in told
    assert "2042-02-06" in told
    table["Date"][11] = "1924-02-06"
    assert "1924-02-06" in cautions(table)[0]


def test_a_mistyped_response_is_a_caution():
    (told,) = cautions(wide(r4="11"))
    assert "1 response of 11 lies far from all others (0 to 1" in told


@pytest.mark.parametrize("other", ["PUPIL 3", "pupil  3"])
def test_names_that_look_alike_are_a_caution(other):
    table = wide()
    table["Name"][33] = other
    (told,) = cautions(table)
    assert "1 name of people is written in several ways" in told


def test_names_of_two_encodings_are_a_caution():
    table = wide()
    table["Name"][3], table["Name"][13] = "Jose\u0301", "Jos\xe9"
    assert "'Jose\\u0301'" in cautions(table)[0]


def workbook(path, names):
    """Ten pupils answer three questions on each sheet."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    rng = np.random.default_rng(3)
    for k, name in enumerate(names):
        sheet = book.active if k == 0 else book.create_sheet()
        sheet.title = name
        sheet.append(["Name", "Q1", "Q2", "Q3"])
        for pupil in range(10):
            sheet.append([f"pupil {pupil}", *rng.integers(0, 2, 3).tolist()])
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("names", "times"),
    [
        (("05.02.2024", "12.02.2024", "19.02.2024"), ["2024-02-05", "2024-02-12", "2024-02-19"]),
        (("T1", "T2", "T3"), ["1.0", "2.0", "3.0"]),
    ],
)
def test_a_sheet_for_each_sitting_is_read_as_sittings(tmp_path, names, times):
    pytest.importorskip("python_calamine")
    file = workbook(tmp_path / "a.xlsx", names)
    with file.open("rb") as stream:
        for data in (file, stream):
            found = dy.Responses.read(data)
            assert len(found) == 90
            shown = np.unique(found.axis.restore(found.offsets)).astype(str).tolist()
            assert [one[: len(times[0])] for one in shown] == times
            assert any("3 sheets were read one after the other" in note for note in found.notes)


def test_other_sheets_are_named_and_read_where_asked_for(tmp_path):
    pytest.importorskip("python_calamine")
    file = workbook(tmp_path / "a.xlsx", ("north", "south", "legend"))
    alone = dy.Responses.read(file, timeless=True)
    assert len(alone) == 30
    assert any("1 of 3 sheets was read" in note for note in alone.notes)
    both = dy.Responses.read(file, sheet="*th", timeless=True)
    assert len(both) == 60
    with pytest.raises(ResponseError, match=r"none called 'x\*'"):
        dy.Responses.read(file, sheet="x*", timeless=True)
