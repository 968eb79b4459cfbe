"""Anderson acceleration of a fixed-point iteration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dynaesti.core.arrays import Array

DEPTH = 12  # steps that an extrapolation looks back on
LONGEST_JUMP = 3.0  # of one parameter, in standard errors


class AndersonAcceleration:
    """Extrapolates a fixed-point iteration x → x + pull(x) from its last steps.

    Finds the combination γ of the last changes of the pull that comes closest to the present pull
    (weighted least squares with a small ridge), and subtracts the same combination of steps.

    Parameters
    ----------
    seen : tuple of (x, pull), optional
        Earlier points and the pulls there, each of shape (n_parameters,), to go on from.
    jumped : bool, default=False
        Whether the last step was an extrapolation.
    """

    def __init__(self, seen: tuple[tuple[Array, Array], ...] = (), jumped: bool = False) -> None:
        self.seen = list(seen)
        self.jumped = jumped

    def next(self, x: Array, pull: Array, weights: Array) -> Array:
        """The next point (n_parameters,), given the pull at x.

        `weights` (n_parameters,), one over the standard errors, bring the parameters to one scale.
        """
        self.seen = [*self.seen[-DEPTH:], (x, pull)]
        self.jumped = len(self.seen) > 1
        if not self.jumped:
            return x + pull
        moves = np.stack([b[0] - a[0] for a, b in pairwise(self.seen)], axis=1)
        changes = np.stack([b[1] - a[1] for a, b in pairwise(self.seen)], axis=1)
        scaled = weights[:, None] * changes
        gram = scaled.T @ scaled
        ridge = 1e-10 * np.trace(gram) * np.eye(len(gram))
        gamma = np.linalg.solve(
            gram + ridge + 1e-300 * np.eye(len(gram)), scaled.T @ (weights * pull)
        )
        jump = -(moves + changes) @ gamma
        # one item must not be thrown out of its valley by what all do together
        longest = LONGEST_JUMP / np.maximum(weights, 1e-300)
        return np.asarray(x + pull + np.clip(jump, -longest, longest))
