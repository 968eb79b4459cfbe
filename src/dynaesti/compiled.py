"""Compiled loops: cached on disk, free of the interpreter lock, no compilation at import. The decorator, and a sum that many share."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

import numba

from dynaesti.arrays import Array
from dynaesti.errors import DynaestiWarning

P = ParamSpec("P")
R = TypeVar("R")

# Products and sums may be fused, but not reordered: compilers guard vector loops that write by checks on where arrays happen to lie in
# memory, so reordered sums would differ from run to run. Infinities keep their meaning too: an impossible response is -inf.
_FUSED = {"contract"}
_REORDERED = {"contract", "reassoc"}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call. Pass arrays and numbers only: a function argument is recompiled in every process."""
    return _compile(function, _FUSED)


def _compile(function: Callable[P, R], fastmath: set[str]) -> Callable[P, R]:
    def decorated(keep: bool) -> Callable[P, R]:
        return cast(
            Callable[P, R],
            numba.njit(cache=keep, nogil=True, fastmath=fastmath, error_model="numpy")(function),
        )

    try:
        return decorated(True)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        _tell_uncached()
        return decorated(False)


@cache
def _tell_uncached() -> None:
    """Containers and clusters may let nobody write, neither beside the package nor at home."""
    warnings.warn(
        "compiled code cannot be kept, since neither the package's folder nor the home folder can be written to: every process "
        "compiles anew, which takes 20 seconds or so. Set NUMBA_CACHE_DIR to a folder of your own",
        DynaestiWarning,
        stacklevel=2,
    )


def _dot(x: Array, y: Array) -> float:
    """x·y on vector units. It writes nothing, so nothing is guarded, and its sum has one order wherever the arrays lie."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


dot = _compile(_dot, _REORDERED)
