"""Lines of a text file that are no rows: remarks below the table, totals, and damaged ones."""

from __future__ import annotations

from collections.abc import Sequence

from dynaesti.data.labels import count_noun
from dynaesti.data.readers.totals import is_total


def sort_broken(
    texts: Sequence[str], lines: Sequence[int], last_row: int, delimiter: str, label: str
) -> tuple[tuple[str, ...], list[str]]:
    """Damaged lines as messages name them, and notes on those that are none.

    Parameters
    ----------
    texts : sequence of str
        Beginnings of all lines that are no rows, in their order.
    lines : sequence of int
        Their numbers; none where these are not known.
    last_row : int
        The line in which the last row begins; 0 where that is not known.
    delimiter : str
    label : str
        The file, as messages call it.
    """
    n_remarks = _count_remarks(texts, lines, last_row, delimiter) if last_row else 0
    n_kept = len(texts) - n_remarks
    totals = [is_total(text.split(delimiter)[0].strip().strip('"')) for text in texts]
    n_totals = sum(totals[:n_kept])
    notes = []
    if n_remarks:
        notes.append(f"{label}: left out {count_noun(n_remarks, 'lines')} below the table")
    if n_totals:
        notes.append(f"{label}: left out {count_noun(n_totals, 'lines')} of totals")
    places = [f", line {line}" for line in lines] or [", the line"] * len(texts)
    damaged = [
        f"{label}{place} {text!r}"
        for place, text, total in zip(places, texts, totals, strict=False)
        if not total
    ]
    return tuple(damaged[: n_kept - n_totals]), notes


def _count_remarks(
    texts: Sequence[str], lines: Sequence[int], last_row: int, delimiter: str
) -> int:
    """How many of the last lines are remarks: below all rows, behind a blank or of one cell."""
    below = sum(line > last_row for line in lines)
    if below and lines[-below] > last_row + 1:
        return below
    alone = (k for k, text in enumerate(reversed(texts)) if k >= below or delimiter in text)
    return next(alone, len(texts))
