"""Effects before they are learned: which of their columns can be told from all else.

A column that items, the cohort or the columns before it could take over is left out, and told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import block_diag

from dynaesti.core import Array, Bools
from dynaesti.estimation.cohort_design import CohortDesign, design_responses, within_items
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.model import Cohort, Effects, ItemBank, flat_basis

LEAST_LEFT = 1e-4  # share of a column's variance that nothing else takes over
NO_PRIOR = 1e-6  # precision of effects without a prior, of columns with a spread of 1
FIRST_SIZE = 0.3  # of exchangeable effects, in standard deviations of ability


def add_effects(
    design: CohortDesign,
    effects: Effects,
    sites: PeopleSites,
    bank: ItemBank,
    ends: tuple[float, float],
    earlier: Cohort | None = None,
) -> CohortDesign:
    """The cohort with effects beside its curve, or with effects alone.

    Parameters
    ----------
    design : CohortDesign
        The cohort without effects.
    effects : Effects
    sites : PeopleSites
        A sample of the people, with columns of effects.
    bank : ItemBank
    ends : (float, float)
        Times of the first and last response of everyone.
    earlier : Cohort, optional
        That of nearly the same data, to start from.
    """
    cohort = design.cohort or _no_curve(ends)
    lost, why = _lost_columns(cohort, effects, sites, bank)
    kept = np.flatnonzero(~lost)
    n_old = cohort.coefficients.size
    wide = n_old + kept.size
    contrasts = np.zeros((effects.n_columns, wide))
    contrasts[kept, n_old + np.arange(kept.size)] = 1.0
    in_block = [
        ((kept >= block.columns.start) & (kept < block.columns.stop)).astype(np.float64)
        for block in effects.blocks
    ]
    free = 1.0 - np.sum(in_block, axis=0) if in_block else np.ones(kept.size)
    coefficients = np.append(cohort.coefficients, np.zeros(kept.size))
    sizes = np.append(cohort.sizes, np.full(len(in_block), FIRST_SIZE))
    if earlier is not None and earlier.effects is not None:
        same = earlier.effects.names == effects.names
        if same:
            coefficients[n_old:] = earlier.effect_values[kept]
            sizes[cohort.sizes.size :] = earlier.sizes[earlier.sizes.size - earlier.n_blocks :]
    penalties = [_padded(penalty, kept.size) for penalty in cohort.penalties]
    penalties += [block_diag(np.zeros((n_old, n_old)), np.diag(one)) for one in in_block]
    made = replace(
        cohort,
        contrasts=np.pad(cohort.contrasts, ((0, 0), (0, 0), (0, kept.size))),
        weak=block_diag(cohort.weak, np.diag(NO_PRIOR * free)),
        penalties=np.array(penalties).reshape(-1, wide, wide),
        sizes=sizes,
        coefficients=coefficients,
        effects=effects,
        effect_contrasts=contrasts,
    )
    return CohortDesign(made, f"{design.left_out} {why}".strip())


def _padded(penalty: Array, more: int) -> Array:
    return np.pad(penalty, ((0, more), (0, more)))


def _no_curve(ends: tuple[float, float]) -> Cohort:
    """A cohort whose mean is 0 at all times."""
    basis = flat_basis(*ends)
    return Cohort(
        basis,
        (),
        np.ones(1),
        np.zeros((1, basis.n_columns, 0)),
        np.zeros((0, 0)),
        np.zeros((0, 0, 0)),
        np.zeros(0),
        0.0,
        np.zeros(0),
        np.zeros((1, basis.n_columns, 0)),
    )


def _lost_columns(
    cohort: Cohort, effects: Effects, sites: PeopleSites, bank: ItemBank
) -> tuple[Bools, str]:
    """Columns that cannot be learned (n_columns,), and which these are in words.

    Exchangeable effects have a prior, which tells them from all else.
    """
    lost = np.zeros(effects.n_columns, dtype=bool)
    n_fixed = len(effects.fixed)
    responses = design_responses(sites, bank)
    x = sites.columns_of_effects
    assert x is not None
    fixed = x[responses.site][:, :n_fixed].toarray()
    curve = cohort.design(responses.times, responses.group)
    weight = responses.weight / responses.weight.sum()
    root = np.sqrt(weight)[:, None]
    whole = root * (fixed - weight @ fixed)
    within = root * within_items(np.concatenate([curve, fixed], axis=1), responses)
    basis = np.linalg.qr(within[:, : curve.shape[1]])[0] if curve.shape[1] else within[:, :0]
    reasons: dict[str, list[str]] = {}
    if effects.constant:
        reasons["has one value only"] = effects.constant
    for k, column in enumerate(effects.fixed):
        own = within[:, curve.shape[1] + k]
        length = float(whole[:, k] @ whole[:, k])
        left = own - basis @ (basis.T @ own)
        left -= basis @ (basis.T @ left)  # once more: rounding
        if float(left @ left) > LEAST_LEFT * max(length, 1e-12):
            basis = np.column_stack([basis, left / np.linalg.norm(left)])
            continue
        lost[k] = True
        if length < 1e-9:
            why = "has one value only"
        elif float(own @ own) <= LEAST_LEFT * length:
            why = "is the same in all answers to an item, so that difficulties take it over"
        else:
            why = "follows from the cohort's curve, the items or other columns"
            if len(column.factors) > 1:
                why += " (a factor far from 0, such as a year, may be why: take 2000 away from it)"
        reasons.setdefault(why, []).append(column.name)
    words = [f"{_listed(names)} {why}" for why, names in reasons.items()]
    return lost, f"Effects that cannot be learned: {'; '.join(words)}." if words else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more
