"""A simulated class that answers in real time, for `dynaesti serve --demo`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
from scipy.special import expit

from dynaesti.cli.demo_data import FIRST, TOPICS

DAYS = 60.0  # of answers before the service starts
HOURS_A_SECOND = 2.0  # how fast the class's clock runs
EAGER = 0.35  # chance that a student works on a day
MEMORY = 25.0  # days after which an ability's ups and downs are forgotten
MINUTES = 1 / 1440
START = "2026-09-01T00:00:00"
SECONDS = 5.0  # to wait for a response


class SimulatedClass:
    """Students whose abilities wander and mostly grow, and who work in evening sessions.

    Parameters
    ----------
    students : int
    seed : int
    """

    def __init__(self, students: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rng = rng
        self.names = [
            f"{FIRST[k % len(FIRST)]} {chr(65 + k // len(FIRST))}." for k in range(students)
        ]
        self.items = [f"{topic} {k}" for topic in TOPICS for k in range(1, 6)]
        self.difficulty = rng.normal(0.2, 0.9, len(self.items))
        self.slope = np.exp(rng.normal(0.1, 0.3, len(self.items)))
        self.level = 0.7 * rng.standard_normal(students)
        self.pace = rng.normal(0.008, 0.006, students)  # gained in a day
        self.wandering = 0.6 * rng.standard_normal(students)
        self.last = np.zeros(students)

    def day(self, number: int) -> Iterator[tuple[float, int, int, int]]:
        """Answers of one day in their order: time in days, student, item, response."""
        rng = self.rng
        sessions = [
            (number + rng.uniform(0.3, 0.95), k)
            for k in np.flatnonzero(rng.uniform(size=len(self.names)) < EAGER)
        ]
        answers = sorted(
            (begin + position * rng.uniform(1, 4) * MINUTES, int(k))
            for begin, k in sessions
            for position in range(int(rng.integers(3, 9)))
        )
        for when, k in answers:
            item = int(rng.integers(len(self.items)))
            chance = expit(self.slope[item] * (self._ability(k, when) - self.difficulty[item]))
            yield when, k, item, int(rng.uniform() < chance)

    def _ability(self, k: int, when: float) -> float:
        """A student's ability at a time, which does not lie before the last one asked for."""
        kept = np.exp(-max(when - self.last[k], 0.0) / MEMORY)
        step = 0.6 * np.sqrt(1 - kept * kept) * self.rng.standard_normal()
        self.wandering[k] = kept * self.wandering[k] + step
        self.last[k] = when
        return float(self.level[k] + self.pace[k] * (when - DAYS) + self.wandering[k])

    def shown(self, answer: tuple[float, int, int, int]) -> dict[str, Any]:
        """An answer as it is posted."""
        when, k, item, resp = answer
        stamp = np.datetime64(START, "s") + np.timedelta64(int(when * 86400), "s")
        return {
            "id": self.names[k],
            "item": self.items[item],
            "resp": resp,
            "time": str(stamp),
        }


def make_run(one: SimulatedClass, file: Path) -> Path:
    """Fit the class's first weeks, and save the fit."""
    from dynaesti.ability_estimator import DynAEsti

    rows = [one.shown(answer) for day in range(int(DAYS)) for answer in one.day(day)]
    columns = {name: [row[name] for row in rows] for name in ("id", "item", "resp", "time")}
    file.parent.mkdir(parents=True, exist_ok=True)
    return DynAEsti("2PL").fit(columns).save(file)


class LiveClass(threading.Thread):
    """Posts the answers of a class to a service as they come, on a clock that runs fast.

    Parameters
    ----------
    one : SimulatedClass
    url : str
        Of the service.
    """

    def __init__(self, one: SimulatedClass, url: str) -> None:
        super().__init__(name="live class", daemon=True)
        self.one = one
        self.url = url
        self.posted = 0

    def run(self) -> None:
        """Post until the process ends."""
        begun = time.monotonic()
        number = int(DAYS)
        while True:
            for answer in self.one.day(number):
                wait = (answer[0] - DAYS) * 24 / HOURS_A_SECOND - (time.monotonic() - begun)
                time.sleep(max(wait, 0.0))
                self._post({**self.one.shown(answer), "key": f"live {self.posted}"})
            number += 1

    def _post(self, answer: dict[str, Any]) -> None:
        body = json.dumps({"answers": [answer]}).encode()
        asked = Request(f"{self.url}/answers", body, {"Content-Type": "application/json"})
        with (
            suppress(OSError),
            urlopen(asked, timeout=SECONDS),
        ):  # the class works on, come what may
            self.posted += 1
