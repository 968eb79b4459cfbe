"""Archive: the one saved format, of curves, fits and checkpoints.

An archive is a zip file of

- ``header.json``: an object with ``format`` ("dynaesti"), ``version``, ``kind`` ("curve", "fit",
  …) and whatever the kind needs,
- ``<name>.npy``: NumPy arrays, none of objects.

It holds no pickles, so opening one runs no code. Before anything of a file is trusted, it is
checked that it does not unpack to far more than its size, that its format and version are known,
and that every array is as large as its own header says. What the entries mean is for the readers
of each kind to check, with `require`, `check_array` and `is_number`.
"""

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dynaesti.core.atomic_files import atomic_path
from dynaesti.errors import InputError, StorageError

FORMAT = "dynaesti"
VERSION = 1  # of the format; files of later versions are refused
HEADER = "header.json"
# bytes that any file may unpack to, and by which factor larger ones may grow (fits: about 3)
ALWAYS_UNPACKED = 64e6
MOST_UNPACKED = 40

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Header: TypeAlias = dict[str, Any]


def save_archive(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
) -> Path:
    """Save a header and arrays as one file, whole or not at all.

    Raises
    ------
    InputError
        If `path` is no file name.
    StorageError
        If the file cannot be written.
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InputError(f"path: expected a file name, got {path!r}")
    with atomic_path(path) as partial, partial.open("wb") as file:
        write_archive(file, kind, header, arrays)
    return Path(path)


def write_archive(
    file: IO[bytes],
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    compressed: bool = True,
) -> None:
    """Write a header and arrays to an open file.

    Parameters
    ----------
    file : binary file
        Where to write.
    kind : str
        What is saved: "curve", "fit", ….
    header : mapping
        Entries that JSON can express; NumPy numbers are converted.
    arrays : mapping of name to array
        Of numbers, booleans or text.
    compressed : bool, default=True
        Whether to compress, which takes time and saves disk.
    """
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, "kind": kind, **header},
        default=lambda number: number.item(),
    )
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(HEADER, text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)


def open_archive(path: str | os.PathLike[str]) -> tuple[str, Header, Arrays]:
    """Kind, header and arrays of a saved file.

    Raises
    ------
    StorageError
        If the file is missing, damaged, not an archive, or of a later version.
    """
    source = Path(path)
    try:
        is_file = source.is_file()
        is_folder = source.is_dir()
    except (OSError, ValueError) as error:  # a name too long, or with a zero in it
        raise StorageError(
            f"{str(source)[:200]}: no such file ({getattr(error, 'strerror', None) or error})"
        ) from None
    if not is_file:
        raise StorageError(
            f"{str(source)[:200]}: {'a folder, not a file' if is_folder else 'no such file'}"
        )
    return read_archive(source, str(source))


def read_archive(file: Path | IO[bytes], source: str) -> tuple[str, Header, Arrays]:
    """Kind, header and arrays of a path or an open file, which messages call `source`.

    Raises
    ------
    StorageError
        If the file is damaged, not an archive, or of a later version.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _refuse_zip_bomb(archive, source)
            if HEADER not in archive.namelist():  # a workbook, say, which is a zip file too
                raise StorageError(f"{source}: not a file saved by dynaesti")
            header = json.loads(archive.read(HEADER))
            _check_format(header, source)
            arrays = {
                name[:-4]: _read_array(archive, name)
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


def _check_format(header: Any, source: str) -> None:
    """Refuse files of other programs and of later versions."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StorageError(f"{source}: not a file saved by dynaesti")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise StorageError(
            f"{source}: written by a newer dynaesti (format {header.get('version')}, this one "
            f"reads up to {VERSION}); upgrade dynaesti to open it"
        )


def _refuse_zip_bomb(archive: zipfile.ZipFile, source: str) -> None:
    """Refuse a file that unpacks to far more than fits and curves do.

    A few kilobytes must not take the memory of the machine.
    """
    entries = archive.infolist()
    packed = sum(entry.compress_size for entry in entries)
    unpacked = sum(entry.file_size for entry in entries)
    header = next((entry.file_size for entry in entries if entry.filename == HEADER), 0)
    if (
        unpacked > ALWAYS_UNPACKED + MOST_UNPACKED * packed
        or header > ALWAYS_UNPACKED / 16 + MOST_UNPACKED * packed / 4
    ):
        raise StorageError(
            f"{source}: claims to unpack from {packed / 1e6:.1f} MB to {unpacked / 1e6:,.0f} MB, "
            f"which no saved fit or curve does; it was not opened"
        )


def _read_array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """One array, if the archive holds as many bytes as the array's own header claims.

    NumPy allocates what the header says before it reads: a false one must not cost memory.
    """
    with archive.open(name) as entry:
        version = np.lib.format.read_magic(entry)
        read_header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read_header(entry)
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if dtype.hasobject or n_bytes > archive.getinfo(name).file_size:
            raise ValueError(f"{name} claims what it does not hold")
    with archive.open(name) as entry:
        return np.asarray(np.lib.format.read_array(entry, allow_pickle=False))


# --- checks of what archives hold


def require(condition: Any, what: str) -> None:
    """Raise ValueError with the message `what` unless the condition holds."""
    if not condition:
        raise ValueError(what)


def check_array(
    array: npt.NDArray[Any], shape: tuple[int, ...], what: str, kind: str = "f"
) -> None:
    """Check an array of a file: shape, 64 bits, all finite.

    Parameters
    ----------
    array : array
        As it was read.
    shape : tuple of int
        The shape that it has to have.
    what : str
        Its name in messages.
    kind : {"f", "i", "b"}, default="f"
        Floats, integers or booleans (of 8 bits).

    Raises
    ------
    ValueError
        If it is of another shape or type, or not finite.
    """
    require(
        isinstance(array, np.ndarray) and array.shape == shape and array.dtype.kind == kind,
        f"{what} is malformed",
    )
    require(
        array.dtype.kind == "b" or (array.dtype.itemsize == 8 and np.isfinite(array).all()),
        f"{what} is malformed",
    )


def is_number(value: Any) -> bool:
    """Whether an entry of a header is a number: infinite ones are, NaN and booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
