"""The stages of a fit: a first pass over some people, the choice of kernels, then everyone.

The last stage is followed by an E-step of tight tolerance and the standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynaesti.core import Array, single_blas_thread
from dynaesti.errors import InputError, option
from dynaesti.estimation.checkpoint import Checkpoint
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.cohort_design import CohortDesign, design_cohort
from dynaesti.estimation.e_step import EP_TOLERANCE_FINAL
from dynaesti.estimation.effects_design import add_effects
from dynaesti.estimation.em import (
    EMResult,
    EMSettings,
    EMState,
    EStepSummary,
    IterationRecord,
    e_step,
    run_em,
)
from dynaesti.estimation.fitted import FittedModel
from dynaesti.estimation.grid import check_probability, check_reach
from dynaesti.estimation.hyper_grid import UnitVarianceGrid, population_grids
from dynaesti.estimation.item_drift import ItemDrift, drift_periods, learn_drift
from dynaesti.estimation.item_nodes import ItemNodes, has_item_nodes, item_nodes
from dynaesti.estimation.kernel_search import SearchSettings, add_missing_priors, select_priors
from dynaesti.estimation.noise_check import probability_of_ability, with_spread
from dynaesti.estimation.people import EStepRequest, People, PeopleInMemory
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.progress import OnIteration
from dynaesti.estimation.simpler_model import SimplerModel, has_simpler_model, simpler_model
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.estimation.standard_errors import (
    estimated_cohort,
    item_covariances,
    shared_covariance,
    use_joint_information,
)
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.model import Cohort, Effects, ItemBank, Kernel, Level

STAGES = ("first pass", "subsample", "everyone", "everyone, with kernels missed before")
FIRST_PASS, SUBSAMPLE, EVERYONE, AGAIN = range(len(STAGES))

Grids = tuple[UnitVarianceGrid, ...]  # of kernels of the same form, from rough to smooth


@dataclass(frozen=True)
class ScheduleSettings:
    """How much of the data each stage sees.

    Found on the logs of `benchmarks`: a fit takes a fifth of the time of one without stages.
    """

    first_sites: int = 60_000  # sites of the subsample in the first stages
    search_sites: int = 20_000  # sites of the people by whom kernels are chosen
    responses_per_item: int = 100  # in the first stages: fewer would mislead more than they save
    # fraction of the people: where a subsample would be larger, all people are as cheap
    max_fraction: float = 0.4
    first_iterations: int = 4  # before kernels are chosen
    subsample_iterations: int = 20
    looser: float = 10.0  # tolerance of the first stages, relative to that of the last
    # Kernels are chosen again if the objective has gained more nats for each parameter since then:
    # about a seventh of a standard error.
    moved: float = 0.01
    search: SearchSettings = field(default_factory=SearchSettings)


DEFAULT = ScheduleSettings()


@dataclass(frozen=True)
class Estimate:
    """The result of all stages."""

    expected: EStepSummary  # the last E-step, of tight tolerance
    priors: PriorMixture
    trace: tuple[IterationRecord, ...]
    converged: bool
    covariance: tuple[Array, ...] | None  # of the items' parameters, a block each
    scale_covariance: (
        Array | None
    )  # (2, 2) of the abilities' zero and log unit: a part of every item's
    left_out: str  # what of the cohort cannot be learned, in words
    item_nodes: tuple[ItemNodes, ...] | None
    simpler: SimplerModel | None  # that the evidence clearly prefers
    item_drift: ItemDrift | None = None
    ability_probability: float = 1.0  # that people differ at all: `noise_check`
    kernel_parameters: int = 0  # hyper-parameters of the population's kernels that were learned

    def fitted(self, coding: ResponseCoding, options: Mapping[str, Any]) -> FittedModel:
        """The part of the result that a fit keeps."""
        return FittedModel(
            coding,
            self.expected.bank,
            self.priors,
            self.covariance,
            self.scale_covariance,
            self.trace,
            self.converged,
            {
                **options,
                "cohort_left_out": self.left_out,
                "ability_probability": self.ability_probability,
                "kernel_parameters": self.kernel_parameters,
                "simpler_model": None if self.simpler is None else list(self.simpler),
            },
            (),
            self.expected.max_abs_ability_now,
            self.item_nodes,
            self.item_drift,
        )


def typical_times(summary: PersonSummary, sites: PeopleSites) -> tuple[float, float]:
    """Median span of people with several instants, and the typical gap between instants.

    The gap is that of the people in `sites`; the spans are those of everyone in `summary`.
    """
    spans = (summary.last - summary.first)[summary.last > summary.first]
    if not spans.size:
        return 0.0, 1.0
    layout = sites.layout
    inner = np.ones(layout.n_sites, dtype=bool)
    inner[layout.site_start[:-1]] = False
    gaps = np.diff(layout.times, prepend=0.0)[inner]
    span = float(np.median(spans))
    return span, float(min(np.median(gaps), span / 20)) if gaps.size else span / 20


@dataclass
class EMSchedule:
    """The stages of one fit, run one after the other; a checkpoint may resume within a stage."""

    people: People
    kernel: Kernel
    em: EMSettings
    threads: int | None = None
    on_iteration: OnIteration | None = None
    checkpoint: Checkpoint | None = None
    standard_errors: bool = True
    known_priors: PriorMixture | None = None  # of an earlier fit of nearly the same data
    learns_cohort: bool = False  # whether the population's mean over time is learned
    groups: Sequence[Any] = ()  # labels of the groups that have curves of their own
    effects: Effects | None = None  # columns that move people or answers
    settings: ScheduleSettings = field(default_factory=lambda: DEFAULT)
    resume: EMState | None = None
    left_out: str = ""  # of the cohort, in words

    @single_blas_thread()
    def run(self, bank: ItemBank) -> Estimate:
        """Run all stages."""
        self.resume = None if self.checkpoint is None else self.checkpoint.resume(bank, STAGES)
        chosen = self.people.person_summary.sample(self.settings.search_sites)
        searchers = PeopleInMemory(self.people.subset(chosen), self.threads)
        cohort = self._cohort(bank, searchers.sites)
        grids = () if self.known_priors is not None else self._kernel_grids(searchers.sites, cohort)
        priors = self._first_priors(grids, cohort)
        state = EMState(STAGES[FIRST_PASS], bank, bank, priors, priors.cohort)
        if self.known_priors is None and not self._is_past(SUBSAMPLE):
            state = self._first_stages(state, searchers, grids)
        if self._is_past(EVERYONE):
            result = self._run(AGAIN, self.people, state)
        else:
            result = self._run(EVERYONE, self.people, state)
            more = self._priors_after(result, searchers, grids)
            if more is not None:
                self.people.drop_cached(list(more.kernels))
                state = _continued(result, more)
                state = replace(state, max_abs_ability=result.max_abs_ability)
                result = self._run(AGAIN, self.people, state)
        known = probability_of_ability(self.people, searchers, result.bank, result.priors)
        if known < 1.0:
            bank, priors = with_spread(result.bank, result.priors, known)
            result = replace(result, bank=bank, priors=priors)
        return replace(
            self._finish(result),
            ability_probability=known,
            kernel_parameters=_learned_parameters(result.priors, grids),
        )

    def _cohort(self, bank: ItemBank, sites: PeopleSites) -> Cohort | None:
        """The cohort before it is learned, from a sample of the people; None without one."""
        summary = self.people.person_summary
        ends = (float(summary.first.min()), float(summary.last.max()))
        earlier = None if self.known_priors is None else self.known_priors.cohort
        design = CohortDesign(None, self.left_out)
        if self.learns_cohort:
            weight = np.bincount(summary.group, summary.n_responses, max(len(self.groups), 1))
            share = weight / weight.sum()
            design = design_cohort(sites, bank, ends, share, self.groups, earlier)
        if self.effects is not None:
            design = add_effects(design, self.effects, sites, bank, ends, earlier)
        self.left_out = design.left_out
        return design.cohort

    def _kernel_grids(self, sites: PeopleSites, cohort: Cohort | None) -> Grids:
        """The kernels to choose from, a grid for each smoothness; none for constant abilities."""
        if self.kernel.static:
            return ()
        summary = self.people.person_summary
        span, gap = typical_times(summary, sites)
        if span <= 0 and cohort is not None and cohort.has_curve:
            return ()  # one date for each person: the cohort's curve is all that can be seen
        if span <= 0:
            one_instant = summary.first.min() == summary.last.max()
            who = (
                "everybody answered at one instant"
                if one_instant
                else "nobody answered at more than one instant"
            )
            raise InputError(
                f"time: {who}, so nothing can be seen of change; use "
                f"{option('bandwidth', float('inf'))}"
            )
        return population_grids(self.kernel, span, gap, summary.typical_site_span)

    def _first_priors(self, grids: Grids, cohort: Cohort | None) -> PriorMixture:
        """The kernels to start with, before any are chosen."""
        if self.known_priors is not None:
            return replace(self.known_priors, cohort=cohort)
        if not grids:
            constant = self.kernel if self.kernel.static else Level(amplitude=1.0)
            return PriorMixture.single(constant, cohort)
        centre = tuple(axis.centre for axis in grids[0].axes)
        return PriorMixture.single(grids[0].at(centre), cohort)

    def _first_stages(self, state: EMState, searchers: PeopleInMemory, grids: Grids) -> EMState:
        """Items and kernels for the main stage.

        They come from a subsample, where that is a small part of everyone.
        """
        settings = self.settings
        summary = self.people.person_summary
        n_sites = max(settings.first_sites, settings.responses_per_item * state.bank.item_count)
        chosen = summary.sample(n_sites)
        subsample = None
        if chosen.size < settings.max_fraction * summary.n_people:
            subsample = PeopleInMemory(self.people.subset(chosen), self.threads)
        loose = settings.looser * self.em.tolerance
        most = self.em.max_iterations
        if _is_open(grids) and not self._is_past(FIRST_PASS):
            limit = min(most, settings.first_iterations)
            result = self._run(FIRST_PASS, subsample or self.people, state, limit, loose)
            cohort = result.priors.cohort
            priors = select_priors(searchers, result.bank, cohort, grids, settings.search)
            state = _continued(result, priors)
        if subsample is not None and len(state.trace) < most:
            limit = min(most, len(state.trace) + settings.subsample_iterations)
            result = self._run(SUBSAMPLE, subsample, state, limit, loose)
            state = _continued(result, result.priors)
        return state

    def _run(
        self,
        stage: int,
        people: People,
        state: EMState,
        max_iterations: int | None = None,
        tolerance: float | None = None,
    ) -> EMResult:
        """Run one stage, from a state, or from the checkpoint if that is of this stage."""
        state = replace(state, stage=STAGES[stage])
        if self.resume is not None and self.resume.stage == STAGES[stage]:
            state = self.resume
            self.resume = None
            people.restore(state.people or {}, list(state.priors.kernels))
        settings = replace(
            self.em,
            max_iterations=max_iterations or max(self.em.max_iterations, len(state.trace) + 1),
            tolerance=tolerance or self.em.tolerance,
        )
        return run_em(people, state, settings, self.threads, self.on_iteration, self.checkpoint)

    def _is_past(self, stage: int) -> bool:
        """Whether the checkpoint is of a later stage."""
        return self.resume is not None and STAGES.index(self.resume.stage) > stage

    def _priors_after(
        self, result: EMResult, searchers: PeopleInMemory, grids: Grids
    ) -> PriorMixture | None:
        """The mixture with kernels that the population needs now that the items have changed.

        None if there are none.
        """
        if not _is_open(grids) or len(result.trace) >= self.em.max_iterations:
            return None
        objectives = [line.objective for line in result.trace if line.stage == STAGES[EVERYONE]]
        was_subsampled = any(line.stage == STAGES[SUBSAMPLE] for line in result.trace)
        gained = abs(objectives[-1] - objectives[0])
        if not was_subsampled and gained <= self.settings.moved * result.bank.free_count:
            return None
        return add_missing_priors(
            searchers, result.bank, grids, result.priors, self.settings.search
        )

    def _finish(self, result: EMResult) -> Estimate:
        """Make a last E-step of tight tolerance, and compute the standard errors."""
        expected = e_step(
            self.people,
            result.bank,
            result.priors,
            result.max_abs_ability,
            EStepRequest(
                EP_TOLERANCE_FINAL,
                with_counts=_needs_counts(result.bank),
                drift_periods=drift_periods(self.people.person_summary),
            ),
        )
        check_reach(expected.max_abs_ability_now)
        check_probability(expected.bank, expected.log_evidence, self.people.n_responses)
        covariance = shared = None
        priors = expected.priors
        if self.standard_errors:
            found = self.people.information(
                expected.bank,
                expected.grid,
                expected.priors,
                use_joint_information(expected.bank, self.people.person_summary.n_people),
            )
            covariance = item_covariances(expected.bank, found)
            shared = shared_covariance(found)
            priors = replace(priors, cohort=estimated_cohort(priors.cohort, expected.bank, found))
        nodes = simpler = None
        sums = expected.drift
        if expected.counts is not None and has_item_nodes(expected.bank):
            nodes = item_nodes(expected.bank, expected.counts, expected.grid)
        if expected.counts is not None and has_simpler_model(expected.bank):
            simpler = simpler_model(expected.bank, expected.counts, expected.grid)
        return Estimate(
            expected,
            priors,
            result.trace,
            result.converged,
            covariance,
            shared,
            self.left_out,
            nodes,
            simpler,
            None if sums is None else learn_drift(expected.bank, sums),
        )


def _needs_counts(bank: ItemBank) -> bool:
    """Whether the last E-step's expected counts are used."""
    return has_item_nodes(bank) or has_simpler_model(bank)


def _learned_parameters(priors: PriorMixture, grids: Grids) -> int:
    """Number of hyper-parameters that were learned of the population's distribution of kernels.

    However many kernels are left of the grid, they stand for one distribution on it: its centre and
    its spread along each axis. Their own number would make nested fits differ by what was pruned.
    """
    is_moving = any(not kernel.static for kernel in priors.kernels)
    return 2 * len(grids[0].axes) if _is_open(grids) and is_moving else 0


def _is_open(grids: Grids) -> bool:
    """Whether there are several kernels to choose from."""
    return len(grids) > 1 or any(grid.axes for grid in grids)


def _continued(result: EMResult, priors: PriorMixture) -> EMState:
    """The state for the next stage, with items and trace of the last one."""
    return EMState(
        STAGES[EVERYONE], result.bank, result.bank, priors, priors.cohort, trace=result.trace
    )
