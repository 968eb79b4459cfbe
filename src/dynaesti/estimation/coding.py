"""Response values to the categories of each item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.data import Labels, Responses, index_of
from dynaesti.errors import InputError, ResponseError
from dynaesti.estimation.response_counts import ResponseCounts, amounts, check_values
from dynaesti.model import CustomItemModel, ItemModel, PivotPartialCredit, item_model

# share of all answers that makes a value an option of the scale; answers expected, below which
# none is no proof
OPTION = 0.01
DOUBT = 3.0
# answers that nearly miss a value; items with so few, to one without any, that make none look
# like chance
ONCE_OR_TWICE = 2
NEARLY = 0.05


@dataclass(frozen=True)
class ResponseCoding:
    """How responses become categories.

    (item, value) → category; −1 for amounts. Kept to code further answers alike.
    """

    values: Array  # distinct values of categorical responses, rising
    table: Ints  # (items, values): category, −1 where the item never had the value
    models: tuple[ItemModel, ...]  # one an item
    merged: tuple[str, ...]  # what was merged, in words

    def code(self, responses: Responses, items: Ints) -> Array:
        """Category of each answer (its amount for models without categories).

        `items` are numbers in the bank.
        """
        amount = amounts(self.models)[items]
        place = np.clip(
            np.searchsorted(self.values, responses.resp), 0, max(self.values.size - 1, 0)
        )
        known = (
            np.zeros(len(responses), dtype=bool)
            if not self.values.size
            else self.values[place] == responses.resp
        )
        code = np.where(
            known & ~amount, self.table[items, place] if self.values.size else -1, -1
        ).astype(np.float64)
        bad = ~amount & (code < 0)
        if bad.any():
            k = int(bad.argmax())
            raise ResponseError(
                f"resp: {int(bad.sum())} of {len(responses)} answers are outside their item's "
                f"categories (first: "
                f"{responses.resp[k]:g} to item {responses.items[responses.item[k]]!r}); recode "
                f"or drop them"
            )
        for i in np.unique(items[amount]):
            check_amounts(
                self.models[i],
                responses.resp[items == i],
                responses.items.tolist()[int(responses.item[items == i][0])],
            )
        return np.where(amount, responses.resp, code)

    def code_one(self, item: int, resp: float) -> float:
        """Category (or amount) of one answer."""
        if not self.models[item].categorical and not isinstance(self.models[item], CustomItemModel):
            check_amounts(self.models[item], np.array([resp]), item)
            return resp
        at = int(np.searchsorted(self.values, resp))
        if at >= self.values.size or self.values[at] != resp or self.table[item, at] < 0:
            raise ResponseError(f"resp: {resp:g} is outside the item's categories; recode it")
        return float(self.table[item, at])


def resolve_item_models(
    model: Any, items: Labels, named: Labels | None, signed: bool
) -> tuple[ItemModel, ...]:
    """One model an item: named in the data, from a mapping by item, or the same for all."""
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
    rare: int,
    whole: bool = False,
) -> ResponseCoding:
    """Categories of every item, rare ones merged.

    `whole`: thin items have the options that nobody chose yet, too; priors place them.
    """
    check_values(response_counts.values, models)
    amount = amounts(models)
    values = response_counts.values
    counts = response_counts.counts
    names = items.tolist()
    table = np.full(counts.shape, -1, dtype=np.int64)
    merged = []
    pooled = _pooled(models, counts)
    options = _open_options(models, counts) if whole else np.zeros(counts.shape, dtype=bool)
    full = list(models)
    binary = np.array([model.binary for model in models], dtype=bool)
    table[binary] = _binary(values, counts, binary, names)
    for i, model in enumerate(models):
        if amount[i] or binary[i]:
            continue
        label = names[i]
        if isinstance(model, CustomItemModel):
            table[i] = np.arange(values.size)
            full[i] = replace(model, values=tuple(values.tolist()))
            continue
        common = (
            pooled[type(model)] if model.shared else np.maximum(counts[i], options[i])
        )  # shared thresholds need shared categories
        seen = common > 0
        if (
            seen.sum() < 2
        ):  # everybody gave one answer: a neighbour that nobody chose completes the item
            others = np.flatnonzero((counts.sum(axis=0) > 0) & ~seen)
            if not others.size:
                raise ResponseError(
                    f"item {label!r} has one category only, and so has every other; nothing can "
                    f"be learned from it"
                )
            seen = seen.copy()
            seen[others[np.abs(others - int(np.flatnonzero(seen)[0])).argmin()]] = True
        groups = _merge(common[seen], rare)
        if groups.max() + 1 < seen.sum():
            merged.append(f"item {label!r}: {int(seen.sum())} categories became {groups.max() + 1}")
        codes = (
            groups
            if not isinstance(model, PivotPartialCredit) or not model.descending
            else groups.max() - groups
        )
        table[i, seen] = codes
        if isinstance(model, PivotPartialCredit):
            full[i] = _pivoted(model, label, values, table[i], counts[i])
    return ResponseCoding(values, table, tuple(full), tuple(merged))


def _open_options(models: tuple[ItemModel, ...], counts: Array) -> Bools:
    """Options of an item that nobody chose: (items, values).

    Such values are common among the items of one model, and likely to be missed by chance, all of
    them: because answers are so few, or because other items nearly miss them too (votes on which
    all but one or two agree). An item that many answered without values that others either have
    often or never has another scale.
    """
    out = np.zeros(counts.shape, dtype=bool)
    for kind in {
        type(m)
        for m in models
        if m.categorical
        and not (m.binary or m.shared or isinstance(m, (CustomItemModel, PivotPartialCredit)))
    }:
        mine = counts[_of_kind(models, kind)]
        share = mine.sum(axis=0) / max(mine.sum(), 1.0)
        absent = (mine == 0) & (share >= OPTION)
        few = mine.sum(axis=1) * (absent @ share) < DOUBT
        seldom = ((mine > 0) & (mine <= ONCE_OR_TWICE)).sum(axis=0) >= NEARLY * (mine == 0).sum(
            axis=0
        )
        out[_of_kind(models, kind)] = absent & (few | ~(absent & ~seldom).any(axis=1))[:, None]
    return out


def _pooled(models: tuple[ItemModel, ...], counts: Array) -> dict[type, Array]:
    """Answers in each category, over all items of a model whose items share their thresholds."""
    return {
        kind: counts[_of_kind(models, kind)].sum(axis=0)
        for kind in {type(m) for m in models if m.shared}
    }


def _of_kind(models: tuple[ItemModel, ...], kind: type) -> Bools:
    return np.array([type(m) is kind for m in models])


def _binary(values: Array, counts: Array, binary: Bools, names: list[Any]) -> Ints:
    """Categories of the values for binary items; any others that these have are refused."""
    odd = np.argwhere((counts > 0) & binary[:, None] & (values != 0.0) & (values != 1.0))
    if odd.size:
        item, value = odd[0]
        raise ResponseError(
            f"resp: item {names[item]!r} has the response {values[value]:g}, but its model takes "
            f"0 and 1 only; use GRM or "
            "GPCM for several categories, or recode"
        )
    return np.where(values == 0.0, 0, np.where(values == 1.0, 1, -1))


def check_amounts(model: ItemModel, y: Array, label: Any) -> None:
    """Refuse amounts that an item's model cannot have given."""
    bad = {"poisson": (y < 0) | (y != np.floor(y)), "beta": (y <= 0) | (y >= 1)}.get(
        model.name, np.zeros(y.size, dtype=bool)
    )
    if bad.any():
        wants = {"poisson": "whole numbers from 0", "beta": "values strictly between 0 and 1"}[
            model.name
        ]
        raise ResponseError(
            f"resp: {int(bad.sum())} answers to item {label!r} are no {wants} (first: "
            f"{y[int(bad.argmax())]:g}), which the "
            f"{model.name} model needs"
        )


def _merge(counts: Array, rare: int) -> Ints:
    """Group numbers of an item's categories.

    Those below `rare` join the neighbour nearer to the most frequent one.
    """
    groups = [[k] for k in range(counts.size)]
    sizes = counts.tolist()
    while len(groups) > 2 and min(sizes) < rare:
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
    """The responses' items as numbers among known labels."""
    return index_of(labels, responses.items.tolist(), "item", remedy)
