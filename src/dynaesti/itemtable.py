"""The item table: parameters on the reported scale, both metrics, with standard errors; and tables that a user hands over."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.arrays import Array, Ints, finite_number
from dynaesti.bank import Bank, Block
from dynaesti.errors import InputError
from dynaesti.items.base import STEP


@dataclass(frozen=True)
class Scale:
    """Reported abilities: gain · θ + shift, with θ in the items' metric."""

    name: str
    gain: float
    shift: float


def reported_scale(bank: Bank, wanted: str) -> Scale:
    """The scale to report: of unit variance ("abilities") or of geometric-mean slope 1 ("items"). Anchored items keep their own metric whatever is wanted."""
    metric = bank.metric
    anchored = metric.free_scale and any(not block.free.all() for block in bank.blocks)
    if metric.free_location or anchored or metric.stated:
        return Scale("anchors", metric.unit, metric.zero)
    if wanted == "abilities":
        return Scale("abilities", 1 / metric.scale, -metric.location / metric.scale)
    tables = [block.told(block.u) for block in bank.blocks]
    slopes = [table["a"] for table in tables if "a" in table]
    if not slopes:
        return Scale("abilities", 1 / metric.scale, -metric.location / metric.scale)
    size = np.abs(np.concatenate(slopes))
    return Scale("items", float(np.exp(np.log(np.maximum(size, 1e-6)).mean())), 0.0)


def standard_errors(block: Block, cov: Array, scale: Scale) -> dict[str, Array]:
    """Of the reported parameters, by the delta method. A last parameter beyond the block's own is the log of the abilities' unit."""
    moves = [(step, 1.0) for step in STEP * np.eye(block.u.shape[1])]
    if cov.shape[1] > block.u.shape[1]:
        moves.append(
            (np.zeros(block.u.shape[1]), float(np.exp(STEP)) if scale.name == "abilities" else 1.0)
        )
    slopes: dict[str, list[Array]] = {}
    for step, unit in moves:
        ahead, behind = (
            block.told(block.u + sign * step, scale.gain / unit**sign, scale.shift / unit**sign)
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
    bank: Bank,
    labels: npt.NDArray[Any],
    counts: Ints,
    covariance: tuple[Array, ...] | None,
    scale: Scale,
) -> dict[str, Any]:
    """Columns item, model, n, the parameters and their standard errors (se_…), in the items' order."""
    size = labels.size
    model = np.empty(size, dtype=object)
    values: dict[str, Array] = {}
    errors: dict[str, Array] = {}
    for k, block in enumerate(bank.blocks):
        model[block.items] = getattr(block.model, "label", block.model.name)
        for name, column in block.told(block.u, scale.gain, scale.shift).items():
            values.setdefault(name, np.full(size, np.nan))[block.items] = column
        if covariance is not None:
            for name, column in standard_errors(block, covariance[k], scale).items():
                errors.setdefault(f"se_{name}", np.full(size, np.nan))[block.items] = np.where(
                    block.at_bound | (bank.metric.at_bound & block.model.fixes_slope),
                    np.inf,
                    column,
                )
    return {"item": labels.tolist(), "model": model.tolist(), "n": counts, **values, **errors}


def given_items(given: Any, name: str) -> Mapping[Any, Mapping[str, float]]:
    """Item parameters from a mapping, or a frame with an item column."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        if not all(isinstance(value, Mapping) for value in given.values()):
            raise InputError(f"{name}: expected item → {{parameter: value}}")
        return {
            label: {
                key: finite_number(value, f"{name}: {key} of item {label!r}")
                for key, value in values.items()
            }
            for label, values in given.items()
        }
    import narwhals as nw

    try:
        frame = nw.from_native(given, eager_only=True)
    except TypeError:
        raise InputError(
            f"{name}: expected a mapping or a frame with an item column, got {type(given).__name__}"
        ) from None
    if "item" not in frame.columns:
        raise InputError(
            f"{name}: the frame has no column 'item'; it has {', '.join(frame.columns)}"
        )
    skip = {"item", "model", "n"} | {column for column in frame.columns if column.startswith("se_")}
    out: dict[Any, dict[str, float]] = {}
    for row in frame.iter_rows(named=True):
        label = row["item"]
        if label in out:
            raise InputError(f"{name}: item {label!r} is listed twice; keep one of its rows")
        told = {
            k: v for k, v in row.items() if k not in skip and v is not None and v == v
        }  # gaps are not given
        out[label] = {
            k: finite_number(v, f"{name}: {k} of item {label!r}") for k, v in told.items()
        }
    return out
