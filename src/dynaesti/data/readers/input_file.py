"""A file to read rows from: on disk, or all that came through a pipe."""

from __future__ import annotations

import gzip
import io
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dynaesti.errors import ResponseError

STANDARD_INPUT = "-"
HEAD_BYTES = 1 << 20  # by which a file's format, encoding and delimiter are judged
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class InputFile:
    """A file that can be opened again and again; gzipped files are unpacked on the way."""

    name: str  # its path, or "-"
    content: bytes | None = None  # all bytes, where the file itself can be read only once
    part: str | None = None  # sheet of a workbook, or table of a database
    query: str | None = None  # to a database

    @property
    def label(self) -> str:
        """The file as messages call it."""
        return "standard input" if self.name == STANDARD_INPUT else Path(self.name).name

    @property
    def suffix(self) -> str:
        """The suffix of its name in lower case, without .gz."""
        path = Path(self.name)
        if path.suffix.lower() == ".gz" and len(path.suffixes) > 1:
            return path.suffixes[-2].lower()
        return path.suffix.lower()

    @cached_property
    def head(self) -> bytes:
        """The first bytes."""
        with self.open() as stream:
            return bytes(stream.read(HEAD_BYTES))

    def open(self) -> Any:
        """Open the file anew, as a stream of bytes (pyarrow's where that is installed)."""
        if not find_spec("pyarrow"):
            return self._open_without_arrow()
        import pyarrow as pa

        if self.content is not None:
            return pa.BufferReader(self.content)
        return pa.input_stream(self.name, compression="detect")

    def _open_without_arrow(self) -> Any:
        if self.content is not None:
            return io.BytesIO(self.content)
        if self.name.lower().endswith(".gz"):
            return gzip.open(self.name, "rb")
        return Path(self.name).open("rb")


def _unpacked_file(path: Path) -> bytes | None:
    """What a gzipped file holds whose name does not say that it is one; None for other files."""
    if path.suffix.lower() == ".gz":
        return None  # unpacked as it is read
    with path.open("rb") as stream:
        if stream.read(len(GZIP_MAGIC)) != GZIP_MAGIC:
            return None
    return gzip.decompress(path.read_bytes())


def unpacked(raw: bytes) -> bytes:
    """Bytes that may be gzipped, unpacked."""
    return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw


def find_input(name: str, part: str | None = None, query: str | None = None) -> InputFile:
    """The file of that path; standard input, pipes and devices are read at once."""
    if name != STANDARD_INPUT and Path(name).is_file():
        return InputFile(name, _unpacked_file(Path(name)), part, query)
    if name != STANDARD_INPUT:
        raw = Path(name).read_bytes()
    elif sys.stdin is None:
        raise ResponseError("standard input is closed; name a file")
    else:
        raw = sys.stdin.buffer.read()
    return InputFile(name, unpacked(raw), part, query)
