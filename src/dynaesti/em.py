"""The loop over people and items: E-steps, M-steps, and the extrapolation between them.

Plain EM crawls: whatever the curves hide from the items (their level, their scale, a drift shared by everyone) takes hundreds of
steps. Such slow movements are extrapolated from the last few steps: the combination whose pulls cancel (Anderson's; SQUAREM is the
same from the last two, and takes three times the steps here). A jump is kept only if the penalised evidence, which every E-step
yields for free, has not fallen. Grafting must be settled well within the items' own steps, else the pulls carry the past along.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from dynaesti.arrays import Array
from dynaesti.bank import Bank
from dynaesti.expectation import Expectation, Expected, ability_grid, farthest_ability, unit_pull
from dynaesti.population import log_list_prior
from dynaesti.priors.kernels import Kernel
from dynaesti.rows import RowTable

DEPTH = 12  # steps that an extrapolation looks back on
FARTHEST_JUMP = 0.7  # in standard errors
WARM_UP = 2  # plain EM steps before the first one
LOOSE, TIGHT = 2e-3, 1e-7  # tolerance of grafting: a small part of the items' own step
PART = 2e-3
GROWN = 2.0  # times that a step after a jump may be longer than the one before
FALL = 0.1  # nats that a jump may lose: grafting is not exact before the end
IDLE, PRUNING = 2e-2, (1, 3, 6, 12, 24)  # weight in the population below which a prior leaves, and after which steps


@dataclass(frozen=True)
class Step:
    """One line of the trace."""

    iteration: int
    stage: str
    objective: float  # log evidence + log prior of the items
    log_evidence: float
    change: float  # step of the parameters in their standard errors, root mean square
    seconds: float
    rows_per_second: float


@dataclass(frozen=True)
class Point:
    """Items, and the E-step made with them."""

    bank: Bank
    expected: Expected
    objective: float
    counts: Array
    table: RowTable

    @property
    def grid(self) -> Array:
        """The ability grid of the counts."""
        return np.asarray(self.table.start + self.table.step * np.arange(self.counts.shape[1]))


Listener = Callable[[Step], None]


@dataclass
class Loop:
    """EM over fixed people and a fixed list of priors. `sites` are kept between E-steps."""

    expectation: Expectation
    kernels: list[Kernel]
    log_mass: Array
    stage: str = "fit"
    listen: Listener | None = None
    trace: list[Step] = field(default_factory=list)
    mark: Callable[[Mark], None] | None = None  # told after every step
    sites: list[tuple[Array, Array] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.sites:
            self.sites = [None] * len(self.kernels)
        self._began = time.perf_counter()
        self._farthest, self._steps = 0.0, 0

    def look(self, bank: Bank, tolerance: float) -> Point:
        """The E-step at a bank."""
        while True:
            z = ability_grid(bank, self._farthest)
            expected, table = self.expectation.run(bank, z, self.kernels, self.log_mass, self.sites, tolerance)
            self._farthest = max(self._farthest, min(farthest_ability(expected), 2 * z[-1]))
            if ability_grid(bank, self._farthest).size == z.size:
                break  # else someone is beyond the grid: look again on a wider one
        self.sites = list(expected.sites)
        counts = self.expectation.counts(self.kernels, expected, table)
        objective = expected.log_evidence + bank.log_prior() + log_list_prior(expected.population, self.log_mass)
        return Point(bank, expected, objective, counts, table)

    def _pruned(self, point: Point) -> Point:
        """Without the priors that hardly anyone uses: they cost time."""
        busy = np.flatnonzero(point.expected.population > IDLE)
        if busy.size == len(self.kernels):
            return point
        self.kernels, self.sites = [self.kernels[k] for k in busy], [self.sites[k] for k in busy]
        self.log_mass = self.log_mass[busy]
        self.expectation.forget(self.kernels)
        old = point.expected
        weights = old.weights[busy] / old.weights[busy].sum(axis=0)
        kept = replace(old, grafted=tuple(old.grafted[k] for k in busy), weights=weights,
                       population=old.population[busy] / old.population[busy].sum())
        return replace(point, expected=kept)

    def _step(self, here: Point) -> tuple[Bank, Array, Array, float]:
        """An M-step: the bank after it, the pull, its weights, and the change in standard errors."""
        plain, weights = here.bank.improved(here.counts, here.grid)
        if here.bank.needs_unit:
            plain = self._unit_step(here, plain)
        pull = plain.vector() - here.bank.vector()
        return plain, pull, weights, float(np.sqrt(np.mean((pull * weights) ** 2))) if pull.size else 0.0

    def _unit_step(self, point: Point, plain: Bank) -> Bank:
        """The bank after an M-step, its unit set by the abilities alone.

        Priors on thousands of thin items shrink their slopes a little at every M-step, and abilities would grow in answer: that part of
        the step is taken back, and the unit moves as far as the evidence asks for.
        """
        location, log_scale = unit_pull(self.expectation.answers, self.kernels, point.expected)
        drift = plain.log_slope() - point.bank.log_slope()
        return plain.remetred(float(np.clip(location, -0.3, 0.3)), float(np.clip(log_scale, -0.3, 0.3)) - drift)

    def _note(self, point: Point, change: float) -> None:
        now = time.perf_counter() - self._began
        done, self._steps = len(self.trace) + 1, self._steps + 1
        rows = self.expectation.answers.member_answer[-1] + 1
        speed = float(rows * self._steps / max(now, 1e-9))
        self.trace.append(Step(done, self.stage, point.objective, point.expected.log_evidence, change, now, speed))
        if self.listen is not None:
            self.listen(self.trace[-1])

    def run(self, bank: Bank, most: int, tolerance: float, resume: Mark | None = None) -> tuple[Point, bool]:
        """EM until it is at rest twice in a row, or from where a mark was set.

        At rest: a step moves the parameters by less than `tolerance` of their standard errors (root mean square), and the evidence by
        no more than 0.1 × `tolerance` nats times the root of the number of parameters (where priors are learned along: a third of
        the first, and the second does not count).
        Returns the last E-step, with grafting settled tightly, and whether the loop came to rest.
        """
        s = resume or Mark(self.stage, 0, bank, bank, LOOSE, 0, np.inf, -np.inf, -np.inf, (), False, self._farthest, (), (),
                           np.zeros(0), ())
        if resume is not None:
            self.kernels, self.log_mass, self.sites = list(s.kernels), s.log_mass, list(s.sites)
            self.trace[:], self._farthest = s.trace, s.farthest
        jumps = Extrapolation(s.seen, s.jumped)
        while True:
            here = self.look(s.bank, s.settle)
            plain, pull, weights, change = self._step(here)
            # where priors are learned along, no one quantity grows at every step; there a jump must not make the next step longer
            failed = change > GROWN * s.change if here.bank.needs_unit else here.objective < s.best - FALL
            if jumps.jumped and failed:
                jumps = Extrapolation()
                here = self.look(s.plain, s.settle)  # the plain step from where the jump began
                plain, pull, weights, change = self._step(here)
            if s.step in PRUNING:
                here = self._pruned(here)
            self._note(here, change)
            still = (change < 0.3 * tolerance if here.bank.needs_unit else
                     change < tolerance and abs(here.objective - s.last) < 0.1 * tolerance * np.sqrt(pull.size + 1))
            if (still and s.quiet >= 1) or len(self.trace) >= most:
                return self.look(plain, TIGHT), bool(still and s.quiet >= 1)
            settle = float(np.clip(PART * np.abs(pull * weights).max(initial=0.0), 10 * TIGHT, LOOSE))
            target = jumps.next(here.bank.vector(), pull, weights) if s.step >= WARM_UP else plain.vector()
            s = Mark(self.stage, s.step + 1, plain.at(target), plain, settle, s.quiet + 1 if still else 0, change,
                     max(here.objective, s.best), here.objective, tuple(jumps.seen), jumps.jumped, self._farthest,
                     tuple(self.kernels), tuple(self.sites), self.log_mass, tuple(self.trace))
            if self.mark is not None:
                self.mark(s)


@dataclass(frozen=True)
class Mark:
    """Everything needed to go on from the end of a step: set before the next E-step, so that resuming gives the same bits."""

    stage: str
    step: int
    bank: Bank  # where to look next
    plain: Bank  # where a plain step would go
    settle: float
    quiet: int
    change: float
    best: float
    last: float
    seen: tuple[tuple[Array, Array], ...]
    jumped: bool
    farthest: float
    kernels: tuple[Kernel, ...]
    sites: tuple[tuple[Array, Array] | None, ...]
    log_mass: Array
    trace: tuple[Step, ...]


class Extrapolation:
    """Where the last few steps are heading."""

    def __init__(self, seen: tuple[tuple[Array, Array], ...] = (), jumped: bool = False) -> None:
        self.seen, self.jumped = list(seen), jumped  # places, and the pulls there

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
        gamma = np.linalg.solve(gram + ridge + 1e-300 * np.eye(len(gram)), scaled.T @ (weights * pull))
        jump = -(moves + changes) @ gamma
        far = FARTHEST_JUMP / np.maximum(weights, 1e-300)  # one item must not be thrown out of its valley by what all do together
        return np.asarray(x + pull + np.clip(jump, -far, far))
