"""Work over threads in fixed chunks, so that results do not depend on how many threads there are."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from dynaesti.arrays import Ints

T = TypeVar("T")

CHUNK = 20_000  # sites that one thread takes at a time


def in_threads(run: Callable[[T], None], tasks: Sequence[T], threads: int | None) -> None:
    """Run every task; errors surface here."""
    workers = min(threads or os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        for task in tasks:
            run(task)
        return
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(run, task) for task in tasks]:
            future.result()


def chunks(site_start: Ints) -> list[Ints]:
    """Runs of whole curves with about CHUNK sites each."""
    cuts = np.unique(np.searchsorted(site_start, np.arange(0, site_start[-1], CHUNK)))
    bounds = np.append(cuts, site_start.size - 1)
    return [np.arange(a, b) for a, b in pairwise(bounds) if b > a]
