"""Anderson acceleration of a fixed-point iteration x → x + residual(x).

Where the last few steps are heading.

The next x is the combination of past ones whose residuals cancel best. (SQUAREM is the same from
the last two steps; EM takes three times as many iterations with it.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dynaesti.core.arrays import Array

History = Sequence[tuple[Array, Array]]  # (x, residual at x), oldest first

DEPTH = 12  # steps that an extrapolation looks back on
MAX_JUMP = (
    3.0  # of one parameter, in its standard errors: none is thrown far by what all do together
)


def differences(history: History) -> tuple[Array, Array]:
    """Successive differences of places and residuals: (n_steps, size) each."""
    moves = np.stack([after[0] - before[0] for before, after in pairwise(history)])
    changes = np.stack([after[1] - before[1] for before, after in pairwise(history)])
    return moves, changes


def anderson_step(history: History, scale: Array, step: float) -> Array:
    """The damped and extrapolated next x, for short vectors: least squares by singular values.

    Parameters
    ----------
    history : sequence of (x, residual)
        At least two, oldest first.
    scale : array (size,)
        Brings the entries of a residual to one unit.
    step : float
        Damping: the plain step is x + step × residual.
    """
    x, residual = history[-1]
    plain = x + step * residual
    moves, changes = differences(history)
    design = (changes * scale).T
    if not np.isfinite(design).all():
        return np.asarray(plain)
    weights = np.linalg.lstsq(design, residual * scale, rcond=1e-6)[0]
    return np.asarray(plain - weights @ (moves + step * changes))


class AndersonAcceleration:
    """Extrapolation of long vectors, by normal equations; each entry's jump is bounded.

    Parameters
    ----------
    history : sequence of (x, residual), optional
        To go on from, as a checkpoint kept it.
    is_extrapolated : bool
        Whether the present x is an extrapolation.
    """

    def __init__(self, history: History = (), is_extrapolated: bool = False) -> None:
        self.history = list(history)
        self.is_extrapolated = is_extrapolated

    def propose(self, x: Array, residual: Array, weights: Array) -> Array:
        """The next x, given the residual at this one.

        Weights bring the entries to one unit (standard errors).
        """
        self.history = [*self.history[-DEPTH:], (x, residual)]
        self.is_extrapolated = len(self.history) > 1
        if not self.is_extrapolated:
            return x + residual
        moves, changes = (np.ascontiguousarray(part.T) for part in differences(self.history))
        scaled = weights[:, None] * changes
        gram = scaled.T @ scaled
        ridge = (1e-10 * np.trace(gram) + 1e-300) * np.eye(len(gram))
        coefficients = np.linalg.solve(gram + ridge, scaled.T @ (weights * residual))
        jump = -(moves + changes) @ coefficients
        bound = MAX_JUMP / np.maximum(weights, 1e-300)
        return np.asarray(x + residual + np.clip(jump, -bound, bound))
