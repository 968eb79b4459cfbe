"""A column of people from a table beside the responses, such as their gender."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaesti.core import Array
from dynaesti.data.columns import find_column, parse_labels
from dynaesti.data.covariates import NO_LEVEL, Covariate, parse_covariates
from dynaesti.data.formulas import ANY
from dynaesti.data.labels import Labels, count_noun, try_index_of
from dynaesti.data.read_log import ReadLog
from dynaesti.data.readers.read import read_table
from dynaesti.errors import (
    HealthWarning,
    InputError,
    MissingColumnError,
    ResponseError,
    warn_user,
)


def read_person_column(data: Any, column: str, people: Labels, id_column: str | None) -> Covariate:
    """One value for each person, from a table with a row for each person or each answer.

    People of whom the table says nothing have the category NO_LEVEL.

    Parameters
    ----------
    data : frame, mapping or path
        With a column of ids.
    column : str
        Column with the values.
    people : array (n_people,)
        Labels of the people.
    id_column : str or None
        Column of ids; where the table has none of that name, one with a usual name.

    Raises
    ------
    ResponseError
        If a person has several values.
    InputError
        If nobody is in the table, or people without a number are.
    """
    table = read_table(data)
    log = ReadLog(table, np.zeros(len(table.frame), dtype=bool))
    try:
        name = find_column(table, "id", id_column, [])
    except MissingColumnError:
        name = find_column(table, "id", None, [])
    labels = parse_labels(table.frame[str(name)], "id", log)
    found = parse_covariates(table, {column: ANY}, log, "by")[column]
    log.raise_or_drop(drop=True)
    person = np.where(log.bad, -1, try_index_of(people, labels.tolist()))
    is_blank = np.zeros(person.size, dtype=bool)  # beside a value, a blank is no other value
    if found.levels is not None and NO_LEVEL in found.levels:
        is_blank = found.values == found.levels.index(NO_LEVEL)
    rows = np.flatnonzero((person >= 0) & ~is_blank)
    if not (person >= 0).any():
        raise InputError(
            f"data: none of the {people.size:,} people of the fit is in it (first: "
            f"{people.tolist()[0]!r}); its ids are those of column {name!r}"
        )
    values = np.full(people.size, np.nan)
    values[person[rows][::-1]] = found.values[rows][::-1]
    changing = np.unique(person[rows][found.values[rows] != values[person[rows]]])
    if changing.size:
        raise ResponseError(
            f"{column}: {count_noun(changing.size, 'people')} of {people.size:,} have several "
            f"values (first: {people.tolist()[changing[0]]!r}); give one for each person"
        )
    return _with_missing(column, found, values)


def _with_missing(column: str, found: Covariate, values: Array) -> Covariate:
    """The values of people; those without one have a category of their own."""
    missing = np.isnan(values)
    n_missing = int(missing.sum())
    if not n_missing:
        return Covariate(values, found.levels)
    if found.levels is None:
        raise InputError(
            f"{column}: {count_noun(n_missing, 'people')} of {values.size:,} have no "
            "number; give theirs, or leave these people out of the fit"
        )
    warn_user(
        f"{column}: the table says nothing of {count_noun(n_missing, 'people')} of "
        f"{values.size:,}; they are a group of their own, {NO_LEVEL!r}",
        HealthWarning,
    )
    levels = found.levels if NO_LEVEL in found.levels else (*found.levels, NO_LEVEL)
    return Covariate(np.where(missing, levels.index(NO_LEVEL), values), levels)
