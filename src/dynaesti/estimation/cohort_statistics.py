"""What the people of an E-step say of the cohort: gradient and information, which add up.

An ability is the cohort's mean at that time plus a curve of the person's own. With a site (τ, ν)
and tilted mean m, the gradient of the log evidence by the prior mean at an instant is ν − τm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.estimation.e_step import EStep, EStepPosterior
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.subsample import spread_over_groups
from dynaesti.inference import EPResult
from dynaesti.model import Cohort, Kernel

# Information only guides Newton steps while items are learned: that of so many people is enough.
GUIDES = 500


@dataclass(frozen=True)
class CohortStatistics:
    """Derivatives of the log evidence by the coefficients of each group's curve in the basis."""

    gradient: Array  # (n_groups, n_columns)
    information: Array | None  # (n_groups, n_columns, n_columns) negative second derivatives

    def __add__(self, other: CohortStatistics) -> CohortStatistics:
        information = sum_known(self.information, other.information)
        return CohortStatistics(self.gradient + other.gradient, information)


def sum_known(one: Array | None, other: Array | None) -> Array | None:
    """The sum of two arrays; None where one is not known."""
    return None if one is None or other is None else one + other


def cohort_statistics(
    e_step: EStep,
    priors: PriorMixture,
    posterior: EStepPosterior,
    with_information: bool,
    most_people: int = GUIDES,
) -> CohortStatistics | None:
    """The statistics of these people; None where no cohort is learned.

    `most_people` limits by how many of them the information is judged.
    """
    cohort = priors.cohort
    if cohort is None:
        return None
    layout = e_step.sites.layout
    columns = e_step.cohort_columns(cohort.basis)
    left = np.zeros(layout.n_sites)
    for _, result, weights in posterior.by_kernel(priors):
        left += np.repeat(weights, np.diff(layout.site_start)) * _gradient(result)
    if cohort.n_groups == 1:
        gradient = (left @ columns)[None]
    else:
        group = e_step.sites.group_of_site
        n_groups = cohort.n_groups
        gradient = np.stack(
            [np.bincount(group, left * column, n_groups) for column in columns.T], axis=1
        )
    information = None
    if with_information:
        information = cohort_information(e_step, priors, posterior, most_people)
    return CohortStatistics(gradient, information)


def cohort_information(
    e_step: EStep, priors: PriorMixture, posterior: EStepPosterior, most_people: int
) -> Array:
    """Information on the coefficients of each group's curve, (n_groups, n_columns, n_columns).

    It is that of some of the people, times the share of their sites in each group.
    """
    cohort = priors.cohort
    assert cohort is not None
    number = sites_of_groups(e_step, cohort)
    e_step, posterior = some_people(
        e_step, posterior, min(1.0, most_people / e_step.sites.n_people)
    )
    whole = _information(e_step, priors, posterior)
    return whole * (number / np.maximum(sites_of_groups(e_step, cohort), 1))[:, None, None]


def sites_of_groups(e_step: EStep, cohort: Cohort) -> Ints:
    """Number of sites of each group."""
    return np.bincount(e_step.sites.group_of_site, minlength=cohort.n_groups)


def some_people(
    e_step: EStep, posterior: EStepPosterior, share: float
) -> tuple[EStep, EStepPosterior]:
    """E-steps over a share of the people, with some of every group, and their curves."""
    sites = e_step.sites
    if share > 0.5:
        return e_step, posterior
    size = max(1, round(share * sites.n_people))
    people = spread_over_groups(np.argsort(sites.group, kind="stable"), sites.group, size)
    return e_step.selected(people), posterior.selected(sites.layout, people)


def _gradient(result: EPResult) -> Array:
    """Gradient of the log evidence by the prior mean at each site."""
    return np.asarray(result.sites.shift - result.sites.precision * result.tilted.mean)


def _information(e_step: EStep, priors: PriorMixture, posterior: EStepPosterior) -> Array:
    """Σ over people of X'(T − TCT)X, with the sites' precisions T and the curves' covariance C.

    Kernels are mixed: where a person's gradients differ under them, less is known.
    """
    assert priors.cohort is not None
    sites = e_step.sites
    columns = e_step.cohort_columns(priors.cohort.basis)
    starts = sites.layout.site_start
    scores = np.stack(
        [
            np.add.reduceat(columns * _gradient(result)[:, None], starts[:-1], axis=0)
            for result in posterior.ep
        ]
    )
    apart = scores - np.einsum("ki,kib->ib", posterior.weights, scores)
    group = sites.group_of_site
    n_groups = priors.cohort.n_groups
    out = np.zeros((n_groups, columns.shape[1], columns.shape[1]))
    for k, (kernel, result, weights) in enumerate(posterior.by_kernel(priors)):
        left = site_responses(e_step, kernel, result, columns)
        left *= (np.repeat(weights, np.diff(starts)) * result.sites.precision)[:, None]
        for g in range(n_groups):
            mine = slice(None) if n_groups == 1 else group == g
            people = slice(None) if n_groups == 1 else sites.group == g
            part = columns[mine].T @ left[mine]
            away = apart[k, people]
            out[g] += 0.5 * (part + part.T) - (weights[people, None] * away).T @ away
    return out


def site_responses(e_step: EStep, kernel: Kernel, result: EPResult, columns: Array) -> Array:
    """How far abilities move at each site when the prior mean moves by the columns of a basis.

    It is X − CTX, with the sites' precisions T and the abilities' covariance C: less than X, since
    the responses stay.

    Returns
    -------
    array (n_sites, n_columns)
    """
    nugget = kernel.nugget_variance
    latent = result.sites.through_nugget(nugget)
    moved = e_step.mean_response(kernel, False, latent.precision, columns.T)
    shrink = 1.0 + nugget * result.sites.precision
    return np.asarray((columns - moved.T) / shrink[:, None])
