"""A few of the trials that `make attack` makes by the hundred: none may end badly."""

import numpy as np
import pytest

from slow.attack.files import crafted_files, make_things, random_damage
from slow.attack.inputs import base, draw
from slow.attack.judging import Tally
from slow.attack.processes import Stage, kills, pairs, run


def held(tally):
    assert not tally.findings, "\n".join(tally.findings)


@pytest.mark.parametrize("seed", [11, 12])
def test_odd_input_is_right_or_refused_in_words(seed):
    tally = Tally("Python")
    for trial in draw(np.random.default_rng(seed), 32):
        tally.judge(*trial)
    held(tally)


def test_odd_commands_are_right_or_refused_in_words(tmp_path):
    base(1, 12, 5, 10).to_csv(tmp_path / "a.csv", index=False)
    assert (
        run(
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
    tally = Tally("command line")
    for trial in draw(np.random.default_rng(13), 32, tmp_path):
        tally.judge(*trial)
    held(tally)


def test_damaged_and_crafted_files_are_refused(tmp_path):
    make_things(tmp_path)
    rng, tally = np.random.default_rng(14), Tally("files")
    site = next((tmp_path / "run" / "sites").iterdir()).name
    names = [
        ("fit.dyn", "fit.dyn"),
        ("curve.dyn", "curve.dyn"),
        ("shards/shard-00000.parquet", "run"),
        (f"run/sites/{site}", "run"),
    ]
    for _ in range(24):
        tally.judge(*random_damage(rng, tmp_path, names))
    crafted_files(rng, tmp_path, 40, tally)
    held(tally)


def test_killed_and_concurrent_commands_lose_nothing(tmp_path):
    stage, rng, tally = Stage(tmp_path), np.random.default_rng(15), Tally("processes")
    kills(rng, stage, 4, tally)
    pairs(rng, stage, 2, tally)
    held(tally)
