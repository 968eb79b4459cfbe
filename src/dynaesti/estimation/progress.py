"""Progress of a fit: a line with step, evidence, change, speed and time left.

On a terminal and in a notebook the line is rewritten; in a log file there are few lines, one after
the other.
"""

import sys
import time
from collections.abc import Callable
from typing import TextIO

import numpy as np

from dynaesti.estimation.em import IterationRecord

OnIteration = Callable[[IterationRecord], None]

SELDOM = 30.0  # seconds between lines in a log file


class ProgressLine:
    """A line that shows a fit's iterations as they run."""

    def __init__(self, tolerance: float, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.live = bool(getattr(self.stream, "isatty", lambda: False)()) or _is_notebook(
            self.stream
        )
        self.target = tolerance
        self.last_written = -np.inf
        self.width = 0
        self.changes: list[float] = []

    def __call__(self, step: IterationRecord) -> None:
        """Show an iteration."""
        self.changes = (
            [step.change]
            if step.stage != getattr(self, "stage", None)
            else [*self.changes, step.change]
        )
        self.stage = step.stage
        text = (
            f"{step.stage}: iteration {step.iteration}, log evidence {step.log_evidence:,.1f}, "
            f"change "
            f"{step.change:.2g} se, "
            f"{step.rows_per_second:,.0f} answers/s, {self._left(step)}"
        )
        if self.live:
            self.stream.write("\r" + text.ljust(self.width))
            self.stream.flush()
            self.width = len(text)
        elif time.monotonic() - self.last_written > SELDOM:
            self.last_written = time.monotonic()
            self.stream.write(text + "\n")

    def say(self, text: str) -> None:
        """Print a text on a line of its own."""
        self.stream.write(f"{text}\n")
        self.stream.flush()

    def shard(self, done: int, shards: int) -> None:
        """Show the shards done in the E-step under way."""
        if self.live:
            text = f"{getattr(self, 'stage', 'first pass')}: shard {done} of {shards}"
            self.stream.write("\r" + text.ljust(self.width))
            self.stream.flush()

    def _left(self, step: IterationRecord) -> str:
        """Estimated time left, if the change goes on to shrink at the same rate."""
        if len(self.changes) < 4 or self.changes[-1] >= self.changes[0]:
            return "time left unknown yet"
        rate = np.log(self.changes[0] / self.changes[-1]) / (len(self.changes) - 1)
        steps = max(0.0, float(np.log(self.changes[-1] / self.target) / rate)) + 2
        return f"about {steps * step.seconds / len(self.changes):.0f} s left"

    def close(self, verdict: str) -> None:
        """Print the last line."""
        if self.live:
            self.stream.write("\r" + verdict.ljust(self.width) + "\n")
            self.stream.flush()
        elif self.last_written > -np.inf:
            self.stream.write(verdict + "\n")


def _is_notebook(stream: TextIO) -> bool:
    """Whether a stream ends in a notebook's cell, which obeys a carriage return too."""
    return type(stream).__module__.startswith("ipykernel")
