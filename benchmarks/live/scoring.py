"""Scorers and states: sizes, CPU seconds, and how near next answers are to grafting everything."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dynaesti as dy

ITEMS = 10_000
AT = (10, 5000)  # answers of the states that are timed
TURNS, CALLS = 30, 50
OPENING = """
import sys, time, dynaesti as dy
from dynaesti.loading import load
load(sys.argv[2])  # the modules
begun = time.process_time(); scorer = dy.load(sys.argv[1]); opened = time.process_time() - begun
begun = time.process_time()
state = scorer.add(scorer.start(), 50.0, scorer.item_labels[0], 1); scorer.ability(state)
print(opened, time.process_time() - begun)
"""


def sizes() -> dict[str, Any]:
    """The file of a scorer of many items, how long it takes to open, and the first answer."""
    folder = Path(tempfile.mkdtemp())
    table = dy.simulate.responses(people=1500, items=ITEMS, per_person=60, span=100.0, seed=1).table
    estimator = dy.DynAEsti("2PL", iterations=4, standard_errors=False)
    file = estimator.fit(table).scorer().save(folder / "large.dynscore")
    small = _small().save(folder / "small.dynscore")
    told = [_opened(file, small) for _ in range(5)]
    bare = {"NUMBA_CACHE_DIR": str(folder / "cache")}
    return {
        "items": ITEMS,
        "bytes": file.stat().st_size,
        "open_cpu_ms": 1000 * min(one[0] for one in told),
        "first_answer_cpu_ms": 1000 * min(one[1] for one in told),
        "first_answer_that_compiles_cpu_s": _opened(small, small, bare)[1],
    }


def _opened(file: Path, other: Path, env: dict[str, str] | None = None) -> tuple[float, float]:
    """CPU seconds of opening a scorer and of the first answer, in a process of its own."""
    import os

    found = subprocess.run(
        [sys.executable, "-c", OPENING, str(file), str(other)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(env or {})},
    )
    opened, first = map(float, found.stdout.split()[-2:])
    return opened, first


def _small() -> Any:
    table = dy.simulate.responses(people=400, items=300, per_person=60, span=100.0, seed=5).table
    return dy.DynAEsti("2PL").fit(table).scorer()


def seconds() -> dict[str, Any]:
    """CPU of an answer and of an ability, by the length of the history; bytes of the state."""
    scorer = _small()
    rng = np.random.default_rng(0)
    labels = scorer.item_labels.tolist()
    state, done, out = scorer.start(), 0, {"kernels": len(scorer.model.kernels)}
    for wanted in AT:
        for k in range(done, wanted):
            state = scorer.add(state, 50.0 + 0.01 * k, labels[rng.integers(300)], k % 2)
        done = wanted
        now, data = 50.0 + 0.01 * wanted, state.to_bytes()

        def add(state: Any = state, now: float = now) -> None:
            scorer.add(state, now, labels[7], 1)

        def ability(state: Any = state, now: float = now) -> None:
            scorer.ability(state, now)

        def both(data: bytes = data) -> None:
            scorer.state(data).to_bytes()

        out[f"after_{wanted}"] = {
            "bytes": len(data),
            "add_us": _microseconds(add),
            "ability_us": _microseconds(ability),
            "from_and_to_bytes_us": _microseconds(both),
        }
    many = [state] * 1000

    def add_many() -> None:
        scorer.add_each(many, [now] * 1000, [labels[7]] * 1000, [1] * 1000)

    out["add_each_of_1000_us"] = _microseconds(add_many, 5, 1) / 1000
    return out


def _microseconds(job: Callable[[], None], turns: int = TURNS, calls: int = CALLS) -> float:
    """CPU microseconds of a call: the best of several turns."""
    best = np.inf
    for _ in range(turns):
        begun = time.process_time()
        for _ in range(calls):
            job()
        best = min(best, time.process_time() - begun)
    return 1e6 * best / calls


# --- next answers of people held out


def next_answers(data: Path, name: str, seed: int) -> dict[str, Any]:
    """Log loss of next answers by states, and by grafting the whole history for each."""
    import pandas as pd

    table = pd.read_parquet(data / f"{name}.parquet")
    table = table.rename(columns={"person": "id", "response": "resp"})[
        ["id", "item", "time", "resp"]
    ]
    people = np.random.default_rng(seed).permutation(table["id"].unique())
    held_out = table["id"].isin(people[: round(0.15 * people.size)])
    train, test = table[~held_out], table[held_out]
    test = test[test["item"].isin(train["item"].unique())]
    test = test.sort_values(["id", "time"], kind="stable").reset_index(drop=True)
    fit = dy.DynAEsti("2PL", unit="days", threads=1).fit(train)
    whole = np.asarray(dy.evaluation.next_answers(fit, test)["p"], dtype=float)
    apart = _by_states(fit.scorer(), test)
    losses = {"grafted": -np.log(whole).mean(), "by_states": -np.log(apart).mean()}
    found = {key: float(value) for key, value in losses.items()}
    return {
        "people": int(test["id"].nunique()),
        "answers": len(test),
        **found,
        "difference": found["by_states"] - found["grafted"],
    }


def _by_states(scorer: Any, test: Any) -> np.ndarray:
    """Probability of each answer from the state before its instant."""
    out = np.empty(len(test))
    for _, mine in test.groupby("id", sort=False):
        state = scorer.start()
        for time_, rows in mine.groupby("time", sort=False):
            for k, row in rows.iterrows():
                found = scorer.predict(state, [row["item"]], float(time_))
                out[k] = float(found[f"p{int(row['resp'])}"].iloc[0])
            for _, row in rows.iterrows():
                state = scorer.add(state, float(time_), row["item"], row["resp"])
    return out
