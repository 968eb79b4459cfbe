"""Columns beside the responses: covariates of people and answers, and practice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data.columns import find_column, parse_numbers, try_floats
from dynaesti.data.formulas import ANY, CATEGORY, NUMBER
from dynaesti.data.groups import parse_groups
from dynaesti.data.labels import display_names
from dynaesti.data.read_log import ReadLog
from dynaesti.data.readers.read import read_table
from dynaesti.data.readers.table import Table
from dynaesti.errors import InputError, option

WAREHOUSE = ("rater", "treat", "rt")  # columns beside the answers, by their names there
NO_LEVEL = "(none)"  # level of rows without a category


@dataclass(frozen=True)
class Covariate:
    """A column beside the responses: numbers, or categories as numbers of their levels."""

    values: Array  # (n_responses,); of categories −1 where the level is not among the levels
    levels: tuple[str, ...] | None = None  # of categories

    @property
    def kind(self) -> str:
        """Whether it holds numbers or categories."""
        return NUMBER if self.levels is None else CATEGORY

    def select(self, rows: Ints) -> Covariate:
        """The values of some rows."""
        return Covariate(self.values[rows], self.levels)

    def among(self, levels: Sequence[str]) -> Covariate:
        """The categories by their numbers in a list of levels, −1 where they are not in it."""
        assert self.levels is not None
        known = {level: k for k, level in enumerate(levels)}
        number = np.array([*(known.get(level, -1) for level in self.levels), -1], dtype=np.float64)
        return Covariate(number[self.values.astype(np.int64)], tuple(levels))

    @staticmethod
    def concatenate(parts: Sequence[Covariate]) -> Covariate:
        """The values of all parts, one after the other; levels that are new come last."""
        if parts[0].levels is None:
            return Covariate(np.concatenate([part.values for part in parts]))
        levels = tuple(dict.fromkeys(level for part in parts for level in part.levels or ()))
        return Covariate(np.concatenate([part.among(levels).values for part in parts]), levels)


Covariates = Mapping[str, Covariate]


def parse_covariates(
    table: Table, kinds: Mapping[str, str], log: ReadLog, role: str = "effects"
) -> dict[str, Covariate]:
    """Read columns as numbers or categories.

    Rows without a number are rejected; those without a category have the level NO_LEVEL.

    Parameters
    ----------
    table : Table
    kinds : mapping of column to kind
        "number", "category", or "any": numbers where all values are.
    log : ReadLog
        Gets rows that cannot be read.
    role : str, default "effects"
        What the columns are for, in messages.
    """
    out: dict[str, Covariate] = {}
    for name, kind in kinds.items():
        series = table.frame[str(find_column(table, role, name, []))]
        if kind == NUMBER or (kind == ANY and _holds_numbers(series)):
            called = f"{role} (column {name!r})"
            values, missing = parse_numbers(series, called, log)
            log.reject(missing, called, "have no number")
            out[name] = Covariate(values)
        else:
            texts = parse_groups(series)
            levels, code = np.unique(np.where(texts == "", NO_LEVEL, texts), return_inverse=True)
            out[name] = Covariate(code.astype(np.float64), tuple(levels.tolist()))
    return out


def read_covariates(data: Any, kinds: Mapping[str, str], n_rows: int) -> dict[str, Covariate]:
    """Columns of a table with a row for each of n_rows emissions.

    Raises
    ------
    InputError
        If there are more or fewer rows.
    ResponseError
        If a column is missing, or a row has no number.
    """
    if data is None:
        raise InputError(
            f"effects: they need the columns {display_names(list(kinds))}; give them as covariates="
        )
    table = read_table(data)
    if len(table.frame) != n_rows:
        raise InputError(
            f"covariates: {len(table.frame):,} rows for {n_rows:,} emissions; each needs its own"
        )
    log = ReadLog(table, np.zeros(n_rows, dtype=bool))
    found = parse_covariates(table, kinds, log)
    if log.problems:
        raise InputError(f"{'. '.join(log.problems)}. Every emission needs a value")
    return found


def unused_covariates(columns: Sequence[str], used: Sequence[str | None]) -> str | None:
    """A note on columns that the Item Response Warehouse names so, where nobody asked for them."""
    known = [
        name
        for name in columns
        if (name.startswith("cov_") or name in WAREHOUSE) and name not in used
    ]
    if not known:
        return None
    return f"not used: {display_names(known)} (effects can: {option('effects', known[0])})"


def _holds_numbers(series: nw.Series[Any]) -> bool:
    if try_floats(series) is not None:
        return True
    texts = [text for text in parse_groups(series).tolist() if text]
    try:
        [float(text) for text in texts]
    except ValueError:
        return False
    return bool(texts)


def practice_counts(person: Ints, times: Array, code: Ints, counts: Array | None = None) -> Array:
    """How many earlier answers the same person gave to the same thing, for each answer.

    Answers at the same time are not earlier.

    Parameters
    ----------
    person, code : int array (n_answers,)
        Who answered, and what.
    times : array (n_answers,)
    counts : array (n_answers,), optional
        0 for answers that are asked about but not given. Default: 1.
    """
    counts = np.ones(person.size) if counts is None else counts
    order = np.lexsort((times, code, person))
    who, what, when = person[order], code[order], times[order]
    before = np.concatenate([[0.0], np.cumsum(counts[order])[:-1]])
    same = (np.diff(who, prepend=-1) == 0) & (np.diff(what, prepend=-1) == 0)
    begins = np.flatnonzero(~same)
    instants = np.flatnonzero(~(same & (np.diff(when, prepend=-np.inf) == 0)))
    number = np.arange(order.size)
    at_start = before[begins[np.searchsorted(begins, number, side="right") - 1]]
    at_instant = before[instants[np.searchsorted(instants, number, side="right") - 1]]
    out = np.empty(order.size)
    out[order] = at_instant - at_start
    return out
