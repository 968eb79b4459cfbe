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


def standard_errors(block: ItemBlock, cov: Array, scale: Scale) -> dict[str, Array]:
    """Standard errors of a block's reported parameters, by the delta method.

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
    dict of str to array (n_items,)
        Standard errors by reported name.
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
    out = {}
    for name, parts in slopes.items():
        j = np.stack(parts, axis=1)
        with np.errstate(invalid="ignore"):
            out[name] = np.sqrt(np.maximum(np.einsum("ip,ipq,iq->i", j, cov, j), 0.0))
    return out


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
            for name, column in standard_errors(block, covariance[k], scale).items():
                errors.setdefault(f"se_{name}", np.full(size, np.nan))[block.items] = np.where(
                    block.at_bound | (bank.ability_scale.at_bound & block.model.has_unit_slope),
                    np.inf,
                    column,
                )
    return {"item": labels.tolist(), "model": model.tolist(), "n": counts, **values, **errors}


def interval_columns(columns: dict[str, Any], level: float) -> dict[str, Any]:
    """Columns of `FitBase.item_intervals`, from those of the item table."""
    check_level(level)
    names = [name for name in columns if f"se_{name}" in columns]
    if not names:
        raise InputError(
            "the items' standard errors were not computed; fit with standard_errors=True"
        )
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
