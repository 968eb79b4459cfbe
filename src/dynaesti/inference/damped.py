"""Damped EP for curves on which full parallel steps cycle, converge slowly or become improper.

Steep items with heavy guessing do this (a = 4 to 8, c = 0.33 to 0.5: 22 to 83 sweeps). Curves are
treated one at a time. The remedies, each tried only where the one before has failed:

- half steps;
- Anderson extrapolation from the last few sweeps, taken back when the residual grows;
- long steps where successive sweeps move in nearly the same direction;
- Anderson extrapolation from fewer sweeps, which lets the residual grow more;
- steps halfway back from improper posteriors; then a new start with smaller steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynaesti.core import Array, Bools, Ints, anderson_step

if TYPE_CHECKING:
    from dynaesti.inference.ep_state import EPState
    from dynaesti.inference.grafting import EPProblem

    Sweep = Callable[[EPProblem, EPState, Ints], Bools]


@dataclass(frozen=True)
class DampingSettings:
    """Numbers of the damped iteration, found on the twelve hard cases of `benchmarks/gold.py`."""

    step: float = 0.5  # fraction of a full step
    depth: int = 12  # past sweeps that an extrapolation uses
    growth: float = 2.0  # an extrapolation is taken back if the residual grows by this factor
    bold_depth: int = 8  # depth after long steps have failed
    bold_growth: float = 4.0  # growth after long steps have failed
    warm_up: int = 6  # plain sweeps before the first extrapolation
    cool_down: int = 3  # plain sweeps after an extrapolation that failed
    progress: float = 0.7  # factor by which the best residual must shrink to count as progress
    stalled: int = 10  # sweeps without progress before long steps
    long_steps: int = 15  # number of long steps
    long_step: float = 16.0  # their length, in full steps
    parallel: float = 0.95  # least cosine of two moves that count as parallel
    lost: float = 3.0  # residual, in sds, above which a curve restarts
    grace: int = 4  # sweeps before it may restart
    retreats: int = 6  # steps halfway back in a row, before a restart
    restarts: int = 4  # at most


class _DampedFixedPoint:
    """One curve's sites as a vector x (precisions, then shifts), iterated to proposed(x) = x."""

    def __init__(
        self,
        problem: EPProblem,
        state: EPState,
        sweep: Sweep,
        curve: int,
        settings: DampingSettings,
    ) -> None:
        self.problem = problem
        self.state = state
        self.sweep_curves = sweep
        self.settings = settings
        self.curve = np.array([curve])
        self.where = slice(int(state.site_start[curve]), int(state.site_start[curve + 1]))
        self.step = settings.step
        self.restarts = 0
        self.depth = settings.depth
        self.growth = settings.growth
        self.x = np.concatenate(state.arrays.site.select(self.where))
        self._reset()

    def _reset(self) -> None:
        """Forget all past sweeps."""
        self.seen: list[tuple[Array, Array]] = []  # (x, proposed − x) of past sweeps
        self.fallback: Array | None = None  # the plain step in place of an extrapolation on trial
        self.proper_x = np.zeros_like(self.x)
        self.last = np.inf
        self.best = np.inf
        self.plain_sweeps = self.settings.warm_up
        self.stalled = 0
        self.age = 0
        self.last_move = np.zeros_like(self.x)

    def sweep(self) -> bool:
        """Sweep at x, or halfway back to the last x whose posterior was proper.

        Returns False after too many steps back.
        """
        site = self.state.arrays.site
        half = self.x.size // 2
        for _ in range(self.settings.retreats + 1):
            site.precision[self.where] = self.x[:half]
            site.shift[self.where] = self.x[half:]
            if self.sweep_curves(self.problem, self.state, self.curve)[0]:
                return True
            self.seen.clear()
            self.plain_sweeps = self.settings.cool_down
            self.x = 0.5 * (self.x + self.proper_x) if self.fallback is None else self.fallback
            self.fallback = None
        return False

    def restart(self) -> None:
        """Start from flat sites, with half the step."""
        self.step = 0.5 * self.step
        self.restarts = self.restarts + 1
        self.x = np.zeros_like(self.x)
        self._reset()

    def move(self, residual: float) -> None:
        """Choose the next x, given the residual of the last sweep."""
        settings = self.settings
        if self.fallback is not None and residual > self.growth * self.last:
            self.x = self.fallback
            self.fallback = None
            self.seen.clear()
            self.plain_sweeps = settings.cool_down
            return
        self.fallback = None
        self.age += 1
        if (
            self.age > settings.grace
            and residual > settings.lost
            and self.restarts < settings.restarts
        ):
            self.restart()
            return
        self.last = residual
        self.stalled = 0 if residual < settings.progress * self.best else self.stalled + 1
        self.best = min(self.best, residual)
        self._take_step(residual)

    def _take_step(self, residual: float) -> None:
        """Make a long, an extrapolated or a damped step."""
        settings = self.settings
        arrays = self.state.arrays
        move = np.concatenate(arrays.proposed_site.select(self.where)) - self.x
        variance = arrays.tilted.variance[self.where]
        scale = np.concatenate([variance, np.sqrt(variance)])
        same_direction = self._same_direction(move * scale)
        self.proper_x = self.x
        if self.stalled > settings.stalled:
            self.seen.clear()
            if self.stalled > settings.stalled + settings.long_steps:
                self.stalled = 0
                self.best = residual
                self.depth = settings.bold_depth
                self.growth = settings.bold_growth
            self.x = self.x + (settings.long_step if same_direction else self.step) * move
            return
        self.seen = [*self.seen[-self.depth :], (self.x, move)]
        self.plain_sweeps -= 1
        damped = self.x + self.step * move
        if len(self.seen) > 2 and self.plain_sweeps <= 0:
            self.fallback = damped
            self.x = anderson_step(self.seen, scale, self.step)
        else:
            self.x = damped

    def _same_direction(self, move: Array) -> bool:
        """Whether this move and the one before it are nearly parallel."""
        size = np.sqrt((move @ move) * (self.last_move @ self.last_move))
        parallel = size > 0 and move @ self.last_move > self.settings.parallel * size
        self.last_move = move
        return bool(parallel)


def converge_damped(
    problem: EPProblem,
    state: EPState,
    sweep: Sweep,
    curve: int,
    tolerance: float,
    max_sweeps: int,
    settings: DampingSettings,
) -> None:
    """Sweep one curve until it converges or reaches ``max_sweeps``.

    ``state.residual`` tells which of the two happened.
    """
    iteration = _DampedFixedPoint(problem, state, sweep, curve, settings)
    best = (np.inf, iteration.x)
    tries = 0
    while state.sweeps[curve] < max_sweeps and tries < 2 * max_sweeps:
        tries += 1
        if not iteration.sweep():
            iteration.restart()
            continue
        residual = float(state.residual[curve])
        best = min(best, (residual, iteration.x), key=lambda pair: pair[0])
        if residual < tolerance:
            return
        iteration.move(residual)
    # not converged: return to the best sites, and sweep to bring all other arrays in line with them
    iteration.x = best[1]
    iteration.sweep()
