"""What runs tasks on shards: threads of this process, or the workers of a Dask cluster.

A task is picklable and is called with a shard's number. Results are added up in the shards' order,
so that the sum does not depend on which worker is faster.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache
from typing import Any, Protocol, TypeVar

from dynaesti.errors import InputError, MissingExtraError, StorageError, option

Result = TypeVar("Result")
R_co = TypeVar("R_co", covariant=True)
OnProgress = Callable[[int, int], None]  # called with the shards done, and their number in all

CONNECTING = 20  # seconds to wait for a scheduler
WAITING = 30.0  # seconds to wait for the first worker, or for another one after all were lost
POLLING = 20.0  # seconds between checks that there are workers
# Blocks of shards for each worker: few for little traffic, several so that nobody waits for the
# slowest.
BLOCKS_PER_WORKER = 4
TREE_ARITY = 8  # results that one task adds up
RETRIES = 10  # workers that a shard may be lost with
# names of glibc's malloc.h
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3


class ShardTask(Protocol[R_co]):
    """Work on one shard."""

    def __call__(self, shard: int, threads: int | None) -> R_co:
        """Work on a shard.

        Parameters
        ----------
        shard : int
            Number of the shard, from 0.
        threads : int or None
            Threads to use. None: one for each core.
        """


class Executor(Protocol):
    """What runs a task on every shard and adds the results up."""

    def run(
        self,
        task: ShardTask[Result],
        shards: Sequence[int],
        add: Callable[[list[Result]], Result],
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Run a task on shards.

        Parameters
        ----------
        task : callable
            Picklable; called with a shard's number and a number of threads.
        shards : sequence of int
            Numbers of the shards, at least one.
        add : callable
            Adds up a list of results. It gets them in the order of the shards.
        on_progress : callable, optional
            Called with the number of shards done, and of all shards.

        Returns
        -------
        result
            The sum of the results.
        """

    def describe(self) -> str:
        """What does the work, for messages: "4 threads"."""


class ThreadExecutor:
    """Threads of this process; each works on one shard at a time.

    Parameters
    ----------
    threads : int, optional
        Number of threads. Default: one for each core. Fewer shards than threads get several each.

    Examples
    --------
    >>> from dynaesti.sharded import ThreadExecutor
    >>> def task(shard, threads):
    ...     return 10 * shard
    >>> ThreadExecutor(2).run(task, [0, 1, 2], sum)
    30
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1

    def run(
        self,
        task: ShardTask[Result],
        shards: Sequence[int],
        add: Callable[[list[Result]], Result],
        on_progress: OnProgress | None = None,
    ) -> Result:
        workers = min(self.threads, len(shards))
        each = max(1, self.threads // workers)
        total: list[Result] = []
        waiting: deque[Future[Result]] = deque()
        todo = deque(shards)
        done = 0
        with ThreadPoolExecutor(workers) as pool:
            try:
                while todo or waiting:
                    while todo and len(waiting) < workers + 1:
                        waiting.append(pool.submit(task, todo.popleft(), each))
                    total = (
                        [add([*total, waiting.popleft().result()])]
                        if total
                        else [waiting.popleft().result()]
                    )
                    done += 1
                    if on_progress is not None:
                        on_progress(done, len(shards))
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise
        return total[0]

    def describe(self) -> str:
        return f"{self.threads} thread{'s' if self.threads > 1 else ''}"


class DaskExecutor:
    """The workers of a Dask cluster.

    Every worker must see the folder of the shards and that of the fit: on a shared file system, or
    at an address such as ``s3://…``. A worker fetches each task once, takes some shards in a row
    and adds their results up before it sends anything; sums are added up on the workers too, eight
    at a time. Shards of a lost worker go to others, which find its converged sites in the folder of
    the fit.

    Parameters
    ----------
    client : distributed.Client
        A client that is connected to the cluster.

    Raises
    ------
    MissingExtraError
        If the package distributed is not installed.
    InputError
        If `client` is something else.

    Examples
    --------
    Connect to a scheduler, and fit shards on its workers::

        from distributed import Client

        executor = dy.DaskExecutor(Client("tcp://scheduler:8786"))
        fit = dy.DynAEsti("2PL", executor=executor).fit("shards/")

    Anything else than a client is refused:

    >>> import dynaesti as dy
    >>> dy.DaskExecutor("tcp://scheduler:8786")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
        ...
    dynaesti.errors.InputError: client: expected a distributed.Client, got str; ...
    """

    def __init__(self, client: Any) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtraError(
                "a Dask cluster needs distributed: pip install 'dynaesti[dask]'"
            ) from None
        if not isinstance(client, Client):
            raise InputError(
                f"client: expected a distributed.Client, got {type(client).__name__}; "
                f"DaskExecutor(Client('tcp://…:8786'))"
            )
        self.client: Any = client

    def run(
        self,
        task: ShardTask[Result],
        shards: Sequence[int],
        add: Callable[[list[Result]], Result],
        on_progress: OnProgress | None = None,
    ) -> Result:
        workers = self._workers()
        # fetched by each worker once, and made anew if it is lost
        sent = self.client.submit(_identity, task, pure=False, retries=RETRIES)
        # shards that a worker adds up before it sends anything
        size = max(1, len(shards) // (BLOCKS_PER_WORKER * workers))
        blocks = [list(shards[k : k + size]) for k in range(0, len(shards), size)]
        level = [
            self.client.submit(
                _run_block,
                sent,
                block,
                add,
                pure=False,
                key=f"shards-{block[0]}-{sent.key}",
                retries=RETRIES,
            )
            for block in blocks
        ]
        if on_progress is not None:
            self._follow(level, on_progress, size, len(shards))
        while len(level) > 1:
            level = [
                self.client.submit(
                    _sum_block, add, level[k : k + TREE_ARITY], pure=False, retries=RETRIES
                )
                for k in range(0, len(level), TREE_ARITY)
            ]
        found: Result = self._result(level[0])
        return found

    def _workers(self) -> int:
        """Number of workers; an error if there are none for `WAITING` seconds."""
        end = time.monotonic() + WAITING
        while time.monotonic() < end:
            try:
                found = len(self.client.scheduler_info(n_workers=-1)["workers"])
            except (KeyError, OSError) as error:  # what a client makes of a scheduler that is gone
                raise StorageError(
                    f"Dask: the scheduler does not answer any more ({type(error).__name__}); the "
                    f"same call continues from the last checkpoint"
                ) from error
            if found:
                return found
            time.sleep(0.5)
        raise StorageError(
            f"Dask: the scheduler has had no workers for {WAITING:g} seconds; start some (dask "
            f"worker ADDRESS), and call again"
        )

    def _follow(self, futures: list[Any], on_progress: OnProgress, size: int, shards: int) -> None:
        """Report progress until all blocks of `size` shards are done."""
        import distributed

        wait: Any = distributed.wait
        left = set(futures)
        while left:
            try:
                left = set(wait(left, timeout=POLLING, return_when="FIRST_COMPLETED").not_done)
            except distributed.TimeoutError:
                self._workers()
                continue
            on_progress(min((len(futures) - len(left)) * size, shards), shards)

    def _result(self, future: Any) -> Any:
        """The result of a future, with Dask's errors in the package's words."""
        from distributed import TimeoutError as NotDone
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            while True:
                try:
                    return future.result(timeout=POLLING)
                except NotDone:
                    if future.done():  # the task itself ran out of time: an OSError, below
                        raise
                    self._workers()
        except (FutureCancelledError, CommClosedError) as error:
            raise StorageError(
                f"Dask: the scheduler is gone ({type(error).__name__}); the same call continues "
                f"from the last checkpoint"
            ) from error
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"Dask: a task failed on a worker ({type(error).__name__}: {error}); do all "
                f"workers see the folders of the shards and of the run?"
            ) from error
        except KilledWorker as error:
            raise InputError(
                f"Dask: a shard's task was lost with {RETRIES + 1} workers one after the other "
                f"({error}); do they have enough memory? Prepare smaller shards, or give the "
                f"workers more"
            ) from error

    def describe(self) -> str:
        return f"a Dask cluster of {self._workers()} workers"


@contextmanager
def cluster(where: str | None) -> Iterator[DaskExecutor | None]:
    """An executor on a Dask cluster, which is closed at the end of the block.

    Parameters
    ----------
    where : str or None
        Address of a scheduler, or "local:N" for N worker processes on this machine. None: no
        executor.

    Raises
    ------
    StorageError
        If no scheduler answers, or worker processes cannot be started.
    """
    if where is None:
        yield None
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtraError(
            "a Dask cluster needs distributed: pip install 'dynaesti[dask]'"
        ) from None
    kind, _, count = where.partition(":")
    if kind != "local":
        try:
            client = Client(where, timeout=CONNECTING)  # type: ignore[no-untyped-call]
        except (OSError, ValueError, TypeError) as error:
            raise StorageError(f"{_where()}: no scheduler answers at {where} ({error})") from error
        with client:
            yield DaskExecutor(client)
        return
    if not count.isdigit() or int(count) < 1:
        raise InputError(f"{_where()}: expected local:N with N worker processes, got {where!r}")
    try:
        here = LocalCluster(n_workers=int(count), threads_per_worker=1, dashboard_address=":0")  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError) as error:
        raise StorageError(
            f"{_where()}: worker processes cannot be started here ({error})"
        ) from error
    with here, Client(here) as client:  # type: ignore[no-untyped-call]
        yield DaskExecutor(client)


def _where() -> str:
    """Name of the option that says where the cluster is."""
    return option("dask", python="where")


def _identity(task: Result) -> Result:
    """The task itself, as a result that workers fetch."""
    return task


def _run_block(
    task: ShardTask[Result], shards: Sequence[int], add: Callable[[list[Result]], Result]
) -> Result:
    """Run a task on some shards in a row, in one thread: there are many workers."""
    _reuse_memory()
    total = task(shards[0], 1)
    for shard in shards[1:]:
        total = add([total, task(shard, 1)])
    return total


@cache
def _reuse_memory() -> None:
    """Let this process keep freed memory for the next arrays.

    Dask's workers are set to return every freed page at once; arrays of the next shard then fault
    them all in again, which costs a third of the time. Only glibc has the setting.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for setting in (TRIM_THRESHOLD, MMAP_THRESHOLD):
            libc.mallopt(setting, 1 << 30)


def _sum_block(add: Callable[[list[Result]], Result], results: list[Result]) -> Result:
    """The sum of some results.

    Adding changes the first of them, which on a worker is the stored result of another task: a
    second try after a failure must find it as it was.
    """
    return add([deepcopy(results[0]), *results[1:]]) if len(results) > 1 else results[0]
