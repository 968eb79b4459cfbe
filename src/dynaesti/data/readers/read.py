"""Any data to one table: frames, mappings of columns, dicts, paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from io import IOBase
from os import PathLike
from typing import Any

import narwhals as nw
from narwhals.exceptions import NarwhalsError

from dynaesti.data.frames import frame_kind
from dynaesti.data.readers.arrays import (
    are_tuples,
    is_matrix,
    read_matrix,
    read_records,
    read_tuples,
    refuse_ambiguous,
)
from dynaesti.data.readers.files import FileParts, read_files, read_stream
from dynaesti.data.readers.table import Table, from_columns, from_rows
from dynaesti.errors import ResponseError
from dynaesti.tables import Frame


def read_table(data: Any, sheet: str | None = None, query: str | None = None) -> Table:
    """Make a table of a frame, a path, a mapping, a matrix, or an iterable of rows.

    Rows are dicts, tuples, dataclasses, or lists below one of headings. An open file is read too.

    Paths may be several, patterns, addresses of databases, or "-" for standard input.

    Parameters
    ----------
    data : frame, path, mapping, matrix or iterable
    sheet : str, optional
        Sheet of a workbook, or table of a database.
    query : str, optional
        SQL for a database.

    Raises
    ------
    ResponseError
        If the data are of another kind, or cannot be read.
    """
    parts = FileParts(sheet, query)
    refuse_ambiguous(data)
    if isinstance(data, str | PathLike):
        return read_files([str(data)], parts)
    if isinstance(data, Frame):
        return Table(from_columns(data.to_arrays()))
    records = read_records(data)
    if records is not None:
        return records
    if isinstance(data, Mapping):
        return Table(from_columns(data))
    if isinstance(data, IOBase):
        return read_stream(data, parts)
    if is_matrix(data):
        return read_matrix(data)
    try:
        frame = nw.from_native(_with_one_heading(data))
    except TypeError:
        frame = None
    except NarwhalsError as error:
        raise ResponseError(
            f"data: {str(error).splitlines()[0]}; give each column a name of its own"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return Table(_with_text_names(_with_index(frame)), frame_kind(data))
    if isinstance(data, Iterable):
        rows = list(data)
        if rows and all(isinstance(row, str | PathLike) for row in rows):
            return read_files([str(row) for row in rows], parts)
        if rows and all(isinstance(row, Mapping) for row in rows):
            return Table(from_rows(rows))
        records = read_records(rows)
        if records is not None:
            return records
        if rows and are_tuples(rows):
            return read_tuples(rows)
    raise ResponseError(
        f"data: expected a data frame, a path, a matrix, or an iterable of dicts or tuples; got "
        f"{type(data).__name__}"
    )


def _with_one_heading(data: Any) -> Any:
    """A frame of pandas whose levels of headings are one; anything else as it is."""
    if getattr(getattr(data, "columns", None), "nlevels", 1) == 1:
        return data
    flat = data.copy(deep=False)
    flat.columns = [" ".join(str(part) for part in name if part != "") for name in data.columns]
    return flat


def _with_index(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """A frame of pandas with its index as columns, where the index has names or holds text."""
    native = frame.to_native()
    if not type(native).__module__.startswith("pandas"):
        return frame
    index = native.index
    names = list(index.names)
    if names == [None] and index.dtype.kind not in "iuf" and "id" not in native.columns:
        names = ["id"]
    if None in names or any(name in native.columns for name in names):
        return frame
    named = native.rename_axis(columns=None).reset_index(names=names)
    return nw.from_native(named, eager_only=True)


def _with_text_names(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """A frame with the names of its columns as text; equal names are refused."""
    names = [str(name) for name in frame.columns]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ResponseError(
            f"data: {len(twice)} columns occur twice (first: {twice[0]!r}); give each a name of "
            f"its own"
        )
    return (
        frame
        if names == list(frame.columns)
        else frame.rename(dict(zip(frame.columns, names, strict=True)))
    )
