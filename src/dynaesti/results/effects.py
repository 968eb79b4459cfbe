"""Effects of a fit as a table: estimates, standard errors, and the sizes of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dynaesti.core import Array
from dynaesti.errors import InputError, option
from dynaesti.model import Cohort

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
    unit = np.ones(effects.n_columns)
    unit[: len(effects.fixed)] = 1.0 / effects.scale
    estimate = fit.gain * unit * cohort.effect_values
    se = abs(fit.gain) * unit * _standard_errors(cohort)
    n_fixed = len(effects.fixed)
    learned = np.abs(cohort.effect_contrasts).sum(axis=1)[:n_fixed] > 0
    estimate[:n_fixed][~learned] = np.nan
    se[:n_fixed][~learned] = np.nan
    z = np.full(estimate.size, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        z[:n_fixed] = estimate[:n_fixed] / se[:n_fixed]
    names = effects.names
    for number, block in reversed(list(enumerate(effects.blocks))):
        size = abs(fit.gain) * cohort.sizes[cohort.sizes.size - cohort.n_blocks + number]
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
