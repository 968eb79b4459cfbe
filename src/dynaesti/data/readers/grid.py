"""A grid of cells, as sheets have it, to a table: titles, headings over several rows, blanks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from dynaesti.data.labels import count_noun
from dynaesti.data.readers.dialect import UNNAMED, refuse_equal_columns
from dynaesti.data.readers.table import Source, Table, as_arrow, from_columns
from dynaesti.errors import ResponseError

Range = tuple[tuple[int, int], tuple[int, int]]  # first and last cell, each (row, column)
HEADING_ROWS = 20  # among which the headings are searched
REMARK_CELLS = 2  # most of a row of a legend
HEADING_SHARE = 0.5  # of the columns, which a row of headings fills more of


@dataclass(frozen=True)
class Headings:
    """Names of columns, and the rows they stand in."""

    names: tuple[str, ...]
    first: int  # row of the headings
    body: int  # first row below them


def table_of_grid(cells: list[list[Any]], merged: Sequence[Range], label: str) -> Table:
    """The table in a grid of cells, "" or None where there is nothing.

    Rows above the headings, empty rows and empty columns are left out.

    Raises
    ------
    ResponseError
        If there is no table, or columns have the same name.
    """
    cells = [[_plain(value) for value in row] for row in cells]
    if not any(value is not None for row in cells for value in row):
        raise ResponseError(f"{label}: the sheet is empty")
    headings = _find_headings(cells, merged)
    n_merged = _fill_merged(cells, merged, headings.body)
    rows = [k for k in range(headings.body, len(cells)) if any(v is not None for v in cells[k])]
    n_rows = len(rows)
    rows = _without_remarks(cells, rows, len(headings.names))
    kept = [
        j
        for j, name in enumerate(headings.names)
        if not name.startswith(UNNAMED) or any(cells[k][j] is not None for k in rows)
    ]
    names = [headings.names[j] for j in kept]
    refuse_equal_columns(names, label)
    columns = {headings.names[j]: _alike([cells[k][j] for k in rows]) for j in kept}
    if not rows:
        raise ResponseError(f"{label}: there are headings, but no rows below them")
    notes = []
    above = sum(any(v is not None for v in row) for row in cells[: headings.first])
    if above:
        notes.append(f"{label}: left out {count_noun(above, 'rows')} above the headings")
    if len(rows) < n_rows:
        below = count_noun(n_rows - len(rows), "rows")
        notes.append(f"{label}: left out {below} below the table")
    if n_merged:
        notes.append(f"{label}: {count_noun(n_merged, 'merged cells')} hold for all of their rows")
    frame = as_arrow(from_columns(columns))
    # rows as the program that made the sheet counts them
    source = Source(label, len(rows), 0, lambda row: rows[row] + 1)
    return Table(frame, None, (source,), tuple(notes))


def _fill_merged(cells: list[list[Any]], merged: Sequence[Range], body: int) -> int:
    """Write cells that are merged over rows of the body into each of them; how many there are."""
    tall = [
        ((top, left), bottom)
        for (top, left), (bottom, right) in merged
        if body <= top < bottom and left == right
    ]
    for (top, column), bottom in tall:
        for row in range(top + 1, bottom + 1):
            cells[row][column] = cells[top][column]
    return len(tall)


def _without_remarks(cells: Sequence[Sequence[Any]], rows: list[int], width: int) -> list[int]:
    """Rows of the table, without a legend behind an empty row that fills few of its columns."""
    gaps = [k for k in range(1, len(rows)) if rows[k] > rows[k - 1] + 1]
    for gap in gaps:
        sizes = [sum(value is not None for value in cells[row]) for row in rows[gap:]]
        if max(sizes) <= REMARK_CELLS and 2 * max(sizes) < width:
            return rows[:gap]
    return rows


def _find_headings(cells: list[list[Any]], merged: Sequence[Range]) -> Headings:
    """The headings: the first row that fills most columns, with the rows that it is merged with."""
    width = max(len(row) for row in cells)
    filled = [list(row) for row in cells[: HEADING_ROWS + 1]]
    for (top, left), (bottom, right) in merged:
        if right - left + 1 >= width:  # a title over the whole sheet
            continue
        for row in range(top, min(bottom, len(filled) - 1) + 1):
            for column in range(left, right + 1):
                filled[row][column] = cells[top][left]
    sizes = Counter(sum(value is not None for value in row) for row in cells[:100])
    sizes.pop(0, None)
    usual = max(sizes, key=lambda size: (sizes[size], size))
    first = next(
        k
        for k, row in enumerate(filled)
        if sum(value is not None for value in row) > HEADING_SHARE * min(usual, width)
        or k == len(filled) - 1
    )
    names = [[] if value is None else [str(value)] for value in filled[first]]
    body = first + 1
    tops = {left for (top, left), (_, right) in merged if top == first and right > left}
    if tops and body < len(filled):
        for column, value in enumerate(filled[body]):
            if value is not None and [str(value)] != names[column]:
                names[column].append(str(value))
        body += 1
    spelled = [" ".join(parts).strip() or f"{UNNAMED}{j + 1}" for j, parts in enumerate(names)]
    return Headings(tuple(spelled), first, body)


def _plain(value: Any) -> Any:
    """A cell's value: None for nothing, whole numbers without a point, dates with a clock."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, float):
        return None if value != value else int(value) if value.is_integer() else value
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return str(value) if isinstance(value, time | timedelta) else value


def _alike(values: list[Any]) -> list[Any]:
    """The values of a column; dates beside text are written as text."""
    kinds = {type(value) for value in values if value is not None}
    if datetime in kinds and len(kinds) > 1:
        return [value.isoformat(" ") if isinstance(value, datetime) else value for value in values]
    return values
