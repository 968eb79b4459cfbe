"""Effects: known columns of people and answers that move what an answer sees.

An answer sees the person's curve plus x·β. The columns x are those of a formula, with levels,
centres and scales fixed once for all data. Those made of time and of what is constant for a person
are part of ability; those of answers (practice, raters) are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from dynaesti.core import Array, Bools, Ints, check_array, require
from dynaesti.data import Covariate, Factor, Formula, Responses, parse_formula, practice_counts
from dynaesti.errors import InputError

MOST_COLUMNS = 500  # of all effects together


class FixedColumn(NamedTuple):
    """A product of numbers, and of indicators of levels."""

    name: str
    factors: tuple[tuple[Factor, int], ...]  # each with the number of its level, −1 for numbers


class Block(NamedTuple):
    """Exchangeable columns: an indicator for each level."""

    factor: Factor
    levels: tuple[str, ...]
    columns: slice


class EffectRows(NamedTuple):
    """Columns of some answers."""

    x: csr_array  # (n_rows, n_columns) centred and scaled
    unseen: Bools  # (n_rows, n_blocks) levels of blocks that are not among those known

    def select(self, rows: Ints) -> EffectRows:
        """The columns of some of the answers."""
        return EffectRows(self.x[rows], self.unseen[rows])


@dataclass(frozen=True)
class EmissionColumns:
    """Times and covariates of emissions, from which columns of effects are made."""

    clock_times: Array  # (n_emissions,)
    covariates: Mapping[str, Covariate]

    def __len__(self) -> int:
        return int(self.clock_times.size)


@dataclass(frozen=True)
class Effects:
    """The columns of a formula, with levels, centres and scales."""

    formula: Formula
    levels: Mapping[str, tuple[str, ...]]  # of each column of categories
    personal: frozenset[str]  # columns that are constant for each person
    centre: Array  # (n_fixed,)
    scale: Array  # (n_fixed,)

    @cached_property
    def fixed(self) -> tuple[FixedColumn, ...]:
        """The columns without prior, in the order of the formula."""
        out = []
        for term in self.formula.terms:
            products: list[FixedColumn] = [FixedColumn("", ())]
            for factor in term:
                choices: list[tuple[str, int]] = [(str(factor), -1)]
                if self._is_category(factor):
                    first = int(self.formula.is_reduced(term, factor))
                    named = list(enumerate(self.levels[factor.column]))[first:]
                    choices = [(f"{factor.column}[{level}]", k) for k, level in named]
                products = [
                    FixedColumn(f"{old.name}:{name}".lstrip(":"), (*old.factors, (factor, k)))
                    for old in products
                    for name, k in choices
                ]
            out += products
        return tuple(out)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The exchangeable columns; they follow the fixed ones."""
        out = []
        first = len(self.fixed)
        for factor in self.formula.blocks:
            levels = self.levels[factor.column]
            out.append(Block(factor, levels, slice(first, first + len(levels))))
            first += len(levels)
        return tuple(out)

    @property
    def constant(self) -> list[str]:
        """Terms without columns, since a factor of theirs has one category only."""
        return [
            ":".join(map(str, term))
            for term in self.formula.terms
            if any(
                self._is_category(factor) and len(self.levels[factor.column]) < 2 for factor in term
            )
        ]

    @cached_property
    def involve_time(self) -> bool:
        """Whether time is part of some column."""
        return any(factor.is_time for column in self.fixed for factor, _ in column.factors)

    @property
    def n_columns(self) -> int:
        """Number of all columns."""
        return self.blocks[-1].columns.stop if self.blocks else len(self.fixed)

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        blocks = [f"{block.factor}[{level}]" for block in self.blocks for level in block.levels]
        return [column.name for column in self.fixed] + blocks

    @cached_property
    def is_ability(self) -> Bools:
        """Which columns are part of ability: made of time and of what is constant for a person."""
        fixed = [all(map(self._is_personal, dict(one.factors))) for one in self.fixed]
        blocks = [self._is_personal(block.factor) for block in self.blocks for _ in block.levels]
        return np.array(fixed + blocks, dtype=bool)

    def _is_category(self, factor: Factor) -> bool:
        return factor.function in ("", "C") and factor.column in self.levels

    def _is_personal(self, factor: Factor) -> bool:
        return factor.is_time or (factor.function != "practice" and factor.column in self.personal)

    # --- values

    def rows(
        self, responses: Responses | EmissionColumns, history: Responses | None = None
    ) -> EffectRows:
        """The columns at the answers of some responses.

        Parameters
        ----------
        responses : Responses or EmissionColumns
            With all columns of the formula.
        history : Responses, optional
            Answers of the same people, by label, that count as practice, in the place of the
            responses themselves: for predictions.
        """
        values = self._factor_values(responses, history)
        fixed = np.empty((len(responses), len(self.fixed)))
        for k, column in enumerate(self.fixed):
            fixed[:, k] = _product(column, values)
        fixed = (fixed - self.centre) / self.scale
        parts = [csr_array(fixed)]
        unseen = np.zeros((len(responses), len(self.blocks)), dtype=bool)
        for b, block in enumerate(self.blocks):
            code = self._codes(responses, block.factor.column)
            unseen[:, b] = code < 0
            parts.append(_indicators(code, len(block.levels)))
        return EffectRows(csr_array(hstack(parts, format="csr")), unseen)

    def raw_columns(self, responses: Responses | EmissionColumns) -> Array:
        """The fixed columns before centring and scaling, (n_responses, n_fixed)."""
        values = self._factor_values(responses, None)
        columns = [_product(column, values) for column in self.fixed]
        return np.stack(columns, axis=1) if columns else np.zeros((len(responses), 0))

    def by_person(self, responses: Responses) -> tuple[csr_array, csr_array]:
        """Level and slope over time of each person's columns of ability: (n_people, n_columns).

        Ability at time t has the columns level + t · slope; columns of answers are 0.
        """
        first = responses.person_start[:-1]
        one = responses.select_responses(first)
        values = self._factor_values(one, None)
        values = {key: np.ones(first.size) if key.is_time else v for key, v in values.items()}
        level = np.zeros((first.size, len(self.fixed)))
        slope = np.zeros(level.shape)
        for k, column in enumerate(self.fixed):
            if self.is_ability[k]:
                grows = any(factor.is_time for factor, _ in column.factors)
                (slope if grows else level)[:, k] = _product(column, values) / self.scale[k]
                level[:, k] -= self.centre[k] / self.scale[k]
        levels = [csr_array(level)]
        for block in self.blocks:
            code = self._codes(one, block.factor.column)
            personal = self._is_personal(block.factor)
            levels.append(_indicators(code if personal else code * 0 - 1, len(block.levels)))
        wide = np.zeros((first.size, self.n_columns))
        wide[:, : slope.shape[1]] = slope
        return csr_array(hstack(levels, format="csr")), csr_array(wide)

    def _factor_values(
        self, responses: Responses | EmissionColumns, history: Responses | None
    ) -> dict[Factor, Array]:
        """Numbers, or numbers of levels, of each factor of the fixed terms: (n_responses,)."""
        out: dict[Factor, Array] = {}
        for factor in dict.fromkeys(f for term in self.formula.terms for f in term):
            if factor.is_time:
                out[factor] = responses.clock_times
            elif factor.function == "practice":
                assert isinstance(responses, Responses)  # emissions have none, see `curve_effects`
                out[factor] = np.log1p(_practice(factor, responses, history))
            elif self._is_category(factor):
                out[factor] = self._known_codes(responses, factor.column)
            else:
                out[factor] = responses.covariates[factor.column].values
                if factor.function == "log":
                    out[factor] = _logs(factor, out[factor])
        return out

    def _codes(self, responses: Responses | EmissionColumns, column: str) -> Ints:
        found = responses.covariates[column].among(self.levels[column])
        return found.values.astype(np.int64)

    def _known_codes(self, responses: Responses | EmissionColumns, column: str) -> Array:
        """Numbers of levels, which must be known."""
        codes = self._codes(responses, column)
        if (codes < 0).any():
            given = responses.covariates[column]
            assert given.levels is not None
            first = given.levels[int(given.values[int((codes < 0).argmax())])]
            known = ", ".join(map(repr, self.levels[column][:8]))
            raise InputError(
                f"effects: {int((codes < 0).sum()):,} of {codes.size:,} answers have a level of "
                f"{column!r} that the fit has not seen (first: {first!r}); known are {known}"
            )
        return codes.astype(np.float64)


def _product(column: FixedColumn, values: Mapping[Factor, Array]) -> Array:
    """A column before centring: numbers times indicators of levels."""
    out: Any = 1.0
    for factor, level in column.factors:
        out = out * (values[factor] if level < 0 else values[factor] == level)
    return np.asarray(out, dtype=np.float64)


def _indicators(code: Ints, n_levels: int) -> csr_array:
    """A row for each code with 1 in its column; none for −1."""
    known = np.flatnonzero(code >= 0)
    return csr_array((np.ones(known.size), (known, code[known])), shape=(code.size, n_levels))


def _logs(factor: Factor, values: Array) -> Array:
    if (values <= 0).any():
        raise InputError(
            f"effects: {int((values <= 0).sum()):,} of {values.size:,} values of "
            f"{factor.column!r} are not above 0, so that {factor} has no value there"
        )
    return np.asarray(np.log(values))


def _practice(factor: Factor, responses: Responses, history: Responses | None) -> Array:
    """How often each answer's person answered the same item, or level of a column, before."""
    everything = responses if history is None else history.append(responses)
    if factor.column == "item":
        code = everything.item
    else:
        code = everything.covariates[factor.column].values.astype(np.int64)
    if history is None:
        return practice_counts(everything.person, everything.offsets, code)
    is_asked = everything.row >= len(history)
    counts = practice_counts(
        everything.person, everything.offsets, code, np.where(is_asked, 0.0, 1.0)
    )
    out = np.empty(len(responses))
    out[everything.row[is_asked] - len(history)] = counts[is_asked]
    return out


@dataclass(frozen=True)
class EffectSums:
    """What centres and scales are made of: sums over answers, which add up."""

    weight: float
    sums: Array  # (n_fixed,)
    squares: Array
    changing: frozenset[str]  # columns of the data that change for somebody

    def __add__(self, other: EffectSums) -> EffectSums:
        return EffectSums(
            self.weight + other.weight,
            self.sums + other.sums,
            self.squares + other.squares,
            self.changing | other.changing,
        )


def plain_effects(formula: Formula, levels: Mapping[str, tuple[str, ...]]) -> Effects:
    """Columns that are neither centred nor scaled yet.

    Raises
    ------
    InputError
        If there are too many.
    """
    made = Effects(formula, levels, frozenset(), np.zeros(0), np.ones(0))
    if made.n_columns > MOST_COLUMNS:
        widest = max(levels, key=lambda name: len(levels[name]))
        raise InputError(
            f"effects: {made.n_columns:,} columns ({widest!r} alone has {len(levels[widest]):,} "
            f"levels), and at most {MOST_COLUMNS} can be learned together; join some levels"
        )
    n_fixed = len(made.fixed)
    return replace(made, centre=np.zeros(n_fixed), scale=np.ones(n_fixed))


def curve_effects(formula: Formula, emissions: EmissionColumns) -> Effects:
    """The columns of a formula for emissions of a curve, centred and scaled over them.

    Raises
    ------
    InputError
        If the formula asks for practice, which curves do not have.
    """
    if any(factor.function == "practice" for term in formula.terms for factor in term):
        raise InputError("effects: practice(…) is of people who answer items; a curve has neither")
    covariates = emissions.covariates
    levels = {name: one.levels for name, one in covariates.items() if one.levels is not None}
    plain = plain_effects(formula, levels)
    raw = plain.raw_columns(emissions)
    spread = raw.std(axis=0)
    flat = spread <= 1e-9 * np.sqrt((raw**2).mean(axis=0) + 1e-300)
    single = [plain.fixed[k].name for k in np.flatnonzero(flat)]
    single += [str(block.factor) for block in plain.blocks if len(block.levels) < 2]
    if single:
        raise InputError(
            f"effects: {single[0]} has one value only, so that it moves nothing; leave it out"
        )
    return replace(plain, centre=raw.mean(axis=0), scale=np.where(flat, 1.0, spread))


def sum_effects(effects: Effects, responses: Responses) -> EffectSums:
    """Sums over some responses, for the centres and scales."""
    columns = effects.raw_columns(responses)
    weight = np.ones(len(responses)) if responses.weight is None else responses.weight
    first = responses.person_start[responses.person]
    changing = {
        name
        for name, column in responses.covariates.items()
        if (column.values != column.values[first]).any()
    }
    return EffectSums(
        float(weight.sum()), weight @ columns, weight @ columns**2, frozenset(changing)
    )


def standardised_effects(effects: Effects, sums: EffectSums) -> Effects:
    """The columns with centres and scales from sums over all responses."""
    mean = sums.sums / sums.weight
    spread = np.sqrt(np.maximum(sums.squares / sums.weight - mean**2, 0.0))
    flat = spread <= 1e-9 * np.sqrt(sums.squares / sums.weight + 1e-300)
    return replace(
        effects,
        personal=frozenset(effects.formula.columns) - sums.changing,
        centre=mean,
        scale=np.where(flat, 1.0, spread),
    )


@dataclass(frozen=True)
class PeopleEffects:
    """Columns of effects at everyone's sites, and those of people's abilities."""

    at_sites: csr_array  # (n_sites, n_columns)
    level: csr_array  # (n_people, n_columns): at time t, ability has level + t · slope
    slope: csr_array  # (n_people, n_columns)

    def of_ability(self, person: Ints, times: Array) -> csr_array:
        """Columns of abilities of people at times; −1 is someone of whom nothing is known."""
        known = csr_array((person >= 0).astype(np.float64)[:, None])
        who = np.maximum(person, 0)
        rows = self.level[who] + self.slope[who].multiply(times[:, None])
        return csr_array(rows.multiply(known))

    def select(self, people: Ints, sites: Ints) -> PeopleEffects:
        """The columns of some people and their sites."""
        return PeopleEffects(self.at_sites[sites], self.level[people], self.slope[people])


def effects_header(effects: Effects | None, arrays: dict[str, Any]) -> dict[str, Any] | None:
    """What a file says of effects; their arrays are added to `arrays`."""
    if effects is None:
        return None
    arrays |= {"effects.centre": effects.centre, "effects.scale": effects.scale}
    return {
        "formula": effects.formula.text,
        "levels": {name: list(levels) for name, levels in effects.levels.items()},
        "personal": sorted(effects.personal),
    }


def read_effects(header: Any, arrays: Mapping[str, Any]) -> Effects | None:
    """The effects that `effects_header` wrote, checked; None where there are none."""
    if header is None:
        return None
    levels = {str(name): tuple(map(str, given)) for name, given in header["levels"].items()}
    made = plain_effects(parse_formula(header["formula"]), levels)
    centre, scale = arrays["effects.centre"], arrays["effects.scale"]
    check_array(centre, made.centre.shape, "the centres of effects", "f")
    check_array(scale, made.scale.shape, "the scales of effects", "f")
    require(bool((scale > 0).all()), "the scales of effects")
    personal = frozenset(map(str, header["personal"]))
    return replace(made, personal=personal, centre=centre, scale=scale)
