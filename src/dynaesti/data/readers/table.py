"""Table: rows and columns of any origin, which know where they stood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import narwhals as nw
import numpy as np

from dynaesti.data.frames import KINDS
from dynaesti.data.labels import label_text
from dynaesti.errors import MissingExtraError, ResponseError


@dataclass(frozen=True)
class Source:
    """A file's share of a table.

    So many rows from the file's row `start` on. `line` finds a row's line, where files have such.
    """

    name: str
    rows: int
    start: int = 0
    line: Callable[[int], int] | None = None

    def where(self, row: int) -> str:
        """The place of one of these rows."""
        at = self.start + row
        return (
            f"{self.name}, row {at}" if self.line is None else f"{self.name}, line {self.line(at)}"
        )


@dataclass(frozen=True)
class Table:
    """Rows and columns, the library they came from, where each row stood, and what was decided
    while reading.
    """

    frame: nw.DataFrame[Any]
    kind: str | None = None
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()  # lines that are no rows

    def where(self, row: int) -> str:
        """The place of a row, as its owner would look for it."""
        for source in self.sources:
            if row < source.rows:
                return source.where(row)
            row -= source.rows
        return f"row {row}"


def from_rows(rows: Sequence[Mapping[str, Any]]) -> nw.DataFrame[Any]:
    """A frame from dicts, one a row."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return from_columns({key: [row.get(key) for row in rows] for key in keys})


def from_columns(columns: Mapping[Any, Any]) -> nw.DataFrame[Any]:
    """A frame from sequences, one a column."""
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
        raise ResponseError(
            f"columns differ in length: "
            f"{', '.join(f'{key} {n}' for key, n in list(lengths.items())[:12])}"
        )
    named = {
        str(key): _of_one_type(value, str(key)) if isinstance(value, list | tuple) else value
        for key, value in columns.items()
    }
    try:
        return nw.from_dict(named, backend=_backend())
    except MissingExtraError:
        raise
    except Exception as error:  # whatever the frame library makes of them
        raise ResponseError(
            f"data: the columns cannot be made into a table "
            f"({(str(error).splitlines() or [''])[0]})"
        ) from error


def _of_one_type(values: Sequence[Any], name: str) -> Any:
    """A list as values of one type, which frame libraries insist on.

    Numbers where all are (1 beside 1.5 too), else text.
    """
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    odd = next(
        (
            k
            for k, value in enumerate(plain)
            if isinstance(value, list | tuple | dict | set | np.ndarray)
        ),
        None,
    )
    if odd is not None:
        raise ResponseError(
            f"column {name!r}: a {type(plain[odd]).__name__} ({plain[odd]!r}) in row {odd}; give "
            f"one value for each answer"
        )
    if kinds == {int} and any(abs(value) >= 2**63 for value in plain if value is not None):
        return [
            None if value is None else str(value) for value in plain
        ]  # as written: no whole number of a frame is so long
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
    from importlib.util import find_spec

    found = next(
        (name for name in ("polars", "pyarrow", "pandas") if name in KINDS and find_spec(name)),
        None,
    )
    if found is None:
        raise MissingExtraError(
            "reading data needs pandas, polars or pyarrow; install one of them: pip install polars"
        )
    return found
