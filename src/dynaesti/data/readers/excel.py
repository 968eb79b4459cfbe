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
    """A sheet of a workbook as one table: the one that was named, or the largest.

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
    """The sheet that was named, or the one with most cells, with a note on the others.

    Answers are more than what is said about them on other sheets.
    """
    names = book.sheet_names
    if file.part is not None:
        if file.part not in names:
            raise ResponseError(
                f"sheet: {file.label} has none called {file.part!r}; there are: "
                f"{display_names(names)}"
            )
        return book.get_sheet_by_name(file.part), ()
    sheets = [book.get_sheet_by_name(name) for name in names]
    filled = {sheet.name: sheet for sheet in sheets if sheet.start is not None}
    if not filled:
        raise ResponseError(f"{file.label}: all {len(names)} sheets are empty")
    largest = max(filled.values(), key=lambda sheet: sheet.height * sheet.width)
    others = [name for name in filled if name != largest.name]
    if not others:
        return largest, ()
    another = option("sheet", others[0])
    told = f"{file.label}: read from its largest sheet, {largest.name!r}; another by {another}"
    return largest, (told,)
