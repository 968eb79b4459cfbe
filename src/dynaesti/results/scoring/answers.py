"""One answer as filters take it in: coded, on the clock, with what it sees beside the curve."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import Factor, Labels, Responses, freed_label, index_of, parse_iso
from dynaesti.errors import InputError, LateAnswer
from dynaesti.estimation import FittedModel
from dynaesti.model import AnswerEffects, CohortCurves, curves_of_cohort, effects_on_answers
from dynaesti.results.clock import covariate_kinds
from dynaesti.results.scoring.state import State


@dataclass(frozen=True)
class Answer:
    """One answer, checked and coded."""

    time: float  # on the clock
    item: int
    code: float
    weight: float
    offset: float
    beside: float
    origin: float
    practice: Mapping[int, int]
    open_practice: tuple[int, ...]


@dataclass(frozen=True)
class AnswerCoder:
    """What reads answers for a scorer: its items, clock, cohort and effects."""

    model: FittedModel
    item_labels: Labels
    template: Responses

    @cached_property
    def cohort(self) -> CohortCurves | None:
        """The population's mean for single moments; None where it is 0."""
        cohort = self.model.priors.cohort
        return None if cohort is None else curves_of_cohort(cohort)

    @cached_property
    def effects(self) -> AnswerEffects | None:
        """Effects on single answers; None where there are none."""
        return effects_on_answers(self.model.priors.cohort)

    @cached_property
    def column_kinds(self) -> dict[str, str]:
        """Columns that effects and freed items need, with their kinds."""
        return covariate_kinds(self.model.priors.effects, self.model.options)

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {label: k for k, label in enumerate(self.item_labels.tolist())}

    @cached_property
    def _index(self) -> tuple[Ints, Ints]:
        return self.model.bank.index_in_blocks()

    def answer(
        self,
        state: State,
        time: Any,
        item: Any,
        resp: float,
        weight: float,
        columns: Mapping[str, Any],
    ) -> Answer:
        """One answer, checked and coded, with what it sees beside the curve."""
        if not is_number(resp) or not is_number(weight) or not weight >= 0:
            raise InputError(
                f"resp: expected a number as response and a weight of at least 0, got {resp!r} "
                f"and {weight!r}"
            )
        on_axis = self._on_axis(time)
        origin = on_axis if state.origin != state.origin else state.origin
        now = on_axis - origin
        before = state.clock_time
        if now < before:
            raise LateAnswer(
                f"time: {time} is before the last answer of this state; start again from all "
                "answers in the order of their times"
            )
        number = self.item(item, on_axis, columns)
        practice, open_practice = state.practice, state.open_practice
        if open_practice and now > before:
            practice = counted(practice, open_practice)
            open_practice = ()
        code = self.model.coding.code_one(number, float(resp))
        offset, beside = self.seen(state, now, number, columns, practice)
        codes = () if self.effects is None else self._practised(number, columns)
        return Answer(
            now,
            number,
            code,
            float(weight),
            offset,
            beside,
            origin,
            practice,
            open_practice + codes,
        )

    def _on_axis(self, time: Any) -> float:
        """A time as an offset on the fit's axis."""
        axis = self.template.axis
        if not axis.stamps and isinstance(time, int | float) and not isinstance(time, bool):
            found = float(time) - axis.origin
        else:
            found = float(axis.offsets(parse_iso([time], "time"), "time")[0])
        if not abs(found) < np.inf:
            raise InputError(f"time: expected a finite time, got {time!r}")
        return found

    def item(self, item: Any, on_axis: float, columns: Mapping[str, Any]) -> int:
        """Number of an item, that of its part where it is split."""
        free = self.model.options.get("free")
        if free:

            def late(time: Any) -> bool:
                axis = self.template.axis
                return on_axis >= float(axis.offsets(parse_iso([time], "free"), "free")[0])

            item = freed_label(free, item, late, columns)
        number = self._numbers.get(item) if isinstance(item, Hashable) else None
        if number is None:  # unknown, or known by another name: 2.0 or numpy's 2
            number = int(index_of(self.item_labels, [item], "item")[0])
        return number

    def _practised(self, item: int, columns: Mapping[str, Any]) -> tuple[int, ...]:
        """Codes of what an answer practises."""
        assert self.effects is not None
        return tuple(
            self.effects.practice_code(factor, item, columns) for factor in self.effects.practice
        )

    def seen(
        self,
        state: State,
        now: float,
        item: int,
        columns: Mapping[str, Any],
        practice: Mapping[int, int],
    ) -> tuple[float, float]:
        """Mean of what an answer sees beside the curve, and its variance by unknown effects."""
        mean = 0.0 if self.cohort is None else self.cohort.at(now, state.group)[0]
        kinds = self.column_kinds
        effects = self.effects
        personal = () if effects is None else effects.personal
        for name in columns:
            if name not in kinds or name in personal:
                raise InputError(
                    f"columns: nothing of the fit needs {name!r} of an answer"
                    + ("; it belongs to start(…)" if name in personal else "")
                )
        if effects is None:
            return mean, 0.0
        absent = [name for name in effects.of_answers if name not in columns]
        if absent:
            raise InputError(
                f"columns: the fit's effects need the column {absent[0]!r} of every answer; give "
                f"it, as in add(…, {absent[0]}=…)"
            )
        values = dict(zip(personal, state.personal, strict=True))
        values |= {name: effects.value(name, columns[name]) for name in effects.of_answers}
        counts: dict[Factor, int] = {
            factor: practice.get(effects.practice_code(factor, item, columns), 0)
            for factor in effects.practice
        }
        seen = effects.seen(now, values, counts)
        return mean + seen.mean, seen.variance

    def log_likelihood(self, answers: Sequence[Answer]) -> Callable[[Array], Array]:
        """Log-likelihoods of answers at what they see, (n_answers, n_kernels, n_nodes)."""
        bank = self.model.bank
        block_of, index = self._index
        by_block: dict[int, list[int]] = {}
        for k, one in enumerate(answers):
            by_block.setdefault(int(block_of[one.item]), []).append(k)
        parts = []
        for b, rows in by_block.items():
            mine = index[[answers[k].item for k in rows]]
            codes = np.array([answers[k].code for k in rows])
            block = bank.blocks[b]
            parts.append((block.model, block.u[mine], rows, codes, block.values[mine]))
        weight = np.array([one.weight for one in answers])[:, None]
        is_weighted = any(one.weight != 1.0 for one in answers)

        def values(z: Array) -> Array:
            theta = bank.ability_scale.theta(z).reshape(z.shape[0], -1)
            out = np.empty(theta.shape) if len(parts) > 1 else None
            for model, u, rows, of_them, units in parts:
                at = theta if out is None else theta[rows]
                own = model.log_likelihood_of(u, at, of_them, units)
                if out is None:  # all answers, in their order
                    out = own
                else:
                    out[rows] = own
            assert out is not None
            return np.asarray(out * weight if is_weighted else out).reshape(z.shape)

        return values


def counted(practice: Mapping[int, int], more: tuple[int, ...]) -> dict[int, int]:
    """Counts with further ones."""
    out = dict(practice)
    for code in more:
        out[code] = out.get(code, 0) + 1
    return out


def is_number(value: Any) -> bool:
    """Whether a value is a number, not a truth value."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
