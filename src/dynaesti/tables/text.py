"""Tables as text for people: aligned, and as HTML for notebooks; few digits, the first rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

LARGE = 1e4  # from here on, six digits say enough


def printable(text: str) -> str:
    """Text with its control characters escaped, line ends excepted.

    A name in a file must not set the title or the colours of a terminal.
    """
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
    )


def short(value: Any) -> str:
    """A value in a few digits; nothing where there is none."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if value != value else f"{value:.3f}" if abs(value) < LARGE else f"{value:.6g}"
    return str(value)[:19] if hasattr(value, "isoformat") else str(value)


def shown(values: Sequence[Any]) -> list[str]:
    """The cells of a column as text: without decimals where all numbers are whole."""
    numbers = [value for value in values if isinstance(value, float) and value == value]
    if numbers and all(value.is_integer() and abs(value) < LARGE for value in numbers):
        return [
            ("" if value != value else f"{value:.0f}") if isinstance(value, float) else short(value)
            for value in values
        ]
    return [short(value) for value in values]


def is_numeric(values: Sequence[Any]) -> bool:
    """Whether a column stands to the right: it holds numbers only."""
    return all(isinstance(value, int | float) for value in values)


def aligned(
    columns: Mapping[str, Sequence[Any]],
    most: int,
    *,
    width: int | None = None,
    remedy: str = "",
) -> str:
    """A table with its columns aligned.

    Parameters
    ----------
    columns : mapping of str to list
    most : int
        Rows that are shown.
    width : int, optional
        Most characters of a line; columns beyond are named below. Default: no limit.
    remedy : str
        How to see the rows that are not shown, for the end of the last line.

    Returns
    -------
    str
        Lines, each with its end.
    """
    total = len(next(iter(columns.values()), []))
    cells = [_aligned_column(printable(name), values[:most]) for name, values in columns.items()]
    n_shown = len(cells) if width is None else max(_fitting(cells, width), 1)
    lines = [
        "  ".join(row).rstrip().replace("\n", "\\n") for row in zip(*cells[:n_shown], strict=True)
    ]
    if total > most:
        lines.append(f"… {total - most:,} rows more{remedy}")
    if n_shown < len(cells):
        lines.append(f"… and columns {', '.join(list(columns)[n_shown:])}")
    return "\n".join(lines) + "\n"


def _aligned_column(name: str, values: Sequence[Any]) -> list[str]:
    """The heading and the cells of a column, all of one width."""
    cells = [name, *map(printable, shown(values))]
    width = max(map(len, cells))
    if is_numeric(values):
        return [cell.rjust(width) for cell in cells]
    return [cell.ljust(width) for cell in cells]


def _fitting(cells: Sequence[Sequence[str]], width: int) -> int:
    """How many columns fit into a line."""
    used = -2
    for k, column in enumerate(cells):
        used += len(column[0]) + 2
        if used > width:
            return k
    return len(cells)


def as_html(columns: Mapping[str, Sequence[Any]], most: int) -> str:
    """A table for a notebook; names are escaped."""
    total = len(next(iter(columns.values()), []))
    heading = "".join(f"<th>{escape(name)}</th>" for name in columns)
    aligns = [
        ' style="text-align:right"' if is_numeric(values[:most]) else ' style="text-align:left"'
        for values in columns.values()
    ]
    rows = [
        "".join(
            f"<td{align}>{escape(printable(cell))}</td>"
            for align, cell in zip(aligns, row, strict=True)
        )
        for row in zip(*(shown(values[:most]) for values in columns.values()), strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    more = f"<p>… {total - most:,} rows more</p>" if total > most else ""
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>{more}"
