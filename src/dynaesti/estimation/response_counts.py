"""Response counts, from which items get their categories and starting values.

Counts of several groups of people add up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.data import Responses
from dynaesti.errors import ResponseError
from dynaesti.model import (
    MOST_VALUES,
    CustomDensity,
    CustomItemModel,
    ItemModel,
    density_on_grid,
)

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
    # (n_own,) distinct responses to items of users' own models, rising; some if there are too many
    own_values: Array
    lowest: Array  # (n_items,) least and largest response
    highest: Array

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
            _some(np.union1d(self.own_values, other.own_values)),
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
        )

    def with_own_values(self, models: tuple[ItemModel, ...]) -> ResponseCounts:
        """Counts whose values are also those of users' own models that have a row for each."""
        if all(model.categorical or not model.has_value_rows for model in set(models)):
            return self
        values = np.union1d(self.values, self.own_values)
        counts = np.zeros((self.number.size, values.size))
        counts[:, np.searchsorted(values, self.values)] = self.counts
        return replace(self, values=values, counts=counts)

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
    own = np.array([model.needs_row_check for model in models])[items]
    mine = ~amounts(models)[items] & ~own
    values = np.unique(resp[mine])
    check_values(values)
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
    lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(lowest, items, resp)
    np.maximum.at(highest, items, resp)
    return ResponseCounts(
        responses.people.size,
        number,
        mean,
        squares,
        values,
        counts,
        _some(np.unique(resp[own])),
        lowest,
        highest,
    )


def _some(values: Array) -> Array:
    """Distinct values, or so many of them that there are clearly too many for a row each."""
    return values[: MOST_VALUES + 1]


def with_densities(models: tuple[ItemModel, ...], counts: ResponseCounts) -> tuple[ItemModel, ...]:
    """The items' models; users' own ones of too many different responses as densities."""
    if counts.own_values.size <= MOST_VALUES:
        return tuple(
            model.of_values() if isinstance(model, CustomDensity) else model for model in models
        )
    made: dict[ItemModel, ItemModel] = {}
    for model in set(models):
        if isinstance(model, CustomItemModel):
            mine = np.array([one == model for one in models])
            low, high = float(counts.lowest[mine].min()), float(counts.highest[mine].max())
            made[model] = density_on_grid(model, low, high)
    return tuple(made.get(model, model) for model in models)


def check_values(values: Array) -> None:
    """Refuse more distinct responses than there can be categories."""
    if values.size > MOST_CATEGORIES:
        raise ResponseError(
            f"resp: {values.size} distinct values for models with categories; recode them, or use "
            f"poisson, gaussian or "
            "beta"
        )
