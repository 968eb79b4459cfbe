"""Standard errors of the cohort: its information, less what the items take up of it.

A direction of the cohort that items could follow is known less well than at given items: the Schur
complement of the joint information says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array
from dynaesti.estimation.cohort_statistics import (
    CohortStatistics,
    cohort_statistics,
    site_responses,
    sites_of_groups,
    some_people,
    sum_known,
)
from dynaesti.estimation.cohort_step import on_coefficients
from dynaesti.estimation.e_step import EStep, EStepPosterior
from dynaesti.estimation.population import PriorMixture
from dynaesti.inference import LogLikelihoodTable
from dynaesti.model import Cohort, ItemBank

# The information is that of some people: so many sites for each item are enough, or so many in all.
# Fewer would add noise to what items take up.
SITES_PER_ITEM = 200
LEAST_SITES = 20_000
MOST_CROSS = 40_000_000  # largest number of items' parameters × groups × columns
LEAST_LEFT = 0.01  # share of a direction's information that items leave, at least


@dataclass(frozen=True)
class CohortInformation:
    """Information about the cohort, and about cohort and items together: sums over people."""

    own: CohortStatistics
    # (n_items, n_parameters, n_groups, n_columns) negative mixed second derivatives of the log
    # evidence; None where they would not fit into memory
    with_items: Array | None

    def times(self, factors: Array) -> CohortInformation:
        """The information of so many times as many people of each group, (n_groups,)."""
        own, mixed = self.own, self.with_items
        assert own.information is not None
        more = CohortStatistics(own.gradient, factors[:, None, None] * own.information)
        return CohortInformation(more, None if mixed is None else factors[:, None] * mixed)

    def __add__(self, other: CohortInformation) -> CohortInformation:
        return CohortInformation(self.own + other.own, sum_known(self.with_items, other.with_items))


def collect_cohort_information(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    gradients: Array,
    priors: PriorMixture,
    posterior: EStepPosterior,
) -> CohortInformation | None:
    """The information in the responses of some people; None where no cohort is learned."""
    cohort = priors.cohort
    if cohort is None:
        return None
    number = sites_of_groups(e_step, cohort)
    enough = max(SITES_PER_ITEM * bank.item_count, LEAST_SITES)
    share = min(1.0, enough / e_step.sites.layout.n_sites)
    e_step, posterior = some_people(e_step, posterior, share)
    own = cohort_statistics(e_step, priors, posterior, True, e_step.sites.n_people)
    assert own is not None
    width = max(block.u.shape[1] for block in bank.blocks)
    size = bank.item_count * width * cohort.n_groups * cohort.basis.n_columns
    mixed = None
    if size <= MOST_CROSS:
        slopes = np.gradient(gradients[:, :width], table.step, axis=2, edge_order=2)
        mixed = _mixed_information(e_step, bank, table, slopes, priors, posterior)
    found = sites_of_groups(e_step, cohort)
    return CohortInformation(own, mixed).times(number / np.maximum(found, 1))


def _mixed_information(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    slopes: Array,
    priors: PriorMixture,
    posterior: EStepPosterior,
) -> Array:
    """Negative mixed second derivatives by items and cohort, see `CohortInformation`.

    `slopes` (n_rows, n_parameters, n_grid) are derivatives of the likelihood rows by an item's
    parameters and by ability.
    """
    assert priors.cohort is not None
    n_groups = priors.cohort.n_groups
    columns = e_step.cohort_columns(priors.cohort.basis)
    out = np.zeros((bank.item_count, slopes.shape[1], n_groups, columns.shape[1]))
    layout = e_step.sites.layout
    site = np.repeat(np.arange(layout.n_sites), np.diff(layout.factor_start))
    cell = bank.item_of_row()[layout.factor_row] * n_groups + e_step.sites.group_of_site[site]
    for k, (kernel, result, weights) in enumerate(posterior.by_kernel(priors)):
        one = EStepPosterior((result,), np.ones((1, e_step.sites.n_people)))
        bends = e_step.scores(kernel_alone(priors, k), one, table, slopes)
        left = site_responses(e_step, kernel, result, columns)
        left *= np.repeat(weights, np.diff(layout.site_start))[:, None]
        for b in range(columns.shape[1]):
            move = left[site, b]
            for p in range(slopes.shape[1]):
                found = np.bincount(cell, -bends[:, p] * move, bank.item_count * n_groups)
                out[:, p, :, b] += found.reshape(bank.item_count, n_groups)
    return out


def kernel_alone(priors: PriorMixture, k: int) -> PriorMixture:
    """The prior with the k-th kernel alone."""
    return replace(priors, kernels=(priors.kernels[k],), log_prior=np.zeros(1), weights=np.ones(1))


def cohort_covariance(
    cohort: Cohort, information: CohortInformation, items: ItemCovariance
) -> Array:
    """Covariance of the coefficients, with the items' uncertainty included."""
    found = information.own.information
    assert found is not None
    # without the learned prior of the trend: a trend that is taken for none is not known to be 0
    held = on_coefficients(cohort, found) + replace(cohort, trend_precision=0.0).precision
    if information.with_items is None:
        return np.asarray(np.linalg.inv(held))
    mixed = np.einsum("iwgb,gbp->iwp", information.with_items, cohort.contrasts)
    by_items = np.einsum("iwp,iwv,ivq->pq", mixed, items.own, mixed, optimize=True)
    together = np.einsum("iwp,iwa->pa", mixed, items.moves)
    by_items += together @ items.shared(_on_zero_and_unit(cohort, found)) @ together.T
    root = np.linalg.cholesky(held)
    taken = np.linalg.solve(root, np.linalg.solve(root, by_items).T)
    values, vectors = np.linalg.eigh(0.5 * (taken + taken.T))
    left = np.maximum(1.0 - values, LEAST_LEFT)
    back = np.linalg.solve(root.T, vectors)
    return np.asarray((back / left) @ back.T)


def _on_zero_and_unit(cohort: Cohort, information: Array) -> Array:
    """Information that the cohort holds on the abilities' zero and log unit: (2, 2).

    A larger unit stretches the cohort's curve too.
    """
    curves = cohort.curves[:-1]
    across = float(np.einsum("gb,gb->", curves, information[:, 0]))
    unit = float(np.einsum("gb,gbc,gc->", curves, information, curves))
    return np.array([[0.0, across], [across, unit]])


@dataclass(frozen=True)
class ItemCovariance:
    """Covariance of all items' parameters: own blocks, and a part that they share."""

    own: Array  # (n_items, n_parameters, n_parameters) with all other items fixed
    moves: Array  # (n_items, n_parameters, 2) by the abilities' zero and log unit
    anchorage: Array  # (2, 2) information on zero and log unit

    def shared(self, by_cohort: Array) -> Array:
        """Covariance of zero and log unit beyond what the items' own blocks have of it: (2, 2).

        With D the information of the own blocks, S = m'Dm for the moves m, and J the information
        on zero and unit, the inverse of D with J in the place of S is D⁻¹ + m(J⁻¹ − S⁻¹)m'.
        """
        precise = np.linalg.pinv(self.own, hermitian=True)
        blocks = np.einsum("iwa,iwv,ivb->ab", self.moves, precise, self.moves, optimize=True)
        held = self.anchorage + by_cohort
        least = 1e-9 * max(float(np.trace(held)), 1e-9)
        if min(np.linalg.eigvalsh(blocks)[0], np.linalg.eigvalsh(held)[0]) <= least:
            return np.zeros((2, 2))  # zero or unit are anchored, or nothing is known of them
        beyond = np.linalg.inv(held) - np.linalg.inv(blocks)
        values, vectors = np.linalg.eigh(beyond)
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
