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
from scipy.linalg import block_diag, eigh

from dynaesti.core import Array, Ints
from dynaesti.data import count_noun
from dynaesti.errors import InputError
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.model import Cohort, ItemBank, SmoothBasis, smooth_basis

LEAST_SHARE = 0.05  # of a direction's variance within items, else it is left out
WEAK_SD = 5.0  # prior sd of levels and growth: wide, so that differences are not shrunk
MOST_COEFFICIENTS = 500
FIRST_SIZE = 1.0  # of curvature


@dataclass(frozen=True)
class CohortDesign:
    """A cohort with coefficients to start from, or none."""

    cohort: Cohort | None
    left_out: str = ""  # what of it cannot be learned, in words


@dataclass(frozen=True)
class _Responses:
    """Group, time and item of responses, by which a cohort is designed."""

    group: Ints
    times: Array
    item: Ints
    weight: Array  # how often each counts
    item_is_known: Ints  # 1 where an item's parameters are given, so that it shifts with nothing


def design_cohort(
    sites: PeopleSites,
    bank: ItemBank,
    first: float,
    last: float,
    groups: Sequence[Any],
    earlier: Cohort | None = None,
) -> CohortDesign:
    """The cohort for these people.

    Parameters
    ----------
    sites : PeopleSites
        A fair sample of the people.
    bank : ItemBank
    first, last : float
        Times of the first and last response of everyone.
    groups : sequence of labels
        Empty where the population is one.
    earlier : Cohort, optional
        That of nearly the same data, to start from. Default: 0 at all times.
    """
    responses = _responses(sites, bank)
    basis = smooth_basis(responses.times, first, last, responses.weight)
    if basis is None:
        if groups:
            raise InputError(
                "groups: all answers are at one time, so that growth cannot be seen; compare the "
                "groups by the abilities of their people"
            )
        return CohortDesign(None)
    shares = np.bincount(responses.group, responses.weight, minlength=max(len(groups), 1))
    shares = shares / shares.sum()
    contrasts, weak, penalties = _coefficients(basis, shares)
    if contrasts.shape[2] > MOST_COEFFICIENTS:
        raise InputError(
            f"groups: {len(groups)} groups have {contrasts.shape[2]} coefficients, and "
            f"{MOST_COEFFICIENTS} can be learned; join some of them"
        )
    cohort = Cohort(
        basis,
        tuple(groups),
        shares,
        contrasts,
        weak,
        penalties,
        np.full(penalties.shape[0], FIRST_SIZE),
        0.0,
        np.zeros(contrasts.shape[2]),
    )
    found = _identified(cohort, responses)
    made = found.cohort
    if made is None or earlier is None or earlier.groups != made.groups:
        return found
    design = made.design(responses.times, responses.group)
    before = earlier.mean(responses.times, responses.group)
    near = np.linalg.lstsq(design, before - before.mean(), rcond=None)[0]
    return replace(found, cohort=replace(made, coefficients=near, sizes=earlier.sizes))


def _responses(sites: PeopleSites, bank: ItemBank) -> _Responses:
    """Group, time and item of each response of some people."""
    layout = sites.layout
    first = np.flatnonzero(np.diff(layout.factor_response, prepend=-1))
    site = np.repeat(np.arange(layout.n_sites), np.diff(layout.factor_start))[first]
    is_known = np.zeros(bank.item_count, dtype=np.int64)
    # factors of amounts have weights of their own, which are not how often a response counts
    has_own_weights = np.zeros(bank.item_count, dtype=bool)
    for block in bank.blocks:
        is_known[block.items] = ~block.free.any(axis=1)
        has_own_weights[block.items] = not block.model.has_value_rows
    item = bank.item_of_row()[layout.factor_row[first]]
    return _Responses(
        sites.group_of_site[site],
        layout.times[site],
        item,
        np.where(has_own_weights[item], 1.0, layout.factor_weight[first]),
        is_known,
    )


def _coefficients(basis: SmoothBasis, shares: Array) -> tuple[Array, Array, Array]:
    """Contrasts, weak precisions, and penalties of curvature.

    The coefficients are the common line and bumps, and each group's deviations from them in level,
    line and bumps, which average to 0 over the responses. Bumps are penalised, the common ones and
    the deviations each with a size of their own: Σ over groups of the squared deviation.
    """
    n_groups = shares.size
    n_columns = basis.n_columns
    # the last group's deviation makes the average 0
    balanced = np.concatenate([np.eye(n_groups - 1), -shares[None, :-1] / shares[-1]])
    common = np.tile(np.eye(n_columns)[None, :, 1:], (n_groups, 1, 1))
    deviations = np.einsum("gd,bc->gbcd", balanced, np.eye(n_columns))
    contrasts = np.concatenate([common, deviations.reshape(n_groups, n_columns, -1)], axis=2)
    rough = basis.roughness
    penalties = [
        block_diag(np.diag(rough[1:]), np.zeros((n_columns * (n_groups - 1),) * 2)),
        block_diag(np.zeros((n_columns - 1,) * 2), np.kron(np.diag(rough), balanced.T @ balanced)),
    ]
    free = np.concatenate([rough[1:], np.repeat(rough, n_groups - 1)]) == 0
    weak = np.diag(np.where(free, WEAK_SD**-2.0, 0.0))
    kept = [penalty for penalty in penalties if penalty.any()]
    return contrasts, weak, np.array(kept).reshape(-1, free.size, free.size)


def _identified(cohort: Cohort, responses: _Responses) -> CohortDesign:
    """The cohort without directions that the items' difficulties can take over."""
    design = cohort.design(responses.times, responses.group)
    weight = responses.weight
    centred = design - (weight @ design) / weight.sum()
    number = np.bincount(responses.item, weight, minlength=responses.item_is_known.size)
    sums = np.zeros((number.size, design.shape[1]))
    np.add.at(sums, responses.item, weight[:, None] * centred)
    means = sums / np.maximum(number, 1e-300)[:, None]
    means[responses.item_is_known > 0] = 0.0
    root = np.sqrt(weight)[:, None]
    within = root * (centred - means[responses.item])
    centred = root * centred
    total = centred.T @ centred
    least = 1e-9 * max(float(np.trace(total)), 1.0)
    shares, directions = eigh(within.T @ within, total + least * np.eye(total.shape[0]))
    kept = shares >= LEAST_SHARE
    if kept.all():
        return CohortDesign(cohort)
    # the common line is the first coefficient: without it, the rest would be mistaken for the whole
    line = float((within[:, 0] ** 2).sum() / max(total[0, 0], least))
    n_lost = int((~kept).sum())
    what = "the cohort's curve" if cohort.n_groups == 1 else "the cohort's and the groups' curves"
    why = (
        "most items are answered at one time only, so that a cohort that improves cannot be told "
        "from items that become easier"
    )
    if not kept.any() or line < LEAST_SHARE:
        return CohortDesign(
            None,
            f"{what[:1].upper()}{what[1:]} cannot be seen: {why}. Abilities are relative to the "
            "population's mean at each time. Items of known difficulty, or the same items at "
            "several times, would tell.",
        )
    left_out = (
        f"A part of {what} is left out ({n_lost} of {count_noun(kept.size, 'directions')}): {why}."
    )
    span = directions[:, kept]
    rotated = replace(
        cohort,
        contrasts=cohort.contrasts @ span,
        weak=span.T @ cohort.weak @ span + 1e-9 * np.eye(span.shape[1]),
        penalties=np.array([span.T @ penalty @ span for penalty in cohort.penalties]),
        coefficients=np.zeros(span.shape[1]),
    )
    return CohortDesign(rotated, left_out)
