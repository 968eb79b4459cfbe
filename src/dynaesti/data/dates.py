"""Columns of times: numbers, timestamps, Unix seconds, and dates written in any of the usual ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools
from dynaesti.data.columns import MISSING, as_text, floats, nulls, written_numbers
from dynaesti.data.read_log import ReadLog
from dynaesti.data.time_axis import TimeAxis, read_times
from dynaesti.errors import InputError, ResponseError, option

DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
CLOCK_FORMATS = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
UNIX = {
    "unix": (1, "seconds"),
    "unix-ms": (10**3, "milliseconds"),
    "unix-us": (10**6, "microseconds"),
    "unix-ns": (10**9, "nanoseconds"),
}
EPOCH_SECONDS = (3e8, 5e9)  # 1979 to 2128
YEARS = (1678, 2261)  # that nanoseconds since 1970 can tell
# dates that are written as numbers: the lowest, the highest, how they are read, and what that is
# called
WRITTEN_AS_NUMBERS = (
    (190001, 210012, "%Y%m", "YYYYMM"),
    (19000101, 21001231, "%Y%m%d", "YYYYMMDD"),
    (190001010000, 210012312359, "%Y%m%d%H%M", "YYYYMMDDHHMM"),
    (19000101000000, 21001231235959, "%Y%m%d%H%M%S", "YYYYMMDDHHMMSS"),
)


@dataclass(frozen=True)
class TimeOptions:
    """How a user wants times read.

    What numbers mean, the zone of stamps that lack one, and how dates are written.
    """

    unit: str | None = None
    timezone: str | None = None
    time_format: str | None = None

    def zone(self) -> ZoneInfo | None:
        """The zone of stamps without one."""
        try:
            return None if self.timezone is None else ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError):
            raise InputError(
                f"timezone: no zone is called {self.timezone!r}; use names such as "
                f"'Europe/Zurich' or 'UTC'"
            ) from None


def parse_times(
    series: nw.Series[Any], name: str, clock: TimeOptions, found: ReadLog
) -> tuple[TimeAxis, Array]:
    """A column as offsets on a time axis; the bad rows' offsets are zero and mean nothing."""
    blank = nulls(series)
    zoned = False
    quick = floats(series) if clock.time_format is None else None
    if quick is not None:
        if clock.timezone is not None:
            raise InputError(f"timezone: {name} holds numbers, which have no zone; leave it out")
        found.complain(~np.isfinite(quick), name, "have no time")
        raw = _meant(quick, name, clock, found)
    elif series.dtype in (nw.String, nw.Object, nw.Categorical) and not _holds_dates(series):
        raw, zoned = _times_of_text(
            np.asarray(series.to_numpy(), dtype=object), blank, name, clock, found
        )
    else:
        found.complain(blank, name, "have no time")
        good = series.filter((~found.bad).tolist()) if found.bad.any() else series
        return _spread(*_in_zone(*read_times(_native_times(good), name), name, clock, found), found)
    axis, offsets = (
        read_times(raw[~found.bad], name)
        if not found.bad.all()
        else (TimeAxis(0.0, 0, stamps=False, zoned=False), np.zeros(0))
    )
    return _spread(replace(axis, zoned=zoned), offsets, found)


def _in_zone(
    axis: TimeAxis, offsets: Array, name: str, clock: TimeOptions, found: ReadLog
) -> tuple[TimeAxis, Array]:
    """Timestamps that lack a zone as the local times that they were stated to be."""
    zone = clock.zone()
    if zone is None or axis.zoned or not axis.stamps:
        return axis, offsets
    stamps, code = np.unique(axis.restore(offsets).astype("datetime64[us]"), return_inverse=True)
    local = list(stamps.tolist())
    _tell_odd_hours([str(stamp) for stamp in local], local, zone, name, clock, found)
    found.notes += [
        f"{name}: stamps without a zone were taken as {clock.timezone} time",
        f"{name}: times are reported in UTC",
    ]
    moved, offsets = read_times(
        np.array([_in_utc(stamp, zone) for stamp in local], dtype="datetime64[us]")[code], name
    )
    return replace(moved, zoned=True), offsets


def _holds_dates(series: nw.Series[Any]) -> bool:
    """Whether a column of objects holds dates, not text."""
    return series.dtype == nw.Object and any(
        not isinstance(v, str) and v is not None for v in series.to_list()[:100]
    )


def _spread(axis: TimeAxis, offsets: Array, found: ReadLog) -> tuple[TimeAxis, Array]:
    out = np.zeros(found.bad.size)
    out[~found.bad] = offsets
    return axis, out


def _native_times(series: nw.Series[Any]) -> Any:
    native = series.to_native()
    return (
        native.to_numpy()
        if type(native).__module__.startswith("pandas")
        and getattr(native.dtype, "tz", None) is None
        else native
    )


def _meant(raw: Array, name: str, clock: TimeOptions, found: ReadLog) -> npt.NDArray[Any]:
    """Numbers as they are, or as the dates they write or count."""
    fine = raw[~found.bad]
    if clock.unit in UNIX:
        likely = looks_like_epoch(fine)
        if likely not in (None, clock.unit):
            raise ResponseError(
                f"{name}: numbers such as {fine[0]:.0f} do not count {UNIX[clock.unit][1]} since "
                f"1970; did you mean {option('unit', likely)}?"
            )
        return _from_epoch(raw, clock.unit, name, found)
    if clock.unit is not None or not fine.size:
        return raw
    _refuse_mixed_clocks(fine, name)
    unit = _mostly_epoch(fine)
    if unit is not None:
        low, high = (edge * UNIX[unit][0] for edge in EPOCH_SECONDS)
        found.complain(
            ~((raw > low) & (raw < high)),
            name,
            f"hold no Unix time in {UNIX[unit][1]}, where the others do",
            raw,
        )
        fine = raw[~found.bad]
        found.notes.append(
            f"{name}: numbers such as {fine[0]:.0f} were taken as Unix time in {UNIX[unit][1]}; "
            f"if they are something else, state their unit"
        )
        return _from_epoch(raw, unit, name, found)
    for low, high, form, called in WRITTEN_AS_NUMBERS:
        near = (fine >= low) & (fine <= high) & (fine == np.floor(fine))
        if near.mean() < (MOST_ALIKE if fine.size >= FEW_ROWS else 1.0):
            continue
        values, counts = np.unique(fine, return_counts=True)
        dates = [
            _read_date(f"{value:.0f}", form)
            if low <= value <= high and value.is_integer()
            else None
            for value in values.tolist()
        ]
        known = np.array([date is not None for date in dates])
        if counts[known].sum() >= (MOST_ALIKE if fine.size >= FEW_ROWS else 1.0) * fine.size:
            found.complain(
                ~np.isin(raw, values[known]),
                name,
                f"hold no date where the others do ({called})",
                raw,
            )
            found.notes.append(
                f"{name}: numbers such as {fine[0]:.0f} were read as dates ({called}); times are "
                f"in days"
            )
            lookup = dict(zip(values.tolist(), dates, strict=True))
            return np.array(
                [lookup.get(value, datetime(2000, 1, 1)) for value in raw.tolist()],
                dtype="datetime64[ns]",
            )
    return raw


def _from_epoch(raw: Array, unit: str, name: str, found: ReadLog) -> npt.NDArray[Any]:
    """Stamps from a count since 1970; counts beyond what can be told are complained of."""
    seconds = np.nan_to_num(raw) / UNIX[unit][0]
    found.complain(
        ~(np.abs(seconds) < LAST_SECOND), name, f"lie outside the years {YEARS[0]} to {YEARS[1]}"
    )
    seconds = np.where(np.abs(seconds) < LAST_SECOND, seconds, 0.0)
    whole = np.floor(seconds)  # seconds and the rest apart: a product of both would lose digits
    return (
        whole.astype(np.int64) * 10**9 + np.rint((seconds - whole) * 1e9).astype(np.int64)
    ).astype("datetime64[ns]")


LAST_SECOND = 9.2e9  # since 1970, that nanoseconds in 64 bits can tell
# share of numbers that are dates, of at least so many, that makes the others odd
MOST_ALIKE = 0.9
FEW_ROWS = 10


def _mostly_epoch(values: Array) -> str | None:
    """The clock that nearly all of many numbers look like, or all of a few."""
    for unit, (scale, _) in UNIX.items():
        inside = (values > EPOCH_SECONDS[0] * scale) & (values < EPOCH_SECONDS[1] * scale)
        if inside.mean() >= (MOST_ALIKE if values.size >= FEW_ROWS else 1.0):
            return unit
    return None


def looks_like_epoch(values: Array) -> str | None:
    """The clock ("unix", "unix-ms", …) that numbers look like."""
    if not values.size:
        return None
    low = float(np.nanmin(values))
    high = float(np.nanmax(values))
    return next(
        (
            unit
            for unit, (scale, _) in UNIX.items()
            if low > EPOCH_SECONDS[0] * scale and high < EPOCH_SECONDS[1] * scale
        ),
        None,
    )


def _refuse_mixed_clocks(values: Array, name: str) -> None:
    """Refuse numbers of which some count seconds since 1970 and some thousandths, and none anything
    else.
    """
    counts = {
        told: int(((values > EPOCH_SECONDS[0] * scale) & (values < EPOCH_SECONDS[1] * scale)).sum())
        for scale, told in UNIX.values()
    }
    held = {told: count for told, count in counts.items() if count}
    if len(held) > 1 and sum(held.values()) == values.size:
        raise ResponseError(
            f"{name}: "
            + " and ".join(f"{count:,} values count {told}" for told, count in held.items())
            + " since 1970; make them alike"
        )


def _times_of_text(
    raw: npt.NDArray[Any], blank: Bools, name: str, clock: TimeOptions, found: ReadLog
) -> tuple[npt.NDArray[Any], bool]:
    """Numbers or dates written as text, and whether their zone is known."""
    texts, code = np.unique(as_text(raw, blank), return_inverse=True)
    stripped = [text.strip() for text in texts.tolist()]
    absent = np.array([text.lower() in MISSING for text in stripped])
    found.complain(absent[code], name, "have no time")
    plain, _ = written_numbers(stripped)
    given = np.flatnonzero(~absent)
    if (
        clock.time_format is None
        and given.size
        and np.isfinite(plain[code]).sum() >= 0.5 * (~absent[code]).sum()
    ):  # a few are garbage
        found.complain(
            (~np.isfinite(plain) & ~absent)[code], name, "hold no number where the others do", raw
        )
        return _meant(np.nan_to_num(plain)[code], name, clock, found), False
    stamps, zones = _stamps_of_text([stripped[k] for k in given], name, clock, found)
    unread = np.zeros(texts.size, dtype=bool)
    far = np.zeros(texts.size, dtype=bool)
    unread[given] = [stamp is None for stamp in stamps]
    far[given] = [stamp is not None and not YEARS[0] <= stamp.year <= YEARS[1] for stamp in stamps]
    found.complain(unread[code], name, "hold no time", raw)
    found.complain(
        far[code],
        name,
        f"lie outside the years {YEARS[0]} to {YEARS[1]} (some databases write 'no date' so)",
        raw,
    )
    whole = np.full(texts.size, np.datetime64("2000-01-01", "ns"))
    for k, stamp in zip(given, stamps, strict=True):
        if stamp is not None and not far[k]:
            whole[k] = np.datetime64(stamp, "ns")
    return whole[code], zones


def _stamps_of_text(
    texts: list[str], name: str, clock: TimeOptions, found: ReadLog
) -> tuple[list[datetime | None], bool]:
    """Stamps in UTC (None where a text is none), and whether zones were given or stated."""
    read = _reader(texts, name, clock, found)
    stamps = [read(text) for text in texts]
    known = [stamp for stamp in stamps if stamp is not None]
    with_zone = sum(stamp.tzinfo is not None for stamp in known)
    zone = clock.zone()
    if zone is None and 0 < with_zone < len(known):
        bare = next(
            text
            for text, stamp in zip(texts, stamps, strict=True)
            if stamp is not None and stamp.tzinfo is None
        )
        raise ResponseError(
            f"{name}: {with_zone:,} kinds of stamps have a time zone and "
            f"{len(known) - with_zone:,} lack one (first: "
            f"{bare!r}); say what those mean by {option('timezone', 'Europe/Zurich')}"
        )
    if zone is not None and with_zone < len(known):
        found.notes.append(f"{name}: stamps without a zone were taken as {clock.timezone} time")
        _tell_odd_hours(texts, stamps, zone, name, clock, found)
    if with_zone or zone is not None:
        found.notes.append(f"{name}: times are reported in UTC")
    return [_in_utc(stamp, zone) for stamp in stamps], bool(with_zone or zone is not None)


def _in_utc(stamp: datetime | None, zone: ZoneInfo | None) -> datetime | None:
    if stamp is None or (stamp.tzinfo is None and zone is None):
        return stamp
    if (
        not YEARS[0] <= stamp.year <= YEARS[1]
    ):  # to be complained of; there is no UTC to the first and last day of all
        return stamp.replace(tzinfo=None)
    return (
        (stamp.replace(tzinfo=zone) if stamp.tzinfo is None else stamp)
        .astimezone(UTC)
        .replace(tzinfo=None)
    )


def _tell_odd_hours(
    texts: list[str],
    stamps: list[datetime | None],
    zone: ZoneInfo,
    name: str,
    clock: TimeOptions,
    found: ReadLog,
) -> None:
    """Tell of local times that a change of the clock skips, or has twice."""
    skipped: list[str] = []
    twice: list[str] = []
    for text, stamp in zip(texts, stamps, strict=True):
        if stamp is None or stamp.tzinfo is not None or not YEARS[0] <= stamp.year <= YEARS[1]:
            continue
        first, second = (stamp.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
        if first != second:  # asked before and after the change
            exists = (
                stamp.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None)
                == stamp
            )
            (twice if exists else skipped).append(text)
    if skipped:
        found.notes.append(
            f"{name}: {len(skipped):,} kinds of times do not exist in {clock.timezone}, whose "
            f"clocks skip them (first: "
            f"{skipped[0]!r}); they were read as if the clocks had not been changed yet. Is the "
            f"zone right?"
        )
    if twice:
        found.notes.append(
            f"{name}: {len(twice):,} kinds of times occur twice in {clock.timezone}, whose clocks "
            f"go back (first: "
            f"{twice[0]!r}); the earlier of both was taken"
        )


def _reader(
    texts: list[str], name: str, clock: TimeOptions, found: ReadLog
) -> Callable[[str], datetime | None]:
    """The way of reading dates that understands most of the texts.

    Two ways that understand them differently are refused.
    """
    if clock.time_format is not None:
        form = clock.time_format
        return lambda text: _read_date(text, form)
    sample = texts[:: max(1, len(texts) // 2000)]
    if sum(_read_iso(text) is not None for text in sample) >= 0.5 * len(sample):
        return _read_iso
    ways: dict[str, int] = {}
    for form in DATE_FORMATS:
        for tail in CLOCK_FORMATS:
            hits = sum(_read_date(text, form + tail) is not None for text in sample)
            if hits:
                ways[form + tail] = hits
    if not ways:
        return _read_iso
    best = max(ways.values())
    top = [form for form, hits in ways.items() if hits == best]
    if len(top) > 1 and any(
        None not in (both := (_read_date(text, top[0]), _read_date(text, top[1])))
        and both[0] != both[1]
        for text in sample
    ):
        raise ResponseError(
            f"{name}: dates such as {sample[0]!r} can be read as {top[0]!r} or {top[1]!r}; say "
            f"which by {option('time_format')}"
        )
    found.notes.append(f"{name}: dates were read as {top[0]!r}")
    found.time_format = top[0]
    return lambda text: _read_date(text, top[0])


def _read_date(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def _read_iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
