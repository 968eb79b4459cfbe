"""Files of rows (text, JSON, Parquet; one, many, or piece by piece) to tables."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals as nw

from dynaesti.data.labels import display_names
from dynaesti.data.readers.input_file import STANDARD_INPUT, InputFile, find_input
from dynaesti.data.readers.json_lines import read_json
from dynaesti.data.readers.parquet import count_parquet_rows, read_parquet
from dynaesti.data.readers.plain import read_plain_text, stack_plain
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
}
FIRST_BYTES: dict[bytes, Reader] = {b"PAR1": read_parquet, b"{": read_json, b"[": read_json}
BYTES_PER_ROW = 40  # of text, roughly
GZIP_RATIO = 5  # by which gzip shrinks such text, roughly


def read_files(patterns: Sequence[str]) -> Table:
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
    parts = [table for name in files for table in _read_file(name, None)]
    columns = parts[0].frame.columns
    for part in parts[1:]:
        _require_same_columns(
            part.frame.columns, columns, part.sources[0].name, parts[0].sources[0].name
        )
    return Table(
        _stack([part.frame for part in parts], columns),
        None,
        tuple(source for part in parts for source in part.sources),
        tuple(dict.fromkeys([*notes, *(note for part in parts for note in part.notes)])),
        tuple(line for part in parts for line in part.broken),
    )


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
    except pa.ArrowInvalid:  # a column is numbers in one file and text in another
        texts = pa.schema([(name, pa.string()) for name in tables[0].column_names])
        whole = pa.concat_tables([table.cast(texts) for table in tables])
    return nw.from_native(whole, eager_only=True)


def read_pieces(patterns: Sequence[str], rows: int) -> Iterator[Table]:
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
        for piece in _read_file(name, rows):
            columns = columns or list(piece.frame.columns)
            _require_same_columns(piece.frame.columns, columns, name, files[0])
            yield replace(piece, notes=(*notes, *piece.notes))
            notes = ()


def rows_about(patterns: Sequence[str]) -> int:
    """Roughly how many rows the files hold: exact for Parquet, by size for text."""
    total = 0.0
    for name in (name for pattern in patterns for name in _expand(pattern)):
        if SUFFIXES.get(_suffix(name)) is read_parquet:
            _require_pyarrow(name)
            total += count_parquet_rows(name)
        elif name != STANDARD_INPUT:
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
    try:
        if pattern == STANDARD_INPUT or Path(pattern).exists():
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


def _read_file(name: str, rows: int | None) -> Iterator[Table]:
    """A file in tables of about `rows` rows; as one table if `rows` is None.

    The format follows from the suffix, or else from the first bytes.
    """
    if name != STANDARD_INPUT and Path(name).is_dir():
        raise FileError(f"{name}: a folder, not a file; give its files, such as {Path(name)}/*.csv")
    try:
        file = find_input(name)
        reader = SUFFIXES.get(_suffix(name)) or _reader_of_content(file)
        if reader is read_parquet:
            _require_pyarrow(name)
        elif reader is read_text and not find_spec("pyarrow"):
            reader = read_plain_text
        yield from reader(file, rows)
    except (ResponseError, MissingExtraError, MemoryError):
        raise
    except Exception as error:  # each reader has errors of its own
        first_line = (str(error).splitlines() or [""])[0]
        raise ResponseError(
            f"{name}: could not be read ({type(error).__name__}: {first_line})"
        ) from error


def _reader_of_content(file: InputFile) -> Reader:
    """The reader for what the file begins with; text if that is unknown."""
    begin = file.head.lstrip()
    return next(
        (reader for magic, reader in FIRST_BYTES.items() if begin.startswith(magic)), read_text
    )


def _suffix(name: str) -> str:
    """The suffix of a file name in lower case, without .gz."""
    path = Path(name)
    if path.suffix.lower() == ".gz" and len(path.suffixes) > 1:
        return path.suffixes[-2].lower()
    return path.suffix.lower()
