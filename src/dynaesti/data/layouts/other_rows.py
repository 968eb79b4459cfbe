"""Rows that are no answers: further headings, possible points, totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from dynaesti.data.headings import LIKE_DATA
from dynaesti.data.labels import count_noun, display_names
from dynaesti.data.layouts.layout import is_blank, keep_rows, with_notes
from dynaesti.data.readers.table import Table
from dynaesti.data.readers.totals import MOST_ROWS, are_names, is_possible_points, is_total
from dynaesti.data.response_words import MISSING

MOST_HEADINGS = 2  # rows below the headings that say more of the columns
FEWEST_COLUMNS = 2  # whose values a row of headings differs from
JUDGED = 200  # rows by which columns of values are told
QUALTRICS = '{"ImportId"'  # begins the cells of its third row of headings


def without_other_rows(table: Table) -> Table:
    """The table without rows that are no answers; each kind is told."""
    for without in (_without_headings, _without_repeated_headings, _without_totals):
        if len(table.frame) > 1:
            table = without(table)
    return table


def _without_headings(table: Table) -> Table:
    """The table without first rows that say more of the columns, such as their units."""
    texts = [name for name in table.frame.columns if table.frame[name].dtype == nw.String]
    if len(texts) < FEWEST_COLUMNS or len(table.frame) <= MOST_HEADINGS:
        return table
    columns = [table.frame[name].head(JUDGED).to_list() for name in texts]
    first = [
        k
        for k in range(MOST_HEADINGS)
        if any(str(column[k]).startswith(QUALTRICS) for column in columns)
    ]
    count = first[0] + 1 if first else 0
    while not first and count < MOST_HEADINGS and _differs(columns, count):
        count += 1
    if not count:
        return table
    note = f"left out {count_noun(count, 'rows')} below the headings, about the columns"
    return with_notes(keep_rows(table, np.arange(len(table.frame)) >= count), note)


def _differs(columns: Sequence[Sequence[Any]], row: int) -> bool:
    """Whether a row holds words in columns that hold numbers or dates below, and no number."""
    n_words = 0
    for column in columns:
        below = [cell for cell in column[MOST_HEADINGS:] if not _is_missing(cell)]
        if not below or not all(LIKE_DATA.fullmatch(cell.strip()) for cell in below):
            continue
        if _is_missing(column[row]):
            continue
        if LIKE_DATA.fullmatch(column[row].strip()):
            return False
        n_words += 1
    return n_words >= FEWEST_COLUMNS


def _is_missing(cell: Any) -> bool:
    return is_blank(cell) or cell.strip().lower() in MISSING


def _without_repeated_headings(table: Table) -> Table:
    """The table without rows that are the headings again, as files have that were put together."""
    names = table.frame.columns
    if table.frame[names[0]].dtype != nw.String:
        return table
    like = np.array([value == names[0] for value in table.frame[names[0]].to_list()], dtype=bool)
    if not like.any():
        return table
    rows = np.flatnonzero(like)
    cells = [table.frame[name].filter(like.tolist()).to_list() for name in names]
    same = [
        all(str(cell).strip() == name for cell, name in zip(row, names, strict=True))
        for row in zip(*cells, strict=True)
    ]
    keep = np.ones(like.size, dtype=bool)
    keep[rows[same]] = False
    if keep.all():
        return table
    note = f"left out {count_noun(sum(same), 'rows')} with the headings again"
    return with_notes(keep_rows(table, keep), note)


def _without_totals(table: Table) -> Table:
    """The table without last rows of totals or means, and first rows of possible points."""
    n_rows = len(table.frame)
    above: list[str] = []
    for row in table.frame.head(MOST_HEADINGS).rows():
        word = _first_word(row)
        if not is_possible_points(word):
            break
        above.append(str(word).strip())
    below: list[str] = []
    for row in reversed(table.frame.tail(MOST_ROWS).rows()):
        word = _first_word(row)
        if not (is_total(word) or is_possible_points(word)):
            break
        below.append(str(word).strip())
    below = [] if are_names(below) else below[::-1]
    words = [*above, *below]
    if not words or len(words) >= n_rows:
        return table
    rows = np.arange(n_rows)
    keep = (rows >= len(above)) & (rows < n_rows - len(below))
    note = f"left out {count_noun(len(words), 'rows')} of totals ({display_names(words)})"
    return with_notes(keep_rows(table, keep), note)


def _first_word(row: Sequence[Any]) -> str | None:
    """The first filled cell of a row, if it is text."""
    first = next((cell for cell in row if not is_blank(cell)), None)
    return first if isinstance(first, str) else None
