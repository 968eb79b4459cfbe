"""From a table to parsed columns: which column plays which role, and the values in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools, Ints
from dynaesti.data.columns import ABSENT, find_column, parse_labels, parse_numbers
from dynaesti.data.covariates import Covariate, parse_covariates
from dynaesti.data.dates import UNIX, TimeOptions, parse_times
from dynaesti.data.groups import parse_groups
from dynaesti.data.labels import label_text
from dynaesti.data.read_log import ReadLog
from dynaesti.data.readers.table import Table
from dynaesti.data.response_words import KEY_ROW
from dynaesti.data.time_axis import TimeAxis
from dynaesti.errors import InputError, ResponseError

MIN_TOTAL_WEIGHT = 1e-6  # a smaller sum of all weights leaves nothing to fit
MAX_WEIGHT = 1e6  # of one response; a weight counts as so many responses


@dataclass(frozen=True)
class ParsedColumns:
    """The columns of a table, checked and typed; unusable rows and gaps are left out.

    Arrays have shape (n_kept,), in the order of the table.
    """

    ids: npt.NDArray[Any]  # labels of people
    names: npt.NDArray[Any]  # labels of items
    resp: Array
    offsets: Array  # times, on `axis`
    weight: Array | None
    models: npt.NDArray[Any] | None  # names of item models
    axis: TimeAxis
    dropped: int  # rows without a response
    kept: Ints  # numbers of these rows in the table
    groups: npt.NDArray[Any] | None = None  # labels of people's groups
    time_format: str | None = None  # how dates are written, where that was found out, not ISO
    covariates: Mapping[str, Covariate] = field(default_factory=dict)

    def unit(self, asked: str | None) -> str:
        """Name one unit of time: as asked for, or as the axis has it.

        Raises
        ------
        InputError
            If a unit other than days is asked for timestamps.
        """
        wanted = "days" if asked in UNIX else asked
        if self.axis.stamps and wanted not in (None, "days"):
            raise InputError(
                f"unit: timestamps are counted in days or years, not {wanted!r}; convert them to "
                f"numbers to use another unit"
            )
        return wanted or self.axis.unit


def find_column_roles(
    table: Table,
    given: Mapping[str, str | None],
    notes: list[str],
    timeless: bool,
    unanswered: bool,
) -> dict[str, str | None]:
    """Find the column that plays each role: as given, or recognised by its name.

    Parameters
    ----------
    table : Table
        The data.
    given : mapping of role to column
        Names that the user gave, for id, item, resp, time, weight, model and group. None: find it;
        ABSENT: there is none.
    notes : list of str
        Gets a note on columns that were recognised by unusual names.
    timeless, unanswered : bool
        Whether the table may lack times, or responses.

    Returns
    -------
    dict of role to column
        None where there is none. Roles weight, model and group occur only if given.
    """
    optional = {"time": timeless, "resp": unanswered}
    recognised: list[str] = []
    roles: dict[str, str | None] = {}
    for role in ("id", "item", "resp", "time"):
        roles[role] = (
            None
            if given[role] is ABSENT
            else find_column(table, role, given[role], recognised, optional.get(role, False))
        )
    for role in ("weight", "model", "group"):
        if given.get(role) is not None:
            roles[role] = find_column(table, role, given[role], notes)
    if recognised:
        notes.append(f"columns: {', '.join(recognised)}")
    return roles


def parse_columns(
    table: Table,
    roles: Mapping[str, str | None],
    times: TimeOptions,
    notes: list[str],
    unanswered: bool,
    drop: bool,
    code: Mapping[str, float] | None,
    covariates: Mapping[str, str] | None = None,
) -> ParsedColumns:
    """Parse the columns that play the roles.

    Parameters
    ----------
    table : Table
        The data.
    roles : mapping of role to column
        As found by `find_column_roles`.
    times : TimeOptions
        How times are to be read.
    notes : list of str
        Gets what was decided about the columns.
    unanswered : bool
        Whether rows without a response are kept, with NaN.
    drop : bool
        Whether unreadable rows are left out; otherwise they are an error.
    code : mapping of word to number, optional
        Numbers that responses in words stand for.
    covariates : mapping of column to kind, optional
        Further columns to read, see `parse_covariates`.

    Raises
    ------
    ResponseError
        If rows cannot be read and `drop` is false, or if no response or weight is left.
    """
    log = ReadLog(table, np.zeros(len(table.frame), dtype=bool))
    resp, missing = _parse_responses(table, roles, log, unanswered, code)
    if not unanswered:
        log.bad |= missing  # dropped and counted, whatever else their rows hold
    ids = _parse_ids(table, roles, log)
    names = _parse_names("item", table, roles, log)
    weight = _parse_weights(table, roles, log) if roles.get("weight") else None
    models = _parse_names("model", table, roles, log) if roles.get("model") else None
    groups = parse_groups(table.frame[str(roles["group"])]) if roles.get("group") else None
    axis = TimeAxis(0.0, 0, stamps=False, zoned=False)
    offsets = np.zeros(len(table.frame))
    log.raise_if_none_is_left(drop)
    if roles["time"] is not None:
        axis, offsets = parse_times(
            table.frame[roles["time"]], _column_name("time", roles), times, log
        )
    beside = parse_covariates(table, covariates or {}, log)
    log.raise_or_drop(drop)
    notes += log.notes
    kept = np.flatnonzero(~log.bad)
    return ParsedColumns(
        ids=ids[kept],
        names=names[kept],
        resp=resp[kept],
        offsets=offsets[kept],
        weight=None if weight is None else weight[kept],
        models=None if models is None else models[kept],
        axis=axis,
        dropped=int(missing.sum()),
        kept=kept,
        groups=None if groups is None else groups[kept],
        time_format=log.time_format,
        covariates={name: column.select(kept) for name, column in beside.items()},
    )


def _column_name(role: str, roles: Mapping[str, str | None]) -> str:
    """A column as messages call it."""
    return f"{role} (column {roles[role]!r})"


def _parse_responses(
    table: Table,
    roles: Mapping[str, str | None],
    log: ReadLog,
    unanswered: bool,
    code: Mapping[str, float] | None,
) -> tuple[Array, Bools]:
    """Responses as numbers, and which are missing; without a column all are NaN, none missing."""
    n_rows = len(table.frame)
    if roles["resp"] is None:
        return np.full(n_rows, np.nan), np.zeros(n_rows, dtype=bool)
    name = _column_name("resp", roles)
    resp, missing = parse_numbers(table.frame[roles["resp"]], name, log, code)
    if missing.all() and not unanswered:
        raise ResponseError(f"{name}: all {n_rows} responses are missing")
    return resp, missing


def _parse_names(
    role: str, table: Table, roles: Mapping[str, str | None], log: ReadLog
) -> npt.NDArray[Any]:
    return parse_labels(table.frame[str(roles[role])], _column_name(role, roles), log)


def _parse_ids(table: Table, roles: Mapping[str, str | None], log: ReadLog) -> npt.NDArray[Any]:
    """People's labels; where a key is needed, the log learns which seems to have the answers."""
    ids = _parse_names("id", table, roles, log)
    if log.needs_key:
        called = {label_text(label) for label in ids.tolist()}
        named = (one for one in called if KEY_ROW.fullmatch(one.strip().lower()))
        log.key_row = next(named, None)
    return ids


def _parse_weights(table: Table, roles: Mapping[str, str | None], log: ReadLog) -> Array:
    """Weights of at least 0 and at most MAX_WEIGHT, not all of them zero."""
    name = _column_name("weight", roles)
    weight, blank = parse_numbers(table.frame[str(roles["weight"])], name, log)
    log.reject(blank | (weight < 0), name, "are missing or negative; give numbers of at least 0")
    total = np.nansum(np.where(log.bad, 0.0, weight))
    if not log.bad.all() and not total > MIN_TOTAL_WEIGHT:
        raise ResponseError(
            f"{name}: all weights are 0, or next to it; leave the column out, or give some "
            f"answers weight"
        )
    log.reject(
        weight > MAX_WEIGHT,
        name,
        f"are above {MAX_WEIGHT:g}: a weight counts as so many answers; scale them",
    )
    return weight
