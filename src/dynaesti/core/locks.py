"""Locks: one command at a time changes a run, or makes a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dynaesti.core.folder import is_address
from dynaesti.errors import StorageError

LOCK_TIMEOUT = 600.0  # seconds that an update waits for another update of the same run


@contextmanager
def exclusive_lock(
    path: str | os.PathLike[str],
    what: str,
    *,
    wait: float = 0.0,
    temporary: bool = False,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold a lock while the context lasts.

    The lock is the operating system's: it ends with the process, however that ends. A process that
    holds it may take it again. At addresses (s3://…) there are no locks: there runs are compared
    before they change.

    Parameters
    ----------
    path : path
        File of the lock; made if it does not exist.
    what : str
        What is locked, for messages.
    wait : float, default=0
        Seconds to wait for another process that holds the lock.
    temporary : bool, default=False
        Whether the file of the lock is removed at the end.
    on_wait : function of str, optional
        Gets a message when waiting begins.

    Raises
    ------
    StorageError
        If another process holds the lock, or if its file cannot be written.
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
            if on_wait is not None:
                on_wait(f"another command is at work on {what}; waiting for it to end")
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
        if temporary:
            with suppress(OSError):
                target.unlink()
        lock.release()
