"""Users' numbers, checked.

An error says which argument, what is wrong, where and how many times.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.core.arrays import Array, Bools
from dynaesti.errors import InputError


def as_numbers(values: Any, name: str) -> Array:
    """A float64 array of any shape.

    Text, None and objects that are no numbers are refused by name.
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
    return np.array(
        raw, dtype=np.float64, order="C"
    )  # a copy: what the user does to the array later must not reach a fit


def as_vector(values: Any, name: str, length: int | None = None) -> Array:
    """A finite one-dimensional float array; a single number is repeated when a length is given."""
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
    """Raise when any entry is bad, telling how many, the first place and the remedy."""
    where = np.flatnonzero(bad)
    if where.size:
        raise error(
            f"{name}: {where.size} of {bad.size} values are {what} (first: position {where[0]}); "
            f"{remedy}"
        )


def as_rng(seed: Any) -> np.random.Generator:
    """A random generator from a seed, a generator or None."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(f"seed: expected a whole number of at least 0, got {seed!r}") from None


def whole_number(value: Any, name: str, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}: expected a whole number of at least {least}, got {value!r}")
    return int(value)


def check_size(count: int, name: str, most: float = 2e8) -> None:
    """Refuse to make more numbers at once than a machine has room for."""
    if count > most:
        raise InputError(
            f"{name}: {count:,} numbers are too many at once (at most {most:,.0f}); ask for "
            f"fewer, or in parts"
        )


def finite_number(value: Any, name: str) -> float:
    """A number that is one."""
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
    """A number above zero; `infinite` admits inf."""
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
    """Arrays one after the other; a single one as it is, not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
