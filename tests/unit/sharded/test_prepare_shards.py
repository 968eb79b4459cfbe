"""Tables into shards."""

import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.sharded.shards import Shards
from support.simulated import shuffled_classroom


def test_pieces_and_memory_do_not_change_the_shards(tmp_path, monkeypatch):
    from dynaesti.sharded import prepare_shards as preparing

    table = shuffled_classroom(40)
    table.to_parquet(tmp_path / "a.parquet")
    once = dy.prepare(tmp_path / "a.parquet", tmp_path / "one", shards=3)
    monkeypatch.setattr(preparing, "PIECE", 64)
    pieces = dy.prepare(tmp_path / "a.parquet", tmp_path / "many", shards=3, memory="100MB")
    for k in range(3):
        a, b = once.responses(k), pieces.responses(k)
        for name in ("person", "item", "resp", "offsets"):
            assert_allclose(getattr(a, name), getattr(b, name))
        assert a.people.tolist() == b.people.tolist()
    double = pd.concat([table, table.head(17)])
    assert dy.prepare(double, tmp_path / "twice", shards=2, distinct=True).rows == len(table)


def test_what_cannot_be_prepared_is_refused_and_leaves_nothing(tmp_path, capsys):
    bad = shuffled_classroom(20).astype({"resp": object})
    bad.iloc[5, bad.columns.get_loc("resp")] = "oops"
    bad.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(dy.ResponseError, match=r"'oops' in bad\.csv, line 7"):
        dy.prepare(tmp_path / "bad.csv", tmp_path / "shards")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]
    made = dy.prepare(tmp_path / "bad.csv", tmp_path / "shards", unreadable="drop", shards=2)
    assert made.rows == len(bad) - 1
    assert any("left out" in note for note in made.notes)
    with pytest.raises(dy.InputError, match="holds shards already"):
        dy.prepare(tmp_path / "bad.csv", tmp_path / "shards", unreadable="drop")
    with pytest.raises(dy.InputError, match="not empty"):  # other people's files are never removed
        dy.prepare(tmp_path / "bad.csv", tmp_path, unreadable="drop", force=True)
    with pytest.raises(dy.StorageError, match=r"shards\.json"):
        Shards.open(str(tmp_path))
    (tmp_path / "shards" / "shards.json").write_text("{}")
    with pytest.raises(dy.StorageError, match="damaged"):
        Shards.open(str(tmp_path / "shards"))
    assert main(["prepare", str(tmp_path / "nothing.csv"), "--out", str(tmp_path / "x")]) == 4
    assert "no such file" in capsys.readouterr().err


def test_empty_files_among_others_are_passed_over(tmp_path):
    table = shuffled_classroom(20)
    for k, part in enumerate((table.iloc[:100], table.iloc[100:])):
        part.to_csv(tmp_path / f"{k}.csv", index=False)
    (tmp_path / "2.csv").touch()
    shards = dy.prepare(str(tmp_path / "*.csv"), tmp_path / "s", shards=2)
    assert shards.rows == len(table)
    assert "1 of 3 files are empty" in " ".join(shards.notes)
    assert "1 of 3 files are empty" in " ".join(dy.Responses.read(str(tmp_path / "*.csv")).notes)
    table.drop(columns="date").assign(extra=1).to_csv(tmp_path / "3.csv", index=False)
    with pytest.raises(dy.ResponseError, match="it lacks date; it has also extra"):
        dy.prepare(str(tmp_path / "*.csv"), tmp_path / "t")
