"""Workbooks of Excel and OpenDocument (.xlsx, .xlsm, .xlsb, .xls, .ods) to tables."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from dynaesti.data.date_formats import is_date
from dynaesti.data.date_texts import occasion_numbers
from dynaesti.data.headings import SYNONYMS, plain_name
from dynaesti.data.labels import display_names
from dynaesti.data.readers.grid import table_of_grid
from dynaesti.data.readers.input_file import InputFile
from dynaesti.data.readers.table import Table, as_arrow, from_columns
from dynaesti.errors import MissingExtraError, ResponseError, option

SHEET = "sheet"  # heading of the names of sheets


def read_excel(file: InputFile, rows: int | None) -> Iterator[Table]:  # noqa: ARG001  one sheet is one table
    """The sheets of a workbook that hold answers, a table each.

    These are the ones that were named, by a pattern too (`*`, `Term *`); else all, where they have
    the same headings and are called by dates or occasions, as a sheet for each sitting is; else the
    largest. Tables of several sheets have a further column with the sheet's name.

    Raises
    ------
    ResponseError
        If there is no such sheet, or it holds no table.
    """
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise MissingExtraError(
            "reading Excel and OpenDocument files needs python-calamine: "
            "pip install 'dynaesti[excel]', or save the sheet as CSV"
        ) from None
    with CalamineWorkbook.from_filelike(io.BytesIO(file.open().read())) as book:
        filled = _filled_sheets(book, file)
        if file.part is not None:
            yield from _beside_names(_named(filled, book.sheet_names, file), file)
            return
        sittings = _sittings(filled, file)
        if sittings:
            yield from _beside_names(sittings, file)
            return
        largest = max(filled.values(), key=lambda sheet: sheet.height * sheet.width)
        others = [name for name in filled if name != largest.name]
        table = _table_of(largest, file, is_alone=len(book.sheet_names) == 1)
    notes = [_told_largest(file, largest.name, others)] if others else []
    yield replace(table, notes=(*notes, *table.notes))


def _filled_sheets(book: Any, file: InputFile) -> dict[str, Any]:
    """The sheets that hold something, by name."""
    sheets = [book.get_sheet_by_name(name) for name in book.sheet_names]
    filled = {sheet.name: sheet for sheet in sheets if sheet.start is not None}
    if not filled:
        raise ResponseError(f"{file.label}: all {len(sheets)} sheets are empty")
    return filled


def _named(filled: Mapping[str, Any], names: Sequence[str], file: InputFile) -> dict[str, Table]:
    """The tables of the sheet that was named, or of those that a pattern matches."""
    part = str(file.part)
    wanted = [part] if part in names else [name for name in filled if fnmatchcase(name, part)]
    if not wanted:
        raise ResponseError(
            f"sheet: {file.label} has none called {file.part!r}; there are: {display_names(names)}"
        )
    if part in names and part not in filled:
        raise ResponseError(f"{file.label}, sheet {part}: the sheet is empty")
    return {name: _table_of(filled[name], file, is_alone=len(names) == 1) for name in wanted}


def _sittings(filled: Mapping[str, Any], file: InputFile) -> dict[str, Table]:
    """The tables of all sheets, where each is one sitting; else nothing.

    Sheets for which that cannot be found out, since one holds no table, are no sittings.
    """
    names = list(filled)
    if len(names) < 2 or not (all(map(is_date, names)) or occasion_numbers(names)):
        return {}
    try:
        tables = {name: _table_of(sheet, file, is_alone=False) for name, sheet in filled.items()}
    except ResponseError:
        return {}
    headings = {frozenset(table.frame.columns) for table in tables.values()}
    return tables if len(headings) == 1 else {}


def _beside_names(tables: Mapping[str, Table], file: InputFile) -> Iterator[Table]:
    """Tables with a column of the name of their sheet, where there are several."""
    if len(tables) == 1:
        yield from tables.values()
        return
    heading = _heading_of_names(tables)
    note = (
        f"{file.label}: {len(tables)} sheets were read one after the other "
        f"({_ends(list(tables))}); column {heading!r} has their names"
    )
    for k, (name, table) in enumerate(tables.items()):
        columns = {column: table.frame[column].to_list() for column in table.frame.columns}
        frame = as_arrow(from_columns({**columns, heading: [name] * len(table.frame)}))
        told = table.notes if k else (note, *table.notes)
        yield replace(table, frame=frame, notes=told)


def _heading_of_names(tables: Mapping[str, Table]) -> str:
    """What the column of sheets' names is called: times, where no column has these."""
    taken = {plain_name(name) for table in tables.values() for name in table.frame.columns}
    if not taken & set(SYNONYMS["time"]):
        if all(map(is_date, tables)):
            return "date"
        if occasion_numbers(list(tables)):
            return "occasion"
    return SHEET if SHEET not in taken else f"{SHEET} name"


def _table_of(sheet: Any, file: InputFile, is_alone: bool) -> Table:
    label = file.label if is_alone else f"{file.label}, sheet {sheet.name}"
    cells = sheet.to_python(skip_empty_area=False)
    return table_of_grid(cells, sheet.merged_cell_ranges or [], label)


def _ends(names: Sequence[str]) -> str:
    return f"{names[0]} … {names[-1]}" if len(names) > 2 else " and ".join(names)


def _told_largest(file: InputFile, name: str, others: Sequence[str]) -> str:
    """Which of several sheets was read, and how to read the others."""
    beside = display_names(others, most=3)
    return (
        f"{file.label}: 1 of {len(others) + 1} sheets was read, the largest, {name!r} (not "
        f"{beside}); another by {option('sheet', others[0])}, all of them by {option('sheet', '*')}"
    )
