"""Roll calls of a chamber, and polls of an election campaign."""

from typing import Any

import numpy as np

from dynaesti.core import as_rng
from dynaesti.examples.drawing import dates, right
from dynaesti.model import curves
from dynaesti.tables import Frame

PARTIES = {"Left": -0.9, "Right": 0.9}
MAVERICK = "Vega (Left)"  # drifts from one side to the other
HOUSES = {"Aria": 0.025, "Boreal": 0.0, "Corax": -0.03, "Delta": 0.01, "Echo": -0.005}
ELECTION = 200  # days after the first poll


def roll_calls(members: int = 48, years: int = 16, seed: Any = 3) -> Frame:
    """Draw the roll calls of a chamber of two parties, 24 a year.

    Half of the bills are put by the left, so half of the yeas are votes of the left. One member of
    the left drifts to the right within a decade.

    Parameters
    ----------
    members, years : int, default 48, 16
    seed : int or numpy.random.Generator, default 3

    Returns
    -------
    Frame
        Columns member, bill, vote ("yea" or "nay"), date.

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.examples.roll_calls(members=6, years=1).columns
    ['member', 'bill', 'vote', 'date']
    """
    rng = as_rng(seed)
    names = ["Vega", *(f"M{k:02d}" for k in range(1, members))]
    party = np.arange(members) % 2
    labels = [f"{name} ({list(PARTIES)[p]})" for name, p in zip(names, party, strict=True)]
    when = np.sort(rng.uniform(0, years * 365, years * 24))
    place = np.array(list(PARTIES.values()))[party][:, None] + 0.35 * rng.standard_normal(
        (members, 1)
    )
    place = place + 0.15 * curves(when, 1500.0, members, rng)
    place[0] = -0.9 + 1.7 / (1 + np.exp(-(when - 0.5 * years * 365) / 500))
    entered = np.where(np.arange(members) < members // 2, 0.0, rng.uniform(0, 8 * 365, members))
    columns: dict[str, list[Any]] = {name: [] for name in ("member", "bill", "vote", "date")}
    for k, day in enumerate(when):
        slope = rng.choice([-1, 1]) * np.exp(rng.normal(0.7, 0.4))
        present = np.flatnonzero((entered <= day) & (rng.uniform(size=members) < 0.93))
        yea = right(rng, slope * (place[present, k] - rng.normal(0, 0.8)))
        columns["member"] += [labels[p] for p in present]
        columns["bill"] += [f"bill {k + 1}"] * present.size
        columns["vote"] += np.where(yea == 1, "yea", "nay").tolist()
        columns["date"] += dates("2008-01-07", np.full(present.size, day)).tolist()
    return Frame(columns)


def polls(seed: Any = 4) -> Frame:
    """Draw 80 polls of a referendum by five houses that differ, over 200 days.

    Parameters
    ----------
    seed : int or numpy.random.Generator, default 4

    Returns
    -------
    Frame
        Columns date, house, asked, yes.

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.examples.polls().columns
    ['date', 'house', 'asked', 'yes']
    """
    rng = as_rng(seed)
    day = np.sort(rng.integers(0, ELECTION - 5, 80))
    house = rng.choice(list(HOUSES), 80, p=[0.35, 0.2, 0.25, 0.1, 0.1])
    asked = 10 * rng.integers(60, 160, 80)
    share = 0.46 + 0.06 / (1 + np.exp(-(day - 120) / 15))
    share = share + [HOUSES[name] for name in house] + rng.normal(0, 0.01, 80)
    return Frame(
        {
            "date": dates("2025-03-01", day),
            "house": house,
            "asked": asked,
            "yes": rng.binomial(asked, share),
        }
    )
