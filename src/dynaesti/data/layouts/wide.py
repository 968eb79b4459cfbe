"""Wide tables: one row a person or a sitting, one column an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw

from dynaesti.data.columns import find_column, guess_columns
from dynaesti.data.headings import plain_name, resemble_data, speaks_of
from dynaesti.data.labels import count_noun, display_names
from dynaesti.data.layouts.item_columns import choose_items, occasions_of
from dynaesti.data.layouts.layout import LayoutOptions, with_column
from dynaesti.data.readers.dialect import UNNAMED
from dynaesti.data.readers.plain import PlainFrame
from dynaesti.data.readers.table import Table
from dynaesti.errors import ResponseError, option

# columns that together name a person
FULL_NAMES = (
    ("first_name", "last_name"),
    ("first_name", "surname"),
    ("vorname", "nachname"),
    ("vorname", "name"),
    ("prenom", "nom"),
    ("nombre", "apellido"),
    ("nombre", "apellidos"),
)


@dataclass(frozen=True)
class WideLayout:
    """Columns of items, beside columns that say whose row it is and when.

    Turned round, columns are people and a row is an item.
    """

    items: tuple[str, ...]  # columns that hold answers
    person: tuple[str, ...]  # columns that name the person; empty for the number of the row
    roles: Mapping[str, str]
    recognised: tuple[str, ...]  # which roles columns were recognised to play, each a clause
    across: str = "item"  # what is in columns: item, or id
    occasions: Mapping[str, tuple[str, float]] = field(default_factory=dict)  # of columns
    code: Mapping[str, float] = field(default_factory=dict)

    def apply(self, table: Table) -> Table:
        """The table with a row for each cell of the columns of items."""
        whole = self._with_person(table)
        frame = whole.frame
        made = (self.roles[self.across], self.roles["resp"])
        beside = [name for name in frame.columns if name not in (*self.items, *made)]
        n_rows = len(frame)
        long = _alike(frame, self.items).unpivot(
            on=list(self.items), index=beside, variable_name=made[0], value_name=made[1]
        )

        def origin(row: int) -> str:
            return f"{table.where(row % n_rows)}, column {self.items[row // n_rows]!r}"

        found = replace(
            whole,
            frame=long,
            notes=(*table.notes, *self._notes(table)),
            origin=origin,
            made=made,
        )
        return self._at_occasions(found) if self.occasions else found

    def _at_occasions(self, table: Table) -> Table:
        """The table with the items and occasions that its columns stand for."""
        item = self.roles["item"]
        pairs = [self.occasions[column] for column in table.frame[item].to_list()]
        table = with_column(table, item, [name for name, _ in pairs])
        times = [time for _, time in pairs]
        return with_column(table, self.roles["time"], times, nw.Float64)

    def _with_person(self, table: Table) -> Table:
        """The table with one column that says whose row it is."""
        if len(self.person) == 1 or self.across == "id":
            return table
        if not self.person:
            numbers = [str(k + 1) for k in range(len(table.frame))]
            return with_column(table, self.roles["id"], numbers)
        parts = [table.frame[name].to_list() for name in self.person]
        names = [" ".join(str(part) for part in row if part) for row in zip(*parts, strict=True)]
        return with_column(table, self.roles["id"], [name or None for name in names])

    def _notes(self, table: Table) -> list[str]:
        used = {*self.items, *self.person, *self.roles.values()}
        unused = [
            name
            for name in table.frame.columns
            if name not in used and not name.startswith(UNNAMED)
        ]
        otherwise = f"{option('wide', False)} reads one answer a row"
        what = f"{len(self.items)} columns are items ({_ends(self.items)})"
        if self.across == "id":
            what = f"{len(self.items)} columns are people ({_ends(self.items)}), a row is an item"
        if self.occasions:
            items, times = (set(parts) for parts in zip(*self.occasions.values(), strict=True))
            what = (
                f"{len(self.items)} columns are {count_noun(len(items), 'items')} at "
                f"{count_noun(len(times), 'occasions')} ({_ends(self.items)})"
            )
        notes = [f"a wide table: {what}; {otherwise}"]
        if not self.person and self.across == "item":
            notes.append("id: no column names the people; each row is a person of its own")
        if self.recognised:
            notes.append(f"columns: {', '.join(self.recognised)}")
        if unused:
            notes.append(f"beside the items: {display_names(unused, most=6)}")
        return notes


def find_wide(
    table: Table, given: Mapping[str, str | None], options: LayoutOptions, keyed: Sequence[str]
) -> WideLayout | None:
    """The layout of a wide table; None if it has one row an answer.

    Parameters
    ----------
    table : Table
    given : mapping of role to column
        As the user named them; None where not.
    options : LayoutOptions
    keyed : sequence of str
        Items that the answer key names.

    Raises
    ------
    ResponseError
        If the table was called wide and has no columns of items, or if patterns match none.
    """
    if options.wide is False and options.items is None:
        return None
    columns = list(table.frame.columns)
    if options.wide is None and options.items is None and resemble_data(columns):
        return None
    named = {role: name for role, name in given.items() if name in columns}
    found = {
        role: named.get(role) or next(iter(guess_columns(table, role)), None)
        for role in ("id", "item", "resp", "time")
    }
    is_long = found["item"] is not None and found["resp"] is not None
    if options.items is None and not options.wide and (is_long or {"item", "resp"} & named.keys()):
        return None
    beside = {*named.values(), found["id"], found["time"]}
    free = [name for name in columns if name not in beside and not name.startswith(UNNAMED)]
    items = choose_items(table, free, options, keyed)
    if found["item"] in free and found["id"] is None and _are_people(items, found["item"]):
        return _transposed(items, str(found["item"]), found["time"])
    if not items:
        if options.wide:
            raise ResponseError(
                f"wide: none of the columns holds answers ({display_names(columns)}); name those "
                f"of the items by {option('items', ['Q*'])}"
            )
        return None
    return _with_roles(table, named, found, items)


def _with_roles(
    table: Table,
    named: Mapping[str, str],
    found: Mapping[str, str | None],
    items: Sequence[str],
) -> WideLayout:
    """The layout with these columns of items, whose people and times stand beside them.

    `found` are columns by their roles, `named` those that the user named.
    """
    columns = list(table.frame.columns)
    recognised: list[str] = []
    person = _person_columns(table, found["id"], items, found["time"])
    if len(person) > 1:
        recognised.append(f"id is {' and '.join(map(repr, person))} together")
    elif person and found["id"] is None:
        recognised.append(f"id is {person[0]!r}")
    for role in ("id", "time"):
        if role not in named and (role == "time" or person == [found["id"]]):
            find_column(table, role, None, recognised, optional=True)
    whose = person[0] if len(person) == 1 else " ".join(person) or _free_name("id", columns)
    item, resp = (_free_name(name, columns) for name in ("item", "resp"))
    roles = {"id": whose, "item": item, "resp": resp}
    if found["time"] is not None:
        roles["time"] = found["time"]
    occasions = occasions_of(items) if found["time"] is None else {}
    if occasions:
        roles["time"] = _free_name("occasion", columns)
    return WideLayout(tuple(items), tuple(person), roles, tuple(recognised), occasions=occasions)


def _are_people(items: Sequence[str], heading: str | None) -> bool:
    """Whether columns of answers are people, as a column beside them has the items."""
    return bool(items) and heading not in items and speaks_of(str(heading), "item")


def _transposed(people: Sequence[str], item: str, time: str | None) -> WideLayout:
    """The layout of a table with a row an item and a column a person."""
    roles = {"id": "id", "item": item, "resp": "resp"}
    if time is not None:
        roles["time"] = time
    return WideLayout(tuple(people), (), roles, (f"item is {item!r}",), across="id")


def _person_columns(
    table: Table, found: str | None, items: Sequence[str], time: str | None
) -> list[str]:
    """The columns that name people: one, a first and a last name, or a column of distinct texts."""
    columns = [name for name in table.frame.columns if name not in items and name != time]
    plain = {plain_name(name): name for name in reversed(columns)}
    for names in FULL_NAMES:
        if all(name in plain for name in names) and found in (None, *(plain[n] for n in names)):
            return [plain[name] for name in names]
    if found is not None:
        return [found]
    for name in columns:
        values = [value for value in table.frame[name].to_list() if value is not None]
        texts = all(isinstance(value, str) for value in values)
        if texts and len(values) > 0.5 * len(table.frame) and 2 * len(set(values)) > len(values):
            return [name]
    return []


def _alike(frame: Any, items: Sequence[str]) -> Any:
    """The frame with one type in all columns of items: as they are, else numbers, else text."""
    types = {frame[name].dtype for name in items}
    if len(types) == 1:
        return frame
    numeric = all(dtype.is_numeric() or dtype == nw.Boolean for dtype in types)
    common = nw.Float64 if numeric else nw.String
    if isinstance(frame, PlainFrame):
        return frame.with_series({name: frame[name].cast(common()) for name in items})
    return frame.with_columns(nw.col(*items).cast(common))


def _free_name(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else _free_name(f"{name}_", taken)


def _ends(items: Sequence[str]) -> str:
    """The first and the last of some names."""
    few = 3
    return display_names(items) if len(items) <= few else f"{items[0]} … {items[-1]}"
