"""One at a time: a run, or a folder that is being made, belongs to one command until it has ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dynaesti.core.folder import is_address
from dynaesti.errors import StorageError

LOCK_TIMEOUT = 600.0  # seconds that an update waits for another one of the same run


@contextmanager
def exclusive_lock(
    path: str | os.PathLike[str],
    what: str,
    *,
    wait: float = 0.0,
    fleeting: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold the lock `path`, a file that is made if need be.

    Whoever holds it already may take it again.

    The lock is the operating system's and ends with its process, however that ends. Others are
    refused, or wait; `tell` hears that they do. A `fleeting` lock leaves no file behind. At
    addresses (s3://…) there are no locks: there runs are compared before they change.
    """
    if is_address(os.fspath(path)):
        yield
        return
    from filelock import FileLock, Timeout

    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(target, is_singleton=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if wait <= 0:
                raise
            if tell is not None:
                tell(f"another command is at work on {what}; waiting for it to end")
            lock.acquire(timeout=wait)
    except Timeout:
        raise StorageError(
            f"{what}: another command is at work on it; try again when that has ended"
        ) from None
    except (OSError, NotImplementedError) as error:  # the latter where a file system knows no locks
        raise StorageError(
            f"{what}: cannot be written to ({getattr(error, 'strerror', None) or error})"
        ) from error
    try:
        yield
    finally:
        if fleeting:
            with suppress(OSError):
                target.unlink()
        lock.release()
