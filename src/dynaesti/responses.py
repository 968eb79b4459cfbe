"""Who answered what, when and how: any frame, file or list of dicts to one checked, frozen `Responses`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.arrays import Array, Ints
from dynaesti.errors import InputError, MissingExtraError, ResponseError
from dynaesti.frames import KINDS, frame_kind
from dynaesti.labels import encode
from dynaesti.times import TimeAxis, read_times

SYNONYMS = {
    "id": ("id", "person", "student", "user", "user_id", "userid", "student_id", "learner", "respondent", "subject", "player", "pid",
           "person_id", "name"),
    "item": ("item", "problem", "question", "item_id", "problem_id", "question_id", "task", "exercise", "skill", "case", "hole", "route"),
    "resp": ("resp", "response", "correct", "score", "answer", "is_correct", "outcome", "result", "vote", "y", "value"),
    "time": ("date", "time", "timestamp", "ts", "when", "datetime", "day", "days", "year", "start_time", "wave"),
}
ABSENT = "\0"  # no column can be called so
WORDS = {"true": 1.0, "false": 0.0}
READERS = {".csv": "csv", ".tsv": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True, eq=False)
class Responses:
    """One row an answer, sorted by person, time and item. `people` and `items` are the labels as they came."""

    people: npt.NDArray[Any]
    items: npt.NDArray[Any]
    person: Ints
    item: Ints
    resp: Array
    offsets: Array
    weight: Array | None
    axis: TimeAxis
    unit: str
    clock: str
    origin: Array  # (people,): offset at which each person's clock starts; zeros on the calendar's
    dropped: int  # rows without a response
    frame: str | None
    notes: tuple[str, ...]
    models: npt.NDArray[Any] | None  # (items,) where the data name them
    row: Ints  # place of each answer in the table it came from
    columns: Mapping[str, str | None]  # the column that played each role

    def __len__(self) -> int:
        return self.person.size

    @cached_property
    def person_start(self) -> Ints:
        """Where each person's answers begin."""
        return np.searchsorted(self.person, np.arange(self.people.size + 1)).astype(np.int64)

    def on_clock(self, clock: str) -> Responses:
        """The same on the calendar, or with time counted from each person's first answer."""
        if clock == self.clock:
            return self
        origin = np.zeros(self.people.size)
        if clock == "person":
            origin = np.full(self.people.size, np.inf)
            np.minimum.at(origin, self.person, self.offsets)
        return replace(self, clock=clock, origin=origin)

    @property
    def clock_times(self) -> Array:
        """Times as the curves see them: on the calendar, or since each person's start."""
        return self.offsets - self.origin[self.person]

    @classmethod
    def read(cls, data: Any, *, id: str | None = None, item: str | None = None, resp: str | None = None,  # noqa: A002
             time: str | None = None, weight: str | None = None, model: str | None = None, unit: str | None = None,
             clock: str = "calendar", timeless: bool = False, unanswered: bool = False, known: bool = False) -> Responses:
        """From a frame (pandas, polars, pyarrow), a CSV or Parquet path, a mapping of columns or an iterable of dicts.

        `timeless` admits a table without times; `unanswered` one without responses (to be predicted), which then are NaN; `known` says
        that the names are those of an earlier table, whose responses and weights this one may lack.
        """
        if isinstance(data, Responses):
            named_here = [name for name in (id, item, resp, time, weight, model) if name is not None]
            if named_here and not known:
                raise InputError(f"column {named_here[0]!r}: the data are Responses already, whose columns have been read")
            return data.on_clock(clock)
        table, kind = _table(data)
        if not len(table):
            raise ResponseError("the table has no rows")
        notes: list[str] = []
        optional = {"time": timeless, "resp": unanswered}
        if known and weight not in table.columns:
            weight = None
        if known and unanswered and resp not in table.columns:
            optional["resp"], resp = True, ABSENT
        named = {key: None if given is ABSENT else _column(table, key, given, notes, optional.get(key, False))
                 for key, given in (("id", id), ("item", item), ("resp", resp), ("time", time))}
        extra = {key: _column(table, key, given, notes) for key, given in (("weight", weight), ("model", model)) if given is not None}
        return _build(table, {**named, **extra}, notes, kind, unit, clock, unanswered)

    @classmethod
    def from_matrices(cls, responses: Any, times: Any, people: Any = None, items: Any = None) -> Responses:
        """The paper's matrices: R (people × items, NaN where there is no answer) and T (the same shape, or one row for all)."""
        r = np.asarray(responses, dtype=np.float64)
        if r.ndim != 2:
            raise ResponseError(f"R: expected a matrix of people × items, got shape {r.shape}")
        raw = np.asarray(times)
        try:
            t = np.broadcast_to(raw, r.shape)
        except ValueError:
            raise ResponseError(f"T: shape {raw.shape} does not fit R's {r.shape}") from None
        rows, columns = np.nonzero(~np.isnan(r))
        if not rows.size:
            raise ResponseError("R: no answers at all")
        ids = np.arange(len(r)) if people is None else np.asarray(people)
        names = np.arange(r.shape[1]) if items is None else np.asarray(items)
        if ids.shape != (len(r),) or names.shape != (r.shape[1],):
            raise ResponseError(f"labels: {ids.size} people and {names.size} items for a matrix of shape {r.shape}")
        axis, offsets = read_times(np.ascontiguousarray(t[rows, columns]), "T")
        return _sorted(ids[rows], names[columns], r[rows, columns], offsets, None, None, axis, axis.unit, "calendar",
                       int(r.size - rows.size), None, ())

    def joined(self, other: Responses) -> Responses:
        """With further answers; both must be on one time axis."""
        def both(a: Array | None, b: Array | None) -> Array | None:
            if a is None and b is None:
                return None
            return np.concatenate([np.ones(n) if w is None else w for w, n in ((a, len(self)), (b, len(other)))])

        ids = np.concatenate([self.people.astype(object)[self.person], other.people.astype(object)[other.person]])
        names = np.concatenate([self.items.astype(object)[self.item], other.items.astype(object)[other.item]])
        offsets = np.concatenate([self.offsets, self.axis.offsets(other.axis.restore(other.offsets))])
        models = None if self.models is None else self.models[self.item]
        if models is not None and other.models is not None:
            models = np.concatenate([models, other.models[other.item]])
        whole = _sorted(ids, names, np.concatenate([self.resp, other.resp]), offsets, both(self.weight, other.weight), models, self.axis,
                        self.unit, self.clock, self.dropped + other.dropped, self.frame, self.notes)
        return replace(whole, columns=self.columns)

    def take(self, people: Ints) -> Responses:
        """The answers of some people (all items keep their numbers)."""
        rows = np.flatnonzero(np.isin(self.person, people))
        place = np.full(self.people.size, -1, dtype=np.int64)
        place[people] = np.arange(people.size)
        return Responses(self.people[people], self.items, place[self.person[rows]], self.item[rows], self.resp[rows], self.offsets[rows],
                         None if self.weight is None else self.weight[rows], self.axis, self.unit, self.clock, self.origin[people],
                         0, self.frame, self.notes, self.models, self.row[rows], self.columns)


def _table(data: Any) -> tuple[nw.DataFrame[Any], str | None]:
    """A narwhals frame, and the library it came from."""
    if isinstance(data, str | PathLike):
        return _read_file(Path(data)), None
    if isinstance(data, Mapping):
        return _from_columns(data), None
    try:
        frame = nw.from_native(data)
    except TypeError:
        frame = None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        return frame, frame_kind(data)
    if isinstance(data, Iterable):
        rows = list(data)
        if rows and all(isinstance(row, Mapping) for row in rows):
            keys = list(dict.fromkeys(key for row in rows for key in row))
            return _from_columns({key: [row.get(key) for row in rows] for key in keys}), None
    raise ResponseError(f"data: expected a data frame, a CSV or Parquet path, or an iterable of dicts; got {type(data).__name__}")


def _backend() -> Any:
    from importlib.util import find_spec

    found = next((name for name in ("polars", "pyarrow", "pandas") if name in KINDS and find_spec(name)), None)
    if found is None:
        raise MissingExtraError("reading data needs pandas, polars or pyarrow; install one of them: pip install polars")
    return found


def _from_columns(columns: Mapping[Any, Any]) -> nw.DataFrame[Any]:
    lengths = {key: len(value) for key, value in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ResponseError(f"columns differ in length: {', '.join(f'{key} {n}' for key, n in lengths.items())}")
    try:
        return nw.from_dict({str(key): value for key, value in columns.items()}, backend=_backend())
    except Exception as error:  # whatever the frame library makes of mixed values
        raise ResponseError(f"data: the columns cannot be made into a table ({error})") from error


def _read_file(path: Path) -> nw.DataFrame[Any]:
    if not path.is_file():
        raise ResponseError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    kind = READERS.get(path.suffixes[0].lower() if path.suffix == ".gz" and path.suffixes else path.suffix.lower())
    if kind is None:
        raise ResponseError(f"{path}: unknown kind of file; CSV, TSV and Parquet can be read")
    try:
        if kind == "parquet":
            return nw.read_parquet(str(path), backend=_backend())
        return nw.read_csv(str(path), backend=_backend(), separator="\t" if kind == "tsv" else ",")
    except MissingExtraError:
        raise
    except Exception as error:  # each library has errors of its own
        raise ResponseError(f"{path}: could not be read as {kind} ({type(error).__name__}: {str(error).splitlines()[0]})") from error


def _column(table: nw.DataFrame[Any], key: str, given: str | None, notes: list[str], optional: bool = False) -> str | None:
    """The name of the column that plays a role: as given, the default, or a synonym, which is told."""
    names = [str(name) for name in table.columns]
    if given is not None:
        if given in names:
            return given
        near = get_close_matches(str(given), names, n=3, cutoff=0.4)
        raise ResponseError(f"{key}: no column {given!r}; {f'did you mean {near[0]!r}? ' if near else ''}There are: {', '.join(names)}")
    lowered = {name.lower(): name for name in reversed(names)}
    for synonym in SYNONYMS[key]:
        if synonym in lowered:
            if synonym != SYNONYMS[key][0]:
                notes.append(f"{key} is column {lowered[synonym]!r}")
            return lowered[synonym]
    if optional:
        return None
    near = [name for synonym in SYNONYMS[key] for name in get_close_matches(synonym, names, n=1, cutoff=0.7)]
    hint = f"; did you mean {key}={near[0]!r}?" if near else f"; name it: {key}='…'"
    rest = ", or fit one constant ability per person (bandwidth=inf)" if key == "time" else ""
    raise ResponseError(f"no column for {key} among {', '.join(names)}{hint}{rest}")


def _build(table: nw.DataFrame[Any], named: Mapping[str, str | None], notes: list[str], kind: str | None, unit: str | None,
           clock: str, unanswered: bool) -> Responses:
    resp, missing = np.full(len(table), np.nan), np.zeros(len(table), dtype=bool)
    if named["resp"] is not None:
        resp, missing = _numbers(table[named["resp"]], f"resp (column {named['resp']!r})")
    keep = np.flatnonzero(~missing | unanswered)
    if not keep.size:
        raise ResponseError(f"resp (column {named['resp']!r}): all {len(table)} responses are missing")
    ids, names = (_labels(table, key, named[key], keep) for key in ("id", "item"))
    weight = models = None
    by = named.get("weight")
    if by is not None:
        weight, blank = _numbers(table[by], f"weight (column {by!r})")
        weight = weight[keep]
        if blank[keep].any() or (weight < 0).any():
            raise ResponseError(f"weight (column {by!r}): {int(blank[keep].sum() + (weight < 0).sum())} values are missing "
                                "or negative; give numbers of at least 0")
    if named.get("model"):
        models = _labels(table, "model", named["model"], keep)
    if named["time"] is None:
        axis, offsets = TimeAxis(0.0, 0, stamps=False, zoned=False), np.zeros(keep.size)
    else:
        axis, offsets = _times(table[named["time"]], keep, named["time"])
    if axis.stamps and unit not in (None, "days"):
        raise InputError(f"unit: timestamps are counted in days, not {unit!r}; convert them to numbers to use another unit")
    read = _sorted(ids, names, resp[keep], offsets, weight, models, axis, unit or axis.unit, clock, int(missing.sum()), kind, tuple(notes))
    return replace(read, row=keep[read.row], columns=named)


def _labels(table: nw.DataFrame[Any], key: str, column: str | None, keep: Ints) -> npt.NDArray[Any]:
    assert column is not None
    series = table[column]
    blank = series.is_null().to_numpy().astype(bool)
    values = np.asarray(series.to_numpy())[keep]
    blank = blank[keep] | ((values.dtype.kind == "f") & _is_nan(values))
    if blank.any():
        raise ResponseError(f"{key} (column {column!r}): {int(blank.sum())} of {keep.size} rows have none (first: row "
                            f"{keep[int(blank.argmax())]}); drop them or fill them in")
    if values.dtype.kind == "f" and np.all(values == np.floor(values)) and series.dtype.is_integer():
        values = values.astype(np.int64)  # whole numbers that nulls elsewhere had turned into floats
    return values


def _is_nan(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)


def _numbers(series: nw.Series[Any], name: str) -> tuple[Array, npt.NDArray[np.bool_]]:
    """A column as floats and which are missing; text is parsed where it is numbers, else refused with an example."""
    missing = series.is_null().to_numpy().astype(bool)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        values = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    else:
        raw = np.asarray(series.to_numpy(), dtype=object)
        values = np.full(raw.size, np.nan)
        for k, value in enumerate(raw):
            text = "" if missing[k] else str(value).strip()
            if text == "" or text.lower() in ("na", "nan", "none", "null"):
                missing[k] = True
                continue
            try:
                values[k] = WORDS[text.lower()] if text.lower() in WORDS else float(text)
            except ValueError:
                raise ResponseError(f"{name}: text where numbers belong, such as {value!r} in row {k}; code the answers as numbers "
                                    "(0/1, or ordered categories)") from None
    missing |= np.isnan(values)
    infinite = np.isinf(values)
    if infinite.any():
        raise ResponseError(f"{name}: {int(infinite.sum())} values are infinite (first: row {int(infinite.argmax())}); drop or repair them")
    return values, missing


def _times(series: nw.Series[Any], keep: Ints, column: str) -> tuple[TimeAxis, Array]:
    blank = series.is_null().to_numpy().astype(bool)[keep]
    name = f"time (column {column!r})"
    raw: Any = series.to_numpy()
    if series.dtype == nw.String or (np.asarray(raw).dtype.kind == "O" and all(isinstance(v, str) for v in np.asarray(raw)[:100])):
        raw = _parsed(np.asarray(raw, dtype=object), blank, keep, name)
    elif not series.dtype.is_numeric():
        raw = series.to_native()
        raw = raw.to_numpy() if type(raw).__module__.startswith("pandas") and getattr(raw.dtype, "tz", None) is None else raw
        if blank.any():
            raise ResponseError(_no_time(name, blank, keep))
        if keep.size < len(series):
            raw = nw.from_native(series.to_native(), series_only=True)[keep].to_native()
        return read_times(raw, name)
    values = np.asarray(raw)[keep] if len(np.asarray(raw)) != keep.size or keep.size < len(series) else np.asarray(raw)
    if blank.any() or _is_nan(values).any():
        raise ResponseError(_no_time(name, blank | _is_nan(values), keep))
    return read_times(values, name)


def _no_time(name: str, blank: npt.NDArray[np.bool_], keep: Ints) -> str:
    return (f"{name}: {int(blank.sum())} of {keep.size} rows have no time (first: row {keep[int(blank.argmax())]}); give each response a "
            "time, or fit one constant ability per person (bandwidth=inf)")


def _parsed(raw: npt.NDArray[Any], blank: npt.NDArray[np.bool_], keep: Ints, name: str) -> npt.NDArray[Any]:
    """ISO timestamps (or numbers) written as text."""
    if blank.any():
        raise ResponseError(_no_time(name, blank, keep))
    for convert in (lambda text: np.float64(text), lambda text: np.datetime64(text.strip().replace("Z", "").replace(" ", "T"), "ns")):
        try:
            out = np.array([convert(str(value)) for value in raw[keep]])
        except ValueError:
            continue
        full = np.empty(raw.size, dtype=out.dtype)
        full[keep] = out
        return full
    bad = next(k for k in keep if not _is_iso(str(raw[k])))
    raise ResponseError(f"{name}: {raw[bad]!r} in row {bad} is no time; write ISO dates (2024-05-31 or 2024-05-31T10:15:00) or numbers")


def _is_iso(text: str) -> bool:
    try:
        np.datetime64(text.strip().replace("Z", "").replace(" ", "T"), "ns")
    except ValueError:
        return False
    return True


def _sorted(ids: npt.NDArray[Any], names: npt.NDArray[Any], resp: Array, offsets: Array, weight: Array | None,
            models: npt.NDArray[Any] | None, axis: TimeAxis, unit: str, clock: str, dropped: int, frame: str | None,
            notes: tuple[str, ...]) -> Responses:
    people, person = encode(ids, "id")
    items, item = encode(names, "item")
    order = np.lexsort((resp, item, offsets, person))
    origin = np.zeros(people.size)
    if clock == "person":
        origin = np.full(people.size, np.inf)
        np.minimum.at(origin, person, offsets)
    per_item = None
    if models is not None:
        per_item = np.empty(items.size, dtype=object)
        per_item[item[::-1]] = models[::-1]
        differ = per_item[item] != models
        if np.any(differ):
            bad = item[int(np.argmax(differ))]
            raise ResponseError(f"model: item {items[bad]!r} is given different models; each item needs one")
    return Responses(people, items, person[order], item[order], resp[order], offsets[order], None if weight is None else weight[order],
                     axis, unit, clock, origin, dropped, frame, notes, per_item, order, {})
