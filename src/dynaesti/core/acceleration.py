"""Anderson acceleration of a fixed-point iteration: where the last few steps are heading."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dynaesti.core.arrays import Array

DEPTH = 12  # steps that an extrapolation looks back on
FARTHEST_JUMP = 3.0  # in standard errors


class AndersonAcceleration:
    """Where the last few steps are heading."""

    def __init__(self, seen: tuple[tuple[Array, Array], ...] = (), jumped: bool = False) -> None:
        # places, and the pulls there
        self.seen = list(seen)
        self.jumped = jumped

    def next(self, x: Array, pull: Array, weights: Array) -> Array:
        """The next place, given the pull at x; weights bring the parameters to one scale."""
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
        far = FARTHEST_JUMP / np.maximum(
            weights, 1e-300
        )  # one item must not be thrown out of its valley by what all do together
        return np.asarray(x + pull + np.clip(jump, -far, far))
