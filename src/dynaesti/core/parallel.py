"""Work over threads in fixed chunks, so that results do not depend on how many threads there are.

And BLAS's own threads, kept out.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from dynaesti.core.arrays import Ints

T = TypeVar("T")
CHUNK = 20_000  # sites that one thread takes at a time


def run_in_threads(run: Callable[[T], None], tasks: Sequence[T], threads: int | None) -> None:
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


# --- BLAS
# --------------------------------------------------------------------------------------------------


_limited = threading.Lock()  # held by whoever keeps BLAS to one thread


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """BLAS kept to one thread, as a context or a decorator.

    Curves live in twenty weights or so: threads of BLAS bring nothing there, and each spins on a
    core for a while after every call (a fit of 100 votes took twice the CPU time, and ten times the
    wall time on a busy machine). The setting belongs to the process: the first one in makes it and
    takes it back, whoever else comes meanwhile finds it made.
    """
    if not _limited.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.release()


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  it brings a BLAS of its own, which has to be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
