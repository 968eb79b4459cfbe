"""Matrices, and lists of tuples, to tables with one row an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynaesti.data.labels import count_noun
from dynaesti.data.readers.table import Table, from_columns
from dynaesti.errors import ResponseError

TUPLE_COLUMNS = ("id", "item", "resp", "date", "weight")


def is_matrix(data: Any) -> bool:
    """Whether data are a two-dimensional array, or a list of lists."""
    if isinstance(data, np.ndarray):
        return data.ndim == 2
    return (
        isinstance(data, list | tuple)
        and bool(data)
        and all(isinstance(row, list | np.ndarray) for row in data)
    )


def read_matrix(data: Any) -> Table:
    """A matrix of people × items, whose entries are answers, numbered from 0.

    Raises
    ------
    ResponseError
        If rows differ in length.
    """
    sizes = {len(row) for row in data}
    if len(sizes) > 1:
        raise ResponseError(
            f"data: rows of a matrix differ in length ({min(sizes)} to {max(sizes)}); give each "
            f"an entry for every item, None where there is no answer"
        )
    people, items = len(data), sizes.pop() if sizes else 0
    if not people or not items:
        raise ResponseError("data: a matrix without entries; give people × items")
    entries = (
        data.ravel().tolist() if isinstance(data, np.ndarray) else [x for r in data for x in r]
    )
    frame = from_columns(
        {
            "id": np.repeat(np.arange(people), items),
            "item": np.tile(np.arange(items), people),
            "resp": entries,
        }
    )
    note = (
        f"a matrix: {count_noun(people, 'rows')} are people, {count_noun(items, 'columns')} are "
        f"items"
    )
    return Table(frame, notes=(note,))


def read_tuples(rows: Sequence[Sequence[Any]]) -> Table:
    """Tuples of person, item and response, and perhaps time and weight.

    Raises
    ------
    ResponseError
        If they have fewer or more members, or differ in length.
    """
    sizes = {len(row) for row in rows}
    size = max(sizes)
    if len(sizes) > 1 or not 3 <= size <= len(TUPLE_COLUMNS):
        raise ResponseError(
            f"data: tuples of {' or '.join(map(str, sorted(sizes)))} members; give each a person, "
            f"an item and a response, and perhaps a time and a weight"
        )
    names = TUPLE_COLUMNS[:size]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return Table(from_columns(columns), notes=(f"tuples are ({', '.join(names)})",))
