"""Responses: who answered which item, when and how; checked, sorted and frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools, Ints, as_numbers
from dynaesti.data.covariates import Covariate
from dynaesti.data.dates import TimeOptions
from dynaesti.data.groups import group_of_each_person
from dynaesti.data.labels import Labels, as_labels, encode, label_text, try_index_of
from dynaesti.data.layouts.layout import LayoutOptions
from dynaesti.data.parse import ParsedColumns
from dynaesti.data.read_rows import RowOptions, read_rows
from dynaesti.data.readers.read import read_table
from dynaesti.data.readers.table import Table
from dynaesti.data.time_axis import TimeAxis, read_times
from dynaesti.errors import InputError, ResponseError


@dataclass(frozen=True, eq=False)
class Responses:
    """Responses of people to items at times, sorted by person, time, item and response.

    Made by `Responses.read` from a table, or by `Responses.from_matrices`. Every method returns a
    new object. People and items are numbered from 0 in the order of their labels.

    Parameters
    ----------
    people : array (n_people,)
        Ids, as they came.
    items : array (n_items,)
        Names of items, as they came.
    person : int array (n_responses,)
        Number of the person of each response; rising.
    item : int array (n_responses,)
        Number of the item of each response.
    resp : array (n_responses,)
        The responses; NaN where they are to be predicted.
    offsets : array (n_responses,)
        Times, on `axis`, in its unit.
    weight : array (n_responses,), optional
        How many times each response counts.
    axis : TimeAxis
        Origin and unit of the times; `axis.restore(offsets)` are the times as they came.
    unit : str
        Name of one unit of time.
    clock : {"calendar", "person"}
        Whether curves run over calendar time, or over the time since each person's first response.
    origin : array (n_people,)
        Offset at which each person's clock starts: zeros on the calendar.
    dropped : int
        Rows of the table without a response, which were left out.
    frame : {"pandas", "polars", "pyarrow"}, optional
        Library of the frame that was read; results come as frames of the same kind. None: the data
        were no frame, and results are `dynaesti.Frame`.
    notes : tuple of str
        What was decided while reading.
    models : array (n_items,), optional
        Names of the item models, if the data have a column of them.
    row : int array (n_responses,)
        Number of each response's row in the table it came from.
    columns : mapping of role to column
        Column that was read for each of id, item, resp, time (None if missing), weight and model.
    groups : tuple of labels
        Groups of people; empty where none were asked for.
    group : int array (n_people,), optional
        Number of each person's group.
    covariates : mapping of column to Covariate
        Further columns that were asked for, with a value for each response.

    Examples
    --------
    >>> import dynaesti as dy
    >>> responses = dy.Responses.read(
    ...     {
    ...         "id": ["ben", "ada", "ada"],
    ...         "item": ["q1", "q2", "q1"],
    ...         "resp": [1, 0, 1],
    ...         "date": [3.0, 5.0, 1.0],
    ...     }
    ... )
    >>> len(responses)
    3
    >>> responses.people.tolist(), responses.items.tolist()
    (['ada', 'ben'], ['q1', 'q2'])
    >>> responses.person.tolist(), responses.resp.tolist()
    ([0, 0, 1], [1.0, 0.0, 1.0])
    >>> responses.offsets.tolist(), responses.axis.restore(responses.offsets).tolist()
    ([0.0, 4.0, 2.0], [1.0, 5.0, 3.0])
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
    origin: Array
    dropped: int
    frame: str | None
    notes: tuple[str, ...]
    models: npt.NDArray[Any] | None
    row: Ints
    columns: Mapping[str, str | None]
    groups: tuple[Any, ...] = ()
    group: Ints | None = None
    covariates: Mapping[str, Covariate] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.person.size

    # --- reading

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
        group: str | None = None,
        covariates: Sequence[str] | Mapping[str, str] = (),
        unit: str | None = None,
        clock: str = "calendar",
        unreadable: str = "refuse",
        timezone: str | None = None,
        time_format: str | None = None,
        code: Mapping[str, float] | None = None,
        timeless: bool = False,
        unanswered: bool = False,
        reuse_columns: bool = False,
        wide: bool | None = None,
        items: Any = None,
        key: Any = None,
        only: Any = None,
        sheet: str | None = None,
        query: str | None = None,
    ) -> Responses:
        """Read responses from a table with one row a response, or one row a person.

        Parameters
        ----------
        data : frame, path, mapping of columns, matrix, or iterable of dicts or tuples
            A frame of pandas, polars or pyarrow; a file of text, JSON, Parquet, Excel, SPSS, Stata,
            SQLite or DuckDB, a list or pattern of files, the address of a database, or "-" for
            standard input; columns as sequences; rows as dicts; tuples of person, item and response
            (and time); or a matrix of people × items. Responses that are read already only change
            their clock.
        id, item, resp, time : str, optional
            Columns of the person, the item, the response and the time. Default: columns with usual
            names, such as ``id``, ``student``, ``item``, ``question``, ``resp``, ``correct``,
            ``date``, ``time``.
        weight : str, optional
            Column of numbers that say how many times each response counts. Default: once.
        model : str, optional
            Column of names of item models, one for each item.
        group : str, optional
            Column of people's groups; the rows of a person must agree.
        covariates : sequence of str, or mapping of column to kind, optional
            Further columns, for effects: by name alone numbers or categories as they come, or
            each with its kind, "number" or "category".
        unit : str, optional
            What one unit of numeric times is, for labels. "unix", "unix-ms", "unix-us" and
            "unix-ns" read numbers as timestamps; "years" counts dates in decimal years.
        clock : {"calendar", "person"}, default="calendar"
            Whether time runs for all alike, or from each person's first response.
        unreadable : {"refuse", "drop"}, default="refuse"
            What happens if the id, item, response or time of rows cannot be read: an error that
            names them, or a note that they are left out.
        timezone : str, optional
            Zone of timestamps that lack one, such as "Europe/Zurich".
        time_format : str, optional
            How dates are written, as in `datetime.strptime`. Default: ISO, or found out.
        code : mapping of word to number, optional
            Numbers that responses in words stand for, such as ``{"never": 0, "always": 2}``.
        timeless : bool, default=False
            Whether the table may lack times; they are then 0.
        unanswered : bool, default=False
            Whether responses may be missing, to be predicted; they are then NaN.
        reuse_columns : bool, default=False
            Whether the names of columns are those of an earlier table. This one may then lack the
            column of weights, and with `unanswered` that of responses.
        wide : bool, optional
            Whether a row is a person (or a sitting) and a column an item. Default: found out, and
            noted.
        items : sequence of str, optional
            The columns of a wide table that are items, by name or pattern, such as ``["Q*"]``.
        key : mapping, sequence, frame or path, optional
            Right answers, by which the responses are scored 1 and 0: from item to answer, or in the
            order of the items; a table with a column of items and one of answers, or with one row;
            or the id of the row of `data` that has them. ``"A|C"`` are two right answers.
        only : sequence, optional
            Items to keep, by name or pattern. Default: all.
        sheet : str, optional
            Sheet of a workbook, or table of a database. Default: the first with cells, or the only
            one.
        query : str, optional
            SQL for a database.

        Returns
        -------
        Responses
            Checked and sorted. Rows without a response are left out and counted in `dropped`.

        Raises
        ------
        MissingColumnError
            If a column is missing.
        ResponseError
            If rows cannot be read; the message says which, why, and what to do.

        Examples
        --------
        >>> import dynaesti as dy
        >>> rows = [
        ...     {"student": "ada", "question": 1, "correct": "yes", "time": "2024-05-30"},
        ...     {"student": "ada", "question": 2, "correct": "no", "time": "2024-05-31"},
        ... ]
        >>> responses = dy.Responses.read(rows)
        >>> responses.resp.tolist(), responses.offsets.tolist(), responses.unit
        ([1.0, 0.0], [0.0, 1.0], 'days')
        >>> responses.columns["resp"]
        'correct'
        """
        given = {"id": id, "item": item, "resp": resp, "time": time}
        given |= {"weight": weight, "model": model, "group": group}
        if isinstance(data, Responses):
            if not reuse_columns:
                _refuse_column_names(given)
            return data.on_clock(clock)
        times = TimeOptions(unit, timezone, time_format)
        options = RowOptions(times, code, covariates, timeless, unanswered, unreadable)
        layout = LayoutOptions(wide, items, key, only)
        table = data if isinstance(data, Table) else read_table(data, sheet, query)
        found = read_rows(table, given, layout, options, reuse_columns)
        axis_unit = found.rows.unit(unit)
        whole = _sorted_responses(found.rows, axis_unit, found.kind, found.notes, found.roles)
        return whole.on_clock(clock)

    @classmethod
    def from_matrices(
        cls, responses: Any, times: Any, people: Any = None, items: Any = None
    ) -> Responses:
        """Read responses from the paper's matrices R and T.

        Parameters
        ----------
        responses : array (n_people, n_items)
            R: the responses, NaN where there is none.
        times : array (n_people, n_items) or (n_items,)
            T: the times, numbers or timestamps; one row serves all people.
        people : sequence (n_people,), optional
            Ids. Default: 0, 1, ….
        items : sequence (n_items,), optional
            Names of items. Default: 0, 1, ….

        Returns
        -------
        Responses
            On the calendar; empty entries of R are counted in `dropped`.

        Raises
        ------
        ResponseError
            If shapes do not fit, labels occur twice, or there is no response.

        Examples
        --------
        >>> import dynaesti as dy
        >>> nan = float("nan")
        >>> responses = dy.Responses.from_matrices([[1, 0], [nan, 1]], [0.0, 7.0])
        >>> responses.person.tolist(), responses.item.tolist(), responses.resp.tolist()
        ([0, 0, 1], [0, 1, 1], [1.0, 0.0, 1.0])
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
        _refuse_repeated_labels(ids, "people")
        _refuse_repeated_labels(names, "items")
        axis, offsets = read_times(np.ascontiguousarray(t[rows, columns]), "T")
        parsed = ParsedColumns(
            ids=ids[rows],
            names=names[columns],
            resp=r[rows, columns],
            offsets=offsets,
            weight=None,
            models=None,
            axis=axis,
            dropped=int(r.size - rows.size),
            kept=np.arange(rows.size),
        )
        return _sorted_responses(parsed, axis.unit, None, [], {})

    # --- views

    @cached_property
    def person_start(self) -> Ints:
        """First response of each person: int array (n_people + 1,), which ends in `len(self)`.

        Examples
        --------
        >>> import dynaesti as dy
        >>> dy.Responses.from_matrices([[1, 0], [1, 1]], [0.0, 7.0]).person_start.tolist()
        [0, 2, 4]
        """
        return np.searchsorted(self.person, np.arange(self.people.size + 1)).astype(np.int64)

    @property
    def clock_times(self) -> Array:
        """Times as the curves see them, `offsets` minus each person's `origin`: (n_responses,)."""
        return self.offsets - self.origin[self.person]

    @property
    def repeats(self) -> Bools:
        """Whether each response but the first repeats the one before it: (n_responses − 1,).

        A repeat has the same person, item, time and response, and the same weight.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = {"id": [1, 1, 1], "item": [1, 1, 1], "resp": [0, 0, 1], "date": [5, 5, 5]}
        >>> dy.Responses.read(table).repeats.tolist()
        [True, False]
        """
        keys = [self.person, self.item, self.offsets, self.resp]
        if self.weight is not None:
            keys.append(self.weight)
        return np.asarray(np.all([np.diff(key) == 0 for key in keys], axis=0))

    def fingerprint(self) -> str:
        """Hash of the responses, for recognising them.

        It does not depend on the order of the rows, on the kind of frame, or on whether labels are
        numbers or text.

        Returns
        -------
        str
            32 hexadecimal digits.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = {"id": [1, 2], "item": [1, 1], "resp": [0, 1], "date": [3, 5]}
        >>> turned = {"id": ["2", "1"], "item": [1, 1], "resp": [1, 0], "date": [5, 3]}
        >>> dy.Responses.read(table).fingerprint() == dy.Responses.read(turned).fingerprint()
        True
        """
        times = self.axis.restore(self.offsets)
        weight = np.ones(len(self)) if self.weight is None else self.weight
        total = _label_hashes(self.people)[self.person]
        for part in (_label_hashes(self.items)[self.item], times, self.resp, weight):
            plain = part + 0.0 if part.dtype.kind == "f" else part  # −0.0 is 0.0
            bits = np.ascontiguousarray(plain).view(np.uint64)
            # multiplied and folded: neighbours end up far apart
            total = (total ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            total ^= total >> np.uint64(29)
        return blake2b(np.sort(total).tobytes(), digest_size=16).hexdigest()

    # --- other clocks and notes

    def on_clock(self, clock: str) -> Responses:
        """These responses on another clock.

        Parameters
        ----------
        clock : {"calendar", "person"}
            "person" counts time from each person's first response.

        Returns
        -------
        Responses
            With other `clock` and `origin`; offsets stay.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = {"id": [1, 2, 2], "item": [1, 1, 2], "resp": [0, 1, 1], "date": [0, 3, 5]}
        >>> dy.Responses.read(table).on_clock("person").clock_times.tolist()
        [0.0, 0.0, 2.0]
        """
        if clock == self.clock:
            return self
        origin = np.zeros(self.people.size)
        if clock == "person":
            origin = np.full(self.people.size, np.inf)
            np.minimum.at(origin, self.person, self.offsets)
        return replace(self, clock=clock, origin=origin)

    def with_note(self, note: str) -> Responses:
        """These responses with one more note.

        Parameters
        ----------
        note : str
            What was decided about the data: a clause without a period.

        Returns
        -------
        Responses
            The same responses.
        """
        return replace(self, notes=(*self.notes, note))

    # --- selections

    def distinct(self) -> Responses:
        """These responses, each counted once.

        Returns
        -------
        Responses
            Without responses that repeat another exactly (person, item, time, response and weight).

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = {"id": [1, 1, 1], "item": [1, 1, 1], "resp": [0, 0, 1], "date": [5, 5, 5]}
        >>> len(dy.Responses.read(table).distinct())
        2
        """
        again = np.zeros(len(self), dtype=bool)
        again[1:] = self.repeats
        rows = np.flatnonzero(~again)
        if rows.size == len(self):
            return self
        return self.select_responses(rows).with_note(
            f"{int(again.sum()):,} answers that repeat another exactly were counted once"
        )

    def select_responses(self, rows: Ints, drop_unused: bool = False) -> Responses:
        """Some of the responses.

        Parameters
        ----------
        rows : int array (n_selected,)
            Numbers of the responses to keep, rising.
        drop_unused : bool, default=False
            Whether people and items without responses left are dropped, which numbers the others
            anew. Otherwise all people and items stay and keep their numbers.

        Returns
        -------
        Responses
            The responses of these rows.

        Examples
        --------
        >>> import dynaesti as dy
        >>> import numpy as np
        >>> responses = dy.Responses.from_matrices([[1, 0], [1, 1]], [0.0, 7.0])
        >>> first = np.flatnonzero(responses.item == 0)
        >>> responses.select_responses(first).items.tolist()
        [0, 1]
        >>> responses.select_responses(first, drop_unused=True).items.tolist()
        [0]
        """
        selected = replace(
            self,
            person=self.person[rows],
            item=self.item[rows],
            resp=self.resp[rows],
            offsets=self.offsets[rows],
            weight=None if self.weight is None else self.weight[rows],
            row=self.row[rows],
            covariates={name: column.select(rows) for name, column in self.covariates.items()},
        )
        return _drop_unused(selected) if drop_unused else selected

    def select_people(self, people: Ints) -> Responses:
        """The responses of some people.

        Parameters
        ----------
        people : int array (n_selected,)
            Numbers of the people, rising.

        Returns
        -------
        Responses
            These people, numbered anew from 0. All items stay and keep their numbers.

        Examples
        --------
        >>> import dynaesti as dy
        >>> import numpy as np
        >>> responses = dy.Responses.from_matrices([[1, 0], [1, 1]], [0.0, 7.0], ["ada", "ben"])
        >>> ben = responses.select_people(np.array([1]))
        >>> ben.people.tolist(), ben.person.tolist(), ben.resp.tolist()
        (['ben'], [0, 0], [1.0, 1.0])
        """
        rows = np.flatnonzero(np.isin(self.person, people))
        new_number = np.full(self.people.size, -1, dtype=np.int64)
        new_number[people] = np.arange(people.size)
        return replace(
            self.select_responses(rows),
            people=self.people[people],
            person=new_number[self.person[rows]],
            origin=self.origin[people],
            dropped=0,
            group=None if self.group is None else self.group[people],
        )

    # --- unions

    def append(self, other: Responses) -> Responses:
        """These responses and others.

        Parameters
        ----------
        other : Responses
            Further responses, of the same people or others, to the same items or others. Their
            times must be of the same kind: numbers or timestamps.

        Returns
        -------
        Responses
            Sorted again. Items keep their numbers and new ones follow; people are numbered anew, in
            the order of labels. `row` numbers these responses first, then the others.

        Raises
        ------
        InputError
            If the times are of another kind.
        ResponseError
            If items have models and new items name none.

        Examples
        --------
        >>> import dynaesti as dy
        >>> before = dy.Responses.from_matrices([[1, 0]], [0.0, 7.0], ["ben"])
        >>> after = dy.Responses.from_matrices([[1, 1]], [8.0, 9.0], ["ada"])
        >>> both = before.append(after)
        >>> both.people.tolist(), both.offsets.tolist()
        (['ada', 'ben'], [8.0, 9.0, 0.0, 7.0])
        """
        item_number = try_index_of(self.items, other.items.tolist())
        new_items = np.flatnonzero(item_number < 0)
        item_number[new_items] = self.items.size + np.arange(new_items.size)
        items = self.items
        if new_items.size:
            added = [other.items.tolist()[k] for k in new_items]
            items = as_labels([*self.items.tolist(), *added])
        models = self.models
        if models is not None:
            models = np.concatenate([models, self._models_of(other)[new_items]])
        people, own_number, other_number = _merge_people(self.people, other.people)
        person = np.concatenate([own_number[self.person], other_number[other.person]])
        item = np.concatenate([self.item, item_number[other.item]])
        resp = np.concatenate([self.resp, other.resp])
        other_times = other.axis.restore(other.offsets)
        offsets = np.concatenate([self.offsets, self.axis.offsets(other_times)])
        weight = self._weights_with(other)
        order = _sorting_order(person, offsets, item, resp)
        whole = replace(
            self,
            people=people,
            items=items,
            person=person[order],
            item=item[order],
            resp=resp[order],
            offsets=offsets[order],
            weight=None if weight is None else weight[order],
            clock="calendar",
            origin=np.zeros(people.size),
            dropped=self.dropped + other.dropped,
            models=models,
            row=order,
            group=self._groups_with(other, people.size, own_number, other_number),
            covariates={
                name: Covariate.concatenate([column, other.covariates[name]]).select(order)
                for name, column in self.covariates.items()
            },
        )
        return whole.on_clock(self.clock)

    def _groups_with(
        self, other: Responses, n_people: int, own_number: Ints, other_number: Ints
    ) -> Ints | None:
        """Groups of everyone after `append`: −1 for new people whose group is not known here."""
        if self.group is None:
            return None
        group = np.full(n_people, -1, dtype=np.int64)
        group[other_number] = other.group_among(self.groups)
        group[own_number[: self.people.size]] = self.group
        return group

    def group_among(self, groups: Sequence[Any]) -> Ints:
        """Number of each person's group in a list of groups, −1 where it is not among them.

        Parameters
        ----------
        groups : sequence of labels

        Returns
        -------
        int array (n_people,)
        """
        if self.group is None:
            return np.full(self.people.size, -1, dtype=np.int64)
        known = {label: k for k, label in enumerate(groups)}
        number = np.array([known.get(label, -1) for label in self.groups], dtype=np.int64)
        return np.where(self.group >= 0, np.append(number, -1)[self.group], -1)

    def without_groups(self) -> Responses:
        """These responses of people without groups.

        Returns
        -------
        Responses
        """
        return self if self.group is None else replace(self, groups=(), group=None)

    def _weights_with(self, other: Responses) -> Array | None:
        """Weights of these responses and the others; 1 where only one side has weights."""
        if self.weight is None and other.weight is None:
            return None
        return np.concatenate(
            [np.ones(len(r)) if r.weight is None else r.weight for r in (self, other)]
        )

    def _models_of(self, other: Responses) -> npt.NDArray[Any]:
        """The model of each of the other's items: its own, or the one that the item has here."""
        if other.models is not None:
            return other.models
        index = try_index_of(self.items, other.items.tolist())
        if (index < 0).any():
            first = other.items.tolist()[int((index < 0).argmax())]
            raise ResponseError(
                f"model: {int((index < 0).sum())} items are new and name no model (first: "
                f"{first!r}); give the column"
            )
        assert self.models is not None
        return np.asarray(self.models[index])

    @staticmethod
    def concatenate(parts: Sequence[Responses]) -> Responses:
        """The responses of different people to the same items, one part after the other.

        Parameters
        ----------
        parts : sequence of Responses
            With equal `items` and time axes, and no person in two of them.

        Returns
        -------
        Responses
            The people of all parts, in the order of the parts.

        Examples
        --------
        >>> import dynaesti as dy
        >>> ben = dy.Responses.from_matrices([[1, 0]], [0.0, 7.0], ["ben"])
        >>> ada = dy.Responses.from_matrices([[1, 1]], [0.0, 7.0], ["ada"])
        >>> both = dy.Responses.concatenate([ben, ada])
        >>> both.people.tolist(), both.person.tolist()
        (['ben', 'ada'], [0, 0, 1, 1])
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
        group = None
        if parts[0].group is not None:
            group = np.concatenate([part.group for part in parts if part.group is not None])
        covariates = {
            name: Covariate.concatenate([part.covariates[name] for part in parts])
            for name in parts[0].covariates
        }
        return replace(
            parts[0],
            person=person,
            weight=weight,
            row=np.arange(person.size),
            group=group,
            covariates=covariates,
            **whole,
        )


def _refuse_column_names(given: Mapping[str, str | None]) -> None:
    """Refuse names of columns for responses that are read already."""
    named = [name for name in given.values() if name is not None]
    if named:
        raise InputError(
            f"column {named[0]!r}: the data are Responses already, whose columns have been read"
        )


def _refuse_repeated_labels(labels: Labels, what: str) -> None:
    """Refuse labels of a matrix that occur twice."""
    twice = [label for label, count in Counter(labels.tolist()).items() if count > 1]
    if twice:
        raise ResponseError(
            f"{what}: {len(twice)} labels stand for several rows or columns of the matrix (first: "
            f"{twice[0]!r}); give each its own"
        )


def _sorted_responses(
    rows: ParsedColumns,
    unit: str,
    frame: str | None,
    notes: Sequence[str],
    columns: Mapping[str, str | None],
) -> Responses:
    """Parsed columns as responses on the calendar."""
    people, person = encode(rows.ids, "id")
    items, item = encode(rows.names, "item")
    order = _sorting_order(person, rows.offsets, item, rows.resp)
    groups: tuple[str, ...] = ()
    group = None
    if rows.groups is not None:
        said: list[str] = []
        groups, group = group_of_each_person(people, person, rows.groups, said)
        notes = [*notes, *said]
    return Responses(
        people=people,
        items=items,
        person=person[order],
        item=item[order],
        resp=rows.resp[order],
        offsets=rows.offsets[order],
        weight=None if rows.weight is None else rows.weight[order],
        axis=rows.axis,
        unit=unit,
        clock="calendar",
        origin=np.zeros(people.size),
        dropped=rows.dropped,
        frame=frame,
        notes=tuple(notes),
        models=None if rows.models is None else _model_of_each_item(items, item, rows.models),
        row=rows.kept[order],
        columns=columns,
        groups=groups,
        group=group,
        covariates={name: column.select(order) for name, column in rows.covariates.items()},
    )


def _model_of_each_item(items: Labels, item: Ints, models: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The model (n_items,) that all rows (n_rows,) of an item name."""
    per_item = np.empty(items.size, dtype=object)
    per_item[item[::-1]] = models[::-1]
    differ = per_item[item] != models
    if np.any(differ):
        bad = item[int(np.argmax(differ))]
        raise ResponseError(
            f"model: item {items[bad]!r} is given different models; each item needs one"
        )
    return per_item


def _drop_unused(r: Responses) -> Responses:
    """Responses without the people and items that have none, the others numbered anew."""
    people, person = np.unique(r.person, return_inverse=True)
    items, item = np.unique(r.item, return_inverse=True)
    return replace(
        r,
        people=r.people[people],
        items=r.items[items],
        person=person.astype(np.int64),
        item=item.astype(np.int64),
        origin=r.origin[people],
        dropped=0,
        models=None if r.models is None else r.models[items],
        group=None if r.group is None else r.group[people],
    )


def _merge_people(own: Labels, others: Labels) -> tuple[Labels, Ints, Ints]:
    """Labels of all people in order, and the new numbers of the own and of the other people."""
    index = try_index_of(own, others.tolist())
    new = np.flatnonzero(index < 0)
    index[new] = own.size + np.arange(new.size)
    everyone = as_labels([*own.tolist(), *(others.tolist()[k] for k in new)])
    people, number = encode(everyone, "id")
    return people, number, number[index]


def _label_hashes(labels: Labels) -> npt.NDArray[np.uint64]:
    """A hash of each label as text: (n_labels,)."""
    hashes = [
        int.from_bytes(blake2b(label_text(label).encode(), digest_size=8).digest())
        for label in labels.tolist()
    ]
    return np.array(hashes, dtype=np.uint64)


def _sorting_order(*keys: npt.NDArray[Any]) -> Ints:
    """The order that sorts by the first key, then the second, and so on.

    Most tables are sorted already: that is noticed in a tenth of a sort's time.
    """
    rising = np.ones(max(keys[0].size - 1, 0), dtype=bool)
    for key in keys[::-1]:
        rising = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & rising)
    return np.arange(keys[0].size) if rising.all() else np.lexsort(keys[::-1])
