"""Quotes in text files: which cells they enclose, and which have swallowed rows."""

from __future__ import annotations

from collections.abc import Sequence

from dynaesti.data.readers.dialect import Dialect

SHOWN = 60  # characters of a line in a message


def holds_rows(text: str | None, dialect: Dialect) -> bool:
    """Whether a cell, or a broken line, encloses whole rows: a quote was not closed in time."""
    inner = (text or "").splitlines()[1:]
    return any(line.count(dialect.delimiter) == len(dialect.columns) - 1 for line in inner)


def has_stray_quote(cells: Sequence[str | None]) -> bool:
    """Whether a row has quotes that do not come in pairs around a cell."""
    return any('"' in cell and not _is_quoted(cell) for cell in cells if cell)


def _is_quoted(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in cell[1:-1].replace('""', "")


def unquoted(cell: str | None) -> str | None:
    """A cell without the quotes around it."""
    return cell if cell is None or '"' not in cell else cell[1:-1].replace('""', '"') or None
