"""Items that are freed: split into several, by a column or at a time, each with its parameters.

An item that is easier for one group, or since a date, is then several items of one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.data.formulas import CATEGORY, parse_formula
from dynaesti.data.labels import as_labels, encode, try_index_of
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
    return dict(value)


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
        names[rows] = [f"{item} [{part}]" for part in parts]
    items, code = encode(as_labels(names.tolist()), "item")
    if models is not None:
        first = np.unique(code, return_index=True)[1]
        models = models[first]
    return replace(r, items=items, item=code.astype(np.int64), models=models)


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
