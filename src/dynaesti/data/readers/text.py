"""Delimited text of any usual dialect to tables; damaged lines are named, not lost."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import narwhals as nw

from dynaesti.data.readers.broken_lines import sort_broken
from dynaesti.data.readers.dialect import UNNAMED, Dialect, detect_dialect
from dynaesti.data.readers.encoding import BLOCK_BYTES, REPAIRED, RepairedStream, text_encoding
from dynaesti.data.readers.input_file import InputFile
from dynaesti.data.readers.quotes import SHOWN, has_stray_quote, holds_rows, unquoted
from dynaesti.data.readers.table import Source, Table
from dynaesti.errors import ResponseError

PROBED = 100  # values that are converted before all are
csv.field_size_limit(1 << 30)  # names may be long


class StrayQuoteError(Exception):
    """A quote that is never closed encloses whole rows."""


def read_text(file: InputFile, rows: int | None) -> Iterator[Table]:
    """A text file in tables of about `rows` rows; as one table if `rows` is None.

    Columns stay text, except those of plain whole numbers: names such as 007 and 1.10 are kept.
    Bytes that are not UTF-8 are read as Windows-1252. Where a quote would enclose whole rows,
    quotes are read as characters like any other.

    Raises
    ------
    ResponseError
        If the file is empty, columns have the same name, or a quote is never closed.
    """
    import pyarrow as pa

    dialect, notes = detect_dialect(file.head, file.label)
    start = 0  # rows that are done
    while True:
        reader = TextReader(file, dialect, notes, rows)
        try:
            for table in reader.tables(start):
                yield table
                start = table.sources[0].start + table.sources[0].rows
            return
        except pa.ArrowInvalid as error:
            if "UTF8" not in str(error) or dialect.encoding == REPAIRED:
                raise
            # rows up to here are the same in both encodings
            dialect = replace(dialect, encoding=REPAIRED)
        except StrayQuoteError:
            if start:
                raise ResponseError(
                    f"{file.label}: a quote somewhere below row {start:,} is never closed, and "
                    f"would swallow the rows behind it; repair it"
                ) from None
            dialect = replace(dialect, quoting=False)


class TextReader:
    """One pass through a text file, read in a given dialect.

    Parameters
    ----------
    file : InputFile
        The file.
    dialect : Dialect
        How it is written.
    notes : list of str
        Notes for the first table.
    rows : int, optional
        About how many rows a table has. Default: all.
    """

    def __init__(
        self, file: InputFile, dialect: Dialect, notes: list[str], rows: int | None
    ) -> None:
        self.file = file
        self.dialect = dialect
        self.notes = notes
        self.rows = rows
        self.broken: list[str] = []  # beginnings of lines that are no rows, since the last table
        self.repaired: RepairedStream | None = None
        self.encloses_rows = False  # whether a quote made one broken line of several rows

    def tables(self, skip: int) -> Iterator[Table]:
        """Tables of the rows from row `skip` on; at least one, if only of columns."""
        import pyarrow as pa

        batches: list[Any] = []
        size = 0
        start = 0
        for batch in self._batches():
            rows = self._check_quotes(pa.Table.from_batches([batch]))
            if skip:
                skipped = min(skip, rows.num_rows)
                skip -= skipped
                start += skipped
                rows = rows.slice(skipped)
            batches.append(rows)
            size += rows.num_rows
            if self.rows is not None and size >= self.rows:
                yield self._table(pa.concat_tables(batches), start)
                batches = []
                start += size
                size = 0
                self.broken = []
        if batches or not start:
            empty = pa.table({column: pa.array([], pa.string()) for column in self.dialect.columns})
            yield self._table(pa.concat_tables(batches) if batches else empty, start)

    def _batches(self) -> Any:
        """The file's rows in batches of pyarrow, with text in every column."""
        import pyarrow as pa
        import pyarrow.csv as pc

        dialect = self.dialect
        columns = list(dialect.columns)

        def skip_broken(row: Any) -> str:
            if dialect.quoting and holds_rows(row.text, dialect):
                self.encloses_rows = True
            self.broken.append(row.text[:SHOWN])
            return "skip"

        return pc.open_csv(
            self._open_as_utf8(),
            pc.ReadOptions(
                use_threads=False,
                column_names=columns,
                skip_rows=dialect.lines_above + 1,
                block_size=BLOCK_BYTES,
            ),
            pc.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=dialect.quoting,
                quote_char='"' if dialect.quoting else False,
                invalid_row_handler=skip_broken,
            ),
            pc.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
                quoted_strings_can_be_null=True,
            ),
        )

    def _open_as_utf8(self) -> Any:
        """Open the file, as a stream of UTF-8 whatever its encoding."""
        import pyarrow as pa

        stream = self.file.open()
        encoding = self.dialect.encoding
        if encoding == REPAIRED:
            self.repaired = RepairedStream(stream)
            return pa.PythonFile(self.repaired, mode="r")
        if encoding not in ("utf-8", "utf-8-sig"):
            text = stream.read().decode(encoding, "replace").lstrip("\ufeff")
            return pa.BufferReader(text.encode())
        return stream

    def _check_quotes(self, table: Any) -> Any:
        """The rows of a batch, without those that quotes have spoiled.

        Raises
        ------
        StrayQuoteError
            If a quote encloses whole rows.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = self.dialect.columns
        if self.dialect.quoting:
            for name in columns:
                with_lines = table[name].filter(pc.match_substring(table[name], "\n"))
                if self.encloses_rows or any(
                    holds_rows(cell, self.dialect) for cell in with_lines.to_pylist()
                ):
                    raise StrayQuoteError
            return table
        cells = {name: table[name].to_pylist() for name in columns}
        rows = list(zip(*cells.values(), strict=True))
        stray = [has_stray_quote(row) for row in rows]
        self.broken += [
            self.dialect.delimiter.join(cell or "" for cell in row)[:SHOWN]
            for row, bad in zip(rows, stray, strict=True)
            if bad
        ]
        kept = {
            name: [unquoted(cell) for cell, bad in zip(column, stray, strict=True) if not bad]
            for name, column in cells.items()
        }
        return pa.table({name: pa.array(column, pa.string()) for name, column in kept.items()})

    def _table(self, found: Any, start: int) -> Table:
        """Rows as a table; `start` is the file's row of the first.

        Columns without a name and without values are left out.
        """
        import pyarrow as pa

        label = self.file.label
        notes = list(self.notes) if not start else []
        if self.repaired is not None and self.repaired.n_repaired:
            notes.append(
                f"{label}: {self.repaired.n_repaired:,} bytes are not UTF-8 and were read as "
                f"Windows-1252"
            )
            self.repaired.n_repaired = 0
        lines, last_row = self._scan_lines() if self.broken and self.rows is None else ([], 0)
        broken, about_broken = sort_broken(
            self.broken, lines, last_row, self.dialect.delimiter, label
        )
        notes += about_broken
        named = {
            column: parse_integers(found[column])
            for column in self.dialect.columns
            if not column.startswith(UNNAMED) or found[column].null_count < found.num_rows
        }
        source = Source(label, found.num_rows, start, self._line_of_row)
        frame = nw.from_native(pa.table(named), eager_only=True)
        return Table(frame, None, (source,), tuple(notes), broken)

    def _line_of_row(self, row: int) -> int:
        """The line in which a row begins; the last line if there is no such row."""
        number = -1
        last_line = 0
        for line, is_row in self._scan():
            last_line = line
            number += is_row
            if is_row and number == row:
                break
        return last_line

    def _scan_lines(self) -> tuple[list[int], int]:
        """The lines of those that are no rows, and the line of the last row."""
        broken = []
        last_row = 0
        for line, is_row in self._scan():
            if is_row:
                last_row = line
            else:
                broken.append(line)
        return broken, last_row

    def _scan(self) -> Iterator[tuple[int, bool]]:
        """Read the file again: for each line below the heading its number, and if it is a row.

        Only so are blank lines, and rows over several lines, counted.
        """
        dialect = self.dialect
        encoding = text_encoding(dialect.encoding)
        stream = io.TextIOWrapper(self.file.open(), encoding=encoding, errors="replace", newline="")
        reader = csv.reader(
            stream,
            delimiter=dialect.delimiter,
            quoting=csv.QUOTE_MINIMAL if dialect.quoting else csv.QUOTE_NONE,
        )
        is_heading = True
        last_line = 0
        for cells in reader:
            first_line = last_line + 1
            last_line = reader.line_num
            if not cells or last_line <= dialect.lines_above:
                continue
            if is_heading:
                is_heading = False
                continue
            complete = len(cells) == len(dialect.columns)
            yield first_line, complete and (dialect.quoting or not has_stray_quote(cells))


# --- whole numbers


def parse_integers(column: Any) -> Any:
    """A text column as integers if every value is one, written plainly; else unchanged."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.cast(column.slice(0, PROBED), pa.int64())  # all of them take long to fail
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    written_plainly = pc.all(pc.equal(pc.cast(numbers, pa.string()), column)).as_py() is not False
    return numbers if written_plainly else column
