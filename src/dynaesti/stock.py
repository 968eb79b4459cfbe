"""Taking stock of answers: what the items' categories and starting values rest on. Stocks of parts add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.arrays import Array, Bools, Ints
from dynaesti.errors import ResponseError
from dynaesti.items import MOST_VALUES, ItemModel, OwnModel
from dynaesti.responses import Responses

MOST_CATEGORIES = 60


@dataclass(frozen=True)
class Stock:
    """How often each item got each response; for amounts their number, sum and sum of squares."""

    people: int
    number: Ints  # (items,)
    total: Array
    square: Array
    values: Array  # distinct responses to items with categories, rising
    counts: Array  # (items, values)

    def __add__(self, other: Stock) -> Stock:
        values = np.union1d(self.values, other.values)
        counts = np.zeros((self.number.size, values.size))
        for part in (self, other):
            counts[:, np.searchsorted(values, part.values)] += part.counts
        return Stock(self.people + other.people, self.number + other.number, self.total + other.total, self.square + other.square,
                     values, counts)

    def mean_and_sd(self) -> tuple[Array, Array]:
        """Of each item's responses."""
        n = np.maximum(self.number, 1)
        mean = self.total / n
        return mean, np.sqrt(np.maximum(self.square / n - mean**2, 0.0))


def amounts(models: tuple[ItemModel, ...]) -> Bools:
    """Which items' responses are amounts, without categories."""
    kinds = {kind: not kind.categorical and not isinstance(kind, OwnModel) for kind in set(models)}
    return np.array([kinds[model] for model in models])


def take_stock(responses: Responses, models: tuple[ItemModel, ...]) -> Stock:
    """Of the answers to items with these models."""
    items, resp = responses.item, responses.resp
    size = len(models)
    mine = ~amounts(models)[items]
    values = np.unique(resp[mine])
    check_values(values, models)
    cell = items[mine] * max(values.size, 1) + np.searchsorted(values, resp[mine])
    counts = np.bincount(cell, minlength=size * values.size).reshape(size, values.size).astype(np.float64)
    total, square = (np.bincount(items, part, size).astype(np.float64) for part in (resp, resp**2))
    return Stock(responses.people.size, np.bincount(items, minlength=size), total, square, values, counts)


def check_values(values: Array, models: tuple[ItemModel, ...]) -> None:
    """Refuse more distinct responses than categories can be made of."""
    kinds = {type(model) for model, amount in zip(models, amounts(models), strict=True) if not amount}
    if values.size > (MOST_VALUES if kinds <= {OwnModel} else MOST_CATEGORIES):
        raise ResponseError(f"resp: {values.size} distinct values for models with categories; recode them, or use poisson, gaussian or "
                            "beta")
