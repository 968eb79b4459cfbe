"""What was decided while reading a table, and which of its rows cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Bools
from dynaesti.data.readers.table import Table
from dynaesti.errors import ResponseError, option


@dataclass
class ReadLog:
    """What reading the columns brought to light: rows to leave out and why, and notes in words."""

    table: Table
    bad: Bools
    notes: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    time_format: str | None = None  # how dates turned out to be written, where it is not ISO
    wordy: bool = False  # whether responses were words that a code could explain

    def complain(
        self, rows: Bools, name: str, what: str, values: npt.NDArray[Any] | None = None
    ) -> None:
        """Mark rows as unusable, with up to three examples."""
        at = np.flatnonzero(rows & ~self.bad)
        if not at.size:
            return
        examples = [
            "" if values is None else f"{values[k : k + 1].tolist()[0]!r} in " for k in at[:3]
        ]
        shown = [
            f"{example}{self.table.where(int(k))}" for example, k in zip(examples, at, strict=False)
        ]
        self.complaints.append(
            f"{name}: {at.size:,} of {rows.size:,} rows {what} "
            f"({'; '.join(shown)}{'; …' if at.size > 3 else ''})"
        )
        self.bad |= rows

    def settle(self, drop: bool) -> None:
        """Refuse unusable rows, or leave them out and say so."""
        broken = self.table.broken
        if broken:
            examples = "; ".join(broken[:3]) + ("; …" if len(broken) > 3 else "")
            self.complaints.insert(
                0, f"{len(broken):,} lines cannot be read as rows of the table ({examples})"
            )
        if not self.complaints:
            return
        if not drop:
            drop_rows = option("unreadable", "drop", python="Responses.read(…, unreadable='drop')")
            words = (
                f", or say what words stand for: {option('code', {'never': 0})}"
                if self.wordy
                else ""
            )
            raise ResponseError(
                f"{'. '.join(self.complaints)}. Repair them, or leave these rows out by "
                f"{drop_rows}{words}"
            )
        if self.bad.all():
            raise ResponseError(". ".join(self.complaints) + ". No row is left")
        self.notes += [f"left out: {complaint}" for complaint in self.complaints]
