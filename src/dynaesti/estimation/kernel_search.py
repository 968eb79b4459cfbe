"""The choice of the kernels that a population mixes.

They are chosen on a grid of hyper-parameters, by the evidence of a few people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.estimation.grid import ability_grid, tabulate_items
from dynaesti.estimation.hyper_grid import (
    POPULATION_EDGE,
    UnitVarianceGrid,
    refine_grid,
    warn_at_shortest_bandwidth,
)
from dynaesti.estimation.people import PeopleInMemory
from dynaesti.estimation.population import (
    PriorMixture,
    estimate_mixing_weights,
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
    # tolerance of EP: the evidence is stationary in the sites, so its error is of second order
    tolerance: float = 1e-2
    late_tolerance: float = 1e-4


def select_priors(
    people: PeopleInMemory,
    bank: ItemBank,
    cohort: Cohort | None,
    grid: UnitVarianceGrid,
    settings: SearchSettings,
) -> PriorMixture:
    """Choose the kernels that the population uses, by a few people at given items."""
    table = tabulate_items(bank, ability_grid(bank))
    # sites hardly depend on the kernel: one set is kept for merged instants, one for all others
    starts: dict[bool, NaturalGaussian] = {}

    def evaluate(kernels: list[Kernel]) -> list[Array]:
        if not kernels:
            return []
        tried = PriorMixture(tuple(kernels), np.zeros(len(kernels)), np.ones(len(kernels)), cohort)
        merged = [tried.merges_instants(kernel) for kernel in kernels]
        begin = [starts.get(merges) for merges in merged]
        found = people.runner.run(table, tried, begin, settings.tolerance)
        starts.update({m: ep.sites for m, ep in zip(merged, found.ep, strict=True)})
        return list(found.log_evidence)

    def weigh(results: list[Array], log_prior: Array) -> Array:
        return estimate_mixing_weights(np.array(results), log_prior)

    points = refine_grid(grid, evaluate, weigh)
    log_evidence = np.array([point.result for point in points])
    log_prior = np.array([point.log_mass for point in points])
    weights = weigh([point.result for point in points], log_prior)
    chosen = select_priors_greedily(
        log_evidence, log_prior, settings.max_kernels, settings.min_gain
    )
    mixture = PriorMixture(tuple(point.kernel for point in points), log_prior, weights, cohort)
    warn_at_shortest_bandwidth(grid, mixture.kernels, mixture.weights, POPULATION_EDGE)
    people.drop_cached([])
    return mixture.select(chosen)


def add_missing_priors(
    people: PeopleInMemory,
    bank: ItemBank,
    grid: UnitVarianceGrid,
    present: PriorMixture,
    settings: SearchSettings,
) -> PriorMixture | None:
    """The mixture with kernels that it lacks at these items; None if they add too little."""
    found = select_priors(people, bank, present.cohort, grid, settings)
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
