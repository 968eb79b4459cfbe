"""Which item to give next: by information or by chance of success, within areas and exposure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools, Ints, as_rng, whole_number
from dynaesti.data import Labels, as_list, try_index_of
from dynaesti.errors import InputError
from dynaesti.inference import HERMITE_WEIGHTS, HERMITE_X, Marginals
from dynaesti.model import ItemBank
from dynaesti.results.predictions import item_information

GRID = np.linspace(-8.0, 8.0, 161)  # of standardised abilities, at which items are tabulated
BATCH = 500  # items at a time


class ItemTables(NamedTuple):
    """What items tell and how they are answered, on a grid of abilities."""

    information: npt.NDArray[np.float32]  # (n_items, n_grid) about z
    expected: npt.NDArray[
        np.float32
    ]  # (n_items, n_grid) response, from 0 for the least to 1 for the most


@dataclass(frozen=True)
class Content:
    """Areas of items, and the share of each among the items that are given.

    Parameters
    ----------
    areas : mapping of item to area
        Items without an area are not given.
    shares : mapping of area to float
        Of the items given; they need not add up to 1.
    given : sequence of items, default ()
        Items given so far, by which it is seen which area lags behind.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=4, per_person=12, seed=1).table
    >>> scorer = dy.DynAEsti("2PL").fit(table).scorer()
    >>> areas = {"i0": "words", "i1": "words", "i2": "numbers", "i3": "numbers"}
    >>> content = dy.Content(areas, {"words": 0.5, "numbers": 0.5}, given=["i0"])
    >>> scorer.next_item(scorer.start(), 50.0, content=content)["item"].tolist()[0] in ("i2", "i3")
    True
    """

    areas: Mapping[Any, Any]
    shares: Mapping[Any, float]
    given: Sequence[Any] = ()


class Chosen(NamedTuple):
    """Items, best first."""

    item: Ints
    information: Array
    expected: Array


def item_tables(bank: ItemBank) -> ItemTables:
    """The tables of all items."""
    information = item_information(bank, GRID).astype(np.float32)
    expected: npt.NDArray[np.float32] = np.empty(information.shape, dtype=np.float32)
    theta = bank.ability_scale.theta(GRID)
    for block in bank.blocks:
        for first in range(0, block.items.size, BATCH):
            part = slice(first, first + BATCH)
            mean = block.model.expected(block.u[part], theta, block.values[part])
            low = mean.min(axis=1, keepdims=True)
            high = mean.max(axis=1, keepdims=True)
            if block.model.categorical:
                low = block.values[part].min(axis=1, keepdims=True)
                high = block.values[part].max(axis=1, keepdims=True)
            expected[block.items[part]] = (mean - low) / np.maximum(high - low, 1e-300)
    return ItemTables(information, expected)


def choose_items(
    tables: ItemTables,
    labels: Labels,
    z: Marginals,
    target: float | None,
    barred: Ints,
    content: Content | None,
    exposure: int | Mapping[Any, float] | None,
    enough: float | None,
    count: int,
    seed: Any,
) -> Chosen:
    """The best items for an ability that is known as `z`: see `Scorer.next_item`."""
    count = whole_number(count, "count", 1)
    mean = float((z.weights * z.means).sum())
    spread = float(np.sqrt((z.weights * (z.sds**2 + (z.means - mean) ** 2)).sum()))
    nothing = np.zeros(0)
    if enough is not None and spread <= enough:
        return Chosen(np.zeros(0, dtype=np.int64), nothing, nothing)
    weights = _grid_weights(z)
    information = tables.information @ weights
    expected = tables.expected @ weights
    if target is None:
        score = information
    elif isinstance(target, int | float) and 0 < target < 1:
        score = -np.abs(expected - target)
    else:
        raise InputError(f"target: {target!r} is not between 0 and 1")
    allowed = np.ones(labels.size, dtype=bool)
    allowed[barred] = False
    order = np.argsort(-score, kind="stable")
    if content is not None:
        order = _by_content(order, allowed, labels, content, count)
    order = order[allowed[order]]
    if exposure is not None:
        order = _exposed(order, labels, exposure, count, as_rng(seed))
    best = order[:count]
    return Chosen(best, information[best], expected[best])


def _grid_weights(z: Marginals) -> Array:
    """Weights on the grid that integrate over a mixture: nodes shared between two neighbours."""
    nodes = z.means[:, :1] + z.sds[:, :1] * HERMITE_X
    mass = (z.weights[:, :1] * HERMITE_WEIGHTS).ravel()
    at = np.clip((nodes.ravel() - GRID[0]) / (GRID[1] - GRID[0]), 0.0, GRID.size - 1.001)
    low = at.astype(np.int64)
    part = at - low
    out = np.bincount(low, mass * (1 - part), GRID.size)
    return (out + np.bincount(low + 1, mass * part, GRID.size)).astype(np.float32)


def _by_content(order: Ints, allowed: Bools, labels: Labels, content: Content, count: int) -> Ints:
    """Items in the order in which areas lag behind their shares (Kingsbury & Zara 1989)."""
    if not content.shares or not all(share > 0 for share in content.shares.values()):
        raise InputError("content: give each area a share above 0, as in Content(areas, shares)")
    known = try_index_of(labels, list(content.areas))
    area_of = dict(zip(known.tolist(), content.areas.values(), strict=True))
    by_text = {str(item): area for item, area in content.areas.items()}
    given = dict.fromkeys(content.shares, 0)
    for item in as_list(content.given):
        area = by_text.get(str(item))
        if area in given:
            given[area] += 1
    pools = {
        area: [k for k in order.tolist() if allowed[k] and area_of.get(k) == area]
        for area in content.shares
    }
    out: list[int] = []
    while len(out) < count:
        open_areas = [area for area, pool in pools.items() if pool]
        if not open_areas:
            break
        # the area that has least of its share so far
        area = min(open_areas, key=lambda one: given[one] / content.shares[one])
        out.append(pools[area].pop(0))
        given[area] += 1
        if len(out) == count:  # the rest of that area may stand in where exposure holds items back
            out += pools[area]
    return np.array(out, dtype=np.int64)


def _exposed(
    order: Ints,
    labels: Labels,
    exposure: int | Mapping[Any, float],
    count: int,
    rng: np.random.Generator,
) -> Ints:
    """The order after drawing who of the best is given."""
    if isinstance(exposure, Mapping):
        number = try_index_of(labels, list(exposure))
        chance = np.ones(labels.size)
        chance[number[number >= 0]] = np.array(list(exposure.values()), dtype=float)[number >= 0]
        if not ((chance >= 0) & (chance <= 1)).all():
            raise InputError("exposure: chances of items must be between 0 and 1")
        passed = rng.uniform(size=order.size) < chance[order]
        return np.concatenate([order[passed], order[~passed]])  # never nothing
    among = max(whole_number(exposure, "exposure", 1), count)
    return np.concatenate([rng.permutation(order[:among]), order[among:]])
