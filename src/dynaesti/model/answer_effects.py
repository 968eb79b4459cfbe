"""Effects on single answers: x·β of one person at one time, in plain arithmetic.

`Effects.rows` makes the columns of many answers; here a learner's state asks for one sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log, log1p
from typing import NamedTuple
from zlib import crc32

from dynaesti.core import Array
from dynaesti.data import Factor, display_names, label_text
from dynaesti.errors import InputError
from dynaesti.model.cohort import Cohort
from dynaesti.model.effects import Effects

PRACTICE = "practice"
UNKNOWN_LEVELS = 1 << 31  # practice of levels that no fit saw is counted from here on


class Seen(NamedTuple):
    """What an answer sees beside the curve, by effects."""

    mean: float
    variance: float  # of effects of levels that no fit has seen


@dataclass(frozen=True)
class AnswerEffects:
    """Effects with their estimates, for one answer at a time."""

    effects: Effects
    values: Array  # (n_columns,) estimates
    block_variances: tuple[float, ...]  # of each exchangeable block

    @cached_property
    def personal(self) -> tuple[str, ...]:
        """Columns that belong to a person for good, in the order in which a state keeps them."""
        used = self.effects.formula.columns
        return tuple(sorted(name for name in used if name in self.effects.personal))

    @cached_property
    def of_answers(self) -> tuple[str, ...]:
        """Columns that every answer brings."""
        return tuple(name for name in self.effects.formula.columns if name not in self.personal)

    @cached_property
    def practice(self) -> tuple[Factor, ...]:
        """What is counted: practice of items, or of levels of columns."""
        terms = self.effects.formula.terms
        return tuple(dict.fromkeys(f for term in terms for f in term if f.function == PRACTICE))

    @cached_property
    def _columns(self) -> list[tuple[float, float, bool, tuple[tuple[Factor, int], ...]]]:
        """Estimate per unit, centre, whether part of ability, and factors of each fixed column."""
        e = self.effects
        estimates = (self.values[: len(e.fixed)] / e.scale).tolist()
        flags = e.is_ability[: len(e.fixed)].tolist()
        return [
            (estimate, centre, flag, column.factors)
            for estimate, centre, flag, column in zip(
                estimates, e.centre.tolist(), flags, e.fixed, strict=True
            )
        ]

    def value(self, name: str, given: object) -> float:
        """A column's value as a number: that of its level where it has levels, −1 for others."""
        levels = self.effects.levels.get(name)
        if levels is not None:
            text = label_text(given).strip()
            return float(levels.index(text)) if text in levels else -1.0
        try:
            number = float(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = float("nan")
        if not abs(number) < float("inf"):
            raise InputError(f"{name}: expected a number, got {given!r}")
        return number

    def practice_code(self, factor: Factor, item: int, columns: Mapping[str, object]) -> int:
        """What one factor of practice counts of an answer, as a number of its own."""
        number = self.practice.index(factor)
        if factor.column == "item":
            return item * len(self.practice) + number
        text = label_text(columns[factor.column]).strip()
        levels = self.effects.levels[factor.column]
        known = text in levels
        code = levels.index(text) if known else UNKNOWN_LEVELS + crc32(text.encode())
        return code * len(self.practice) + number

    def seen(
        self,
        time: float,
        columns: Mapping[str, float],
        counts: Mapping[Factor, int] | None,
    ) -> Seen:
        """x·β of an answer; of ability alone where `counts` of practice are None.

        Raises
        ------
        InputError
            If a level of a column is not known, or a logarithm has no value.
        """
        total = 0.0
        for estimate, centre, of_ability, factors in self._columns:
            if counts is None and not of_ability:
                continue
            product = 1.0
            for factor, level in factors:
                product *= self._factor(factor, level, time, columns, counts)
            total += estimate * (product - centre)
        variance = 0.0
        for block, own in zip(self.effects.blocks, self.block_variances, strict=True):
            name = block.factor.column
            if counts is None and name not in self.effects.personal:
                continue
            code = int(columns[name])
            if code < 0:
                variance += own
            else:
                total += float(self.values[block.columns.start + code])
        return Seen(total, variance)

    def _factor(
        self,
        factor: Factor,
        level: int,
        time: float,
        columns: Mapping[str, float],
        counts: Mapping[Factor, int] | None,
    ) -> float:
        """One factor of a column."""
        if factor.is_time:
            return time
        if factor.function == PRACTICE:
            assert counts is not None  # practice is no part of ability
            return log1p(counts[factor])
        value = columns[factor.column]
        if level >= 0 or factor.column in self.effects.levels:
            if value < 0:
                known = display_names(self.effects.levels[factor.column], 8)
                raise InputError(
                    f"{factor.column}: a level that the fit has not seen; known are {known}"
                )
            return float(value == level)
        if factor.function == "log":
            if not value > 0:
                raise InputError(f"{factor.column}: {value:g} is not above 0, as {factor} needs")
            return log(value)
        return value


def effects_on_answers(cohort: Cohort | None) -> AnswerEffects | None:
    """The effects of a cohort for single answers; None where it has none."""
    if cohort is None or cohort.effects is None:
        return None
    sizes = cohort.sizes[cohort.sizes.size - cohort.n_blocks :]
    return AnswerEffects(cohort.effects, cohort.effect_values, tuple((sizes**2).tolist()))
