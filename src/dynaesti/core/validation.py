"""Checks of the numbers that users give.

Errors say which argument is wrong, how, where and how many times.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core.arrays import Array, Bools
from dynaesti.errors import InputError


def as_numbers(values: Any, name: str) -> Array:
    """A float64 array of any shape; a copy, so that later changes by the user do not reach a fit.

    Raises
    ------
    InputError
        If values are text, dates, complex, masked, or no numbers at all.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(
            f"{name}: {int(np.ma.getmaskarray(values).sum())} values are masked; drop them (with "
            f".compressed()) first"
        )
    try:
        raw = np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name}: rows of different lengths; give one value an observation"
        ) from None
    if raw.dtype.kind == "c":
        raise InputError(f"{name}: complex numbers; give real ones")
    if raw.dtype.kind in "UST" and raw.size:
        raise InputError(f"{name}: expected numbers, got {_first_non_number(raw.astype(object))}")
    if raw.dtype.kind not in "bifu":
        if raw.dtype.kind in "mM":
            raise InputError(f"{name}: dates where numbers belong (dtype {raw.dtype})")
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{name}: expected numbers, got {_first_non_number(raw)}") from None
    return np.array(raw, dtype=np.float64, order="C")


def as_vector(values: Any, name: str, length: int | None = None) -> Array:
    """A finite float64 array (n,).

    Parameters
    ----------
    values : numbers
        One for each observation, or a single one, which is repeated `length` times.
    name : str
        The argument, for messages.
    length : int, optional
        The length that it has to have.
    """
    vector = as_numbers(values, name)
    if vector.ndim == 0:
        vector = np.full(1 if length is None else length, float(vector))
    if vector.ndim != 1:
        raise InputError(f"{name}: expected one dimension, got an array of shape {vector.shape}")
    if length is not None and vector.size != length:
        raise InputError(
            f"{name}: {vector.size} values for {length} observations; give one each, or a single "
            f"one for all"
        )
    raise_where(~np.isfinite(vector), name, "not finite", "drop or repair them")
    return vector


def raise_where(
    bad: Bools, name: str, what: str, remedy: str, error: type[InputError] = InputError
) -> None:
    """Raise an error if any value is bad: it says how many are, the first one's index, a remedy.

    Parameters
    ----------
    bad : bool array (n,)
        Which values are bad.
    name : str
        The argument.
    what : str
        What they are, as the predicate of "3 of 10 values are …".
    remedy : str
        What to do.
    error : type, default=InputError
        The class to raise.
    """
    where = np.flatnonzero(bad)
    if where.size:
        raise error(
            f"{name}: {where.size} of {bad.size} values are {what} (first: position {where[0]}); "
            f"{remedy}"
        )


def as_rng(seed: Any) -> np.random.Generator:
    """NumPy's random generator for a seed, a generator or None."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(f"seed: expected a whole number of at least 0, got {seed!r}") from None


def whole_number(value: Any, name: str, least: int) -> int:
    """The value as int; InputError unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def check_size(count: int, name: str, most: float = 2e8) -> None:
    """Raise InputError if more numbers are asked for at once than memory can hold."""
    if count > most:
        raise InputError(
            f"{name}: {count:,} numbers are too many at once (at most {most:,.0f}); ask for "
            f"fewer, or in parts"
        )


def finite_number(value: Any, name: str) -> float:
    """The value as float; InputError unless it is a finite number."""
    try:
        number = (
            float(value)
            if isinstance(value, int | float | np.integer | np.floating)
            and not isinstance(value, bool)
            else np.nan
        )
    except OverflowError:
        number = np.inf
    if not np.isfinite(number):
        raise InputError(f"{name}: expected a finite number, got {value!r}")
    return number


def positive_number(value: Any, name: str, *, infinite: bool = False) -> float:
    """The value as float; InputError unless it is above 0 and finite (or `infinite` is allowed)."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name}: expected a positive number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = np.nan
    if not number > 0 or (np.isinf(number) and not infinite):
        raise InputError(f"{name}: expected a positive number, got {value!r}")
    return number


def _first_non_number(raw: npt.NDArray[Any]) -> str:
    """The first value that is no number, with its index, for messages."""
    for position, value in enumerate(raw.ravel().tolist()):
        try:
            if not isinstance(value, str):
                float(value)
                continue
        except (TypeError, ValueError, OverflowError):
            pass
        return f"{value!r} at position {position}"
    return f"dtype {raw.dtype}"


def concatenate_rows(parts: list[Array]) -> Array:
    """Arrays joined along the first axis; a single one is returned itself, not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
