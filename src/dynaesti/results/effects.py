"""Effects of a fit as a table: estimates, standard errors, and the sizes of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dynaesti.core import Array
from dynaesti.errors import InputError, option
from dynaesti.model import Cohort, Effects

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase

LEVEL = 0.95  # of the intervals


def effect_columns(fit: FitBase) -> dict[str, Any]:
    """Columns of `Fit.effects`."""
    cohort = fit.priors.cohort
    if cohort is None or cohort.effects is None or cohort.effect_contrasts is None:
        raise InputError(
            f"this fit has no effects; {option('effects', 'age + practice(item)')} learns some"
        )
    effects = cohort.effects
    learned = np.abs(cohort.effect_contrasts).sum(axis=1) > 0
    learned[len(effects.fixed) :] = True  # a block's levels have their prior
    estimate = np.where(learned, fit.gain * cohort.effect_values, np.nan)
    se = np.where(learned, abs(fit.gain) * _standard_errors(cohort), np.nan)
    sizes = abs(fit.gain) * cohort.sizes[cohort.sizes.size - cohort.n_blocks :]
    return effect_table(effects, estimate, se, sizes)


def effect_table(effects: Effects, estimate: Array, se: Array, sizes: Array) -> dict[str, Any]:
    """Columns term, estimate, se, lower, upper, z, p.

    Parameters
    ----------
    effects : Effects
    estimate, se : array (n_columns,)
        Of columns that are centred and scaled.
    sizes : array (n_blocks,)
        Standard deviation of the effects of each block, which has a row before its levels.
    """
    n_fixed = len(effects.fixed)
    unit = np.ones(effects.n_columns)
    unit[:n_fixed] = 1.0 / effects.scale
    estimate, se = unit * estimate, unit * se
    z = np.full(estimate.size, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        z[:n_fixed] = estimate[:n_fixed] / se[:n_fixed]
    names = effects.names
    for block, size in reversed(list(zip(effects.blocks, sizes, strict=True))):
        first = block.columns.start
        names.insert(first, f"sd of {block.factor}")
        estimate = np.insert(estimate, first, size)
        se, z = np.insert(se, first, np.nan), np.insert(z, first, np.nan)
    reach = se * ndtri(0.5 + LEVEL / 2)
    return {
        "term": names,
        "estimate": estimate,
        "se": se,
        "lower": estimate - reach,
        "upper": estimate + reach,
        "z": z,
        "p": 2 * ndtr(-np.abs(z)),
    }


def _standard_errors(cohort: Cohort) -> Array:
    """Standard errors of all columns' effects; NaN where none were computed."""
    assert cohort.effect_contrasts is not None
    if cohort.covariance is None:
        return np.full(cohort.n_effects, np.nan)
    contrasts = cohort.effect_contrasts
    variance = np.einsum("cp,pq,cq->c", contrasts, cohort.covariance, contrasts, optimize=True)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
