"""From a table to parsed columns: which column plays which role, and what stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Ints
from dynaesti.data.columns import ABSENT, find_column, parse_labels, parse_numbers
from dynaesti.data.dates import UNIX, TimeOptions, parse_times
from dynaesti.data.read_log import ReadLog
from dynaesti.data.readers.table import Table
from dynaesti.data.time_axis import TimeAxis
from dynaesti.errors import InputError, ResponseError

# answers that all stand for together at the least; answers that one may stand for
LEAST_WEIGHT = 1e-6
MOST_WEIGHT = 1e6


@dataclass(frozen=True)
class ParsedColumns:
    """A table's columns checked and typed, in the table's order, without the rows that were left
    out.
    """

    ids: npt.NDArray[Any]
    names: npt.NDArray[Any]
    resp: Array
    offsets: Array
    weight: Array | None
    models: npt.NDArray[Any] | None
    axis: TimeAxis
    dropped: int
    kept: Ints  # places of the rows in the table
    time_format: str | None = None  # how dates are written, where it is not ISO

    def unit(self, asked: str | None) -> str:
        """What a unit of time is: as asked for, or as the axis has it."""
        wanted = "days" if asked in UNIX else asked
        if self.axis.stamps and wanted not in (None, "days"):
            raise InputError(
                f"unit: timestamps are counted in days, not {wanted!r}; convert them to numbers "
                f"to use another unit"
            )
        return wanted or self.axis.unit


def find_column_roles(
    table: Table,
    given: Mapping[str, str | None],
    notes: list[str],
    timeless: bool,
    unanswered: bool,
) -> dict[str, str | None]:
    """The column that plays each role: as given, or recognised by its name, which is told."""
    optional = {"time": timeless, "resp": unanswered}
    guesses: list[str] = []
    named = {
        key: None
        if given[key] is ABSENT
        else find_column(table, key, given[key], guesses, optional.get(key, False))
        for key in ("id", "item", "resp", "time")
    }
    named |= {
        key: find_column(table, key, given[key], notes)
        for key in ("weight", "model")
        if given.get(key) is not None
    }
    if guesses:
        notes.append(f"columns: {', '.join(guesses)}")
    return named


def parse_columns(
    table: Table,
    named: Mapping[str, str | None],
    asked: TimeOptions,
    notes: list[str],
    unanswered: bool,
    drop: bool,
    code: Mapping[str, float] | None,
) -> ParsedColumns:
    """The columns that play the roles; what was decided about them joins the notes."""
    frame = table.frame
    found = ReadLog(table, np.zeros(len(table.frame), dtype=bool))

    def told(key: str) -> str:
        return f"{key} (column {named[key]!r})"

    resp = np.full(len(frame), np.nan)
    missing = np.zeros(len(frame), dtype=bool)
    if named["resp"] is not None:
        resp, missing = parse_numbers(frame[named["resp"]], told("resp"), found, code)
        if missing.all() and not unanswered:
            raise ResponseError(f"{told('resp')}: all {len(frame)} responses are missing")
    if not unanswered:
        found.bad |= missing  # dropped and counted, whatever else their rows hold
    ids, names = (parse_labels(frame[str(named[key])], told(key), found) for key in ("id", "item"))
    weight = models = None
    if named.get("weight"):
        weight, blank = parse_numbers(frame[str(named["weight"])], told("weight"), found)
        found.complain(
            blank | (weight < 0),
            told("weight"),
            "are missing or negative; give numbers of at least 0",
        )
        if not found.bad.all() and not np.nansum(np.where(found.bad, 0.0, weight)) > LEAST_WEIGHT:
            raise ResponseError(
                f"{told('weight')}: all weights are 0, or next to it; leave the column out, or "
                f"give some answers weight"
            )
        found.complain(
            weight > MOST_WEIGHT,
            told("weight"),
            f"are above {MOST_WEIGHT:g}: a weight counts as so many answers; scale them",
        )
    if named.get("model"):
        models = parse_labels(frame[str(named["model"])], told("model"), found)
    axis = TimeAxis(0.0, 0, stamps=False, zoned=False)
    offsets = np.zeros(len(frame))
    if named["time"] is not None:
        axis, offsets = parse_times(frame[named["time"]], told("time"), asked, found)
    found.settle(drop)
    notes += found.notes
    keep = np.flatnonzero(~found.bad)
    return ParsedColumns(
        ids[keep],
        names[keep],
        resp[keep],
        offsets[keep],
        None if weight is None else weight[keep],
        None if models is None else models[keep],
        axis,
        int(missing.sum()),
        keep,
        found.time_format,
    )
