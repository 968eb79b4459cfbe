"""Data of the demonstration: a class over a term, whose students learn, pause or fall behind."""

from typing import Any

import numpy as np
from scipy.special import expit

from dynaesti.core import as_rng, whole_number
from dynaesti.model import GRID, curves

TOPICS = (
    "fractions",
    "decimals",
    "percentages",
    "equations",
    "functions",
    "graphs",
    "geometry",
    "probability",
)
FIRST = (
    "Ada",
    "Ben",
    "Carla",
    "Dayo",
    "Elif",
    "Femi",
    "Grace",
    "Hugo",
    "Ines",
    "Jun",
    "Kofi",
    "Lena",
    "Mina",
    "Noor",
    "Otto",
    "Priya",
    "Quinn",
    "Rosa",
    "Sami",
    "Tara",
    "Uma",
    "Vera",
    "Wim",
    "Ximena",
    "Yara",
    "Zoë",
)
TERM_DAYS = 110
WEEKS = 16


def term(students: int = 120, seed: Any = 7) -> dict[str, Any]:
    """Draw a class over a term as a learning platform would log it.

    Most students learn, some stand still, a few fall behind after the holidays; work comes in
    evening sessions, some weeks are missed. The columns are student, problem, correct and
    timestamp.
    """
    rng = as_rng(seed)
    n = whole_number(students, "students", 1)
    problems = [f"{topic} {k}" for topic in TOPICS for k in range(1, 6)]
    difficulty = rng.normal(0.2, 0.9, len(problems))
    slope = np.exp(rng.normal(0.1, 0.3, len(problems)))
    days = np.linspace(0.0, TERM_DAYS, GRID)
    wiggle = curves(days, 22.0, n, rng)
    pace = rng.normal(1.1, 0.6, n)  # sds gained over the term
    slump = np.where(rng.uniform(size=n) < 0.12, rng.uniform(0.8, 1.6, n), 0.0)
    ability = (
        0.8 * rng.standard_normal((n, 1))
        + 0.4 * wiggle
        + pace[:, None] * (days / TERM_DAYS - 0.5)
        - slump[:, None] / (1 + np.exp(-(days - 65) / 4))
    )
    names = [f"{FIRST[k % len(FIRST)]} {chr(65 + k // len(FIRST))}." for k in range(n)]
    rows: dict[str, list[Any]] = {"student": [], "problem": [], "correct": [], "timestamp": []}
    start = np.datetime64("2024-02-05T00:00:00", "s")
    for k in range(n):
        eager = rng.uniform(0.5, 0.95)
        for week in np.flatnonzero(rng.uniform(size=WEEKS) < eager):
            day = 7 * week + rng.integers(0, 7)
            clock = day + rng.normal(17.5, 2.0) / 24
            for position in range(rng.integers(3, 9)):
                when = clock + position * rng.uniform(1.5, 4.0) / 1440
                q = rng.integers(len(problems))
                theta = np.interp(when, days, ability[k])
                rows["student"].append(names[k])
                rows["problem"].append(problems[q])
                rows["correct"].append(
                    int(rng.uniform() < expit(slope[q] * (theta - difficulty[q])))
                )
                rows["timestamp"].append(str(start + np.timedelta64(int(when * 86400), "s")))
    return rows
