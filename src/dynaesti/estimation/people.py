"""The people an E-step runs over, wherever their responses are kept.

All that an E-step finds about the items is a sum over people. So people may be in memory, in shards
on disk, or on other machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Ints
from dynaesti.estimation.cohort_statistics import CohortStatistics, cohort_statistics
from dynaesti.estimation.e_step import EStep, EStepPosterior, kernel_weights
from dynaesti.estimation.grid import tabulate_items
from dynaesti.estimation.item_drift import DriftSums, drift_sums
from dynaesti.estimation.periods import Periods
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.scale import scale_gradient
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.estimation.standard_errors import (
    ItemInformation,
    collect_information,
    likelihood_gradients,
)
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.inference import EPResult, LogLikelihoodTable, NaturalGaussian
from dynaesti.model import ItemBank, Kernel

CheckpointArrays = dict[str, npt.NDArray[np.float64]]
StartingSites = dict[Kernel, NaturalGaussian]


@dataclass
class EStepResult:
    """Result of an E-step over some people; results of several groups add up."""

    counts: Array | None  # (n_rows, n_grid) expected counts
    log_evidence: Array  # (n_kernels, n_people)
    scale: Array  # (2, 2) gradient and information about zero and unit: `scale_gradient`
    max_abs_ability: float
    n_unconverged: int  # curves on which EP did not converge
    cohort: CohortStatistics | None  # about the population's mean, where it is learned
    drift: DriftSums | None = None  # of items, where it is asked for


@dataclass(frozen=True)
class EStepRequest:
    """What an E-step is to find, and how accurately."""

    tolerance: float  # of expectation propagation
    with_counts: bool = True  # expected counts, for the M-step
    with_cohort_information: bool = False  # for a Newton step of the population's mean
    drift_periods: Periods | None = None  # in which answers are added up, to learn items' drift


def sum_e_steps(parts: Sequence[EStepResult]) -> EStepResult:
    """Add up E-steps over several groups of people, in order; the first counts are overwritten."""
    counts = parts[0].counts
    for part in parts[1:]:
        if counts is not None and part.counts is not None:
            counts += part.counts
    return EStepResult(
        counts,
        np.concatenate([part.log_evidence for part in parts], axis=1),
        np.sum([part.scale for part in parts], axis=0),
        max(part.max_abs_ability for part in parts),
        sum(part.n_unconverged for part in parts),
        _sum_known([part.cohort for part in parts]),
        _sum_known([part.drift for part in parts]),
    )


Sums = TypeVar("Sums", CohortStatistics, DriftSums)


def _sum_known(parts: Sequence[Sums | None]) -> Sums | None:
    """Add up what several groups of people say, in order; None if they were not asked."""
    total = parts[0]
    for part in parts[1:]:
        if total is not None and part is not None:
            total = total + part
    return total


class People(Protocol):
    """The people of a fit, wherever their responses are kept.

    Sites are kept from each E-step to start the next one.
    """

    @property
    def person_summary(self) -> PersonSummary:
        """Summary of each person, by which subsamples are drawn."""

    @property
    def n_responses(self) -> int:
        """Number of responses."""

    def subset(self, people: Ints) -> PeopleSites:
        """The sites of some people, in memory."""

    def e_step(
        self,
        bank: ItemBank,
        grid: Array,
        priors: PriorMixture,
        request: EStepRequest,
    ) -> EStepResult:
        """Graft everyone's curve under every kernel, and add up expected counts and evidence."""

    def drop_cached(self, kernels: list[Kernel]) -> None:
        """Drop sites and solvers of all but the given kernels."""

    def information(
        self, bank: ItemBank, grid: Array, priors: PriorMixture, joint: bool
    ) -> ItemInformation:
        """The information that the responses hold about all items, for standard errors.

        Called after a last E-step of tight tolerance.
        """

    def checkpoint_arrays(self) -> CheckpointArrays:
        """Arrays from which the next E-step would start after a checkpoint."""

    def restore(self, arrays: CheckpointArrays, kernels: list[Kernel]) -> None:
        """Start the next E-step from a checkpoint."""


def e_step_over(
    e_step: EStep,
    sites: StartingSites,
    bank: ItemBank,
    table: LogLikelihoodTable,
    priors: PriorMixture,
    request: EStepRequest,
) -> tuple[EStepResult, EStepPosterior]:
    """An E-step over people in memory, from the sites that are kept of them."""
    starts = [sites.get(kernel) for kernel in priors.kernels]
    posterior = e_step.run(table, priors, starts, request.tolerance)
    result = EStepResult(
        e_step.counts(priors, posterior, table) if request.with_counts else None,
        posterior.log_evidence,
        scale_gradient(e_step.sites, priors, posterior),
        posterior.max_abs_ability(),
        posterior.n_unconverged,
        cohort_statistics(e_step, priors, posterior, request.with_cohort_information),
    )
    if request.drift_periods is not None:
        periods = request.drift_periods
        result.drift = drift_sums(e_step, bank, table, priors, posterior, periods)
    return result, posterior


class PeopleInMemory:
    """People whose responses are all in memory."""

    def __init__(self, sites: PeopleSites, threads: int | None = None) -> None:
        self.runner = EStep(sites, threads)
        self.starts: StartingSites = {}
        self.ep: tuple[EPResult, ...] = ()  # of the last E-step

    @property
    def sites(self) -> PeopleSites:
        """Everyone's sites."""
        return self.runner.sites

    @property
    def person_summary(self) -> PersonSummary:
        return self.sites.person_summary

    @property
    def n_responses(self) -> int:
        return self.sites.n_responses

    def subset(self, people: Ints) -> PeopleSites:
        return self.sites.select(people)

    def e_step(
        self,
        bank: ItemBank,
        grid: Array,
        priors: PriorMixture,
        request: EStepRequest,
    ) -> EStepResult:
        self.ep = ()  # free the memory for the next results
        table = tabulate_items(bank, grid)
        result, posterior = e_step_over(self.runner, self.starts, bank, table, priors, request)
        self.ep = posterior.ep
        self.starts = {kernel: ep.sites for kernel, ep in zip(priors.kernels, self.ep, strict=True)}
        return result

    def drop_cached(self, kernels: list[Kernel]) -> None:
        self.starts = {kernel: sites for kernel, sites in self.starts.items() if kernel in kernels}
        self.runner.drop_cached(kernels)

    def information(
        self, bank: ItemBank, grid: Array, priors: PriorMixture, joint: bool
    ) -> ItemInformation:
        posterior = EStepPosterior(self.ep, kernel_weights(priors.weights, self.ep))
        table = tabulate_items(bank, grid)
        gradients = likelihood_gradients(bank, grid)
        return collect_information(self.runner, bank, table, gradients, priors, posterior, joint)

    def checkpoint_arrays(self) -> CheckpointArrays:
        return {f"sites{k}": np.stack(sites) for k, sites in enumerate(self.starts.values())}

    def restore(self, arrays: CheckpointArrays, kernels: list[Kernel]) -> None:
        self.starts = {
            kernel: NaturalGaussian(*arrays[f"sites{k}"])
            for k, kernel in enumerate(kernels)
            if f"sites{k}" in arrays
        }
