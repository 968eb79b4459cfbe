"""Benchmarks can be started: their names are those of the package."""

import json
import re
import subprocess
import sys
from pathlib import Path

from dynaesti.sharded.simulate import simulate_shards

ROOT = Path(__file__).parents[2]
MODULES = ("accuracy", "recovery", "logs", "sharded", "tables", "gold", "live.run", "peers.run")
LIVE = ("load", "page", "scoring", "service")
PEERS = ("contenders", "growth", "missing", "page", "prediction", "speed", "truth")


def run(*words):
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_every_benchmark_can_be_imported_and_asked_for_help():
    names = [
        f"benchmarks.{name}"
        for name in (
            *MODULES,
            *(f"live.{part}" for part in LIVE),
            *(f"peers.{peer}" for peer in PEERS),
        )
    ]
    run("-c", f"import {', '.join(names)}")
    told = run("-m", "benchmarks", "--help")
    for name in MODULES:
        assert name.split(".")[0] in told


def test_the_parts_of_a_sharded_fit_are_timed(tmp_path):
    simulate_shards(tmp_path / "shards", 20, 10, (5, 20), shards=2, truth=False, seed=1)
    options = ("--child", "--plain", "--shards", tmp_path / "shards", "--run", tmp_path / "run")
    told = json.loads(run("-m", "benchmarks", "sharded", *options).splitlines()[-1])
    for name in ("passes", "look_seconds", "m_step_seconds", "site_sweeps"):
        assert told[name] > 0, name


def test_a_million_answers_are_read_and_their_tables_written_within_the_bars():
    told = run("-m", "benchmarks", "tables")
    found = re.findall(r"([\d.]+) CPU s   ≤ ([\d.]+)", told)
    assert len(found) == 6, told
    assert all(float(seconds) <= float(bar) for seconds, bar in found), told
