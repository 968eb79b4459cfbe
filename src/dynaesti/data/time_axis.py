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
from dynaesti.errors import InputError

UNSTATED = "the unit of the times given"
DAY_NS = 86_400_000_000_000


@dataclass(frozen=True)
class TimeAxis:
    """Where zero is and what one unit means.

    Timestamps are counted in days; numbers keep the user's own unit.
    """

    origin: (
        float  # for timestamps: nanoseconds since 1970-01-01 UTC (an integer, exact in `origin_ns`)
    )
    origin_ns: int
    stamps: bool
    zoned: bool

    @property
    def unit(self) -> str:
        """What one unit of time is, in words."""
        return "days" if self.stamps else UNSTATED

    def offsets(self, times: Any, name: str = "times") -> Array:
        """Times as offsets from the origin, refused when they are of the other kind than the fit's."""
        stamps = _stamps(times, name)
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
        """Offsets as the user's kind of time; timestamps come back in UTC, without a zone."""
        if not self.stamps:
            return offsets + self.origin
        whole = np.floor(
            offsets
        )  # days and the rest apart: a product of both would lose the nanoseconds
        ns = (
            self.origin_ns
            + whole.astype(np.int64) * DAY_NS
            + np.rint((offsets - whole) * DAY_NS).astype(np.int64)
        )
        coarse = (
            np.spacing(np.abs(offsets)) * DAY_NS > 0.4
        )  # far from the origin an offset no longer holds them
        return np.where(coarse, (ns + 500) // 1000 * 1000, ns).astype("datetime64[ns]")


def read_axis(told: Mapping[str, Any]) -> TimeAxis:
    """An axis from a saved file, checked."""
    axis = TimeAxis(**told)
    if (
        not np.isfinite(axis.origin)
        or type(axis.origin_ns) is not int
        or not {axis.stamps, axis.zoned} <= {True, False}
    ):
        raise ValueError(f"no time axis: {dict(told)}")
    return axis


def parse_iso(texts: Any, name: str) -> Any:
    """ISO dates written as text, those with a zone in UTC.

    Anything else is handed back as it is.
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
        try:
            stamp = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(
                f"{name}: {text!r} is no time; write ISO dates such as '2024-05-31', or numbers"
            ) from None
        out.append(stamp if stamp.tzinfo is None else _in_utc(stamp, name))
    return np.array(out, dtype="datetime64[us]")


def _in_utc(stamp: datetime, name: str) -> datetime:
    try:
        return stamp.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise InputError(
            f"{name}: {stamp} lies outside the years that can be told; use decimal years instead"
        ) from None


def read_times(times: Any, name: str = "times") -> tuple[TimeAxis, Array]:
    """The axis that starts at the earliest time, and the offsets on it."""
    stamps = _stamps(times, name)
    if stamps is None:
        numbers = as_vector(times, name)
        _need_some(numbers.size, name)
        check_span(float(np.ptp(numbers)) if np.abs(numbers).max() < LONGEST else np.inf, name)
        axis = TimeAxis(float(numbers.min()), 0, stamps=False, zoned=False)
    else:
        nanoseconds, zoned = stamps
        _need_some(nanoseconds.size, name)
        first = int(nanoseconds.min())
        axis = TimeAxis(float(first), first, stamps=True, zoned=zoned)
    return axis, axis.offsets(times, name)


LONGEST = 1e100  # spans of time whose squares can be computed with


def check_span(span: float, name: str) -> None:
    """Refuse times so far or so near that computing with them fails."""
    if not span <= LONGEST:
        raise InputError(f"{name}: they reach or span more than {LONGEST:g}; use a larger unit")
    if 0 < span < 1 / LONGEST:
        raise InputError(f"{name}: they span only {span:g}; use a smaller unit")


def _need_some(size: int, name: str) -> None:
    if size == 0:
        raise InputError(f"{name}: no observations; a curve needs at least one")


def _stamps(times: Any, name: str) -> tuple[npt.NDArray[np.int64], bool] | None:
    """Nanoseconds since 1970 UTC and whether a time zone was given.

    None when the times are not timestamps.

    Timestamps without a zone count as UTC beside ones that have it, so what a curve's frames say
    can be asked again.
    """
    if isinstance(times, datetime | date | np.datetime64):
        times = [times]
    kind = getattr(times, "dtype", getattr(times, "type", None))  # pandas and polars, or pyarrow
    zone = getattr(kind, "time_zone", None) or getattr(kind, "tz", None)
    if hasattr(times, "to_numpy"):
        times = (
            times.to_numpy(zero_copy_only=False)
            if type(times).__module__.startswith("pyarrow")
            else times.to_numpy()
        )
    raw = np.asarray(times)
    if raw.dtype.kind == "O" and raw.size and any(isinstance(value, date) for value in raw.ravel()):
        # missing ones come as None, NaN or NaT (which calls itself a date)
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


def _nanoseconds(raw: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if raw.ndim > 1:
        raise InputError(f"{name}: expected one dimension, got an array of shape {raw.shape}")
    raw = np.atleast_1d(raw)
    raise_where(np.isnat(raw), name, "missing (NaT)", "drop or repair them")
    years = raw.astype("datetime64[Y]").astype(np.int64) + 1970
    raise_where(
        (years < 1678) | (years > 2261),
        name,
        "outside the years 1678 to 2261",
        "use decimal years instead",
    )
    return raw.astype("datetime64[ns]").astype(np.int64)
