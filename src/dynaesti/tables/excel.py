"""Frames as sheets of an Excel file: real numbers and dates, and texts that are never formulas."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.errors import InputError, MissingExtraError
from dynaesti.tables.digits import decimals
from dynaesti.tables.frame import Frame
from dynaesti.tables.text import printable, short

# what a sheet can hold
MOST_ROWS = 2**20 - 1  # below the heading
MOST_COLUMNS = 2**14
LONGEST_TEXT = 32_767
FIRST_YEAR = 1900  # earlier dates are written as text
LARGEST_EXACT = 10**15  # whole numbers beyond lose digits, so long ids are written as text
WIDTHS = (6, 40)  # of a column, in characters: least and most
JUDGED = 200  # rows by which a column's width is chosen


def write_sheets(frames: Mapping[str, Frame], file: Path) -> None:
    """Write frames into one Excel file, a sheet for each.

    Raises
    ------
    InputError
        If a sheet cannot hold a frame.
    MissingExtraError
        If XlsxWriter is not installed.
    """
    require_excel()
    from xlsxwriter import Workbook

    for name, frame in frames.items():
        _refuse_too_large(name, frame)
    with (
        file.open("wb") as opened,
        Workbook(opened, {"constant_memory": True}) as book,
    ):
        bold = book.add_format({"bold": True, "bottom": 1})
        for name, frame in frames.items():
            _write_sheet(book, book.add_worksheet(name), frame, bold)


def require_excel() -> None:
    """Refuse to go on where the package that writes Excel files is not installed."""
    if not find_spec("xlsxwriter"):
        raise MissingExtraError(
            "Excel files need XlsxWriter: pip install 'dynaesti[excel]', or write .csv"
        )


def _refuse_too_large(name: str, frame: Frame) -> None:
    rows, columns = frame.shape
    if rows > MOST_ROWS or columns > MOST_COLUMNS:
        raise InputError(
            f"{name}: {rows:,} rows and {columns:,} columns; an Excel sheet holds {MOST_ROWS:,} "
            f"and {MOST_COLUMNS:,}. Write .csv or .parquet, or ask for fewer people or times"
        )


def _write_sheet(book: Any, sheet: Any, frame: Frame, bold: Any) -> None:
    """A heading that stays in view, then the rows."""
    columns = frame.to_arrays()
    for k, (name, values) in enumerate(columns.items()):
        shown = [name, *(short(value) for value in frame[name][:JUDGED].to_list())]
        width = float(np.clip(max(map(len, shown)) + 2, *WIDTHS))
        sheet.set_column(k, k, width, book.add_format({"num_format": _format_of(values)}))
        sheet.write_string(0, k, _text(name), bold)
    sheet.freeze_panes(1, 0)
    if len(frame):
        sheet.autofilter(0, 0, len(frame), max(len(columns) - 1, 0))
    dates = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
    lists = frame.to_dict()
    for row, cells in enumerate(zip(*lists.values(), strict=True), 1):
        for k, value in enumerate(cells):
            _write_cell(sheet, row, k, value, dates)


def _format_of(column: npt.NDArray[Any]) -> str:
    """How a column's numbers are shown; the cells hold all digits."""
    digits = decimals(column)
    return f"0.{'0' * digits}" if digits else "General"


def _write_cell(sheet: Any, row: int, k: int, value: Any, dates: Any) -> None:
    if value is None or value != value:
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, k, value)
    elif _is_exact_number(value):
        sheet.write_number(row, k, value)
    elif isinstance(value, datetime) and value.year >= FIRST_YEAR and value.tzinfo is None:
        sheet.write_datetime(row, k, value, dates)
    else:
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
        sheet.write_string(row, k, _text(text))


def _is_exact_number(value: Any) -> bool:
    if isinstance(value, float):
        return bool(np.isfinite(value))
    return isinstance(value, int) and abs(value) <= LARGEST_EXACT


def _text(text: str) -> str:
    """A text that a cell can hold; control characters are escaped."""
    plain = printable(text)
    if len(plain) > LONGEST_TEXT:
        raise InputError(
            f"a text of {len(plain):,} characters ({plain[:40]}…); Excel's cells hold "
            f"{LONGEST_TEXT:,}. Write .csv or .parquet"
        )
    return plain
