"""From files of any size to shards.

Tables are read in pieces like any other responses, sorted on disk by duckdb, and split by person.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Folder, Ints, exclusive_lock, umask, whole_number
from dynaesti.data import (
    DAY_NS,
    NO_GROUP,
    Covariate,
    FileParts,
    Labels,
    LayoutOptions,
    ParsedColumns,
    Table,
    TableReader,
    TimeAxis,
    TimeOptions,
    as_labels,
    check_span,
    encode,
    find_column_roles,
    label_text,
    parse_columns,
    parse_formula,
    read_pieces,
    read_table,
    refuse_changing_groups,
    rows_about,
)
from dynaesti.errors import InputError, MissingExtraError, ResponseError, option
from dynaesti.sharded.shards import (
    Shard,
    Shards,
    covariate_column,
    default_shards,
    is_shards,
    shard_file,
    shard_numbers,
    write_shard,
)

PIECE = 1_000_000  # rows that are read at a time
BATCH = 100_000  # sorted rows that are taken at a time
MEMORY = "1GB"  # for sorting
MEMORY_SIZE = re.compile(r"\s*\d+(\.\d+)?\s*([KMGT]i?B|B|%)\s*", re.IGNORECASE)
ROLES = ("id", "item", "resp", "time", "weight", "model", "group")
OnMessage = Callable[[str], None]


def prepare(
    data: Any,
    out: str | PathLike[str],
    *,
    shards: int | None = None,
    id: str | None = None,
    item: str | None = None,
    resp: str | None = None,
    time: str | None = None,
    weight: str | None = None,
    model: str | None = None,
    group: str | None = None,
    effects: str | None = None,
    unit: str | None = None,
    unreadable: str = "refuse",
    timezone: str | None = None,
    time_format: str | None = None,
    code: Mapping[str, float] | None = None,
    distinct: bool = False,
    timeless: bool = False,
    wide: bool | None = None,
    items: Any = None,
    key: Any = None,
    only: Any = None,
    sheet: str | None = None,
    query: str | None = None,
    force: bool = False,
    memory: str = MEMORY,
    on_progress: OnMessage | None = None,
) -> Shards:
    """Sort responses by person and time, and split them by person into Parquet files.

    Memory is bounded, whatever the size of the data. The folder appears when all is done.

    Parameters
    ----------
    data : path, list of paths or frame
        Files (CSV, TSV, JSON lines, Parquet, also gzipped), patterns of file names, or anything
        that `Responses.read` takes.
    out : path
        Folder on this machine. It must be empty, or not exist.
    shards : int, optional
        Number of shards. Default: about a million responses in each.
    id, item, resp, time, weight, model, group : str, optional
        Names of columns, as in `Responses.read`.
    effects : str, optional
        Formula of the effects that a fit is to have: its columns are kept too.
    unit, timezone, time_format : str, optional
        How times are written, as in `Responses.read`.
    unreadable : {"refuse", "drop"}, default "refuse"
        What happens if rows cannot be read: an error that names them, or a note that they are left
        out.
    code : mapping of word to number, optional
        Numbers that responses in words stand for.
    distinct : bool, default False
        Whether exact repeats of a response are counted once.
    timeless : bool, default False
        Whether the table may lack times; they are then 0.
    wide, items, key, only, sheet, query : optional
        How the table is laid out, right answers, items to keep, and which part of a workbook or
        database is read, as in `Responses.read`.
    force : bool, default False
        Whether shards that the folder holds already are replaced.
    memory : str, default "1GB"
        Memory for sorting, such as "500MB".
    on_progress : callable, optional
        Called with a line of text as the work proceeds.

    Returns
    -------
    Shards
        What the folder holds.

    Raises
    ------
    InputError
        If an option cannot be used, or the folder is not empty.
    ResponseError
        If the table cannot be used as it is.
    MissingExtraError
        If duckdb or pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=3, per_person=8).table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = dy.prepare(table, f"{folder}/shards", shards=2)
    ...     again = dy.Shards.open(f"{folder}/shards")
    >>> len(again), again.people, again.rows
    (2, 12, 96)
    """
    columns = dict(zip(ROLES, (id, item, resp, time, weight, model, group), strict=True))
    layout = LayoutOptions(wide, items, key, only)
    target = _check_options(out, unreadable, memory)
    with exclusive_lock(target.with_name(f".{target.name}.lock"), f"out: {target}", temporary=True):
        _check_target(target, force)
        pieces, count = _pieces_of(data, FileParts(sheet, query), shards)
        kinds = {} if effects is None else parse_formula(effects).columns
        times = TimeOptions(unit, timezone, time_format)
        drop = unreadable == "drop"
        reader = PieceReader(columns, times, unit, timeless, drop, code, count, kinds, layout)
        with _replacing(target) as work:
            made = _sort_into_shards(
                reader, pieces, work, count, distinct, memory, on_progress or (lambda _: None)
            )
    return replace(made, folder=fspath(out))


def _check_options(out: Any, unreadable: Any, memory: Any) -> Path:
    """The folder to write; options that cannot be used are refused."""
    if unreadable not in ("refuse", "drop"):
        raise InputError(f"unreadable: {unreadable!r} is neither 'refuse' nor 'drop'")
    if not isinstance(out, str | PathLike) or not fspath(out):
        raise InputError(f"out: expected the name of a folder, got {out!r}")
    if not MEMORY_SIZE.fullmatch(str(memory)):
        raise InputError(f"memory: expected a size such as '1GB' or '500MB', got {memory!r}")
    return Path(os.path.abspath(out))  # "." has a name too


def _check_target(target: Path, force: bool) -> None:
    """Refuse a folder with anything else in it than shards that may be written over."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not is_shards(target):
        raise InputError(f"out: {target} exists and is not empty; name another folder")
    if not force:
        raise InputError(
            f"out: {target} holds shards already; name another folder, or write over them with "
            f"{option('force', True)}"
        )


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A folder to work in, beside the target; it replaces the target at the end of the block.

    Folders that killed processes left behind are removed first.
    """
    prefix = f".{target.name}."
    leftover = re.compile(re.escape(prefix) + r"[^.]+\.part(\.old\.part)?")
    for path in target.parent.iterdir():
        if leftover.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    try:
        work = Path(tempfile.mkdtemp(".part", prefix, target.parent))
        work.chmod(0o777 & ~umask())
    except OSError as error:
        raise InputError(f"out: {target} cannot be made ({error.strerror})") from error
    try:
        yield work
        old = work.with_name(f"{work.name}.old.part")
        if target.exists():
            target.replace(old)
        try:
            work.replace(target)
        except OSError:
            if old.exists():
                old.replace(target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _pieces_of(data: Any, parts: FileParts, shards: int | None) -> tuple[Iterator[Table], int]:
    """Tables to read one after the other, and the number of shards, by default by their size."""
    count = None if shards is None else whole_number(shards, "shards", 1)
    several = (
        isinstance(data, list | tuple)
        and data
        and all(isinstance(name, str | PathLike) for name in data)
    )
    if isinstance(data, str | PathLike) or several:
        names = [str(name) for name in (data if several else [data])]
        return read_pieces(names, PIECE, parts), count or default_shards(rows_about(names))
    table = read_table(data)
    return iter([table]), count or default_shards(len(table.frame))


@dataclass
class PieceReader:
    """Incremental reader of the pieces of a table.

    The first piece decides which columns have which role, and of what kind times and labels are.
    """

    given: Mapping[str, str | None]  # role: column that the user named
    time_options: TimeOptions
    unit: str | None
    timeless: bool
    drop: bool  # whether unreadable rows are left out
    code: Mapping[str, float] | None
    shards: int
    kinds: dict[str, str]  # columns that effects need: numbers, categories, or either
    layout: LayoutOptions
    table_reader: TableReader | None = None
    roles: dict[str, str | None] = field(default_factory=dict)  # role: column
    axis: TimeAxis | None = None
    axis_unit: str = ""
    whole: dict[str, bool] = field(default_factory=dict)  # role: whether labels are whole numbers
    items: dict[Any, int] = field(default_factory=dict)  # label: number, as they came
    models: dict[int, Any] = field(default_factory=dict)  # item's number: its model
    groups: dict[str, int] = field(default_factory=dict)  # label: number, as they came
    # columns of categories: levels and their numbers, as they came
    levels: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    dropped: int = 0

    def read(self, piece: Table) -> dict[str, npt.NDArray[Any]]:
        """Typed columns of a piece: shard, id, time, item, resp, weight, group."""
        notes: list[str] = []
        self.table_reader = self.table_reader or TableReader.of(piece, self.given, self.layout)
        piece, named = self.table_reader.read(piece, self.given)
        if not self.roles:
            self.roles = find_column_roles(piece, named, notes, self.timeless, unanswered=False)
        words = self.table_reader.code_with(self.code)
        rows = parse_columns(
            piece, self.roles, self.time_options, notes, False, self.drop, words, self.kinds
        )
        for note in (*piece.notes, *notes):
            # once, whatever example each piece has for it
            self.notes.setdefault(re.sub(r"such as \S+", "", note), note)
        self.dropped += rows.dropped
        ids = self._labels(rows.ids, "id", piece)
        distinct, code = encode(ids, "id")
        shard = shard_numbers(distinct.tolist(), self.shards)[code]
        out = {
            "shard": shard,
            "id": ids,
            "time": self._times(rows, piece),
            "item": self._item(rows, piece),
            "resp": rows.resp,
        }
        if rows.weight is not None:
            out["weight"] = rows.weight
        if rows.groups is not None:
            labels, number = np.unique(rows.groups.astype(str), return_inverse=True)
            known = [
                self.groups.setdefault(name, len(self.groups)) if name else -1
                for name in labels.tolist()
            ]
            out["group"] = np.array(known, dtype=np.int64)[number]
        for name, column in rows.covariates.items():
            out[covariate_column(name)] = self._covariate(name, column)
        return out

    def _covariate(self, name: str, column: Covariate) -> Array:
        """Numbers, or numbers of levels as they came; the first piece decides which."""
        self.kinds[name] = column.kind
        if column.levels is None:
            return column.values
        known = self.levels.setdefault(name, {})
        number = [known.setdefault(level, len(known)) for level in column.levels]
        return np.array(number, dtype=np.float64)[column.values.astype(np.int64)]

    def sorted_levels(self) -> dict[str, tuple[tuple[str, ...], Ints] | None]:
        """Levels of categories in their order, with the number of each as they came.

        None for columns of numbers.
        """
        out: dict[str, tuple[tuple[str, ...], Ints] | None] = {}
        for name in self.kinds:
            out[name] = None
            if name in self.levels:
                came = list(self.levels[name])
                order = np.argsort(np.argsort(np.array(came)))
                out[name] = tuple(sorted(came)), order
        return out

    def _labels(self, values: Labels, role: str, piece: Table) -> Labels:
        """Labels as int64 or text.

        Whole numbers of Parquet files and frames stay numbers; everything else is text, and so are
        numbers beyond 2⁶³.
        """
        text = piece.sources and piece.sources[0].line is not None
        whole = values.dtype.kind in "iu" and values.dtype != np.uint64 and not text
        if self.whole.setdefault(role, whole) and not whole:
            raise ResponseError(
                f"{role} (column {self.roles[role]!r}): whole numbers before, other labels from "
                f"{piece.where(0)} on; make the files alike"
            )
        return (
            values.astype(np.int64)
            if self.whole[role]
            else as_labels([label_text(value) for value in values.tolist()])
        )

    def _item(self, rows: ParsedColumns, piece: Table) -> Ints:
        """Number of each row's item, in the order in which items came; their models are noted."""
        names, code = encode(self._labels(rows.names, "item", piece), "item")
        number = np.array(
            [self.items.setdefault(name, len(self.items)) for name in names.tolist()],
            dtype=np.int64,
        )
        if rows.models is not None:
            for item, model in dict.fromkeys(
                zip(number[code].tolist(), rows.models.tolist(), strict=True)
            ):
                if self.models.setdefault(item, model) != model:
                    raise ResponseError(
                        f"model: item {list(self.items)[item]!r} is given different models; each "
                        f"item needs one"
                    )
        return number[code]

    def _times(self, rows: ParsedColumns, piece: Table) -> npt.NDArray[Any]:
        """Absolute times: nanoseconds, or numbers."""
        if self.axis is None:
            self.axis = rows.axis
            self.axis_unit = rows.unit(self.unit)
        if rows.time_format is not None:
            self.time_options = replace(self.time_options, time_format=rows.time_format)
        if (rows.axis.stamps, rows.axis.zoned) != (self.axis.stamps, self.axis.zoned):
            raise ResponseError(
                f"time (column {self.roles['time']!r}): from {piece.where(0)} on the times are of "
                f"another kind (numbers or stamps, with a zone or without) than before; make them "
                f"alike"
            )
        times = rows.axis.restore(rows.offsets)
        return times.astype("datetime64[ns]").astype(np.int64) if rows.axis.stamps else times

    def sorted_items(self) -> tuple[Labels, Ints]:
        """Labels of all items in their order, and the number in it of each item as they came."""
        came = list(self.items)
        return encode(np.array(came) if self.whole["item"] else as_labels(came), "item")

    def final_axis(self, first: float, last: float) -> TimeAxis:
        """The axis that begins at the earliest response."""
        assert self.axis is not None
        if not self.axis.stamps:
            check_span(last - first, "time")
        origin_ns = int(first) if self.axis.stamps else 0
        return replace(self.axis, origin=float(first), origin_ns=origin_ns)


def _sort_into_shards(
    reader: PieceReader,
    pieces: Iterator[Table],
    work: Path,
    count: int,
    distinct: bool,
    memory: str,
    on_progress: OnMessage,
) -> Shards:
    """Read all pieces, sort them on disk, and write `count` shards into the folder `work`."""
    parts: list[Shard] = []
    folder = Folder(str(work))
    with _sorting_database(work, memory) as database:
        total = _insert_pieces(database, reader, pieces, on_progress)
        first, last = database.execute("SELECT min(time), max(time) FROM answers").fetchall()[0]
        axis = reader.final_axis(first, last)
        items, order = reader.sorted_items()
        levels = reader.sorted_levels()
        on_progress("sorting")
        # by shard, id, time, item, response, weight
        ordered = database.sql("SELECT * FROM answers ORDER BY ALL")
        for k, table in _tables_by_shard(ordered.to_arrow_reader(BATCH), count):
            group = _groups_of_rows(table, reader.groups)
            parts.append(_write_sorted(table, k, folder, order, axis, distinct, group, levels))
            on_progress(f"wrote shard {k + 1} of {count}")
    notes = _notes_of(reader, total - sum(part.rows for part in parts))
    models = as_labels([reader.models[k] for k in np.argsort(order)]) if reader.models else None
    covariates = {name: None if found is None else found[0] for name, found in levels.items()}
    made = Shards(
        str(work),
        tuple(parts),
        as_labels(items.tolist()),
        models,
        axis,
        reader.axis_unit,
        reader.roles,
        notes,
        reader.dropped,
        "weight" in reader.roles,
        uuid.uuid4().hex,
        tuple(reader.groups),
        covariates,
    )
    made.save()
    return made


def _notes_of(reader: PieceReader, repeats: int) -> tuple[str, ...]:
    """What was decided while the table was read."""
    notes = list(reader.notes.values())
    if repeats:
        notes.append(f"{repeats:,} answers that repeat another exactly were counted once")
    if NO_GROUP in reader.groups:
        notes.append(f"group: people who have none are a group of their own, {NO_GROUP!r}")
    return tuple(notes)


@contextmanager
def _sorting_database(work: Path, memory: str) -> Iterator[Any]:
    """A duckdb database that sorts within so much memory; its files are removed at the end."""
    try:
        import duckdb
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            "preparing shards needs duckdb and pyarrow: pip install 'dynaesti[scale]'"
        ) from None
    spill = work / "spill"
    database = duckdb.connect(
        str(work / "sorting.db"),
        config={"memory_limit": memory, "temp_directory": str(spill)},
    )
    database.execute("SET enable_progress_bar = false")  # it would write to standard output
    try:
        yield database
    except duckdb.Error as error:
        raise ResponseError(
            f"sorting failed ({str(error).splitlines()[0]}); is the disk full?"
        ) from error
    finally:
        database.close()
        for leftover in work.glob("sorting.db*"):
            leftover.unlink()
        shutil.rmtree(spill, ignore_errors=True)


def _insert_pieces(
    database: Any, reader: PieceReader, pieces: Iterator[Table], on_progress: OnMessage
) -> int:
    """Read all pieces into the table `answers`; the number of its rows."""
    import pyarrow as pa

    total = 0
    for piece in pieces:
        if not len(piece.frame):
            continue
        rows = pa.table(reader.read(piece))
        database.register("piece", rows)
        database.execute(
            "INSERT INTO answers SELECT * FROM piece"
            if total
            else "CREATE TABLE answers AS SELECT * FROM piece"
        )
        total += rows.num_rows
        on_progress(f"read {total:,} answers")
    if not total:
        raise ResponseError("the table has no rows")
    return total


def _tables_by_shard(stream: Any, count: int) -> Iterator[tuple[int, Any]]:
    """The number and the rows of each shard in turn, from batches that are sorted by shard.

    Shards without people have tables without rows.
    """
    import pyarrow as pa

    batches: list[Any] = []  # of the present shard
    present = 0
    for batch in stream:
        shard = batch.column("shard").to_numpy()
        for k in np.unique(shard):
            while present < k:
                yield present, pa.Table.from_batches(batches, stream.schema)
                batches = []
                present += 1
            a, b = np.searchsorted(shard, [k, k + 1])
            batches.append(batch.slice(int(a), int(b - a)))
    while present < count:
        yield present, pa.Table.from_batches(batches, stream.schema)
        batches = []
        present += 1


def _write_sorted(
    table: Any,
    k: int,
    folder: Folder,
    order: Ints,
    axis: TimeAxis,
    distinct: bool,
    group: Ints | None,
    levels: Mapping[str, tuple[tuple[str, ...], Ints] | None],
) -> Shard:
    """Write the sorted rows of one shard; with `distinct`, exact repeats once.

    Numbers of items and levels, as they came, become those in their `order` and `levels`.
    """
    import pyarrow as pa

    item = order[table["item"].to_numpy()]
    resp = table["resp"].to_numpy()
    times = table["time"].to_numpy()
    offsets: Array = (times - axis.origin_ns) / DAY_NS if axis.stamps else times - axis.origin
    weight = table["weight"].to_numpy() if "weight" in table.column_names else None
    covariates = {}
    for name, found in levels.items():
        values = table[covariate_column(name)].to_numpy()
        if found is not None:
            values = found[1].astype(np.float64)[values.astype(np.int64)]
        covariates[name] = values
    ids = table["id"].combine_chunks()
    if distinct and len(ids):
        person = ids.dictionary_encode().indices.to_numpy()
        columns = [person, item, times, resp]
        keep = _first_of_each(columns if weight is None else [*columns, weight])
        ids = ids.take(pa.array(keep))
        item = item[keep]
        resp = resp[keep]
        offsets = offsets[keep]
        weight = None if weight is None else weight[keep]
        group = None if group is None else group[keep]
        covariates = {name: values[keep] for name, values in covariates.items()}
    return write_shard(folder, shard_file(k), ids, item, resp, offsets, weight, group, covariates)


def _groups_of_rows(table: Any, groups: dict[str, int]) -> Ints | None:
    """Number of each row's group, the same for all rows of a person; None without a column.

    People without a group are one of their own, which is added to `groups`.
    """
    if "group" not in table.column_names:
        return None
    ids = table["id"].combine_chunks().dictionary_encode()
    people = as_labels(ids.dictionary.to_pylist())
    person = ids.indices.to_numpy().astype(np.int64)
    code = table["group"].to_numpy()
    named = np.flatnonzero(code >= 0)
    group = np.full(people.size, -1, dtype=np.int64)
    group[person[named]] = code[named]
    refuse_changing_groups(people, person[named], code[named], group, list(groups))
    if (group < 0).any():
        group[group < 0] = groups.setdefault(NO_GROUP, len(groups))
    return np.asarray(group[person], dtype=np.int64)


def _first_of_each(columns: list[npt.NDArray[Any]]) -> Ints:
    """Rows that do not repeat the one before them."""
    same = np.all([np.diff(column) == 0 for column in columns], axis=0)
    return np.flatnonzero(np.concatenate([[True], ~same]))
