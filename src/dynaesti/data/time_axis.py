"""Users' times (numbers or timestamps) to float64 offsets from an origin, and back.

Offsets keep the precision that absolute times would lose: a clock of 1e9 seconds resolves 1e-7 s,
its offsets 1e-16.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, as_vector, raise_where
from dynaesti.data.date_formats import FORMATS, ISO, read_date
from dynaesti.data.date_texts import plain_date
from dynaesti.errors import InputError

UNSTATED = "the unit of the times given"
DAY_NS = 86_400_000_000_000
YEARS = (1678, 2261)  # that nanoseconds since 1970 can express in 64 bits
LONGEST_SPAN = 1e100  # spans of time whose squares can be computed with


@dataclass(frozen=True)
class TimeAxis:
    """Origin and unit of times. Timestamps are counted in days, numbers in the user's own unit.

    Parameters
    ----------
    origin : float
        The time at offset 0; of timestamps, `origin_ns` as a float.
    origin_ns : int
        Of timestamps: nanoseconds since 1970-01-01 UTC at offset 0, exact. Of numbers: 0.
    stamps : bool
        Whether times are timestamps, not numbers.
    zoned : bool
        Whether the timestamps had a time zone.
    """

    origin: float
    origin_ns: int
    stamps: bool
    zoned: bool

    @property
    def unit(self) -> str:
        """The name of one unit of time."""
        return "days" if self.stamps else UNSTATED

    def offsets(self, times: Any, name: str = "times") -> Array:
        """Times as offsets from the origin: array (n_times,).

        Raises
        ------
        InputError
            If these are timestamps and the axis has numbers or vice versa, or if these have a time
            zone and the axis has none.
        """
        stamps = _nanoseconds_and_zone(times, name)
        if (stamps is not None) != self.stamps:
            kinds = ("numbers", "timestamps")
            raise InputError(
                f"{name}: the curve was fitted on {kinds[self.stamps]}, these are "
                f"{kinds[not self.stamps]}"
            )
        if stamps is None:
            return as_vector(times, name) - self.origin
        nanoseconds, zoned = stamps
        if zoned and not self.zoned:
            raise InputError(
                f"{name}: the fit's timestamps lack a time zone and these have one; make them alike"
            )
        return (nanoseconds - self.origin_ns) / DAY_NS

    def restore(self, offsets: Array) -> npt.NDArray[Any]:
        """Offsets as the user's kind of time; timestamps are in UTC, as datetime64[ns]."""
        if not self.stamps:
            return offsets + self.origin
        whole = np.floor(offsets)  # days and their fraction apart: one product would lose digits
        ns = (
            self.origin_ns
            + whole.astype(np.int64) * DAY_NS
            + np.rint((offsets - whole) * DAY_NS).astype(np.int64)
        )
        # far from the origin an offset does not resolve nanoseconds: round to microseconds there
        coarse = np.spacing(np.abs(offsets)) * DAY_NS > 0.4
        return np.where(coarse, (ns + 500) // 1000 * 1000, ns).astype("datetime64[ns]")


def read_axis(saved: Mapping[str, Any]) -> TimeAxis:
    """The time axis of a saved file.

    Raises
    ------
    ValueError
        If it is malformed.
    """
    axis = TimeAxis(**saved)
    if (
        not np.isfinite(axis.origin)
        or type(axis.origin_ns) is not int
        or not {axis.stamps, axis.zoned} <= {True, False}
    ):
        raise ValueError(f"no time axis: {dict(saved)}")
    return axis


def parse_iso(texts: Any, name: str) -> Any:
    """Parse dates that are written as text: datetime64[us] (n_times,), in UTC if zoned.

    Anything else than text, or a list or tuple of texts, is returned unchanged.
    """
    as_list = [texts] if isinstance(texts, str) else texts
    if (
        not isinstance(as_list, list | tuple)
        or not as_list
        or not all(isinstance(t, str) for t in as_list)
    ):
        return texts
    out = []
    for text in as_list:
        stamp = _date_of(text, name)
        out.append(stamp if stamp.tzinfo is None else _in_utc(stamp, name))
    return np.array(out, dtype="datetime64[us]")


def _date_of(text: str, name: str) -> datetime:
    """The date that a text writes, in ISO or in any way that can be read as one date only."""
    plain = plain_date(text)
    iso = read_date(plain, ISO)
    if iso is not None:
        return iso
    found = {stamp for form in FORMATS if (stamp := read_date(plain, form)) is not None}
    if len(found) == 1:
        return found.pop()
    why = "can be read as several dates" if found else "is no time"
    raise InputError(f"{name}: {text!r} {why}; write ISO dates such as '2024-05-31', or numbers")


def _in_utc(stamp: datetime, name: str) -> datetime:
    """A timestamp with a zone in UTC, without the zone."""
    try:
        return stamp.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise InputError(
            f"{name}: {stamp} lies outside the years 1 to 9999; use decimal years instead"
        ) from None


def time_text(time: Any) -> str:
    """A time in words: six digits, or a date, to the minute where it has a time of day."""
    if isinstance(time, float | np.floating):
        return f"{time:.6g}"
    text = str(time).replace("T", " ")[:16]
    return text.removesuffix(" 00:00")


def read_times(times: Any, name: str = "times") -> tuple[TimeAxis, Array]:
    """The axis whose origin is the earliest time, and the offsets (n_times,) on it."""
    stamps = _nanoseconds_and_zone(times, name)
    if stamps is None:
        numbers = as_vector(times, name)
        _refuse_empty(numbers.size, name)
        within = np.abs(numbers).max() < LONGEST_SPAN
        check_span(float(np.ptp(numbers)) if within else np.inf, name)
        axis = TimeAxis(float(numbers.min()), 0, stamps=False, zoned=False)
    else:
        nanoseconds, zoned = stamps
        _refuse_empty(nanoseconds.size, name)
        first = int(nanoseconds.min())
        axis = TimeAxis(float(first), first, stamps=True, zoned=zoned)
    return axis, axis.offsets(times, name)


def check_span(span: float, name: str) -> None:
    """Raise InputError if times span so much, or so little, that squares over- or underflow."""
    if not span <= LONGEST_SPAN:
        raise InputError(
            f"{name}: they reach or span more than {LONGEST_SPAN:g}; use a larger unit"
        )
    if 0 < span < 1 / LONGEST_SPAN:
        raise InputError(f"{name}: they span only {span:g}; use a smaller unit")


def _refuse_empty(size: int, name: str) -> None:
    if size == 0:
        raise InputError(f"{name}: no observations; a curve needs at least one")


def _nanoseconds_and_zone(times: Any, name: str) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Nanoseconds since 1970 UTC, and whether a time zone was given; None for numbers.

    Timestamps without a zone count as UTC on an axis with zones, so that times which a curve
    returned can be asked for again.
    """
    if isinstance(times, datetime | date | np.datetime64):
        times = [times]
    dtype = getattr(times, "dtype", getattr(times, "type", None))  # pandas and polars, or pyarrow
    zone = getattr(dtype, "time_zone", None) or getattr(dtype, "tz", None)
    if hasattr(times, "to_numpy"):
        times = (
            times.to_numpy(zero_copy_only=False)
            if type(times).__module__.startswith("pyarrow")
            else times.to_numpy()
        )
    raw = np.asarray(times)
    if raw.dtype.kind == "O" and raw.size and any(isinstance(value, date) for value in raw.ravel()):
        return _nanoseconds_of_objects(raw, name)
    if raw.dtype.kind in "UT":
        raise InputError(
            f"{name}: text such as {str(raw.ravel()[0])!r} where times belong; parse it into "
            f"timestamps first"
        )
    if raw.dtype.kind == "m":
        raise InputError(
            f"{name}: durations where times belong; divide by the unit you want to get numbers"
        )
    if raw.dtype.kind != "M":
        return None
    return _nanoseconds(raw, name), zone is not None


def _nanoseconds_of_objects(raw: npt.NDArray[Any], name: str) -> tuple[npt.NDArray[np.int64], bool]:
    """Nanoseconds since 1970 UTC of Python's dates, and whether they have a time zone."""
    # missing ones come as None, NaN or NaT (which is an instance of date)
    raise_where(
        np.array([not isinstance(v, date) or v != v for v in raw.ravel()]),
        name,
        "missing or no timestamps",
        "drop or repair them",
    )
    zones = {isinstance(value, datetime) and value.tzinfo is not None for value in raw.ravel()}
    if len(zones) > 1:
        raise InputError(
            f"{name}: some timestamps have a time zone and some lack one; make them alike"
        )
    zoned = zones.pop()
    utc = [_in_utc(value, name) if zoned else value for value in raw.ravel()]
    return _nanoseconds(np.array(utc, dtype="datetime64[us]"), name), zoned


def _nanoseconds(raw: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    """Nanoseconds since 1970 of an array of datetime64."""
    if raw.ndim > 1:
        raise InputError(f"{name}: expected one dimension, got an array of shape {raw.shape}")
    raw = np.atleast_1d(raw)
    raise_where(np.isnat(raw), name, "missing (NaT)", "drop or repair them")
    years = raw.astype("datetime64[Y]").astype(np.int64) + 1970
    raise_where(
        (years < YEARS[0]) | (years > YEARS[1]),
        name,
        f"outside the years {YEARS[0]} to {YEARS[1]}",
        "use decimal years instead",
    )
    return raw.astype("datetime64[ns]").astype(np.int64)
