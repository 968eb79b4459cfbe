"""Filters: what is known of curves now, in a few numbers that an answer changes at a fixed cost.

One answer is one assumed-density step: tilted moments of the answer's likelihood are matched by
the site of the open instant. Everything is done for many people at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from dynaesti.core import Array
from dynaesti.errors import InputError
from dynaesti.inference.moments.table import MOST_NODES, NODES, WIDTH
from dynaesti.inference.online.filter_kernels import (
    FIRST,
    LOG_WEIGHT,
    MEAN,
    TIME,
    match_answers,
    open_instants,
)
from dynaesti.inference.online.markov_form import MarkovForm

# Largest relative difference between every other node and all nodes. The error with all of them is
# about its square, though for steep items far off it may be near it.
AGREE = 1e-6
ENDS = 1e-8  # largest weight of either end of the nodes
ROUNDS = 12


def start_filter(form: MarkovForm, population: Array) -> Array:
    """The numbers of a person of whom nothing is known, (n_numbers,)."""
    parts = [np.array([np.nan])]
    for size, weight in zip(form.size.tolist(), population.tolist(), strict=True):
        part = np.zeros(MEAN + size + size * (size + 1) // 2)
        part[LOG_WEIGHT] = np.log(max(weight, 1e-300))
        part[MEAN + size :] = np.eye(size)[np.tril_indices(size)]
        parts.append(part)
    return np.concatenate(parts)


def filter_size(form: MarkovForm) -> int:
    """Number of a person's numbers."""
    return FIRST + int((MEAN + form.size + form.size * (form.size + 1) // 2).sum())


def filter_time(numbers: Array) -> float:
    """Time of a person's open instant; NaN before the first answer."""
    return float(numbers[TIME])


@cache
def _unit_nodes(count: int) -> Array:
    return np.linspace(-WIDTH, WIDTH, count)


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
    opened, cavity = open_instants(form, numbers, times, offset, beside)
    bracket = cavity.copy()
    bracket[:, :, 1] **= 0.5
    count = NODES + 1  # odd, so that every other node has both ends
    tolerance = (AGREE, ENDS)
    for number in range(ROUNDS):
        unit = _unit_nodes(count)
        nodes = bracket[:, :, :1] + bracket[:, :, 1:] * unit
        values = log_likelihood(nodes)
        if number == ROUNDS - 1:  # the best that there is
            tolerance = (np.inf, np.inf)
        done = match_answers(
            form, opened, cavity, bracket, unit, values, offset, beside, *tolerance
        )
        if done:
            return opened
        count = min(2 * count - 1, MOST_NODES + 1)
    raise InputError("resp: an answer is impossible at every ability; check the responses")
