"""CPU time of reading 1,000,000 answers from CSV, and of writing the tables of their fit.

Prints one line a measurement, with the bar it is held to: the best of three runs in one process.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dynaesti as dy

N_ANSWERS = 1_000_000
READ_BAR = 3.0  # CPU seconds
WRITE_BAR = 2.0
RUNS = 3


def answers(n: int) -> dict[str, Any]:
    """Columns of answers of n / 20 people to 1,000 items, to the second over a year."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(0, 31_536_000, n)
    return {
        "id": np.char.add("s", rng.integers(0, n // 20, n).astype(str)),
        "item": np.char.add("item", rng.integers(0, 1000, n).astype(str)),
        "resp": rng.integers(0, 2, n),
        "date": np.datetime64("2023-01-01T00:00:00") + seconds.astype("timedelta64[s]"),
    }


def german(stamps: np.ndarray) -> np.ndarray:
    return np.array([stamp.strftime("%d.%m.%Y %H:%M") for stamp in stamps.tolist()])


FILES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "ISO dates": lambda table: table,
    "ISO dates with a zone": lambda t: {**t, "date": np.char.add(t["date"].astype(str), "Z")},
    "dates such as 31.12.2023 10:05": lambda t: {**t, "date": german(t["date"])},
    "Unix seconds": lambda t: {**t, "date": t["date"].astype(np.int64)},
    "yes and no": lambda t: {**t, "resp": np.where(t["resp"] == 1, "yes", "no")},
}


def ability_table(n: int) -> dy.Frame:
    """A table as a fit of n answers at as many times has it."""
    rng = np.random.default_rng(1)
    table = answers(n)
    values = {name: rng.normal(size=n) for name in ("mean", "sd", "lower", "upper")}
    return dy.Frame({"id": table["id"], "time": table["date"], **values})


def item_table(n: int) -> dy.Frame:
    """A table of n items."""
    rng = np.random.default_rng(2)
    names = ("a", "b", "intercept", "se_a", "se_b", "se_intercept", "share", "item_rest")
    numbers = {name: rng.normal(size=n) for name in names}
    return dy.Frame({"item": [f"item{k}" for k in range(n)], "model": ["2PL"] * n, **numbers})


def cpu(task: Callable[[], object]) -> float:
    """The best CPU seconds of a few runs, all threads together."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return min(times)


def read_seconds(folder: Path, n: int = N_ANSWERS) -> dict[str, float]:
    """CPU seconds of reading n rows of CSV, by how they are written."""
    table = answers(n)
    found = {}
    for name, written in FILES.items():
        dy.write_frame(dy.Frame(written(table)), folder / "answers.csv")
        found[name] = cpu(lambda: dy.Responses.read(folder / "answers.csv"))
    return found


def write_seconds(folder: Path, n: int = N_ANSWERS) -> float:
    """CPU seconds of writing the tables of abilities and items as CSV and as Parquet."""
    tables = {"abilities": ability_table(n), "items": item_table(1000)}

    def write() -> None:
        for name, frame in tables.items():
            dy.write_frame(frame, folder / f"{name}.csv")
            dy.write_frame(frame, folder / f"{name}.parquet")

    return cpu(write)


def main(arguments: list[str]) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=N_ANSWERS, help="answers (default: a million)")
    n = parser.parse_args(arguments).rows
    with tempfile.TemporaryDirectory() as folder:
        for name, seconds in read_seconds(Path(folder), n).items():
            print(f"read {n:,} rows, {name:<40} {seconds:6.2f} CPU s   ≤ {READ_BAR:g}")
        seconds = write_seconds(Path(folder), n)
        print(
            f"write abilities ({n:,} rows) and items {'':<19} {seconds:6.2f} CPU s   ≤ {WRITE_BAR:g}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
