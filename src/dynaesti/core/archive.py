"""The one saved format.

A zip of a JSON header and NumPy arrays. Nothing in it is a pickle, so opening a file runs no code.

Files are written beside their target and moved into place, so an interrupted save leaves the old
file whole.
"""

import errno
import glob
import json
import os
import stat
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dynaesti.errors import InputError, StorageError

FORMAT = "dynaesti"
VERSION = 1


@contextmanager
def together() -> Iterator[Callable[[str | os.PathLike[str]], Path]]:
    """Files that change together.

    Each is written beside its target, and all are moved into place at the end, one right after the
    other.

    So a full disk, an error or a killed process leaves the old files as they were. The function
    handed out makes a new, empty file with a name that nobody can foresee (a link planted in a
    shared folder would be followed else), open to whom the target is open to.
    """
    staged: list[tuple[Path, Path]] = []

    def stage(path: str | os.PathLike[str]) -> Path:
        target = (
            Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
        )  # a link stays one
        try:
            part = _new_part(target)
        except (OSError, ValueError) as error:
            raise _unwritten(target, error) from error
        staged.append((part, target))
        return part

    try:
        yield stage
        for part, target in staged:
            try:
                with part.open("rb+") as file:
                    os.fsync(file.fileno())
            except OSError as error:
                raise _unwritten(target, error) from error
        for moved, (part, target) in enumerate(staged):
            try:
                part.replace(target)
            except OSError as error:
                half = (
                    f"; {moved} of {len(staged)} files are new already, and the same call again "
                    f"brings the others"
                    if moved
                    else None
                )
                raise _unwritten(target, error, half) from error
    except StorageError:
        raise
    except OSError as error:
        if not staged or (
            error.errno not in DISK_FULL and error.filename not in [str(part) for part, _ in staged]
        ):
            raise  # of something else than these files
        raise _unwritten(staged[-1][1], error) from error
    finally:
        for part, _ in staged:
            with suppress(OSError):
                part.unlink(missing_ok=True)


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write next to the target, moved into place at the end."""
    with together() as stage:
        yield stage(path)


def remove_partial_files(folder: str | os.PathLike[str], *names: str) -> None:
    """Remove what killed writers left behind of files that only the caller writes.

    Of all in the folder, where none is named.
    """
    for name in names or ("",):
        for part in Path(folder).glob(f".{glob.escape(name)}*{PART}"):
            with suppress(OSError):
                part.unlink()


def _unwritten(target: Path, error: Exception, state: str | None = None) -> StorageError:
    told = "; what was there before is as it was" if state is None else state
    return StorageError(
        f"{target}: could not be written ({getattr(error, 'strerror', None) or error}){told}"
    )


DISK_FULL = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EROFS,
)  # what writing itself runs into


def _new_part(target: Path) -> Path:
    """A new file beside the target with its mode; what killed writers left behind for it goes."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file")
    if not target.name:
        raise ValueError("no file name")
    begin = f".{target.name[:LONGEST_NAME]}."
    for old in target.parent.glob(f"{glob.escape(begin)}*{PART}"):
        with suppress(OSError):
            if time.time() - old.stat().st_mtime > LEFT_BEHIND:
                old.unlink()
    import tempfile  # which takes its time, and is for those who write

    handle, name = tempfile.mkstemp(PART, begin, target.parent)
    os.close(handle)
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mode = 0o666 & ~umask()
    with suppress(OSError):
        os.chmod(name, mode)
    return Path(name)


PART = ".part"  # ending of files that are being written
LEFT_BEHIND = 3600.0  # seconds since anybody wrote to such a file, after which its writer is dead
LONGEST_NAME = 40  # characters of the target's name in it


@cache
def umask() -> int:
    """The process's own; it can only be asked for by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def save_archive(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> Path:
    """Save a header and arrays as one file of the given kind."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputError(f"path: expected a file name, got {path!r}")
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        write_archive(file, kind, header, arrays)
    return Path(path)


def write_archive(
    file: IO[bytes],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    packed: bool = True,
) -> None:
    """Write a header and arrays to an open file."""
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, "kind": kind, **header},
        default=lambda number: number.item(),
    )
    with zipfile.ZipFile(
        file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    ) as archive:
        archive.writestr("header.json", text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)


def open_archive(
    path: str | os.PathLike[str],
) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(kind, header, arrays) of a saved file."""
    source = Path(path)
    try:
        found = source.is_file()
        folder = source.is_dir()
    except (OSError, ValueError) as error:  # a name too long, or with a zero in it
        raise StorageError(
            f"{str(source)[:200]}: no such file ({getattr(error, 'strerror', None) or error})"
        ) from None
    if not found:
        raise StorageError(
            f"{str(source)[:200]}: {'a folder, not a file' if folder else 'no such file'}"
        )
    return read_archive(source, str(source))


def read_archive(
    file: Path | IO[bytes], source: str
) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(kind, header, arrays) of an open file; `source` is its name."""
    try:
        with zipfile.ZipFile(file) as archive:
            _refuse_bomb(archive, source)
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise StorageError(f"{source}: not a file saved by dynaesti")
            if not isinstance(header.get("version"), int) or header["version"] > VERSION:
                raise StorageError(
                    f"{source}: written by a newer dynaesti (format {header.get('version')}, this "
                    f"one reads up to "
                    f"{VERSION}); upgrade dynaesti to open it"
                )
            arrays = {
                name[:-4]: _array(archive, name)
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except StorageError:
        raise
    except Exception as error:  # zip, JSON and NumPy's format have a dozen kinds of their own
        raise StorageError(
            f"{source}: damaged or not a file saved by dynaesti ({type(error).__name__}: {error})"
        ) from error
    return str(header.get("kind")), header, arrays


def _refuse_bomb(archive: zipfile.ZipFile, source: str) -> None:
    """Refuse a file that unpacks to far more than fits and curves do.

    A few kilobytes must not take the memory of the machine.
    """
    entries = archive.infolist()
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    header = next((entry.file_size for entry in entries if entry.filename == "header.json"), 0)
    if (
        unpacked > ALWAYS_FINE + MOST_UNPACKED * packed
        or header > ALWAYS_FINE / 16 + MOST_UNPACKED * packed / 4
    ):
        raise StorageError(
            f"{source}: claims to unpack from {packed / 1e6:.1f} MB to {unpacked / 1e6:,.0f} MB, "
            f"which no saved fit or "
            "curve does; it was not opened"
        )


# bytes that any file may unpack to, and to how many times its size (fits: about 3)
ALWAYS_FINE = 64e6
MOST_UNPACKED = 40


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """One array, after its header has been held against what the archive really holds.

    A false one must not cost memory.
    """
    with archive.open(name) as entry:
        version = np.lib.format.read_magic(entry)
        reader = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = reader(entry)
        if (
            dtype.hasobject
            or int(np.prod(shape, dtype=object)) * dtype.itemsize > archive.getinfo(name).file_size
        ):
            raise ValueError(f"{name} claims what it does not hold")
    with archive.open(name) as entry:
        return np.asarray(np.lib.format.read_array(entry, allow_pickle=False))


# --- what files from elsewhere hold
# ---------------------------------------------------------------------------


def require(condition: Any, what: str) -> None:
    """Refuse unless the condition holds."""
    if not condition:
        raise ValueError(what)


def check_array(
    array: npt.NDArray[Any], shape: tuple[int, ...], what: str, kind: str = "f"
) -> None:
    """Refuse an array of another shape or kind, or with anything in it that is not finite."""
    require(
        isinstance(array, np.ndarray) and array.shape == shape and array.dtype.kind == kind,
        f"{what} is malformed",
    )
    require(
        array.dtype.kind == "b" or (array.dtype.itemsize == 8 and np.isfinite(array).all()),
        f"{what} is malformed",
    )


def is_number(value: Any) -> bool:
    """Whether an entry of a header is a number, infinite ones included."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Header: TypeAlias = dict[str, Any]
