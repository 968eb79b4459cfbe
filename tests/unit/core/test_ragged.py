"""Rows of unequal length laid end to end, against loops."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynaesti.core import Ragged, last_of_rows, row_of_entries, starts_of, starts_of_runs, take_rows
from dynaesti.core.ragged import longest_row

LENGTHS = [np.array(lengths) for lengths in ([3, 0, 2, 5, 1], [1], [0, 0, 4], [7, 7])]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_starts_rows_and_tails_meet_loops(lengths):
    start = starts_of(lengths)
    rows = [np.arange(a, b) for a, b in pairwise(start)]
    assert_array_equal([len(row) for row in rows], lengths)
    chosen = np.random.default_rng(0).integers(len(rows), size=6)
    assert_array_equal(take_rows(start, chosen), np.concatenate([rows[k] for k in chosen]))
    tail = np.minimum(lengths, 2)
    ends = [row[len(row) - n :] for row, n in zip(rows, tail, strict=True)]
    assert_array_equal(last_of_rows(start, tail), np.concatenate(ends))
    assert_array_equal(row_of_entries(start), np.repeat(np.arange(len(rows)), lengths))
    assert longest_row(start, np.arange(len(rows))) == lengths.max()


def test_runs_begin_where_any_key_changes():
    first, second = np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 1.0, 2.0, 2.0, 2.0, 3.0])
    assert_array_equal(starts_of_runs(first, second), [0, 2, 3, 5])
    assert starts_of_runs(np.zeros(0)).size == 0


def test_sums_of_rows_with_empty_ones_among_them():
    rows = Ragged(np.array([0, 2, 2, 5]), np.array([3, 0, 1, 1, 2]))
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    assert_array_equal(rows.sums(weights), [1001.0, 0.0, 120.0])
    assert_array_equal(rows.lengths, [2, 0, 3])
    assert_array_equal(rows.row(2), [1, 1, 2])
    assert_array_equal(
        Ragged(np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64)).sums(weights), [0, 0]
    )
