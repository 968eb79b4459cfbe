"""The table of items: parameters with standard errors and intervals on the reported scale."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtri

from dynaesti.core import Array, Ints
from dynaesti.errors import InputError
from dynaesti.estimation import Scale
from dynaesti.inference import check_level
from dynaesti.model import STEP, ItemBank, ItemBlock

NO_ERRORS = "the items' standard errors were not computed; fit with standard_errors=True"
COVARIANCE = ("item", "parameter", "other", "covariance", "correlation")


def reported_covariances(block: ItemBlock, cov: Array, scale: Scale) -> tuple[list[str], Array]:
    """Covariances of a block's reported parameters, by the delta method.

    Parameters
    ----------
    block : ItemBlock
    cov : array (n_items, n_parameters, n_parameters)
        Covariance of the unconstrained parameters. One parameter more than the block has is the
        log of the abilities' unit.
    scale : Scale
        The reported scale.

    Returns
    -------
    names : list of str
        Names of the reported parameters.
    covariances : array (n_items, n_names, n_names)
    """
    moves = [(step, 1.0) for step in STEP * np.eye(block.u.shape[1])]
    if cov.shape[1] > block.u.shape[1]:
        moves.append(
            (np.zeros(block.u.shape[1]), float(np.exp(STEP)) if scale.name == "abilities" else 1.0)
        )
    slopes: dict[str, list[Array]] = {}
    for step, unit in moves:
        ahead, behind = (
            block.reported(block.u + sign * step, scale.gain / unit**sign, scale.shift / unit**sign)
            for sign in (1, -1)
        )
        for name in ahead:
            slopes.setdefault(name, []).append((ahead[name] - behind[name]) / (2 * STEP))
    jacobian = np.stack([np.stack(parts, axis=1) for parts in slopes.values()], axis=1)
    with np.errstate(invalid="ignore"):
        return list(slopes), np.einsum("iap,ipq,ibq->iab", jacobian, cov, jacobian)


def item_columns(
    bank: ItemBank,
    labels: npt.NDArray[Any],
    counts: Ints,
    covariance: tuple[Array, ...] | None,
    scale: Scale,
) -> dict[str, Any]:
    """Columns item, model, n, the parameters and their standard errors (se_…).

    Rows are in the items' order.
    """
    size = labels.size
    model = np.empty(size, dtype=object)
    values: dict[str, Array] = {}
    errors: dict[str, Array] = {}
    for k, block in enumerate(bank.blocks):
        model[block.items] = block.model.label
        for name, column in block.reported(block.u, scale.gain, scale.shift).items():
            values.setdefault(name, np.full(size, np.nan))[block.items] = column
        if covariance is not None:
            names, found = reported_covariances(block, covariance[k], scale)
            for n, name in enumerate(names):
                with np.errstate(invalid="ignore"):
                    column = np.sqrt(np.maximum(found[:, n, n], 0.0))
                errors.setdefault(f"se_{name}", np.full(size, np.nan))[block.items] = np.where(
                    block.at_bound | (bank.ability_scale.at_bound & block.model.has_unit_slope),
                    np.inf,
                    column,
                )
    return {"item": labels.tolist(), "model": model.tolist(), "n": counts, **values, **errors}


def covariance_columns(
    bank: ItemBank,
    labels: npt.NDArray[Any],
    covariance: tuple[Array, ...] | None,
    scale: Scale,
    items: Ints,
) -> dict[str, Any]:
    """Columns of `FitBase.item_covariance`: item, parameter, other, covariance, correlation."""
    if covariance is None:
        raise InputError(NO_ERRORS)
    columns: dict[str, list[Any]] = {name: [] for name in COVARIANCE}
    parts = [
        reported_covariances(block, cov, scale)
        for block, cov in zip(bank.blocks, covariance, strict=True)
    ]
    block_of, index = bank.index_in_blocks()
    for item in items:
        names, all_of_block = parts[block_of[item]]
        found = all_of_block[index[item]]
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = found / np.sqrt(np.outer(np.diagonal(found), np.diagonal(found)))
        for a, name in enumerate(names):
            for b, other in enumerate(names):
                row = (labels[item], name, other, found[a, b], correlation[a, b])
                for key, value in zip(COVARIANCE, row, strict=True):
                    columns[key].append(value)
    return columns


def interval_columns(columns: dict[str, Any], level: float) -> dict[str, Any]:
    """Columns of `FitBase.item_intervals`, from those of the item table."""
    check_level(level)
    names = [name for name in columns if f"se_{name}" in columns]
    if not names:
        raise InputError(NO_ERRORS)
    z = float(ndtri(0.5 + level / 2))
    estimate = np.array([columns[name] for name in names], dtype=np.float64).T
    se = np.array([columns[f"se_{name}"] for name in names], dtype=np.float64).T
    lower, upper = estimate - z * se, estimate + z * se
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for k, name in enumerate(names):
            x, e = estimate[:, k], se[:, k]
            if name == "a":
                factor = np.exp(z * e / x)
                lower[:, k] = np.where(x > 0, x / factor, lower[:, k])
                upper[:, k] = np.where(x > 0, x * factor, upper[:, k])
            elif name in ("c", "d"):
                reach = z * e / (x * (1 - x))
                lower[:, k], upper[:, k] = expit(logit(x) - reach), expit(logit(x) + reach)
    known = np.isfinite(estimate).ravel()
    table = {
        "item": [label for label in columns["item"] for _ in names],
        "parameter": names * len(columns["item"]),
    }
    numbers = {"estimate": estimate, "se": se, "lower": lower, "upper": upper}
    return {
        **{
            key: [v for v, k in zip(values, known, strict=True) if k]
            for key, values in table.items()
        },
        **{key: values.ravel()[known] for key, values in numbers.items()},
    }
