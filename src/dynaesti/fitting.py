"""The stages of a fit: a first look at some people, the list of priors, then everyone; and the standard errors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from dynaesti.arrays import Array, Ints
from dynaesti.bank import Bank
from dynaesti.candidates import UnitSpace, explore, unit_space
from dynaesti.checkpoints import Checkpoint
from dynaesti.em import Listener, Loop, Mark, Point, Step
from dynaesti.errors import BandwidthWarning, InputError
from dynaesti.expectation import Answers, Expectation, ability_grid
from dynaesti.population import population_weights
from dynaesti.priors.kernels import Kernel
from dynaesti.rows import row_table
from dynaesti.uncertainty import item_covariances

SOME, FEW = 60_000, 20_000  # sites of the first look, and of the search for priors
ANSWERS = 300  # answers an item has in the first look, on average: fewer would mislead more than they save
FIRST_LOOK = 4  # EM steps before the search
LIKELY, MISSED, MOST_PRIORS = 0.05, 0.5, 4  # weights relative to the heaviest prior's to be kept, or added late; how many at most
STAGES = ("first look", "some people", "everyone", "everyone, with priors missed before")
LOOSER = 10.0  # the first look may stop at so many times the tolerance


@dataclass(frozen=True)
class Fitted:
    """What the stages leave: the last E-step, the priors, the trace, and the items' standard errors."""

    point: Point
    kernels: tuple[Kernel, ...]
    log_mass: Array
    trace: tuple[Step, ...]
    converged: bool
    covariance: tuple[Array, ...] | None  # of the items' parameters, a block each: (items, parameters, parameters)


def typical_times(answers: Answers) -> tuple[float, float]:
    """Median span of the people who have any, and the typical gap between their answers."""
    first, last = answers.spans
    spans = (last - first)[last > first]
    if not spans.size:
        return 0.0, 1.0
    inner = np.ones(answers.times.size, dtype=bool)
    inner[answers.site_start[:-1]] = False
    gaps = np.diff(answers.times, prepend=0.0)[inner]
    return float(np.median(spans)), float(min(np.median(gaps), np.median(spans) / 20))


def some_people(answers: Answers, sites: int) -> Ints:
    """People spread evenly over sizes and times, with about so many sites together; labels and order do not matter."""
    if answers.times.size <= 1.5 * sites:
        return np.arange(answers.people)
    counts = np.diff(answers.site_start)
    first, last = answers.spans
    middle = np.add.reduceat(answers.times, answers.site_start[:-1]) / counts
    order = np.lexsort((middle, last, first, counts))
    wanted = max(20, round(answers.people * sites / answers.times.size))
    return np.sort(order[np.unique(np.linspace(0, answers.people - 1, min(wanted, answers.people)).round().astype(np.int64))])


@dataclass
class Stages:
    """The stages of one fit, run one after the other; a mark resumes in the midst of one."""

    answers: Answers
    kernel: Kernel
    iterations: int
    tolerance: float
    threads: int | None = None
    listen: Listener | None = None
    checkpoint: Checkpoint | None = None
    errors: bool = True
    trace: list[Step] = field(default_factory=list)
    resume: Mark | None = None

    def run(self, bank: Bank) -> Fitted:
        """All of them."""
        self.resume = None if self.checkpoint is None else self.checkpoint.resume(bank)
        space = self._space()
        kernels = [self.kernel if space is None else space.at(tuple(axis.centre for axis in space.axes))]
        mass = np.zeros(1)
        learns = space is not None and bool(space.axes)
        some = some_people(self.answers, max(SOME, ANSWERS * bank.item_count))
        some = some if some.size < 0.4 * self.answers.people else np.arange(self.answers.people)
        few = Expectation(self.answers.take(some_people(self.answers, FEW)), self.threads)
        if space is not None and learns and not self._past(0):
            first = self._loop(0, self.answers.take(some), kernels, mass)
            bank = first.run(bank, min(self.iterations, FIRST_LOOK), LOOSER * self.tolerance, self._taken(0))[0].bank
            kernels, mass = search(few, bank, space, LIKELY)
        if some.size < self.answers.people and not self._past(1) and len(self.trace) < self.iterations:
            look = self._loop(1, self.answers.take(some), kernels, mass)
            bank = look.run(bank, min(self.iterations, len(self.trace) + 20), LOOSER * self.tolerance, self._taken(1))[0].bank
            kernels, mass = look.kernels, look.log_mass
        loop, point, converged = self._loop(2, self.answers, kernels, mass), None, False
        if not self._past(2):
            point, converged = loop.run(bank, self._most(), self.tolerance, self._taken(2))
            bank = point.bank
        again = self._past(2) or (space is not None and learns and len(self.trace) < self.iterations
                                  and self._add_missed(loop, few, bank, space))
        if point is None or again:
            loop.stage = STAGES[3]
            point, converged = loop.run(bank, self._most(), self.tolerance, self._taken(3))
        spread = item_covariances(loop, point) if self.errors else None
        if self.checkpoint is not None:
            self.checkpoint.done()
        return Fitted(point, tuple(loop.kernels), loop.log_mass, tuple(self.trace), converged, spread)

    def _space(self) -> UnitSpace | None:
        """The priors to choose from; none for constant abilities."""
        if self.kernel.static:
            return None
        span, gap = typical_times(self.answers)
        if span <= 0:
            raise InputError("time: everybody answered at one instant, so nothing can be seen of change; use bandwidth=inf")
        return unit_space(self.kernel, span, gap)

    def _past(self, stage: int) -> bool:
        """Whether the mark lies beyond a stage."""
        return self.resume is not None and STAGES.index(self.resume.stage) > stage

    def _taken(self, stage: int) -> Mark | None:
        """The mark, if it lies in this stage; it serves once."""
        found = self.resume if self.resume is not None and STAGES.index(self.resume.stage) == stage else None
        self.resume = None if found is not None else self.resume
        return found

    def _most(self) -> int:
        return max(self.iterations, len(self.trace) + 1)

    def _loop(self, stage: int, answers: Answers, kernels: list[Kernel], mass: Array) -> Loop:
        return Loop(Expectation(answers, self.threads), kernels, mass, STAGES[stage], self.listen, self.trace, self.checkpoint)

    def _add_missed(self, loop: Loop, few: Expectation, bank: Bank, space: UnitSpace) -> bool:
        """Priors that the population uses now that the items have moved join the loop; whether there are any."""
        found, mass = search(few, bank, space, MISSED)
        missed = [kernel for kernel in found if kernel not in loop.kernels]
        loop.kernels = [*loop.kernels, *missed]
        loop.log_mass = np.append(loop.log_mass, [m for kernel, m in zip(found, mass, strict=True) if kernel in missed])
        loop.sites = [*loop.sites, *[None] * len(missed)]
        return bool(missed)


def search(few: Expectation, bank: Bank, space: UnitSpace, likely: float) -> tuple[list[Kernel], Array]:
    """The priors that the population uses, and their log masses in the list, from a look at few people."""
    z = ability_grid(bank)
    table = row_table(float(z[0]), float(z[1] - z[0]), bank.rows(z))

    def evidence(kernels: list[Kernel]) -> list[Array]:
        return [few.graft(kernel, table, None, 1e-3).log_evidence for kernel in kernels]

    def weigh(results: list[Array], log_mass: Array) -> Array:
        return population_weights(np.array(results), log_mass, pool=True)[1]

    found = explore(space, evidence, weigh)
    mass = np.array([e.log_mass for e in found])
    share = weigh([e.result for e in found], mass)
    keep = np.sort(np.argsort(-share, kind="stable")[:MOST_PRIORS])
    keep = keep[share[keep] > likely * share.max()]
    _tell_edge(space, [found[k].kernel for k in keep], share[keep])
    few.forget([])
    return [found[k].kernel for k in keep], mass[keep]


def _tell_edge(space: UnitSpace, kernels: list[Kernel], share: Array) -> None:
    """Weight that piles up at the shortest bandwidth means misfit or local dependence, not learning."""
    for axis in space.axes:
        if axis.field != "bandwidth":
            continue
        at = [np.log(kernel.leaves[axis.leaves[0]].number("bandwidth")) for kernel in kernels]
        edge = float(share[np.array(at) <= axis.lowest + 1e-9].sum())
        if edge > 0.3:
            warnings.warn(f"bandwidth: {edge:.0%} of the population's weight lies at {np.exp(axis.lowest):.3g}, the shortest that these "
                          "times can show; that is rather misfit or answers that depend on each other than change of ability",
                          BandwidthWarning, stacklevel=6)
