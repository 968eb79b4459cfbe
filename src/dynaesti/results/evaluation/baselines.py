"""Baseline forecasts: a constant, item and person effects, and Elo."""

from __future__ import annotations

import numpy as np

from dynaesti.core import Array, Ints, jit
from dynaesti.data import Responses

ROUNDS = 40  # of Newton steps
ITEM_SD = 1.5  # of an item's log odds around the overall ones, in the prior
PERSON_SD = 1.0  # of a person's ability, in the prior
# a step is start / (1 + decay · answers so far)
ELO_START = 0.8
ELO_DECAY = 0.05


def constant(train: Responses, test: Responses, values: Array) -> Array:
    """The overall share of each category, the same for everyone.

    Parameters
    ----------
    train, test : Responses
    values : array (n_categories,)
        All distinct responses, rising.

    Returns
    -------
    array (n_test, n_categories)
        Probability of each category.
    """
    share = np.bincount(np.searchsorted(values, train.resp), minlength=values.size) + 0.5
    return np.tile(share / share.sum(), (len(test), 1))


def item_and_person(train: Responses, test: Responses, values: Array) -> Array:
    """Log odds of category k: an item's own plus k times a person's.

    Both are shrunken towards the overall ones, by coordinate Newton steps.

    Parameters
    ----------
    train, test : Responses
    values : array (n_categories,)
        All distinct responses, rising.

    Returns
    -------
    array (n_test, n_categories)
        Probability of each category.
    """
    size = values.size
    code = np.searchsorted(values, train.resp)
    base = np.log(np.bincount(code, minlength=size) + 0.5)
    odds = np.tile(base - base[0], (train.items.size, 1))
    centre = odds[0].copy()
    theta = np.zeros(train.people.size)
    score = np.arange(size, dtype=np.float64)
    seen = np.zeros((train.items.size, size))
    np.add.at(seen, (train.item, code), 1.0)
    for _ in range(ROUNDS):
        p = _category_chances(odds[train.item], theta[train.person], score)
        mean = p @ score
        gradient = np.bincount(train.person, score[code] - mean, theta.size) - theta / PERSON_SD**2
        change = gradient / (
            np.bincount(train.person, p @ score**2 - mean**2, theta.size) + PERSON_SD**-2
        )
        theta += np.clip(change, -1, 1)
        p = _category_chances(odds[train.item], theta[train.person], score)
        for k in range(1, size):
            expected = np.bincount(train.item, p[:, k], train.items.size)
            curved = np.bincount(train.item, p[:, k] * (1 - p[:, k]), train.items.size)
            change = (seen[:, k] - expected - (odds[:, k] - centre[k]) / ITEM_SD**2) / (
                curved + ITEM_SD**-2
            )
            odds[:, k] += np.clip(change, -1, 1) / (size - 1)
    item = _values_of_labels(odds, centre, train.items, test.items)[test.item]
    return _category_chances(
        item, _values_of_labels(theta, 0.0, train.people, test.people)[test.person], score
    )


def _category_chances(odds: Array, theta: Array, score: Array) -> Array:
    """Probability of each category from its log odds and a person's ability."""
    logs = odds + theta[:, None] * score
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _values_of_labels(table: Array, default: Array | float, known: Array, wanted: Array) -> Array:
    """Rows of known labels for wanted ones; the default where a label is new."""
    number = {label: k for k, label in enumerate(known.tolist())}
    row = np.array([number.get(label, -1) for label in wanted.tolist()], dtype=np.int64)
    out = table[np.maximum(row, 0)].copy()
    out[row < 0] = default
    return out


@jit
def _run_elo(
    person: Ints, item: Ints, y: Array, learn: Array, people: int, items: int, out: Array
) -> None:
    """Predict every answer in turn, and learn from those of the training part."""
    ability = np.zeros(people)
    difficulty = np.zeros(items)
    person_n = np.zeros(people)
    item_n = np.zeros(items)
    for k in range(person.size):
        i = person[k]
        j = item[k]
        p = 1.0 / (1.0 + np.exp(difficulty[j] - ability[i]))
        out[k] = p
        if learn[k] > 0.0:
            ability[i] += ELO_START / (1.0 + ELO_DECAY * person_n[i]) * (y[k] - p)
            difficulty[j] -= ELO_START / (1.0 + ELO_DECAY * item_n[j]) * (y[k] - p)
            person_n[i] += 1.0
            item_n[j] += 1.0


def elo(train: Responses, test: Responses) -> Array:
    """Elo ratings that move with every answer, in the order of time.

    Held-out answers are predicted when their time comes, and not learned from.

    Parameters
    ----------
    train, test : Responses
        With responses 0 and 1.

    Returns
    -------
    array (n_test,)
        Probability of 1.
    """
    people, items = (
        np.array(sorted({*a.tolist(), *b.tolist()}, key=str), dtype=object)
        for a, b in ((train.people, test.people), (train.items, test.items))
    )
    parts = []
    for part in (train, test):
        where = [
            {label: k for k, label in enumerate(labels.tolist())} for labels in (people, items)
        ]
        person = np.array([where[0][label] for label in part.people.tolist()], dtype=np.int64)[
            part.person
        ]
        item = np.array([where[1][label] for label in part.items.tolist()], dtype=np.int64)[
            part.item
        ]
        parts.append((person, item, part.resp, part.offsets))
    person, item, y, when = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    learn = np.repeat([1.0, 0.0], [len(train), len(test)])
    order = np.argsort(when, kind="stable")
    out = np.empty(when.size)
    _run_elo(person[order], item[order], y[order], learn[order], people.size, items.size, out)
    back = np.empty_like(out)
    back[order] = out
    return back[len(train) :]
