"""Encodings of text files: UTF-8, UTF-16, and UTF-8 with some bytes of Windows-1252."""

from __future__ import annotations

import codecs
import io
import threading
from typing import Any

REPAIRED = "utf-8, but for some bytes"  # as an encoding: read through `RepairedStream`
JUDGED_BYTES = 2000  # in which every other one is zero, in Latin text in UTF-16
BLOCK_BYTES = 1 << 24  # that are decoded at a time
# the stream that this thread is decoding: error handlers of codecs get nothing but the error
_decoding = threading.local()


def detect_encoding(head: bytes) -> str:
    """The encoding of a file that begins so: that of UTF-8, UTF-16 or UTF-32, or REPAIRED."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    unmarked = unmarked_utf16(head)
    if unmarked is not None:
        return unmarked
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return REPAIRED
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"


def unmarked_utf16(head: bytes) -> str | None:
    """The encoding of Latin text in UTF-16 without a mark; None if it is no such text."""
    if len(head) < 2 or head[:1] == head[1:2]:
        return None
    if not any(head[1:JUDGED_BYTES:2]):
        return "utf-16-le"
    return "utf-16-be" if not any(head[0:JUDGED_BYTES:2]) else None


def decode_head(head: bytes, encoding: str) -> str:
    """The text of a file's first bytes, the last of which may be part of a character."""
    if encoding == REPAIRED:
        return RepairedStream(io.BytesIO(head)).read().decode()
    return codecs.getincrementaldecoder(encoding)("replace").decode(head)


def text_encoding(encoding: str) -> str:
    """The encoding by Python's name; for REPAIRED, to be used with errors="replace"."""
    return "utf-8" if encoding == REPAIRED else encoding


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are not UTF-8 as Windows-1252, and count them.

    One name that was pasted from elsewhere must not spoil all the others.
    """
    assert isinstance(error, UnicodeDecodeError)
    _decoding.stream.n_repaired += error.end - error.start
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("dynaesti-windows", _as_windows)


class RepairedStream(io.RawIOBase):
    """A stream of bytes as UTF-8; bytes that are not UTF-8 are read as Windows-1252."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.decoder = codecs.getincrementaldecoder("utf-8")("dynaesti-windows")
        self.unread = b""
        self.n_repaired = 0  # bytes that were not UTF-8

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts = [self.unread]
        n_bytes = len(self.unread)
        while size < 0 or n_bytes < size:
            chunk = self.stream.read(BLOCK_BYTES)
            _decoding.stream = self
            decoded = self.decoder.decode(chunk, final=not chunk).encode()
            parts.append(decoded)
            n_bytes += len(decoded)
            if not chunk:
                break
        whole = b"".join(parts)
        size = len(whole) if size < 0 else size
        self.unread = whole[size:]
        return whole[:size]
