"""A bank whose items are all given: models, categories and parameters without any responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import Array
from dynaesti.data import Labels, as_labels
from dynaesti.errors import InputError, option
from dynaesti.estimation.coding import ResponseCoding, build_coding
from dynaesti.estimation.given_items import NO_ASYMPTOTE, read_given_items, read_given_models
from dynaesti.estimation.response_counts import MOST_CATEGORIES, ResponseCounts, with_densities
from dynaesti.estimation.start_values import build_bank
from dynaesti.model import ItemBank, ItemModel, item_model

# responses that an item is taken to have had, spread over its categories: enough for a bank of any
# size not to count as thin, so that items which join it have the priors of an ordinary fit
COUNTED = 1000.0
DICHOTOMOUS = {frozenset("b"): "1PL", frozenset("ab"): "2PL"}


def stated_bank(
    given: Any,
    model: Any,
    population: tuple[float, float],
    categories: Sequence[float] | None,
) -> tuple[Labels, ItemBank, ResponseCoding]:
    """Labels, items and coding of a bank whose parameters are all given.

    Parameters
    ----------
    given : mapping, frame or path
        Parameters of the items, as in `read_given_items`.
    model : str, ItemModel, mapping or None
        Model of the items. None: by a column "model", else by each item's parameters.
    population : (mean, sd)
        Of the abilities, on the scale of the items.
    categories : sequence of float, optional
        Responses that categories stand for. Default: 0, 1, ….
    """
    items = read_given_items(given, "items")
    if not items:
        raise InputError("items: the bank is empty; give at least one item with its parameters")
    labels = as_labels(list(items))
    values = {str(label): one for label, one in items.items()}
    in_order = [values[str(label)] for label in labels.tolist()]
    models = _models(labels, in_order, model, read_given_models(given))
    sizes = [
        _n_categories(label, one, own)
        for label, one, own in zip(labels.tolist(), in_order, models, strict=True)
    ]
    counts = _counts(models, sizes, categories)
    models = with_densities(models, counts)
    counts = counts.with_own_values(models)
    coding = build_coding(labels, models, counts, 1)
    bank = build_bank(labels, coding, counts, "weak", items, {})
    _check_complete(bank, labels)
    mean, sd = population
    scale = bank.ability_scale
    stated = replace(
        scale,
        location=(mean - scale.zero) / scale.unit,
        log_scale=float(np.log(sd / scale.unit)),
        free_location=False,
        free_scale=False,
        stated=True,
        few=False,
        has_prior=False,
    )
    return labels, replace(bank, ability_scale=stated), coding


def _models(
    labels: Labels,
    given: Sequence[Mapping[str, float]],
    model: Any,
    named: Mapping[Any, str],
) -> tuple[ItemModel, ...]:
    """The model of each item: stated, named in the table, or told by its parameters."""
    by_label = {str(label): one for label, one in model.items()} if _is_mapping(model) else {}
    out = []
    for label, values in zip(labels.tolist(), given, strict=True):
        own = by_label.get(str(label)) if _is_mapping(model) else model
        if own is None:
            own = named.get(label) or _model_by_parameters(label, values)
        backward = any(name[:1] == "a" and value < 0 for name, value in values.items())
        out.append(item_model(own, backward))
    if any(one.signed for one in out):  # one form for all, so that they share a block
        out = [replace(one, signed=True) if one.is_reflectable else one for one in out]
    return tuple(out)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _model_by_parameters(label: Any, values: Mapping[str, float]) -> str:
    """The model that an item's parameters can only mean."""
    told = [name for name, value in values.items() if value != NO_ASYMPTOTE.get(name)]
    names = {"b" if name == "intercept" else name for name in told}
    if names & {"c", "d"} and names <= {"a", "b", "c", "d"}:
        return "4PL" if "d" in names else "3PL"
    found = DICHOTOMOUS.get(frozenset(names))
    if found is None:
        raise InputError(
            f"items: the parameters of item {label!r} ({', '.join(values) or 'none'}) do not say "
            f"which model is meant; name it, as in {option('model', 'GRM')}, or in a column 'model'"
        )
    return found


def _n_categories(label: Any, values: Mapping[str, float], model: ItemModel) -> int:
    """Number of an item's categories, by its thresholds; 0 without categories."""
    if model.binary:
        return 2
    if not model.categorical:
        return 0
    last = max(
        (int(digits) for name in values if (digits := name.lstrip("abcdefghijklmnopqrstuvwxyz"))),
        default=0,
    )
    if last < 1 or last >= MOST_CATEGORIES:
        raise InputError(
            f"items: a {model.name} item has a parameter for each step between categories, b1, "
            f"b2, … or intercept1, …; item {label!r} has {', '.join(values) or 'none'}"
        )
    return last + 1


def _counts(
    models: Sequence[ItemModel], sizes: Sequence[int], categories: Sequence[float] | None
) -> ResponseCounts:
    """Responses that the items are taken to have had, evenly over their categories."""
    own = any(one.needs_row_check for one in models)
    if own and categories is None:
        raise InputError(
            "categories: a model of your own does not say which responses there are; give them, "
            "as in categories=[0, 1, 2]"
        )
    most = max([2, *sizes])
    listed = _category_values(categories, most)
    has_binary = any(one.binary for one in models)
    values = np.union1d(listed[:most], [0.0, 1.0] if has_binary else listed[:1])
    counts = np.zeros((len(models), values.size))
    for k, (one, size) in enumerate(zip(models, sizes, strict=True)):
        met = np.array([0.0, 1.0]) if one.binary else listed[:size]
        counts[k, np.searchsorted(values, met)] = COUNTED
    number = np.full(len(models), int(COUNTED))
    flat = np.full(len(models), COUNTED)  # of sd 1: measurements are in the unit of the bank
    people = int(COUNTED) * len(models)
    ends = [np.full(len(models), end) for end in (listed[0], listed[-1])]
    kept = listed if own else listed[:0]
    return ResponseCounts(people, number, np.zeros(len(models)), flat, values, counts, kept, *ends)


def _category_values(categories: Sequence[float] | None, most: int) -> Array:
    """The responses that categories stand for, rising."""
    if categories is None:
        return np.arange(most, dtype=np.float64)
    try:
        listed = np.unique(np.asarray(list(categories), dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(
            f"categories: expected the responses in order, such as [1, 2, 3], got {categories!r}"
        ) from None
    if not np.isfinite(listed).all() or listed.size < most:
        raise InputError(
            f"categories: {listed.size} different responses, and an item with {most} categories; "
            "give every response that items have"
        )
    return listed


def _check_complete(bank: ItemBank, labels: Labels) -> None:
    """Refuse items of which a parameter is not given."""
    for block in bank.blocks:
        lacking = np.flatnonzero(block.free.any(axis=1))
        if lacking.size:
            names = ", ".join(
                name for name in block.reported(block.u) if not name.startswith("intercept")
            )
            raise InputError(
                f"items: {lacking.size} of {labels.size} items lack parameters (first: "
                f"{labels.tolist()[int(block.items[lacking[0]])]!r}); a {block.model.label} item "
                f"has {names}"
            )
