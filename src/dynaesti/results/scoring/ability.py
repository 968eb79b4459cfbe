"""Ability of learners now, or later if no answer comes: a mixture of normals at each point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import erfc, exp, pi, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dynaesti.core import Array
from dynaesti.inference import Marginals
from dynaesti.results.frames import IDENTITY, band

NEWTON = 60  # steps at most; three or four do
ROOT_HALF = sqrt(0.5)
ROOT_TWO_PI = sqrt(2.0 * pi)


@dataclass(frozen=True)
class Ability:
    """Ability of one learner at a time, or of several: numbers, or arrays of them.

    Parameters
    ----------
    time : time, or array of them
        As in the data.
    mean, sd : float or array
        On the reported scale.
    lower, upper : float or array
        Ends of the equal-tailed band.
    """

    time: Any
    mean: Any
    sd: Any
    lower: Any
    upper: Any


def summarised(marginals: Marginals, time: Any, level: float, single: bool) -> Ability:
    """Mean, sd and band of marginals; as numbers where there is one point."""
    if not single:
        lower, upper = marginals.quantiles(band(level), IDENTITY)
        return Ability(time, marginals.mean(IDENTITY), marginals.sd(IDENTITY), lower, upper)
    weights = marginals.weights[:, 0].tolist()
    means = marginals.means[:, 0].tolist()
    sds = marginals.sds[:, 0].tolist()
    parts = list(zip(weights, means, sds, strict=True))
    mean = sum(w * m for w, m, _ in parts)
    sd = sqrt(sum(w * (s * s + (m - mean) ** 2) for w, m, s in parts))
    lower, upper = (
        _quantile(parts, q, mean + sd * start, mean, sd)
        for q, start in zip(*_band_and_starts(level), strict=True)
    )
    return Ability(time.item() if isinstance(time, np.floating) else time, mean, sd, lower, upper)


@cache
def _band_and_starts(level: float) -> tuple[list[float], list[float]]:
    """Levels of both ends of a band, and where they are for a single normal."""
    ends = band(level)
    return ends.tolist(), ndtri(ends).tolist()


def _quantile(
    parts: list[tuple[float, float, float]], q: float, start: float, mean: float, sd: float
) -> float:
    """Quantile of a mixture of a few normals, by Newton steps within a shrinking bracket."""
    low, high = mean - 40 * sd, mean + 40 * sd
    x = start
    for _ in range(NEWTON):
        below = -q
        slope = 0.0
        for w, m, s in parts:
            z = (x - m) / s
            below += 0.5 * w * erfc(-ROOT_HALF * z)
            slope += w * exp(-0.5 * z * z) / s
        if below < 0:
            low = x
        else:
            high = x
        step = x - below * ROOT_TWO_PI / slope if slope > 0 else low
        new = step if low < step < high else 0.5 * (low + high)
        if abs(new - x) <= 1e-8 * sd:  # and the step that was taken squares the error
            return new
        x = new
    return x


def probabilities_above(marginals: Marginals, cut: float) -> Array:
    """Probability that abilities exceed a value: (n_points,)."""
    z = (marginals.means - cut) / marginals.sds
    return np.asarray((marginals.weights * ndtr(z)).sum(axis=0))
