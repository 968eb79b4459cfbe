"""Words, marks and points that people write for an answer."""

import numpy as np
import pytest

import dynaesti as dy

PAIRS = [
    ("+", "-"),
    ("✓", "✗"),
    ("r", "f"),
    ("Richtig", "falsch"),
    ("ja", "NEIN"),
    ("oui", "non"),
    ("VRAI", "FAUX"),
    ("WAHR", "FALSCH"),
    ("sí", "no"),
    ("Y", "N"),
    ("T", "F"),
    ("verdadero", "falso"),
    ("C", "I"),
    ("1 pt", "0 pts"),
    ("1.00 / 1", "0.00 / 1"),
    ("1,00 / 1,00", "0,00 / 1,00"),
    ("100%", "0 %"),
    ("1 - agree", "0 - disagree"),
]
TRUTH = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1], [1, 1, 0]])


def long(right, wrong):
    person, item = np.indices(TRUTH.shape)
    return {
        "id": person.ravel(),
        "item": item.ravel(),
        "resp": np.where(TRUTH, right, wrong).ravel().tolist(),
    }


@pytest.mark.parametrize(("right", "wrong"), PAIRS)
def test_words_for_right_and_wrong(right, wrong):
    found = dy.Responses.read(long(right, wrong), timeless=True)
    assert found.resp.tolist() == TRUTH.ravel().tolist()
    assert any(right.lower() in note for note in found.notes)


@pytest.mark.parametrize(("right", "wrong"), PAIRS)
def test_words_in_wide_tables(right, wrong):
    rows = {f"Q{k}": np.where(TRUTH[:, k], right, wrong).tolist() for k in range(3)}
    found = dy.Responses.read({"name": list("abcd"), **rows}, timeless=True)
    assert found.resp.reshape(4, 3).tolist() == TRUTH.tolist()


def test_a_dash_is_no_answer_beside_numbers():
    found = dy.Responses.read({"id": [1, 1, 2], "item": [1, 2, 1], "resp": ["1", "-", "0"]},
                              timeless=True)  # fmt: skip
    assert found.resp.tolist() == [1, 0]


@pytest.mark.parametrize("word", ["#DIV/0!", "k.A.", "Not answered", "absent", "n/a"])
def test_words_for_no_answer(word):
    found = dy.Responses.read({"id": [1, 1, 2], "item": [1, 2, 1], "resp": ["1", word, "0"]},
                              timeless=True)  # fmt: skip
    assert len(found) == 2
    assert found.dropped == 1


def test_crosses_and_blanks_are_asked_about_and_can_be_coded():
    table = long("x", "")
    with pytest.raises(dy.ResponseError, match=r"such as code=\{'': 0, 'x': 1\}"):
        dy.Responses.read(table, timeless=True)
    found = dy.Responses.read(table, timeless=True, code={"": 0, "x": 1})
    assert found.resp.tolist() == TRUTH.ravel().tolist()


def test_words_that_nobody_knows_are_named_in_the_remedy():
    table = {"id": [1, 1, 2], "item": [1, 2, 1], "resp": ["often", "never", "never"]}
    with pytest.raises(dy.ResponseError, match=r"such as code=\{'never': 0, 'often': 1\}"):
        dy.Responses.read(table, timeless=True)


def test_a_half_is_no_point_of_two():
    """1/2 alone may be a half, or one point of two."""
    table = {"id": [1, 1, 2], "item": [1, 2, 1], "resp": ["1/2", "1/2", "1/3"]}
    with pytest.raises(dy.ResponseError, match="hold text"):
        dy.Responses.read(table, timeless=True)
