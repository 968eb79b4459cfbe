"""How a trial ended, counted by class.

Right or refused in words is fine, everything else is a finding with its name.
"""

from __future__ import annotations

import signal
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field

import dynaesti as dy

FINE, BAD = ("right", "clear"), ("wrong", "raw", "hang", "crash", "lost")
PATIENCE = 60  # seconds


class WrongError(Exception):
    """A result that cannot be right, told by nobody."""


class HangError(BaseException):
    """A trial that takes too long; no `except Exception` may swallow it."""


@contextmanager
def in_time(seconds=PATIENCE):
    """Raise where the work takes longer (compiled loops are asked when they return)."""

    def ring(*_):
        raise HangError

    old = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


@dataclass
class Tally:
    """Trials of one part by class, and what the bad ones were."""

    part: str
    counts: Counter = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def note(self, outcome, what=""):
        self.counts[outcome] += 1
        if outcome in BAD:
            self.findings.append(f"{outcome}: {what}")

    def judge(self, name, task):
        """Run a trial that returns a true word when its result is right, raises WrongError when it
        is not, or refuses in words.
        """
        began = time.monotonic()
        try:
            with in_time(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                task()
            self.note("right")
        except HangError:
            self.note("hang", f"{name} ({time.monotonic() - began:.0f} s)")
        except WrongError as error:
            self.note("wrong", f"{name}: {error}")
        except dy.DynaestiError as error:
            self.note("clear" if str(error).strip() else "raw", name)
        except MemoryError as error:
            self.note("raw", f"{name}: MemoryError {error}")
        except Exception as error:  # that is what is looked for
            self.note("raw", f"{name}: {type(error).__name__}: {str(error)[:200]}")

    @property
    def bad(self):
        return sum(self.counts[kind] for kind in BAD)

    def row(self):
        total = sum(self.counts.values())
        return f"{self.part:<46} {total:>6} " + " ".join(
            f"{self.counts[kind]:>6}" for kind in (*FINE, *BAD)
        )


HEADING = f"{'part':<46} {'trials':>6} " + " ".join(f"{kind:>6}" for kind in (*FINE, *BAD))
