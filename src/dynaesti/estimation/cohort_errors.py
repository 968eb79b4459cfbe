"""Standard errors of the cohort: its information, less what the items take up of it.

A direction of the cohort that items could follow is known less well than at given items: the Schur
complement of the joint information says by how much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array
from dynaesti.estimation.cohort_statistics import (
    information_of,
    own_columns,
    parts_of_groups,
    site_responses,
    sites_of_groups,
    some_people,
    sum_known,
)
from dynaesti.estimation.cohort_step import constant_part, on_coefficients, with_scale
from dynaesti.estimation.e_step import EStep, EStepPosterior
from dynaesti.estimation.population import PriorMixture
from dynaesti.inference import LogLikelihoodTable
from dynaesti.model import Cohort, ItemBank

# The information is that of some people: so many sites for each item are enough, or so many in all.
# Fewer would add noise to what items take up.
SITES_PER_ITEM = 200
LEAST_SITES = 20_000
MOST_CROSS = 40_000_000  # largest number of items' parameters × parts of the cohort
MOST_COLUMNS = 60_000_000  # largest number of sites × columns
LEAST_LEFT = 0.01  # share of a direction's information that items leave, at least


@dataclass(frozen=True)
class CohortInformation:
    """Information about the cohort, and about cohort and items together: sums over people."""

    own: Array  # (n_parts, n_parts)
    # (n_items, n_parameters, n_parts) negative mixed second derivatives of the log evidence; None
    # where they would not fit into memory
    with_items: Array | None

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
    width = max(block.u.shape[1] for block in bank.blocks)
    n_parts = cohort.loadings.shape[0]
    enough = max(SITES_PER_ITEM * bank.item_count, LEAST_SITES)
    enough = min(enough, MOST_COLUMNS // (cohort.basis.n_columns + cohort.n_effects))
    share = min(1.0, enough / e_step.sites.layout.n_sites)
    e_step, posterior = some_people(e_step, posterior, share)
    counted = number / np.maximum(sites_of_groups(e_step, cohort), 1)
    own = information_of(e_step, priors, posterior, counted)
    mixed = None
    if bank.item_count * width * n_parts <= MOST_CROSS:
        slopes = np.gradient(gradients[:, :width], table.step, axis=2, edge_order=2)
        mixed = _mixed_information(e_step, bank, table, slopes, priors, posterior, counted)
    return CohortInformation(own, mixed)


def _mixed_information(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    slopes: Array,
    priors: PriorMixture,
    posterior: EStepPosterior,
    counted: Array,
) -> Array:
    """Negative mixed second derivatives by items and cohort, see `CohortInformation`.

    `slopes` (n_rows, n_parameters, n_grid) are derivatives of the likelihood rows by an item's
    parameters and by ability.
    """
    cohort = priors.cohort
    assert cohort is not None
    n_groups = cohort.n_groups
    columns = own_columns(e_step, cohort)
    n_items = bank.item_count
    out = np.zeros((n_items, slopes.shape[1], cohort.loadings.shape[0]))
    layout = e_step.sites.layout
    site = np.repeat(np.arange(layout.n_sites), np.diff(layout.factor_start))
    cell = bank.item_of_row()[layout.factor_row] * n_groups + e_step.sites.group_of_site[site]
    parts = np.stack(parts_of_groups(cohort))
    for k, (kernel, result, weights) in enumerate(posterior.by_kernel(priors)):
        one = EStepPosterior((result,), np.ones((1, e_step.sites.n_people)))
        bends = e_step.scores(kernel_alone(priors, k), one, table, slopes)
        left = site_responses(e_step, kernel, result, columns)
        weight = (weights * counted[e_step.sites.group])[:, None]
        left *= np.repeat(weight, np.diff(layout.site_start), axis=0)
        for b in range(columns.shape[1]):
            move = left[site, b]
            for p in range(slopes.shape[1]):
                found = np.bincount(cell, -bends[:, p] * move, n_items * n_groups)
                by_group = found.reshape(n_items, n_groups)
                for g in range(n_groups):
                    out[:, p, parts[g, b]] += by_group[:, g]
    return out


def kernel_alone(priors: PriorMixture, k: int) -> PriorMixture:
    """The prior with the k-th kernel alone."""
    return replace(priors, kernels=(priors.kernels[k],), log_prior=np.zeros(1), weights=np.ones(1))


def cohort_covariance(
    cohort: Cohort, information: CohortInformation, items: ItemCovariance
) -> Array:
    """Covariance of the coefficients, with the items' uncertainty included."""
    found = information.own
    # without the learned prior of the trend: a trend that is taken for none is not known to be 0
    held = on_coefficients(cohort, found) + replace(cohort, trend_precision=0.0).precision
    if information.with_items is None:
        return np.asarray(np.linalg.inv(held))
    mixed = information.with_items @ cohort.loadings
    by_items = np.einsum("iwp,iwv,ivq->pq", mixed, items.own, mixed, optimize=True)
    together = np.einsum("iwp,iwa->pa", mixed, items.moves)
    by_items += together @ items.shared(_on_zero_and_unit(cohort, found)) @ together.T
    if items.unit > 0:
        stretched = with_scale(cohort, found)[1]
        by_items += np.outer(stretched, stretched) / items.unit
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
    parts = cohort.loadings @ cohort.coefficients
    across = float(constant_part(cohort) @ information @ parts)
    return np.array([[0.0, across], [across, float(parts @ information @ parts)]])


@dataclass(frozen=True)
class ItemCovariance:
    """Covariance of all items' parameters: own blocks, and a part that they share."""

    own: Array  # (n_items, n_parameters, n_parameters) with all other items fixed
    moves: Array  # (n_items, n_parameters, 2) by the abilities' zero and log unit
    anchorage: Array  # (2, 2) information on zero and log unit
    unit: float = 0.0  # information on the log unit, where it is a parameter of its own

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
