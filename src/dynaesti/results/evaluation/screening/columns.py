"""Columns whose effects on single items are tested: groups, numbers, and functions of the date.

Each knows how to make its columns of any responses, so that shards can be screened one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.data import Responses
from dynaesti.estimation import (
    EfficientScores,
    Periods,
    ScreenedColumns,
    combined_p,
    joint_tests,
    single_tests,
)
from dynaesti.model import SmoothBasis

LEAST_ANSWERS = 5  # of a group to an item, else the item is not compared there
SHAPES = 3  # functions of time that all answers may follow: a line, a bend, a wave


class ScreenedBy(Protocol):
    """What items are screened by."""

    @property
    def n_tested(self) -> int:
        """Number of tested effects of an item."""

    def columns(self, responses: Responses) -> ScreenedColumns:
        """The columns of some responses."""

    def p_values(self, efficient: EfficientScores) -> Array:
        """P value of each item, (n_items,); NaN where nothing can be tested."""

    def is_testable(self, counts: Ints) -> Bools:
        """Which items have enough answers, by how many there are in each group: (n_items,)."""


@dataclass(frozen=True)
class TimeLine:
    """A line over time of about unit spread, for groups that grow apart."""

    middle: float
    spread: float

    @staticmethod
    def over(ends: tuple[float, float]) -> TimeLine:
        """The line over a range of times."""
        first, last = ends
        return TimeLine(0.5 * (first + last), max(last - first, 1e-12) / np.sqrt(12.0))

    def times(self, x: Array, responses: Responses) -> Array:
        """Columns times the line."""
        line = (responses.clock_times - self.middle) / self.spread
        return np.asarray(x * line[:, None])


@dataclass(frozen=True)
class GroupColumns:
    """Indicators of groups; the first is what the others are compared with."""

    name: str  # of the column
    levels: tuple[str, ...]
    is_group: bool  # whether they are the fit's groups; else a column of the responses
    line: TimeLine
    with_slopes: bool

    @property
    def n_tested(self) -> int:
        return (len(self.levels) - 1) * (1 + self.with_slopes)

    def codes(self, responses: Responses) -> Ints:
        """Number of each response's group; people of no known one are in the last."""
        if self.is_group:
            found = responses.group_among(self.levels)[responses.person]
        else:
            found = responses.covariates[self.name].among(self.levels).values.astype(np.int64)
        return np.where(found < 0, len(self.levels) - 1, found)

    def columns(self, responses: Responses) -> ScreenedColumns:
        code = self.codes(responses)
        x = (code[:, None] == np.arange(1, len(self.levels))).astype(np.float64)
        main = np.concatenate([x, self.line.times(x, responses)], axis=1)
        return ScreenedColumns(x, main, self.with_slopes, code, len(self.levels))

    def p_values(self, efficient: EfficientScores) -> Array:
        """Of any difference between groups."""
        return joint_tests(efficient).p

    def is_testable(self, counts: Ints) -> Bools:
        """Two groups must have met the item."""
        return np.asarray((counts >= LEAST_ANSWERS).sum(axis=1) >= 2)


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, centred and scaled."""

    name: str
    mean: float
    sd: float
    line: TimeLine
    with_slopes: bool

    @property
    def n_tested(self) -> int:
        return 1 + self.with_slopes

    def columns(self, responses: Responses) -> ScreenedColumns:
        x = (responses.covariates[self.name].values[:, None] - self.mean) / self.sd
        main = np.concatenate([x, self.line.times(x, responses)], axis=1)
        return ScreenedColumns(x, main, self.with_slopes, np.zeros(x.size, dtype=np.int64), 1)

    def p_values(self, efficient: EfficientScores) -> Array:
        """Of any effect of the column."""
        return joint_tests(efficient).p

    def is_testable(self, counts: Ints) -> Bools:
        """An item must have been met."""
        return np.asarray(counts.sum(axis=1) >= LEAST_ANSWERS)


@dataclass(frozen=True)
class DateColumns:
    """A line over the dates, and steps at the quarters of each item's answers.

    Dates are those of the calendar, whatever the fit's clock is. Items change gradually or at once;
    what all answers do is smooth.
    """

    basis: SmoothBasis
    periods: Periods
    cuts: Ints  # (n_items, n_steps) last period before each step

    @property
    def n_tested(self) -> int:
        return 1 + int(self.cuts.shape[1])

    def columns(self, responses: Responses) -> ScreenedColumns:
        times = responses.offsets
        period = self.periods.of(times)
        smooth = self.basis.columns(times)[:, 1 : 1 + SHAPES]
        steps = period[:, None] > self.cuts[responses.item]
        tested = np.concatenate([smooth[:, :1], steps], axis=1)
        return ScreenedColumns(tested, smooth, False, period, self.periods.number)

    def p_values(self, efficient: EfficientScores) -> Array:
        """Of a change of any of these kinds."""
        return combined_p(single_tests(efficient).p)

    def is_testable(self, counts: Ints) -> Bools:
        """An item must have been met."""
        return np.asarray(counts.sum(axis=1) >= LEAST_ANSWERS)


def quarters(counts: Ints) -> Ints:
    """Last period of the first, second and third quarter of each item's answers, (n_items, 3)."""
    share = np.cumsum(counts, axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return np.stack([(share < q - 1e-9).sum(axis=1) for q in (0.25, 0.5, 0.75)], axis=1)
