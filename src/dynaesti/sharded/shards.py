"""Responses on disk in shards.

Each shard holds all responses of some people, sorted by person and time, and fits into memory. The
folder has a Parquet file for each shard and `shards.json`, the manifest: it lists them and holds
what they have in common (items, time axis, notes of the reader). A person's shard is a hash of
their id as text, so further responses find it without an index.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, fspath
from typing import Any

import numpy as np

from dynaesti.core import Array, Folder, Ints, is_address
from dynaesti.data import (
    NO_GROUP,
    Covariate,
    Labels,
    Responses,
    TimeAxis,
    as_labels,
    check_saved_responses,
    is_database,
    label_text,
    read_axis,
)
from dynaesti.errors import MissingExtraError, StorageError

SHARD_ROWS = 1_000_000
# less data are split too, into up to 8 shards of this size at least, so that no core is idle
SMALL_SHARD_ROWS = 100_000
MAX_SMALL_SHARDS = 8
MANIFEST = "shards.json"
FORMAT = "dynaesti shards"
VERSION = 1


@dataclass(frozen=True)
class Shard:
    """One shard: its file, and how much it holds."""

    file: str  # within the folder, or a path or address of its own
    rows: int
    people: int
    crc: int | None = None  # checksum of the file; None in folders of older versions

    def __post_init__(self) -> None:
        whole = all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0
            for n in (self.rows, self.people)
        )
        if not isinstance(self.file, str) or not whole or not isinstance(self.crc, int | None):
            raise ValueError(f"a shard is described as {asdict(self)}")


@dataclass(frozen=True, eq=False)
class Shards:
    """Responses in a folder of shards, which `prepare` makes and `Shards.open` opens.

    Parameters
    ----------
    folder : str
        The folder, or its address.
    parts : tuple of Shard
        File, rows, people and checksum of each shard.
    items : array (n_items,)
        Labels of the items.
    models : array (n_items,) or None
        Name of each item's model, where the table has a column of them.
    axis : TimeAxis
        Origin and unit of the times.
    unit : str
        What one unit of time is, for labels.
    columns : mapping of str to str
        Column of the table for each role ("id", "item", "resp", "time", …).
    notes : tuple of str
        What was decided while the table was read.
    dropped : int
        Rows that were left out.
    weighted : bool
        Whether responses have weights.
    identity : str
        By which a fit recognises its shards: other data, or prepared anew, have another one.
    groups : tuple of str, default ()
        Labels of people's groups, where the table has a column of them.
    covariates : mapping of str to tuple of str or None
        Columns that effects need: the levels of categories, None for numbers.

    Examples
    --------
    >>> import tempfile
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=3, per_person=8).table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = dy.prepare(table, folder, shards=2)
    ...     first = shards.responses(0)
    >>> len(shards), shards.people, shards.rows, shards.items.tolist()
    (2, 12, 96, ['i0', 'i1', 'i2'])
    >>> len(first) == shards.parts[0].rows
    True
    """

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
    identity: str
    groups: tuple[str, ...] = ()
    covariates: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: str) -> Shards:
        """Open the shards in a folder.

        Parameters
        ----------
        folder : str
            The folder, or its address, such as ``s3://bucket/shards``.

        Raises
        ------
        StorageError
            If the folder holds no shards, its manifest is damaged or newer than this version, or
            it names files on another host.
        """
        files = Folder(str(folder))
        if not files.exists(MANIFEST):
            raise StorageError(
                f"{folder}: no {MANIFEST} in this folder, so it holds no shards; `prepare` makes "
                f"them"
            )
        with files.reading(MANIFEST) as file:
            try:
                made = cls.from_header(str(folder), json.loads(file.read()))
            except StorageError:
                raise
            except Exception as error:  # whatever is wrong in a file from elsewhere
                raise StorageError(
                    f"{folder}: {MANIFEST} is damaged ({error}); prepare the shards again"
                ) from error
        for part in made.parts:
            if not files.may_reach(part.file):
                raise StorageError(
                    f"{folder}: {MANIFEST} names a shard at {part.file}, elsewhere than the "
                    f"folder; it was not opened"
                )
        return made

    @classmethod
    def from_header(cls, folder: str, header: Mapping[str, Any]) -> Shards:
        """Shards from the header that `header` makes."""
        if header["format"] != FORMAT or header["version"] > VERSION:
            raise StorageError(
                f"{folder}: shards of another format or a newer version; upgrade dynaesti"
            )
        items = as_labels(header["items"])
        models = None if header["models"] is None else as_labels(header["models"])
        inconsistent = len(set(items.tolist())) < items.size or (
            models is not None and models.size != items.size
        )
        if inconsistent or not header["parts"] or not items.size:
            raise ValueError("shards or items are missing, or named twice")
        return cls(
            folder,
            tuple(Shard(**part) for part in header["parts"]),
            items,
            models,
            read_axis(header["axis"]),
            str(header["unit"]),
            dict(header["columns"]),
            tuple(map(str, header["notes"])),
            int(header["dropped"]),
            bool(header["weighted"]),
            str(header["print"]),
            # absent in folders of older versions
            tuple(map(str, header.get("groups", ()))),
            {
                str(name): None if levels is None else tuple(map(str, levels))
                for name, levels in header.get("covariates", {}).items()
            },
        )

    def save(self) -> None:
        """Write the manifest."""
        with Folder(self.folder).writing(MANIFEST) as file:
            file.write(json.dumps(self.header(), indent=1).encode())

    def header(self) -> dict[str, Any]:
        """Everything but the responses, as JSON."""
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
            "print": self.identity,
            **({"groups": list(self.groups)} if self.groups else {}),
            **({"covariates": dict(self.covariates)} if self.covariates else {}),
        }

    def without_groups(self) -> Shards:
        """The shards as if people had no groups."""
        return replace(self, groups=()) if self.groups else self

    def fingerprint(self, options: Mapping[str, str]) -> str:
        """Short hash of the shards and of options, by which a checkpoint recognises its fit."""
        return f"{zlib.crc32(json.dumps([self.header(), sorted(options.items())]).encode()):08x}"

    @property
    def rows(self) -> int:
        """Number of responses in all shards."""
        return sum(part.rows for part in self.parts)

    @property
    def people(self) -> int:
        """Number of people in all shards."""
        return sum(part.people for part in self.parts)

    @property
    def nonempty(self) -> list[int]:
        """Numbers of the shards that have people."""
        return [k for k, part in enumerate(self.parts) if part.people]

    def __len__(self) -> int:
        return len(self.parts)

    def folder_and_name(self, k: int) -> tuple[Folder, str]:
        """Folder of shard k's file, and its name there."""
        file = self.parts[k].file
        if is_address(file) or file.startswith("/"):
            folder, _, name = file.rpartition("/")
            return Folder(folder), name
        return Folder(self.folder), file

    def responses(self, k: int, clock: str = "calendar") -> Responses:
        """Read the responses of one shard.

        Parameters
        ----------
        k : int
            Number of the shard, from 0.
        clock : {"calendar", "person"}, default "calendar"
            Whether time is the same for all, or counts from each person's first response.

        Returns
        -------
        Responses
            With the items of all shards.

        Raises
        ------
        StorageError
            If the file is missing, or is not as it was written.
        """
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
            self.groups,
            self._group(table, person, people.size),
            {
                name: Covariate(table[covariate_column(name)].to_numpy(), levels)
                for name, levels in self.covariates.items()
            },
        )
        try:
            check_saved_responses(found)
        except ValueError as error:
            raise self._damaged(k, error) from error
        return found.on_clock(clock)

    def _group(self, table: Any, person: Ints, n_people: int) -> Ints | None:
        """Number of each person's group; None where people have none."""
        if not self.groups:
            return None
        group = np.zeros(n_people, dtype=np.int64)
        group[person] = table["group"].to_numpy()
        if NO_GROUP in self.groups:
            group[group < 0] = self.groups.index(NO_GROUP)
        return group

    def _table(self, k: int) -> Any:
        """Read shard k's file, after its checksum: a flipped bit would change a response."""
        folder, name = self.folder_and_name(k)
        part = self.parts[k]
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise MissingExtraError("shards need pyarrow: pip install 'dynaesti[scale]'") from None
        with folder.reading(name) as file:
            content = file.read()
        if part.crc is not None and zlib.crc32(content) != part.crc:
            raise self._damaged(k, "its checksum is another")
        try:
            table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
            self._check_table(table, part)
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise self._damaged(k, error) from error
        return table

    def _check_table(self, table: Any, part: Shard) -> None:
        """Refuse a table that is not what the manifest says."""
        import pyarrow as pa

        kinds = {
            "item": pa.types.is_integer,
            "resp": pa.types.is_float64,
            "time": pa.types.is_float64,
        }
        if self.weighted:
            kinds["weight"] = pa.types.is_float64
        if self.groups:
            kinds["group"] = pa.types.is_integer
        kinds |= {covariate_column(name): pa.types.is_float64 for name in self.covariates}
        wrong = [name for name, test in kinds.items() if not test(table.schema.field(name).type)]
        missing = any(table[name].null_count for name in ("id", *kinds))
        people = len(table["id"].unique())
        if wrong or missing or (table.num_rows, people) != (part.rows, part.people):
            raise ValueError(
                f"{table.num_rows:,} rows of {people:,} people in columns "
                f"{', '.join(table.column_names)}, where the list says {part.rows:,} of "
                f"{part.people:,}"
            )

    def _damaged(self, k: int, why: Any) -> StorageError:
        """The error for a file that is not as it was written."""
        folder, name = self.folder_and_name(k)
        return StorageError(
            f"{folder.path(name)}: damaged ({why}); restore it, or prepare the shards again"
        )

    def values(self) -> Array:
        """All distinct response values, sorted."""
        found: set[float] = set()
        for k in range(len(self.parts)):
            found |= set(self._table(k)["resp"].unique().to_pylist())
        return np.array(sorted(found))

    def shard_of(self, ids: Sequence[Any]) -> Ints:
        """Number of the shard that each id belongs to, whether it is there or not."""
        return shard_numbers(ids, len(self.parts))

    def with_covariates(self, names: Collection[str]) -> Shards:
        """The shards with these covariates only, of those that they have."""
        kept = {name: levels for name, levels in self.covariates.items() if name in names}
        return replace(self, covariates=kept)

    def with_levels_of(self, more: Responses) -> Shards:
        """These shards with the levels of categories that further responses bring."""
        covariates = dict(self.covariates)
        for name, levels in covariates.items():
            if levels is not None:
                new = more.covariates[name].levels or ()
                covariates[name] = tuple(dict.fromkeys((*levels, *new)))
        return replace(self, covariates=covariates)

    def with_parts(self, parts: Mapping[int, Shard]) -> Shards:
        """These shards with some of them replaced."""
        return replace(self, parts=tuple(parts.get(k, part) for k, part in enumerate(self.parts)))


def default_shards(rows: float) -> int:
    """Number of shards for so many rows: about a million in each."""
    small = min(MAX_SMALL_SHARDS, int(rows // SMALL_SHARD_ROWS))
    return max(1, round(rows / SHARD_ROWS), small)


def is_shards(data: Any) -> bool:
    """Whether data are shards, or name a folder of them."""
    if isinstance(data, Shards):
        return True
    return (
        isinstance(data, str | PathLike)
        and str(data) != "-"
        and not is_database(str(data))
        and Folder(fspath(data)).exists(MANIFEST)
    )


def shard_numbers(ids: Sequence[Any], shards: int) -> Ints:
    """Number of the shard of each id: a hash of its text, the same in every process and version."""
    return np.array(
        [zlib.crc32(label_text(label).encode()) % shards for label in ids], dtype=np.int64
    )


def shard_file(shard: int, version: int | None = None) -> str:
    """Name of a shard's file; those of an update also say which version of the run they are of."""
    return f"shard-{shard:05d}{'' if version is None else f'.{version}'}.parquet"


def covariate_column(name: str) -> str:
    """Name of a covariate's column in the files, apart from those that all shards have."""
    return f"covariate {name}"


def write_shard(
    folder: Folder,
    name: str,
    ids: Any,
    item: Ints,
    resp: Array,
    offsets: Array,
    weight: Array | None,
    group: Ints | None = None,
    covariates: Mapping[str, Array] | None = None,
) -> Shard:
    """Write the sorted responses of one shard.

    Parameters
    ----------
    folder : Folder
        Where to write.
    name : str
        Name of the file.
    ids : array (n,)
        Person of each response.
    item, resp, offsets, weight : array (n,)
        Number of the item, response, time on the shards' axis, and weight (None: 1) of each.
    group : int array (n,), optional
        Number of the person's group.
    covariates : mapping of str to array (n,), optional
        Numbers, or numbers of levels, of each covariate.

    Returns
    -------
    Shard
        The entry for the manifest.
    """
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
    if group is not None:
        columns["group"] = pa.array(group.astype(np.int32))
    for covariate, values in (covariates or {}).items():
        columns[covariate_column(covariate)] = pa.array(values)
    table = pa.table(columns)
    buffer = pa.BufferOutputStream()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        row_group_size=max(table.num_rows, 1),
        write_page_checksum=True,
    )
    content = buffer.getvalue()
    with folder.writing(name) as file:
        file.write(content)
    return Shard(name, table.num_rows, len(table["id"].unique()), zlib.crc32(content))
