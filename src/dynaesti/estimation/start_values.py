"""Starting values of the items.

They come from category frequencies, loadings on the first component, and given parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import Labels, Responses, first_component, standardised
from dynaesti.errors import InputError, ResponseError
from dynaesti.estimation.coding import ResponseCoding
from dynaesti.estimation.given_items import (
    Given,
    GivenScale,
    ItemsToPlace,
    by_item_number,
    given_scale,
)
from dynaesti.estimation.response_counts import ResponseCounts
from dynaesti.model import HYPER_ITEMS, AbilityScale, ItemBank, ItemBlock, ItemModel

START_SLOPE = 1.0
# with fewer people the data say too little about the unit of ability: it gets a prior
HYPER_PEOPLE = 10
# Items are sparse if the median item has fewer responses than this, or if there are more than so
# many items for each person.
SPARSE_RESPONSES = 50
SPARSE_ITEMS = 2
SLOPE_PARAMETERS = ("log_a", "slope", "alpha")
LOCATION_PARAMETERS = ("b", "intercept", "threshold", "delta")


@dataclass(frozen=True)
class _Start:
    """All data that the blocks of a bank start from."""

    labels: Labels
    coding: ResponseCoding
    counts: ResponseCounts
    has_priors: bool
    is_weak: bool
    learns_spread: bool
    slope: Array  # (n_items,) rough signed slopes
    fixed: Given
    starts: Given
    scale: GivenScale

    def block(self, model: ItemModel, size: int, items: Ints, first_row: int) -> ItemBlock:
        """The items of one model with equally many categories, at their starting values."""
        slope = self.slope[items]
        frequencies = _frequencies(self.counts, self.coding, items, model, size)
        u = model.initial(frequencies, np.abs(slope), slope < 0)
        priors = model.priors(size)
        prior_sd = np.array([prior.sd if self.has_priors else np.inf for prior in priors])
        values = _category_values(self.coding, items, size, model, self.counts)
        given = ItemsToPlace(model, size, self.labels[items].tolist(), values)
        free = np.ones(u.shape, dtype=bool)
        u, _ = given.apply(u, free, [self.starts.get(int(k), {}) for k in items], self.scale)
        u, free = given.apply(u, free, [self.fixed.get(int(k), {}) for k in items], self.scale)
        prior_mean = np.array([prior.mean for prior in priors])
        block = ItemBlock(
            model,
            size,
            items,
            first_row,
            u,
            free,
            values,
            prior_mean,
            prior_sd,
            weak=self.is_weak,
            learns_spread=self.learns_spread,
        )
        if model.shares_thresholds:
            own = u.mean(axis=1, keepdims=True)
            block = replace(block, u=own + (u - own).mean(axis=0))
        return block


def build_bank(
    labels: Labels,
    coding: ResponseCoding,
    response_counts: ResponseCounts,
    priors: str | None,
    fixed: Mapping[Any, Mapping[str, float]],
    starts: Mapping[Any, Mapping[str, float]],
    slope: Array | None = None,
    population: tuple[float, float] | None = None,
) -> ItemBank:
    """All items in blocks at their starting values.

    Parameters
    ----------
    priors : {"weak", "hierarchical", None}
        Priors of the items.
    fixed, starts : mapping of item to {parameter: value}
        Given parameters, held or only started from.
    slope : array (n_items,), optional
        Rough signed slopes, where items may run backwards.
    population : (mean, sd), optional
        Of the abilities, on the anchors' scale.
    """
    held = by_item_number(labels, fixed, "fixed")
    begun = by_item_number(labels, starts, "start")
    scale = given_scale(held or begun, coding, response_counts)
    is_sparse = (
        np.median(response_counts.number) < SPARSE_RESPONSES
        or labels.size > SPARSE_ITEMS * response_counts.people
    )
    kind = priors
    if priors == "weak" and is_sparse and labels.size >= HYPER_ITEMS:
        kind = "sparse" if response_counts.people >= HYPER_PEOPLE else "held"
    slope = np.full(labels.size, START_SLOPE) if slope is None else slope
    start = _Start(
        labels,
        coding,
        response_counts,
        priors is not None,
        kind in ("weak", "held"),
        kind != "held",
        slope,
        held,
        begun,
        scale,
    )
    blocks: list[ItemBlock] = []
    for (model, size), items in _items_by_block(coding).items():
        first_row = blocks[-1].end_row if blocks else 0
        blocks.append(start.block(model, size, np.array(items, dtype=np.int64), first_row))
    is_small = response_counts.people < HYPER_PEOPLE
    ability_scale = _ability_scale(blocks, held, scale, population)
    if population is None:
        ability_scale = replace(ability_scale, few=is_small, has_prior=priors is not None)
    return ItemBank(tuple(blocks), ability_scale, kind)


def _items_by_block(coding: ResponseCoding) -> dict[tuple[ItemModel, int], list[int]]:
    """Item numbers by model and number of categories (0 without categories)."""
    sizes = coding.table.max(axis=1, initial=-1) + 1
    sizes = np.where([model.binary for model in coding.models], 2, sizes)
    found: dict[tuple[ItemModel, int], list[int]] = {}
    for i, model in enumerate(coding.models):
        found.setdefault((model, int(sizes[i]) if model.categorical else 0), []).append(i)
    return found


def _ability_scale(
    blocks: list[ItemBlock],
    fixed: Given,
    scale: GivenScale,
    population: tuple[float, float] | None,
) -> AbilityScale:
    """Zero and unit of ability.

    They are free where anchors, or models of slope 1, determine the scale of the items.
    """
    slope_fixed = any(b.model.has_unit_slope or _has_fixed(b, SLOPE_PARAMETERS) for b in blocks)
    location_fixed = any(_has_fixed(block, LOCATION_PARAMETERS) for block in blocks)
    difficulties = {v for values in fixed.values() for key, v in values.items() if key[:1] == "b"}
    slope_fixed |= len(difficulties) > 1  # two locations determine a unit, too
    zero, unit = scale if fixed else GivenScale()
    if population is None:
        return AbilityScale(
            free_location=location_fixed, free_scale=slope_fixed, zero=zero, unit=unit
        )
    if not (location_fixed and slope_fixed):
        raise InputError(
            "population: mean and sd are stated on the scale of anchored items; give `fixed` "
            "slopes and "
            "difficulties too"
        )
    mean, sd = population
    return AbilityScale(
        (mean - zero) / unit, float(np.log(sd / unit)), zero=zero, unit=unit, stated=True
    )


def _has_fixed(block: ItemBlock, kinds: tuple[str, ...]) -> bool:
    """Whether a parameter of these kinds is fixed for some item.

    A user's own formula does not say of which kind its parameters are.
    """
    if not block.model.can_be_rescaled:
        return False
    names = block.model.parameter_names(block.size)
    mine = [k for k, name in enumerate(names) if name.startswith(kinds)]
    return not block.free[:, mine].all()


def _category_values(
    coding: ResponseCoding,
    items: Ints,
    size: int,
    model: ItemModel,
    response_counts: ResponseCounts,
) -> Array:
    """The response that each category stands for: the lowest of those merged into it.

    For measurements, their zero and unit.
    """
    if model.has_response_unit:
        return _response_units(items, response_counts)
    if not model.categorical:
        return np.zeros((items.size, 0))
    out = np.full((items.size, size), np.nan)
    for row, item in enumerate(items):
        for k in range(coding.values.size - 1, -1, -1):
            if coding.table[item, k] >= 0:
                out[row, coding.table[item, k]] = coding.values[k]
    if model.binary:
        out[:] = [0.0, 1.0]
    return out


def _response_units(items: Ints, response_counts: ResponseCounts) -> Array:
    """Zero and unit of each item's measurements: (n_items, 2)."""
    mean, sd = response_counts.mean_and_sd()
    if not (np.isfinite(mean[items]).all() and np.isfinite(sd[items]).all()):
        raise ResponseError("resp: measurements are too large to compute with; use a larger unit")
    if not (sd[items] > 0).any():
        raise ResponseError(
            "resp: the measurements of each item are all alike; nothing can be learned from them"
        )
    spread = np.where(sd > 1e-12 * np.maximum(np.abs(mean), 1e-300), sd, 1.0)
    return np.stack([mean, spread], axis=1)[items]


def unit_of(resp: Array) -> tuple[float, float]:
    """Zero and unit of one item's measurements."""
    mean = float(resp.mean())
    sd = float(resp.std())
    return mean, sd if sd > 1e-12 * max(abs(mean), 1e-300) else 1.0


def _frequencies(
    response_counts: ResponseCounts,
    coding: ResponseCoding,
    items: Ints,
    model: ItemModel,
    size: int,
) -> Array:
    """Frequency of each category among an item's responses, or the mean and sd of amounts."""
    if not model.categorical:
        return np.stack(response_counts.mean_and_sd(), axis=1)[items]
    out = np.zeros((items.size, size))
    for k in range(response_counts.values.size):
        known = coding.table[items, k] >= 0
        out[known, coding.table[items[known], k]] += response_counts.counts[items[known], k]
    return (out + 0.5 / size) / (np.maximum(response_counts.number[items], 1)[:, None] + 0.5)


def initial_signed_slopes(responses: Responses, coding: ResponseCoding) -> Array:
    """Rough signed slopes from the first principal component of the standardised responses.

    The sign tells which items run with the component and which against it.
    """
    n = np.maximum(np.bincount(responses.item, minlength=responses.items.size), 1)
    score = standardised(
        responses.item, coding.code(responses, responses.item), responses.items.size
    )
    _, person = first_component(
        responses.person, responses.item, score, responses.people.size, responses.items.size
    )
    together = (
        np.bincount(responses.item, score * person[responses.person], responses.items.size) / n
    )
    spread = np.bincount(responses.item, person[responses.person] ** 2, responses.items.size) / n
    r = np.clip(together / np.sqrt(np.maximum(spread, 1e-6)), -0.9, 0.9)
    rough = 1.7 * r / np.sqrt(1 - r**2)  # slope of a logistic item if the component is ability
    rough = np.sign(rough) * np.clip(np.abs(rough), 0.2, 2.5)
    return np.where(rough == 0, 0.2, rough) * (1.0 if rough.sum() >= 0 else -1.0)
