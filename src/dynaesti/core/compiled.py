"""The decorator for compiled loops."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

import numba

from dynaesti.errors import DynaestiWarning

P = ParamSpec("P")
R = TypeVar("R")
# Products and sums may be fused, but not reordered: compilers guard vector loops that write by
# checks on where arrays happen to lie in memory, so reordered sums would differ from run to run.
# Infinities keep their meaning too: an impossible response is -inf.
_FUSED = {"contract"}
REORDERED = {"contract", "reassoc"}


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile on first call.

    Pass arrays and numbers only: a function argument is recompiled in every process.
    """
    return compile_lazily(function, _FUSED)


def compile_lazily(function: Callable[P, R], fastmath: set[str]) -> Callable[P, R]:
    """Compile on first call, with these liberties of arithmetic.

    Kept on disk where that can be done.
    """

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
        "compiled code cannot be kept, since neither the package's folder nor the home folder can "
        "be written to: every process "
        "compiles anew, which takes 20 seconds or so. Set NUMBA_CACHE_DIR to a folder of your own",
        DynaestiWarning,
        stacklevel=2,
    )
