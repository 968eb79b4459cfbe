"""Files of rows, and databases, to tables: one, many, or piece by piece."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import IOBase
from pathlib import Path
from typing import Any

import narwhals as nw

from dynaesti.data.labels import display_names
from dynaesti.data.readers.database import Database, database_at, is_database, read_database
from dynaesti.data.readers.excel import read_excel
from dynaesti.data.readers.input_file import STANDARD_INPUT, InputFile, find_input, unpacked
from dynaesti.data.readers.json_lines import read_json
from dynaesti.data.readers.parquet import count_parquet_rows, read_parquet
from dynaesti.data.readers.plain import read_plain_text, stack_plain
from dynaesti.data.readers.signatures import is_duckdb, is_sqlite, is_workbook, refuse_binary
from dynaesti.data.readers.statistics_files import READERS as STATISTICS_SUFFIXES
from dynaesti.data.readers.statistics_files import read_statistics
from dynaesti.data.readers.table import Table
from dynaesti.data.readers.text import read_text
from dynaesti.errors import FileError, MissingExtraError, ResponseError

Reader = Callable[[InputFile, int | None], Iterator[Table]]  # file, rows at a time
SUFFIXES: dict[str, Reader] = {
    ".csv": read_text,
    ".tsv": read_text,
    ".txt": read_text,
    ".tab": read_text,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".jsonl": read_json,
    ".ndjson": read_json,
    ".json": read_json,
    ".xlsx": read_excel,
    ".xlsm": read_excel,
    ".xlsb": read_excel,
    ".xls": read_excel,
    ".ods": read_excel,
    **dict.fromkeys(STATISTICS_SUFFIXES, read_statistics),
}
FIRST_BYTES: dict[bytes, Reader] = {b"PAR1": read_parquet, b"{": read_json, b"[": read_json}
ADDRESS = re.compile(r"(https?|ftp|s3|gs|az)://", re.IGNORECASE)
BYTES_PER_ROW = 40  # of text, roughly
GZIP_RATIO = 5  # by which gzip shrinks such text, roughly


@dataclass(frozen=True)
class FileParts:
    """Which part of files is read.

    Parameters
    ----------
    sheet : str, optional
        Sheet of a workbook, or table of a database. Default: the only one, or the largest sheet.
    query : str, optional
        SQL for a database.
    """

    sheet: str | None = None
    query: str | None = None


ALL_PARTS = FileParts()


def read_files(patterns: Sequence[str], parts: FileParts = ALL_PARTS) -> Table:
    """All files that paths or patterns name, as one table.

    A column that is numbers in one file and text in another is text.

    Raises
    ------
    FileError
        If there is no such file.
    ResponseError
        If files cannot be read, are all empty, or differ in their columns.
    """
    files, notes = _nonempty_files(patterns)
    return _stacked([table for name in files for table in _read_file(name, None, parts)], notes)


def _stacked(tables: Sequence[Table], notes: Sequence[str] = ()) -> Table:
    """Tables with the same columns as one, one below the other."""
    columns = tables[0].frame.columns
    for table in tables[1:]:
        _require_same_columns(
            table.frame.columns, columns, table.sources[0].name, tables[0].sources[0].name
        )
    return Table(
        _stack([table.frame for table in tables], columns),
        None,
        tuple(source for table in tables for source in table.sources),
        tuple(dict.fromkeys([*notes, *(note for table in tables for note in table.notes)])),
        tuple(line for table in tables for line in table.broken),
    )


def read_stream(stream: IOBase, parts: FileParts = ALL_PARTS) -> Table:
    """All that an open file of bytes or text holds, as one table."""
    read = stream.read()
    content = read.encode() if isinstance(read, str) else bytes(read)
    name = Path(str(getattr(stream, "name", "file"))).name
    file = InputFile(name, unpacked(content), parts.sheet, parts.query)
    if not file.content:
        raise ResponseError(f"{name}: it is empty, or was read to its end before")
    return _stacked(list(_read_input(file, None)))


def _stack(frames: list[Any], columns: Sequence[str]) -> Any:
    """Frames with the same columns, one below the other."""
    if len(frames) == 1:
        return frames[0]
    if not find_spec("pyarrow"):
        return stack_plain(frames)
    import pyarrow as pa

    tables = [frame.select(columns).to_native() for frame in frames]
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # numbers in one file and text in another
        texts = pa.schema([(name, pa.string()) for name in tables[0].column_names])
        whole = pa.concat_tables([table.cast(texts) for table in tables])
    return nw.from_native(whole, eager_only=True)


def read_pieces(
    patterns: Sequence[str], rows: int, parts: FileParts = ALL_PARTS
) -> Iterator[Table]:
    """All files that paths or patterns name, in tables of about `rows` rows.

    For data that memory cannot hold.

    Raises
    ------
    FileError
        If there is no such file.
    ResponseError
        If files cannot be read, are all empty, or differ in their columns.
    """
    columns: list[str] | None = None
    files, notes = _nonempty_files(patterns)
    for name in files:
        for piece in _read_file(name, rows, parts):
            columns = columns or list(piece.frame.columns)
            _require_same_columns(piece.frame.columns, columns, name, files[0])
            yield replace(piece, notes=(*notes, *piece.notes))
            notes = ()


def rows_about(patterns: Sequence[str]) -> int:
    """Roughly how many rows the files hold: exact for Parquet, by size for text."""
    total = 0.0
    for name in (name for pattern in patterns for name in _expand(pattern)):
        if is_database(name) or name == STANDARD_INPUT:
            continue
        if SUFFIXES.get(InputFile(name).suffix) is read_parquet:
            _require_pyarrow(name)
            total += count_parquet_rows(name)
        else:
            ratio = GZIP_RATIO if name.endswith(".gz") else 1
            total += Path(name).stat().st_size / BYTES_PER_ROW * ratio
    return int(total)


def _require_pyarrow(name: str) -> None:
    if not find_spec("pyarrow"):
        raise MissingExtraError(
            f"{name}: reading Parquet files needs pyarrow: pip install 'dynaesti[files]', or hand "
            f"over a data frame"
        )


def _require_same_columns(
    columns: Sequence[str], expected: Sequence[str], name: str, first: str
) -> None:
    """Refuse a file whose columns differ from those of the first file; their order may."""
    if set(columns) == set(expected):
        return
    lacks = [column for column in expected if column not in columns]
    has_also = [column for column in columns if column not in expected]
    differences = []
    if lacks:
        differences.append(f"it lacks {display_names(lacks)}")
    if has_also:
        differences.append(f"it has also {display_names(has_also)}")
    raise ResponseError(
        f"{name} differs from {first} in its columns ({'; '.join(differences)}); files that are "
        f"read together need the same ones"
    )


def _expand(pattern: str) -> list[str]:
    """The files that a path or a pattern names."""
    if is_database(pattern):
        return [pattern]
    try:
        if pattern == STANDARD_INPUT or Path(pattern).exists():
            return [pattern]
    except (OSError, ValueError) as error:  # a name too long, or with a zero in it
        raise FileError(
            f"{display_names([pattern])}: no such file "
            f"({getattr(error, 'strerror', None) or error})"
        ) from None
    if ADDRESS.match(pattern):
        raise FileError(
            f"{display_names([pattern])}: addresses of the web are not fetched; download the file, "
            f"and name that"
        )
    found = sorted(glob.glob(pattern, recursive=True)) if glob.has_magic(pattern) else []
    if not found:
        raise FileError(
            f"{display_names([pattern], longest=200)}: "
            f"{'no file matches' if glob.has_magic(pattern) else 'no such file'}"
        )
    return found


def _nonempty_files(patterns: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The files that patterns name, and a note if empty ones among several were left out."""
    names = [name for pattern in patterns for name in _expand(pattern)]
    if len(names) == 1:
        return names, ()
    empty = [
        name
        for name in names
        if name != STANDARD_INPUT and Path(name).is_file() and not Path(name).stat().st_size
    ]
    if not empty:
        return names, ()
    if len(empty) == len(names):
        raise ResponseError(f"all {len(names)} files are empty, first {names[0]}")
    note = f"{len(empty)} of {len(names)} files are empty, first {empty[0]}"
    return [name for name in names if name not in empty], (note,)


def _read_file(name: str, rows: int | None, parts: FileParts) -> Iterator[Table]:
    """A file in tables of about `rows` rows; as one table if `rows` is None.

    The format follows from the suffix, or else from the first bytes.
    """
    if name != STANDARD_INPUT and Path(name).is_dir():
        raise FileError(f"{name}: a folder, not a file; give its files, such as {Path(name)}/*.csv")
    try:
        if is_database(name):
            yield from read_database(database_at(name, parts.sheet, parts.query), rows)
            return
        yield from _read_input(find_input(name, parts.sheet, parts.query), rows)
    except (ResponseError, MissingExtraError, MemoryError):
        raise
    except Exception as error:  # each reader has errors of its own
        first_line = (str(error).splitlines() or [""])[0]
        raise ResponseError(
            f"{name}: could not be read ({type(error).__name__}: {first_line})"
        ) from error


def _read_input(file: InputFile, rows: int | None) -> Iterator[Table]:
    """A file that was found, by the reader of its format."""
    reader = _reader_of(file)
    _refuse_idle_options(file, reader)
    if reader is read_parquet:
        _require_pyarrow(file.name)
    elif reader is read_text and not find_spec("pyarrow"):
        reader = read_plain_text
    yield from reader(file, rows)


def _reader_of(file: InputFile) -> Reader:
    """The reader by the file's suffix, or else by what it begins with; text if that is unknown."""
    begin = file.head.lstrip()
    if is_workbook(file):
        return read_excel
    if is_sqlite(file) or is_duckdb(file):
        return _read_database_file
    found = SUFFIXES.get(file.suffix) or next(
        (reader for magic, reader in FIRST_BYTES.items() if begin.startswith(magic)), read_text
    )
    if found in (read_text, read_json, read_excel):
        refuse_binary(file)
    # text that some systems call .xls
    return read_text if found is read_excel else found


def _read_database_file(file: InputFile, rows: int | None) -> Iterator[Table]:
    """A file that is a database."""
    scheme = "sqlite" if is_sqlite(file) else "duckdb"
    return read_database(Database(scheme, file.name, file.label, file.part, file.query), rows)


def _refuse_idle_options(file: InputFile, reader: Reader) -> None:
    """Raise if a sheet or a query is asked of a file that has none."""
    if file.query is not None and reader is not _read_database_file:
        raise ResponseError(f"query: {file.label} is no database")
    if file.part is not None and reader not in (_read_database_file, read_excel):
        raise ResponseError(f"sheet: {file.label} is no workbook and no database")
