"""From a table of any layout to parsed rows, one an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynaesti.data.columns import ABSENT
from dynaesti.data.covariates import unused_covariates
from dynaesti.data.dates import TimeOptions
from dynaesti.data.formulas import ANY
from dynaesti.data.layouts.lay_out import TableReader
from dynaesti.data.layouts.layout import LayoutOptions
from dynaesti.data.parse import ParsedColumns, find_column_roles, parse_columns
from dynaesti.data.readers.table import Table
from dynaesti.errors import InputError, ResponseError


@dataclass(frozen=True)
class RowOptions:
    """How the values of rows are to be read.

    Parameters
    ----------
    times : TimeOptions
    code : mapping of word to number, optional
        Numbers that responses in words stand for.
    covariates : sequence of str, or mapping of column to kind
        Further columns to read.
    timeless, unanswered : bool
        Whether the table may lack times, or responses.
    unreadable : {"refuse", "drop"}
        What happens to rows that cannot be read.
    """

    times: TimeOptions
    code: Mapping[str, float] | None
    covariates: Sequence[str] | Mapping[str, str]
    timeless: bool
    unanswered: bool
    unreadable: str

    def __post_init__(self) -> None:
        if self.unreadable not in ("refuse", "drop"):
            raise InputError(f"unreadable: {self.unreadable!r} is neither 'refuse' nor 'drop'")

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kind of each covariate."""
        if isinstance(self.covariates, Mapping):
            return self.covariates
        return dict.fromkeys(self.covariates, ANY)


@dataclass(frozen=True)
class FoundRows:
    """Parsed rows, with what was decided on the way."""

    rows: ParsedColumns
    roles: Mapping[str, str | None]
    notes: tuple[str, ...]
    kind: str | None  # library of the frame that was read


def read_rows(
    table: Table,
    given: Mapping[str, str | None],
    layout: LayoutOptions,
    options: RowOptions,
    reuse_columns: bool,
) -> FoundRows:
    """The rows of a table, one an answer.

    Parameters
    ----------
    table : Table
    given : mapping of role to column
        Names that the user gave; None where not.
    layout : LayoutOptions
    options : RowOptions
    reuse_columns : bool
        Whether the names are those of an earlier table, of which this one may lack some.

    Raises
    ------
    ResponseError
        If there are no rows, or they cannot be read.
    """
    if not len(table.frame):
        raise ResponseError("the table has no rows")
    reader = TableReader.of(table, given, layout)
    laid, named = reader.read(table, given, options.code)
    if reuse_columns:
        named = _without_missing(named, laid, options.unanswered)
    notes: list[str] = []
    roles = find_column_roles(laid, named, notes, options.timeless, options.unanswered)
    _refuse_what_is_explained(options.kinds, roles)
    rows = parse_columns(
        laid,
        roles,
        options.times,
        notes,
        options.unanswered,
        options.unreadable == "drop",
        reader.code_with(options.code),
        options.kinds,
    )
    unused = unused_covariates(laid.frame.columns, [*roles.values(), *options.kinds])
    whole = (*laid.notes, *notes, *([unused] if unused else []))
    return FoundRows(rows, roles, whole, table.kind)


def _refuse_what_is_explained(kinds: Mapping[str, str], roles: Mapping[str, str | None]) -> None:
    """Raise if a further column is the response, the person or the item itself."""
    meant = {"resp": "the response", "id": "the person", "item": "the item"}
    for role, what in meant.items():
        if roles.get(role) in kinds:
            raise InputError(
                f"effects: {roles[role]!r} is the column of {what}, which is explained already"
            )


def _without_missing(
    given: Mapping[str, str | None], table: Table, unanswered: bool
) -> dict[str, str | None]:
    """Columns of an earlier table, without weights (and responses) that this one lacks."""
    out = dict(given)
    for role in ("weight", "group"):
        if out[role] not in table.frame.columns:
            out[role] = None
    if unanswered and out["resp"] not in table.frame.columns:
        out["resp"] = ABSENT
    return out
