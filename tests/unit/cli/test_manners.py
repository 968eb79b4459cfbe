"""Small things that a command line should do without being asked twice."""

import json

import numpy as np
import pandas as pd
import pytest

from dynaesti.cli.dispatch import main
from support.saying import spoken


def test_without_arguments_there_is_help(capsys):
    assert main([]) == 0
    assert "example:\n  dynaesti fit answers.csv" in capsys.readouterr().out


def test_several_ids_follow_one_flag(run, capsys):
    _, out, _ = spoken(capsys, "ability", run, "--id", "p001", "p003", "--id", "p002", "--at", "9")
    assert [line.split(",")[0] for line in out.splitlines()] == ["id", "p001", "p003", "p002"]
    _, out, _ = spoken(capsys, "change", run, "--id", "p001", "p003")
    assert len(out.splitlines()) == 3


def test_levels_in_per_cent_are_understood_and_told(run, capsys):
    words = ("ability", run, "--id", "p001", "--at", "9")
    _, whole, err = spoken(capsys, *words, "--level", "95")
    assert "--level 95 was taken as 0.95" in err
    _, share, err = spoken(capsys, *words, "--level", "0.95")
    assert "taken" not in err
    assert whole == share
    assert spoken(capsys, *words, "--level", "950")[0] == 3
    with pytest.raises(SystemExit):
        main([*map(str, words), "--level", "much"])


def test_now_says_what_it_took(run, answers, tmp_path, capsys):
    last = pd.read_csv(answers)["timestamp"].max()
    _, _, err = spoken(capsys, "ability", run, "--id", "p001", "--now")
    assert f"now is the last one in the data, {last:g}" in err
    table = pd.read_csv(answers)
    days = (table["timestamp"] * 100).round()
    table["timestamp"] = np.datetime64("2019-03-01") + pd.to_timedelta(days, unit="D")
    table.to_csv(tmp_path / "old.csv", index=False)
    options = ("--bandwidth", "inf", "--quiet", "--no-report", "--no-static")
    spoken(capsys, "fit", tmp_path / "old.csv", "--out", tmp_path / "old", *options)
    _, _, err = spoken(capsys, "ability", tmp_path / "old", "--id", "p001", "--now")
    assert "abilities are forecasts; --at 2019-06-" in err


def test_scores_of_known_people_say_that_their_history_does_not_count(run, answers, capsys):
    _, _, err = spoken(capsys, "score", run, answers, "--at", "10")
    assert "30 people are in the fit with earlier answers, which do not count here" in err


def test_a_nightly_update_may_run_twice(run, answers, tmp_path, capsys):
    night = tmp_path / "night"
    table = pd.read_csv(answers).head(20)
    table.assign(timestamp=table["timestamp"] + 50).to_csv(tmp_path / "new.csv", index=False)
    assert spoken(capsys, "update", run, tmp_path / "new.csv", "--out", night)[0] == 0
    code, out, err = spoken(capsys, "update", night, tmp_path / "new.csv", "--json")
    assert (code, json.loads(out)["answers"]) == (0, 0)
    assert "added by an earlier update" in err
    # an export of all answers so far
    later = table.assign(timestamp=table["timestamp"] + 60)
    pd.concat([pd.read_csv(answers), later]).to_csv(tmp_path / "grown.csv", index=False)
    code, out, err = spoken(capsys, "update", night, tmp_path / "grown.csv", "--json")
    assert (code, json.loads(out)["answers"]) == (0, 20)
    assert "750 of 770 answers are in the fit already" in err


def test_tables_for_excel_and_papers(run, tmp_path, capsys):
    for name in ("items.xlsx", "items.tex", "items.parquet", "items.csv"):
        assert spoken(capsys, "items", run, "--out", tmp_path / name)[0] == 0
        assert (tmp_path / name).stat().st_size > 0
