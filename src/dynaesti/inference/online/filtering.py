"""Filters: what is known of curves now, in a few numbers that an answer changes at a fixed cost.

One answer is one assumed-density step: tilted moments of the answer's likelihood are matched by
the site of the open instant, the third moment by the curve's third cumulant there. Everything is
done for many people at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.errors import InputError
from dynaesti.inference.moments.table import MOST_NODES, NODES, WIDTH
from dynaesti.inference.online.filter_kernels import (
    BEFORE_MEAN,
    BEFORE_VARIANCE,
    LOG_WEIGHT,
    PRECISION,
    SHIFT,
    THIRD,
    move_states,
)
from dynaesti.inference.online.markov_form import MarkovForm, transitions
from dynaesti.inference.online.tilted_skewed import (
    LOG_MASS,
    MOST_SKEWED,
    TILTED_MEAN,
    TILTED_THIRD,
    TILTED_VARIANCE,
    integrate_tilted,
)

# Largest relative difference between every other node and all nodes. The error with all of them is
# about its square, though for steep items far off it may be near it.
AGREE = 1e-6
ENDS = 1e-8  # largest weight of either end of the nodes
ROUNDS = 12
TIME = 0  # where the time of the open instant is among the numbers


class _Places(NamedTuple):
    """Where things are among a person's numbers, of which the first is the time."""

    instant: Ints  # (n_kernels, 4), see `move_states`
    mean: Ints  # (n_kernels, most_states); 0 beyond a kernel's own
    covariance: Ints  # (n_kernels, most_states, most_states)
    n_numbers: int


@cache
def _places(sizes: tuple[int, ...]) -> _Places:
    most = max(sizes)
    mean = np.zeros((len(sizes), most), dtype=np.int64)
    covariance = np.zeros((len(sizes), most, most), dtype=np.int64)
    instant = np.zeros((len(sizes), 4), dtype=np.int64)
    first = 1
    for k, size in enumerate(sizes):
        instant[k] = first + np.arange(4)
        mean[k, :size] = first + 4 + np.arange(size)
        rows, columns = np.tril_indices(size)
        first += 4 + size
        covariance[k, rows, columns] = covariance[k, columns, rows] = first + np.arange(rows.size)
        first += rows.size
    return _Places(instant, mean, covariance, first)


def start_filter(form: MarkovForm, population: Array) -> Array:
    """The numbers of a person of whom nothing is known, (n_numbers,)."""
    places = _places(tuple(form.size.tolist()))
    numbers = np.zeros(places.n_numbers)
    numbers[places.instant[:, LOG_WEIGHT]] = np.log(np.maximum(population, 1e-300))
    numbers[np.diagonal(places.covariance, axis1=1, axis2=2)] = 1.0
    numbers[TIME] = np.nan
    return numbers


def filter_size(form: MarkovForm) -> int:
    """Number of a person's numbers."""
    return _places(tuple(form.size.tolist())).n_numbers


def filter_time(numbers: Array) -> float:
    """Time of a person's open instant; NaN before the first answer."""
    return float(numbers[TIME])


@cache
def _unit_nodes(count: int) -> Array:
    return np.linspace(-WIDTH, WIDTH, count)


class _Moved(NamedTuple):
    """People's states at some time, see `move_states`."""

    mean: Array
    covariance: Array
    instant: Array
    now: Array


def _moved(form: MarkovForm, places: _Places, numbers: Array, times: Array) -> _Moved:
    """States at times that are not before the open instants."""
    gaps = np.fmax(times - numbers[:, TIME], 0.0)  # 0 too before the first answer
    mean = numbers[:, places.mean]
    covariance = numbers[:, places.covariance]
    instant = numbers[:, places.instant]
    steps = transitions(form, gaps)
    curve = (form.size, form.seen, form.nugget)
    now = move_states(*curve, gaps, steps, mean, covariance, instant)
    return _Moved(mean, covariance, instant, now)


def curves_at(form: MarkovForm, numbers: Array, times: Array) -> tuple[Array, Array]:
    """What is known of curves at times that are not before the open instants.

    Parameters
    ----------
    form : MarkovForm
    numbers : array (n_people, n_numbers)
    times : array (n_people,)

    Returns
    -------
    weights : array (n_people, n_kernels)
    now : array (n_people, n_kernels, 5)
        See `move_states`.
    """
    found = _moved(form, _places(tuple(form.size.tolist())), numbers, times)
    return np.exp(found.instant[:, :, LOG_WEIGHT]), found.now


def add_answers(
    form: MarkovForm,
    numbers: Array,
    times: Array,
    offset: Array,
    beside: Array,
    log_likelihood: Callable[[Array], Array],
) -> Array:
    """The numbers of people with one more answer each.

    Parameters
    ----------
    form : MarkovForm
    numbers : array (n_people, n_numbers)
    times : array (n_people,)
        Times of the answers, not before the open instants.
    offset : array (n_people,)
        What the answers see beside the curves: the population's mean, and effects.
    beside : array (n_people,)
        Variance of effects of which nothing is known, such as those of a new rater.
    log_likelihood : function
        From what is seen, (n_people, n_kernels, n_nodes), to log-likelihoods of the answers.

    Raises
    ------
    InputError
        If an answer is impossible at every ability.
    """
    places = _places(tuple(form.size.tolist()))
    mean, covariance, instant, now = _moved(form, places, numbers, times)
    others = beside[:, None]
    before = np.empty((*now.shape[:2], 3))
    before[:, :, 0] = now[:, :, BEFORE_MEAN] + offset[:, None]
    variance = before[:, :, 1] = now[:, :, BEFORE_VARIANCE] + others
    third = before[:, :, 2] = instant[:, :, THIRD]
    tilted = _tilted(before, log_likelihood)
    # the site of what is seen beside the offset, and from there that of the curve
    precision = 1.0 / tilted[:, :, TILTED_VARIANCE] - 1.0 / variance
    shift = (tilted[:, :, TILTED_MEAN] - offset[:, None]) / tilted[:, :, TILTED_VARIANCE]
    shift -= now[:, :, BEFORE_MEAN] / variance
    through = 1.0 + precision * others
    instant[:, :, PRECISION] += precision / through
    instant[:, :, SHIFT] += shift / through
    # what the answer tells of the third cumulant reaches the curve as far as the answer sees it
    share = now[:, :, BEFORE_VARIANCE] / variance
    instant[:, :, THIRD] += share**3 * (tilted[:, :, TILTED_THIRD] - third)
    weights = instant[:, :, LOG_WEIGHT] + tilted[:, :, LOG_MASS]
    weights -= weights.max(axis=1, keepdims=True)
    weights -= np.log(np.exp(weights).sum(axis=1, keepdims=True))
    instant[:, :, LOG_WEIGHT] = weights
    out = np.empty_like(numbers)
    out[:, places.mean] = mean
    out[:, places.covariance] = covariance
    out[:, places.instant] = instant
    out[:, TIME] = times
    return out


def _tilted(before: Array, log_likelihood: Callable[[Array], Array]) -> Array:
    """Moments of what answers see, given them: (n_people, n_kernels, 4), see `integrate_tilted`."""
    # a skewed distribution reaches farther on one side than on the other
    sd = np.sqrt(before[:, :, 1])
    skewness = np.clip(before[:, :, 2] / sd**3, -MOST_SKEWED, MOST_SKEWED)
    bracket = np.empty((*sd.shape, 2))
    bracket[:, :, 0] = before[:, :, 0] + WIDTH**2 / 6 * skewness * sd
    bracket[:, :, 1] = sd * (1.0 + skewness * skewness)
    tilted = np.full((*sd.shape, 4), np.nan)
    count = NODES + 1  # odd, so that every other node has both ends
    tolerance = (AGREE, ENDS)
    for number in range(ROUNDS):
        unit = _unit_nodes(count)
        values = log_likelihood(bracket[:, :, :1] + bracket[:, :, 1:] * unit)
        if number == ROUNDS - 1:  # the best that there is
            tolerance = (np.inf, np.inf)
        rows = (before.reshape(-1, 3), bracket.reshape(-1, 2), unit, values.reshape(-1, count))
        if integrate_tilted(*rows, *tolerance, tilted.reshape(-1, 4)):
            break
        count = min(2 * count - 1, MOST_NODES + 1)
    if (tilted[:, :, LOG_MASS] == -np.inf).any():
        raise InputError("resp: an answer is impossible at every ability; check the responses")
    return tilted
