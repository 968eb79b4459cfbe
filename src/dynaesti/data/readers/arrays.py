"""Matrices, tuples, records and objects of Python to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from dynaesti.data.headings import SYNONYMS, recognise
from dynaesti.data.labels import count_noun
from dynaesti.data.readers.table import Table, from_columns, from_rows
from dynaesti.errors import ResponseError

TUPLE_COLUMNS = ("id", "item", "resp", "date", "weight")


def refuse_ambiguous(data: Any) -> None:
    """Raise for what is nearly data: text of a file, a sparse matrix, nothing.

    Raises
    ------
    ResponseError
        The message says what to hand over instead.
    """
    if isinstance(data, bytes) or (isinstance(data, str) and "\n" in data):
        kind = "BytesIO" if isinstance(data, bytes) else "StringIO"
        raise ResponseError(
            f"data: the text of a file, where its path belongs; hand over io.{kind}(text)"
        )
    if hasattr(data, "toarray") and hasattr(data, "nnz"):
        raise ResponseError(
            "data: a sparse matrix, whose empty entries may be zeros or no answers; hand over "
            "data.toarray() if they are zeros, or tuples (person, item, response)"
        )
    if isinstance(data, list | tuple) and not data:
        raise ResponseError("data: it is empty; give rows, or a path")


def read_records(data: Any) -> Table | None:
    """A structured array, dataclasses, a mapping of mappings or rows below headings as a table.

    None if it is nothing of these.
    """
    if isinstance(data, np.ndarray) and data.dtype.names:
        return Table(from_columns({name: data[name].tolist() for name in data.dtype.names}))
    if isinstance(data, Mapping):
        rows = [(key, value) for key, value in data.items() if isinstance(value, Mapping)]
        if rows and len(rows) == len(data):
            return Table(from_rows([{"id": key, **value} for key, value in rows]))
    if isinstance(data, list | tuple) and data:
        if all(is_dataclass(row) and not isinstance(row, type) for row in data):
            return Table(from_rows([asdict(row) for row in data]))
        if all(isinstance(row, list) for row in data) and _has_headings(data):
            return Table(from_rows([dict(zip(data[0], row, strict=False)) for row in data[1:]]))
    return None


def _has_headings(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether the first of some lists holds headings."""
    return (
        len(rows) > 1
        and all(isinstance(name, str) for name in rows[0])
        and any(recognise(rows[0], role) for role in SYNONYMS)
    )


def are_tuples(rows: Sequence[Any]) -> bool:
    """Whether rows are answers, each a tuple, or a list that begins with a name."""
    if all(isinstance(row, tuple) for row in rows):
        return True
    sizes = {len(row) if isinstance(row, list) else 0 for row in rows}
    return (
        len(sizes) == 1
        and sizes <= set(range(3, len(TUPLE_COLUMNS) + 1))
        and all(isinstance(row[0], str) for row in rows)
    )


def is_matrix(data: Any) -> bool:
    """Whether data are a two-dimensional array, or a list of lists."""
    if isinstance(data, np.ndarray):
        return data.ndim == 2
    return (
        isinstance(data, list | tuple)
        and bool(data)
        and all(isinstance(row, list | np.ndarray) for row in data)
        and not are_tuples(data)
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
