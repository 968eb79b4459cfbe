"""Dialect of a text file: its encoding, delimiter and columns, found from its beginning."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from dynaesti.data.readers.encoding import decode_head, detect_encoding
from dynaesti.errors import ResponseError

DELIMITERS = ",;\t|"
LINES_JUDGED = 20  # by which the delimiter is found
MOST_LINES = 0.8  # fraction of them that has to agree
UNNAMED = "unnamed column "  # beginning of the names of columns without a heading


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    encoding: str  # as `detect_encoding` names it
    delimiter: str
    columns: tuple[str, ...]
    blank_lines: int  # before the heading
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
    lines = [line for line in all_lines if line.strip()]
    if not lines:
        raise ResponseError(f"{label}: the file is empty")
    delimiter = _find_delimiter(lines)
    notes = []
    if delimiter not in ",\t":
        notes.append(f"{label}: columns are separated by {delimiter!r}")
    columns = [column.strip() for column in next(csv.reader([lines[0]], delimiter=delimiter))]
    if _rows_end_in_delimiter(lines, delimiter, len(columns)):
        columns.append("")
    columns = [column or f"{UNNAMED}{k + 1}" for k, column in enumerate(columns)]
    _refuse_equal_columns(columns, label)
    blank_lines = next(k for k, line in enumerate(all_lines) if line.strip())
    return Dialect(encoding, delimiter, tuple(columns), blank_lines), notes


def _refuse_equal_columns(columns: Sequence[str], label: str) -> None:
    if len(set(columns)) == len(columns):
        return
    twice = [column for column in dict.fromkeys(columns) if columns.count(column) > 1]
    raise ResponseError(
        f"{label}: {len(twice)} columns occur twice (first: {twice[0]!r}); give each a name of its "
        f"own"
    )


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The cells of the first lines."""
    return list(csv.reader(io.StringIO("\n".join(lines[:LINES_JUDGED])), delimiter=delimiter))


def _find_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that cuts the first lines into most, and equally many, columns.

    A heading may have one more or one fewer.
    """

    def quality(delimiter: str) -> tuple[bool, bool, int]:
        counts = [len(row) for row in _cells(lines, delimiter)]
        body = counts[1:] or counts
        usual = max(set(body), key=body.count)
        even = body.count(usual) >= MOST_LINES * len(body) and abs(counts[0] - usual) <= 1
        return usual > 1 and counts[0] > 1 and even, counts[0] == usual, counts[0]

    return max(DELIMITERS, key=quality)


def _rows_end_in_delimiter(lines: Sequence[str], delimiter: str, columns: int) -> bool:
    """Whether rows have one cell more than the heading, and nothing in it."""
    body = _cells(lines, delimiter)[1:]
    n_longer = sum(len(row) == columns + 1 and not row[-1].strip() for row in body)
    return bool(body) and n_longer >= MOST_LINES * len(body)
