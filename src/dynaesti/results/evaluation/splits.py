"""Responses held out: random cells, each person's last, whole people, rolling in time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dynaesti.core import Bools, as_rng, whole_number
from dynaesti.data import Responses
from dynaesti.errors import InputError

MOST_FOLDS = 50


def split(
    data: Any, share: float = 0.2, *, by: str = "random", seed: int = 0, **columns: Any
) -> tuple[Responses, Responses]:
    """(training, held-out) answers.

    A random share of the cells; `by="last"`: each person's last ones; `"people"`: all of some
    people.
    """
    responses = Responses.read(data, **columns)
    if not 0 < share < 1:
        raise InputError(f"share: {share!r} is not between 0 and 1")
    if by not in SPLITS:
        raise InputError(f"by: {by!r} is none of {', '.join(map(repr, SPLITS))}")
    out = SPLITS[by](responses, share, as_rng(seed))
    if out.all() or not out.any():
        raise InputError(
            f"share: {share!r} of these answers leaves nothing to "
            f"{'fit' if out.all() else 'hold out'}"
        )
    return responses.select_responses(
        np.flatnonzero(~out), drop_unused=True
    ), responses.select_responses(np.flatnonzero(out), drop_unused=True)


def _random_cells(r: Responses, share: float, rng: np.random.Generator) -> Bools:
    return rng.uniform(size=len(r)) < share


def _last_answers(r: Responses, share: float, rng: np.random.Generator) -> Bools:  # noqa: ARG001
    sizes = np.diff(r.person_start)
    place = np.arange(len(r)) - np.repeat(r.person_start[:-1], sizes)
    return np.asarray(place >= np.ceil((1 - share) * np.repeat(sizes, sizes)))


def _some_people(r: Responses, share: float, rng: np.random.Generator) -> Bools:
    return np.asarray((rng.uniform(size=r.people.size) < share)[r.person])


SPLITS = {"random": _random_cells, "last": _last_answers, "people": _some_people}


def rolling(data: Any, folds: int = 3, **columns: Any) -> list[tuple[Responses, Responses]]:
    """(training, held-out) pairs with the origin rolling on.

    All answers before a time, then those up to the next one.

    The second half of the answers is cut into `folds` stretches of time with equally many.
    """
    responses = Responses.read(data, **columns)
    if whole_number(folds, "folds", 1) > MOST_FOLDS:
        raise InputError(f"folds: {folds} fits are too many; give at most {MOST_FOLDS}")
    cuts = np.quantile(responses.offsets, np.linspace(0.5, 1.0, folds + 1))
    cuts[-1] = np.inf
    pairs = []
    for low, high in pairwise(cuts):
        before = responses.offsets < low
        after = (responses.offsets >= low) & (responses.offsets < high)
        if before.any() and after.any():
            pairs.append(
                (
                    responses.select_responses(np.flatnonzero(before), drop_unused=True),
                    responses.select_responses(np.flatnonzero(after), drop_unused=True),
                )
            )
    if not pairs:
        raise InputError(
            "folds: the answers share too few times to be cut into earlier and later ones"
        )
    return pairs
