"""What was decided while reading a table, and which of its rows cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Bools
from dynaesti.data.labels import count_noun
from dynaesti.data.readers.table import Table
from dynaesti.errors import ResponseError, option

EXAMPLES = 3  # rows that a message names
LONGEST_WORD = 40  # to which it does
CODED = 2  # words to which a message gives numbers


@dataclass
class ReadLog:
    """Rows of a table that cannot be used, with reasons, and notes on how its columns were read.

    The parsers of columns write into one log, one after the other. `raise_or_drop` ends the
    reading.
    """

    table: Table
    bad: Bools  # (n_rows,): rows that cannot be used
    notes: list[str] = field(default_factory=list)  # decisions, each a clause without a period
    problems: list[str] = field(default_factory=list)  # why rows were rejected, each a clause
    time_format: str | None = None  # how dates are written, where that was found out and is not ISO
    unread_words: list[str] = field(default_factory=list)  # to which `code` could give numbers
    needs_format: bool = False  # whether dates were written in no known way
    beside_numbers: bool = False  # whether these words stand among numbers
    needs_key: bool = False  # whether they were letters, which a key could score
    key_row: str | None = None  # the id of the row that seems to have the right answers

    def reject(
        self, rows: Bools, name: str, what: str, values: npt.NDArray[Any] | None = None
    ) -> None:
        """Mark rows as unusable, and record why, with up to EXAMPLES examples.

        Rows that are marked already are not counted again.

        Parameters
        ----------
        rows : bool array (n_rows,)
            Which rows to mark.
        name : str
            The column, as messages call it.
        what : str
            What is wrong, as the predicate of "3 of 10 rows …".
        values : array (n_rows,), optional
            The column's values, to be quoted in the examples.
        """
        new = np.flatnonzero(rows & ~self.bad)
        if not new.size:
            return
        examples = []
        for k in new[:EXAMPLES].tolist():
            value = "" if values is None else f"{values[k : k + 1].tolist()[0]!r} in "
            examples.append(f"{value}{self.table.where(k)}")
        self.problems.append(
            f"{name}: {new.size:,} of {rows.size:,} rows {what} "
            f"({'; '.join(examples)}{'; …' if new.size > EXAMPLES else ''})"
        )
        self.bad |= rows

    def _code(self, words: list[str]) -> str:
        """Numbers that could be given to words; among numbers they often say that there is none."""
        if self.beside_numbers:
            none = option("code", {words[0]: float("nan")})
            return f"{none} (no answer) or {option('code', {words[0]: 0})}"
        return option("code", {word: k for k, word in enumerate(words)})

    def raise_if_none_is_left(self, drop: bool) -> None:
        """Raise if all rows were rejected: what else is wrong with them is the smaller problem."""
        if self.bad.all() and self.problems:
            self.raise_or_drop(drop)

    def raise_or_drop(self, drop: bool) -> None:
        """Raise an error if rows were rejected, or with `drop` only note that they are left out.

        Raises
        ------
        ResponseError
            If there are unusable rows or lines and `drop` is false, or if no row is left.
        """
        broken = self.table.broken
        if broken:
            examples = "; ".join(broken[:EXAMPLES]) + ("; …" if len(broken) > EXAMPLES else "")
            lines = count_noun(len(broken), "lines")
            self.problems.insert(0, f"{lines} cannot be read as rows of the table ({examples})")
        if not self.problems:
            return
        if not drop:
            remedy = ""
            if self.needs_key:
                key = option("key", self.key_row or {"Q1": "A", "Q2": "C"})
                remedy = f", or say which answers are right: {key}"
            elif self.unread_words:
                words = sorted(self.unread_words, key=len)[:CODED]
                words = [word for word in words if len(word) <= LONGEST_WORD] or ["never"]
                remedy = f", or say what words stand for, such as {self._code(words)}"
            if self.needs_format:
                form = option("time_format", "%d.%m.%Y")
                remedy += f", or say how times are written, such as {form}"
            drop_rows = option("unreadable", "drop", python="Responses.read(…, unreadable='drop')")
            raise ResponseError(
                ". ".join(self.problems) + ". Repair them, or leave these rows out by "
                f"{drop_rows}{remedy}"
            )
        if self.bad.all():
            raise ResponseError(". ".join(self.problems) + ". No row is left")
        self.notes += [f"left out: {problem}" for problem in self.problems]
