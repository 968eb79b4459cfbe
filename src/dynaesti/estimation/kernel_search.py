"""The choice of the kernels that a population mixes.

They are chosen on a grid of hyper-parameters, by the evidence of a few people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.estimation.grid import ability_grid, tabulate_items
from dynaesti.estimation.hyper_grid import (
    POPULATION_EDGE,
    GridPoint,
    UnitVarianceGrid,
    nodes_near,
    refine_grid,
    warn_at_shortest_bandwidth,
)
from dynaesti.estimation.people import PeopleInMemory
from dynaesti.estimation.population import (
    PriorMixture,
    estimate_mixing_weights,
    mixture_log_evidence,
    select_priors_greedily,
)
from dynaesti.inference import NaturalGaussian
from dynaesti.model import Cohort, ItemBank, Kernel


@dataclass(frozen=True)
class SearchSettings:
    """What a kernel must add to be chosen; found on golf and TAPS (`benchmarks`)."""

    max_kernels: int = 4  # in the mixture
    min_gain: float = 0.5  # nats that a kernel must add to the evidence of these people
    min_late_gain: float = 2.0  # nats that kernels added later must add together
    smoother_rounds: int = 2  # of the search among smoother kernels, which starts near the best
    # tolerance of EP: the evidence is stationary in the sites, so its error is of second order
    tolerance: float = 1e-2
    late_tolerance: float = 1e-4


class KernelTrials:
    """Log evidence of each of a few people under any kernel, at given items; each is tried once."""

    def __init__(
        self, people: PeopleInMemory, bank: ItemBank, cohort: Cohort | None, tolerance: float
    ) -> None:
        self.people = people
        self.cohort = cohort
        self.tolerance = tolerance
        self.table = tabulate_items(bank, ability_grid(bank))
        self.tried: dict[Kernel, Array] = {}
        # sites hardly depend on the kernel: one set is kept for merged instants, one for others
        self.starts: dict[bool, NaturalGaussian] = {}

    def evaluate(self, kernels: list[Kernel]) -> list[Array]:
        """Log evidences (n_people,) under each kernel."""
        new = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self.tried]
        if new:
            trial = PriorMixture(tuple(new), np.zeros(len(new)), np.ones(len(new)), self.cohort)
            merged = [trial.merges_instants(kernel) for kernel in new]
            begin = [self.starts.get(merges) for merges in merged]
            found = self.people.runner.run(self.table, trial, begin, self.tolerance)
            self.starts.update({m: ep.sites for m, ep in zip(merged, found.ep, strict=True)})
            self.tried.update(zip(new, found.log_evidence, strict=True))
        return [self.tried[kernel] for kernel in kernels]


Points = list[GridPoint[Array]]


def select_priors(
    people: PeopleInMemory,
    bank: ItemBank,
    cohort: Cohort | None,
    grids: Sequence[UnitVarianceGrid],
    settings: SearchSettings,
) -> PriorMixture:
    """Choose the kernels that the population uses, by a few people at given items.

    Parameters
    ----------
    people : PeopleInMemory
    bank : ItemBank
    cohort : Cohort or None
    grids : sequence of UnitVarianceGrid
        Kernels of the same form, from rough to smooth. The first grid is searched whole; the others
        near what was found there, where they add to the evidence.
    settings : SearchSettings
    """
    trials = KernelTrials(people, bank, cohort, settings.tolerance)
    rough = refine_grid(grids[0], trials.evaluate, _weigh)
    points = rough + _smoother_points(trials, grids[1:], rough, settings)
    log_evidence, log_prior = _arrays(points)
    weights = estimate_mixing_weights(log_evidence, log_prior)
    mixture = PriorMixture(tuple(point.kernel for point in points), log_prior, weights, cohort)
    warn_at_shortest_bandwidth(grids[0], mixture.kernels, mixture.weights, POPULATION_EDGE)
    people.drop_cached([])
    return mixture.select(_choose(points, settings))


def _smoother_points(
    trials: KernelTrials,
    grids: Sequence[UnitVarianceGrid],
    rough: Points,
    settings: SearchSettings,
) -> Points:
    """Points of the smoother kernel that adds most to the roughest; none if that is too little.

    Each is tried at what is most like the best rough kernels, and only the best one searched.
    """
    chosen = [rough[k] for k in _choose(rough, settings)]
    moving = [point.point for point in chosen if point.point is not None]
    best: tuple[float, UnitVarianceGrid, list[tuple[float, ...]]] | None = None
    for grid in grids if moving else ():
        near = [_moved(grid, point) for point in moving]
        kernels = [grid.at(point) for point in near]
        tried = zip(kernels, trials.evaluate(kernels), near, strict=True)
        probes = [GridPoint(kernel, result, 0.0, point) for kernel, result, point in tried]
        gain = _joint_evidence([*chosen, *probes]) - _joint_evidence(chosen)
        if gain > (settings.min_gain if best is None else best[0]):
            best = gain, grid, near
    if best is None:
        return []
    _, grid, near = best
    return refine_grid(
        grid, trials.evaluate, _weigh, nodes=nodes_near(grid, near), rounds=settings.smoother_rounds
    )


def _moved(grid: UnitVarianceGrid, point: tuple[float, ...]) -> tuple[float, ...]:
    """The point of a smoother kernel's grid that is most like a point of the roughest."""
    shift = {"bandwidth": float(np.log(grid.bandwidth_ratio))}
    return tuple(
        max(value + shift.get(axis.field, 0.0), axis.lowest)
        for axis, value in zip(grid.axes, point, strict=True)
    )


def _weigh(results: list[Array], log_prior: Array) -> Array:
    return estimate_mixing_weights(np.array(results), log_prior)


def _arrays(points: Points) -> tuple[Array, Array]:
    """Log evidences (n_points, n_people) and log prior masses (n_points,)."""
    return np.array([p.result for p in points]), np.array([p.log_mass for p in points])


def _choose(points: Points, settings: SearchSettings) -> Ints:
    """The few points that have nearly the evidence of all."""
    return select_priors_greedily(*_arrays(points), settings.max_kernels, settings.min_gain)


def _joint_evidence(points: Points) -> float:
    """Log evidence of these people under a mixture of the points, equal before the data."""
    log_evidence, _ = _arrays(points)
    weights = estimate_mixing_weights(log_evidence, np.zeros(len(points)))
    return mixture_log_evidence(log_evidence, weights)


def add_missing_priors(
    people: PeopleInMemory,
    bank: ItemBank,
    grids: Sequence[UnitVarianceGrid],
    present: PriorMixture,
    settings: SearchSettings,
) -> PriorMixture | None:
    """The mixture with kernels that it lacks at these items; None if they add too little."""
    found = select_priors(people, bank, present.cohort, grids, settings)
    missing = np.array(
        [k for k, kernel in enumerate(found.kernels) if kernel not in present.kernels],
        dtype=np.int64,
    )
    if not missing.size:
        return None
    late = replace(found.select(missing), weights=found.weights[missing])
    joint = present.append(late)
    log_evidence = _log_evidence(people, bank, joint, settings.late_tolerance)
    chosen = select_priors_greedily(
        log_evidence, joint.log_prior, settings.max_kernels, settings.min_gain
    )
    before = np.arange(len(present.kernels), dtype=np.int64)
    gain = _mixed_evidence(joint, log_evidence, chosen) - _mixed_evidence(
        joint, log_evidence, before
    )
    if gain < settings.min_late_gain:
        return None
    return joint.reweighted(log_evidence).select(chosen)


def _log_evidence(
    people: PeopleInMemory, bank: ItemBank, priors: PriorMixture, tolerance: float
) -> Array:
    """Log evidence of each of a few people under each kernel: (n_kernels, n_people)."""
    table = tabulate_items(bank, ability_grid(bank))
    starts: list[NaturalGaussian | None] = [None] * len(priors.kernels)
    return people.runner.run(table, priors, starts, tolerance).log_evidence


def _mixed_evidence(priors: PriorMixture, log_evidence: Array, chosen: Ints) -> float:
    """Log evidence of these people under some of the kernels, with learned weights."""
    mixture = priors.select(chosen).reweighted(log_evidence[chosen])
    return mixture.log_evidence(log_evidence[chosen]) + mixture.log_prior_of_weights()
