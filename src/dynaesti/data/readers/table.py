"""Table: rows and columns of any origin, with the file and line that each row came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np

from dynaesti.data.labels import label_text
from dynaesti.errors import ResponseError


@dataclass(frozen=True)
class Source:
    """The rows of a table that come from one file."""

    name: str
    rows: int  # how many
    start: int = 0  # the file's row that is the first of them
    line: Callable[[int], int] | None = None  # from the file's row to its line, in text files

    def where(self, row: int) -> str:
        """File and line (or row) of one of these rows, for messages."""
        file_row = self.start + row
        if self.line is None:
            return f"{self.name}, row {file_row}"
        return f"{self.name}, line {self.line(file_row)}"


@dataclass(frozen=True)
class Table:
    """Rows and columns, with their origin."""

    frame: nw.DataFrame[Any]
    kind: str | None = None  # library of the frame that the user gave: pandas, polars, pyarrow
    sources: tuple[Source, ...] = ()  # files, one after the other
    notes: tuple[str, ...] = ()  # what was decided while reading
    broken: tuple[str, ...] = ()  # lines that are no rows, as messages name them
    origin: Callable[[int], str] | None = None  # of rows that are no longer those of the sources
    made: tuple[str, ...] = ()  # columns that the layout made, which messages do not name

    def where(self, row: int) -> str:
        """File and line of a row, or its number, for messages."""
        if self.origin is not None:
            return self.origin(row)
        for source in self.sources:
            if row < source.rows:
                return source.where(row)
            row -= source.rows
        return f"row {row}"


def as_arrow(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """A frame of pyarrow, where that is installed, whatever made it."""
    return nw.from_native(frame.to_arrow(), eager_only=True) if find_spec("pyarrow") else frame


def from_rows(rows: Sequence[Mapping[str, Any]]) -> nw.DataFrame[Any]:
    """Make a frame of dicts, one a row; missing keys are missing values."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return from_columns({key: [row.get(key) for row in rows] for key in keys})


def from_columns(columns: Mapping[Any, Any]) -> nw.DataFrame[Any]:
    """Make a frame of sequences, one a column.

    Raises
    ------
    ResponseError
        If there are no columns, they differ in length, or hold anything but single values.
    """
    if not columns:
        raise ResponseError("data: no columns; expected some such as id, item, resp and date")
    single = [
        key
        for key, value in columns.items()
        if isinstance(value, str | bytes) or not hasattr(value, "__len__")
    ]
    if single:
        raise ResponseError(
            f"column {single[0]!r}: a single value ({columns[single[0]]!r}); give one for each "
            f"answer, in a list"
        )
    lengths = {key: len(value) for key, value in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{key} {n}" for key, n in list(lengths.items())[:12])
        raise ResponseError(f"columns differ in length: {shown}")
    named = {str(key): _column(value, str(key)) for key, value in columns.items()}
    backend = _backend()
    if backend is None:
        return _plain_frame(named)
    try:
        return nw.from_dict(named, backend=backend)
    except Exception as error:  # whatever the frame library makes of them
        raise ResponseError(
            f"data: the columns cannot be made into a table "
            f"({(str(error).splitlines() or [''])[0]})"
        ) from error


def _column(values: Any, name: str) -> Any:
    """Values as frame libraries take them: series and plain arrays as is, else of one type."""
    if isinstance(values, np.ndarray):
        return values if values.dtype != np.dtype(object) else _of_one_type(values.tolist(), name)
    if isinstance(nw.from_native(values, series_only=True, pass_through=True), nw.Series):
        return values
    if hasattr(values, "to_numpy"):  # what pandas calls extension arrays, with a missing value
        values = values.to_numpy(dtype=object, na_value=None)
    return _of_one_type(list(values), name)


def _of_one_type(values: Sequence[Any], name: str) -> Any:
    """A list as values of one type, which frame libraries need.

    Whole numbers, floats (1 beside 1.5 too) and dates stay such; other mixtures, and whole numbers
    beyond 64 bits, become text.
    """
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    for row, value in enumerate(plain):
        if isinstance(value, list | tuple | dict | set | np.ndarray):
            raise ResponseError(
                f"column {name!r}: a {type(value).__name__} ({value!r}) in row {row}; give one "
                f"value for each answer"
            )
    if kinds == {int} and any(abs(value) >= 2**63 for value in plain if value is not None):
        return [None if value is None else str(value) for value in plain]
    if len(kinds) <= 1:
        return plain
    if kinds == {int, float} and all(
        abs(value) < 2**53 for value in plain if isinstance(value, int)
    ):
        return [None if value is None else float(value) for value in plain]
    if kinds <= {datetime, date}:
        return plain
    return [None if value is None else label_text(value) for value in plain]


def _backend() -> Any:
    """The frame library to use: the fastest that is installed, None without any."""
    return next((name for name in ("polars", "pyarrow", "pandas") if find_spec(name)), None)


def _plain_frame(columns: Mapping[str, Any]) -> nw.DataFrame[Any]:
    """A frame that needs no library."""
    from dynaesti.data.readers.plain import PlainFrame

    return PlainFrame(columns)  # type: ignore[return-value]
