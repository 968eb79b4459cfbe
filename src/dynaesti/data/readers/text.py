"""Delimited text of any usual dialect, row by row.

Delimiter, encoding and quotes are found out, and what is damaged is named, not lost.
"""

from __future__ import annotations

import codecs
import csv
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynaesti.errors import ResponseError

BLOCK = 1 << 24  # bytes of text that are parsed at a time
DELIMITERS = ",;\t|"
LOOKED_AT = 20  # lines by which the delimiter is judged
MOSTLY = 0.8  # of them
SHOWN = 60  # characters of a line in a message
csv.field_size_limit(1 << 30)  # names may be long
Opener = Callable[[], Any]  # opens the file anew, as bytes


@dataclass(frozen=True)
class Piece:
    """Some rows in a row: text or whole numbers in named columns, from the file's row `start` on.

    And lines in between that are no rows.
    """

    columns: Any  # pyarrow.Table
    start: int
    notes: tuple[str, ...]
    broken: tuple[str, ...]
    line: Callable[[int], int]  # of a row


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    encoding: str
    delimiter: str
    columns: tuple[str, ...]
    above: int  # blank lines before the heading
    quoting: bool = True  # whether quotes hold cells together, over several lines too


class StrayQuoteError(Exception):
    """A quote swallows whole rows."""


def read_text(open_anew: Opener, head: bytes, label: str, rows: int | None) -> Iterator[Piece]:
    """The rows of a file in pieces of about so many.

    All at once without a number. Columns stay text except whole numbers.

    Names such as 007 and 1.10 are kept. Bytes that are not UTF-8 are read as Windows-1252, the
    others as they are; a quote that would swallow rows is taken for a mark like any other.
    """
    import pyarrow as pa

    encoding, notes = _encoding(head)
    dialect = _dialect(head, encoding, label, notes)
    start = 0
    while True:
        reading = _Reading(open_anew, label, dialect, notes, rows)
        try:
            for piece in reading.pieces(start):
                yield piece
                start = piece.start + piece.columns.num_rows
            return
        except pa.ArrowInvalid as error:
            if "UTF8" not in str(error) or dialect.encoding == REPAIRED:
                raise
            dialect = replace(dialect, encoding=REPAIRED)  # rows up to here are the same in both
        except StrayQuoteError:
            if start:
                raise ResponseError(
                    f"{label}: a quote somewhere below row {start:,} is never closed, and would "
                    f"swallow the rows behind "
                    "it; repair it"
                ) from None
            dialect = replace(dialect, quoting=False)


class _Reading:
    """One way through a file."""

    def __init__(
        self, open_anew: Opener, label: str, dialect: Dialect, notes: list[str], rows: int | None
    ) -> None:
        self.open = open_anew
        self.label = label
        self.dialect = dialect
        self.notes = notes
        self.rows = rows
        self.broken: list[str] = []
        self.repaired: _Repaired | None = None

    def pieces(self, skip: int) -> Iterator[Piece]:
        """From row `skip` on."""
        import pyarrow as pa

        batches: list[Any] = []
        size = start = 0
        for batch in self._batches():
            table = self._checked(pa.Table.from_batches([batch]))
            if skip:
                over = min(skip, table.num_rows)
                skip = skip - over
                start = start + over
                table = table.slice(over)
            batches.append(table)
            size += table.num_rows
            if self.rows is not None and size >= self.rows:
                yield self._piece(pa.concat_tables(batches), start)
                batches = []
                start = start + size
                size = 0
                self.broken = []
        if batches or not start:
            empty = pa.table({column: pa.array([], pa.string()) for column in self.dialect.columns})
            yield self._piece(pa.concat_tables(batches) if batches else empty, start)

    def _batches(self) -> Any:
        """The file's rows, text in every column."""
        import pyarrow as pa
        import pyarrow.csv as pc

        dialect = self.dialect
        columns = list(self.dialect.columns)
        stream: Any = self.open()
        if dialect.encoding == REPAIRED:
            self.repaired = _Repaired(stream)
            stream = pa.PythonFile(self.repaired, mode="r")
        elif dialect.encoding not in ("utf-8", "utf-8-sig"):
            stream = pa.BufferReader(
                stream.read().decode(dialect.encoding, "replace").lstrip("\ufeff").encode()
            )

        def skip(row: Any) -> str:
            if dialect.quoting and _holds_rows(row.text, dialect):
                self.swallowed = True
            self.broken.append(row.text[:SHOWN])
            return "skip"

        self.swallowed = False
        return pc.open_csv(
            stream,
            pc.ReadOptions(
                use_threads=False,
                column_names=columns,
                skip_rows=dialect.above + 1,
                block_size=BLOCK,
            ),
            pc.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=dialect.quoting,
                quote_char='"' if dialect.quoting else False,
                invalid_row_handler=skip,
            ),
            pc.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        )

    def _checked(self, table: Any) -> Any:
        """The rows of a batch, after a look at what quotes did to them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.dialect.quoting:
            for name in self.dialect.columns:
                over = table[name].filter(pc.match_substring(table[name], "\n"))
                if self.swallowed or any(
                    _holds_rows(cell, self.dialect) for cell in over.to_pylist()
                ):
                    raise StrayQuoteError
            return table
        cells = {name: table[name].to_pylist() for name in self.dialect.columns}
        stray = [_stray(row) for row in zip(*cells.values(), strict=True)]
        self.broken += [
            self.dialect.delimiter.join(cell or "" for cell in row)[:SHOWN]
            for row, bad in zip(zip(*cells.values(), strict=True), stray, strict=True)
            if bad
        ]
        kept = {
            name: [_unquoted(cell) for cell, bad in zip(column, stray, strict=True) if not bad]
            for name, column in cells.items()
        }
        return pa.table({name: pa.array(column, pa.string()) for name, column in kept.items()})

    def _piece(self, found: Any, start: int) -> Piece:
        import pyarrow as pa

        notes = list(self.notes) if not start else []
        if self.repaired is not None and self.repaired.odd:
            notes.append(
                f"{self.label}: {self.repaired.odd:,} bytes are not UTF-8 and were read as "
                f"Windows-1252"
            )
            self.repaired.odd = 0
        named = {
            column: whole_numbers(found[column])
            for column in self.dialect.columns
            if not column.startswith(UNNAMED) or found[column].null_count < found.num_rows
        }
        places = self._lines(most=len(self.broken)) if self.broken and self.rows is None else []
        shown = [
            f"{self.label}, line {number} {text!r}"
            for text, number in zip(self.broken, places, strict=False)
        ]
        return Piece(
            pa.table(named),
            start,
            tuple(notes),
            tuple(shown or [f"{self.label}, the line {text!r}" for text in self.broken]),
            lambda row: self._lines(wanted=row)[0],
        )

    def _lines(self, wanted: int | None = None, most: int = 1) -> list[int]:
        """The line of a wanted row, or of the first few that are no rows.

        The file is read again, since blank lines are not counted.
        """
        dialect = self.dialect
        encoding = "utf-8" if dialect.encoding == REPAIRED else dialect.encoding
        stream = io.TextIOWrapper(self.open(), encoding=encoding, errors="replace", newline="")
        reader = csv.reader(
            stream,
            delimiter=dialect.delimiter,
            quoting=csv.QUOTE_MINIMAL if dialect.quoting else csv.QUOTE_NONE,
        )
        row = -1
        before = 0
        odd = []
        for cells in reader:
            # a row may run over several lines
            first = before + 1
            before = reader.line_num
            if not cells:
                continue
            if row == -1:  # the heading
                row = 0
                continue
            if len(cells) != len(dialect.columns) or (not dialect.quoting and _stray(cells)):
                odd.append(first)
                if wanted is None and len(odd) == most:
                    break
                continue
            if row == wanted:
                return [first]
            row += 1
        return odd or [before]


# --- quotes
# --------------------------------------------------------------------------------------------------


def _holds_rows(text: str | None, dialect: Dialect) -> bool:
    """Whether a cell, or a line that is no row, has whole rows in it.

    A quote was never closed, or only by the next one.
    """
    inner = (text or "").splitlines()[1:]
    return any(line.count(dialect.delimiter) == len(dialect.columns) - 1 for line in inner)


def _stray(cells: Sequence[str | None]) -> bool:
    """Whether a row has quotes that do not come in pairs around a cell."""
    return any('"' in cell and not _is_quoted(cell) for cell in cells if cell)


def _is_quoted(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in cell[1:-1].replace('""', "")


def _unquoted(cell: str | None) -> str | None:
    return cell if cell is None or '"' not in cell else cell[1:-1].replace('""', '"') or None


# --- encodings
# ------------------------------------------------------------------------------------------------


REPAIRED = "utf-8, but for some bytes"
# the stream that this thread is decoding: error handlers of codecs are told nothing but the error
_decoding = threading.local()


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are not UTF-8 as Windows-1252 has them.

    A name that was pasted from elsewhere must not cost all the others theirs.
    """
    assert isinstance(error, UnicodeDecodeError)
    _decoding.stream.odd += error.end - error.start
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("dynaesti-windows", _as_windows)


class _Repaired(io.RawIOBase):
    """A stream of bytes as UTF-8."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.decoder = codecs.getincrementaldecoder("utf-8")("dynaesti-windows")
        self.rest = b""
        self.odd = 0  # bytes that were not UTF-8

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        parts = [self.rest]
        held = len(self.rest)
        while size < 0 or held < size:
            chunk = self.stream.read(BLOCK)
            _decoding.stream = self
            made = self.decoder.decode(chunk, final=not chunk).encode()
            parts.append(made)
            held += len(made)
            if not chunk:
                break
        whole = b"".join(parts)
        size = len(whole) if size < 0 else size
        self.rest = whole[size:]
        return whole[:size]


def _encoding(head: bytes) -> tuple[str, list[str]]:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", []
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return REPAIRED, []
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8", []


# --- dialects
# -------------------------------------------------------------------------------------------------


UNNAMED = "unnamed column "


def _dialect(head: bytes, encoding: str, label: str, notes: list[str]) -> Dialect:
    decoder = codecs.getincrementaldecoder("utf-8" if encoding == REPAIRED else encoding)("replace")
    text = decoder.decode(head)
    every = text.lstrip("\ufeff").splitlines()
    lines = [line for line in every if line.strip()]
    if not lines:
        raise ResponseError(f"{label}: the file is empty")
    delimiter = _delimiter(lines)
    if delimiter not in ",\t":
        notes.append(f"{label}: columns are separated by {delimiter!r}")
    columns = [column.strip() for column in next(csv.reader([lines[0]], delimiter=delimiter))]
    if _ends_in_delimiters(lines, delimiter, len(columns)):
        columns.append("")
    columns = [column or f"{UNNAMED}{k + 1}" for k, column in enumerate(columns)]
    twice = (
        [column for column in dict.fromkeys(columns) if columns.count(column) > 1]
        if len(set(columns)) < len(columns)
        else []
    )
    if twice:
        raise ResponseError(
            f"{label}: {len(twice)} columns occur twice (first: {twice[0]!r}); give each a name "
            f"of its own"
        )
    return Dialect(
        encoding, delimiter, tuple(columns), next(k for k, line in enumerate(every) if line.strip())
    )


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO("\n".join(lines[:LOOKED_AT])), delimiter=delimiter))


def _delimiter(lines: Sequence[str]) -> str:
    """The candidate that cuts the first lines into most, and equally many, columns.

    A heading may have one more or fewer.
    """

    def quality(delimiter: str) -> tuple[bool, bool, int]:
        counts = [len(row) for row in _cells(lines, delimiter)]
        body = counts[1:] or counts
        usual = max(set(body), key=body.count)
        even = body.count(usual) >= MOSTLY * len(body) and abs(counts[0] - usual) <= 1
        return usual > 1 and counts[0] > 1 and even, counts[0] == usual, counts[0]

    return max(DELIMITERS, key=quality)


def _ends_in_delimiters(lines: Sequence[str], delimiter: str, columns: int) -> bool:
    """Whether rows have one cell more than the heading, and nothing in it.

    A delimiter ends each line.
    """
    body = _cells(lines, delimiter)[1:]
    return bool(body) and sum(
        len(row) == columns + 1 and not row[-1].strip() for row in body
    ) >= MOSTLY * len(body)


def whole_numbers(column: Any) -> Any:
    """A text column as integers where every value is one, written plainly; else as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    return (
        numbers
        if pc.all(pc.equal(pc.cast(numbers, pa.string()), column)).as_py() is not False
        else column
    )
