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
# Effects may concern few of them, so that with effects it is that of all, up to so many numbers.
GUIDES = 500
MOST_NUMBERS = 30_000_000


@dataclass(frozen=True)
class CohortStatistics:
    """Derivatives of the log evidence by all parts: each group's curve in the basis, and effects.

    Parts are numbered as by `Cohort.loadings`: n_groups · n_columns of curves, then the effects.
    """

    gradient: Array  # (n_parts,)
    information: Array | None  # (n_parts, n_parts) negative second derivatives

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
) -> CohortStatistics | None:
    """The statistics of these people; None where neither cohort nor effects are learned."""
    cohort = priors.cohort
    if cohort is None:
        return None
    layout = e_step.sites.layout
    columns = e_step.cohort_columns(cohort.basis)
    left = np.zeros(layout.n_sites)
    for _, result, weights in posterior.by_kernel(priors):
        left += np.repeat(weights, np.diff(layout.site_start)) * _gradient(result)
    group = e_step.sites.group_of_site
    by_group = [np.bincount(group, left * column, cohort.n_groups) for column in columns.T]
    gradient: Array = np.stack(by_group, axis=1).ravel().astype(np.float64)
    x = e_step.sites.columns_of_effects
    if x is not None:
        gradient = np.append(gradient, left @ x)
    information = None
    if with_information:
        information = _guiding_information(e_step, priors, posterior)
    return CohortStatistics(gradient, information)


def _guiding_information(e_step: EStep, priors: PriorMixture, posterior: EStepPosterior) -> Array:
    """Information on all parts of the cohort, (n_parts, n_parts).

    It is that of some of the people, each counted as often as their group's sites need.
    """
    cohort = priors.cohort
    assert cohort is not None
    number = sites_of_groups(e_step, cohort)
    share = GUIDES / e_step.sites.n_people
    if cohort.n_effects:
        columns = cohort.basis.n_columns + cohort.n_effects
        share = max(share, MOST_NUMBERS / (columns * e_step.sites.layout.n_sites))
    e_step, posterior = some_people(e_step, posterior, min(1.0, share))
    counted = number / np.maximum(sites_of_groups(e_step, cohort), 1)
    return information_of(e_step, priors, posterior, counted)


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


def parts_of_groups(cohort: Cohort) -> list[Ints]:
    """Numbers of the parts that the people of each group have: a curve, and all effects."""
    n_columns = cohort.basis.n_columns
    n_curves = cohort.n_groups * n_columns
    effects = n_curves + np.arange(cohort.n_effects)
    return [
        np.concatenate([g * n_columns + np.arange(n_columns), effects])
        for g in range(cohort.n_groups)
    ]


def own_columns(e_step: EStep, cohort: Cohort) -> Array:
    """Columns at every site of the parts that its person has: (n_sites, n_columns + n_effects)."""
    columns = e_step.cohort_columns(cohort.basis)
    x = e_step.sites.columns_of_effects
    return columns if x is None else np.concatenate([columns, x.toarray()], axis=1)


def information_of(
    e_step: EStep, priors: PriorMixture, posterior: EStepPosterior, counted: Array
) -> Array:
    """Σ over people of X'(T − TCT)X, with the sites' precisions T and the curves' covariance C.

    Kernels are mixed: where a person's gradients differ under them, less is known. People of each
    group are `counted` (n_groups,) so many times.
    """
    cohort = priors.cohort
    assert cohort is not None
    sites = e_step.sites
    columns = own_columns(e_step, cohort)
    starts = sites.layout.site_start
    scores = np.stack(
        [
            np.add.reduceat(columns * _gradient(result)[:, None], starts[:-1], axis=0)
            for result in posterior.ep
        ]
    )
    apart = scores - np.einsum("ki,kib->ib", posterior.weights, scores)
    group = sites.group_of_site
    n_groups = cohort.n_groups
    n_parts = n_groups * cohort.basis.n_columns + cohort.n_effects
    out = np.zeros((n_parts, n_parts))
    for k, (kernel, result, weights) in enumerate(posterior.by_kernel(priors)):
        left = site_responses(e_step, kernel, result, columns)
        left *= (np.repeat(weights, np.diff(starts)) * result.sites.precision)[:, None]
        for g, parts in enumerate(parts_of_groups(cohort)):
            mine = slice(None) if n_groups == 1 else group == g
            people = slice(None) if n_groups == 1 else sites.group == g
            part = columns[mine].T @ left[mine]
            away = apart[k, people]
            found = 0.5 * (part + part.T) - (weights[people, None] * away).T @ away
            out[np.ix_(parts, parts)] += counted[g] * found
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
