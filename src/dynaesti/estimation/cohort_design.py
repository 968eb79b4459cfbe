"""The cohort before it is learned: its basis, its groups, and what cannot be told from the items.

Where all answers to an item fall at one time, a harder item and a weaker cohort look the same. For
each direction of the coefficients the share of its variance within items is computed; directions
with too little of it are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag, eigh, null_space

from dynaesti.core import Array, Bools, Ints
from dynaesti.data import count_noun
from dynaesti.errors import InputError
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.model import Cohort, ItemBank, SmoothBasis, smooth_basis

LEAST_SHARE = 0.05  # of a direction's variance within items, else it is left out
WEAK_SD = 5.0  # prior sd of levels and growth: wide, so that differences are not shrunk
MOST_COEFFICIENTS = 500
FIRST_SIZE = 1.0  # of curvature
NO_DATA = 1e-6  # variance of a direction over responses below which there are no data of it


@dataclass(frozen=True)
class CohortDesign:
    """A cohort with coefficients to start from, or none."""

    cohort: Cohort | None
    left_out: str = ""  # what of it cannot be learned, in words


@dataclass(frozen=True)
class DesignResponses:
    """Group, time and item of responses, by which a cohort is designed."""

    site: Ints
    group: Ints
    times: Array
    item: Ints
    weight: Array  # how often each counts
    item_is_known: Bools  # items whose parameters are given, so that they shift with nothing


def design_cohort(
    sites: PeopleSites,
    bank: ItemBank,
    ends: tuple[float, float],
    shares: Array,
    groups: Sequence[Any],
    earlier: Cohort | None = None,
) -> CohortDesign:
    """The cohort for these people.

    Parameters
    ----------
    sites : PeopleSites
        A sample of the people, with some of every group.
    bank : ItemBank
    ends : (float, float)
        Times of the first and last response of everyone.
    shares : array (n_groups,)
        Of each group in the responses of everyone.
    groups : sequence of labels
        Empty where the population is one.
    earlier : Cohort, optional
        That of nearly the same data, to start from. Default: 0 at all times.
    """
    responses = design_responses(sites, bank)
    basis = smooth_basis(responses.times, *ends, responses.weight)
    if basis is None:
        if groups:
            raise InputError(
                "groups: all answers are at one time, so that growth cannot be seen; compare the "
                "groups by the abilities of their people"
            )
        return CohortDesign(None)
    most = int((MOST_COEFFICIENTS + 1) // basis.n_columns)
    if len(groups) > most:
        raise InputError(
            f"groups: {len(groups)} groups, and at most {most} can be learned together; join some"
        )
    found = _identified(_whole_cohort(basis, shares, groups), responses)
    made = found.cohort
    if made is None or earlier is None or earlier.groups != made.groups:
        return found
    design = made.design(responses.times, responses.group)
    before = earlier.mean(responses.times, responses.group)
    centre = float(responses.weight @ before) / responses.weight.sum()
    near = np.linalg.lstsq(design, before - centre, rcond=None)[0]
    known = earlier.sizes[: earlier.sizes.size - earlier.n_blocks]
    sizes = known if known.size == made.sizes.size else made.sizes
    return replace(found, cohort=replace(made, coefficients=near, sizes=sizes))


def design_responses(sites: PeopleSites, bank: ItemBank) -> DesignResponses:
    """Group, time and item of each response of some people."""
    layout = sites.layout
    first = np.flatnonzero(np.diff(layout.factor_response, prepend=-1))
    site = np.repeat(np.arange(layout.n_sites), np.diff(layout.factor_start))[first]
    is_known = np.zeros(bank.item_count, dtype=bool)
    # factors of amounts have weights of their own, which are not how often a response counts
    has_own_weights = np.zeros(bank.item_count, dtype=bool)
    for block in bank.blocks:
        is_known[block.items] = ~block.free.any(axis=1)
        has_own_weights[block.items] = not block.model.has_value_rows
    item = bank.item_of_row()[layout.factor_row[first]]
    return DesignResponses(
        site,
        sites.group_of_site[site],
        layout.times[site],
        item,
        np.where(has_own_weights[item], 1.0, layout.factor_weight[first]),
        is_known,
    )


def _whole_cohort(basis: SmoothBasis, shares: Array, groups: Sequence[Any]) -> Cohort:
    """The cohort with all coefficients, before it is known which can be learned.

    They are the common line and bumps, and each group's deviations from them in level, line and
    bumps, which average to 0 over the responses. Bumps are penalised, the common ones and the
    deviations each with a size of their own: by the sum over groups of the squared deviation.
    """
    n_groups = shares.size
    n_columns = basis.n_columns
    common = np.tile(np.eye(n_columns)[None, :, 1:], (n_groups, 1, 1))
    balanced = null_space(shares[None]) if n_groups > 1 else np.zeros((1, 0))
    deviations = np.einsum("gd,bc->gbcd", balanced, np.eye(n_columns))
    rough = basis.roughness
    each = n_groups - 1
    penalties = [
        block_diag(np.diag(rough[1:]), np.zeros((n_columns * each,) * 2)),
        block_diag(np.zeros((n_columns - 1,) * 2), np.kron(np.diag(rough), np.eye(each))),
    ]
    free = np.concatenate([rough[1:], np.repeat(rough, each)]) == 0
    kept = np.array([penalty for penalty in penalties if penalty.any()])
    return Cohort(
        basis,
        tuple(groups),
        shares,
        np.concatenate([common, deviations.reshape(n_groups, n_columns, -1)], axis=2),
        np.diag(np.where(free, WEAK_SD**-2.0, 0.0)),
        kept.reshape(-1, free.size, free.size),
        np.full(len(kept), FIRST_SIZE),
        0.0,
        np.zeros(free.size),
        np.zeros((n_groups, n_columns, 0)),
    )


AT_ONE_TIME = (
    "most items are answered at one time only, so that a cohort that improves cannot be told from "
    "items that become easier"
)


def _identified(cohort: Cohort, responses: DesignResponses) -> CohortDesign:
    """The cohort without directions that the items' difficulties can take over.

    Where that is so of the common line, the whole common curve goes: the rest would be mistaken for
    it. Groups that meet the same items at the same times can still be compared.
    """
    shares, directions = _shares_within_items(cohort, responses)
    line = cohort.trend / (cohort.trend @ cohort.trend)
    if _share_of(cohort, responses, line) < LEAST_SHARE:
        unseen = (
            f"The cohort's curve cannot be seen: {AT_ONE_TIME}. Abilities are relative to the "
            "population's mean at each time. Items of known difficulty, or the same items at "
            "several times, would tell."
        )
        if cohort.n_groups == 1:
            return CohortDesign(None, unseen)
        n_common = cohort.basis.n_columns - 1
        every = np.eye(cohort.coefficients.size)
        common = cohort.contrasts @ every[:, :n_common]
        apart = replace(_restricted(cohort, every[:, n_common:]), lost=common)
        shares, directions = _shares_within_items(apart, responses)
        return _without_lost(
            apart, shares, directions, f"{unseen} Groups are compared all the same."
        )
    return _without_lost(cohort, shares, directions, "")


def _without_lost(cohort: Cohort, shares: Array, directions: Array, said: str) -> CohortDesign:
    """The cohort without directions of too small a share, and what is left out in words."""
    kept = shares >= LEAST_SHARE
    if kept.all():
        return CohortDesign(cohort, said)
    lost = cohort.contrasts @ directions[:, ~kept]
    what = "the cohort's curve" if cohort.n_groups == 1 else "how the groups differ"
    left_out = (
        f"{int((~kept).sum())} of {count_noun(kept.size, 'directions')} of {what} cannot be told "
        "from how hard items are, since items are answered at one time, or by one group, only; "
        "they are left out."
    )
    words = f"{said} {left_out}".strip()
    if not kept.any():
        return CohortDesign(None, words)
    lost = np.concatenate([cohort.lost, lost], axis=2)
    return CohortDesign(replace(_restricted(cohort, directions[:, kept]), lost=lost), words)


def _restricted(cohort: Cohort, span: Array) -> Cohort:
    """The cohort with coefficients in a subspace, spanned by the columns of `span`."""
    penalties = np.array([span.T @ penalty @ span for penalty in cohort.penalties])
    used = [k for k, penalty in enumerate(penalties) if np.abs(penalty).max(initial=0.0) > 0]
    return replace(
        cohort,
        contrasts=cohort.contrasts @ span,
        weak=span.T @ cohort.weak @ span + 1e-9 * np.eye(span.shape[1]),
        penalties=penalties[used].reshape(-1, span.shape[1], span.shape[1]),
        sizes=cohort.sizes[used],
        coefficients=np.zeros(span.shape[1]),
    )


def _shares_within_items(cohort: Cohort, responses: DesignResponses) -> tuple[Array, Array]:
    """Shares of directions' variance within items, rising, and the directions.

    Directions of which there are no data have a share of 1: nothing takes them over, and their
    prior holds them. Each direction moves the mean by 1, in the root mean square over responses.
    """
    within, total = _scatter(cohort, responses)
    ridge = NO_DATA * np.eye(total.shape[0])
    shares, directions = eigh(within + ridge, total + ridge)
    return shares, directions


def _share_of(cohort: Cohort, responses: DesignResponses, direction: Array) -> float:
    """Share of one direction's variance that is within items."""
    within, total = _scatter(cohort, responses)
    return float(direction @ within @ direction) / max(float(direction @ total @ direction), 1e-12)


def _scatter(cohort: Cohort, responses: DesignResponses) -> tuple[Array, Array]:
    """Variances of the columns over responses: within items, and in all."""
    design = cohort.design(responses.times, responses.group)
    weight = responses.weight / responses.weight.sum()
    root = np.sqrt(weight)[:, None]
    within = root * within_items(design, responses)
    centred = root * (design - weight @ design)
    return within.T @ within, centred.T @ centred


def within_items(columns: Array, responses: DesignResponses) -> Array:
    """Columns less their means over all responses, and over those to each item that is learned."""
    weight = responses.weight / responses.weight.sum()
    centred = columns - weight @ columns
    number = np.bincount(responses.item, weight, minlength=responses.item_is_known.size)
    sums = np.zeros((number.size, columns.shape[1]))
    np.add.at(sums, responses.item, weight[:, None] * centred)
    means = sums / np.maximum(number, 1e-300)[:, None]
    means[responses.item_is_known] = 0.0
    return np.asarray(centred - means[responses.item])
