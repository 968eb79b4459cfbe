"""Items that are freed: split into several, by a column or at a time, each with its parameters.

An item that is easier for one group, or since a date, is then several items of one name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.data.formulas import CATEGORY, parse_formula
from dynaesti.data.labels import Labels, as_labels, encode, index_of, label_text, try_index_of
from dynaesti.data.responses import Responses
from dynaesti.data.time_axis import parse_iso
from dynaesti.errors import InputError

Free = Mapping[Any, Any]  # item: name of a column, or the time from which it is another item


def check_free(value: Any, name: str) -> dict[Any, Any]:
    """What `free` may be: a mapping from items to columns, as text, or to times."""
    if not isinstance(value, Mapping) or not value:
        raise InputError(
            f"{name}: expected a mapping such as {{'i3': 'gender', 'i7': 45.0}} from items to the "
            f"column, or the time, by which they are split; got {value!r}"
        )
    out = {}
    for item, by in value.items():
        is_plain = isinstance(by, str | int | float | np.number) and not isinstance(by, bool)
        out[item] = by.item() if isinstance(by, np.number) else by if is_plain else _iso(by, name)
    return out


def _iso(value: Any, name: str) -> str:
    """A date as ISO text, which files can hold."""
    try:
        return str(np.datetime_as_string(np.datetime64(value), unit="auto"))
    except (ValueError, TypeError):
        raise InputError(f"{name}: {value!r} is neither a column nor a time") from None


def columns_needed(effects: str | None, free: Free | None) -> dict[str, str]:
    """Columns that a formula and freed items need of the data, with their kinds."""
    kinds = {} if effects is None else dict(parse_formula(effects).columns)
    for column in _columns(free):
        if kinds.get(column, CATEGORY) == "number":
            raise InputError(
                f"free: the effects use {column!r} as numbers, and items are split by categories"
            )
        kinds[column] = CATEGORY
    return kinds


def _columns(free: Free | None) -> list[str]:
    """The columns by which items are split."""
    return [by for by in (free or {}).values() if isinstance(by, str) and not _is_date(by)]


def _is_date(text: str) -> bool:
    """Whether a text is a date in ISO form."""
    try:
        np.datetime64(text)
    except ValueError:
        return False
    return text[:4].isdigit()


def check_splits(whole: Responses, split: Responses, free: Free) -> None:
    """Refuse splits that leave an item in one part.

    Raises
    ------
    InputError
        If an item of `free` is not among the items, or all its answers are in one part.
    """
    numbers = index_of(whole.items, list(free), "free")
    for number, (item, by) in zip(numbers.tolist(), free.items(), strict=True):
        parts = np.unique(split.item[whole.item == number])
        if parts.size < 2:
            name = split.items.tolist()[int(parts[0])]
            raise InputError(
                f"free: all answers to {item!r} are in one part, {name!r}; {by!r} does not split it"
            )


def split_items(responses: Responses, free: Free | None) -> Responses:
    """The responses with freed items split; items that they do not have are passed over.

    Parts are called "i3 [f]" by a column, and "i3 [until …]" and "i3 [from …]" at a time.

    Raises
    ------
    InputError
        If a time cannot be read, or the responses lack the column.
    """
    if not free:
        return responses
    r = responses
    names = r.items.astype(object)[r.item]
    models = None if r.models is None else r.models[r.item]
    numbers = try_index_of(r.items, list(free))
    for number, (item, by) in zip(numbers.tolist(), free.items(), strict=True):
        rows = np.flatnonzero(r.item == number)
        parts = _parts(r, rows, by)
        names[rows] = [_part_name(item, part) for part in parts]
    items, code = encode(as_labels(names.tolist()), "item")
    if models is not None:
        first = np.unique(code, return_index=True)[1]
        models = models[first]
    return replace(r, items=items, item=code.astype(np.int64), models=models)


def freed_label(free: Free | None, item: Any, late: Callable[[Any], bool], given: Any) -> Any:
    """The label of one answer's item, which may be a part of a freed one.

    Parameters
    ----------
    free : mapping or None
    item : label
        As in the data.
    late : callable
        From a time of `free` to whether the answer is at that time or later.
    given : mapping of column to value
        Columns of the answer.

    Raises
    ------
    InputError
        If the column by which the item is split is not given.
    """
    found = [key for key in free or {} if label_text(key) == label_text(item)]
    if not free or not found:
        return item
    by = free[found[0]]
    if not isinstance(by, str) or _is_date(by):
        return _part_name(found[0], f"from {by}" if late(by) else f"until {by}")
    if by not in given:
        raise InputError(f"free: the item {item!r} is split by {by!r}; give that column too")
    return _part_name(found[0], label_text(given[by]).strip())


def _part_name(item: Any, part: str) -> str:
    return f"{item} [{part}]"


def of_all_parts(free: Free | None, by_item: Any, items: Labels) -> Any:
    """A mapping from items, with what it says of a freed item said of each of its parts.

    Anything else than a mapping is returned as it is.
    """
    if not free or not isinstance(by_item, Mapping):
        return by_item
    freed = {label_text(item) for item in free}
    out = {item: value for item, value in by_item.items() if label_text(item) not in freed}
    for item, value in by_item.items():
        if label_text(item) in freed:
            parts = [
                one for one in items.tolist() if str(one).startswith(_part_name(item, "")[:-1])
            ]
            out |= dict.fromkeys(parts, value)
    return out


def _parts(r: Responses, rows: npt.NDArray[np.int64], by: Any) -> list[str]:
    """Name of the part that each of some responses belongs to."""
    if isinstance(by, str) and not _is_date(by):
        column = r.covariates.get(by)
        if column is None or column.levels is None:
            raise InputError(
                f"free: the data are Responses already, without the column {by!r}; read them with "
                f"Responses.read(…, covariates={{{by!r}: 'category'}})"
            )
        return [column.levels[int(k)] for k in column.values[rows]]
    cut = r.axis.offsets(parse_iso([by], "free"), "free")[0]
    return [f"from {by}" if late else f"until {by}" for late in r.offsets[rows] >= cut]
