"""Columns of states: many learners, each with one answer more or with a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.errors import InputError
from dynaesti.results.scoring.state import State

if TYPE_CHECKING:
    from dynaesti.results.scoring.scorer import Scorer

BATCH = 2000  # states in one call: what is held of them stays in the caches


def follow_column(
    scorer: Scorer,
    states: Sequence[bytes | None],
    answers: Mapping[str, Sequence[Any]],
    columns: Mapping[str, Sequence[Any]],
) -> list[bytes]:
    """States as bytes after answers: see `Scorer.add_column`."""
    n = len(states)
    for name, column in {**answers, **columns}.items():
        if len(column) != n:
            raise InputError(f"{name}: {len(column):,} values for {n:,} states")
    out: list[bytes] = []
    for first in range(0, n, BATCH):
        part = slice(first, first + BATCH)
        here = {name: column[part] for name, column in answers.items()}
        beside = {name: column[part] for name, column in columns.items()}
        out += _follow(scorer, states[part], here, beside, first)
    return out


def _follow(
    scorer: Scorer,
    states: Sequence[bytes | None],
    answers: Mapping[str, Sequence[Any]],
    columns: Mapping[str, Sequence[Any]],
    first: int,
) -> list[bytes]:
    """The same for a part that begins with row `first`."""
    beginning = scorer.beginning_columns
    mine = {name: columns[name] for name in columns if name in beginning}
    beside = {name: columns[name] for name in columns if name not in beginning}
    found: list[State] = []
    for k, state in enumerate(states):
        given = {name: _one(column[k]) for name, column in mine.items()}
        found.append(scorer.start(**given) if state is None else scorer.state(state))
    lists = {
        name: [_many(value) for value in column] for name, column in {**answers, **beside}.items()
    }
    counts = [len(one) for one in lists["time"]]
    for name, column in lists.items():
        for k, one in enumerate(column):
            if len(one) != counts[k]:
                raise InputError(
                    f"{name}: row {first + k} has {len(one)} values and {counts[k]} times"
                )
    for turn in range(max(counts, default=0)):
        rows = [k for k, count in enumerate(counts) if turn < count]
        after = _step(scorer, found, lists, list(beside), rows, turn)
        for row, moved in zip(rows, after, strict=True):
            found[row] = moved
    return [state.to_bytes() for state in found]


def _step(
    scorer: Scorer,
    states: Sequence[State],
    lists: Mapping[str, Sequence[Sequence[Any]]],
    beside: Sequence[str],
    rows: Sequence[int],
    turn: int,
) -> list[State]:
    """One answer more for each of some rows."""
    weights = lists.get("weight")
    return scorer.add_each(
        [states[k] for k in rows],
        [lists["time"][k][turn] for k in rows],
        [lists["item"][k][turn] for k in rows],
        [lists["resp"][k][turn] for k in rows],
        None if weights is None else [weights[k][turn] for k in rows],
        [{name: lists[name][k][turn] for name in beside} for k in rows],
    )


def ability_column(
    scorer: Scorer, states: Sequence[bytes | None], at: Any, level: float
) -> dict[str, list[float]]:
    """Columns mean, sd, lower and upper of states as bytes: see `Scorer.ability_column`."""
    columns: dict[str, list[float]] = {name: [] for name in ABILITY}
    many = hasattr(at, "__len__") and not isinstance(at, str)
    for first in range(0, len(states), BATCH):
        part = slice(first, first + BATCH)
        found = [scorer.start() if one is None else scorer.state(one) for one in states[part]]
        now = scorer.ability(found, at[part] if many else at, level=level)
        for name, column in columns.items():
            column += np.atleast_1d(getattr(now, name)).tolist()
    return columns


ABILITY = ("mean", "sd", "lower", "upper")


def _one(value: Any) -> Any:
    """What belongs to a person: the first of a list."""
    return value[0] if isinstance(value, list | tuple | np.ndarray) and len(value) else value


def _many(value: Any) -> Sequence[Any]:
    """A cell as a list of answers; a missing one is none."""
    if value is None:
        return ()
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    return (value,)
