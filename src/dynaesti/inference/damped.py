"""Curves on which full parallel steps cycle, crawl or leave the proper posteriors.

One at a time, by a wary descent.

Steep items with heavy guessing do this. The remedies, each tried only where the one before has
failed: half steps; Anderson's extrapolation from the last few sweeps, taken back when the residual
grows; long leaps where the sweeps drift steadily past the ghost of a fixed point; bolder
extrapolation after that; halfway retreats from improper posteriors; a fresh start with smaller
steps.
"""

from typing import Protocol

import numpy as np

from dynaesti.core import Array, Bools, Ints

# extrapolation: sweeps it looks back on, growth of the residual that takes it back
TIMID = (12, 2.0)
BOLD = (8, 4.0)
# plain sweeps before the first extrapolation, and after a failed one
WARM_UP = 6
REST = 3
# sweeps without progress before leaping, how many leaps, how long
STALLED = 10
LEAPS = 15
LEAP = 16.0
RETREATS = 6
RESTARTS = 4


class SweepableSites(Protocol):
    """What the descent sees of the grafting state."""

    precision: Array
    shift: Array
    proposed_precision: Array
    proposed_shift: Array
    var: Array
    residual: Array
    sweeps: Ints
    site_start: Ints

    def look(self, jobs: Ints) -> Bools:
        """Refresh aims and residuals for the present sites; False where improper."""


class _DampedFixedPoint:
    """One curve's sites as a vector x (precisions, then shifts), moved until aim(x) = x."""

    def __init__(self, state: SweepableSites, job: int) -> None:
        self.state = state
        self.job = np.array([job])
        self.where = slice(int(state.site_start[job]), int(state.site_start[job + 1]))
        self.step = 0.5
        self.restarts = 0
        self.depth, self.growth = TIMID
        self.x = np.concatenate([state.precision[self.where], state.shift[self.where]])
        self._forget()

    def _forget(self) -> None:
        self.seen: list[tuple[Array, Array]] = []  # (x, aim − x) of past sweeps
        self.fallback: Array | None = None  # the plain step in place of an extrapolation on trial
        self.proper_x = np.zeros_like(self.x)
        self.last = self.best = np.inf
        self.rest = WARM_UP
        self.stalled = 0
        self.age = 0
        self.drift = np.zeros_like(self.x)

    def look(self) -> bool:
        """Sweep at x; improper places are left by halves, and after too many by a fresh start."""
        for _ in range(RETREATS + 1):
            half = self.x.size // 2
            self.state.precision[self.where], self.state.shift[self.where] = (
                self.x[:half],
                self.x[half:],
            )
            if self.state.look(self.job)[0]:
                return True
            self.seen.clear()
            self.rest = REST
            self.x = 0.5 * (self.x + self.proper_x) if self.fallback is None else self.fallback
            self.fallback = None
        return False

    def restart(self) -> None:
        """From no sites at all, with half the step."""
        self.step = 0.5 * self.step
        self.restarts = self.restarts + 1
        self.x = np.zeros_like(self.x)
        self._forget()

    def move(self, residual: float) -> None:
        """The next x, given the residual of the sweep just made."""
        if self.fallback is not None and residual > self.growth * self.last:
            self.x = self.fallback
            self.fallback = None
            self.seen.clear()
            self.rest = REST
            return
        self.fallback = None
        self.age += 1
        if self.age > 4 and residual > 3.0 and self.restarts < RESTARTS:
            self.restart()
            return
        self.last = residual
        self.stalled = 0 if residual < 0.7 * self.best else self.stalled + 1
        self.best = min(self.best, residual)
        aim = np.concatenate(
            [self.state.proposed_precision[self.where], self.state.proposed_shift[self.where]]
        )
        pull = aim - self.x
        scale = np.concatenate([self.state.var[self.where], np.sqrt(self.state.var[self.where])])
        steady = self._steady(pull * scale)
        self.proper_x = self.x
        if self.stalled > STALLED:
            self.seen.clear()
            if self.stalled > STALLED + LEAPS:
                self.stalled = 0
                self.best = residual
                self.depth, self.growth = BOLD
            self.x = self.x + (LEAP if steady else self.step) * pull
            return
        self.seen = [*self.seen[-self.depth :], (self.x, pull)]
        plain = self.x + self.step * pull
        self.rest -= 1
        if len(self.seen) > 2 and self.rest <= 0:
            self.fallback, self.x = plain, self._extrapolate(plain, scale)
        else:
            self.x = plain

    def _steady(self, drift: Array) -> bool:
        """Whether two sweeps in a row pull in the same direction."""
        size = np.sqrt((drift @ drift) * (self.drift @ self.drift))
        steady = size > 0 and drift @ self.drift > 0.95 * size
        self.drift = drift
        return bool(steady)

    def _extrapolate(self, plain: Array, scale: Array) -> Array:
        """Anderson: the combination of past sweeps whose pulls cancel best, in units of posterior
        sds.
        """
        xs, pulls = (np.diff(np.array(part), axis=0) for part in zip(*self.seen, strict=True))
        design = (pulls * scale).T
        if not np.isfinite(design).all():
            return plain
        share = np.linalg.lstsq(design, self.seen[-1][1] * scale, rcond=1e-6)[0]
        return plain - share @ (xs + self.step * pulls)


def converge_damped(state: SweepableSites, job: int, tolerance: float, most_sweeps: int) -> None:
    """Sweep one curve until it settles or has had its sweeps; the residual tells which."""
    descent = _DampedFixedPoint(state, job)
    best = np.inf, descent.x
    tries = 0
    while state.sweeps[job] < most_sweeps and tries < 2 * most_sweeps:
        tries += 1
        if not descent.look():
            descent.restart()
            continue
        residual = float(state.residual[job])
        best = min(best, (residual, descent.x), key=lambda pair: pair[0])
        if residual < tolerance:
            return
        descent.move(residual)
    descent.x = best[1]  # unsettled: the best seen, with everything that belongs to it
    descent.look()
