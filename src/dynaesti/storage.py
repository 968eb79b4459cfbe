"""The one saved format: a zip of a JSON header and NumPy arrays. Nothing in it is a pickle, so opening a file runs no code.

Files are written beside their target and moved into place, so an interrupted save leaves the old file whole.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dynaesti.errors import StorageError

FORMAT, VERSION = "dynaesti", 1


@contextmanager
def beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write next to the target, moved into place at the end; an interrupted write leaves the old one whole."""
    target = Path(path)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(target)
    except OSError as error:
        raise StorageError(f"{target}: could not be written ({error.strerror or error}); nothing was changed") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Path:
    """Save a header and arrays as one file of the given kind."""
    target = Path(path)
    with beside(target) as temporary, temporary.open("wb") as file:
        dump(file, kind, header, arrays)
        file.flush()
        os.fsync(file.fileno())
    return target


def dump(file: IO[bytes], kind: str, header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], packed: bool = True) -> None:
    """Write a header and arrays to an open file."""
    text = json.dumps({"format": FORMAT, "version": VERSION, "kind": kind, **header}, default=lambda number: number.item())
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        archive.writestr("header.json", text)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(kind, header, arrays) of a saved file."""
    source = Path(path)
    if not source.is_file():
        raise StorageError(f"{source}: {'a folder, not a file' if source.is_dir() else 'no such file'}")
    return parse(source, str(source))


def parse(file: Path | IO[bytes], source: str) -> tuple[str, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(kind, header, arrays) of an open file; `source` is its name."""
    try:
        with zipfile.ZipFile(file) as archive:
            header = json.loads(archive.read("header.json"))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise StorageError(f"{source}: not a file saved by dynaesti")
            if not isinstance(header.get("version"), int) or header["version"] > VERSION:
                raise StorageError(f"{source}: written by a newer dynaesti (format {header.get('version')}, this one reads up to "
                                   f"{VERSION}); upgrade dynaesti to open it")
            arrays = {name[:-4]: _array(archive, name) for name in archive.namelist() if name.endswith(".npy")}
    except StorageError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, OSError, NotImplementedError, RecursionError) as error:
        raise StorageError(f"{source}: damaged or not a file saved by dynaesti ({error})") from error
    return str(header.get("kind")), header, arrays


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """One array, after its header has been held against what the archive really holds: a false one must not cost memory."""
    with archive.open(name) as entry:
        version = np.lib.format.read_magic(entry)
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(entry)
        if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > archive.getinfo(name).file_size:
            raise ValueError(f"{name} claims what it does not hold")
    with archive.open(name) as entry:
        return np.asarray(np.lib.format.read_array(entry, allow_pickle=False))
