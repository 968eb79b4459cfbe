"""Who does the work on shards: threads of this process, or the workers of a Dask cluster.

An errand is anything that can be called with a shard's number and be sent to another machine.
Results are added up in the shards' order, so that it does not matter who was faster.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Protocol, TypeVar

from dynaesti.errors import InputError, MissingExtraError, StorageError, option

Result = TypeVar("Result")
R_co = TypeVar("R_co", covariant=True)
FAN = 8  # results that are added up at a time
Listen = Callable[[int, int], None]  # told of shards done, and of how many there are


class ShardTask(Protocol[R_co]):
    """Work on one shard."""

    def __call__(self, shard: int, threads: int | None) -> R_co:
        """The result for a shard, using so many threads (None: all)."""


class Executor(Protocol):
    """Runs an errand on every shard and adds the results up."""

    def run(
        self,
        task: ShardTask[Result],
        shards: Sequence[int],
        add: Callable[[list[Result]], Result],
        listen: Listen | None = None,
    ) -> Result:
        """The sum of the results; `add` takes them in the shards' order."""

    def describe(self) -> str:
        """In words."""


class ThreadExecutor:
    """Threads of this process: each takes a shard at a time; a lone shard gets them all."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or os.cpu_count() or 1

    def run(
        self,
        task: ShardTask[Result],
        shards: Sequence[int],
        add: Callable[[list[Result]], Result],
        listen: Listen | None = None,
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
                    if listen is not None:
                        listen(done, len(shards))
            except BaseException:
                for future in waiting:
                    future.cancel()
                raise
        return total[0]

    def describe(self) -> str:
        return f"{self.threads} thread{'s' if self.threads > 1 else ''}"


class DaskExecutor:
    """The workers of a Dask cluster: `DaskExecutor(client)`, with any `distributed.Client`.

    The shards' folder and the run's must be seen by every worker (a shared file system, or an
    address such as s3://…). Each errand is fetched once by every worker, which takes some shards in
    a row and adds them up before it hands anything on; the rest is added up on the workers too,
    eight at a time. A lost worker's shards go to others, which find its settled sites in the run's
    folder.
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
        listen: Listen | None = None,
    ) -> Result:
        workers = self._workers()
        sent = self.client.submit(
            _itself, task, pure=False, retries=RETRIES
        )  # fetched by each worker once, made anew if it is lost
        size = max(
            1, len(shards) // (TURNS * workers)
        )  # shards that a worker adds up before it hands anything on
        blocks = [list(shards[k : k + size]) for k in range(0, len(shards), size)]
        level = [
            self.client.submit(
                _on_worker,
                sent,
                block,
                add,
                pure=False,
                key=f"shards-{block[0]}-{sent.key}",
                retries=RETRIES,
            )
            for block in blocks
        ]
        if listen is not None:
            self._follow(level, listen, size, len(shards))
        while len(level) > 1:
            level = [
                self.client.submit(_added, add, level[k : k + FAN], pure=False, retries=RETRIES)
                for k in range(0, len(level), FAN)
            ]
        found: Result = self._result(level[0])
        return found

    def _workers(self) -> int:
        """How many workers there are.

        None for a while is an error, not a reason to wait for ever.
        """
        end = time.monotonic() + WAITING
        while time.monotonic() < end:
            try:
                found = len(self.client.scheduler_info(n_workers=-1)["workers"])
            except (KeyError, OSError) as error:  # what a client makes of a scheduler that is gone
                raise StorageError(
                    f"Dask: the scheduler does not answer any more ({type(error).__name__}); the "
                    f"same call goes on from the "
                    "last checkpoint"
                ) from error
            if found:
                return found
            time.sleep(0.5)
        raise StorageError(
            f"Dask: the scheduler has had no workers for {WAITING:g} seconds; start some (dask "
            f"worker ADDRESS), and call "
            "again"
        )

    def _follow(self, futures: list[Any], listen: Listen, size: int, shards: int) -> None:
        import distributed

        waiting: Any = distributed.wait
        left = set(futures)
        while left:
            try:
                left = set(waiting(left, timeout=LOOKING, return_when="FIRST_COMPLETED").not_done)
            except distributed.TimeoutError:
                self._workers()
                continue
            listen(min((len(futures) - len(left)) * size, shards), shards)

    def _result(self, future: Any) -> Any:
        from distributed import TimeoutError as StillAtWork
        from distributed.client import FutureCancelledError
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            while True:
                try:
                    return future.result(timeout=LOOKING)
                except StillAtWork:
                    if future.done():  # the work itself ran out of time: told below
                        raise
                    self._workers()
        except (FutureCancelledError, CommClosedError) as error:
            raise StorageError(
                f"Dask: the scheduler is gone ({type(error).__name__}); the same call goes on "
                f"from the last "
                "checkpoint"
            ) from error
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"Dask: a worker cannot do its part ({type(error).__name__}: {error}); do all "
                f"workers see the folders of "
                "the shards and of the run?"
            ) from error
        except KilledWorker as error:
            raise InputError(
                f"Dask: a shard's work was lost with {RETRIES + 1} workers one after the other "
                f"({error}); do they have enough "
                "memory? Prepare smaller shards, or give the workers more"
            ) from error

    def describe(self) -> str:
        return f"a Dask cluster of {self._workers()} workers"


@contextmanager
def cluster(where: str | None) -> Iterator[DaskExecutor | None]:
    """An engine by the address of a scheduler, or `local:N`; none without."""
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


CONNECTING = 20  # seconds to wait for a scheduler,
# for its first worker, or the next one after all were lost; and between looks at whether there
# are any
WAITING = 30.0
LOOKING = 20.0
# so often a worker comes round in a pass: few for little traffic, several so that nobody waits
# for the slowest
TURNS = 4
RETRIES = 10  # workers that a shard may be lost with


def _itself(task: Result) -> Result:
    return task


def _on_worker(
    task: ShardTask[Result], shards: Sequence[int], add: Callable[[list[Result]], Result]
) -> Result:
    """An errand on a worker, shard by shard: the workers are many, so each keeps to one thread."""
    _reuse_memory()
    total = task(shards[0], 1)
    for shard in shards[1:]:
        total = add([total, task(shard, 1)])
    return total


@cache
def _reuse_memory() -> None:
    """Let this process keep memory that arrays leave behind, for the next ones.

    Dask's workers are told to give every freed page back at once; arrays of the next shard then
    fault them all in again, which costs a third of the time. glibc alone has the setting.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        for setting in (TRIM_THRESHOLD, MMAP_THRESHOLD):
            libc.mallopt(setting, 1 << 30)


# names of glibc's malloc.h
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3


def _added(add: Callable[[list[Result]], Result], results: list[Result]) -> Result:
    return add(results) if len(results) > 1 else results[0]
