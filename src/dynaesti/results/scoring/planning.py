"""When a probability first passes a level, as time goes on without answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynaesti.core import Array, Bools

POINTS = 201  # even times at which the probability is looked up first
HALVINGS = 30


def first_time(
    probabilities: Callable[[Array], Array], start: float, end: float, level: float, above: bool
) -> float | None:
    """First time from start to end at which a probability is above a level, or below it.

    Parameters
    ----------
    probabilities : function
        From times (n_times,) to probabilities (n_times,).
    start, end : float
    level : float
    above : bool

    Returns
    -------
    float or None
        None if it does not happen.
    """

    def passed(times: Array) -> Bools:
        found = probabilities(times)
        return found >= level if above else found < level

    times = np.linspace(start, end, POINTS)
    hits = np.flatnonzero(passed(times))
    if not hits.size:
        return None
    first = int(hits[0])
    if first == 0:
        return start
    low, high = float(times[first - 1]), float(times[first])
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if passed(np.array([middle]))[0]:
            high = middle
        else:
            low = middle
    return high if above else low
