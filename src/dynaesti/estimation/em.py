"""EM over people and items: the paper's DynAEsti (section II-B)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import AndersonAcceleration, Array
from dynaesti.estimation.cohort_statistics import CohortStatistics
from dynaesti.estimation.cohort_step import (
    CohortStep,
    from_vector,
    newton_step,
    scale_without_cohort,
    to_vector,
)
from dynaesti.estimation.e_step import EP_TOLERANCE_FINAL
from dynaesti.estimation.grid import ability_grid
from dynaesti.estimation.item_drift import DriftSums
from dynaesti.estimation.m_step import maximise_items
from dynaesti.estimation.people import CheckpointArrays, EStepRequest, People
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.scale import scale_step
from dynaesti.model import Cohort, ItemBank


@dataclass(frozen=True)
class EMSettings:
    """When to stop, and when an extrapolation is taken back.

    Numbers come from the logs of `benchmarks` unless a comment names another source.
    """

    max_iterations: int = 200
    tolerance: float = 0.01  # root mean square of a step, in standard errors
    warm_up: int = 1  # plain steps before the first extrapolation
    allowed_fall: float = 0.1  # nats that an extrapolation may lose: EP is not exact before the end
    # evidence that a converged step may gain: nats × tolerance × root of the number of parameters
    allowed_gain: float = 0.1
    # Where hyperpriors are learned, the objective is flat: a converged step may be longer by a
    # factor flat_step, and gain flat_gain nats × tolerance for each response. Once the evidence
    # falls, a step of falling_step standard errors counts as converged.
    flat_step: float = 10.0
    flat_gain: float = 3e-3
    falling_step: float = 1.0
    # kernels of less weight in the population are dropped after these iterations
    min_weight: float = 2e-2
    prune_after: tuple[int, ...] = (1, 3, 6, 12, 24)
    # The information on the cohort is computed anew in these iterations. It only guides steps, and
    # takes as long as a few sweeps of EP.
    cohort_information_in: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 32, 64)
    ep_tolerance_first: float = 5e-2  # in the first iteration, when items are guesses
    # The tolerance of EP, as a fraction of the items' last step: it must be well below that step,
    # or sites of earlier iterations bias the update. Errors of all n responses to an item go the
    # same way and their sum is √n times as many standard errors, so the fraction falls with it
    # (golf, 16,000 scores an item: 30 iterations, 84 with one fraction for all).
    ep_tolerance_part: float = 2e-3
    ep_tolerance_summed: float = 0.03  # / √n
    ep_tolerance_max: float = 1e-2
    ep_tolerance_min: float = 10 * EP_TOLERANCE_FINAL


@dataclass(frozen=True)
class IterationRecord:
    """One iteration in the trace of a fit."""

    iteration: int
    stage: str
    # log evidence + log prior of items; items integrated out where hyperpriors are learned
    objective: float
    log_evidence: float
    change: float  # step of the parameters in their standard errors, root mean square
    seconds: float
    rows_per_second: float


@dataclass(frozen=True)
class EMState:
    """The state of EM before an E-step; to resume from it gives the same bits."""

    stage: str
    bank: ItemBank  # items of the next E-step
    plain_bank: ItemBank  # where the last M-step led, without extrapolation
    priors: PriorMixture
    plain_cohort: Cohort | None = None  # where its last step led, without extrapolation
    cohort_information: Array | None = None  # (n_groups, n_columns, n_columns)
    iteration: int = 0
    ep_tolerance: float = EMSettings.ep_tolerance_first
    small_steps: int = 0  # in a row
    best_objective: float = -np.inf
    last_objective: float = -np.inf
    history: tuple[tuple[Array, Array], ...] = ()  # of the acceleration
    is_extrapolated: bool = False
    max_abs_ability: float = 0.0  # largest so far, which the grid must cover
    people: CheckpointArrays | None = None
    trace: tuple[IterationRecord, ...] = ()

    def taken_back(self, rejected: EStepSummary) -> EMState:
        """The state without the extrapolation; weights found by the rejected E-step are kept."""
        return replace(
            self,
            bank=self.plain_bank,
            priors=replace(rejected.priors, cohort=self.plain_cohort),
            max_abs_ability=rejected.max_abs_ability,
        )


@dataclass(frozen=True)
class EStepSummary:
    """Result of an E-step over everyone at given items."""

    bank: ItemBank
    priors: PriorMixture  # with the population's weights found in this E-step
    grid: Array  # (n_grid,) abilities
    counts: Array | None  # (n_rows, n_grid)
    objective: float  # log evidence + log priors
    log_evidence: float
    scale: Array  # (2, 2): `scale_gradient`
    max_abs_ability: float  # largest in this E-step and all before
    max_abs_ability_now: float  # largest in this E-step
    n_unconverged: int
    cohort: CohortStatistics | None
    drift: DriftSums | None


@dataclass(frozen=True)
class EMStep:
    """An E-step and the M-step after it."""

    expected: EStepSummary
    updated: ItemBank
    cohort: Cohort | None  # updated
    x: Array  # present items and cohort, as one vector
    residual: Array  # updated − present
    weights: Array  # root of the information on each entry: weighted moves are in standard errors
    objective: float
    cohort_information: Array | None

    def with_cohort(self, present: Cohort, moved: CohortStep) -> EMStep:
        """The step of the items, and one of the cohort."""
        x = to_vector(present)
        return replace(
            self,
            cohort=moved.cohort,
            x=np.append(self.x, x),
            residual=np.append(self.residual, to_vector(moved.cohort) - x),
            weights=np.append(self.weights, moved.weights),
            objective=self.objective + moved.objective,
        )

    @property
    def updated_vector(self) -> Array:
        """Updated items and cohort, as one vector."""
        items = self.updated.to_vector()
        return items if self.cohort is None else np.append(items, to_vector(self.cohort))

    @property
    def change(self) -> float:
        """Root mean square of the step, in standard errors."""
        return root_mean_square(self.residual * self.weights)


@dataclass(frozen=True)
class EMResult:
    """The result of a run of EM."""

    bank: ItemBank
    priors: PriorMixture
    max_abs_ability: float
    converged: bool
    trace: tuple[IterationRecord, ...]


def run_em(
    people: People,
    state: EMState,
    settings: EMSettings,
    threads: int | None = None,
    on_iteration: Callable[[IterationRecord], None] | None = None,
    on_state: Callable[[EMState], None] | None = None,
) -> EMResult:
    """Learn items and population by accelerated EM, from a state (or a checkpoint of one).

    E   expected counts of every response category at every ability, under the tilted distributions
        of all people's curves (:func:`dynaesti.inference.graft`); they add up over people.
    M   each item at the maximum of expected log-likelihood + log prior; then the zero and unit of
        ability; and a Newton step of the cohort, the population's mean over time.

    Between iterations the last few steps are extrapolated (Anderson); an extrapolation that lowers
    the objective is taken back. EM has converged when a step is small in standard errors and in
    evidence, and either the extrapolation is small too or the next step is.

    Parameters
    ----------
    people : People
    state : EMState
        Where to start.
    settings : EMSettings
    threads : int, optional
        Number of threads. Default: all.
    on_iteration : callable, optional
        Called with the `IterationRecord` of each iteration.
    on_state : callable, optional
        Called with the `EMState` for the next iteration, to write checkpoints.
    """
    accelerator = AndersonAcceleration(state.history, state.is_extrapolated)
    clock = time.perf_counter()
    first_iteration = state.iteration
    while True:
        step = em_step(people, state, settings, threads)
        lowest = state.best_objective - settings.allowed_fall
        if accelerator.is_extrapolated and step.objective < lowest:
            accelerator = AndersonAcceleration()
            step = em_step(people, state.taken_back(step.expected), settings, threads)
        priors = replace(step.expected.priors, cohort=step.cohort)
        if state.iteration in settings.prune_after:
            priors = pruned(people, priors, settings.min_weight)

        n_iterations = state.iteration - first_iteration + 1
        trace = (*state.trace, record(step, state, people.n_responses * n_iterations, clock))
        if on_iteration is not None:
            on_iteration(trace[-1])

        is_plain = state.iteration < settings.warm_up or step.expected.bank.learns_hyperpriors
        if is_plain:
            proposal = step.updated_vector
        else:
            proposal = accelerator.propose(step.x, step.residual, step.weights)
        jump = root_mean_square(step.weights * (proposal - step.x))
        leads_nowhere = accelerator.is_extrapolated and jump < settings.tolerance
        is_small = is_small_step(step, state.last_objective, settings, people.n_responses)
        converged = is_small and (leads_nowhere or state.small_steps >= 1)
        if converged or len(trace) >= settings.max_iterations:
            return EMResult(step.updated, priors, step.expected.max_abs_ability, converged, trace)
        density = people.n_responses / max(step.updated.item_count, 1)
        state = advanced(state, step, proposal, accelerator, priors, is_small, settings, density)
        state = replace(state, people=people.checkpoint_arrays(), trace=trace)
        if on_state is not None:
            on_state(state)


def em_step(people: People, state: EMState, settings: EMSettings, threads: int | None) -> EMStep:
    """One iteration of EM: an E-step and an M-step.

    Where hyperpriors are learned from the items, the objective has the items integrated out by
    Laplace's method. With items at their maxima the evidence would grow without bound with slopes
    and spreads (Supreme Court, 9 votes a case: 3,200 nats in 120 iterations, while the evidence of
    the hyperpriors fell by 3,600 and forecasts got worse).
    """
    bank = state.bank
    known = state.cohort_information
    is_due = known is None or state.iteration in settings.cohort_information_in
    request = EStepRequest(state.ep_tolerance, with_cohort_information=is_due)
    expected = e_step(people, bank, state.priors, state.max_abs_ability, request)
    assert expected.counts is not None
    present = expected.priors.cohort
    found = expected.cohort
    information = known if found is None or found.information is None else found.information
    scale = expected.scale
    if present is not None and found is not None and information is not None:
        scale = scale_without_cohort(scale, present, found.gradient, information)
    updated, weights, log_volume = maximise_items(bank, expected.counts, expected.grid, threads)
    updated, scale_move = scale_step(bank, scale, updated, weights)
    x = bank.to_vector()
    step = EMStep(
        expected,
        updated,
        None,
        x,
        updated.to_vector() - x,
        weights,
        expected.objective + log_volume,
        information,
    )
    if present is None or found is None or information is None:
        return step
    return step.with_cohort(present, newton_step(present, found.gradient, information, scale_move))


def e_step(
    people: People,
    bank: ItemBank,
    priors: PriorMixture,
    max_abs_ability: float,
    request: EStepRequest,
) -> EStepSummary:
    """An E-step over everyone, on a grid that covers everyone's ability.

    The counts weigh each person's kernels by the population's weights from before; the weights
    found now are used in the next E-step. So one pass over the people is enough, wherever they are.
    """
    reach = max_abs_ability
    while True:
        grid = ability_grid(bank, reach)
        found = people.e_step(bank, grid, priors, request)
        reach = max(reach, min(found.max_abs_ability, 2 * grid[-1]))
        if ability_grid(bank, reach).size == grid.size:
            break  # else an ability is beyond the grid: again on a wider one
    priors = priors.reweighted(found.log_evidence)
    log_evidence = priors.log_evidence(found.log_evidence)
    objective = log_evidence + bank.log_prior() + priors.log_prior_of_weights()
    return EStepSummary(
        bank,
        priors,
        grid,
        found.counts,
        objective,
        log_evidence,
        found.scale,
        reach,
        found.max_abs_ability,
        found.n_unconverged,
        found.cohort,
        found.drift,
    )


def pruned(people: People, priors: PriorMixture, min_weight: float) -> PriorMixture:
    """The mixture without kernels of little weight; cached solvers of these are dropped."""
    fewer = priors.pruned(min_weight)
    if len(fewer.kernels) < len(priors.kernels):
        people.drop_cached(list(fewer.kernels))
    return fewer


def advanced(
    state: EMState,
    step: EMStep,
    proposal: Array,
    accelerator: AndersonAcceleration,
    priors: PriorMixture,
    is_small: bool,
    settings: EMSettings,
    responses_per_item: float,
) -> EMState:
    """The state of the next iteration."""
    largest = np.abs(step.residual * step.weights).max(initial=0.0)
    summed = settings.ep_tolerance_summed / np.sqrt(max(responses_per_item, 1.0))
    ep_tolerance = np.clip(
        min(settings.ep_tolerance_part, summed) * largest,
        settings.ep_tolerance_min,
        settings.ep_tolerance_max,
    )
    n_items = step.updated.to_vector().size
    if step.cohort is not None:
        priors = replace(priors, cohort=from_vector(step.cohort, proposal[n_items:]))
    return replace(
        state,
        iteration=state.iteration + 1,
        bank=step.updated.from_vector(proposal[:n_items]),
        plain_bank=step.updated,
        priors=priors,
        plain_cohort=step.cohort,
        cohort_information=step.cohort_information,
        ep_tolerance=float(ep_tolerance),
        small_steps=state.small_steps + 1 if is_small else 0,
        best_objective=max(step.objective, state.best_objective),
        last_objective=step.objective,
        history=tuple(accelerator.history),
        is_extrapolated=accelerator.is_extrapolated,
        max_abs_ability=step.expected.max_abs_ability,
    )


def is_small_step(
    step: EMStep, last_objective: float, settings: EMSettings, n_responses: int
) -> bool:
    """Whether a step is small, in standard errors and in evidence."""
    bank = step.expected.bank
    gain = step.objective - last_objective
    tolerance = settings.tolerance
    if bank.learns_hyperpriors:
        longest = settings.flat_step * tolerance if gain > 0.0 else settings.falling_step
        return step.change < longest and gain < settings.flat_gain * tolerance * n_responses
    allowed = settings.allowed_gain * tolerance * np.sqrt(bank.free_count + 1)
    return bool(step.change < tolerance and abs(gain) < allowed)


def record(step: EMStep, state: EMState, responses_seen: int, clock: float) -> IterationRecord:
    """The record of an iteration for the trace."""
    seconds = time.perf_counter() - clock
    return IterationRecord(
        len(state.trace) + 1,
        state.stage,
        step.objective,
        step.expected.log_evidence,
        step.change,
        seconds,
        float(responses_seen / max(seconds, 1e-9)),
    )


def root_mean_square(values: Array) -> float:
    """Root mean square; 0 for an empty array."""
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0
