"""Parquet files to tables."""

from __future__ import annotations

from collections.abc import Iterator

import narwhals as nw

from dynaesti.data.readers.input_file import InputFile
from dynaesti.data.readers.table import Source, Table


def read_parquet(file: InputFile, rows: int | None) -> Iterator[Table]:
    """A Parquet file in tables of at most `rows` rows; as one table if `rows` is None."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = file.name if file.content is None else file.open()
    if rows is None:
        table = pq.read_table(source)
        yield Table(
            nw.from_native(table, eager_only=True), None, (Source(file.label, table.num_rows),)
        )
        return
    start = 0
    for batch in pq.ParquetFile(source).iter_batches(rows):
        yield Table(
            nw.from_native(pa.Table.from_batches([batch]), eager_only=True),
            None,
            (Source(file.label, batch.num_rows, start),),
        )
        start += batch.num_rows


def count_parquet_rows(name: str) -> int:
    """The number of rows of a Parquet file, from its footer."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(name).num_rows)
