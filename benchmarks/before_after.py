"""CPU time of this tree against another commit, in interleaved pairs: `python -m benchmarks before_after COMMIT`.

Four tasks: the polling fit, 10,000 short curves, the paper's synthetic study, and a million answers; and the time until the first fit
of a process without any compiled code at hand. Machines are noisy, so each task is run in turn on both sides, in processes of their own,
and the median of the ratios counts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TASK = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
import dynaesti as dy

name, repeats = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)

def polling():
    x = np.linspace(0, 1, 100)
    truth = 0.28 * np.cos(6.2 * x + 1.4) + 0.25 * np.sin(9.7 * x) + 0.45
    votes = dy.Bernoulli((np.random.default_rng(0).random(100) < truth).astype(float))
    return lambda: dy.CurvFiFE().fit(x, votes)

def curves():
    n = 10_000
    t = np.tile(np.linspace(0, 1, 50), n)
    votes = dy.Bernoulli((rng.random(t.size) < 0.5 + 0.3 * np.sin(6 * t)).astype(float))
    return lambda: dy.CurvFiFE(bandwidth=0.3).fit_many(np.repeat(np.arange(n), 50), t, votes, threads=1)

def answers(people, items, each, model, kernel):
    person, item = np.repeat(np.arange(people), each), rng.integers(items, size=people * each)
    time_ = rng.uniform(0, 100, person.size)
    theta = rng.normal(size=people)[person] + 0.7 * np.sin(time_ / 20 + person)
    chance = 1 / (1 + np.exp(-(theta - rng.normal(size=items)[item])))
    table = {"id": person, "item": item, "resp": (rng.random(person.size) < chance) * 1, "date": time_}
    return lambda: dy.DynAEsti(model, kernel=kernel, threads=1).fit(table)

tasks = {
    "polling": polling,
    "10,000 curves": curves,
    "synthetic study": lambda: answers(500, 500, 500, "3PL", "rbf"),
    "a million answers": lambda: answers(20_000, 200, 50, "2PL", None),
    "first fit": polling,
}
work = tasks[name]()
if name != "first fit":
    if name in ("polling", "10,000 curves"):
        work()
begun = time.process_time()
for _ in range(repeats):
    work()
print(json.dumps((time.process_time() - begun) / repeats))
"""
REPEATS = {
    "polling": 40,
    "10,000 curves": 1,
    "synthetic study": 1,
    "a million answers": 1,
    "first fit": 1,
}


def seconds(source: Path, task: str, cache: Path | None) -> float:
    """CPU seconds of a task with the package at `source`; a cache of its own is empty."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    words = [sys.executable, "-c", TASK, task, str(REPEATS[task])]
    done = subprocess.run(
        words, env=environment, check=True, capture_output=True, text=True, cwd="/"
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str] | None = None) -> None:
    """Compare, and print a line a task."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--tasks", nargs="*", default=list(REPEATS), choices=list(REPEATS))
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(
            ["git", "-C", ROOT, "worktree", "add", "--detach", "-f", before, args.commit],
            check=True,
            capture_output=True,
        )
        try:
            for task in args.tasks:
                pairs = []
                for number in range(args.pairs if task != "first fit" else 3):
                    pair = []
                    for side, source in (("old", before / "src"), ("new", ROOT / "src")):
                        cache = Path(folder) / f"{side}{number}" if task == "first fit" else None
                        pair.append(seconds(source, task, cache))
                    pairs.append(pair)
                ratio = statistics.median(new / old for old, new in pairs)
                old, new = (statistics.median(side) for side in zip(*pairs, strict=True))
                print(
                    f"{task:20} {old:8.4f} s before, {new:8.4f} s now, ratio {ratio:.3f}",
                    flush=True,
                )
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", before], check=True)


if __name__ == "__main__":
    main()
