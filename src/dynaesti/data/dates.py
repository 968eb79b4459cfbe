"""Columns of times: numbers, timestamps, Unix time, and dates written in the usual ways."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools
from dynaesti.data.columns import PROBED, as_text, floats_of_texts, null_mask, try_floats
from dynaesti.data.date_formats import read_date, read_dates
from dynaesti.data.date_texts import occasion_numbers, plain_date
from dynaesti.data.read_log import ReadLog
from dynaesti.data.response_words import MISSING
from dynaesti.data.time_axis import YEARS, TimeAxis, read_times
from dynaesti.errors import InputError, ResponseError, option

# unit: (its number in a second, its name)
UNIX = {
    "unix": (1, "seconds"),
    "unix-ms": (10**3, "milliseconds"),
    "unix-us": (10**6, "microseconds"),
    "unix-ns": (10**9, "nanoseconds"),
}
YEARS_UNIT = "years"
UNIX_SECONDS = (3e8, 5e9)  # 1979 to 2128: numbers in between look like Unix time
LAST_SECOND = 9.2e9  # since 1970: beyond, nanoseconds overflow 64 bits
# dates that are written as numbers: lowest, highest, format, name of the format
DATES_AS_NUMBERS = (
    (190001, 210012, "%Y%m", "YYYYMM"),
    (19000101, 21001231, "%Y%m%d", "YYYYMMDD"),
    (190001010000, 210012312359, "%Y%m%d%H%M", "YYYYMMDDHHMM"),
    (19000101000000, 21001231235959, "%Y%m%d%H%M%S", "YYYYMMDDHHMMSS"),
)
# of MIN_ROWS numbers or more this fraction has to look like dates for all to be read as dates; of
# fewer numbers all have to
MOST_ALIKE = 0.9
HAS_YEAR = re.compile(r"%[-#]?[YyGcxDs]")  # a format of dates
MIN_ROWS = 10
OCCASIONS_TOLD = 3
PLACEHOLDER = datetime(2000, 1, 1)  # in rejected rows


@dataclass(frozen=True)
class TimeOptions:
    """How a user wants times to be read.

    Parameters
    ----------
    unit : str, optional
        What one unit of numeric times is; "unix", "unix-ms", "unix-us" and "unix-ns" make dates of
        them; "years" makes decimal years of dates.
    timezone : str, optional
        Zone of timestamps that lack one, such as "Europe/Zurich".
    time_format : str, optional
        How dates are written, as in `strptime`.
    """

    unit: str | None = None
    timezone: str | None = None
    time_format: str | None = None

    def __post_init__(self) -> None:
        if self.time_format and "%" in self.time_format and not HAS_YEAR.search(self.time_format):
            raise InputError(
                f"time_format: {self.time_format!r} has no year (%Y or %y), and dates need one: "
                f"write it into the data"
            )

    def zone(self) -> ZoneInfo | None:
        """The zone of timestamps that lack one, if it was given.

        Raises
        ------
        InputError
            If there is no zone of that name.
        """
        try:
            return None if self.timezone is None else ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError):
            raise InputError(
                f"timezone: no zone is called {self.timezone!r}; use names such as "
                f"'Europe/Zurich' or 'UTC'"
            ) from None


def parse_times(
    series: nw.Series[Any], name: str, options: TimeOptions, log: ReadLog
) -> tuple[TimeAxis, Array]:
    """Parse a column as offsets (n_rows,) on a time axis; they are 0 in rejected rows.

    Timestamps are counted in days, or with the unit "years" as decimal years.

    Raises
    ------
    InputError
        If a zone was given for numbers, or is unknown.
    ResponseError
        If numbers or dates can be read in more than one way.
    """
    axis, offsets = _parse_as_they_are(series, name, options, log)
    if options.unit != YEARS_UNIT or not axis.stamps or log.bad.all():
        return axis, offsets
    log.notes.append(f"{name}: dates are counted in decimal years")
    good = ~log.bad
    axis, offsets[good] = read_times(decimal_years(axis.restore(offsets[good])), name)
    return axis, offsets


def _parse_as_they_are(
    series: nw.Series[Any], name: str, options: TimeOptions, log: ReadLog
) -> tuple[TimeAxis, Array]:
    """Parse a column as offsets on an axis of numbers, or of timestamps."""
    blank = null_mask(series)
    zoned = False
    iso = _plain_iso(series, options)
    numbers = try_floats(series) if iso is None and options.time_format is None else None
    if numbers is not None:
        if options.timezone is not None:
            raise InputError(f"timezone: {name} holds numbers, which have no zone; leave it out")
        log.reject(~np.isfinite(numbers), name, "have no time")
        raw = _interpret_numbers(numbers, name, options, log)
    elif iso is not None:
        log.reject(blank, name, "have no time")
        raw, zoned = iso
        if zoned:
            log.notes.append(f"{name}: times are reported in UTC")
    elif series.dtype in (nw.String, nw.Object, nw.Categorical) and not _holds_dates(series):
        texts = np.asarray(series.to_numpy(), dtype=object)
        raw, zoned = _parse_time_texts(texts, blank, name, options, log)
    else:
        log.reject(blank, name, "have no time")
        good = series.filter((~log.bad).tolist()) if log.bad.any() else series
        axis, offsets = read_times(_native_times(good), name)
        return _for_all_rows(*_in_stated_zone(axis, offsets, name, options, log), log)
    if log.bad.all():
        axis = TimeAxis(0.0, 0, stamps=False, zoned=False)
        offsets = np.zeros(0)
    else:
        axis, offsets = read_times(raw[~log.bad], name)
    return _for_all_rows(replace(axis, zoned=zoned), offsets, log)


def _for_all_rows(axis: TimeAxis, offsets: Array, log: ReadLog) -> tuple[TimeAxis, Array]:
    """Offsets of the good rows, with 0 in the others."""
    out = np.zeros(log.bad.size)
    out[~log.bad] = offsets
    return axis, out


def decimal_years(stamps: npt.NDArray[Any]) -> Array:
    """Timestamps as years with a fraction: the middle of 2023 is 2023.5."""
    year = stamps.astype("datetime64[Y]")
    start = year.astype("datetime64[ns]").astype(np.int64)
    end = (year + 1).astype("datetime64[ns]").astype(np.int64)
    fraction = (stamps.astype("datetime64[ns]").astype(np.int64) - start) / (end - start)
    return np.asarray(year.astype(np.int64) + 1970 + fraction, dtype=np.float64)


# --- timestamps


def _in_stated_zone(
    axis: TimeAxis, offsets: Array, name: str, options: TimeOptions, log: ReadLog
) -> tuple[TimeAxis, Array]:
    """Timestamps that lack a zone, read as local times of the zone that was given."""
    zone = options.zone()
    if zone is None or axis.zoned or not axis.stamps:
        return axis, offsets
    stamps, code = np.unique(axis.restore(offsets).astype("datetime64[us]"), return_inverse=True)
    local = list(stamps.tolist())
    _note_clock_changes([str(stamp) for stamp in local], local, zone, name, options, log)
    log.notes += [
        f"{name}: stamps without a zone were taken as {options.timezone} time",
        f"{name}: times are reported in UTC",
    ]
    moved, offsets = read_times(
        np.array([_in_utc(stamp, zone) for stamp in local], dtype="datetime64[us]")[code], name
    )
    return replace(moved, zoned=True), offsets


def _plain_iso(
    series: nw.Series[Any], options: TimeOptions
) -> tuple[npt.NDArray[Any], bool] | None:
    """Text that is ISO throughout, as datetime64[ns] in UTC, and whether it has zones.

    None if it is anything else, or some texts have a zone and others lack one. Arrow reads it many
    times faster than one by one.
    """
    if series.dtype != nw.String or options.timezone is not None or options.time_format is not None:
        return None
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        return None
    if not hasattr(series, "to_arrow"):  # columns of a table without any library
        return None
    texts = series.to_arrow()
    for zone in (None, "UTC"):
        try:
            pc.cast(
                texts.slice(0, PROBED), pa.timestamp("us", zone)
            )  # all of them take long to fail
            stamps = pc.cast(texts, pa.timestamp("us", zone)).cast(pa.timestamp("us"))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        out = np.asarray(stamps.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
        years = out[~np.isnat(out)].astype("datetime64[Y]").astype(np.int64) + 1970
        if not years.size or years.min() < YEARS[0] or years.max() > YEARS[1]:
            return None
        out = np.where(np.isnat(out), np.datetime64(PLACEHOLDER, "us"), out)
        return out.astype("datetime64[ns]"), zone is not None
    return None


def _holds_dates(series: nw.Series[Any]) -> bool:
    """Whether a column of objects holds dates, not text."""
    return series.dtype == nw.Object and any(
        not isinstance(v, str) and v is not None for v in series.to_list()[:100]
    )


def _native_times(series: nw.Series[Any]) -> Any:
    """The library's own series, or the NumPy array of a pandas series without a zone.

    Of periods the first instants.
    """
    native = series.to_native()
    of_pandas = type(native).__module__.startswith("pandas")
    if of_pandas and str(native.dtype).startswith("period"):
        return native.dt.to_timestamp().to_numpy()
    if of_pandas and getattr(native.dtype, "tz", None) is None:
        return native.to_numpy()
    return native


# --- numbers


def _interpret_numbers(
    raw: Array, name: str, options: TimeOptions, log: ReadLog
) -> npt.NDArray[Any]:
    """Numbers as they are, or as the dates that they count (Unix time) or write (20240531)."""
    good = raw[~log.bad]
    if options.unit in UNIX:
        likely = looks_like_epoch(good)
        if likely not in (None, options.unit):
            raise ResponseError(
                f"{name}: numbers such as {good[0]:.0f} do not count {UNIX[options.unit][1]} "
                f"since 1970; did you mean {option('unit', likely)}?"
            )
        return _from_unix(raw, options.unit, name, log)
    if options.unit is not None or not good.size:
        return raw
    _refuse_mixed_clocks(good, name)
    unit = _likely_unix_unit(good)
    if unit is not None:
        return _from_recognised_unix(raw, unit, name, log)
    for low, high, form, form_name in DATES_AS_NUMBERS:
        dates = _dates_as_numbers(good, low, high, form)
        if dates is not None:
            return _from_recognised_dates(raw, dates, form_name, name, log)
    return raw


def _most(count: float, size: int) -> bool:
    """Whether so many of `size` numbers are enough to judge all by them."""
    return count >= (MOST_ALIKE if size >= MIN_ROWS else 1.0) * size


def _from_recognised_unix(raw: Array, unit: str, name: str, log: ReadLog) -> npt.NDArray[Any]:
    """Timestamps from numbers that look like Unix time; rows that do not are rejected."""
    per_second, unit_name = UNIX[unit]
    low, high = (edge * per_second for edge in UNIX_SECONDS)
    log.reject(
        ~((raw > low) & (raw < high)),
        name,
        f"hold no Unix time in {unit_name}, where the others do",
        raw,
    )
    first = raw[~log.bad][0]
    log.notes.append(
        f"{name}: numbers such as {first:.0f} were taken as Unix time in {unit_name}; if they "
        "are something else, state their unit"
    )
    return _from_unix(raw, unit, name, log)


def _dates_as_numbers(good: Array, low: int, high: int, form: str) -> dict[float, datetime] | None:
    """The date of each distinct number that writes one; None unless nearly all do."""
    within = (good >= low) & (good <= high) & (good == np.floor(good))
    if not _most(within.sum(), good.size):
        return None
    values, counts = np.unique(good, return_counts=True)
    dates = {}
    n_dates = 0
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        date = None
        if low <= value <= high and value.is_integer():
            date = read_date(f"{value:.0f}", form)
        if date is not None:
            dates[value] = date
            n_dates += count
    return dates if _most(n_dates, good.size) else None


def _from_recognised_dates(
    raw: Array, dates: dict[float, datetime], form_name: str, name: str, log: ReadLog
) -> npt.NDArray[Any]:
    """Timestamps from numbers that write dates; rows that do not are rejected."""
    first = raw[~log.bad][0]
    log.reject(
        ~np.isin(raw, list(dates)), name, f"hold no date where the others do ({form_name})", raw
    )
    log.notes.append(
        f"{name}: numbers such as {first:.0f} were read as dates ({form_name}); times are in days"
    )
    return np.array(
        [dates.get(value, PLACEHOLDER) for value in raw.tolist()], dtype="datetime64[ns]"
    )


def _from_unix(raw: Array, unit: str, name: str, log: ReadLog) -> npt.NDArray[Any]:
    """Timestamps from a count since 1970; counts beyond 64 bits of nanoseconds are rejected."""
    seconds = np.nan_to_num(raw) / UNIX[unit][0]
    log.reject(
        ~(np.abs(seconds) < LAST_SECOND), name, f"lie outside the years {YEARS[0]} to {YEARS[1]}"
    )
    seconds = np.where(np.abs(seconds) < LAST_SECOND, seconds, 0.0)
    whole = np.floor(seconds)  # seconds and their fraction apart: one product would lose digits
    return (
        whole.astype(np.int64) * 10**9 + np.rint((seconds - whole) * 1e9).astype(np.int64)
    ).astype("datetime64[ns]")


def _likely_unix_unit(values: Array) -> str | None:
    """The unit of Unix time that nearly all numbers look like, if there is one."""
    for unit, (per_second, _) in UNIX.items():
        low, high = (edge * per_second for edge in UNIX_SECONDS)
        inside = (values > low) & (values < high)
        if _most(inside.sum(), values.size):
            return unit
    return None


def looks_like_epoch(values: Array) -> str | None:
    """The unit of Unix time ("unix", "unix-ms", …) that all numbers look like, if there is one."""
    if not values.size:
        return None
    lowest = float(np.nanmin(values))
    highest = float(np.nanmax(values))
    for unit, (per_second, _) in UNIX.items():
        if lowest > UNIX_SECONDS[0] * per_second and highest < UNIX_SECONDS[1] * per_second:
            return unit
    return None


def _refuse_mixed_clocks(values: Array, name: str) -> None:
    """Refuse numbers that all look like Unix time, but in different units."""
    counts = {}
    for per_second, unit_name in UNIX.values():
        low, high = (edge * per_second for edge in UNIX_SECONDS)
        count = int(((values > low) & (values < high)).sum())
        if count:
            counts[unit_name] = count
    if len(counts) > 1 and sum(counts.values()) == values.size:
        held = " and ".join(f"{count:,} values count {unit}" for unit, count in counts.items())
        raise ResponseError(f"{name}: {held} since 1970; make them alike")


# --- text


def _parse_time_texts(
    raw: npt.NDArray[Any], blank: Bools, name: str, options: TimeOptions, log: ReadLog
) -> tuple[npt.NDArray[Any], bool]:
    """Numbers or dates written as text, and whether their zone is known.

    Each distinct text is parsed once.
    """
    texts, code = np.unique(as_text(raw, blank), return_inverse=True)
    stripped = [text.strip() for text in texts.tolist()]
    absent = np.array([text.lower() in MISSING for text in stripped])
    log.reject(absent[code], name, "have no time")
    numbers, _ = floats_of_texts(stripped)
    given = np.flatnonzero(~absent)
    mostly_numbers = np.isfinite(numbers[code]).sum() >= 0.5 * (~absent[code]).sum()
    if options.time_format is None and given.size and mostly_numbers:
        unreadable = ~np.isfinite(numbers) & ~absent
        log.reject(unreadable[code], name, "hold no number where the others do", raw)
        return _interpret_numbers(np.nan_to_num(numbers)[code], name, options, log), False
    occasions = None
    if options.time_format is None and given.size:
        occasions = occasion_numbers([stripped[k] for k in given])
    if occasions is not None:
        log.notes.append(_told_occasions(name, occasions))
        return np.array([occasions.get(text, 0.0) for text in stripped])[code], False
    counts = np.bincount(code, minlength=texts.size)[given]
    stamps, zoned = _parse_stamps([stripped[k] for k in given], counts, name, options, log)
    unread = np.zeros(texts.size, dtype=bool)
    too_far = np.zeros(texts.size, dtype=bool)
    unread[given] = [stamp is None for stamp in stamps]
    too_far[given] = [stamp is not None and not _has_known_year(stamp) for stamp in stamps]
    log.reject(unread[code], name, "hold no time", raw)
    log.needs_format |= bool(unread.any())
    log.reject(
        too_far[code],
        name,
        f"lie outside the years {YEARS[0]} to {YEARS[1]} (some databases write 'no date' so)",
        raw,
    )
    out = np.full(texts.size, np.datetime64(PLACEHOLDER, "ns"))
    usable = [
        PLACEHOLDER if stamp is None or far else stamp
        for stamp, far in zip(stamps, too_far[given].tolist(), strict=True)
    ]
    out[given] = np.array(usable, dtype="datetime64[us]").astype("datetime64[ns]")
    return out[code], zoned


def _told_occasions(name: str, occasions: Mapping[str, float]) -> str:
    """The note on occasions that are read as their numbers."""
    few = sorted(occasions, key=lambda text: occasions[text])[:OCCASIONS_TOLD]
    told = ", ".join(f"{text!r} is {occasions[text]:g}" for text in few)
    more = ", …" if len(occasions) > OCCASIONS_TOLD else ""
    return f"{name}: occasions are read as their numbers: {told}{more}"


def _parse_stamps(
    texts: list[str],
    counts: npt.NDArray[np.int64],
    name: str,
    options: TimeOptions,
    log: ReadLog,
) -> tuple[list[datetime | None], bool]:
    """Timestamps in UTC (None where a text is none), and whether zones were written or given."""
    if options.time_format is not None:
        form = options.time_format
        stamps = [read_date(text, form) or read_date(plain_date(text), form) for text in texts]
    else:
        stamps = read_dates(texts, counts, name, log)
    known = [stamp for stamp in stamps if stamp is not None]
    n_zoned = sum(stamp.tzinfo is not None for stamp in known)
    zone = options.zone()
    if zone is None and 0 < n_zoned < len(known):
        first = next(
            text
            for text, stamp in zip(texts, stamps, strict=True)
            if stamp is not None and stamp.tzinfo is None
        )
        raise ResponseError(
            f"{name}: {n_zoned:,} kinds of stamps have a time zone and {len(known) - n_zoned:,} "
            f"lack one (first: {first!r}); say what those mean by "
            f"{option('timezone', 'Europe/Zurich')}"
        )
    if zone is not None and n_zoned < len(known):
        log.notes.append(f"{name}: stamps without a zone were taken as {options.timezone} time")
        _note_clock_changes(texts, stamps, zone, name, options, log)
    zoned = bool(n_zoned or zone is not None)
    if zoned:
        log.notes.append(f"{name}: times are reported in UTC")
    return [_in_utc(stamp, zone) for stamp in stamps], zoned


def _has_known_year(stamp: datetime) -> bool:
    """Whether nanoseconds since 1970 can express the timestamp."""
    return YEARS[0] <= stamp.year <= YEARS[1]


def _in_utc(stamp: datetime | None, zone: ZoneInfo | None) -> datetime | None:
    """A timestamp in UTC, without a zone; one that lacks a zone is in the given one, if any."""
    if stamp is None or (stamp.tzinfo is None and zone is None):
        return stamp
    if not _has_known_year(stamp):  # rejected later; the first and last day of all have no UTC
        return stamp.replace(tzinfo=None)
    zoned = stamp.replace(tzinfo=zone) if stamp.tzinfo is None else stamp
    return zoned.astimezone(UTC).replace(tzinfo=None)


def _note_clock_changes(
    texts: list[str],
    stamps: list[datetime | None],
    zone: ZoneInfo,
    name: str,
    options: TimeOptions,
    log: ReadLog,
) -> None:
    """Note local times that do not exist, or occur twice, because clocks were changed."""
    skipped: list[str] = []
    twice: list[str] = []
    for text, stamp in zip(texts, stamps, strict=True):
        if stamp is None or stamp.tzinfo is not None or not _has_known_year(stamp):
            continue
        before, after = (stamp.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
        if before != after:
            there_and_back = stamp.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
            exists = there_and_back.replace(tzinfo=None) == stamp
            (twice if exists else skipped).append(text)
    if skipped:
        log.notes.append(
            f"{name}: {len(skipped):,} kinds of times do not exist in {options.timezone}, whose "
            f"clocks skip them (first: {skipped[0]!r}); they were read as if the clocks had not "
            f"been changed yet. Is the zone right?"
        )
    if twice:
        log.notes.append(
            f"{name}: {len(twice):,} kinds of times occur twice in {options.timezone}, whose "
            f"clocks go back (first: {twice[0]!r}); the earlier of both was taken"
        )
