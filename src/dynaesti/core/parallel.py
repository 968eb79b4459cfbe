"""Work over threads, in fixed chunks: results do not depend on the number of threads.

Also a context that keeps BLAS to one thread.
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
CHUNK = 20_000  # sites that a thread works on at a time


def run_in_threads(run: Callable[[T], None], tasks: Sequence[T], threads: int | None) -> None:
    """Call `run` on every task, in threads; the first error is raised here.

    Parameters
    ----------
    run : function of a task
        It stores its results itself.
    tasks : sequence
        Arguments of the calls.
    threads : int, optional
        Number of threads. Default: as many as the machine has cores.
    """
    workers = min(threads or os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        for task in tasks:
            run(task)
        return
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(run, task) for task in tasks]:
            future.result()


def chunks(site_start: Ints) -> list[Ints]:
    """Split curves into chunks of about CHUNK sites each: int arrays of curve numbers.

    Parameters
    ----------
    site_start : int array (n_curves + 1,)
        First site of each curve, and the number of sites.
    """
    cuts = np.unique(np.searchsorted(site_start, np.arange(0, site_start[-1], CHUNK)))
    bounds = np.append(cuts, site_start.size - 1)
    return [np.arange(a, b) for a, b in pairwise(bounds) if b > a]


# --- BLAS


_limited = threading.Lock()  # held by the thread that keeps BLAS to one thread


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread; a context or a decorator.

    Curves have about twenty weights: threads of BLAS gain nothing there, and each spins on a core
    for a while after every call (a fit of 100 votes took twice the CPU time, and ten times the wall
    time on a busy machine). The setting is the process's: the first context to enter sets it and
    restores it, contexts that enter meanwhile change nothing.
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
    """The controller of all loaded BLAS libraries."""
    import scipy.linalg  # noqa: F401  it has a BLAS of its own, which must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
