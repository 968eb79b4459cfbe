"""Text files of many rows or columns."""

import pytest

import dynaesti as dy


def test_a_stray_quote_far_down_costs_no_other_row_either(tmp_path):
    """Beyond the part of the file by which its dialect is judged; read at once and in pieces."""
    rows = [f"p{k % 9},i{k % 4},{k % 2},{k}" for k in range(150_000)]
    for strays in ([120_000], [120_000, 120_010]):
        broken = ['"' + row if k in strays else row for k, row in enumerate(rows)]
        (tmp_path / "q.csv").write_text("id,item,resp,date\n" + "\n".join(broken) + "\n")
        with pytest.raises(dy.ResponseError, match=f"line {strays[0] + 2}"):
            dy.Responses.read(tmp_path / "q.csv")
        assert len(dy.Responses.read(tmp_path / "q.csv", unreadable="drop")) == 150_000 - len(
            strays
        )
        try:
            found = dy.prepare(
                tmp_path / "q.csv", tmp_path / "s", unreadable="drop", force=True
            ).rows
        except dy.ResponseError:
            continue  # in pieces it may be too late to read the quote otherwise: then in words
        assert found == 150_000 - len(strays)


def test_a_hundred_thousand_columns_make_a_short_message(tmp_path):
    (tmp_path / "a.csv").write_text(
        ",".join(f"c{k}\x1b[31m" for k in range(100_000)) + "\n" + ",".join("1" * 100_000) + "\n"
    )
    with pytest.raises(dy.ResponseError) as error:
        dy.Responses.read(tmp_path / "a.csv")
    assert len(str(error.value)) < 2000
    assert "\x1b" not in str(error.value)
