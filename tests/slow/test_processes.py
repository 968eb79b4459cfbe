"""Commands as processes: their streams, and two at once."""

import os
import subprocess
import sys

import dynaesti as dy
from support.saying import spoken


def test_streams_may_be_closed_or_poor(small, tmp_path):
    small.assign(id="Zoë →" + small["id"]).to_csv(tmp_path / "a.csv", index=False)
    dy.DynAEsti(standard_errors=False).fit(tmp_path / "a.csv").save(tmp_path / "fit.dyn")
    base = [sys.executable, "-m", "dynaesti"]
    latin = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    poor = subprocess.run(
        [*base, "ability", tmp_path / "fit.dyn", "--at", "5"], capture_output=True, env=latin
    )
    assert poor.returncode == 0
    assert b"\\u2192" in poor.stdout
    for words in (["validate", "-"], ["ability", str(tmp_path / "fit.dyn")]):
        shell = subprocess.run(
            " ".join([*map(str, base), *words]) + " <&- >&-",
            shell=True,
            stderr=subprocess.PIPE,
            timeout=60,
        )
        assert shell.returncode in (0, 1, 2, 3, 4), shell.stderr
        assert b"fault of the program" not in shell.stderr


def test_two_updates_at_once_are_both_in(small, tmp_path, capsys):
    small.to_csv(tmp_path / "a.csv", index=False)
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
    for k in (1, 2):
        small.head(30).assign(date=lambda t, k=k: t["date"] + 200 * k).to_csv(
            tmp_path / f"u{k}.csv", index=False
        )
    names = {1: tmp_path / "run", 2: tmp_path / "run" / "fit.dyn"}  # one run, told in two ways
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "dynaesti", "update", names[k], tmp_path / f"u{k}.csv"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for k in (1, 2)
    ]
    assert [job.wait(120) for job in jobs] == [0, 0]
    assert len(dy.load(tmp_path / "run").responses) == 360
