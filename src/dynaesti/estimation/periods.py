"""Time in equal periods, in which responses are counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Ints


@dataclass(frozen=True)
class Periods:
    """The time of all answers in equal periods."""

    first: float
    last: float
    number: int

    @property
    def width(self) -> float:
        """Length of a period."""
        return (self.last - self.first) / self.number

    @property
    def middles(self) -> Array:
        """Middle of each period, (number,)."""
        return np.asarray(self.first + self.width * (np.arange(float(self.number)) + 0.5))

    def of(self, times: Array) -> Ints:
        """Number of the period of each time."""
        share = (times - self.first) / (self.last - self.first)
        return np.clip((share * self.number).astype(np.int64), 0, self.number - 1)
