"""Responses held out: random cells, each person's last, whole people, rolling in time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from dynaesti.core import Bools, as_rng, whole_number
from dynaesti.data import Responses
from dynaesti.errors import InputError

MOST_FOLDS = 50  # each is a fit


def split(
    data: Any, share: float = 0.2, *, by: str = "random", seed: int = 0, **columns: Any
) -> tuple[Responses, Responses]:
    """Split answers into a training and a held-out part.

    Parameters
    ----------
    data : frame, mapping, path or Responses
    share : float, default 0.2
        Share of the answers (or people) to hold out, between 0 and 1.
    by : {"random", "last", "people"}, default "random"
        Hold out random answers, each person's last ones, or all answers of random people.
    seed : int, default 0
    **columns
        Column names and reading options, as for `Responses.read`.

    Returns
    -------
    train, test : Responses

    Raises
    ------
    InputError
        If `share` or `by` is not one of these, or a part would be empty.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> train, test = dy.evaluation.split(table, 0.25, by="last")
    >>> len(train), len(test)
    (108, 36)
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
    train = responses.select_responses(np.flatnonzero(~out), drop_unused=True)
    return train, responses.select_responses(np.flatnonzero(out), drop_unused=True)


def _random_cells(r: Responses, share: float, rng: np.random.Generator) -> Bools:
    """Hold out each answer with the given probability."""
    return rng.uniform(size=len(r)) < share


def _last_answers(r: Responses, share: float, rng: np.random.Generator) -> Bools:  # noqa: ARG001
    """Hold out the last answers of each person."""
    sizes = np.diff(r.person_start)
    index = np.arange(len(r)) - np.repeat(r.person_start[:-1], sizes)
    return np.asarray(index >= np.ceil((1 - share) * np.repeat(sizes, sizes)))


def _some_people(r: Responses, share: float, rng: np.random.Generator) -> Bools:
    """Hold out each person with the given probability."""
    return np.asarray((rng.uniform(size=r.people.size) < share)[r.person])


SPLITS = {"random": _random_cells, "last": _last_answers, "people": _some_people}


def rolling(data: Any, folds: int = 3, **columns: Any) -> list[tuple[Responses, Responses]]:
    """Split answers by time, several times: all before a time, and those up to the next.

    The later half of the answers is cut into `folds` stretches of time with equally many answers.

    Parameters
    ----------
    data : frame, mapping, path or Responses
    folds : int, default 3
        Number of pairs, at most 50.
    **columns
        Column names and reading options, as for `Responses.read`.

    Returns
    -------
    list of (Responses, Responses)
        (training, held-out) pairs, earliest first.

    Raises
    ------
    InputError
        If there are too many folds, or too few distinct times.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> [(len(train), len(test)) for train, test in dy.evaluation.rolling(table, folds=2)]
    [(72, 36), (108, 36)]
    """
    responses = Responses.read(data, **columns)
    if whole_number(folds, "folds", 1) > MOST_FOLDS:
        raise InputError(f"folds: {folds} fits are too many; give at most {MOST_FOLDS}")
    cuts = np.quantile(responses.offsets, np.linspace(0.5, 1.0, folds + 1))
    cuts[-1] = np.inf  # the last fold includes the last answer
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
