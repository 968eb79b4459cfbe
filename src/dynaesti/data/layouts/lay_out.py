"""Any table to one row an answer: its layout, answer key and choice of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaesti.data.columns import find_column
from dynaesti.data.layouts.answer_key import AnswerKey, read_key, score
from dynaesti.data.layouts.clock_column import with_clock
from dynaesti.data.layouts.known import KnownLayout, find_known
from dynaesti.data.layouts.layout import Layout, LayoutOptions, PlainLayout, column_texts, keep_rows
from dynaesti.data.layouts.names import matching_names
from dynaesti.data.layouts.other_rows import without_other_rows
from dynaesti.data.layouts.wide import WideLayout, find_wide
from dynaesti.data.readers.table import Table


@dataclass(frozen=True)
class TableReader:
    """How tables of one kind are laid out, found from the first of them."""

    layout: Layout
    key: AnswerKey | None
    only: Any

    @classmethod
    def of(
        cls, table: Table, given: Mapping[str, str | None], options: LayoutOptions
    ) -> TableReader:
        """The reader for tables such as this one.

        Parameters
        ----------
        table : Table
        given : mapping of role to column
            As the user named them; None where not.
        options : LayoutOptions
        """
        key = read_key(options.key)
        table = without_other_rows(table)
        layout: Layout | None = None
        if options.wide is None and options.items is None:
            layout = find_known(table, given)
        keyed = () if key is None else key.items
        layout = layout or find_wide(table, given, options, keyed) or PlainLayout()
        return cls(layout, key, options.only)

    def read(
        self,
        table: Table,
        given: Mapping[str, str | None],
        code: Mapping[str, float] | None = None,
    ) -> tuple[Table, dict[str, str | None]]:
        """A table with one row an answer, and the columns of all roles that are known.

        Parameters
        ----------
        table : Table
        given : mapping of role to column
        code : mapping of word to number, optional
            What the user says that words stand for; a key takes it into account.
        """
        laid = self.layout.apply(without_other_rows(table))
        roles = {
            role: name if name is not None else self.layout.roles.get(role)
            for role, name in given.items()
        }
        if given.get("time") is None and not isinstance(self.layout, KnownLayout):
            laid, roles["time"] = with_clock(laid, roles["time"])
        if self.only is not None or self.key is not None:
            laid = self._chosen_and_scored(laid, roles, code or {})
        return laid, roles

    def code_with(self, code: Mapping[str, float] | None) -> Mapping[str, float] | None:
        """Numbers for values of responses: as the layout has them, and the user's own.

        Where a key scored them, nothing is left to be said.
        """
        if self.key is not None:
            return None
        return {**self.layout.code, **(code or {})} or None

    def _chosen_and_scored(
        self, table: Table, roles: Mapping[str, str | None], code: Mapping[str, float]
    ) -> Table:
        """The rows of chosen items, scored by the key."""
        columns = {
            role: find_column(table, role, roles[role], []) for role in ("id", "item", "resp")
        }
        texts = column_texts(table, str(columns["item"]))
        items = self._items(texts)
        if self.only is not None:
            wanted = set(matching_names(items, self.only, "only"))
            items = [name for name in items if name in wanted]
            table = keep_rows(table, np.array([text in wanted for text in texts], dtype=bool))
        return table if self.key is None else score(table, self.key, columns, items, code)

    def _items(self, texts: Sequence[str]) -> list[str]:
        """All items in their order."""
        if isinstance(self.layout, WideLayout) and set(texts) <= set(self.layout.items):
            return list(self.layout.items)
        return sorted({text for text in texts if text})
