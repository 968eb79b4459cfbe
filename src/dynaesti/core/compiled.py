"""The decorator of compiled functions (Numba), and its choice of floating-point rules."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import event

from dynaesti.core.compile_notice import COMPILING
from dynaesti.errors import DynaestiWarning

event.register("numba:compile", COMPILING)  # type: ignore[no-untyped-call]

P = ParamSpec("P")
R = TypeVar("R")
# Products and sums may be fused, but not reordered: compilers guard vector loops that write by
# checks on where arrays happen to lie in memory, so reordered sums would differ from run to run.
# Infinities keep their meaning too: an impossible response is -inf.
_FUSED = {"contract"}
REORDERED = {"contract", "reassoc"}


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function when it is first called, and keep the compiled code on disk.

    Pass arrays and numbers only: with a function as argument it is compiled anew in every process.
    """
    return compile_lazily(function, _FUSED)


def jit_internal(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled ones call; that takes less time than `jit`."""
    return compile_lazily(function, _FUSED, from_python=False)


def compile_lazily(
    function: Callable[P, R], fastmath: set[str], *, from_python: bool = True
) -> Callable[P, R]:
    """Compile a function when it is first called, with these flags of LLVM's fast-math.

    The compiled code is kept on disk, if some folder for it can be written to.
    """
    # wrappers that nobody calls take a tenth of the time to compile
    wrappers: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": not from_python}

    def decorated(keep: bool) -> Callable[P, R]:
        compiler = numba.njit(
            cache=keep, nogil=True, fastmath=fastmath, error_model="numpy", **wrappers
        )
        return cast(Callable[P, R], compiler(function))

    try:
        return decorated(True)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        _warn_uncached()
        return decorated(False)


@cache
def _warn_uncached() -> None:
    """Warn, once, that compiled code cannot be kept: in containers no folder may be writable."""
    warnings.warn(
        "compiled code cannot be kept, since neither the package's folder nor the home folder can "
        "be written to: every process compiles anew, which takes 20 seconds or so. Set "
        "NUMBA_CACHE_DIR to a folder of your own",
        DynaestiWarning,
        stacklevel=2,
    )
