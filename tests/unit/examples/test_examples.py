"""The tutorials' data: readable, the same every time, and with what the pages say of them."""

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.examples.classroom import SLUMPED

NAMES = dy.examples.__all__


@pytest.mark.parametrize("name", NAMES)
def test_a_data_set_is_the_same_every_time(name):
    draw = getattr(dy.examples, name)
    first, again, other = draw(), draw(), draw(seed=99)
    assert first.to_dict() == again.to_dict()
    assert first.columns == other.columns
    assert first.to_dict() != other.to_dict()


def test_a_frame_of_objects_is_read_as_its_file_is(tmp_path):
    """Dates, numbers and blanks are arrays of objects, on which a frame library crashed."""
    frame = dy.examples.quizzes()
    direct = dy.Responses.read(frame)
    sheet = dy.Responses.read(dy.write_frame(frame, tmp_path / "quizzes.xlsx"))
    assert direct.items.tolist() == sheet.items.tolist()
    np.testing.assert_array_equal(direct.resp, sheet.resp)


def test_the_gradebook_is_read_as_one(tmp_path):
    sheet = dy.write_frame(dy.examples.quizzes(), tmp_path / "quizzes.xlsx")
    found = dy.Responses.read(sheet)
    assert (found.people.size, found.items.size) == (26, 24)
    assert len(found) == 8 * (len(dy.examples.quizzes()) - 1)
    assert any("totals" in note for note in found.notes)
    assert set(SLUMPED) <= set(found.people.tolist())


def test_the_wrong_key_and_those_who_fell_behind_are_found():
    fit = dy.fit(dy.examples.quizzes().to_pandas().replace("", None))
    flags = dict(zip(fit.items["item"], fit.items["flag"], strict=True))
    assert flags["Q17"] == "wrong key?"
    assert [name for name, flag in flags.items() if flag] == ["Q17"]
    changed = fit.changes("2025-03-17", "2025-05-05", sort=True)
    assert set(changed["id"].tolist()[-2:]) == set(SLUMPED)


def test_the_leaked_exercise_is_the_one_that_drifts():
    fit = dy.DynAEsti("2PL").fit(dy.examples.platform())
    found = dy.evaluation.drift(fit)
    assert np.asarray(found["item"])[np.asarray(found["flag"])].tolist() == ["graphs 4"]
