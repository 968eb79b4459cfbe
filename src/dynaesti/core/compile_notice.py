"""Tells when inner loops are being compiled, which they are once on a machine.

Numba reports each compilation, but not code that it finds on disk.
"""

import time
from typing import Any

from numba.core import event

from dynaesti.errors import notify

NOTICE = (
    "compiling inner loops, once on this machine: about 10 s for a first fit "
    "(`dynaesti warmup` does it ahead)"
)
AFTER = 0.3  # seconds of compiling that are worth a word: single functions take less


class CompileNotice(event.Listener):
    """Sums up the time of compiling, and says once what takes so long.

    Numba compiles under a lock, in one thread at a time, and functions within functions.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.functions = 0
        self._open: list[float] = []
        self._told = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002  Numba's interface
        """A function begins to be compiled, perhaps within another."""
        self._open.append(time.thread_time())
        if self.seconds > AFTER and not self._told:
            self._told = True
            notify(NOTICE)

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """It is compiled."""
        begun = self._open.pop()
        self.functions += 1
        if not self._open:
            self.seconds += time.thread_time() - begun


COMPILING = CompileNotice()
