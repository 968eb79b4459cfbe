"""Rows of totals at the end of a table are no answers."""

from __future__ import annotations

import numpy as np

from dynaesti.data.labels import count_noun, display_names
from dynaesti.data.layouts.layout import is_blank, keep_rows, with_notes
from dynaesti.data.readers.table import Table
from dynaesti.data.readers.totals import MOST_ROWS, is_total


def without_totals(table: Table) -> Table:
    """The table without the last rows whose first filled cell is a word such as Total or Mean."""
    n_rows = len(table.frame)
    if n_rows < 2:
        return table
    last = table.frame.tail(MOST_ROWS).rows()
    words: list[str] = []
    for row in reversed(last):
        first = next((cell for cell in row if not is_blank(cell)), None)
        if not isinstance(first, str) or not is_total(first):
            break
        words.append(first.strip())
    if not words or len(words) == n_rows:
        return table
    keep = np.arange(n_rows) < n_rows - len(words)
    note = f"{count_noun(len(words), 'rows')} of totals left out ({display_names(words[::-1])})"
    return with_notes(keep_rows(table, keep), note)
