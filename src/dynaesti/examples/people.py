"""A reading study with two programmes and three waves, and a diary of students."""

from typing import Any

import numpy as np

from dynaesti.core import as_rng
from dynaesti.examples.drawing import dates, graded, right, stamps
from dynaesti.model import curves
from dynaesti.tables import Frame

HARDER_AT_HOME = {"t07": 1.6, "t19": 1.3}  # tasks harder for those who speak another language
FEELINGS = ("tense", "worried", "irritable", "calm")


def reading_study(pupils: int = 300, seed: Any = 5) -> Frame:
    """Draw a study of reading: two programmes, three waves a year, tasks that overlap.

    The new programme gains half a standard deviation more over the year. Two tasks are harder for
    pupils who speak another language at home than for others who read as well.

    Parameters
    ----------
    pupils : int, default 300
    seed : int or numpy.random.Generator, default 5

    Returns
    -------
    Frame
        Columns pupil, task, correct, date, programme, home (the language spoken there).

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.examples.reading_study(pupils=30).columns
    ['pupil', 'task', 'correct', 'date', 'programme', 'home']
    """
    rng = as_rng(seed)
    tasks = [f"t{k:02d}" for k in range(1, 31)]
    difficulty, slope = rng.normal(0.0, 0.9, 30), np.exp(rng.normal(0.2, 0.3, 30))
    new, other = np.arange(pupils) % 2 == 1, rng.uniform(size=pupils) < 0.35
    level = 0.85 * rng.standard_normal(pupils) - 0.3 * other
    columns: dict[str, list[Any]] = {
        name: [] for name in ("pupil", "task", "correct", "date", "programme", "home")
    }
    for k in range(pupils):
        shift = 0.5 * rng.standard_normal(3)
        for wave, day in enumerate((0, 150, 300)):
            theta = level[k] + shift[wave] + (0.6 + 0.5 * new[k]) * wave / 2 - 0.4
            asked = rng.choice(30, 12, replace=False)
            harder = [HARDER_AT_HOME.get(tasks[q], 0.0) * other[k] for q in asked]
            columns["pupil"] += [f"s{k:03d}"] * 12
            columns["task"] += [tasks[q] for q in asked]
            columns["correct"] += right(
                rng, slope[asked] * (theta - difficulty[asked] - harder)
            ).tolist()
            columns["date"] += dates("2024-09-09", np.full(12, day + k % 5)).tolist()
            columns["programme"] += ["new" if new[k] else "usual"] * 12
            columns["home"] += ["other" if other[k] else "same"] * 12
    return Frame(columns)


def diary(students: int = 50, seed: Any = 7) -> Frame:
    """Draw a diary: four feelings from 1 to 5, four times a day, over two weeks with an exam.

    Half of the students sit the exam on day 9; their stress rises towards it and falls after.
    "calm" runs against the other three.

    Parameters
    ----------
    students : int, default 50
    seed : int or numpy.random.Generator, default 7

    Returns
    -------
    Frame
        Columns student, feeling, answer, time, group ("exam" or "no exam").

    Examples
    --------
    >>> import dynaesti as dy
    >>> sorted(set(dy.examples.diary(students=10)["answer"].tolist()))
    [1, 2, 3, 4, 5]
    """
    rng = as_rng(seed)
    days = np.linspace(0.0, 14.0, 141)
    slope = np.array([1.8, 1.5, 1.1, -1.6])
    at = np.array([-1.8, -0.5, 0.7, 2.0])
    sits = np.arange(students) % 2 == 0
    wave = 1.6 * np.exp(-0.5 * ((days - 8.7) / 1.8) ** 2) * (days < 9) + 1.6 * (days >= 9) * np.exp(
        -(days - 9) / 0.8
    )
    stress = (
        0.7 * rng.standard_normal((students, 1))
        + 0.7 * curves(days, 0.7, students, rng)
        + sits[:, None] * wave
    )
    columns: dict[str, list[Any]] = {
        name: [] for name in ("student", "feeling", "answer", "time", "group")
    }
    for k in range(students):
        beeps = (np.arange(14)[:, None] + np.array([9.0, 12.5, 16.0, 20.0]) / 24).ravel()
        beeps = beeps + rng.uniform(-0.03, 0.03, beeps.size)
        beeps = beeps[rng.uniform(size=beeps.size) < 0.75]
        theta = np.interp(beeps, days, stress[k])
        answers = 1 + graded(rng, slope * theta[:, None], at)
        columns["student"] += [f"d{k:02d}"] * answers.size
        columns["feeling"] += list(FEELINGS) * beeps.size
        columns["answer"] += answers.ravel().tolist()
        columns["time"] += np.repeat(stamps("2025-06-02", beeps), 4).tolist()
        columns["group"] += ["exam" if sits[k] else "no exam"] * answers.size
    return Frame(columns)
