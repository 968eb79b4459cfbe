"""Dialect of a text file: its encoding, delimiter and columns, found from its beginning."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dynaesti.data.labels import count_noun
from dynaesti.data.readers.encoding import decode_head, detect_encoding
from dynaesti.errors import ResponseError

DELIMITERS = ",;\t|"
RARE_DELIMITERS = "~^: "  # where none of those cuts lines into columns
LINES_JUDGED = 20  # by which the delimiter is found
MOST_LINES = 0.8  # fraction of them that has to agree
FEWEST_COLUMNS = 3  # of a table, above which titles are recognised
SEPARATOR_LINE = re.compile(r"sep=(.)", re.IGNORECASE)  # by which spreadsheets are told
# headings of systems whose exports repeat names: DataShop, and Canvas, which heads each score with
# the points that are possible
DATASHOP = "Anon Student Id"
CANVAS = "section_sis_id"
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
UNNAMED = "unnamed column "  # beginning of the names of columns without a heading


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    encoding: str  # as `detect_encoding` names it
    delimiter: str
    columns: tuple[str, ...]
    lines_above: int  # before the heading
    quoting: bool = True  # whether quotes enclose cells, which may then hold delimiters and lines


def detect_dialect(head: bytes, label: str) -> tuple[Dialect, list[str]]:
    """The dialect of a file that begins so, and notes on it.

    Raises
    ------
    ResponseError
        If the file is empty, or if columns have the same name.
    """
    encoding = detect_encoding(head)
    all_lines = decode_head(head, encoding).lstrip("\ufeff").splitlines()
    numbered = [(k, line) for k, line in enumerate(all_lines) if line.strip()]
    stated = SEPARATOR_LINE.fullmatch(numbered[0][1].strip()) if numbered else None
    numbered = numbered[1:] if stated else numbered
    if not numbered:
        raise ResponseError(f"{label}: the file is empty")
    lines = [line for _, line in numbered]
    delimiter = stated[1] if stated else _find_delimiter(lines)
    notes = []
    if delimiter not in ",\t":
        notes.append(f"{label}: columns are separated by {delimiter!r}")
    titles = _count_titles(_cells(lines, delimiter))
    if titles:
        above = count_noun(titles, "lines")
        notes.append(f"{label}: left out {above} above the headings")
    columns = [column.strip() for column in next(csv.reader([lines[titles]], delimiter=delimiter))]
    if len(columns) == 1 and len(lines) > 1 and all(len(line.split()) > 1 for line in lines):
        raise ResponseError(
            f"{label}: the columns seem to be lined up by spaces ({lines[titles].strip()[:60]!r}); "
            f"open the file in a spreadsheet and save it as CSV"
        )
    if _rows_end_in_delimiter(lines[titles:], delimiter, len(columns)):
        columns.append("")
    columns = [column or f"{UNNAMED}{k + 1}" for k, column in enumerate(columns)]
    if CANVAS in columns:
        columns = _named_scores(columns)
    if DATASHOP in columns:
        columns = _numbered(columns)
    refuse_equal_columns(columns, label)
    return Dialect(encoding, delimiter, tuple(columns), numbered[titles][0]), notes


def _named_scores(columns: Sequence[str]) -> list[str]:
    """Columns whose scores, headed by a number, are called after the question before them."""
    before = ["", *columns[:-1]]
    return [
        f"{question} [Score]" if NUMBER.fullmatch(column) and question else column
        for question, column in zip(before, columns, strict=True)
    ]


def _numbered(columns: Sequence[str]) -> list[str]:
    """Columns whose names occur again, with a number."""
    times = [columns[: k + 1].count(column) for k, column in enumerate(columns)]
    return [
        column if n == 1 else f"{column} ({n})" for column, n in zip(columns, times, strict=True)
    ]


def refuse_equal_columns(columns: Sequence[str], label: str) -> None:
    """Raise if columns have the same name."""
    if len(set(columns)) == len(columns):
        return
    if all(NUMBER.fullmatch(column) or column.startswith(UNNAMED) for column in columns):
        raise ResponseError(
            f"{label}: the first line holds numbers, not headings; write a line of headings above "
            f"it, such as id,Q1,Q2,Q3"
        )
    twice = [column for column in dict.fromkeys(columns) if columns.count(column) > 1]
    more = f" (and {len(twice) - 1} other headings occur twice)" if len(twice) > 1 else ""
    raise ResponseError(
        f"{label}: several columns are called {twice[0]!r}{more}; give each a name of its own"
    )


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The cells of the first lines."""
    return list(csv.reader(io.StringIO("\n".join(lines[:LINES_JUDGED])), delimiter=delimiter))


def _find_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that cuts the first lines into most, and equally many, columns.

    A heading may have one more or one fewer; titles above it do not count.
    """

    def quality(delimiter: str) -> tuple[bool, bool, int]:
        rows = _cells(lines, delimiter)
        counts = [len(row) for row in rows[_count_titles(rows) :]]
        body = counts[1:] or counts
        usual = max(set(body), key=body.count)
        even = body.count(usual) >= MOST_LINES * len(body) and abs(counts[0] - usual) <= 1
        return usual > 1 and counts[0] > 1 and even, counts[0] == usual, counts[0]

    usual = max(DELIMITERS, key=quality)
    if quality(usual)[0] or usual in lines[0]:
        return usual
    rare = max(RARE_DELIMITERS, key=quality)
    return rare if quality(rare)[:2] == (True, True) else usual


def _count_titles(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first rows are titles: they fill at most half of the columns."""
    counts = [sum(bool(cell.strip()) for cell in row) for row in rows]
    usual = max(set(counts), key=lambda count: (counts.count(count), count))
    if usual < FEWEST_COLUMNS:
        return 0
    return next((k for k, count in enumerate(counts) if 2 * count > usual), 0)


def _rows_end_in_delimiter(lines: Sequence[str], delimiter: str, columns: int) -> bool:
    """Whether rows have one cell more than the heading, and nothing in it."""
    body = _cells(lines, delimiter)[1:]
    n_longer = sum(len(row) == columns + 1 and not row[-1].strip() for row in body)
    return bool(body) and n_longer >= MOST_LINES * len(body)
