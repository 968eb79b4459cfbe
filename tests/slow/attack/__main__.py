"""`make attack`: bad input, damaged and crafted files, kills and pairs of commands, drawn by a
seed. Exit 1 where anything is bad.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[2])]

from slow.attack.files import crafted_files, make_things, random_damage
from slow.attack.inputs import base, draw
from slow.attack.judging import HEADING, Tally
from slow.attack.processes import Stage, kills, pairs, run

SIZES = {
    "api": 420,
    "cli": 160,
    "files": 500,
    "crafted": 400,
    "shards": 200,
    "kills": 63,
    "pairs": 42,
}
SINGLE = [("fit.dyn", "fit.dyn"), ("curve.dyn", "curve.dyn")]


def attack(sizes, seed, folder, tell=print):
    """All parts; their tallies."""
    rng = np.random.default_rng(seed)
    began, out = time.monotonic(), []

    def part(name):
        tally = Tally(name)
        out.append(tally)
        return tally

    def said():
        tell(f"{out[-1].row()}   {time.monotonic() - began:5.0f} s")

    tell(HEADING)
    tally = part("Python: bad and odd input")
    for trial in draw(rng, sizes["api"]):
        tally.judge(*trial)
    said()
    (folder / "cli").mkdir()
    base(1, 12, 5, 10).to_csv(folder / "cli" / "a.csv", index=False)
    assert (
        run(
            "fit",
            folder / "cli" / "a.csv",
            "--out",
            folder / "cli" / "run",
            "--quiet",
            "--no-report",
            "--no-static",
        )[0]
        == 0
    )
    tally = part("command line: bad and odd input")
    for trial in draw(rng, sizes["cli"], folder / "cli"):
        tally.judge(*trial)
    said()
    make_things(folder)
    shards = [(f"shards/{path.name}", "run") for path in sorted((folder / "shards").iterdir())] + [
        ("run/fit.dyn", "run")
    ]
    sites = [
        (f"run/sites/{path.name}", "run") for path in sorted((folder / "run" / "sites").iterdir())
    ]
    half = sizes["shards"] // 2
    for name, number, names in (
        ("saved files, damaged", sizes["files"], SINGLE),
        ("shards and runs, damaged", half, shards),
        ("sites, damaged", half, sites),
    ):
        tally = part(name)
        for _ in range(number):
            tally.judge(*random_damage(rng, folder, names))
        said()
    tally = part("saved files, crafted with right checksums")
    crafted_files(rng, folder, sizes["crafted"], tally)
    said()
    if sizes["kills"] or sizes["pairs"]:
        (folder / "stage").mkdir()
        stage = Stage(folder / "stage")
        tally = part("killed, then called again")
        kills(rng, stage, sizes["kills"], tally)
        said()
        tally = part("two commands at once")
        pairs(rng, stage, sizes["pairs"], tally)
        said()
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--part", choices=SIZES, help="only this one")
    parser.add_argument("--times", type=float, default=1.0, help="so many times as many trials")
    args = parser.parse_args()
    sizes = {
        name: int(args.times * size) if args.part in (None, name) else 0
        for name, size in SIZES.items()
    }
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory() as folder:
        tallies = attack(sizes, args.seed, Path(folder))
    for tally in tallies:
        for finding in tally.findings:
            print(f"- {tally.part}: {finding}")
    bad = sum(tally.bad for tally in tallies)
    print(f"{sum(sum(t.counts.values()) for t in tallies)} trials, {bad} bad")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
