"""Files of every usual kind, messy ones among them, and the read log."""

import gzip
import io
import json
import sys

import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.data.readers.files import read_pieces
from dynaesti.data.readers.read import read_table
from support.oracles import assert_same_responses

read = dy.Responses.read


def test_several_files_patterns_and_standard_input(tmp_path, table, monkeypatch):
    table.iloc[:50].to_csv(tmp_path / "one.csv", index=False)
    table.iloc[50:].to_csv(tmp_path / "two.csv", index=False)
    assert_same_responses(read([tmp_path / "one.csv", tmp_path / "two.csv"]), read(table))
    assert_same_responses(read(str(tmp_path / "*.csv")), read(table))
    monkeypatch.setattr(
        sys,
        "stdin",
        io.TextIOWrapper(io.BytesIO(gzip.compress(table.to_csv(index=False).encode()))),
    )
    assert_same_responses(read("-"), read(table))
    (tmp_path / "three.csv").write_text("a,b\n1,2\n")
    with pytest.raises(dy.ResponseError, match=r"differs from one\.csv in its columns"):
        read(str(tmp_path / "*.csv"))
    with pytest.raises(dy.ResponseError, match="no file matches"):
        read(str(tmp_path / "*.xyz"))
    with pytest.raises(dy.ResponseError, match="a folder, not a file"):
        read(tmp_path)


MESSY = """\ufeffdate;Correct;student_id;problem_id
2024-03-01T10:00:00+01:00;1;ada;p1
2024-03-02T10:00:00+01:00;0;ada;p2
2024-03-02T09:00:00Z;yes;bob;p1
2024-03-03T09:00:00Z;;bob;p2
2024-03-03T09:00:00Z;banana;bob;p2
2024-03-04T09:00:00Z;1;;p2
never;1;cyd;p1
2024-03-05T09:00:00Z;1;cyd
2024-03-05T09:00:00Z;0,0;cyd;p1
2024-03-05T09:00:00Z;0,0;cyd;p1
"""


def test_a_messy_file_is_refused_by_line_or_read_with_every_decision_told(tmp_path):
    path = tmp_path / "messy.csv"
    path.write_text(MESSY)
    with pytest.raises(dy.ResponseError) as caught:
        read(path)
    words = str(caught.value)
    for part in (
        "1 line cannot be read as rows",
        "'banana' in messy.csv, line 6",
        "id (column 'student_id'): 1 of 9 rows have none",
        "'never' in messy.csv, line 8",
        "unreadable='drop'",
    ):
        assert part in words
    found = read(path, unreadable="drop")
    told = " | ".join(found.notes)
    for part in (
        "separated by ';'",
        "resp is 'Correct'",
        "'yes' counts as 1",
        "decimal points",
        "reported in UTC",
        "left out",
    ):
        assert part in told
    assert len(found) == 5
    assert found.dropped == 1
    assert found.axis.zoned
    assert_allclose(sorted(found.offsets), [0, 1, 1, 4, 4])  # zones were taken into account


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"PAR1 and then nothing", "could not be read"),
        ("a.csv", b"", "the file is empty"),
        ("a.csv", b"id,item,resp,date\n", "no rows"),
        ("a.csv", b"id,id,resp,date\n1,2,3,4\n", "several columns are called 'id'"),
        ("a.jsonl", b"[1, 2, 3]", "one JSON object a line"),
        ("a.json", b"[{", "no valid JSON"),
    ],
)
def test_broken_files_are_refused_in_words(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(dy.ResponseError, match=message):
        read(tmp_path / name)


def test_broken_json_lines_are_named(tmp_path):
    row = {"id": "a", "item": 1, "resp": 1, "date": 1.0}
    (tmp_path / "a.jsonl").write_text(
        f"{json.dumps(row)}\nnot json\n{json.dumps(row | {'date': 'x'})}\n{json.dumps(row)}\n"
    )
    with pytest.raises(dy.ResponseError, match=r"a\.jsonl, line 2"):
        read(tmp_path / "a.jsonl")
    assert len(read(tmp_path / "a.jsonl", unreadable="drop")) == 2


def test_latin_text_is_read_and_told(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,item,resp,date\nZoë,1,1,1\nJosé,2,0,2\n".encode("cp1252"))
    found = read(tmp_path / "a.csv")
    assert found.people.tolist() == ["José", "Zoë"]
    assert any("Windows-1252" in note for note in found.notes)


def test_latin_headings_are_read(tmp_path):
    text = "Schüler;Aufgabe;Antwort;Tag\nZoë;1;1;1\nJosé;2;0;2\n"
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
    columns = {"id": "Schüler", "item": "Aufgabe", "resp": "Antwort", "time": "Tag"}
    assert read(tmp_path / "a.csv", **columns).people.tolist() == ["José", "Zoë"]


def test_quoted_fields_may_hold_anything(tmp_path):
    names = ['a "quoted", name', "two\nlines", "plain"]
    frame = pd.DataFrame(
        {"id": names * 3, "item": [1, 2, 3] * 3, "resp": [1, 0, 1] * 3, "date": range(9)}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert read(tmp_path / "a.csv").people.tolist() == sorted(set(frame["id"]))


def test_a_table_can_be_read_once_and_used_again(tmp_path, table):
    table.to_csv(tmp_path / "a.csv", index=False)
    once = read_table(tmp_path / "a.csv")
    assert_same_responses(read(once), read(table))
    assert once.where(3) == "a.csv, line 5"


def test_lines_are_counted_as_an_editor_does(tmp_path):
    """Blank lines, rows over two lines and broken ones in mid-file do not shift the lines that
    messages name.
    """
    (tmp_path / "a.csv").write_text(
        'id,item,resp,date\n\na,"x\ny",1,2\n\n\nb,y,0,3\nc,z\nd,w,oops,9\n'
    )
    with pytest.raises(dy.ResponseError, match=r"a\.csv, line 8 'c,z'.*'oops' in a\.csv, line 9"):
        read(tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "item": 1, "resp": 1, "date": 1}\n\n{"id": 1, "item": 2, "resp": "oops", '
        '"date": 2}\n'
    )
    with pytest.raises(dy.ResponseError, match=r"'oops' in a\.jsonl, line 3"):
        read(tmp_path / "a.jsonl")


def test_files_in_pieces_are_the_files(tmp_path, table):
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        whole = read_table(tmp_path / name)
        pieces = list(read_pieces([str(tmp_path / name)], 1 if name == "a.csv" else 50))
        assert sum(len(piece.frame) for piece in pieces) == len(whole.frame)
        assert [v for piece in pieces for v in piece.frame["item"].to_list()] == whole.frame[
            "item"
        ].to_list()
        last = pieces[-1]
        assert last.where(len(last.frame) - 1) == whole.where(len(whole.frame) - 1)


def test_odd_corners_of_text_files(tmp_path):
    (tmp_path / "top.csv").write_text("\n\nid,item,resp,date\na,1,1,1\na,2,x,2\n")
    with pytest.raises(dy.ResponseError, match=r"top\.csv, line 5"):
        read(tmp_path / "top.csv")
    late = "id,item,resp,date\n" + "ada,1,1,1\n" * 120_000
    (tmp_path / "late.csv").write_bytes(late.encode() + "José,2,0,2\n".encode("cp1252"))
    assert "José" in read(tmp_path / "late.csv").people.tolist()
    (tmp_path / "mixed.jsonl").write_text(
        '{"id":1,"item":"a","resp":1,"date":1}\n{"id":"x","item":"a","resp":"0","date":2}\n'
    )
    assert read(tmp_path / "mixed.jsonl").people.tolist() == ["1", "x"]
    (tmp_path / "long.csv").write_text(f"id,item,resp,date\n{'a' * 200_000},1,1,1\nb,2,0,2\n")
    assert len(read(tmp_path / "long.csv")) == 2
    (tmp_path / "mixdate.csv").write_text(
        "id,item,resp,date\n"
        + "".join(
            f"a,{k},1,{d}\n"
            for k, d in enumerate(["13.01.2024", "14.01.2024", "01/15/2024", "01/16/2024"])
        )
    )
    found = read(tmp_path / "mixdate.csv")
    assert found.offsets.tolist() == [0, 1, 2, 3]
    assert any("2 ways: %d.%m.%Y (2 rows), %m/%d/%Y (2 rows)" in note for note in found.notes)


def test_files_whose_columns_are_numbers_here_and_text_there_are_read_together(tmp_path):
    """One file writes its responses as 1.0, the other as 1."""
    for name, one, more in (("a", "1.0", "p1"), ("b", "1", "p2")):
        rows = "".join(f"{more},{item},{one},{day}\n" for day, item in enumerate("xyz"))
        (tmp_path / f"{name}.csv").write_text(f"id,item,resp,date\n{rows}")
    read = dy.Responses.read([str(tmp_path / "a.csv"), str(tmp_path / "b.csv")])
    assert (len(read), read.people.tolist(), set(read.resp.tolist())) == (6, ["p1", "p2"], {1.0})
