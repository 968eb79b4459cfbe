"""Updates are in once: killed, repeated, at the same time or on a full disk."""

import threading
from collections import Counter

import pandas as pd
import pytest

import dynaesti as dy
from support.saying import spoken, told


def test_an_update_knows_its_own_data_again(small, tmp_path, capsys):
    small.to_csv(tmp_path / "a.csv", index=False)
    more = small.head(40).assign(date=lambda t: t["date"] + 200)
    more.sample(frac=1, random_state=1).to_csv(tmp_path / "b.csv", index=False)
    more.to_parquet(tmp_path / "b.parquet")  # the same answers in another order and kind of file
    spoken(
        capsys,
        "fit",
        tmp_path / "a.csv",
        "--out",
        tmp_path / "run",
        "--quiet",
        "--no-report",
        "--no-static",
    )
    assert spoken(capsys, "update", tmp_path / "run", tmp_path / "b.csv")[0] == 0
    code, out, err = spoken(capsys, "update", tmp_path / "run", tmp_path / "b.parquet")
    assert code == 0
    assert "Added 0 answers" in out
    assert "were added by an earlier update" in err
    assert len(dy.load(tmp_path / "run").responses) == 340
    assert spoken(capsys, "update", tmp_path / "run", tmp_path / "b.csv", "--again")[0] == 0
    assert len(dy.load(tmp_path / "run").responses) == 380
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    once = fit.update(more)
    words, twice = told(lambda: once.update(more.iloc[::-1]))
    assert "earlier update" in words
    assert twice is once
    assert len(once.update(more, again=True).responses) == 380


def test_answers_that_are_in_already_are_told(small):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    words, same = told(lambda: fit.update(small))
    assert "300 of 300 answers are in the fit already" in words
    assert len(same.responses) == 300


def test_an_export_of_all_answers_so_far_adds_the_new_ones(small):
    """Each answer of the data is left out as often as the fit has it; by counting one by one."""
    table = pd.concat([small, small.head(2)])  # two answers are there twice
    fit = dy.DynAEsti(standard_errors=False).fit(table)
    later = small.head(30).assign(date=lambda t: t["date"] + 200)
    export = pd.concat([small.head(1), table, later, later.head(1)])  # one more of some
    left = Counter(export.itertuples(index=False, name=None))
    left.subtract(Counter(table.itertuples(index=False, name=None)))
    new = sum(count for count in left.values() if count > 0)
    words, grown = told(lambda: fit.update(export.sample(frac=1, random_state=2)))
    assert f"{len(export) - new} of {len(export)} answers are in the fit already" in words
    assert len(grown.responses) == len(table) + new


def test_wrong_responses_are_counted_among_the_new_ones(small):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    with pytest.raises(dy.InputError, match="1 of 1 answers are outside"):
        fit.update(small.head(1).assign(resp=7))


def test_a_link_stays_a_link(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(small)
    (tmp_path / "link.dyn").symlink_to(fit.save(tmp_path / "real.dyn"))
    fit.update(small.head(3).assign(date=500.0)).save(tmp_path / "link.dyn")
    assert (tmp_path / "link.dyn").is_symlink()
    assert len(dy.load(tmp_path / "real.dyn").responses) == len(small) + 3


def test_shards_know_their_updates_again(small, tmp_path):
    fit = dy.DynAEsti(standard_errors=False).fit(
        dy.prepare(small, tmp_path / "shards", shards=3), out=tmp_path / "run"
    )
    more = small.head(40).assign(date=lambda t: t["date"] + 200)
    once = fit.update(more)
    assert once.shards.rows == 340
    assert told(lambda: once.update(more))[1].shards.rows == 340
    assert once.stale
    assert not dy.refit_items(once).stale
    again = dy.load(tmp_path / "run")
    assert not told(lambda: again.update(more.head(5)))[1].stale  # nothing was added
    assert dy.load(tmp_path / "run").update(more, again=True).shards.rows == 380
    with pytest.raises(dy.StorageError, match="changed since"):
        once.update(more.assign(date=lambda t: t["date"] + 1))


def test_a_folder_belongs_to_one_command(small, tmp_path, capsys):
    from dynaesti.core.locks import exclusive_lock

    small.to_csv(tmp_path / "a.csv", index=False)
    entered, leave = threading.Event(), threading.Event()

    def holder():
        with (
            exclusive_lock(tmp_path / "run" / ".lock", "run"),
            exclusive_lock(tmp_path / ".shards.lock", "shards"),
        ):
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=holder)
    thread.start()
    entered.wait(60)
    try:
        code, _, err = spoken(capsys, "fit", tmp_path / "a.csv", "--out", tmp_path / "run")
        assert code == 4
        assert "another command is at work" in err
        with pytest.raises(dy.StorageError, match="another command"):
            dy.prepare(small, tmp_path / "shards")
    finally:
        leave.set()
        thread.join()
    assert (
        spoken(
            capsys,
            "fit",
            tmp_path / "a.csv",
            "--out",
            tmp_path / "run",
            "--quiet",
            "--no-report",
            "--no-static",
        )[0]
        == 0
    )


def test_what_killed_writers_left_behind_goes(small, tmp_path, capsys):
    small.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".fit.dyn.k1ll3d.part").write_bytes(b"half")
    (tmp_path / ".shards.k1ll3d.part").mkdir()
    assert (
        spoken(
            capsys,
            "fit",
            tmp_path / "a.csv",
            "--out",
            tmp_path / "run",
            "--quiet",
            "--no-report",
            "--no-static",
        )[0]
        == 0
    )
    dy.prepare(small, tmp_path / "shards")
    assert not list(tmp_path.rglob("*.part"))
    (tmp_path / ".shards.v2.at0w0rk.part").mkdir()  # of another folder, whose name begins alike
    dy.prepare(small, tmp_path / "shards", force=True)
    assert (tmp_path / ".shards.v2.at0w0rk.part").exists()


def test_a_run_changes_at_once_or_not_at_all(small, tmp_path, capsys, monkeypatch):
    """A disk that is full when the tables are written leaves the fit as it was, too."""
    small.to_csv(tmp_path / "a.csv", index=False)
    small.head(30).assign(date=lambda t: t["date"] + 200).to_csv(tmp_path / "u.csv", index=False)
    spoken(
        capsys,
        "fit",
        tmp_path / "a.csv",
        "--out",
        tmp_path / "run",
        "--quiet",
        "--no-report",
        "--no-static",
    )
    from dynaesti import tables

    real = tables.write_table

    def full(frame, file, ending):
        if "abilities" in file.name:
            raise OSError(28, "No space left on device")
        real(frame, file, ending)

    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with monkeypatch.context() as broken:
        broken.setattr(tables, "write_table", full)
        code, _, err = spoken(capsys, "update", tmp_path / "run", tmp_path / "u.csv")
    assert code == 4
    assert "as it was" in err
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before
    assert spoken(capsys, "update", tmp_path / "run", tmp_path / "u.csv")[0] == 0
    assert len(dy.load(tmp_path / "run").responses) == 330
