"""Files of the usual kinds (text, JSON lines, Parquet.

Alone, many, or piece by piece) to tables.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals as nw

from dynaesti.data.labels import display_names
from dynaesti.data.readers.table import Source, Table, from_rows
from dynaesti.data.readers.text import read_text
from dynaesti.errors import FileError, MissingExtraError, ResponseError

ROW_BYTES = 40  # of a row of text, roughly
HEAD = 1 << 20  # bytes by which a file's kind is judged
SUFFIXES = {
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".tab": "text",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
MAGIC = {b"PAR1": "parquet", b"{": "json", b"[": "json"}


# --- files
# -------------------------------------------------------------------------------------------


def read_files(patterns: Sequence[str]) -> Table:
    """All files named, one below the other."""
    _need_arrow()
    import pyarrow as pa

    files, notes = _filled(patterns)
    parts = [piece for name in files for piece in _pieces(name, None)]
    names = parts[0].frame.columns
    for part in parts[1:]:
        if set(part.frame.columns) != set(names):
            raise ResponseError(
                f"{part.sources[0].name} differs from {parts[0].sources[0].name} in its columns"
                f"{_differing(part.frame.columns, names)}; files that are read together need the "
                f"same ones"
            )
    tables = [part.frame.select(names).to_native() for part in parts]
    try:
        whole = (
            tables[0]
            if len(tables) == 1
            else pa.concat_tables(tables, promote_options="permissive")
        )
    except pa.ArrowInvalid:  # a column is numbers in one file and text in another
        texts = pa.schema([(name, pa.string()) for name in names])
        whole = pa.concat_tables([table.cast(texts) for table in tables])
    return Table(
        nw.from_native(whole, eager_only=True),
        None,
        tuple(s for part in parts for s in part.sources),
        tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.notes)])),
        tuple(line for part in parts for line in part.broken),
    )


def read_pieces(patterns: Sequence[str], rows: int) -> Iterator[Table]:
    """All files named, about so many rows at a time: for what memory cannot hold."""
    _need_arrow()
    names: list[str] | None = None
    files, notes = _filled(patterns)
    for name in files:
        for piece in _pieces(name, rows):
            names = names or list(piece.frame.columns)
            if set(piece.frame.columns) != set(names):
                raise ResponseError(
                    f"{name} differs from {files[0]} in its "
                    f"columns{_differing(piece.frame.columns, names)}; files that "
                    "are read together need the same ones"
                )
            yield replace(piece, notes=(*notes, *piece.notes))
            notes = ()


def rows_about(patterns: Sequence[str]) -> int:
    """Roughly how many rows the files hold."""
    _need_arrow()
    import pyarrow.parquet as pq

    total = 0.0
    for name in (name for pattern in patterns for name in _expanded(pattern)):
        if _suffix(Path(name)) in (".parquet", ".pq"):
            total += pq.read_metadata(name).num_rows
        elif name != "-":
            total += Path(name).stat().st_size / ROW_BYTES * (5 if name.endswith(".gz") else 1)
    return int(total)


def _need_arrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "reading files needs pyarrow: pip install 'dynaesti[files]', or hand over a data frame"
        ) from None


def _expanded(pattern: str) -> list[str]:
    try:
        if pattern == "-" or Path(pattern).exists():
            return [pattern]
    except (OSError, ValueError) as error:  # a name too long, or with a zero in it
        raise FileError(
            f"{display_names([pattern])}: no such file "
            f"({getattr(error, 'strerror', None) or error})"
        ) from None
    found = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else []
    if not found:
        raise FileError(
            f"{display_names([pattern], longest=200)}: "
            f"{'no file matches' if glob.has_magic(pattern) else 'no such file'}"
        )
    return found


def _filled(patterns: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The files named, and a note on those that were passed over.

    Of several files, some may be empty.
    """
    names = [name for pattern in patterns for name in _expanded(pattern)]
    empty = [
        name
        for name in names
        if len(names) > 1 and name != "-" and Path(name).is_file() and not Path(name).stat().st_size
    ]
    if not empty:
        return names, ()
    if len(empty) == len(names):
        raise ResponseError(f"all {len(names)} files are empty, first {names[0]}")
    return [name for name in names if name not in empty], (
        f"{len(empty)} of {len(names)} files are empty, first {empty[0]}",
    )


def _differing(found: Sequence[str], wanted: Sequence[str]) -> str:
    """How a file's columns differ from the first one's, in brackets."""
    lacks, more = (
        [name for name in a if name not in b] for a, b in ((wanted, found), (found, wanted))
    )
    told = [
        f"{word} {display_names(names)}"
        for word, names in (("it lacks", lacks), ("it has also", more))
        if names
    ]
    return f" ({'; '.join(told)})"


def _pieces(name: str, rows: int | None) -> Iterator[Table]:
    """A file in pieces of so many rows; all at once without a number."""
    path = Path(name)
    if name != "-" and path.is_dir():
        raise FileError(f"{name}: a folder, not a file; give its files, such as {path}/*.csv")
    label = "standard input" if name == "-" else path.name
    try:
        packed = (
            None if name != "-" and path.is_file() else _poured(name)
        )  # a pipe can be read only once
        head = _opened(name, packed).read(HEAD)
        kind = SUFFIXES.get(_suffix(path)) or next(
            (k for magic, k in MAGIC.items() if head.lstrip().startswith(magic)), "text"
        )
        yield from READERS[kind](name, packed, head, label, rows)
    except ResponseError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # each reader has errors of its own
        first = (str(error).splitlines() or [""])[0]
        raise ResponseError(
            f"{name}: could not be read ({type(error).__name__}: {first})"
        ) from error


def _poured(name: str) -> bytes:
    """All that comes out of standard input, a pipe or a device."""
    if name == "-" and sys.stdin is None:
        raise ResponseError("standard input is closed; name a file")
    if name == "-":
        raw = sys.stdin.buffer.read()
    else:
        with open(name, "rb") as file:
            raw = file.read()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def _suffix(path: Path) -> str:
    return (
        path.suffixes[-2]
        if path.suffix.lower() == ".gz" and len(path.suffixes) > 1
        else path.suffix
    ).lower()


def _opened(name: str, packed: bytes | None) -> Any:
    import pyarrow as pa

    return (
        pa.BufferReader(packed)
        if packed is not None
        else pa.input_stream(name, compression="detect")
    )


def _read_parquet(
    name: str,
    packed: bytes | None,
    head: bytes,  # noqa: ARG001  one signature for all readers
    label: str,
    rows: int | None,
) -> Iterator[Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rows is None:
        table = pq.read_table(name if packed is None else _opened(name, packed))
        yield Table(nw.from_native(table, eager_only=True), None, (Source(label, table.num_rows),))
        return
    start = 0
    for batch in pq.ParquetFile(name if packed is None else _opened(name, packed)).iter_batches(
        rows
    ):
        yield Table(
            nw.from_native(pa.Table.from_batches([batch]), eager_only=True),
            None,
            (Source(label, batch.num_rows, start),),
        )
        start += batch.num_rows


def _read_json(
    name: str, packed: bytes | None, head: bytes, label: str, rows: int | None
) -> Iterator[Table]:
    """JSON lines, or one list of objects."""
    if head.lstrip().startswith(b"["):
        text = codecs.decode(_opened(name, packed).read(), "utf-8-sig")
        try:
            yield _json_table(json.loads(text), [], label, 0, [])
        except json.JSONDecodeError as error:
            raise ResponseError(f"{label}: no valid JSON ({error})") from None
        return
    found: list[Any] = []
    places: list[int] = []
    broken: list[str] = []
    start = 0
    for number, line in enumerate(io.TextIOWrapper(_opened(name, packed), encoding="utf-8-sig"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            broken.append(f"{label}, line {number}")
            continue
        found.append(row)
        places.append(number)
        if len(found) == rows:
            yield _json_table(found, broken, label, start, places)
            start = start + len(found)
            found = []
            places = []
            broken = []
    if found or start == 0:
        yield _json_table(found, broken, label, start, places)


def _json_table(
    rows: list[Any], broken: list[str], label: str, start: int, places: list[int]
) -> Table:
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ResponseError(
            f"{label}: expected one JSON object a line, such as "
            f'{{"id": "ada", "item": 3, "resp": 1, "date": 5}}'
        )
    source = Source(label, len(rows), start, (lambda row: places[row - start]) if places else None)
    return Table(_as_arrow(from_rows(rows)), None, (source,), (), tuple(broken))


def _as_arrow(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    return nw.from_native(frame.to_arrow(), eager_only=True)


def _read_text(
    name: str, packed: bytes | None, head: bytes, label: str, rows: int | None
) -> Iterator[Table]:
    """Delimited text."""
    for piece in read_text(lambda: _opened(name, packed), head, label, rows):
        source = Source(label, piece.columns.num_rows, piece.start, piece.line)
        yield Table(
            nw.from_native(piece.columns, eager_only=True),
            None,
            (source,),
            piece.notes,
            piece.broken,
        )


READERS = {"text": _read_text, "parquet": _read_parquet, "json": _read_json}
