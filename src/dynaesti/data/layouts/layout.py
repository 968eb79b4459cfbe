"""What every layout is: where the roles are, and how a table becomes one row an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from dynaesti.core import Bools
from dynaesti.data.readers.plain import PlainFrame
from dynaesti.data.readers.table import Table


@dataclass(frozen=True)
class LayoutOptions:
    """What a user says of the layout of a table.

    Parameters
    ----------
    wide : bool, optional
        Whether a row is a person or a sitting, and a column an item. Default: found out.
    items : sequence of str, optional
        The columns that are items, or patterns of their names.
    key : mapping, sequence, str or path, optional
        Right answers.
    only : sequence, optional
        Items to keep, or patterns of their names.
    """

    wide: bool | None = None
    items: Any = None
    key: Any = None
    only: Any = None


class Layout(Protocol):
    """How a table is laid out."""

    @property
    def roles(self) -> Mapping[str, str]:
        """The column that plays each role, once the layout is applied."""

    @property
    def code(self) -> Mapping[str, float]:
        """Numbers that values of the responses stand for; NaN is no answer."""

    def apply(self, table: Table) -> Table:
        """The table with one row an answer, and what was decided in its notes."""


@dataclass(frozen=True)
class PlainLayout:
    """One row an answer already."""

    roles: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, float] = field(default_factory=dict)

    def apply(self, table: Table) -> Table:
        """The table as it is."""
        return table


def keep_rows(table: Table, keep: Bools) -> Table:
    """Some rows of a table, which messages find where they were."""
    if keep.all():
        return table
    kept = np.flatnonzero(keep)
    return replace(
        table,
        frame=table.frame.filter(keep.tolist()),
        origin=lambda row: table.where(int(kept[row])),
    )


def with_column(table: Table, name: str, values: list[Any], dtype: Any = nw.String) -> Table:
    """A table with one more column, or another in place of one of that name."""
    frame: Any = table.frame
    if isinstance(frame, PlainFrame):
        # as narwhals' for all that is asked of it
        return replace(table, frame=frame.with_series({name: values}))  # type: ignore[arg-type]
    series = nw.new_series(name, values, dtype, backend=table.frame.implementation)
    return replace(table, frame=table.frame.with_columns(series))


def with_notes(table: Table, *notes: str) -> Table:
    """A table with more notes."""
    return replace(table, notes=(*table.notes, *notes))


def is_blank(value: Any) -> bool:
    """Whether a frame's value is missing: None, NaN, NaT or NA."""
    if value is None or isinstance(value, str):
        return value is None
    try:
        return bool(value != value)
    except TypeError:  # NA of pandas is neither
        return True


def column_texts(table: Table, name: str) -> list[str]:
    """A column as text, "" where it is missing."""
    series = table.frame[name]
    return ["" if is_blank(value) else str(value) for value in series.to_list()]
