"""Response counts, from which items get their categories and starting values.

Counts of several groups of people add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.data import Responses
from dynaesti.errors import ResponseError
from dynaesti.model import MOST_VALUES, ItemModel

MOST_CATEGORIES = 60


@dataclass(frozen=True)
class ResponseCounts:
    """How often each item got each response; for amounts number, mean and sum of squares."""

    people: int
    number: Ints  # (n_items,) responses to each item
    mean: Array
    # (n_items,) sums of (response − mean)²; sums of response² would lose all digits far from 0
    squares: Array
    values: Array  # (n_values,) distinct responses to items with categories, rising
    counts: Array  # (n_items, n_values)

    def __add__(self, other: ResponseCounts) -> ResponseCounts:
        values = np.union1d(self.values, other.values)
        counts = np.zeros((self.number.size, values.size))
        for part in (self, other):
            counts[:, np.searchsorted(values, part.values)] += part.counts
        both = self.number + other.number
        apart = other.mean - self.mean
        share = other.number / np.maximum(both, 1)
        return ResponseCounts(
            self.people + other.people,
            both,
            self.mean + apart * share,
            self.squares + other.squares + apart**2 * share * self.number,
            values,
            counts,
        )

    def mean_and_sd(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each item's responses: (n_items,) each."""
        return self.mean, np.sqrt(self.squares / np.maximum(self.number, 1))


def amounts(models: tuple[ItemModel, ...]) -> Bools:
    """Which items have amounts as responses, without categories."""
    kinds = {kind: not kind.has_value_rows for kind in set(models)}
    return np.array([kinds[model] for model in models])


def count_responses(responses: Responses, models: tuple[ItemModel, ...]) -> ResponseCounts:
    """Count the responses to items with these models."""
    items = responses.item
    resp = responses.resp
    size = len(models)
    mine = ~amounts(models)[items]
    values = np.unique(resp[mine])
    check_values(values, models)
    cell = items[mine] * max(values.size, 1) + np.searchsorted(values, resp[mine])
    counts = (
        np.bincount(cell, minlength=size * values.size)
        .reshape(size, values.size)
        .astype(np.float64)
    )
    number = np.bincount(items, minlength=size)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.bincount(items, resp, size) / np.maximum(number, 1)
        squares = np.bincount(items, (resp - mean[items]) ** 2, size).astype(np.float64)
    return ResponseCounts(responses.people.size, number, mean, squares, values, counts)


def check_values(values: Array, models: tuple[ItemModel, ...]) -> None:
    """Refuse more distinct responses than there can be categories."""
    has_categories = any(model.categorical for model in set(models))
    if values.size > (MOST_CATEGORIES if has_categories else MOST_VALUES):
        raise ResponseError(
            f"resp: {values.size} distinct values for models with categories; recode them, or use "
            f"poisson, gaussian or "
            "beta"
        )
