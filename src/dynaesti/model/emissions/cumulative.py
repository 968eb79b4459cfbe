"""Distribution functions of emissions, by which residuals are judged."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np
from scipy.special import betainc, expit, ndtr, pdtr, stdtr

from dynaesti.core import Array, Ints
from dynaesti.model.emissions.base import Emissions, as_column
from dynaesti.model.emissions.families import (
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Ordinal,
    Poisson,
    StudentT,
)
from dynaesti.model.emissions.item_responses import ItemResponses
from dynaesti.model.links import LinkedPoints

Ends = tuple[Array, Array]  # probabilities of less than what was observed, and of that or less


@singledispatch
def cumulative(part: Emissions, at: LinkedPoints, rows: Ints) -> Ends | None:  # noqa: ARG001
    """Probability of less than each observation, and of that or less, at points of the curve.

    None for likelihoods that are no distributions: tables and functions.

    Parameters
    ----------
    part : Emissions
    at : LinkedPoints (n_rows, n_points)
    rows : int array (n_rows,)
        Numbers of the observations.

    Returns
    -------
    pair of array (n_rows, n_points), or None
    """
    return None


@cumulative.register
def _(part: Bernoulli, at: LinkedPoints, rows: Ints) -> Ends:
    one = np.ones(1)
    return _of_counts(as_column(part.votes, rows, at), lambda k: _binomial(k, one, at.y))


@cumulative.register
def _(part: Binomial, at: LinkedPoints, rows: Ints) -> Ends:
    n = as_column(part.trials, rows, at)
    return _of_counts(as_column(part.successes, rows, at), lambda k: _binomial(k, n, at.y))


@cumulative.register
def _(part: Poisson, at: LinkedPoints, rows: Ints) -> Ends:
    rate = at.y * as_column(part.exposure, rows, at)
    return _of_counts(as_column(part.counts, rows, at), lambda k: pdtr(k, rate))


@cumulative.register
def _(part: NegativeBinomial, at: LinkedPoints, rows: Ints) -> Ends:
    size = as_column(part.size, rows, at)
    rate = at.y * as_column(part.exposure, rows, at)
    chance = size / (size + rate)
    # a size need not be whole
    return _of_counts(
        as_column(part.counts, rows, at),
        lambda k: np.asarray(betainc(size, k + 1.0, chance), dtype=np.float64),
    )


@cumulative.register
def _(part: Gaussian, at: LinkedPoints, rows: Ints) -> Ends:
    below = ndtr((as_column(part.values, rows, at) - at.y) / as_column(part.sd, rows, at))
    return below, below


@cumulative.register
def _(part: StudentT, at: LinkedPoints, rows: Ints) -> Ends:
    away = (as_column(part.values, rows, at) - at.y) / as_column(part.scale, rows, at)
    below: Array = np.asarray(stdtr(as_column(part.df, rows, at), away), dtype=np.float64)
    return below, below


@cumulative.register
def _(part: Ordinal, at: LinkedPoints, rows: Ints) -> Ends:
    cuts = np.pad(part.cuts[rows], ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
    grade = part.grades[rows].astype(np.int64)
    number = np.arange(rows.size)
    low, high = cuts[number, grade], cuts[number, grade + 1]
    shape = (-1,) + (1,) * (at.x.ndim - 1)
    return expit(low.reshape(shape) - at.y), expit(high.reshape(shape) - at.y)


@cumulative.register
def _(part: ItemResponses, at: LinkedPoints, rows: Ints) -> Ends:
    theta = np.asarray(at.y).reshape(rows.size, -1)
    chance = np.exp(part.model.log_likelihood(part.u[rows], theta))
    upto = np.cumsum(chance, axis=1)
    category = part.resp[rows].astype(np.int64)
    number = np.arange(rows.size)
    high = upto[number, category]
    return (high - chance[number, category]).reshape(at.y.shape), high.reshape(at.y.shape)


def _of_counts(k: Array, upto: Callable[[Array], Array]) -> Ends:
    """Both ends for counts, whose distribution function is 0 below 0."""
    below = np.where(k > 0, upto(np.maximum(k - 1.0, 0.0)), 0.0)
    return below, np.asarray(upto(k))


def _binomial(k: Array, n: Array, chance: Array) -> Array:
    """Distribution function of a binomial."""
    below = betainc(np.maximum(n - k, 1.0), k + 1.0, 1.0 - chance)
    return np.asarray(np.where(k >= n, 1.0, below), dtype=np.float64)
