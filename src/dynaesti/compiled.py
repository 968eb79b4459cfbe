"""The one decorator for compiled loops: cached on disk, free of the interpreter lock, no compilation at import."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Sums may be reordered and fused for vector units, but infinities and NaN keep their meaning:
# an impossible response is -inf, and that must survive.
_FAST = {"reassoc", "contract", "arcp", "nsz"}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call. Pass arrays and numbers only: a function argument is recompiled in every process."""
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")(function))
