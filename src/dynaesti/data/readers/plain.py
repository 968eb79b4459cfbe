"""Rows and columns where no library of data frames is installed; text files where pyarrow is not.

`PlainFrame` and `PlainSeries` have what the parsers of columns use of narwhals, and no more.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Bools
from dynaesti.data.readers.broken_lines import sort_broken
from dynaesti.data.readers.dialect import UNNAMED, Dialect, detect_dialect
from dynaesti.data.readers.encoding import REPAIRED, RepairedStream, text_encoding
from dynaesti.data.readers.input_file import InputFile
from dynaesti.data.readers.quotes import SHOWN, has_stray_quote, holds_rows, unquoted
from dynaesti.data.readers.table import Source, Table

KINDS = {"b": nw.Boolean(), "i": nw.Int64(), "u": nw.UInt64(), "f": nw.Float64()}
LONGEST_WHOLE = 19  # digits that no 64 bits hold


@dataclass(frozen=True)
class PlainSeries:
    """One column: an array, of objects where values are text, or missing among other things."""

    values: npt.NDArray[Any]
    dtype: Any  # of narwhals

    @staticmethod
    def of(values: Any) -> PlainSeries:
        """A column of values of any kind; whole numbers with gaps are whole numbers."""
        if isinstance(values, np.ndarray) and values.dtype.kind not in "OUS":
            dtype = KINDS.get(values.dtype.kind, nw.Object())
            return PlainSeries(values, nw.Datetime("ns") if values.dtype.kind == "M" else dtype)
        objects = np.empty(len(values), dtype=object)
        objects[:] = list(values)
        kinds = {type(value) for value in objects.tolist() if value is not None}
        for kind, dtype in ((str, nw.String()), (bool, nw.Boolean()), (int, nw.Int64())):
            if kinds and all(issubclass(one, kind) for one in kinds):
                return narrowed(PlainSeries(objects, dtype))
        if kinds and all(issubclass(one, float | np.floating) for one in kinds):
            return narrowed(PlainSeries(objects, nw.Float64()))
        return PlainSeries(objects, nw.Object())

    @cached_property
    def missing(self) -> Bools:
        """Where there is no value, (n_rows,)."""
        if self.values.dtype.kind == "M":
            return np.asarray(np.isnat(self.values))
        if self.values.dtype.kind != "O":
            return np.zeros(self.values.size, dtype=bool)
        return np.array([value is None for value in self.values.tolist()], dtype=bool)

    def __len__(self) -> int:
        return self.values.size

    def is_null(self) -> PlainSeries:
        """Where there is no value."""
        return PlainSeries(self.missing, nw.Boolean())

    def to_numpy(self) -> npt.NDArray[Any]:
        """The values; NaN where there is no number."""
        if self.values.dtype.kind == "O" and self.dtype == nw.Float64:
            return np.where(self.missing, np.nan, self.values).astype(np.float64)
        return self.values

    def to_native(self) -> npt.NDArray[Any]:
        """The values as the library's own, which is NumPy."""
        return self.values

    def to_list(self) -> list[Any]:
        """The values, None where there is none."""
        return list(self.values.tolist())

    def head(self, n: int) -> PlainSeries:
        """The first rows."""
        return replace(self, values=self.values[:n])

    def filter(self, rows: Sequence[bool]) -> PlainSeries:
        """Some of the rows."""
        kept = PlainSeries(self.values[np.asarray(rows, dtype=bool)], self.dtype)
        return narrowed(kept) if kept.values.dtype.kind == "O" and kept.values.size else kept

    def cast(self, dtype: Any) -> PlainSeries:
        """The values as floats or text; `ValueError` where one is no number."""
        present = ~self.missing
        if dtype == nw.String:
            out = np.full(len(self), None, dtype=object)
            out[present] = [str(value) for value in self.values[present].tolist()]
            return PlainSeries(out, nw.String())
        numbers = np.full(len(self), np.nan)
        numbers[present] = [float(value) for value in self.values[present].tolist()]
        return PlainSeries(numbers, nw.Float64())


def narrowed(series: PlainSeries) -> PlainSeries:
    """A column of objects as an array of numbers, where all are and none is missing."""
    if series.dtype in (nw.String, nw.Object) or series.missing.any():
        return series
    return replace(series, values=np.array(series.values.tolist()))


class PlainFrame:
    """Columns of equal length by name."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.series = {
            name: values if isinstance(values, PlainSeries) else PlainSeries.of(values)
            for name, values in columns.items()
        }

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.series)

    def __len__(self) -> int:
        return len(next(iter(self.series.values()), ()))

    def __getitem__(self, name: str) -> PlainSeries:
        return self.series[name]

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, each a tuple of values."""
        return list(zip(*(series.to_list() for series in self.series.values()), strict=True))

    def head(self, n: int) -> PlainFrame:
        """The first rows."""
        return PlainFrame(
            {name: replace(one, values=one.values[:n]) for name, one in self.series.items()}
        )

    def tail(self, n: int) -> PlainFrame:
        """The last rows."""
        start = max(len(self) - n, 0)
        return PlainFrame(
            {name: replace(one, values=one.values[start:]) for name, one in self.series.items()}
        )

    def filter(self, rows: Sequence[bool]) -> PlainFrame:
        """Some of the rows."""
        return PlainFrame({name: series.filter(rows) for name, series in self.series.items()})

    def with_series(self, columns: Mapping[str, Any]) -> PlainFrame:
        """The frame with further columns, or others in place of those of their names."""
        return PlainFrame({**self.series, **columns})

    def unpivot(
        self, on: Sequence[str], index: Sequence[str], variable_name: str, value_name: str
    ) -> PlainFrame:
        """A row for each cell of the columns `on`, one column after the other."""
        columns: dict[str, Any] = {
            name: [value for _ in on for value in self[name].to_list()] for name in index
        }
        columns[variable_name] = [name for name in on for _ in range(len(self))]
        columns[value_name] = [value for name in on for value in self[name].to_list()]
        return PlainFrame(columns)


def stack_plain(tables: Sequence[PlainFrame]) -> PlainFrame:
    """Frames with the same columns one below the other; numbers beside text become text."""
    columns: dict[str, Any] = {}
    for name in tables[0].columns:
        parts = [table[name] for table in tables]
        if len({str(part.dtype) for part in parts}) > 1:
            parts = [part.cast(nw.String()) for part in parts]
        columns[name] = [value for part in parts for value in part.to_list()]
    return PlainFrame(columns)


def read_plain_text(file: InputFile, rows: int | None) -> Iterator[Table]:
    """A text file as one table, as `read_text` reads it; memory has to hold it.

    Raises
    ------
    ResponseError
        If the file is empty, or columns have the same name.
    """
    del rows  # what reads in pieces needs pyarrow for other reasons
    dialect, notes = detect_dialect(file.head, file.label)
    text = _decoded(file, dialect, notes)
    read = _read_rows(text, dialect)
    if dialect.quoting and any(holds_rows(cell, dialect) for row in read.rows for cell in row):
        read = _read_rows(text, replace(dialect, quoting=False))
    columns = zip(*read.rows, strict=True) if read.rows else ((),) * len(dialect.columns)
    named = {
        name: _integers_or_text([cell or None for cell in column])
        for name, column in zip(dialect.columns, columns, strict=True)
        if not name.startswith(UNNAMED) or any(column)
    }
    source = Source(file.label, len(read.rows), 0, lambda row: read.lines[row])
    broken, about_broken = sort_broken(
        [text for _, text in read.broken],
        [line for line, _ in read.broken],
        max(read.lines, default=0),
        dialect.delimiter,
        file.label,
    )
    notes += about_broken
    yield Table(PlainFrame(named), None, (source,), tuple(notes), broken)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _RowsRead:
    """Rows below the heading, with the lines in which they begin, and lines that are no rows."""

    rows: list[list[str]]
    lines: list[int]
    broken: list[tuple[int, str]]  # line, and its beginning


def _decoded(file: InputFile, dialect: Dialect, notes: list[str]) -> str:
    """The whole file as text; bytes that are not UTF-8 are Windows-1252, with a note."""
    with file.open() as opened:
        raw = bytes(opened.read())
    try:
        if dialect.encoding != REPAIRED:
            return raw.decode(text_encoding(dialect.encoding)).lstrip("\ufeff")
    except UnicodeDecodeError:
        pass
    stream = RepairedStream(io.BytesIO(raw))
    text = stream.read().decode("utf-8", "replace").lstrip("\ufeff")
    notes.append(
        f"{file.label}: {stream.n_repaired:,} bytes are not UTF-8 and were read as Windows-1252"
    )
    return text


def _read_rows(text: str, dialect: Dialect) -> _RowsRead:
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.delimiter,
        quoting=csv.QUOTE_MINIMAL if dialect.quoting else csv.QUOTE_NONE,
    )
    found = _RowsRead([], [], [])
    is_heading = True
    last_line = 0
    for cells in reader:
        first_line = last_line + 1
        last_line = reader.line_num
        if not cells or (is_heading and not any(cell.strip() for cell in cells)):
            continue
        if is_heading:
            is_heading = False
            continue
        stray = not dialect.quoting and has_stray_quote(cells)
        if len(cells) != len(dialect.columns) or stray:
            found.broken.append((first_line, dialect.delimiter.join(cells)[:SHOWN]))
            continue
        found.rows.append(cells if dialect.quoting else [unquoted(cell) or "" for cell in cells])
        found.lines.append(first_line)
    return found


def _integers_or_text(cells: list[str | None]) -> PlainSeries:
    """A column of whole numbers if every value is one, written plainly; else of text."""
    whole: list[int | None] = []
    for cell in cells:
        if cell is None:
            whole.append(None)
            continue
        digits = cell.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) < LONGEST_WHOLE
        if not plain or str(int(cell)) != cell:
            break
        whole.append(int(cell))
    if len(whole) == len(cells) and any(value is not None for value in whole):
        return PlainSeries.of(whole)
    series = np.empty(len(cells), dtype=object)
    series[:] = cells
    return PlainSeries(series, nw.String())
