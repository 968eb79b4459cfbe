"""Wide tables: one row a person or a sitting, one column an item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw

from dynaesti.data.columns import find_column
from dynaesti.data.headings import SYNONYMS, guess, look_like_data, plain_name
from dynaesti.data.labels import display_names
from dynaesti.data.layouts.layout import LayoutOptions, is_blank, with_column
from dynaesti.data.layouts.names import matching_names
from dynaesti.data.readers.dialect import UNNAMED
from dynaesti.data.readers.plain import PlainFrame
from dynaesti.data.readers.table import Table
from dynaesti.data.response_words import MARKS, WORDS, is_choice, is_no_answer, written_numbers
from dynaesti.errors import ResponseError, option

NUMBERED = re.compile(r"(?P<stem>.*?)[\s_.#(\[-]*\d+[a-z]?[)\]]?(\s*/\s*[\d.,]+)?")
SAMPLED = 2000  # rows by which it is judged what a column holds
MOST_VALUES = 25  # distinct ones of a column of answers
FEWEST_ALIKE = 3  # columns without numbers in their names that make a wide table
TOTALS = re.compile(
    r"(grand[ _])?(total|sum|mean|average|score|points|grade|mark|percent|percentage|summe|gesamt|"
    r"punkte|note|ergebnis|moyenne|somme|suma|promedio|nota)\b.*|%",
)
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
    """Columns of items, beside columns that say whose row it is and when."""

    items: tuple[str, ...]
    person: tuple[str, ...]  # columns that name the person; empty for the number of the row
    roles: Mapping[str, str]
    recognised: tuple[str, ...]  # which roles columns were recognised to play, each a clause
    code: Mapping[str, float] = field(default_factory=dict)

    def apply(self, table: Table) -> Table:
        """The table with a row for each cell of the columns of items."""
        whole = self._with_person(table)
        frame = whole.frame
        beside = [name for name in frame.columns if name not in (*self.items, "item", "resp")]
        n_rows = len(frame)
        long = _alike(frame, self.items).unpivot(
            on=list(self.items), index=beside, variable_name="item", value_name="resp"
        )

        def origin(row: int) -> str:
            return f"{table.where(row % n_rows)}, column {self.items[row // n_rows]!r}"

        return replace(
            whole,
            frame=long,
            notes=(*table.notes, *self._notes(table)),
            origin=origin,
            made=("item", "resp"),
        )

    def _with_person(self, table: Table) -> Table:
        """The table with one column that says whose row it is."""
        if len(self.person) == 1:
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
        note = (
            f"a wide table: {len(self.items)} columns are items ({_ends(self.items)}); "
            f"{option('wide', False)} reads one answer a row"
        )
        notes = [note]
        if not self.person:
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
    if options.wide is None and options.items is None and look_like_data(columns):
        return None
    named = {role: name for role, name in given.items() if name in columns}
    found = {
        role: named.get(role) or next(iter(guess(columns, role)), None)
        for role in ("id", "item", "resp", "time")
    }
    is_long = found["item"] is not None and found["resp"] is not None
    if options.items is None and not options.wide and (is_long or {"item", "resp"} & named.keys()):
        return None
    beside = {*named.values(), found["id"], found["time"]}
    free = [name for name in columns if name not in beside and not name.startswith(UNNAMED)]
    items = _choose_items(table, free, options, keyed)
    if not items:
        if options.wide:
            raise ResponseError(
                f"wide: none of the columns holds answers ({display_names(columns)}); name those "
                f"of the items by {option('items', ['Q*'])}"
            )
        return None
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
    roles = {"id": whose, "item": "item", "resp": "resp"}
    if found["time"] is not None:
        roles["time"] = found["time"]
    return WideLayout(tuple(items), tuple(person), roles, tuple(recognised))


def _choose_items(
    table: Table, free: Sequence[str], options: LayoutOptions, keyed: Sequence[str]
) -> list[str]:
    """Columns of items: as named, as the key has them, numbered alike, or holding 0 and 1."""
    if options.items is not None:
        return matching_names(free, options.items, "items")
    kinds = {name: _kind_of_answers(table.frame[name]) for name in free}
    numbered = _numbered(free, kinds)
    with_key = [name for name in free if name in keyed]
    if len(with_key) > 1 and not set(with_key) <= set(numbered):
        return with_key
    if numbered:
        return numbered
    answers = [name for name in free if kinds[name] and not TOTALS.fullmatch(plain_name(name))]
    if options.wide:
        return answers
    alike = [name for name in answers if kinds[name] in ("binary", "letters")]
    return alike if len(alike) >= FEWEST_ALIKE and 2 * len(alike) >= len(free) else []


def _numbered(free: Sequence[str], kinds: Mapping[str, str | None]) -> list[str]:
    """Columns whose names differ in a number and that hold answers (or nothing)."""
    stems: dict[str, list[str]] = {}
    others = {*SYNONYMS["id"], *SYNONYMS["time"], "weight", "cov", "rt"}
    for name in free:
        match = NUMBERED.fullmatch(name.strip().lower())
        if match and plain_name(match["stem"]) not in others and kinds[name]:
            stems.setdefault(match["stem"], []).append(name)
    groups = [
        names
        for names in stems.values()
        if len(names) > 1 and any(kinds[name] != "empty" for name in names)
    ]
    chosen = {name for names in groups for name in names}
    return [name for name in free if name in chosen]


def _kind_of_answers(series: nw.Series[Any]) -> str | None:
    """What answers a column holds: binary, numbers, letters, empty; None if it holds others."""
    values = {
        str(value).strip().lower()
        for value in series.head(SAMPLED).to_list()
        if not is_blank(value)
    }
    if any(values - {""} <= set(marks) for marks in MARKS):
        return "binary" if values - {""} else "empty"
    values = {value for value in values if not is_no_answer(value)}
    if not values:
        return "empty"
    if len(values) > MOST_VALUES:
        return None
    if values <= {"0", "1", "0.0", "1.0", *WORDS}:
        return "binary"
    words = {value for value in values if not _is_number(value)}
    if words <= written_numbers(words).keys():
        return "numbers"
    return "letters" if all(map(is_choice, values)) else None


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


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
