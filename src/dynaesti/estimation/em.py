"""The loop over people and items: E-steps, M-steps, and the extrapolation between them.

Plain EM crawls: whatever the curves hide from the items (their level, their scale, a drift shared
by everyone) takes hundreds of steps. Such slow movements are extrapolated from the last few steps:
the combination whose pulls cancel (Anderson's; SQUAREM is the same from the last two, and takes
three times the steps here). A jump is kept only if the penalised evidence, which every E-step
yields for free, has not fallen. Grafting must be settled well within the items' own steps, else the
pulls carry the past along.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from dynaesti.core import AndersonAcceleration, Array
from dynaesti.estimation.e_step import EP_TOLERANCE_FINAL
from dynaesti.estimation.likelihood_table import ability_grid
from dynaesti.estimation.people import CheckpointArrays, People
from dynaesti.estimation.population import (
    PriorMixture,
    estimate_mixing_weights,
    log_prior_of_weights,
    mixture_log_evidence,
)
from dynaesti.estimation.scale import Point, scale_step
from dynaesti.model import ItemBank

WARM_UP = 1  # plain EM steps before the first one
FIRST = 5e-2  # tolerance of grafting at the first look, when items are guesses
LOOSE = 1e-2  # tolerance of grafting on the way, at most: a small part of the items' own step
PART = 2e-3
FALL = 0.1  # nats that a jump may lose: grafting is not exact before the end
# standard errors that a step may have where priors are learned along and the evidence of these
# falls: past its top
FALLING = 1.0
# nats an answer and unit of tolerance that a step at rest may gain where priors are learned along
GAIN = 3e-3
# weight in the population below which a prior leaves, and after which steps
IDLE = 2e-2
PRUNING = (1, 3, 6, 12, 24)


@dataclass(frozen=True)
class IterationRecord:
    """One line of the trace."""

    iteration: int
    stage: str
    # log evidence + log prior of the items; of the priors, where these are learned from the
    # items
    objective: float
    log_evidence: float
    change: float  # step of the parameters in their standard errors, root mean square
    seconds: float
    rows_per_second: float


OnIteration = Callable[[IterationRecord], None]


@dataclass
class Loop:
    """EM over fixed people and a fixed list of priors."""

    people: People
    priors: PriorMixture
    stage: str = "fit"
    listen: OnIteration | None = None
    trace: list[IterationRecord] = field(default_factory=list)
    mark: Callable[[EMState], None] | None = None  # told after every step
    threads: int | None = None  # of the M-step

    def __post_init__(self) -> None:
        self._began = time.perf_counter()
        self._farthest = 0.0
        self._steps = 0

    def look(
        self, bank: ItemBank, tolerance: float, counting: bool = True
    ) -> tuple[Point, Array | None]:
        """The E-step at a bank, and the counts.

        These weigh each person's priors by the population's shares as they were before; the shares
        found now serve the next look. So one pass over the people is enough, wherever they are.
        """
        while True:
            z = ability_grid(bank, self._farthest)
            tally = self.people.look(
                bank, z, list(self.priors.kernels), self.priors.share, tolerance, counting
            )
            self._farthest = max(self._farthest, min(tally.farthest, 2 * z[-1]))
            if ability_grid(bank, self._farthest).size == z.size:
                break  # else someone is beyond the grid: look again on a wider one
        share = estimate_mixing_weights(tally.evidence, self.priors.log_mass)
        self.priors = replace(self.priors, share=share)
        evidence = mixture_log_evidence(tally.evidence, share)
        objective = evidence + bank.log_prior() + log_prior_of_weights(share, self.priors.log_mass)
        return Point(
            bank, objective, evidence, tally.unit, tally.farthest, tally.n_unconverged, z
        ), tally.counts

    def _prune(self) -> None:
        """Drop the priors that hardly anyone uses: they cost time."""
        busy = np.flatnonzero(self.priors.share > IDLE)
        if busy.size < len(self.priors.kernels):
            self.priors = self.priors.take(busy)
            self.people.drop_cached(list(self.priors.kernels))

    def _stepped(
        self, bank: ItemBank, tolerance: float
    ) -> tuple[Point, ItemBank, Array, Array, float]:
        """A look and an M-step.

        The point, the bank after it, the pull, its weights, and the change in standard errors.

        Where priors are learned from the items, the point's objective has the items integrated out,
        by Laplace's method: at their peaks alone the evidence grows for ever with slopes and
        spreads (Supreme Court, 9 votes a case: 3,200 nats in 120 steps while that of priors fell by
        3,600, and forecasts got worse).
        """
        here, counts = self.look(bank, tolerance)
        assert counts is not None
        plain, weights, room = bank.improved(counts, here.grid, self.threads)
        here, plain = (
            replace(here, objective=here.objective + room),
            scale_step(here, plain, weights),
        )
        pull = plain.to_vector() - bank.to_vector()
        return here, plain, pull, weights, _length(pull * weights)

    def _note(self, point: Point, change: float) -> None:
        now = time.perf_counter() - self._began
        done = len(self.trace) + 1
        self._steps = self._steps + 1
        speed = float(self.people.answers * self._steps / max(now, 1e-9))
        self.trace.append(
            IterationRecord(
                done, self.stage, point.objective, point.log_evidence, change, now, speed
            )
        )
        if self.listen is not None:
            self.listen(self.trace[-1])

    def _still(self, here: Point, before: float, change: float, tolerance: float) -> bool:
        """Whether a step moved next to nothing, see `run`."""
        bank = here.bank
        gain = here.objective - before
        if bank.learns_hyperpriors:
            return (
                change < (10 * tolerance if gain > 0.0 else FALLING)
                and gain < GAIN * tolerance * self.people.answers
            )
        return change < tolerance and abs(gain) < 0.1 * tolerance * np.sqrt(bank.free_count + 1)

    def run(
        self, bank: ItemBank, most: int, tolerance: float, resume: EMState | None = None
    ) -> tuple[ItemBank, bool]:
        """EM until it is at rest, and the last steps lead nowhere else or the next one is at rest
        too; or from where a mark was set.

        At rest: a step moves the parameters by less than `tolerance` of their standard errors (root
        mean square), and the evidence by no more than 0.1 × `tolerance` nats times the root of the
        number of parameters. Where priors are learned along, valleys are flat: there steps are
        plain, and at rest they may be ten times as long and gain `GAIN` × `tolerance` nats an
        answer, or nothing at all. Returns the last bank, and whether the loop came to rest.
        """
        s = resume or EMState(
            self.stage,
            0,
            bank,
            bank,
            FIRST,
            0,
            -np.inf,
            -np.inf,
            (),
            False,
            self._farthest,
            self.priors,
            {},
            (),
        )
        if resume is not None:
            self.priors = s.priors
            self.trace[:] = s.trace
            self._farthest = s.farthest
            self.people.restore(s.memory, list(s.priors.kernels))
        jumps = AndersonAcceleration(s.seen, s.jumped)
        while True:
            here, plain, pull, weights, change = self._stepped(s.bank, s.settle)
            if jumps.jumped and here.objective < s.best - FALL:
                jumps = AndersonAcceleration()
                here, plain, pull, weights, change = self._stepped(
                    s.plain, s.settle
                )  # the plain step from where the jump began
            if s.step in PRUNING:
                self._prune()
            self._note(here, change)
            still = self._still(here, s.last, change, tolerance)
            x = here.bank.to_vector()
            plainly = s.step < WARM_UP or here.bank.learns_hyperpriors
            target = plain.to_vector() if plainly else jumps.next(x, pull, weights)
            near = jumps.jumped and _length(weights * (target - x)) < tolerance
            at_rest = bool(still and (near or s.quiet >= 1))
            if at_rest or len(self.trace) >= most:
                return plain, at_rest
            settle = float(
                np.clip(
                    PART * np.abs(pull * weights).max(initial=0.0), 10 * EP_TOLERANCE_FINAL, LOOSE
                )
            )
            s = EMState(
                self.stage,
                s.step + 1,
                plain.from_vector(target),
                plain,
                settle,
                s.quiet + 1 if still else 0,
                max(here.objective, s.best),
                here.objective,
                tuple(jumps.seen),
                jumps.jumped,
                self._farthest,
                self.priors,
                self.people.memory(),
                tuple(self.trace),
            )
            if self.mark is not None:
                self.mark(s)


def _length(steps: Array) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(steps**2))) if steps.size else 0.0


@dataclass(frozen=True)
class EMState:
    """Everything needed to go on from the end of a step.

    Set before the next E-step, so that resuming gives the same bits.
    """

    stage: str
    step: int
    bank: ItemBank  # where to look next
    plain: ItemBank  # where a plain step would go
    settle: float
    quiet: int
    best: float
    last: float
    seen: tuple[tuple[Array, Array], ...]
    jumped: bool
    farthest: float
    priors: PriorMixture
    memory: CheckpointArrays  # of the crowd
    trace: tuple[IterationRecord, ...]
