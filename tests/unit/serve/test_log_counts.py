"""Counts over the log, which are kept up to date: against counting everything."""

import random
from collections import Counter

import pytest

from dynaesti.serve import log_counts, open_database
from dynaesti.serve.log_counts import LogCounts
from dynaesti.serve.rows import AnswerRow


@pytest.mark.parametrize(("over_after", "numbers"), [(0.0, 0), (0.0, 7), (1e9, 5), (1e9, 10**6)])
def test_counts_are_those_of_the_whole_log(over_after, numbers, tmp_path, monkeypatch):
    monkeypatch.setattr(log_counts, "OVER_AFTER", over_after)
    monkeypatch.setattr(log_counts, "NUMBERS", numbers)
    database = open_database(f"sqlite:///{tmp_path}/a.db")
    draw = random.Random(1)
    counts, truth, first = LogCounts(), Counter(), None
    for turn in range(6):
        with database.reading() as tx:
            assert counts.read(tx) == (truth, first)
        rows = [
            AnswerRow("ada", f"i{draw.randrange(4)}", 1, draw.uniform(-9, 9), f"{turn} {k}")
            for k in range(draw.randrange(20))
        ]
        with database.transaction() as tx:
            tx.add_answers(rows)
        truth.update(one.item for one in rows)
        first = min([one.time for one in rows] + ([] if first is None else [first]), default=None)
    database.close()
