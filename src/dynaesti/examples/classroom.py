"""A class with weekly quizzes, and the log of a learning platform."""

from typing import Any

import numpy as np

from dynaesti.core import as_rng
from dynaesti.examples.drawing import dates, right, stamps
from dynaesti.model import curves
from dynaesti.tables import Frame

PUPILS = (
    "Ada Abel", "Ben Ortiz", "Carla Sand", "Dayo Musa", "Elif Kaya", "Femi Cole", "Grace Hill",
    "Hugo Blum", "Ines Rossi", "Jun Sato", "Kofi Mensah", "Lena Frei", "Mina Park", "Noor Aziz",
    "Otto Lang", "Priya Nair", "Quinn Reed", "Rosa Vidal", "Sami Haddad", "Tara Byrne",
    "Uma Rao", "Vera Novak", "Wim Smit", "Ximena Luna", "Yara Costa", "Zoë Müller",
)  # fmt: skip
QUESTIONS, ASKED, QUIZZES = 24, 8, 12
SLUMPED = {"Hugo Blum": 1.8, "Sami Haddad": 2.2}  # what they lose after the holidays
WRONG_KEY = 17  # the question that was marked by a wrong key
SKILLS = ("fractions", "decimals", "equations", "functions", "graphs", "probability")


def quizzes(seed: Any = 1) -> Frame:
    """Draw a teacher's sheet: a row a pupil and weekly quiz, a column a question, averages below.

    26 pupils, 12 quizzes of 8 among 24 questions; blanks where a question was not asked or a pupil
    was away. The class learns, two pupils fall behind after the holidays, and one question was
    marked by a wrong key.

    Parameters
    ----------
    seed : int or numpy.random.Generator, default 1

    Returns
    -------
    Frame
        Columns Name, Date, Q1 … Q24 and a last row of averages, as in a gradebook.

    Examples
    --------
    >>> import dynaesti as dy
    >>> sheet = dy.examples.quizzes()
    >>> sheet.columns[:3], len(sheet)
    (['Name', 'Date', 'Q1'], 289)
    """
    rng = as_rng(seed)
    week = np.arange(QUIZZES)
    difficulty, slope = rng.normal(0.0, 0.9, QUESTIONS), np.exp(rng.normal(0.2, 0.25, QUESTIONS))
    slope[WRONG_KEY - 1] *= -1
    pace = rng.normal(1.4, 0.4, len(PUPILS))
    loss = np.array([SLUMPED.get(name, 0.0) for name in PUPILS])
    ability = (
        0.8 * rng.standard_normal((len(PUPILS), 1))
        + 0.3 * curves(week, 3.0, len(PUPILS), rng)
        + pace[:, None] * (week / (QUIZZES - 1) - 0.5)
        - loss[:, None] * (week >= 7)
    )
    order = np.concatenate(
        [rng.permutation(QUESTIONS) for _ in range(QUIZZES * ASKED // QUESTIONS)]
    )
    names, days, rows = [], [], []
    for k in week:
        asked = order[k * ASKED : (k + 1) * ASKED]
        for p in np.flatnonzero(rng.uniform(size=len(PUPILS)) < 0.92):
            row = np.full(QUESTIONS, np.nan)
            row[asked] = right(rng, slope[asked] * (ability[p, k] - difficulty[asked]))
            names.append(PUPILS[p])
            days.append(7 * k + 14 * (k >= 7))  # two weeks of holidays
            rows.append(row)
    sheet = np.array([*rows, np.nanmean(rows, axis=0).round(2)])
    table: dict[str, Any] = {"Name": [*names, "Average"]}
    table["Date"] = [*dates("2025-02-03", np.array(days)).tolist(), None]
    for q in range(QUESTIONS):
        table[f"Q{q + 1}"] = [None if np.isnan(x) else x for x in sheet[:, q].tolist()]
    return Frame(table)


def platform(learners: int = 300, seed: Any = 2) -> Frame:
    """Draw the log of a learning platform: who answered which exercise, when, and whether rightly.

    90 exercises of 6 skills; learners come in evening sessions over 90 days, get better by
    practising a skill, and the exercise "graphs 4" leaks on day 45: from then on nearly everybody
    has it right.

    Parameters
    ----------
    learners : int, default 300
    seed : int or numpy.random.Generator, default 2

    Returns
    -------
    Frame
        Columns learner, exercise, skill, correct, timestamp.

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.examples.platform(learners=20).columns
    ['learner', 'exercise', 'skill', 'correct', 'timestamp']
    """
    rng = as_rng(seed)
    exercises = [f"{skill} {k}" for skill in SKILLS for k in range(1, 16)]
    difficulty = rng.normal(0.2, 1.0, len(exercises))
    slope = np.exp(rng.normal(0.0, 0.3, len(exercises)))
    leaked = exercises.index("graphs 4")
    days = np.linspace(0.0, 90.0, 181)
    ability = 0.8 * rng.standard_normal((learners, 1)) + 0.5 * curves(days, 15.0, learners, rng)
    parts: list[tuple[Any, ...]] = []
    for k in range(learners):
        sessions = np.sort(rng.uniform(0, 89, rng.integers(3, 9)).astype(int))
        when = np.concatenate(
            [day + (18 + rng.normal(0, 1.5) + 0.04 * np.arange(8)) / 24 for day in sessions]
        )
        q = rng.integers(len(exercises), size=when.size)
        skill = q // 15
        met = np.array([np.sum(skill[:n] == skill[n]) for n in range(q.size)])
        theta = np.interp(when, days, ability[k]) + 0.3 * np.log1p(met)
        easier = 2.5 * ((q == leaked) & (when > 45))
        correct = right(rng, slope[q] * (theta - difficulty[q] + easier))
        parts.append((np.full(q.size, f"u{k:03d}"), q, correct, when))
    who, q, correct, when = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Frame(
        {
            "learner": who,
            "exercise": [exercises[k] for k in q],
            "skill": [SKILLS[k // 15] for k in q],
            "correct": correct,
            "timestamp": stamps("2025-01-06", when),
        }
    )
