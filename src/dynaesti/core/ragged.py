"""Rows of unequal length laid end to end: the one home of start and offset arithmetic.

Row r of a flat array has the entries ``start[r]:start[r + 1]``; ``start`` has one entry more than
there are rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dynaesti.core.arrays import Array, Bools, Ints
from dynaesti.core.compiled import jit


def starts_of(lengths: Ints | Bools) -> Ints:
    """Start of each row when rows of these lengths are laid end to end.

    Parameters
    ----------
    lengths : array (n_rows,)

    Returns
    -------
    array (n_rows + 1,)
    """
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def take_rows(start: Ints, rows: Ints) -> Ints:
    """Flat indices of the chosen rows, one row after the other."""
    lengths = start[rows + 1] - start[rows]
    skip = np.repeat(start[rows] - (np.cumsum(lengths) - lengths), lengths)
    return np.asarray(np.arange(skip.size) + skip)


def last_of_rows(start: Ints, counts: Ints) -> Ints:
    """Flat indices of the last ``counts[r]`` entries of each row."""
    skip = np.repeat(start[1:] - counts - (np.cumsum(counts) - counts), counts)
    return np.asarray(np.arange(skip.size) + skip)


@jit
def longest_row(start: Ints, rows: Ints) -> int:
    """Length of the longest of the chosen rows."""
    longest = 0
    for row in rows:
        longest = max(longest, start[row + 1] - start[row])
    return longest


def row_of_entries(start: Ints) -> Ints:
    """The row that each entry of the flat array belongs to."""
    return np.repeat(np.arange(start.size - 1), np.diff(start))


def starts_of_runs(*keys: npt.NDArray[np.generic]) -> Ints:
    """Where a new run of equal keys begins in sorted flat arrays (the first entry always does)."""
    new = np.zeros(keys[0].size, dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


class Ragged(NamedTuple):
    """Integers in rows of unequal length: row r is ``values[start[r]:start[r + 1]]``."""

    start: Ints  # (n_rows + 1,)
    values: Ints  # (n_values,)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.start.size - 1

    @property
    def lengths(self) -> Ints:
        """Length of each row."""
        return np.diff(self.start)

    def row(self, number: int) -> Ints:
        """The values of one row."""
        return self.values[self.start[number] : self.start[number + 1]]

    def sums(self, weights: Array) -> Array:
        """Sum of ``weights[value]`` over each row; 0 for empty rows."""
        if self.values.size == 0:
            return np.zeros(self.n_rows)
        padded = np.append(weights[self.values], 0.0)
        begin = self.start[:-1].clip(max=self.values.size)
        return np.where(self.lengths > 0, np.add.reduceat(padded, begin), 0.0)
