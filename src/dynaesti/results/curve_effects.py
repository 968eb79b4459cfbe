"""Effects of columns on the emissions of a curve, and the size of noise, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array
from dynaesti.data import read_covariates
from dynaesti.errors import InputError
from dynaesti.inference import WeightPosterior
from dynaesti.model import EffectBlock, EmissionColumns, Kernel, Noise, effect_sds
from dynaesti.results.effects import effect_table

if TYPE_CHECKING:
    from dynaesti.results.curve import Curve


def curve_effect_columns(curve: Curve) -> dict[str, Any]:
    """Columns of `Curve.effects`: moments over the priors that carry the curve."""
    weights, _, components = curve.weighted_components()
    noise = np.array([noise_sd(one.kernel) for one in components])
    effects = curve.column_effects
    if effects is None and not noise.any():
        raise InputError(
            "this curve has neither effects nor noise; CurvFiFE(effects='random(house)', "
            "noise=True) learns them"
        )
    table: dict[str, Any] = {
        name: [] for name in ("term", "estimate", "se", "lower", "upper", "z", "p")
    }
    if effects is not None:
        found = [_moments(one.posterior, one.kernel) for one in components]
        means = np.array([mean for mean, _ in found])
        mean = weights @ means
        variance = weights @ (np.array([one for _, one in found]) + (means - mean) ** 2)
        sizes = weights @ np.array([_block_sizes(one.kernel) for one in components])
        sizes = sizes[sizes.size - len(effects.blocks) :]
        table = effect_table(effects, mean, np.sqrt(variance), sizes)
    if noise.any():
        row = {"term": "sd of noise", "estimate": float(weights @ noise)}
        table = {key: [*values, row.get(key, np.nan)] for key, values in table.items()}
    return table


def effects_at_emissions(curve: Curve) -> Array:
    """Posterior mean of what the effects add to each emission, (n_emissions,); 0 without any."""
    x = curve.observations.columns
    if x is None:
        return np.zeros(len(curve.observations.emissions))
    weights, _, components = curve.weighted_components()
    means = np.array([_moments(one.posterior, one.kernel)[0] for one in components])
    return np.asarray(x @ (weights @ means))


def noise_sd(kernel: Kernel) -> float:
    """Standard deviation of the noise of single emissions, 0 where there is none."""
    parts = [summand.variance for summand in kernel.summands if isinstance(summand, Noise)]
    return float(np.sqrt(sum(parts)))


def _block_sizes(kernel: Kernel) -> Array:
    """Prior standard deviations of the effects of each block, the fixed ones first."""
    blocks = [summand for summand in kernel.summands if isinstance(summand, EffectBlock)]
    return np.sqrt([block.variance for block in blocks])


def _moments(posterior: Any, kernel: Kernel) -> tuple[Array, Array]:
    """Means and variances of the effects of all columns under one prior."""
    assert isinstance(posterior, WeightPosterior)  # effects are features
    sds = effect_sds(kernel)
    mean, covariance = posterior.last_weights(sds.size)
    return sds * mean, sds**2 * np.diagonal(covariance)


def columns_of_update(curve: Curve, times: Any, covariates: Any, n_rows: int) -> Array | None:
    """Columns of effects of further emissions; None where the curve has no effects.

    Raises
    ------
    InputError
        If columns are absent, not needed, or have levels that the curve does not know.
    """
    effects = curve.column_effects
    if effects is None:
        if covariates is not None:
            raise InputError("covariates: the curve has no effects that would need them")
        return None
    kinds = {
        name: "category" if name in effects.levels else "number" for name in effects.formula.columns
    }
    found = read_covariates(covariates, kinds, n_rows)
    offsets = curve.observations.axis.offsets(times)
    rows = effects.rows(EmissionColumns(offsets, found))
    if rows.unseen.any():
        raise InputError(
            f"covariates: {int(rows.unseen.any(axis=1).sum())} of {n_rows} emissions have a level "
            "of an exchangeable block that the curve has not seen; fit all emissions again"
        )
    return np.asarray(rows.x.toarray())
