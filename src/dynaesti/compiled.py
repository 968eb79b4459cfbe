"""The one decorator for compiled loops: cached on disk, free of the interpreter lock, no compilation at import."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Products and sums may be fused, but never reordered: compilers guard vector loops by checks on where arrays happen to lie in
# memory, so reordered sums would differ from run to run. Infinities keep their meaning too: an impossible response is -inf.
_FAST = {"contract"}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call. Pass arrays and numbers only: a function argument is recompiled in every process."""
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")(function))
