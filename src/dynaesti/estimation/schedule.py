"""The stages of a fit: a first look at some people, the list of priors, then everyone.

And the standard errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynaesti.core import Array, single_blas_thread
from dynaesti.errors import BandwidthWarning, InputError, option
from dynaesti.estimation.checkpoint import Checkpoint
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.e_step import EP_TOLERANCE_FINAL
from dynaesti.estimation.em import EMState, IterationRecord, Loop, OnIteration
from dynaesti.estimation.fitted import FittedModel
from dynaesti.estimation.hyper_grid import UnitVarianceGrid, population_grid, refine_grid
from dynaesti.estimation.likelihood_table import (
    ability_grid,
    check_probability,
    check_reach,
    tabulate_items,
)
from dynaesti.estimation.people import People, PeopleInMemory
from dynaesti.estimation.population import (
    PriorMixture,
    estimate_mixing_weights,
    log_prior_of_weights,
    mixture_log_evidence,
    select_priors_greedily,
)
from dynaesti.estimation.scale import Point
from dynaesti.estimation.site_layout import SiteLayout
from dynaesti.estimation.standard_errors import (
    item_covariances,
    shared_covariance,
    use_joint_information,
)
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.model import ItemBank, Kernel

# sites of the first look, and of the search for priors
SOME = 60_000
FEW = 20_000
# answers an item has in the first look, on average: fewer would mislead more than they save
ANSWERS = 100
FIRST_LOOK = 4  # EM steps before the search
MOST_PRIORS = 4  # mixed at most
# nats of the few people's evidence that a prior must bring, and that those added late must bring
# together
WORTH = 0.5
WORTH_LATE = 2.0
# nats a parameter that the items gained since the search for priors, about a seventh of a
# standard error: no need of another
HARDLY = 0.01
STAGES = ("first look", "some people", "everyone", "everyone, with priors missed before")
# tolerance of grafting in the search: the evidence is stationary in the sites, so its own error
# is about the square
SEARCHING = 1e-2
LOOSER = 10.0  # the first look may stop at so many times the tolerance


@dataclass(frozen=True)
class EMResult:
    """What the stages leave.

    The last look, the priors, the trace, and the items' standard errors.
    """

    point: Point
    priors: PriorMixture
    trace: tuple[IterationRecord, ...]
    converged: bool
    covariance: (
        tuple[Array, ...] | None
    )  # of the items' parameters, a block each: (items, parameters, parameters)
    shared: Array | None  # of the abilities' zero and log unit, a part of every item's: (2, 2)

    def common(self, coding: ResponseCoding, options: Mapping[str, Any]) -> FittedModel:
        """What a fit keeps of it."""
        return FittedModel(
            coding,
            self.point.bank,
            self.priors.kernels,
            self.priors.share,
            self.covariance,
            self.shared,
            self.trace,
            self.converged,
            {**options, "farthest": self.point.farthest},
            (),
        )


def typical_times(person_summary: PersonSummary, some: SiteLayout) -> tuple[float, float]:
    """Median span of the people who have any, and the typical gap between the answers of some of
    them.
    """
    spans = (person_summary.last - person_summary.first)[person_summary.last > person_summary.first]
    if not spans.size:
        return 0.0, 1.0
    inner = np.ones(some.times.size, dtype=bool)
    inner[some.site_start[:-1]] = False
    gaps = np.diff(some.times, prepend=0.0)[inner]
    typical = float(np.median(spans))
    return typical, float(min(np.median(gaps), typical / 20)) if gaps.size else typical / 20


@dataclass
class EMSchedule:
    """The stages of one fit, run one after the other; a mark resumes in the midst of one."""

    people: People
    kernel: Kernel
    iterations: int
    tolerance: float
    threads: int | None = None
    listen: OnIteration | None = None
    checkpoint: Checkpoint | None = None
    errors: bool = True
    known: PriorMixture | None = (
        None  # of an earlier fit of nearly the same data: no search for them
    )
    trace: list[IterationRecord] = field(default_factory=list)
    resume: EMState | None = None

    @single_blas_thread()
    def run(self, bank: ItemBank) -> EMResult:
        """All of them."""
        self.resume = None if self.checkpoint is None else self.checkpoint.resume(bank)
        person_summary = self.people.person_summary
        few = PeopleInMemory(self.people.take(person_summary.sample(FEW)), self.threads)
        space = None if self.known is not None else self._space(few.e_step.answers)
        priors = self.known or PriorMixture.one(
            self.kernel if space is None else space.at(tuple(axis.centre for axis in space.axes))
        )
        if self.known is None and not self._past(1):
            bank, priors = self._first_passes(bank, priors, few, space)
        loop = self._loop(2, self.people, priors)
        converged = False
        again = self._past(2)
        if not again:
            bank, converged = loop.run(bank, self._most(), self.tolerance, self._taken(2))
            again = (
                space is not None
                and bool(space.axes)
                and len(self.trace) < self.iterations
                and self._moved_on(bank)
                and self._add_missed(loop, few, bank, space)
            )
        if again:
            loop.stage = STAGES[3]
            bank, converged = loop.run(bank, self._most(), self.tolerance, self._taken(3))
        point, _ = loop.look(bank, EP_TOLERANCE_FINAL, counting=False)
        check_reach(point.farthest)
        check_probability(point.bank, point.log_evidence, self.people.answers)
        spread, shared = self._covariance(loop, point) if self.errors else (None, None)
        return EMResult(point, loop.priors, tuple(self.trace), converged, spread, shared)

    def _first_passes(
        self,
        bank: ItemBank,
        priors: PriorMixture,
        few: PeopleInMemory,
        space: UnitVarianceGrid | None,
    ) -> tuple[ItemBank, PriorMixture]:
        """Items and priors to begin with, from some people where these are a small part of all."""
        person_summary = self.people.person_summary
        chosen = person_summary.sample(max(SOME, ANSWERS * bank.item_count))
        some = (
            PeopleInMemory(self.people.take(chosen), self.threads)
            if chosen.size < 0.4 * person_summary.people
            else None
        )
        if space is not None and space.axes and not self._past(0):
            first = self._loop(0, some or self.people, priors)
            bank, _ = first.run(
                bank, min(self.iterations, FIRST_LOOK), LOOSER * self.tolerance, self._taken(0)
            )
            priors = select_priors(few, bank, space)
        if some is not None and len(self.trace) < self.iterations:
            look = self._loop(1, some, priors)
            bank, _ = look.run(
                bank,
                min(self.iterations, len(self.trace) + 20),
                LOOSER * self.tolerance,
                self._taken(1),
            )
            priors = look.priors
        return bank, priors

    def _covariance(self, loop: Loop, point: Point) -> tuple[tuple[Array, ...], Array]:
        bank = point.bank
        found = self.people.information(
            bank,
            point.grid,
            list(loop.priors.kernels),
            loop.priors.share,
            use_joint_information(bank, self.people.person_summary.people),
        )
        return item_covariances(bank, found), shared_covariance(found)

    def _space(self, few: SiteLayout) -> UnitVarianceGrid | None:
        """The priors to choose from; none for constant abilities."""
        if self.kernel.static:
            return None
        span, gap = typical_times(self.people.person_summary, few)
        if span <= 0:
            first = self.people.person_summary.first
            last = self.people.person_summary.last
            who = (
                "everybody answered at one instant"
                if first.min() == last.max()
                else "nobody answered at more than one instant"
            )
            raise InputError(
                f"time: {who}, so nothing can be seen of change; use "
                f"{option('bandwidth', float('inf'))}"
            )
        return population_grid(self.kernel, span, gap)

    def _past(self, stage: int) -> bool:
        """Whether the mark lies beyond a stage."""
        return self.resume is not None and STAGES.index(self.resume.stage) > stage

    def _taken(self, stage: int) -> EMState | None:
        """The mark, if it lies in this stage; it serves once."""
        found = (
            self.resume
            if self.resume is not None and STAGES.index(self.resume.stage) == stage
            else None
        )
        self.resume = None if found is not None else self.resume
        return found

    def _most(self) -> int:
        return max(self.iterations, len(self.trace) + 1)

    def _loop(self, stage: int, people: People, priors: PriorMixture) -> Loop:
        return Loop(
            people, priors, STAGES[stage], self.listen, self.trace, self.checkpoint, self.threads
        )

    def _moved_on(self, bank: ItemBank) -> bool:
        """Whether the items have moved since the search for priors, so that another might find
        others.
        """
        everyone = [step.objective for step in self.trace if step.stage == STAGES[2]]
        by_some = any(step.stage == STAGES[1] for step in self.trace)
        return by_some or abs(everyone[-1] - everyone[0]) > HARDLY * bank.free_count

    def _add_missed(
        self, loop: Loop, few: PeopleInMemory, bank: ItemBank, space: UnitVarianceGrid
    ) -> bool:
        """Priors that the population uses now that the items have moved join the loop.

        Whether there are any.
        """
        found = select_priors(few, bank, space)
        missed = np.array(
            [k for k, kernel in enumerate(found.kernels) if kernel not in loop.priors.kernels],
            dtype=np.int64,
        )
        if not missed.size:
            return False
        joined = loop.priors.with_more(replace(found.take(missed), share=found.share[missed]))
        logs = _evidence(few, bank, joined)
        chosen = select_priors_greedily(logs, joined.log_mass, MOST_PRIORS, WORTH)
        here = np.arange(len(loop.priors.kernels))
        if (
            _mixed(logs[chosen], joined.log_mass[chosen])
            < _mixed(logs[here], joined.log_mass[here]) + WORTH_LATE
        ):
            return False
        loop.priors = replace(joined, share=estimate_mixing_weights(logs, joined.log_mass)).take(
            chosen
        )
        loop.people.drop_cached(list(loop.priors.kernels))
        return True


def _evidence(few: PeopleInMemory, bank: ItemBank, priors: PriorMixture) -> Array:
    """Log evidence of each of few people under each of the priors."""
    kernels = list(priors.kernels)
    return few.e_step.run(
        tabulate_items(bank, ability_grid(bank)), kernels, priors.share, [None] * len(kernels), 1e-4
    ).evidence


def _mixed(logs: Array, log_mass: Array) -> float:
    """Log evidence of everyone under a list of priors, its shares learned."""
    share = estimate_mixing_weights(logs, log_mass)
    return mixture_log_evidence(logs, share) + log_prior_of_weights(share, log_mass)


def select_priors(few: PeopleInMemory, bank: ItemBank, space: UnitVarianceGrid) -> PriorMixture:
    """The priors that the population uses, from a look at few people."""
    table = tabulate_items(bank, ability_grid(bank))
    settled: dict[
        bool, tuple[Array, Array]
    ] = {}  # sites of constant and of moving abilities: they hardly depend on the prior

    def evidence(kernels: list[Kernel]) -> list[Array]:
        if not kernels:
            return []
        found = few.e_step.run(
            table,
            kernels,
            np.ones(len(kernels)),
            [settled.get(kernel.static) for kernel in kernels],
            SEARCHING,
        )
        settled.update(
            {
                kernel.static: (g.precision, g.shift)
                for kernel, g in zip(kernels, found.grafted, strict=True)
            }
        )
        return list(found.evidence)

    def weigh(results: list[Array], log_mass: Array) -> Array:
        return estimate_mixing_weights(np.array(results), log_mass)

    found = refine_grid(space, evidence, weigh)
    mass = np.array([e.log_mass for e in found])
    share = weigh([e.result for e in found], mass)
    keep = select_priors_greedily(np.array([e.result for e in found]), mass, MOST_PRIORS, WORTH)
    _tell_edge(space, [e.kernel for e in found], share)
    few.drop_cached([])
    return PriorMixture(tuple(e.kernel for e in found), mass, share).take(keep)


def _tell_edge(space: UnitVarianceGrid, kernels: list[Kernel], share: Array) -> None:
    """Weight that piles up at the shortest bandwidth means misfit or local dependence, not
    learning.
    """
    for axis in space.axes:
        if axis.field != "bandwidth":
            continue
        at = [np.log(kernel.summands[axis.summands[0]].number("bandwidth")) for kernel in kernels]
        edge = float(share[np.array(at) <= axis.lowest + 1e-9].sum())
        if edge > 0.3:
            warnings.warn(
                f"bandwidth: {edge:.0%} of the population's weight lies at "
                f"{np.exp(axis.lowest):.3g}, the shortest that these "
                "times can show; that is rather misfit or answers that depend on each other than "
                "change of ability",
                BandwidthWarning,
                stacklevel=6,
            )
