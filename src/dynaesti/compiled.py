"""Compiled loops: cached on disk, free of the interpreter lock, no compilation at import. The decorator, and a sum that many share."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

from dynaesti.arrays import Array

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
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True, fastmath=fastmath, error_model="numpy")(function))


def _dot(x: Array, y: Array) -> float:
    """x·y on vector units. It writes nothing, so nothing is guarded, and its sum has one order wherever the arrays lie."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


dot = _compile(_dot, _REORDERED)
