"""How dates are written: one way for most columns, several where files were put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from dynaesti.data.date_texts import plain_date
from dynaesti.data.labels import count_noun
from dynaesti.data.read_log import ReadLog
from dynaesti.errors import ResponseError, option

ISO = "ISO"
DATE_FORMATS = (
    "%d.%m.%Y",
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%Y.%m.%d",
    "%d %b %Y",
    "%b %d %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%d %b %y",
)
CLOCK_FORMATS = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p"),
    *(" %H:%M:%S %z", " %H:%M %z", " %I:%M:%S %p %z", " %I:%M %p %z"),
)
MONTH_FORMATS = ("%Y-%m", "%b %Y", "%m/%Y", "%m.%Y", "%b %y")  # whose first day is meant
JAVA = "%b %d %H:%M:%S %z %Y"
FORMATS = (
    *(date + clock for date in DATE_FORMATS for clock in CLOCK_FORMATS),
    *MONTH_FORMATS,
    JAVA,
)
MOST_SAMPLED = 2000  # distinct texts by which the format of dates is found out
FIRST_SAMPLED = 100  # of them, by which formats are shortlisted
MOST_FORMATS = 6  # in one column


def read_dates(
    texts: Sequence[str], counts: npt.NDArray[np.int64], name: str, log: ReadLog
) -> list[datetime | None]:
    """Timestamps of distinct texts, each by the first format that fits; None where none does.

    The format that most texts have comes first, then that of most others, and so on.

    Parameters
    ----------
    texts : sequence of str
    counts : int array (n_texts,)
        In how many rows each stands.
    name : str
        The column, as messages call it.
    log : ReadLog
        Gets a note on formats other than ISO.

    Raises
    ------
    ResponseError
        If two formats read as many, but differently.
    """
    texts = [plain_date(text) for text in texts]
    stamps: list[datetime | None] = [None] * len(texts)
    left = list(range(len(texts)))
    rows: dict[str, int] = {}
    while left and len(rows) < MOST_FORMATS:
        form = _likeliest([texts[k] for k in left], name, list(rows))
        if form is None:
            break
        read = date_reader(form)
        for k in left:
            stamps[k] = read(texts[k])
        rows[form] = sum(int(counts[k]) for k in left if stamps[k] is not None)
        left = [k for k in left if stamps[k] is None]
    if len(rows) == 1 and ISO not in rows:
        log.time_format = next(iter(rows))
        log.notes.append(f"{name}: dates were read as {log.time_format!r}")
    elif len(rows) > 1:
        told = ", ".join(f"{form} ({count_noun(n, 'rows')})" for form, n in rows.items())
        log.notes.append(f"{name}: dates are written in {len(rows)} ways: {told}")
    return stamps


def is_date(text: str) -> bool:
    """Whether a text, more than a number, writes a date in some known way."""
    plain = plain_date(text.strip())
    if plain.replace(".", "", 1).isdigit():
        return False
    return any(read_date(plain, form) is not None for form in (ISO, *FORMATS))


def date_reader(form: str) -> Callable[[str], datetime | None]:
    """What `read_date` does in one format, for many texts.

    Of a date and a clock each is read once: there are fewer of them than of both together.
    """
    date_form, space, clock_form = form.partition(" %H")
    if not space or "%z" in form or form == JAVA:
        return lambda text: read_date(text, form)
    n_words = date_form.count(" ") + 1
    dates: dict[str, datetime | None] = {}
    clocks: dict[str, timedelta | None] = {}

    def read(text: str) -> datetime | None:
        words = text.split(" ", n_words)
        if len(words) != n_words + 1:
            return None
        day = text[: -len(words[-1]) - 1]
        if day not in dates:
            dates[day] = read_date(day, date_form)
        if words[-1] not in clocks:
            clock = read_date(words[-1], f"%H{clock_form}")
            clocks[words[-1]] = None if clock is None else clock - datetime(1900, 1, 1)
        date, hours = dates[day], clocks[words[-1]]
        return None if date is None or hours is None else date + hours

    return read


def read_date(text: str, form: str) -> datetime | None:
    """The timestamp that a text writes in a format, or in ISO; None if it is none."""
    try:
        return datetime.fromisoformat(text) if form == ISO else datetime.strptime(text, form)
    except ValueError:
        return None


def _likeliest(texts: Sequence[str], name: str, before: Sequence[str]) -> str | None:
    """The format of most texts; None if none fits. `before` are those of other texts."""
    sample = texts[:: max(1, len(texts) // MOST_SAMPLED)]
    n_iso = _hits(sample, ISO)
    if 2 * n_iso >= len(sample):
        return ISO
    shortlist = [
        form
        for form in FORMATS
        if form not in before and _hits(sample[:: max(1, len(sample) // FIRST_SAMPLED)], form)
    ]
    hits = {form: _hits(sample, form) for form in shortlist}
    most = max(hits.values(), default=0)
    if most <= n_iso:
        return ISO if n_iso else None
    best = [form for form, count in hits.items() if count == most]
    if len(best) > 1 and _read_differently(sample, best[0], best[1]):
        # as other dates of the column have it: the day first, or the month
        alike = [form for form in best if any(_order(form) == _order(one) for one in before)]
        if len(alike) == 1:
            return alike[0]
        raise ResponseError(
            f"{name}: dates such as {sample[0]!r} can be read as {best[0]!r} or {best[1]!r}; say "
            f"which by {option('time_format')}"
        )
    return best[0]


def _hits(texts: Sequence[str], form: str) -> int:
    return sum(read_date(text, form) is not None for text in texts)


def _order(form: str) -> str:
    """The order of day, month and year in a format: dmy, mdy or ymd."""
    return "".join(c for c in form.lower().replace("b", "m")[:10] if c in "dmy")


def _read_differently(texts: Sequence[str], form: str, other: str) -> bool:
    """Whether two formats make different dates of some text."""
    for text in texts:
        date = read_date(text, form)
        other_date = read_date(text, other)
        if date is not None and other_date is not None and date != other_date:
            return True
    return False
