"""What a look at responses found before they are fitted, for people and for machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from dynaesti.data.checks import DataReport, check_responses
from dynaesti.data.responses import Responses
from dynaesti.data.time_axis import time_text
from dynaesti.errors import option

MOST_VALUES = 12  # distinct responses that are listed one by one
COLUMNS = "Columns: "  # begins the sentence on columns, and the note on those that were recognised
OTHERS_MEANT = " (not "  # in that note: columns that might have been meant
WIDE = "a wide table"  # begins the note on one, whose items and responses are no columns


@dataclass(frozen=True, repr=False)
class Validation:
    """What is in a table of responses, and what deserves attention; prints as sentences.

    `validate` returns it.

    Parameters
    ----------
    report : DataReport
        All findings, in numbers and in sentences.
    columns : dict of str to str or None
        Columns by their roles.
    unit : str
        Unit of the times.
    described : tuple of str
        What was read, in sentences.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = {"id": [1, 1, 2, 2], "item": [3, 4, 3, 4], "resp": [0, 1, 1, 0]}
    >>> found = dy.validate(table)
    >>> found.report.rows, found.columns["time"], found.timeless
    (4, None, True)
    """

    report: DataReport
    columns: dict[str, str | None]
    unit: str
    described: tuple[str, ...]

    @classmethod
    def of(cls, responses: Responses) -> Validation:
        """Check responses."""
        return cls(
            check_responses(responses),
            dict(responses.columns),
            responses.unit,
            tuple(_described(responses)),
        )

    @property
    def timeless(self) -> bool:
        """Whether there is no column of times."""
        return self.columns.get("time") is None

    @property
    def needs_attention(self) -> bool:
        """Whether something deserves a look before fitting."""
        return self.report.has_warnings or self.timeless

    @property
    def sentences(self) -> list[str]:
        """All findings, the verdict last."""
        # a note on some columns says nothing new, but where others might be meant
        notes = [
            one
            for one in self.report.sentences[1:]
            if not one.startswith(COLUMNS) or OTHERS_MEANT in one
        ]
        found = [self.report.sizes, *self.described, *notes]
        if self.timeless:
            found.append(
                "There is no column of times: only constant abilities can be fitted "
                f"({option('bandwidth', float('inf'))})."
            )
        verdict = "the points above need attention" if self.needs_attention else "nothing special"
        return [*found, f"Usable{';' if self.needs_attention else ','} {verdict}."]

    def as_dict(self) -> dict[str, Any]:
        """All findings by name, ready for JSON."""
        return {
            **asdict(self.report),
            "sentences": list(self.report.sentences),
            "cautions": [str(caution) for caution in self.report.cautions],
            "timeless": self.timeless,
            "needs_attention": self.needs_attention,
            "columns": self.columns,
            "unit": self.unit,
        }

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)


def _described(r: Responses) -> list[str]:
    """What was read, in sentences: columns, responses and times."""
    made = ("item", "resp") if any(note.startswith(WIDE) for note in r.notes) else ()
    named = [
        f"{role} is {name!r}"
        for role, name in r.columns.items()
        if name is not None and role not in made
    ]
    words = [f"{COLUMNS}{', '.join(named)}."]
    values, counts = np.unique(r.resp, return_counts=True)
    if values.size <= MOST_VALUES:
        each = [f"{value:g} ({count:,})" for value, count in zip(values, counts, strict=True)]
        words.append(f"Responses: {', '.join(each)}.")
    else:
        words.append(
            f"Responses: {values.size:,} different values from {values[0]:g} to {values[-1]:g}."
        )
    if r.columns.get("time") is not None:
        first, last = r.axis.restore(np.array([r.offsets.min(), r.offsets.max()]))
        words.append(f"Times run from {time_text(first)} to {time_text(last)} ({r.unit}).")
    return words
