"""Responses: who answered what, when and how, checked and frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools, Ints, as_numbers
from dynaesti.data.columns import ABSENT
from dynaesti.data.dates import TimeOptions
from dynaesti.data.labels import as_labels, encode, label_text, try_index_of
from dynaesti.data.parse import ParsedColumns, find_column_roles, parse_columns
from dynaesti.data.readers.read import read_table
from dynaesti.data.readers.table import Table
from dynaesti.data.time_axis import TimeAxis, read_times
from dynaesti.errors import InputError, ResponseError


@dataclass(frozen=True, eq=False)
class Responses:
    """One row an answer, sorted by person, time and item.

    `people` and `items` are the labels as they came.
    """

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
    def read(
        cls,
        data: Any,
        *,
        id: str | None = None,
        item: str | None = None,
        resp: str | None = None,
        time: str | None = None,
        weight: str | None = None,
        model: str | None = None,
        unit: str | None = None,
        clock: str = "calendar",
        unreadable: str = "refuse",
        timezone: str | None = None,
        time_format: str | None = None,
        code: Mapping[str, float] | None = None,
        timeless: bool = False,
        unanswered: bool = False,
        known: bool = False,
    ) -> Responses:
        """From a frame (pandas, polars, pyarrow), files (CSV, TSV, JSON lines, Parquet, also .gz),
        columns or an iterable of dicts.

        `unit` says what a unit of numeric times is; "unix" and "unix-ms" make dates of them.
        `unreadable="drop"` leaves rows out whose response, id, item or time cannot be read, and
        tells; "refuse" names them in an error. `timezone`: of stamps that lack one. `time_format`:
        how dates are written (as in strptime), where it is not ISO. `code`: numbers that responses
        in words stand for, such as {"never": 0, "always": 2}. `timeless` admits a table without
        times; `unanswered` one without responses (to be predicted), which then are NaN; `known`
        says that the names are those of an earlier table, whose responses and weights this one may
        lack.
        """
        if unreadable not in ("refuse", "drop"):
            raise InputError(f"unreadable: {unreadable!r} is neither 'refuse' nor 'drop'")
        if isinstance(data, Responses):
            named_here = [
                name for name in (id, item, resp, time, weight, model) if name is not None
            ]
            if named_here and not known:
                raise InputError(
                    f"column {named_here[0]!r}: the data are Responses already, whose columns "
                    f"have been read"
                )
            return data.on_clock(clock)
        table = data if isinstance(data, Table) else read_table(data)
        if not len(table.frame):
            raise ResponseError("the table has no rows")
        if known and weight not in table.frame.columns:
            weight = None
        if known and unanswered and resp not in table.frame.columns:
            resp = ABSENT
        notes: list[str] = []
        roles = find_column_roles(
            table,
            {"id": id, "item": item, "resp": resp, "time": time, "weight": weight, "model": model},
            notes,
            timeless,
            unanswered,
        )
        rows = parse_columns(
            table,
            roles,
            TimeOptions(unit, timezone, time_format),
            notes,
            unanswered,
            unreadable == "drop",
            code,
        )
        return _sorted(rows, rows.unit(unit), clock, table.kind, (*table.notes, *notes), roles)

    @classmethod
    def from_matrices(
        cls, responses: Any, times: Any, people: Any = None, items: Any = None
    ) -> Responses:
        """The paper's matrices.

        R (people × items, NaN where there is no answer) and T (the same shape, or one row for all).
        """
        r = as_numbers(responses, "R")
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
            raise ResponseError(
                f"labels: {ids.size} people and {names.size} items for a matrix of shape {r.shape}"
            )
        for what, given in (("people", ids), ("items", names)):
            twice = [label for label, count in Counter(given.tolist()).items() if count > 1]
            if twice:
                raise ResponseError(
                    f"{what}: {len(twice)} labels stand for several rows or columns of the matrix "
                    f"(first: {twice[0]!r}); "
                    "give each its own"
                )
        axis, offsets = read_times(np.ascontiguousarray(t[rows, columns]), "T")
        typed = ParsedColumns(
            ids[rows],
            names[columns],
            r[rows, columns],
            offsets,
            None,
            None,
            axis,
            int(r.size - rows.size),
            np.arange(rows.size),
        )
        return _sorted(typed, axis.unit, "calendar", None, (), {})

    def append(self, other: Responses) -> Responses:
        """With further answers; both must be on one time axis."""

        def both(a: Array | None, b: Array | None) -> Array | None:
            if a is None and b is None:
                return None
            return np.concatenate(
                [np.ones(n) if w is None else w for w, n in ((a, len(self)), (b, len(other)))]
            )

        place = try_index_of(self.items, other.items.tolist())
        strange = np.flatnonzero(place < 0)
        place[strange] = self.items.size + np.arange(
            strange.size
        )  # items keep their numbers; new ones follow
        items = (
            as_labels([*self.items.tolist(), *(other.items.tolist()[k] for k in strange)])
            if strange.size
            else self.items
        )
        known = try_index_of(self.people, other.people.tolist())
        names = [
            *self.people.tolist(),
            *(label for label, k in zip(other.people.tolist(), known, strict=True) if k < 0),
        ]
        people, number = encode(as_labels(names), "id")
        known[known < 0] = self.people.size + np.arange(int((known < 0).sum()))
        person = np.concatenate([number[self.person], number[known[other.person]]])
        item = np.concatenate([self.item, place[other.item]])
        resp = np.concatenate([self.resp, other.resp])
        offsets = np.concatenate(
            [self.offsets, self.axis.offsets(other.axis.restore(other.offsets))]
        )
        models = (
            None
            if self.models is None
            else np.concatenate([self.models, self._models_of(other)[strange]])
        )
        weight = both(self.weight, other.weight)
        order = _order(person, offsets, item, resp)
        whole = Responses(
            people,
            items,
            person[order],
            item[order],
            resp[order],
            offsets[order],
            None if weight is None else weight[order],
            self.axis,
            self.unit,
            "calendar",
            np.zeros(people.size),
            self.dropped + other.dropped,
            self.frame,
            self.notes,
            models,
            order,
            self.columns,
        )
        return whole.on_clock(self.clock)

    def with_note(self, note: str) -> Responses:
        """With one more word on what was decided about the data."""
        return replace(self, notes=(*self.notes, note))

    @property
    def repeats(self) -> Bools:
        """Whether each answer but the first repeats the one before it.

        Person, item, time, response (and weight).
        """
        parts = (
            (self.person, self.item, self.offsets, self.resp)
            if self.weight is None
            else (self.person, self.item, self.offsets, self.resp, self.weight)
        )
        return np.asarray(np.all([np.diff(part) == 0 for part in parts], axis=0))

    def distinct(self) -> Responses:
        """Without answers that repeat another exactly: person, item, time and response."""
        again = np.zeros(len(self), dtype=bool)
        again[1:] = self.repeats
        rows = np.flatnonzero(~again)
        if rows.size == len(self):
            return self
        return self.select_responses(rows).with_note(
            f"{int(again.sum()):,} answers that repeat another exactly were counted once"
        )

    def select_responses(self, rows: Ints, drop_unused: bool = False) -> Responses:
        """Some of the answers; people and items keep their numbers.

        With `drop_unused`, people and items without answers left are dropped, and the others are
        numbered anew; labels stay.
        """
        chosen = replace(
            self,
            person=self.person[rows],
            item=self.item[rows],
            resp=self.resp[rows],
            offsets=self.offsets[rows],
            weight=None if self.weight is None else self.weight[rows],
            row=self.row[rows],
        )
        return chosen._without_unused() if drop_unused else chosen

    def _without_unused(self) -> Responses:
        """Without the people and items that have no answers."""
        people, person = np.unique(self.person, return_inverse=True)
        items, item = np.unique(self.item, return_inverse=True)
        return replace(
            self,
            people=self.people[people],
            items=self.items[items],
            person=person.astype(np.int64),
            item=item.astype(np.int64),
            origin=self.origin[people],
            dropped=0,
            models=None if self.models is None else self.models[items],
        )

    def fingerprint(self) -> str:
        """By which the same answers are known again, in whatever order and whatever kind of frame
        they come.
        """

        def of_labels(labels: npt.NDArray[Any], numbers: Ints) -> npt.NDArray[np.uint64]:
            prints = [
                int.from_bytes(blake2b(label_text(label).encode(), digest_size=8).digest())
                for label in labels.tolist()
            ]
            return np.array(prints, dtype=np.uint64)[numbers]

        times = self.axis.restore(self.offsets)
        weight = np.ones(len(self)) if self.weight is None else self.weight
        total = of_labels(self.people, self.person)
        for part in (of_labels(self.items, self.item), times, self.resp, weight):
            bits = np.ascontiguousarray(part + 0.0 if part.dtype.kind == "f" else part).view(
                np.uint64
            )  # −0.0 is 0.0
            total = (total ^ bits) * np.uint64(
                0x9E3779B97F4A7C15
            )  # multiplied and folded: neighbours end up far apart
            total ^= total >> np.uint64(29)
        return blake2b(np.sort(total).tobytes(), digest_size=16).hexdigest()

    def _models_of(self, other: Responses) -> npt.NDArray[Any]:
        """The model of each of the other's items: its own, or the one that the item has here."""
        if other.models is not None:
            return other.models
        place = try_index_of(self.items, other.items.tolist())
        if (place < 0).any():
            first = other.items.tolist()[int((place < 0).argmax())]
            raise ResponseError(
                f"model: {int((place < 0).sum())} items are new and name no model (first: "
                f"{first!r}); give the column"
            )
        assert self.models is not None
        return np.asarray(self.models[place])

    @staticmethod
    def concatenate(parts: Sequence[Responses]) -> Responses:
        """The people of all parts, who are different people answering the same items, one part
        after the other.
        """
        before = np.cumsum([0, *(part.people.size for part in parts)])
        person = np.concatenate([part.person + n for part, n in zip(parts, before, strict=False)])
        whole: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("people", "item", "resp", "offsets", "origin")
        }
        weight = (
            None
            if parts[0].weight is None
            else np.concatenate([part.weight for part in parts if part.weight is not None])
        )
        return replace(parts[0], person=person, weight=weight, row=np.arange(person.size), **whole)

    def select_people(self, people: Ints) -> Responses:
        """The answers of some people (all items keep their numbers)."""
        rows = np.flatnonzero(np.isin(self.person, people))
        place = np.full(self.people.size, -1, dtype=np.int64)
        place[people] = np.arange(people.size)
        return Responses(
            self.people[people],
            self.items,
            place[self.person[rows]],
            self.item[rows],
            self.resp[rows],
            self.offsets[rows],
            None if self.weight is None else self.weight[rows],
            self.axis,
            self.unit,
            self.clock,
            self.origin[people],
            0,
            self.frame,
            self.notes,
            self.models,
            self.row[rows],
            self.columns,
        )


def check_saved_responses(r: Responses) -> None:
    """Refuse (ValueError) what no `read` would have made.

    For answers that come from a saved file. Compiled loops trust every index.
    """
    n = r.person.size
    people = r.people.size
    for name, array, kind in (
        ("person", r.person, "i"),
        ("item", r.item, "i"),
        ("resp", r.resp, "f"),
        ("offsets", r.offsets, "f"),
        ("row", r.row, "i"),
        *((("weight", r.weight, "f"),) if r.weight is not None else ()),
    ):
        if (
            array.shape != (n,)
            or array.dtype.kind != kind
            or array.dtype.itemsize != 8
            or not np.isfinite(array).all()
        ):
            raise ValueError(f"{name} of the answers is malformed")
    if r.origin.shape != (people,) or r.origin.dtype.kind != "f" or not np.isfinite(r.origin).all():
        raise ValueError("the people's clocks are malformed")
    if r.models is not None and r.models.shape != r.items.shape:
        raise ValueError("the items' models are malformed")
    if n and (
        r.person[0] != 0
        or r.person[-1] != people - 1
        or not np.isin(np.diff(r.person), (0, 1)).all()
    ):
        raise ValueError("the answers are not in the order of the people, or some have none")
    if (not n) != (not people) or (n and (r.item.min() < 0 or r.item.max() >= r.items.size)):
        raise ValueError("answers to items, or of people, that there are none of")
    if np.any((np.diff(r.offsets) < 0) & (np.diff(r.person) == 0)):
        raise ValueError("answers of a person are not in the order of time")
    if r.weight is not None and r.weight.min(initial=0.0) < 0:
        raise ValueError("weights below 0")


def _sorted(
    rows: ParsedColumns,
    unit: str,
    clock: str,
    frame: str | None,
    notes: tuple[str, ...],
    columns: Mapping[str, str | None],
) -> Responses:
    resp = rows.resp
    offsets = rows.offsets
    weight = rows.weight
    models = rows.models
    people, person = encode(rows.ids, "id")
    items, item = encode(rows.names, "item")
    order = _order(person, offsets, item, resp)
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
            raise ResponseError(
                f"model: item {items[bad]!r} is given different models; each item needs one"
            )
    return Responses(
        people,
        items,
        person[order],
        item[order],
        resp[order],
        offsets[order],
        None if weight is None else weight[order],
        rows.axis,
        unit,
        clock,
        origin,
        rows.dropped,
        frame,
        notes,
        per_item,
        rows.kept[order],
        columns,
    )


def _order(*keys: npt.NDArray[Any]) -> Ints:
    """The order that sorts by the first key, then the second, and so on.

    Tables mostly come in order: seen in a tenth of a sort's time.
    """
    rising = np.ones(max(keys[0].size - 1, 0), dtype=bool)
    for key in keys[::-1]:
        rising = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & rising)
    return np.arange(keys[0].size) if rising.all() else np.lexsort(keys[::-1])
