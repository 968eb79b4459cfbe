"""Headings: which column plays which role, and which are about something else."""

import pytest

import dynaesti as dy
from dynaesti.data.headings import guess, recognise, resemble_data, sides_of_matches


def test_case_and_what_stands_between_words_do_not_matter():
    for name in ("StudentID", "student id", "Student-Id", "STUDENT_ID"):
        assert recognise([name, "x"], "id") == [name]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Learner code", "id"),
        ("Question No.", "item"),
        ("Score (0/1)", "resp"),
        ("user_answer", "resp"),
        ("Date of test", "time"),
        ("Fecha de la prueba", "time"),
    ],
)
def test_a_noun_tells_the_role(name, role):
    assert guess([name, "colour"], role) == [name]


@pytest.mark.parametrize(
    "name",
    ["Date of birth", "Time taken", "Question text", "Correct answer", "Total score", "User group"],
)
def test_columns_about_something_else_play_no_role(name):
    assert not any(guess([name, "colour"], role) for role in ("id", "item", "resp", "time"))


def test_of_several_that_speak_of_it_none_is_taken():
    assert guess(["Test date", "Exam date"], "time") == []
    assert guess(["Test date", "Exam date", "time"], "time") == ["time"]


def test_sides_of_matches():
    assert sides_of_matches(["Date", "Home Team", "Away Team"]) == ("Home Team", "Away Team")
    assert sides_of_matches(["home", "score"]) is None


def test_first_lines_that_are_data():
    assert resemble_data(["p1", "Q1", "0", "2024-03-01"])
    assert not resemble_data(["Name", "1", "2", "3"])
    assert not resemble_data(["w", "x", "y1"])


def test_made_columns_are_not_named_in_messages():
    wide = {"Name": ["a", "b"], "Q1": [1, 0], "Q2": [0, 1]}
    with pytest.raises(
        dy.errors.MissingColumnError, match="no column for time among Name; name it"
    ):
        dy.Responses.read(wide)


DATES = ["2024-03-01", "2024-03-02"]


def test_the_only_column_of_dates_is_the_time():
    table = {"id": [1, 2], "item": [1, 1], "resp": [0, 1]}
    found = dy.Responses.read({**table, "handed in": DATES})
    assert found.columns["time"] == "handed in"
    assert "columns: time is 'handed in'" in found.notes
    wide = {"Name": ["a", "b"], "Q1": [1, 0], "Q2": [0, 1], "handed in": ["3. Mai 2024"] * 2}
    assert dy.Responses.read(wide).columns["time"] == "handed in"


@pytest.mark.parametrize(
    "beside", [{"handed in": DATES, "marked": DATES}, {"Geburtsdatum": DATES}, {"born": DATES}]
)
def test_of_several_columns_of_dates_and_of_births_none_is_the_time(beside):
    table = {"id": [1, 2], "item": [1, 1], "resp": [0, 1], **beside}
    with pytest.raises(dy.errors.MissingColumnError, match="no column for time"):
        dy.Responses.read(table)
