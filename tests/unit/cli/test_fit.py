"""`dynaesti fit`: what it writes and says."""

import json

import numpy as np
import pandas as pd
import pytest

from support.saying import spoken
from support.simulated import classroom


def test_fit_writes_everything_and_tells_in_words(run, answers, tmp_path, capsys):
    assert {path.name for path in run.iterdir()} - {".lock"} == {
        "fit.dyn",
        "static.dyn",
        "items.csv",
        "items.parquet",
        "abilities.csv",
        "abilities.parquet",
        "people.csv",
        "report.html",
    }
    people = pd.read_csv(run / "people.csv")
    assert len(people) == 30
    assert np.allclose(people["change"], people["cohort"] + people["own"])
    assert len(pd.read_csv(run / "items.csv")) == 8
    assert set(pd.read_parquet(run / "abilities.parquet")["id"]) == {f"p{k:03d}" for k in range(30)}
    code, out, err = spoken(
        capsys,
        "fit",
        answers,
        "--out",
        tmp_path / "r",
        "--quiet",
        "--no-report",
        "--bandwidth",
        "0.4",
    )
    assert code == 0
    for part in (
        "750 answers of 30 people to 8 items (2PL)",
        "converged after",
        "standard deviations of people about their cohort",
        "time scale",
        "nowing when",
        "Written to",
    ):
        assert part in out
    assert "id is 'student_id'" in err
    assert "the model is 2PL, by the responses" in err


def test_fit_for_machines(answers, tmp_path, capsys):
    code, out, _ = spoken(
        capsys,
        "fit",
        answers,
        "--out",
        tmp_path / "r",
        "--quiet",
        "--no-report",
        "--no-static",
        "--json",
        "--bandwidth",
        "0.4",
    )
    told = json.loads(out)
    assert code == 0
    assert told["answers"] == 750
    assert told["movement"]["bandwidth"] == pytest.approx(0.4)


def test_a_fit_is_not_written_over_unasked(run, answers, capsys):
    code, _, err = spoken(capsys, "fit", answers, "--out", run, "--quiet")
    assert code == 3
    assert "--force" in err


def test_times_are_written_in_full_and_unix_time_is_known_again(tmp_path, capsys):
    table = classroom(12, 5, 20)
    table["date"] = 1.7e9 + 1e6 * table["date"] + 0.125
    table.to_csv(tmp_path / "unix.csv", index=False)
    code, _, err = spoken(
        capsys,
        "fit",
        tmp_path / "unix.csv",
        "--out",
        tmp_path / "r",
        "--quiet",
        "--no-report",
        "--no-static",
        "--bandwidth",
        "5",
    )
    assert code == 0
    assert "Unix time in seconds" in err
    shown = pd.to_datetime(pd.read_csv(tmp_path / "r" / "abilities.csv")["time"], format="ISO8601")
    assert shown.nunique() == table["date"].nunique()
    assert spoken(capsys, "predict", tmp_path / "r", tmp_path / "unix.csv")[0] == 0
    code, out, _ = spoken(
        capsys,
        "ability",
        tmp_path / "r",
        "--id",
        "p001",
        "--at",
        "2030-01-01",
        "2030-01-01T02:00:00+02:00",
    )
    assert [line.split(",")[1] for line in out.splitlines()[1:]] == ["2030-01-01T00:00:00"] * 2
    assert spoken(capsys, "ability", tmp_path / "r", "--at", "1500-01-01")[0] == 3
    assert spoken(capsys, "validate", tmp_path / "unix.csv", "--unit", "unix-ms")[0] == 3
