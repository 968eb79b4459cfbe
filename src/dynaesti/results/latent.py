"""Abilities of a fit's people on the latent scale, under each kernel.

They are the cohort's mean plus the person's own curve. The cohort is an estimate: where it is
wrong, people's abilities are too, though less where they have many responses of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from dynaesti.core import Array, Ints, starts_of
from dynaesti.inference import (
    Moments,
    NaturalGaussian,
    SiteLayout,
    depends_on_span,
    predict_marginals,
)
from dynaesti.model import EffectRows, Kernel

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

# A direction of the cohort's uncertainty that moves no mean by more than this, in standard
# deviations of ability, is left out of people's bands.
NEGLIGIBLE = 0.02


class LatentAbilities(NamedTuple):
    """Normal distributions of abilities under each kernel, (n_kernels, n_points) each."""

    weights: Array
    means: Array
    variances: Array


class Asked(NamedTuple):
    """Points asked for, one person after the other."""

    person: Ints  # (n_points,) rising
    offsets: Array  # (n_points,)
    known: Ints  # (n_known,) the people, each once
    start: Ints  # (n_known + 1,) first point of each


def asked_of(person: Ints, offsets: Array) -> Asked:
    """Points of people in rising order of their numbers, which are at least 0."""
    known = np.unique(person)
    return Asked(person, offsets, known, np.append(np.searchsorted(person, known), person.size))


def latent_abilities(
    fit: Fit,
    person: Ints,
    offsets: Array,
    group_if_new: Ints | None = None,
    rows: EffectRows | None = None,
) -> LatentAbilities:
    """Abilities at (person, time) pairs; person −1 is someone never seen.

    `group_if_new` (n_pairs,) are groups of those never seen, −1 where they are not known. Default:
    not known. `rows` are columns of effects of answers, for what these see in the place of the
    ability. Default: those of each person's ability.
    """
    order = np.argsort(person, kind="stable")
    who = person[order]
    when = offsets[order]
    means = np.zeros((len(fit.kernels), who.size))
    variances = np.ones((len(fit.kernels), who.size))
    weights = np.repeat(fit.population[:, None], who.size, axis=1)
    first = int(np.searchsorted(who, 0))
    x = fit.sites.columns_of_ability(who, when) if rows is None else rows.x[order]
    asked = asked_of(who[first:], when[first:])
    if asked.known.size:
        for k in range(len(fit.kernels)):
            means[k, first:], variances[k, first:] = predicted(fit, k, asked, fit.prior_mean)
        weights[:, first:] = fit.weights[:, who[first:]]
    cohort = fit.priors.cohort
    if cohort is not None:
        group = fit.group_of(who)
        if group_if_new is not None:
            group = np.where(who >= 0, group, group_if_new[order])
        means += cohort.mean(when, group, x)
        of_new, of_known = (None, None) if x is None else (x[:first], x[first:])
        variances[:, :first] += cohort.variance(when[:first], group[:first], of_new)
        variances[:, first:] += cohort.drift_variance(when[first:], group[first:])
        variances[:, first:] += (cohort_errors(fit, asked, of_known) ** 2).sum(axis=1)
        if rows is not None:
            sizes = cohort.sizes[cohort.sizes.size - cohort.n_blocks :]
            variances += rows.unseen[order] @ sizes**2
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return LatentAbilities(weights[:, back], means[:, back], variances[:, back])


def predicted(
    fit: Fit, k: int, asked: Asked, site_mean: Array | None, covers_asked: bool = False
) -> Moments:
    """Curves about the cohort's mean under the k-th kernel, at points asked for.

    `site_mean` (n_sites,) is the cohort's mean at everyone's instants, or None.
    """
    kernel = fit.kernels[k]
    layout = fit.sites.for_kernel(kernel, fit.priors)
    sites = layout.sites_of(asked.known)
    latent = fit.ep[k].sites.select(sites).through_nugget(kernel.nugget_variance)
    if site_mean is not None:
        latent = latent.about(site_mean[sites])
    return _predict(fit, kernel, layout.select(asked.known), latent, asked, covers_asked)


def _predict(
    fit: Fit,
    kernel: Kernel,
    layout: SiteLayout,
    latent: NaturalGaussian,
    asked: Asked,
    covers_asked: bool = False,
) -> Moments:
    """Marginals of the curves with these sites, at points asked for.

    `covers_asked` says whether features must represent these points too. Otherwise what they leave
    out of the prior counts as independent at each point, which is right for one point at a time.
    """
    first, last = (edge[asked.known] for edge in fit.sites.layout.spans)
    if covers_asked and not depends_on_span(kernel):
        first = np.minimum(first, np.minimum.reduceat(asked.offsets, asked.start[:-1]))
        last = np.maximum(last, np.maximum.reduceat(asked.offsets, asked.start[:-1]))
    return predict_marginals(
        kernel,
        layout,
        latent,
        asked.offsets,
        asked.start,
        spans=(first, last),
        threads=fit.options["threads"],
    )


def cohort_errors(fit: Fit, asked: Asked, x: csr_array | None = None) -> Array:
    """Standard deviations of abilities from the cohort's: (n_kernels, n_directions, n_points).

    They are signed and belong to independent directions of the cohort's coefficients. A mean that
    moves by x moves an ability by x − CTx, with the sites' precisions T and the covariance C. `x`
    are columns of effects at the points; default: those of abilities.
    """
    cohort = fit.priors.cohort
    roots = cohort_roots(fit)
    out = np.zeros((len(fit.kernels), roots.shape[1], asked.offsets.size))
    if cohort is None or not out.size:
        return out
    layout = fit.sites.layout
    sites = layout.sites_of(asked.known)
    group = fit.sites.group_of_site[sites]
    if x is None:
        x = fit.sites.columns_of_ability(asked.person, asked.offsets)
    at_all = fit.sites.columns_of_effects
    x_sites = None if at_all is None else at_all[sites]
    at_sites = cohort.design(layout.times[sites], group, x_sites) @ roots
    at_points = cohort.design(asked.offsets, fit.group_of(asked.person), x) @ roots
    for k, kernel in enumerate(fit.kernels):
        own = fit.ep[k].sites.select(sites).through_nugget(kernel.nugget_variance)
        for r in range(roots.shape[1]):
            pulled = NaturalGaussian(own.precision, own.precision * at_sites[:, r])
            moved = _predict(fit, kernel, layout.select(asked.known), pulled, asked)
            out[k, r] = at_points[:, r] - moved.mean
    return out


def cohort_roots(fit: Fit) -> Array:
    """Directions of the cohort's uncertainty, as long as its standard deviations.

    Only those that matter: (n_coefficients, n_directions).
    """
    cohort = fit.priors.cohort
    if cohort is None or cohort.covariance is None:
        return np.zeros((0 if cohort is None else cohort.coefficients.size, 0))
    values, vectors = np.linalg.eigh(cohort.covariance)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))
    times = np.repeat(cohort.basis.knots, cohort.n_groups)
    group = np.tile(np.arange(cohort.n_groups), cohort.basis.knots.size)
    largest = np.abs(cohort.design(times, group) @ roots).max(axis=0)
    if cohort.effect_contrasts is not None:  # columns reach about twice their spread of 1
        largest = np.maximum(largest, np.abs(2 * cohort.effect_contrasts @ roots).max(axis=0))
    return np.asarray(roots[:, largest > NEGLIGIBLE])


def latent_changes(fit: Fit, people: Ints, t0: Array, t1: Array) -> LatentAbilities:
    """Differences of each person's ability between two times: ability(t1) − ability(t0).

    Times (n_people,) are each person's own.
    """
    ends = np.stack([t0, t1], axis=1).ravel()
    asked = asked_of(np.repeat(people, 2), ends)
    means = np.empty((len(fit.kernels), people.size))
    variances = np.empty(means.shape)
    errors = cohort_errors(fit, asked)
    for k in range(len(fit.kernels)):
        own = predicted(fit, k, asked, fit.prior_mean, covers_asked=True)
        means[k] = own.mean[1::2] - own.mean[::2]
        across = _covariances(fit, k, asked.known, t0, t1)
        variances[k] = own.variance[1::2] + own.variance[::2] - 2 * across
        variances[k] += ((errors[k, :, 1::2] - errors[k, :, ::2]) ** 2).sum(axis=0)
    cohort = fit.priors.cohort
    if cohort is not None:
        x = fit.sites.columns_of_ability(asked.person, ends)
        at = cohort.mean(ends, fit.group_of(asked.person), x)
        means += at[1::2] - at[::2]
        group = fit.group_of(people)
        across = cohort.drift_covariance(t0, t1, group)
        variances += cohort.drift_variance(t0, group) + cohort.drift_variance(t1, group)
        variances -= 2 * across
    return LatentAbilities(fit.weights[:, people], means, np.maximum(variances, 1e-300))


def _covariances(fit: Fit, k: int, people: Ints, t0: Array, t1: Array) -> Array:
    """Posterior covariance of each person's curve at two times, under the k-th kernel.

    A site at t0 that only pulls, by 1, moves the mean at t1 by the covariance.
    """
    kernel = fit.kernels[k]
    whole = fit.sites.for_kernel(kernel, fit.priors)
    layout = whole.select(people)
    own = fit.ep[k].sites.select(whole.sites_of(people)).through_nugget(kernel.nugget_variance)
    n_sites = np.diff(layout.site_start)
    start = starts_of(n_sites + 1)
    person = np.repeat(np.arange(people.size), n_sites)
    before = np.bincount(person, layout.times <= t0[person], people.size).astype(np.int64)
    pull = start[:-1] + before
    is_pull = np.zeros(start[-1], dtype=bool)
    is_pull[pull] = True
    times = np.empty(start[-1])
    times[is_pull] = t0
    times[~is_pull] = layout.times
    sites = NaturalGaussian(np.zeros(start[-1]), np.where(is_pull, 1.0, 0.0))
    sites.precision[~is_pull] = own.precision
    grown = SiteLayout(
        times, start, np.arange(start[-1] + 1), pull, np.ones(pull.size), np.arange(pull.size)
    )
    ends = asked_of(np.repeat(people, 2), np.stack([t0, t1], axis=1).ravel())
    return _predict(fit, kernel, grown, sites, ends, covers_asked=True).mean[1::2]
