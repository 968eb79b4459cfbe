"""Numbers in text."""

import pytest
from numpy.testing import assert_allclose

import dynaesti as dy

read = dy.Responses.read


def test_commas_and_thousands_are_told_apart(tmp_path):
    (tmp_path / "a.csv").write_text("id;item;resp;date\na;1;1;30,13\na;2;0;31,5\n")
    assert_allclose(read(tmp_path / "a.csv").offsets, [0, 1.37])
    (tmp_path / "b.csv").write_text("id;item;resp;date\na;1;1,000;1\na;2;17;2\n")
    with pytest.raises(dy.ResponseError, match="'1,000'"):
        read(tmp_path / "b.csv")
