"""Answers by item, and the first time of all: counted once, then what came since is added."""

from __future__ import annotations

import threading
import time
from collections import Counter

from dynaesti.serve.database import Transaction

# Seconds, and numbers, after which no transaction is under way that took an earlier number.
OVER_AFTER = 10.0
NUMBERS = 10_000


class LogCounts:
    """Counts over the whole log, which is too long to be read for every question.

    Answers are numbered as they come, but on a database with several writers a lower number may be
    committed later than a higher one. So what is counted for good ends where the log ended some
    time ago, and the rest is counted anew.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._items: Counter[str] = Counter()
        self._first: float | None = None
        self._end = 0  # number of the last answer that is counted for good
        self._seen: tuple[float, int] | None = None  # a moment, and where the log ended then

    def read(self, tx: Transaction) -> tuple[Counter[str], float | None]:
        """Number of answers to each item, and the earliest time; None where there are none."""
        with self._lock:
            now = time.monotonic()
            end = int(tx.rows("SELECT COALESCE(MAX(seq), 0) FROM dynaesti_answers")[0][0])
            if self._seen is None:
                self._seen = (now, end)
                self._count(tx, max(end - NUMBERS, 0))
            elif now - self._seen[0] > OVER_AFTER:
                self._count(tx, self._seen[1])
                self._seen = (now, end)
            items, first = _between(tx, self._end, end)
            return self._items + items, _earlier(self._first, first)

    def _count(self, tx: Transaction, end: int) -> None:
        items, first = _between(tx, self._end, end)
        self._items += items
        self._first = _earlier(self._first, first)
        self._end = end


def _between(tx: Transaction, after: int, end: int) -> tuple[Counter[str], float | None]:
    """Counts by item and first time of the answers with numbers in (after, end]."""
    found = tx.rows(
        "SELECT item, COUNT(*), MIN(time) FROM dynaesti_answers "
        "WHERE seq > :after AND seq <= :end GROUP BY item",
        after=after,
        end=end,
    )
    items = Counter({item: int(n) for item, n, _ in found})
    return items, min((first for _, _, first in found), default=None)


def _earlier(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)
