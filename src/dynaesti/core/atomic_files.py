"""Files that are written whole or not at all.

A file is written beside its target and moved into place at the end, so that an interrupted save
leaves the old file as it was.
"""

import errno
import glob
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from dynaesti.errors import StorageError

PARTIAL = ".part"  # suffix of files that are being written
ABANDONED = 3600.0  # seconds since the last write to such a file, after which its writer is dead
LONGEST_NAME = 40  # characters of the target's name in the name of such a file
# errors of writing itself, whichever file they name
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
UNCHANGED = "what was there before is as it was"


@contextmanager
def atomic_paths() -> Iterator[Callable[[str | os.PathLike[str]], Path]]:
    """Write several files that change together.

    Yields a function from a target to a new, empty file beside it, to be written. At the end all
    are moved to their targets, one right after the other. After an error, a full disk or a killed
    process, the old files are as they were.

    The new files have names that nobody can foresee (else a link planted in a shared folder would
    be followed), and the permissions of their targets. A target that is a link stays one.

    Raises
    ------
    StorageError
        If a file cannot be written.
    """
    staged: list[tuple[Path, Path]] = []  # (file that is written, its target)

    def stage(path: str | os.PathLike[str]) -> Path:
        target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
        try:
            partial = _new_partial_file(target)
        except (OSError, ValueError) as error:
            raise _write_error(target, error) from error
        staged.append((partial, target))
        return partial

    try:
        yield stage
        _flush_to_disk(staged)
        _move_into_place(staged)
    except StorageError:
        raise
    except OSError as error:
        ours = [str(partial) for partial, _ in staged]
        if not staged or (error.errno not in DISK_ERRORS and error.filename not in ours):
            raise  # about something else than these files
        raise _write_error(staged[-1][1], error) from error
    finally:
        for partial, _ in staged:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _flush_to_disk(staged: list[tuple[Path, Path]]) -> None:
    for partial, target in staged:
        try:
            with partial.open("rb+") as file:
                os.fsync(file.fileno())
        except OSError as error:
            raise _write_error(target, error) from error


def _move_into_place(staged: list[tuple[Path, Path]]) -> None:
    for n_moved, (partial, target) in enumerate(staged):
        try:
            partial.replace(target)
        except OSError as error:
            state = UNCHANGED
            if n_moved:
                state = (
                    f"{n_moved} of {len(staged)} files are new already, and the same call again "
                    f"brings the others"
                )
            raise _write_error(target, error, state) from error


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file whole or not at all: yields a new file beside it, which is moved at the end."""
    with atomic_paths() as stage:
        yield stage(path)


def remove_partial_files(folder: str | os.PathLike[str], *names: str) -> None:
    """Remove unfinished files that killed writers have left in a folder.

    Parameters
    ----------
    folder : path
        The folder.
    *names : str
        Targets of the files, which only the caller writes. Default: all in the folder.
    """
    for name in names or ("",):
        for partial in Path(folder).glob(f".{glob.escape(name)}*{PARTIAL}"):
            with suppress(OSError):
                partial.unlink()


def _write_error(target: Path, error: Exception, state: str = UNCHANGED) -> StorageError:
    reason = getattr(error, "strerror", None) or error
    return StorageError(f"{target}: could not be written ({reason}); {state}")


def _new_partial_file(target: Path) -> Path:
    """A new file beside the target, with its permissions; abandoned ones of it are removed."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file")
    if not target.name:
        raise ValueError("no file name")
    begin = f".{target.name[:LONGEST_NAME]}."
    for old in target.parent.glob(f"{glob.escape(begin)}*{PARTIAL}"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > ABANDONED:
                old.unlink()
    import tempfile  # slow to import, and needed only by those who write

    handle, name = tempfile.mkstemp(PARTIAL, begin, target.parent)
    os.close(handle)
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mode = 0o666 & ~umask()
    with suppress(OSError):
        os.chmod(name, mode)
    return Path(name)


@cache
def umask() -> int:
    """The process's mask of permissions for new files; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
