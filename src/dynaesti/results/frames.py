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
    """Levels of the quantiles lower, upper of an equal-tailed band, (2,)."""
    check_level(level)
    return np.array([0.5 - level / 2, 0.5 + level / 2])


def band_and_median(level: float) -> Array:
    """Levels of the quantiles lower, median, upper of an equal-tailed band, (3,)."""
    lower, upper = band(level)
    return np.array([lower, 0.5, upper])


def band_columns(
    marginals: Marginals,
    keys: Mapping[str, Any],
    level: float,
    *,
    quantiles: Any = None,
    link: Link = IDENTITY,
) -> dict[str, Any]:
    """Columns of a frame: the keys, mean, sd, lower, upper and further quantiles.

    Parameters
    ----------
    marginals : Marginals
        At n_points points.
    keys : mapping of str to array (n_points,)
        First columns, such as id and time.
    level : float
        Probability of the equal-tailed band, between 0 and 1.
    quantiles : sequence of float, optional
        Further quantiles, as columns q0.1, …
    link : Link
        Scale of the values; default: the latent one.
    """
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
    """A frame of the given kind with the columns of `band_columns`, on the latent scale."""
    return make_frame(band_columns(marginals, keys, level, quantiles=quantiles), kind)


def median_columns(
    marginals: Marginals,
    moments: tuple[Array, Array],
    keys: Mapping[str, Any],
    level: float,
    link: Link,
) -> dict[str, Any]:
    """Columns of a frame of curves: the keys, mean, sd, lower, median, upper.

    `moments` are mean and sd, which may be better known than by the marginals.
    """
    lower, median, upper = marginals.quantiles(band_and_median(level), link)
    mean, sd = moments
    return {**keys, "mean": mean, "sd": sd, "lower": lower, "median": median, "upper": upper}
