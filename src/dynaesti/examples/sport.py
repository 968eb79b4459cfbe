"""Scorecards of golf."""

from typing import Any

import numpy as np

from dynaesti.core import as_rng
from dynaesti.examples.drawing import graded
from dynaesti.model import curves
from dynaesti.tables import Frame

PARS = (4, 5, 4, 3, 4, 3, 4, 5, 4, 4, 4, 3, 5, 4, 5, 3, 4, 4)


def golf(players: int = 60, seed: Any = 6) -> Frame:
    """Draw the scorecards of a yearly tournament on one course: two rounds of 18 holes, 20 years.

    Players come and go; careers rise to their middle and fall after. "Palm" is the best of all.

    Parameters
    ----------
    players : int, default 60
    seed : int or numpy.random.Generator, default 6

    Returns
    -------
    Frame
        Columns player, hole, par, strokes, year (decimal).

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.examples.golf(players=5).columns
    ['player', 'hole', 'par', 'strokes', 'year']
    """
    rng = as_rng(seed)
    hardness = 0.35 * rng.standard_normal(18)
    steps = np.array([-5.5, -2.9, 0.9, 3.2])  # from two under par to two over and more
    years = np.arange(2004, 2024)
    wiggle = 0.4 * curves(years, 3.0, players, rng)
    first = rng.integers(1996, 2020, players)
    first[0] = 2006
    columns: dict[str, list[Any]] = {
        name: [] for name in ("player", "hole", "par", "strokes", "year")
    }
    for k in range(players):
        peak = first[k] + 8
        level = 0.5 * rng.standard_normal() if k else 1.4
        name = f"G{k:02d}" if k else "Palm"
        for at, year in enumerate(years):
            if not first[k] <= year <= first[k] + 16 or rng.uniform() < 0.45 * (k > 0):
                continue
            form = level + wiggle[k, at] - 0.012 * (year - peak) ** 2
            over = graded(rng, np.broadcast_to(hardness - form, (2, 18)), steps) - 2
            for round_, card in enumerate(over):
                columns["player"] += [name] * 18
                columns["hole"] += list(range(1, 19))
                columns["par"] += list(PARS)
                columns["strokes"] += (np.array(PARS) + card).tolist()
                columns["year"] += [round(year + 0.27 + round_ / 365.25, 4)] * 18
    return Frame(columns)
