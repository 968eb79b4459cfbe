"""Any source of rows to one table: frames, columns, dicts, and files of the usual kinds, alone or many at a time."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw

from dynaesti.errors import FileError, MissingExtraError, ResponseError
from dynaesti.frames import KINDS, frame_kind

HEAD = 1 << 20  # bytes by which a file's kind is judged
DELIMITERS = ",;\t|"
csv.field_size_limit(1 << 30)  # names may be long
SUFFIXES = {".csv": "text", ".tsv": "text", ".txt": "text", ".tab": "text", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "json",
            ".ndjson": "json", ".json": "json"}
MAGIC = {b"PAR1": "parquet", b"{": "json", b"[": "json"}


@dataclass(frozen=True)
class Source:
    """A file's share of a table. Files with lines count them from 1, below a heading."""

    name: str
    rows: int
    lines: bool
    first: int = 2  # line of the first row


@dataclass(frozen=True)
class Table:
    """Rows and columns, the library they came from, where each row stood, and what was decided while reading."""

    frame: nw.DataFrame[Any]
    kind: str | None = None
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()  # lines that are no rows

    def where(self, row: int) -> str:
        """The place of a row, as its owner would look for it."""
        for source in self.sources:
            if row < source.rows:
                return f"{source.name}, line {row + source.first}" if source.lines else f"{source.name}, row {row}"
            row -= source.rows
        return f"row {row}"


def read_table(data: Any) -> Table:
    """A table from a frame, a path (or `-`, a pattern, several), a mapping of columns or an iterable of dicts."""
    if isinstance(data, str | PathLike):
        return _read_files([str(data)])
    if isinstance(data, Mapping):
        return Table(_from_columns(data))
    try:
        frame = nw.from_native(data)
    except TypeError:
        frame = None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return Table(frame, frame_kind(data))
    if isinstance(data, Iterable):
        rows = list(data)
        if rows and all(isinstance(row, str | PathLike) for row in rows):
            return _read_files([str(row) for row in rows])
        if rows and all(isinstance(row, Mapping) for row in rows):
            return Table(_from_rows(rows))
    raise ResponseError("data: expected a data frame, a CSV, JSON-lines or Parquet path, or an iterable of dicts; got "
                        f"{type(data).__name__}")


def _from_rows(rows: Sequence[Mapping[str, Any]]) -> nw.DataFrame[Any]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return _from_columns({key: [row.get(key) for row in rows] for key in keys})


def _from_columns(columns: Mapping[Any, Any]) -> nw.DataFrame[Any]:
    lengths = {key: len(value) for key, value in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ResponseError(f"columns differ in length: {', '.join(f'{key} {n}' for key, n in lengths.items())}")
    named = {str(key): value for key, value in columns.items()}
    try:
        return nw.from_dict(named, backend=_backend())
    except MissingExtraError:
        raise
    except Exception:  # values of several types in one column: as text
        mixed = {key: value if _of_one_type(value) else [None if v is None else str(v) for v in value] for key, value in named.items()}
    try:
        return nw.from_dict(mixed, backend=_backend())
    except Exception as error:  # whatever the frame library makes of them
        raise ResponseError(f"data: the columns cannot be made into a table ({error})") from error


def _of_one_type(values: Any) -> bool:
    kinds = {type(v) for v in values if v is not None} if isinstance(values, list) else set()
    return len(kinds) <= 1 or kinds <= {int, float}


def _backend() -> Any:
    from importlib.util import find_spec

    found = next((name for name in ("polars", "pyarrow", "pandas") if name in KINDS and find_spec(name)), None)
    if found is None:
        raise MissingExtraError("reading data needs pandas, polars or pyarrow; install one of them: pip install polars")
    return found


# --- files -------------------------------------------------------------------------------------------


def _read_files(patterns: Sequence[str]) -> Table:
    """All files named, one below the other."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError("reading files needs pyarrow: pip install 'dynaesti[files]', or hand over a data frame") from None
    parts = [_read_one(name) for pattern in patterns for name in _expanded(pattern)]
    names = parts[0].frame.columns
    for part in parts[1:]:
        if set(part.frame.columns) != set(names):
            odd = sorted(set(part.frame.columns) ^ set(names))
            raise ResponseError(f"{part.sources[0].name} and {parts[0].sources[0].name} differ in their columns ({', '.join(odd)}); files "
                                "that are read together need the same ones")
    tables = [part.frame.select(names).to_native() for part in parts]
    try:
        whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowInvalid:  # a column is numbers in one file and text in another
        texts = pa.schema([(name, pa.string()) for name in names])
        whole = pa.concat_tables([table.cast(texts) for table in tables])
    return Table(nw.from_native(whole, eager_only=True), None, tuple(s for part in parts for s in part.sources),
                 tuple(dict.fromkeys(note for part in parts for note in part.notes)), tuple(line for part in parts for line in part.broken))


def _expanded(pattern: str) -> list[str]:
    if pattern == "-" or Path(pattern).exists():
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else []
    if not found:
        raise FileError(f"{pattern}: {'no file matches' if glob.has_magic(pattern) else 'no such file'}")
    return found


def _read_one(name: str) -> Table:
    path = Path(name)
    if name != "-" and not path.is_file():
        raise FileError(f"{name}: {f'a folder, not a file; give its files, such as {path}/*.csv' if path.is_dir() else 'no such file'}")
    label = "standard input" if name == "-" else path.name
    packed = None
    if name == "-":
        packed = sys.stdin.buffer.read()
        packed = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    try:
        head = _opened(name, packed).read(HEAD)
        kind = SUFFIXES.get(_suffix(path)) or next((k for magic, k in MAGIC.items() if head.lstrip().startswith(magic)), "text")
        return READERS[kind](name, packed, head, label)
    except ResponseError:
        raise
    except Exception as error:  # each reader has errors of its own
        first = (str(error).splitlines() or [""])[0]
        raise ResponseError(f"{name}: could not be read ({type(error).__name__}: {first})") from error


def _suffix(path: Path) -> str:
    return (path.suffixes[-2] if path.suffix.lower() == ".gz" and len(path.suffixes) > 1 else path.suffix).lower()


def _opened(name: str, packed: bytes | None) -> Any:
    import pyarrow as pa

    return pa.BufferReader(packed) if packed is not None else pa.input_stream(name, compression="detect")


def _read_parquet(name: str, packed: bytes | None, head: bytes, label: str) -> Table:  # noqa: ARG001
    import pyarrow.parquet as pq

    table = pq.read_table(name if packed is None else _opened(name, packed))
    return Table(nw.from_native(table, eager_only=True), None, (Source(label, table.num_rows, lines=False),))


def _read_json(name: str, packed: bytes | None, head: bytes, label: str) -> Table:
    """JSON lines, or one list of objects."""
    text = codecs.decode(_opened(name, packed).read(), "utf-8-sig")
    whole = head.lstrip().startswith(b"[")
    rows, broken = [], []
    for number, line in enumerate([text] if whole else text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            if whole:
                raise ResponseError(f"{label}: no valid JSON ({error})") from None
            broken.append(f"{label}, line {number}")
            continue
        rows += row if isinstance(row, list) else [row]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ResponseError(f"{label}: expected one JSON object a line, such as {{\"id\": \"ada\", \"item\": 3, \"resp\": 1, \"date\": 5}}")
    return Table(_as_arrow(_from_rows(rows)), None, (Source(label, len(rows), lines=False),), (), tuple(broken))


def _as_arrow(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    return nw.from_native(frame.to_arrow(), eager_only=True)


def _read_text(name: str, packed: bytes | None, head: bytes, label: str) -> Table:
    """Delimited text of any usual dialect. Columns stay text except whole numbers: names such as 007 and 1.10 are kept."""
    import pyarrow as pa
    import pyarrow.csv as pc

    encoding, notes = _encoding(head, label)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    every = text.lstrip("\ufeff").splitlines()
    lines = [line for line in every if line.strip()]
    if not lines:
        raise ResponseError(f"{label}: the file is empty")
    above = next(k for k, line in enumerate(every) if line.strip())  # blank lines before the heading
    delimiter = _delimiter(lines)
    if delimiter not in ",\t":
        notes.append(f"{label}: columns are separated by {delimiter!r}")
    columns = [column.strip() for column in next(csv.reader([lines[0]], delimiter=delimiter))]
    twice = [column for column in dict.fromkeys(columns) if columns.count(column) > 1]
    if twice:
        raise ResponseError(f"{label}: {len(twice)} columns occur twice (first: {twice[0]!r}); give each a name of its own")
    broken: list[str] = []

    def skip(row: Any) -> str:
        broken.append(f"{label}, {f'line {row.number}' if row.number is not None else 'the line'} {row.text[:60]!r}")
        return "skip"

    def table(many_lines: bool) -> Any:
        stream: Any = _opened(name, packed)
        if encoding not in ("utf-8", "utf-8-sig"):
            stream = pa.BufferReader(stream.read().decode(encoding, "replace").lstrip("\ufeff").encode())
        return pc.read_csv(
            stream, pc.ReadOptions(use_threads=False, column_names=columns, skip_rows=above + 1),
            pc.ParseOptions(delimiter=delimiter, newlines_in_values=many_lines, invalid_row_handler=skip),
            pc.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True, null_values=[""],
                              quoted_strings_can_be_null=True))

    try:
        found = table(many_lines='"' in text)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
        broken.clear()
        encoding = "cp1252"  # seen only further down
        notes.append(f"{label}: the text is not UTF-8 and was read as Windows-1252")
        found = table(many_lines='"' in text)
    typed = pa.table({column: _whole_numbers(found[column]) for column in columns})
    source = Source(label, found.num_rows, lines=True, first=above + 2)
    return Table(nw.from_native(typed, eager_only=True), None, (source,), tuple(notes), tuple(broken))


def _encoding(head: bytes, label: str) -> tuple[str, list[str]]:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", []
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252", [f"{label}: the text is not UTF-8 and was read as Windows-1252"]
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8", []


def _delimiter(lines: Sequence[str]) -> str:
    """The candidate that cuts the first lines into most, and equally many, columns."""
    def quality(delimiter: str) -> tuple[bool, int]:
        counts = [len(row) for row in csv.reader(io.StringIO("\n".join(lines[:20])), delimiter=delimiter)]
        usual = max(set(counts), key=counts.count)
        return counts[0] == usual and counts.count(usual) >= 0.8 * len(counts), counts[0]

    return max(DELIMITERS, key=quality)


def _whole_numbers(column: Any) -> Any:
    """A text column as integers where every value is one, written plainly; else as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if pc.all(pc.equal(pc.cast(numbers, pa.string()), column)).as_py() is not False else column


READERS = {"text": _read_text, "parquet": _read_parquet, "json": _read_json}
