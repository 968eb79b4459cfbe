"""Shards on the command line."""

import json

from dynaesti.cli.dispatch import main
from support.simulated import shuffled_classroom


def test_shards_on_the_command_line(tmp_path, capsys):
    table = shuffled_classroom(80).sort_values("date")
    table.iloc[:-50].to_csv(tmp_path / "a.csv", index=False)
    table.iloc[-50:].to_csv(tmp_path / "b.csv", index=False)
    run, shards = str(tmp_path / "run"), str(tmp_path / "shards")
    assert (
        main(["prepare", str(tmp_path / "a.csv"), "--out", shards, "--shards", "3", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["answers"] == len(table) - 50
    assert main(["fit", shards, "--out", run, "--quiet", "--json", "--iterations", "30"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["people"] == 80
    for command in (
        ["items", run],
        ["ability", run, "--id", "p003", "--grid", "3"],
        ["predict", run, str(tmp_path / "b.csv")],
        ["score", run, str(tmp_path / "b.csv")],
        ["ability", run, "--now"],
    ):
        assert main([*command, "--json"]) == 0, command
    assert main(["evaluate", shards, "--json"]) == 0
    assert "shard 1 of 3 stands for all" in capsys.readouterr().err
    assert main(["validate", shards]) in (0, 1)
    assert main(["ability", run, "--id", "nobody"]) == 3
    assert "there are 80 people in 3 shards" in capsys.readouterr().err
    assert main(["items", run, "--fit"]) == 3
    assert "fit of shards" in capsys.readouterr().err
    assert main(["update", run, str(tmp_path / "b.csv"), "--refit-items", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refitted"] is True
    assert main(["report", run]) == 0
    assert "f 3 shards with" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert main(["fit", shards, "--out", run]) == 3
    assert (
        main(
            [
                "simulate",
                "--people",
                "60",
                "--items",
                "10",
                "--answers-per-person",
                "5:30",
                "--shards",
                "2",
                "--out",
                str(tmp_path / "sim"),
                "--json",
            ]
        )
        == 0
    )
    assert (
        main(["fit", str(tmp_path / "a.csv"), "--dask", "local:2", "--out", str(tmp_path / "x")])
        == 3
    )
