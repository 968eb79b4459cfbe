"""Dates in one column and hours in another: one column of times."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dynaesti.data.headings import plain_name, recognise
from dynaesti.data.layouts.layout import column_texts, with_column, with_notes
from dynaesti.data.readers.table import Table
from dynaesti.data.response_words import MISSING

CLOCK = re.compile(r"\d{1,2}[:.h]\d{2}([:.]\d{2}(\.\d+)?)?( ?[ap]\.?m\.?)?", re.IGNORECASE)
MIDNIGHT = re.compile(r"[T ]00:00:00(\.0+)?$")  # of dates that a frame holds as timestamps
WITH_CLOCK = re.compile(r"\d[:h]\d\d")
HOURS = ("time", "uhrzeit", "zeit", "heure", "hora", "clock", "start_time", "time_of_day")
SAMPLED = 200


def with_clock(table: Table, time: str | None) -> tuple[Table, str | None]:
    """The table with a column of dates and hours, where these stand apart, and its name.

    Parameters
    ----------
    table : Table
    time : str, optional
        The column of times so far. Default: the one whose heading is the likeliest.
    """
    found = time if time is not None else next(iter(recognise(table.frame.columns, "time")), None)
    if found is None:
        return table, time
    plain = {plain_name(name): name for name in reversed(table.frame.columns)}
    hours = next(
        (
            plain[name]
            for name in HOURS
            if name in plain and plain[name] != found and _holds_hours(table, plain[name])
        ),
        None,
    )
    if hours is None:
        return table, time
    dates = [MIDNIGHT.sub("", text) for text in column_texts(table, found)]
    if not all(any(c.isdigit() for c in text) and len(text) > 5 for text in _given(dates)) or any(
        WITH_CLOCK.search(text) for text in _given(dates)
    ):
        return table, time
    both = [
        None if date in MISSING else date if clock in MISSING else f"{date} {_colons(clock)}"
        for date, clock in zip(dates, column_texts(table, hours), strict=True)
    ]
    name = f"{found} + {hours}"
    note = f"time: dates of {found!r} and hours of {hours!r} were put together"
    return with_notes(with_column(table, name, both), note), name


def _holds_hours(table: Table, name: str) -> bool:
    given = _given(column_texts(table, name))
    return bool(given) and all(CLOCK.fullmatch(text.strip()) for text in given)


def _given(texts: Sequence[str]) -> list[str]:
    """Some of the texts that say something."""
    return [text for text in texts[:SAMPLED] if text.strip().lower() not in MISSING]


def _colons(clock: str) -> str:
    return re.sub(r"(?<=\d)[.h](?=\d)", ":", clock.strip())
