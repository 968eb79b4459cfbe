"""Any source of rows to one table: frames, columns, dicts, and files of the usual kinds, alone or many at a time."""

from __future__ import annotations

import codecs
import csv
import glob
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw

from dynaesti.errors import FileError, MissingExtraError, ResponseError
from dynaesti.frames import KINDS, frame_kind

BLOCK = 1 << 24  # bytes of text that are parsed at a time
ROW_BYTES = 40  # of a row of text, roughly
HEAD = 1 << 20  # bytes by which a file's kind is judged
DELIMITERS = ",;\t|"
csv.field_size_limit(1 << 30)  # names may be long
SUFFIXES = {".csv": "text", ".tsv": "text", ".txt": "text", ".tab": "text", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "json",
            ".ndjson": "json", ".json": "json"}
MAGIC = {b"PAR1": "parquet", b"{": "json", b"[": "json"}


@dataclass(frozen=True)
class Source:
    """A file's share of a table: so many rows from the file's row `start` on. `line` finds a row's line, where files have such."""

    name: str
    rows: int
    start: int = 0
    line: Callable[[int], int] | None = None

    def where(self, row: int) -> str:
        """The place of one of these rows."""
        at = self.start + row
        return f"{self.name}, row {at}" if self.line is None else f"{self.name}, line {self.line(at)}"


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
                return source.where(row)
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
    _need_arrow()
    import pyarrow as pa

    files, notes = _filled(patterns)
    parts = [piece for name in files for piece in _pieces(name, None)]
    names = parts[0].frame.columns
    for part in parts[1:]:
        if set(part.frame.columns) != set(names):
            raise ResponseError(f"{part.sources[0].name} differs from {parts[0].sources[0].name} in its columns"
                                f"{_differing(part.frame.columns, names)}; files that are read together need the same ones")
    tables = [part.frame.select(names).to_native() for part in parts]
    try:
        whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowInvalid:  # a column is numbers in one file and text in another
        texts = pa.schema([(name, pa.string()) for name in names])
        whole = pa.concat_tables([table.cast(texts) for table in tables])
    return Table(nw.from_native(whole, eager_only=True), None, tuple(s for part in parts for s in part.sources),
                 tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.notes)])),
                 tuple(line for part in parts for line in part.broken))


def read_pieces(patterns: Sequence[str], rows: int) -> Iterator[Table]:
    """All files named, about so many rows at a time: for what memory cannot hold."""
    _need_arrow()
    names: list[str] | None = None
    files, notes = _filled(patterns)
    for name in files:
        for piece in _pieces(name, rows):
            names = names or list(piece.frame.columns)
            if set(piece.frame.columns) != set(names):
                raise ResponseError(f"{name} differs from {files[0]} in its columns{_differing(piece.frame.columns, names)}; files that "
                                    "are read together need the same ones")
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
        raise MissingExtraError("reading files needs pyarrow: pip install 'dynaesti[files]', or hand over a data frame") from None


def _expanded(pattern: str) -> list[str]:
    if pattern == "-" or Path(pattern).exists():
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else []
    if not found:
        raise FileError(f"{pattern}: {'no file matches' if glob.has_magic(pattern) else 'no such file'}")
    return found


def _filled(patterns: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The files named, and a note on those that were passed over: of several files, some may be empty."""
    names = [name for pattern in patterns for name in _expanded(pattern)]
    empty = [name for name in names if len(names) > 1 and name != "-" and Path(name).is_file() and not Path(name).stat().st_size]
    if not empty:
        return names, ()
    if len(empty) == len(names):
        raise ResponseError(f"all {len(names)} files are empty, first {names[0]}")
    return [name for name in names if name not in empty], (f"{len(empty)} of {len(names)} files are empty, first {empty[0]}",)


def _differing(found: Sequence[str], wanted: Sequence[str]) -> str:
    """How a file's columns differ from the first one's, in brackets."""
    lacks, more = ([name for name in a if name not in b] for a, b in ((wanted, found), (found, wanted)))
    told = [f"{word} {', '.join(names)}" for word, names in (("it lacks", lacks), ("it has also", more)) if names]
    return f" ({'; '.join(told)})"


def _pieces(name: str, rows: int | None) -> Iterator[Table]:
    """A file in pieces of so many rows; all at once without a number."""
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
        yield from READERS[kind](name, packed, head, label, rows)
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


def _read_parquet(name: str, packed: bytes | None, head: bytes, label: str, rows: int | None) -> Iterator[Table]:  # noqa: ARG001
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rows is None:
        table = pq.read_table(name if packed is None else _opened(name, packed))
        yield Table(nw.from_native(table, eager_only=True), None, (Source(label, table.num_rows),))
        return
    start = 0
    for batch in pq.ParquetFile(name if packed is None else _opened(name, packed)).iter_batches(rows):
        yield Table(nw.from_native(pa.Table.from_batches([batch]), eager_only=True), None, (Source(label, batch.num_rows, start),))
        start += batch.num_rows


def _read_json(name: str, packed: bytes | None, head: bytes, label: str, rows: int | None) -> Iterator[Table]:
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
            start, found, places, broken = start + len(found), [], [], []
    if found or start == 0:
        yield _json_table(found, broken, label, start, places)


def _json_table(rows: list[Any], broken: list[str], label: str, start: int, places: list[int]) -> Table:
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ResponseError(f"{label}: expected one JSON object a line, such as {{\"id\": \"ada\", \"item\": 3, \"resp\": 1, \"date\": 5}}")
    source = Source(label, len(rows), start, (lambda row: places[row - start]) if places else None)
    return Table(_as_arrow(_from_rows(rows)), None, (source,), (), tuple(broken))


def _as_arrow(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    return nw.from_native(frame.to_arrow(), eager_only=True)


def _read_text(name: str, packed: bytes | None, head: bytes, label: str, rows: int | None) -> Iterator[Table]:
    """Delimited text of any usual dialect. Columns stay text except whole numbers: names such as 007 and 1.10 are kept."""
    import pyarrow as pa

    encoding, notes = _encoding(head, label)
    dialect = _dialect(head, encoding, label, notes)
    broken: list[str] = []

    def line(row: int) -> int:
        return _lines(name, packed, dialect, wanted=row)[0]

    def pieces(encoding: str) -> Iterator[Any]:
        batches, size, some = [], 0, False
        for batch in _text_batches(name, packed, replace(dialect, encoding=encoding), lambda row: broken.append(row.text[:60])):
            batches.append(batch)
            size += batch.num_rows
            if rows is not None and size >= rows:
                yield pa.Table.from_batches(batches)
                batches, size, some = [], 0, True
        if batches or not some:
            yield pa.Table.from_batches(batches, pa.schema([(column, pa.string()) for column in dialect.columns]))

    def told(found: Any, start: int) -> Table:
        typed = pa.table({column: _whole_numbers(found[column]) for column in dialect.columns})
        shown = [f"{label}, line {number} {text!r}" for text, number in
                 zip(broken, _lines(name, packed, dialect, most=len(broken)) if broken and rows is None else [], strict=False)]
        return Table(nw.from_native(typed, eager_only=True), None, (Source(label, found.num_rows, start, line),),
                     tuple(notes) if start == 0 else (), tuple(shown or [f"{label}, the line {text!r}" for text in broken]))

    start = 0
    try:
        for found in pieces(encoding):
            yield told(found, start)
            start += found.num_rows
            if rows is not None:
                broken.clear()
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
        if start:
            raise ResponseError(f"{label}: the text is not UTF-8 below row {start:,}; convert the file to UTF-8") from None
        broken.clear()
        notes.append(f"{label}: the text is not UTF-8 and was read as Windows-1252")
        dialect = replace(dialect, encoding="cp1252")
        for found in pieces("cp1252"):
            yield told(found, start)
            start += found.num_rows


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    encoding: str
    delimiter: str
    columns: tuple[str, ...]
    above: int  # blank lines before the heading
    quoted: bool


def _dialect(head: bytes, encoding: str, label: str, notes: list[str]) -> Dialect:
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    every = text.lstrip("\ufeff").splitlines()
    lines = [line for line in every if line.strip()]
    if not lines:
        raise ResponseError(f"{label}: the file is empty")
    delimiter = _delimiter(lines)
    if delimiter not in ",\t":
        notes.append(f"{label}: columns are separated by {delimiter!r}")
    columns = tuple(column.strip() for column in next(csv.reader([lines[0]], delimiter=delimiter)))
    twice = [column for column in dict.fromkeys(columns) if columns.count(column) > 1]
    if twice:
        raise ResponseError(f"{label}: {len(twice)} columns occur twice (first: {twice[0]!r}); give each a name of its own")
    return Dialect(encoding, delimiter, columns, next(k for k, line in enumerate(every) if line.strip()), '"' in text)


def _text_batches(name: str, packed: bytes | None, dialect: Dialect, broken: Callable[[Any], None]) -> Any:
    """The file's rows, text in every column."""
    import pyarrow as pa
    import pyarrow.csv as pc

    stream: Any = _opened(name, packed)
    if dialect.encoding not in ("utf-8", "utf-8-sig"):
        stream = pa.BufferReader(stream.read().decode(dialect.encoding, "replace").lstrip("\ufeff").encode())

    def skip(row: Any) -> str:
        broken(row)
        return "skip"

    columns = list(dialect.columns)
    return pc.open_csv(
        stream, pc.ReadOptions(use_threads=False, column_names=columns, skip_rows=dialect.above + 1, block_size=BLOCK),
        pc.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=dialect.quoted, invalid_row_handler=skip),
        pc.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True, null_values=[""],
                          quoted_strings_can_be_null=True))


def _lines(name: str, packed: bytes | None, dialect: Dialect, wanted: int | None = None, most: int = 1) -> list[int]:
    """The line of a wanted row, or of the first few that are no rows: the file is read again, since blank lines are not counted."""
    stream = io.TextIOWrapper(_opened(name, packed), encoding=dialect.encoding, errors="replace", newline="")
    reader, row, odd = csv.reader(stream, delimiter=dialect.delimiter), -1, []
    before = 0
    for cells in reader:
        first, before = before + 1, reader.line_num  # a row may run over several lines
        if not cells:
            continue
        if row == -1:  # the heading
            row = 0
            continue
        if len(cells) != len(dialect.columns):
            odd.append(first)
            if wanted is None and len(odd) == most:
                break
            continue
        if row == wanted:
            return [first]
        row += 1
    return odd


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
