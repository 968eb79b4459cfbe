"""Frames of marginals with their bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynaesti.core import Array, as_vector
from dynaesti.data import make_frame
from dynaesti.inference import Marginals, check_level
from dynaesti.model import BUILT_IN, Link

IDENTITY = BUILT_IN["identity"]


def band(level: float) -> Array:
    """The quantiles of an equal-tailed band of the given probability."""
    check_level(level)
    return np.array([0.5 - level / 2, 0.5 + level / 2])


def band_columns(
    marginals: Marginals,
    keys: Mapping[str, Any],
    level: float,
    *,
    quantiles: Any = None,
    link: Link = IDENTITY,
) -> dict[str, Any]:
    """Columns: the keys, mean, sd, lower, upper, and further quantiles on request (q0.1, …)."""
    extra = np.zeros(0) if quantiles is None else as_vector(quantiles, "quantiles")
    rows = marginals.quantiles(np.concatenate([band(level), extra]), link)
    return {
        **keys,
        "mean": marginals.mean(link),
        "sd": marginals.sd(link),
        "lower": rows[0],
        "upper": rows[1],
        **{f"q{q:g}": row for q, row in zip(extra, rows[2:], strict=True)},
    }


def band_frame(
    marginals: Marginals,
    keys: Mapping[str, Any],
    level: float,
    *,
    kind: str | None,
    quantiles: Any = None,
) -> Any:
    """The same as a frame of the given kind."""
    return make_frame(band_columns(marginals, keys, level, quantiles=quantiles), kind)
