"""Coding: from response values to the categories of each item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.data import Labels, Responses, index_of
from dynaesti.errors import InputError, ResponseError
from dynaesti.estimation.response_counts import ResponseCounts, amounts, check_values
from dynaesti.model import ItemModel, PivotPartialCredit, item_model


@dataclass(frozen=True)
class CategorySettings:
    """When a category that nobody chose still belongs to an item's scale.

    Source: held-out log loss of UN votes, 0.337 to 0.324 (random ones) and 0.509 to 0.457 (each
    state's last).
    """

    min_frequency: float = 0.01  # of all responses, that makes a value part of the common scale
    max_expected: float = 3.0  # fewer expected responses than this: seeing none proves nothing
    few: int = 2  # so many responses count as "nearly missed"
    near_miss_ratio: float = 0.05  # items that nearly miss a value, for each one that misses it


@dataclass(frozen=True)
class ResponseCoding:
    """How responses become categories; kept to code later responses in the same way.

    For each (item, value) there is a category, −1 for amounts.
    """

    values: Array  # (n_values,) distinct values of categorical responses, rising
    table: Ints  # (n_items, n_values) category, −1 where the item never had the value
    models: tuple[ItemModel, ...]  # one for each item
    merged: tuple[str, ...]  # sentences that say which categories were merged

    def code(self, responses: Responses, items: Ints) -> Array:
        """Category of each response, or its amount for models without categories.

        `items` (n_responses,) are the items' numbers in the bank.
        """
        amount = amounts(self.models)[items]
        code = np.full(len(responses), -1.0)
        if self.values.size:
            index = np.searchsorted(self.values, responses.resp).clip(max=self.values.size - 1)
            known = (self.values[index] == responses.resp) & ~amount
            code = np.where(known, self.table[items, index], -1).astype(np.float64)
        bad = ~amount & (code < 0)
        if bad.any():
            k = int(bad.argmax())
            raise ResponseError(
                f"resp: {int(bad.sum())} of {len(responses)} answers are outside their item's "
                f"categories "
                f"(first: {responses.resp[k]:g} to item {responses.items[responses.item[k]]!r}); "
                "recode or drop them"
            )
        for i in np.unique(items[amount]):
            mine = items == i
            label = responses.items.tolist()[int(responses.item[mine][0])]
            self.models[i].check_responses(responses.resp[mine], label)
        return np.where(amount, responses.resp, code)

    def code_one(self, item: int, resp: float) -> float:
        """Category (or amount) of one response."""
        model = self.models[item]
        if not model.has_value_rows:
            model.check_responses(np.array([resp]), item)
            return resp
        at = int(np.searchsorted(self.values, resp))
        if at >= self.values.size or self.values[at] != resp or self.table[item, at] < 0:
            raise ResponseError(f"resp: {resp:g} is outside the item's categories; recode it")
        return float(self.table[item, at])


def resolve_item_models(
    model: Any, items: Labels, named: Labels | None, signed: bool
) -> tuple[ItemModel, ...]:
    """One model for each item: named in the data, from a mapping by item, or the same for all."""
    if named is not None:
        return tuple(item_model(name, signed) for name in named.tolist())
    if isinstance(model, Mapping):
        missing = [label for label in items.tolist() if label not in model]
        if missing:
            raise InputError(
                f"model: {len(missing)} of {items.size} items have none, first {missing[0]!r}; "
                f"give every item one"
            )
        return tuple(item_model(model[label], signed) for label in items.tolist())
    return (item_model(model, signed),) * items.size


def build_coding(
    items: Labels,
    models: tuple[ItemModel, ...],
    response_counts: ResponseCounts,
    min_count: int,
    keep_unobserved: bool = False,
) -> ResponseCoding:
    """Categories of every item; those with fewer than ``min_count`` responses join a neighbour.

    With ``keep_unobserved``, items with few responses also keep categories that nobody chose yet;
    their parameters then come from the priors.
    """
    values = response_counts.values
    counts = response_counts.counts
    check_values(values[counts.any(axis=0)])
    labels = items.tolist()
    binary = np.array([model.binary for model in models], dtype=bool)
    table = np.full(counts.shape, -1, dtype=np.int64)
    table[binary] = _binary(values, counts, binary, labels)
    counted = _category_counts(models, counts, keep_unobserved)
    coded_models = list(models)
    merged = []
    amount = amounts(models)
    for i in np.flatnonzero(~amount & ~binary):
        model = models[i]
        if not model.categorical:  # a user's own model, in which every value has a row
            own = response_counts.own_values
            table[i, np.searchsorted(values, own)] = np.arange(own.size)
            coded_models[i] = model.with_values(own)
            continue
        seen = _with_a_neighbour(counted[i] > 0, counts.sum(axis=0) > 0, labels[i])
        groups = _merge(counted[i][seen], min_count)
        n_groups = int(groups.max()) + 1
        if n_groups < seen.sum():
            merged.append(f"item {labels[i]!r}: {int(seen.sum())} categories became {n_groups}")
        if isinstance(model, PivotPartialCredit):
            table[i, seen] = n_groups - 1 - groups if model.descending else groups
            coded_models[i] = _pivoted(model, labels[i], values, table[i], counts[i])
        else:
            table[i, seen] = groups
    return ResponseCoding(values, table, tuple(coded_models), tuple(merged))


def _category_counts(models: tuple[ItemModel, ...], counts: Array, keep_unobserved: bool) -> Array:
    """Counts by which categories are formed: (n_items, n_values).

    Items with shared thresholds share their categories, so their counts are added.
    """
    out = counts.astype(np.float64)
    plain = [m.categorical and not (m.binary or m.shares_thresholds) for m in models]
    pivot = [isinstance(m, PivotPartialCredit) for m in models]
    for kind in {type(m) for m in models}:
        mine = np.array([type(m) is kind for m in models])
        first = int(mine.argmax())
        if models[first].shares_thresholds:
            out[mine] = counts[mine].sum(axis=0)
        elif keep_unobserved and plain[first] and not pivot[first]:
            out[mine] = np.maximum(counts[mine], unobserved_categories(counts[mine]))
    return out


def unobserved_categories(
    counts: Array,
    settings: CategorySettings = CategorySettings(),
) -> Bools:
    """Categories to keep although nobody chose them: (n_items, n_values), for items of one model.

    A missing category is kept if the item has too few responses to tell, or if *all* its missing
    categories are ones that other items often nearly miss too (votes with one or two dissenters).
    """
    item_total = counts.sum(axis=1)
    frequency = counts.sum(axis=0) / max(counts.sum(), 1.0)
    missing = (counts == 0) & (frequency >= settings.min_frequency)
    expected_if_on_scale = item_total * (missing @ frequency)
    too_few_to_tell = expected_if_on_scale < settings.max_expected
    near_misses = ((counts > 0) & (counts <= settings.few)).sum(axis=0)
    often_nearly_missed = near_misses >= settings.near_miss_ratio * (counts == 0).sum(axis=0)
    all_nearly_missed = ~(missing & ~often_nearly_missed).any(axis=1)
    return np.asarray(missing & (too_few_to_tell | all_nearly_missed)[:, None])


def _with_a_neighbour(seen: Bools, anywhere: Bools, label: Any) -> Bools:
    """The values of an item; with the nearest other value where all its responses are equal.

    An item needs at least two categories.
    """
    if seen.sum() > 1:
        return seen
    others = np.flatnonzero(anywhere & ~seen)
    if not others.size:
        raise ResponseError(
            f"item {label!r} has one category only, and so has every other; nothing can be learned "
            "from it"
        )
    completed = seen.copy()
    completed[others[np.abs(others - int(np.flatnonzero(seen)[0])).argmin()]] = True
    return completed


def _binary(values: Array, counts: Array, binary: Bools, names: list[Any]) -> Ints:
    """Categories of the values for binary items; other values of these items are refused."""
    odd = np.argwhere((counts > 0) & binary[:, None] & (values != 0.0) & (values != 1.0))
    if odd.size:
        item, value = odd[0]
        raise ResponseError(
            f"resp: item {names[item]!r} has the response {values[value]:g}, but its model takes "
            f"0 and 1 only; use GRM or "
            "GPCM for several categories, or recode"
        )
    return np.where(values == 0.0, 0, np.where(values == 1.0, 1, -1))


def _merge(counts: Array, min_count: int) -> Ints:
    """Number of the merged category of each of an item's categories.

    Those with fewer responses than ``min_count`` join the neighbour nearer to the most frequent
    one.
    """
    groups = [[k] for k in range(counts.size)]
    sizes = counts.tolist()
    while len(groups) > 2 and min(sizes) < min_count:
        k = int(np.argmin(sizes))
        top = int(np.argmax(sizes))
        into = k + 1 if k < top else k - 1
        low = min(k, into)
        groups[low : low + 2] = [groups[low] + groups[low + 1]]
        sizes[low : low + 2] = [sizes[low] + sizes[low + 1]]
    out = np.empty(counts.size, dtype=np.int64)
    for number, group in enumerate(groups):
        out[group] = number
    return out


def _pivoted(
    model: PivotPartialCredit, label: Any, values: Array, codes: Ints, counts: Array
) -> PivotPartialCredit:
    """The model with its pivot's category filled in."""
    if model.par is None:
        sums = np.bincount(codes[codes >= 0], counts[codes >= 0])
        return replace(model, par=None, pivot=int(sums.argmax()))
    if label not in model.par:
        raise InputError(
            f"par: none for item {label!r}; give every item one, or leave par out for the most "
            f"frequent response"
        )
    at = np.flatnonzero((values == model.par[label]) & (codes >= 0))
    if not at.size:
        raise InputError(
            f"par: {model.par[label]!r} of item {label!r} never occurs among its responses"
        )
    return replace(model, par=None, pivot=int(codes[at[0]]))


def index_of_items(responses: Responses, labels: Any, remedy: str = "") -> Ints:
    """The responses' items as numbers among known labels; an error for unknown ones."""
    return index_of(labels, responses.items.tolist(), "item", remedy)
