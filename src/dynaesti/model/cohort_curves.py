"""A cohort's curves as cubic polynomials between knots, for questions about single moments.

`Cohort` answers for arrays of times. Here everything that does not depend on the time is computed
once, and the rest is plain arithmetic with a few numbers, which costs microseconds.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import exp, expm1

import numpy as np
from scipy.interpolate import CubicSpline

from dynaesti.model.cohort import FADING, Cohort


@dataclass(frozen=True)
class CohortCurves:
    """Mean of each group over time, and its independent errors.

    The last group is the average of all, which group −1 stands for.
    """

    knots: list[float]
    # of each group and each piece between knots: (c3, c2, c1, c0) of the mean, then of its errors
    pieces: list[list[list[list[float]]]]
    spread: list[list[float]]  # of each group: of the drift before the first knot, after the last

    def at(self, time: float, group: int) -> tuple[float, float, float]:
        """Mean of a group at a time, the variance of its estimate, and that of its drift.

        The drift is how a cohort goes on beyond the data: see `Cohort.drift_variance`.
        """
        first = self.knots[0]
        last = self.knots[-1]
        inside = min(max(time, first), last)
        drift = 0.0
        if inside != time:
            length = FADING * (last - first)
            beyond = abs(time - inside) / length
            shape = beyond + expm1(-beyond) + exp(-beyond) - 0.5 * (1.0 + exp(-2.0 * beyond))
            drift = self.spread[group][time > last] * shape
            slowed = -length * expm1(-beyond)
            inside += slowed if time > last else -slowed
        piece = bisect_right(self.knots, inside, 1, len(self.knots) - 1) - 1
        x = inside - self.knots[piece]
        mean, *errors = [((c3 * x + c2) * x + c1) * x + c0
                         for c3, c2, c1, c0 in self.pieces[group][piece]]  # fmt: skip
        return mean, sum(error * error for error in errors), drift


def curves_of_cohort(cohort: Cohort) -> CohortCurves:
    """The curves of a cohort's groups, and of their average."""
    knots = cohort.basis.knots
    groups = np.append(np.arange(cohort.n_groups), -1)
    pieces = []
    for group in groups:
        values, vectors = np.linalg.eigh(cohort.covariance_of(int(group)))
        roots = vectors[:, values > 0] * np.sqrt(values[values > 0])
        curves = cohort.basis.values @ np.column_stack([cohort.curves[group], roots])
        spline = CubicSpline(knots, curves, bc_type="natural")
        pieces.append(np.asarray(spline.c).transpose(1, 2, 0).tolist())
    ends = np.repeat(knots[[0, -1]], groups.size)
    spread = cohort.drift_spread(ends, np.tile(groups, 2)).reshape(2, -1).T
    return CohortCurves(knots.tolist(), pieces, spread.tolist())
