"""From files of any size to shards.

Read in pieces through the one data door, sorted past memory by duckdb, split by person.
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
    Labels,
    ParsedColumns,
    Table,
    TimeAxis,
    TimeOptions,
    as_labels,
    check_span,
    encode,
    find_column_roles,
    label_text,
    parse_columns,
    read_pieces,
    read_table,
    rows_about,
)
from dynaesti.errors import InputError, MissingExtraError, ResponseError, option
from dynaesti.sharded.shards import (
    Shard,
    Shards,
    default_shards,
    is_shards,
    shard_numbers,
    write_part,
)

PIECE = 1_000_000  # rows that are read at a time
MEMORY = "1GB"  # for sorting
Tell = Callable[[str], None]


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
    unit: str | None = None,
    unreadable: str = "refuse",
    timezone: str | None = None,
    time_format: str | None = None,
    code: Mapping[str, float] | None = None,
    distinct: bool = False,
    timeless: bool = False,
    force: bool = False,
    memory: str = MEMORY,
    tell: Tell | None = None,
) -> Shards:
    """Sort answers by person and time and split them by person into Parquet shards, in bounded
    memory.

    `data`: files (CSV, TSV, JSON lines, Parquet, also .gz), patterns, or a frame. `out`: a folder
    on this machine, which appears when all is done. `shards`: how many (default: about a million
    answers in each). `distinct` counts exact repeats once. The other options are those of
    `Responses.read`. `tell` hears of progress.
    """
    if unreadable not in ("refuse", "drop"):
        raise InputError(f"unreadable: {unreadable!r} is neither 'refuse' nor 'drop'")
    if not isinstance(out, str | PathLike) or not fspath(out):
        raise InputError(f"out: expected the name of a folder, got {out!r}")
    if not MEMORY_SIZE.fullmatch(str(memory)):
        raise InputError(f"memory: expected a size such as '1GB' or '500MB', got {memory!r}")
    target = Path(os.path.abspath(out))  # "." has a name too
    with exclusive_lock(target.with_name(f".{target.name}.lock"), f"out: {target}", temporary=True):
        _refuse_full(target, force)
        pieces, about = _pieces_of(data)
        count = default_shards(about) if shards is None else whole_number(shards, "shards", 1)
        reader = PieceReader(
            {"id": id, "item": item, "resp": resp, "time": time, "weight": weight, "model": model},
            TimeOptions(unit, timezone, time_format),
            unit,
            timeless,
            unreadable == "drop",
            code,
            count,
        )
        with _workshop(target) as work:
            made = _sorted_shards(
                reader, pieces, work, count, distinct, memory, tell or (lambda _: None)
            )
    return replace(made, folder=fspath(out))


MEMORY_SIZE = re.compile(r"\s*\d+(\.\d+)?\s*([KMGT]i?B|B|%)\s*", re.IGNORECASE)


def _refuse_full(target: Path, force: bool) -> None:
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
def _workshop(target: Path) -> Iterator[Path]:
    """A folder to work in beside the target, whose place it takes when all is done.

    What killed ones left behind goes first.
    """
    begin = f".{target.name}."
    ours = re.compile(re.escape(begin) + r"[^.]+\.part(\.old\.part)?")
    for left in target.parent.iterdir():
        if ours.fullmatch(left.name):
            shutil.rmtree(left, ignore_errors=True)
    try:
        work = Path(tempfile.mkdtemp(".part", begin, target.parent))
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


def _pieces_of(data: Any) -> tuple[Iterator[Table], int]:
    """Tables one after the other, and about how many rows they hold together."""
    several = (
        isinstance(data, list | tuple)
        and data
        and all(isinstance(name, str | PathLike) for name in data)
    )
    if isinstance(data, str | PathLike) or several:
        names = [str(name) for name in (data if several else [data])]
        return read_pieces(names, PIECE), rows_about(names)
    table = read_table(data)
    return iter([table]), len(table.frame)


@dataclass
class PieceReader:
    """Pieces of a table through one door.

    Roles, the kind of times and of labels are settled by the first one.
    """

    given: Mapping[str, str | None]
    clock: TimeOptions
    unit: str | None
    timeless: bool
    drop: bool
    code: Mapping[str, float] | None
    shards: int
    roles: dict[str, str | None] = field(default_factory=dict)
    axis: TimeAxis | None = None
    told_unit: str = ""
    whole: dict[str, bool] = field(default_factory=dict)  # role: are its labels whole numbers
    items: dict[Any, int] = field(default_factory=dict)
    models: dict[int, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    dropped: int = 0

    def read(self, piece: Table) -> dict[str, npt.NDArray[Any]]:
        """Typed columns of a piece: shard, id, time, item, resp, weight."""
        notes: list[str] = []
        if not self.roles:
            self.roles = find_column_roles(
                piece, self.given, notes, self.timeless, unanswered=False
            )
        rows = parse_columns(piece, self.roles, self.clock, notes, False, self.drop, self.code)
        for note in (*piece.notes, *notes):
            self.notes.setdefault(
                re.sub(r"such as \S+", "", note), note
            )  # once, whatever example each piece has for it
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
        return out if rows.weight is None else {**out, "weight": rows.weight}

    def _labels(self, values: Labels, role: str, piece: Table) -> Labels:
        """Whole numbers of Parquet and frames stay such.

        Everything else is text, and so are those beyond 2⁶³.
        """
        text = piece.sources and piece.sources[0].line is not None
        whole = values.dtype.kind in "iu" and values.dtype != np.uint64 and not text
        if self.whole.setdefault(role, whole) and not whole:
            raise ResponseError(
                f"{role} (column {self.roles[role]!r}): whole numbers before, other labels from "
                f"{piece.where(0)} on; make "
                "the files alike"
            )
        return (
            values.astype(np.int64)
            if self.whole[role]
            else as_labels([label_text(value) for value in values.tolist()])
        )

    def _item(self, rows: ParsedColumns, piece: Table) -> Ints:
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
            self.axis, self.told_unit = rows.axis, rows.unit(self.unit)
        if rows.time_format is not None:
            self.clock = replace(self.clock, time_format=rows.time_format)
        if (rows.axis.stamps, rows.axis.zoned) != (self.axis.stamps, self.axis.zoned):
            raise ResponseError(
                f"time (column {self.roles['time']!r}): from {piece.where(0)} on the times are of "
                f"another kind (numbers or "
                "stamps, with a zone or without) than before; make them alike"
            )
        times = rows.axis.restore(rows.offsets)
        return times.astype("datetime64[ns]").astype(np.int64) if rows.axis.stamps else times


def _sorted_shards(
    reader: PieceReader,
    pieces: Iterator[Table],
    work: Path,
    count: int,
    distinct: bool,
    memory: str,
    tell: Tell,
) -> Shards:
    try:
        import duckdb
        import pyarrow as pa
    except ImportError:
        raise MissingExtraError(
            "preparing shards needs duckdb and pyarrow: pip install 'dynaesti[scale]'"
        ) from None
    base = duckdb.connect(
        str(work / "sorting.db"),
        config={"memory_limit": memory, "temp_directory": str(work / "spill")},
    )
    base.execute("SET enable_progress_bar = false")  # it would write to standard output
    total = 0
    try:
        for piece in pieces:
            if not len(piece.frame):
                continue
            rows = pa.table(reader.read(piece))
            base.register("piece", rows)
            base.execute(
                "INSERT INTO answers SELECT * FROM piece"
                if total
                else "CREATE TABLE answers AS SELECT * FROM piece"
            )
            total += rows.num_rows
            tell(f"read {total:,} answers")
        if not total:
            raise ResponseError("the table has no rows")
        ends = base.execute("SELECT min(time), max(time) FROM answers").fetchall()[0]
        axis = _axis(reader, *ends)
        items, order = encode(
            as_labels(list(reader.items))
            if not reader.whole["item"]
            else np.array(list(reader.items)),
            "item",
        )
        tell("sorting")
        ordered: Any = base.sql(
            "SELECT * FROM answers ORDER BY ALL"
        )  # shard, id, time, item, response, weight
        stream = ordered.to_arrow_reader(100_000)
        parts = tuple(_written(stream, work, count, order, axis, distinct, tell))
    except duckdb.Error as error:
        raise ResponseError(
            f"sorting failed ({str(error).splitlines()[0]}); is the disk full?"
        ) from error
    finally:
        base.close()
        for leftover in work.glob("sorting.db*"):
            leftover.unlink()
        shutil.rmtree(work / "spill", ignore_errors=True)
    repeats = total - sum(part.rows for part in parts)
    notes = (
        *reader.notes.values(),
        *(
            [f"{repeats:,} answers that repeat another exactly were counted once"]
            if repeats
            else []
        ),
    )
    models = as_labels([reader.models[k] for k in np.argsort(order)]) if reader.models else None
    made = Shards(
        str(work),
        parts,
        as_labels(items.tolist()),
        models,
        axis,
        reader.told_unit,
        reader.roles,
        notes,
        reader.dropped,
        "weight" in reader.roles,
        uuid.uuid4().hex,
    )
    made.save()
    return made


def _axis(reader: PieceReader, first: float, last: float) -> TimeAxis:
    """The axis that begins at the earliest answer."""
    assert reader.axis is not None
    axis = replace(
        reader.axis, origin=float(first), origin_ns=int(first) if reader.axis.stamps else 0
    )
    if not axis.stamps:
        check_span(last - first, "time")
    return axis


def _written(
    stream: Any, work: Path, count: int, order: Ints, axis: TimeAxis, distinct: bool, tell: Tell
) -> Iterator[Shard]:
    """The sorted answers as files, a shard at a time.

    Shards that nobody fell into are empty files.
    """
    import pyarrow as pa

    waiting: list[Any] = []
    schema = stream.schema
    now = 0

    def flushed() -> Shard:
        table = pa.Table.from_batches(waiting, schema)
        item = order[table["item"].to_numpy()]
        resp = table["resp"].to_numpy()
        times = table["time"].to_numpy()
        offsets: Array = (times - axis.origin_ns) / DAY_NS if axis.stamps else times - axis.origin
        weight = table["weight"].to_numpy() if "weight" in schema.names else None
        ids = table["id"].combine_chunks()
        if distinct and len(ids):
            keep = _first_of_each(
                [
                    ids.dictionary_encode().indices.to_numpy(),
                    item,
                    times,
                    resp,
                    *([] if weight is None else [weight]),
                ]
            )
            ids = ids.take(pa.array(keep))
            item = item[keep]
            resp = resp[keep]
            offsets = offsets[keep]
            weight = None if weight is None else weight[keep]
        tell(f"wrote shard {now + 1} of {count}")
        return write_part(
            Folder(str(work)), f"shard-{now:05d}.parquet", ids, item, resp, offsets, weight
        )

    for batch in stream:
        numbers = batch.column("shard").to_numpy()
        for k in np.unique(numbers):
            while now < k:
                yield flushed()
                waiting = []
                now = now + 1
            a, b = np.searchsorted(numbers, [k, k + 1])
            waiting.append(batch.slice(int(a), int(b - a)))
    while now < count:
        yield flushed()
        waiting = []
        now = now + 1


def _first_of_each(columns: list[npt.NDArray[Any]]) -> Ints:
    """Rows that do not repeat the one before them."""
    same = np.all([np.diff(column) == 0 for column in columns], axis=0)
    return np.flatnonzero(np.concatenate([[True], ~same]))
