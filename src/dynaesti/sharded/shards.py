"""Answers on disk in shards.

Whole people in each, sorted by person and time, every shard small enough for memory.

A folder of Parquet files and `shards.json`, which lists them and holds what all share: the items'
names, the clock, what was decided while reading. A person's shard follows from the written form of
their id, so further answers find it without an index.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike, fspath
from typing import Any

import numpy as np

from dynaesti.core import Array, Folder, Ints, is_address
from dynaesti.data import (
    Labels,
    Responses,
    TimeAxis,
    as_labels,
    check_saved_responses,
    label_text,
    read_axis,
)
from dynaesti.errors import MissingExtraError, StorageError

# rows of a shard, of a small one, and how many small ones
SHARD = 1_000_000
SMALL = 100_000
FEW = 8
MANIFEST = "shards.json"
FORMAT = "dynaesti shards"
VERSION = 1


@dataclass(frozen=True)
class Shard:
    """One shard: its file, and how much it holds."""

    file: str  # within the folder, or a path or address of its own
    rows: int
    people: int
    crc: int | None = None  # of the whole file; none in folders of before

    def __post_init__(self) -> None:
        whole = all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0
            for n in (self.rows, self.people)
        )
        if not isinstance(self.file, str) or not whole or not isinstance(self.crc, int | None):
            raise ValueError(f"a shard is told as {asdict(self)}")


@dataclass(frozen=True, eq=False)
class Shards:
    """A folder of shards. `Shards.open("shards/")`; `dynaesti.prepare` makes them."""

    folder: str
    parts: tuple[Shard, ...]
    items: Labels
    models: Labels | None
    axis: TimeAxis
    unit: str
    columns: Mapping[str, str | None]
    notes: tuple[str, ...]
    dropped: int
    weighted: bool
    print: str  # by which these shards are known again

    @classmethod
    def open(cls, folder: str) -> Shards:
        """The shards in a folder, or at an address."""
        place = Folder(str(folder))
        if not place.exists(MANIFEST):
            raise StorageError(
                f"{folder}: no {MANIFEST} in this folder, so it holds no shards; `prepare` makes "
                f"them"
            )
        with place.reading(MANIFEST) as file:
            try:
                made = cls.from_header(str(folder), json.loads(file.read()))
            except StorageError:
                raise
            except Exception as error:  # whatever is wrong in a file from elsewhere
                raise StorageError(
                    f"{folder}: {MANIFEST} is damaged ({error}); prepare the shards again"
                ) from error
        for part in made.parts:
            if not place.may_reach(part.file):
                raise StorageError(
                    f"{folder}: {MANIFEST} names a shard at {part.file}, elsewhere than the "
                    f"folder; it was not opened"
                )
        return made

    @classmethod
    def from_header(cls, folder: str, told: Mapping[str, Any]) -> Shards:
        """From what `header` gave."""
        if told["format"] != FORMAT or told["version"] > VERSION:
            raise StorageError(
                f"{folder}: shards of another format or a newer version; upgrade dynaesti"
            )
        items = as_labels(told["items"])
        models = None if told["models"] is None else as_labels(told["models"])
        odd = len(set(items.tolist())) < items.size or (
            models is not None and models.size != items.size
        )
        if odd or not told["parts"] or not items.size:
            raise ValueError("shards or items are missing, or told twice")
        return cls(
            folder,
            tuple(Shard(**part) for part in told["parts"]),
            items,
            models,
            read_axis(told["axis"]),
            str(told["unit"]),
            dict(told["columns"]),
            tuple(map(str, told["notes"])),
            int(told["dropped"]),
            bool(told["weighted"]),
            str(told["print"]),
        )

    def save(self) -> None:
        """Write the list of the shards."""
        with Folder(self.folder).writing(MANIFEST) as file:
            file.write(json.dumps(self.header(), indent=1).encode())

    def header(self) -> dict[str, Any]:
        """Everything but the answers, for a file."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "parts": [asdict(part) for part in self.parts],
            "items": self.items.tolist(),
            "models": None if self.models is None else self.models.tolist(),
            "axis": asdict(self.axis),
            "unit": self.unit,
            "columns": dict(self.columns),
            "notes": list(self.notes),
            "dropped": self.dropped,
            "weighted": self.weighted,
            "print": self.print,
        }

    def fingerprint(self, options: Mapping[str, str]) -> str:
        """A short print of the shards and options, by which a checkpoint is known again."""
        return f"{zlib.crc32(json.dumps([self.header(), sorted(options.items())]).encode()):08x}"

    @property
    def rows(self) -> int:
        """Answers in all shards."""
        return sum(part.rows for part in self.parts)

    @property
    def people(self) -> int:
        """People in all shards."""
        return sum(part.people for part in self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def place_of(self, k: int) -> tuple[Folder, str]:
        """Where a shard's file lies: the folder, and its name there."""
        file = self.parts[k].file
        if is_address(file) or file.startswith("/"):
            folder, _, name = file.rpartition("/")
            return Folder(folder), name
        return Folder(self.folder), file

    def responses(self, k: int, clock: str = "calendar") -> Responses:
        """The answers of one shard; items are numbered as in all of them."""
        table = self._table(k)
        ids = table["id"].combine_chunks().dictionary_encode()
        people = ids.dictionary.to_numpy(zero_copy_only=False)
        person = ids.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        offsets = table["time"].to_numpy()
        weight = table["weight"].to_numpy() if self.weighted else None
        found = Responses(
            people if people.dtype.kind in "iu" else as_labels(people.tolist()),
            self.items,
            person,
            table["item"].to_numpy().astype(np.int64),
            table["resp"].to_numpy(),
            offsets,
            weight,
            self.axis,
            self.unit,
            "calendar",
            np.zeros(people.size),
            0,
            None,
            self.notes,
            self.models,
            np.arange(person.size),
            self.columns,
        )
        try:
            check_saved_responses(found)
        except ValueError as error:
            raise self._damaged(k, error) from error
        return found.on_clock(clock)

    def _table(self, k: int) -> Any:
        """A shard's file, after it was held against what the list says of it.

        A single turned bit would change somebody's answers.
        """
        place, name = self.place_of(k)
        part = self.parts[k]
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError("shards need pyarrow: pip install 'dynaesti[scale]'") from None
        with place.reading(name) as file:
            held = file.read()
        if part.crc is not None and zlib.crc32(held) != part.crc:
            raise self._damaged(k, "its checksum is another")
        try:
            table = pq.read_table(pa.BufferReader(held), page_checksum_verification=True)
            kinds = {
                "item": pa.types.is_integer,
                "resp": pa.types.is_float64,
                "time": pa.types.is_float64,
            }
            kinds |= {"weight": pa.types.is_float64} if self.weighted else {}
            odd = [
                column
                for column, right in kinds.items()
                if not right(table.schema.field(column).type)
            ]
            people = len(table["id"].unique())
            if (
                odd
                or any(table[column].null_count for column in ("id", *kinds))
                or (table.num_rows, people) != (part.rows, part.people)
            ):
                raise ValueError(
                    f"{table.num_rows:,} rows of {people:,} people in columns "
                    f"{', '.join(table.column_names)}, where the list "
                    f"says {part.rows:,} of {part.people:,}"
                )
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise self._damaged(k, error) from error
        return table

    def _damaged(self, k: int, why: Any) -> StorageError:
        place, name = self.place_of(k)
        return StorageError(
            f"{place.path(name)}: damaged ({why}); restore it, or prepare the shards again"
        )

    def values(self) -> Array:
        """All distinct responses."""
        found: set[float] = set()
        for k in range(len(self.parts)):
            found |= set(self._table(k)["resp"].unique().to_pylist())
        return np.array(sorted(found))

    def shard_of(self, ids: Sequence[Any]) -> Ints:
        """The shard that each id belongs to."""
        return shard_numbers(ids, len(self.parts))

    def with_parts(self, parts: Mapping[int, Shard]) -> Shards:
        """With some shards replaced."""
        return replace(self, parts=tuple(parts.get(k, part) for k, part in enumerate(self.parts)))


def default_shards(rows: float) -> int:
    """How many shards for so many rows.

    About a million in each, and a few even of less, so that no core is idle.
    """
    return max(1, round(rows / SHARD), min(FEW, int(rows // SMALL)))


def is_shards(data: Any) -> bool:
    """Whether data are shards, or name a folder of them."""
    if isinstance(data, Shards):
        return True
    return (
        isinstance(data, str | PathLike)
        and str(data) != "-"
        and Folder(fspath(data)).exists(MANIFEST)
    )


def shard_numbers(ids: Sequence[Any], shards: int) -> Ints:
    """A shard for each id, by its written form: the same in every process and version."""
    return np.array(
        [zlib.crc32(label_text(label).encode()) % shards for label in ids], dtype=np.int64
    )


def write_part(
    place: Folder,
    name: str,
    ids: Any,
    item: Ints,
    resp: Array,
    offsets: Array,
    weight: Array | None,
) -> Shard:
    """Write the sorted answers of one shard."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "id": ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids),
        "item": pa.array(item.astype(np.int32)),
        "resp": pa.array(resp),
        "time": pa.array(offsets),
    }
    if weight is not None:
        columns["weight"] = pa.array(weight)
    table = pa.table(columns)
    buffer = pa.BufferOutputStream()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        row_group_size=max(table.num_rows, 1),
        write_page_checksum=True,
    )
    held = buffer.getvalue()
    with place.writing(name) as file:
        file.write(held)
    return Shard(name, table.num_rows, len(table["id"].unique()), zlib.crc32(held))
