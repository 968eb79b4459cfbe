"""Workbooks of Excel and OpenDocument (.xlsx, .xlsm, .xlsb, .xls, .ods) to tables."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dynaesti.data.labels import display_names
from dynaesti.data.readers.grid import table_of_grid
from dynaesti.data.readers.input_file import InputFile
from dynaesti.data.readers.table import Table
from dynaesti.errors import MissingExtraError, ResponseError, option


def read_excel(file: InputFile, rows: int | None) -> Iterator[Table]:  # noqa: ARG001  one sheet is one table
    """A sheet of a workbook as one table: the one that was named, or the first with cells.

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
        sheet, notes = _choose_sheet(book, file)
        cells = sheet.to_python(skip_empty_area=False)
        label = f"{file.label}, sheet {sheet.name}" if len(book.sheet_names) > 1 else file.label
        table = table_of_grid(cells, sheet.merged_cell_ranges or [], label)
    yield replace(table, notes=(*notes, *table.notes))


def _choose_sheet(book: Any, file: InputFile) -> tuple[Any, Sequence[str]]:
    """The sheet that was named, or the first that holds anything, with a note on the others."""
    names = book.sheet_names
    if file.part is not None:
        if file.part not in names:
            raise ResponseError(
                f"sheet: {file.label} has none called {file.part!r}; there are: "
                f"{display_names(names)}"
            )
        return book.get_sheet_by_name(file.part), ()
    filled = [sheet for sheet in map(book.get_sheet_by_name, names) if sheet.total_height]
    if not filled:
        raise ResponseError(f"{file.label}: all {len(names)} sheets are empty")
    others = [sheet.name for sheet in filled[1:]]
    if not others:
        return filled[0], ()
    another = option("sheet", others[0])
    return filled[0], (f"{file.label}: read from sheet {filled[0].name!r}; another by {another}",)
