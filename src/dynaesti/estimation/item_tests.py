"""Score tests of all items in one pass, for columns that may move an item by itself.

A column, such as the group of a person or the date, may move the answers to one item beside what it
does to all answers: the item is easier for one group (DIF), or becomes easier (drift). What may be
mistaken for that is projected out of its score: the item's own parameters, zero and unit of
ability, the cohort, and the column's effect on all answers. So the test holds although these are
estimated, and where priors keep their gradients from being 0 (Neyman's C(α)). All of it is made of
sums over people, which add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from dynaesti.core import Array, Ints, jit
from dynaesti.estimation.expected_scores import ResponseScores

LEAST_LEFT = 0.05  # share of an effect's information that all else leaves, else it is not tested
LEAST_SIZE = 1e-6  # of a direction of the columns, relative to the largest, else there are no data
RIDGE = 1e-8  # of correlations of what is projected out
CHUNK = 2000  # items whose equations are solved at a time
N_SCALE = 2  # what all items share begins with zero and unit of ability; the cohort follows


@dataclass(frozen=True)
class ScreenedColumns:
    """Columns of responses whose effects on single items are tested."""

    tested: Array  # (n_responses, n_tested)
    main: Array  # (n_responses, n_main) those that may have effects on all answers
    with_slopes: bool  # whether slopes of items may depend on them too
    bins: Ints  # (n_responses,) by which answers to each item are counted
    n_bins: int


@dataclass(frozen=True)
class ItemTestSums:
    """Sums over people of scores and of their products.

    Scores of an item are by the tested effects, then by its parameters. Those that all items share
    are by zero and unit of ability, by the cohort's coefficients, by effects on all answers, and by
    the effects of items that are freed.
    """

    counts: Ints  # (n_items, n_bins) answers
    scores: Array  # (n_items, n_own)
    products: Array  # (n_items, n_own, n_own)
    shared_scores: Array  # (n_shared,)
    shared_products: Array  # (n_shared, n_shared)
    across: Array  # (n_items, n_own, n_shared)

    def __add__(self, other: ItemTestSums) -> ItemTestSums:
        names = self.__dataclass_fields__
        return ItemTestSums(*(getattr(self, name) + getattr(other, name) for name in names))


class _ScoreColumns(NamedTuple):
    """Scores of responses, each a basic score of theirs times a column."""

    columns: Array  # (n_responses, n_columns)
    score: Ints  # (n_columns,) number of the basic score


def item_test_sums(scores: ResponseScores, columns: ScreenedColumns, freed: Ints) -> ItemTestSums:
    """Sums over the people of some responses.

    Products of scores of different responses are those seen; the square of one is the expected one,
    which does not depend on the response itself: with few answers an item, tests by what was seen
    reject too often.

    Parameters
    ----------
    scores : ResponseScores
    columns : ScreenedColumns
    freed : int array (n_freed,)
        Items that may have effects when others are tested.
    """
    own, shared = _score_columns(scores, columns, freed)
    n_items, n_people = scores.n_items, scores.n_people
    pair, number = np.unique(scores.item * np.int64(n_people) + scores.person, return_inverse=True)
    item, person = np.divmod(pair, n_people)
    by_pair = np.zeros((pair.size, own.score.size))
    _add_scores(number, own, scores.scores, by_pair)
    by_person = np.zeros((n_people, shared.score.size))
    _add_scores(scores.person, shared, scores.scores, by_person)
    products = np.zeros((n_items, own.score.size, own.score.size))
    _add_products(item, by_pair, np.arange(pair.size), by_pair, products)
    _add_excess(scores.item, own, own, scores.excess, products)
    across = np.zeros((n_items, own.score.size, shared.score.size))
    _add_products(item, by_pair, person, by_person, across)
    _add_excess(scores.item, own, shared, scores.excess, across)
    shared_products = by_person.T @ by_person
    everyone = np.zeros(scores.item.size, dtype=np.int64)
    _add_excess(everyone, shared, shared, scores.excess, shared_products[None])
    item_scores = np.zeros((n_items, own.score.size))
    _add_scores(scores.item, own, scores.scores, item_scores)
    cell = scores.item * np.int64(columns.n_bins) + columns.bins
    counts = np.bincount(cell, minlength=n_items * columns.n_bins)
    return ItemTestSums(
        counts.reshape(n_items, columns.n_bins),
        item_scores,
        products,
        by_person.sum(axis=0),
        shared_products,
        across,
    )


@jit
def _add_scores(group: Ints, parts: _ScoreColumns, scores: Array, out: Array) -> None:
    """Add the scores of each response to those of its group."""
    for m in range(group.size):
        for p in range(parts.score.size):
            out[group[m], p] += parts.columns[m, p] * scores[m, parts.score[p]]


@jit
def _add_products(group: Ints, left: Array, partner: Ints, right: Array, out: Array) -> None:
    """Add the products of each row on the left with its partner on the right to its group."""
    for k in range(group.size):
        total = out[group[k]]
        for p in range(left.shape[1]):
            for q in range(right.shape[1]):
                total[p, q] += left[k, p] * right[partner[k], q]


@jit
def _add_excess(
    item: Ints, own: _ScoreColumns, other: _ScoreColumns, excess: Array, out: Array
) -> None:
    """Add what products of scores are expected to be beyond those seen, response by response."""
    for m in range(item.size):
        total = out[item[m]]
        for p in range(own.score.size):
            x = own.columns[m, p]
            if x == 0.0:
                continue
            beyond = excess[m, own.score[p]]
            for q in range(other.score.size):
                total[p, q] += x * other.columns[m, q] * beyond[other.score[q]]


def _score_columns(
    scores: ResponseScores, columns: ScreenedColumns, freed: Ints
) -> tuple[_ScoreColumns, _ScoreColumns]:
    """Scores of each item, and those that all items share."""
    ones = np.ones((scores.item.size, 1))
    tested, main = columns.tested, columns.main
    by_ability, by_unit = scores.by_ability, scores.by_unit
    own = [(tested, by_ability)]
    shared = [
        (ones, by_ability),
        (ones, by_unit),
        (scores.cohort_design, by_ability),
        (main, by_ability),
    ]
    if columns.with_slopes:
        own.append((tested, by_unit))
        shared.append((tested, by_unit))
    for item in freed:
        of_item = tested * (scores.item == item)[:, None]
        shared.append((of_item, by_ability))
        if columns.with_slopes:
            shared.append((of_item, by_unit))
    own += [(ones, p) for p in range(scores.n_parameters)]
    return _side_by_side(own), _side_by_side(shared)


def _side_by_side(parts: list[tuple[Array, int]]) -> _ScoreColumns:
    columns = np.concatenate([part for part, _ in parts], axis=1)
    return _ScoreColumns(columns, np.concatenate([np.full(x.shape[1], k) for x, k in parts]))


@dataclass(frozen=True)
class EfficientScores:
    """Scores of each item's effects with all else projected out: normal, of known covariance."""

    scores: Array  # (n_items, n_tested)
    information: Array  # (n_items, n_tested, n_tested) their covariance where there are no effects
    whole: Array  # (n_items, n_tested, n_tested) the covariance before the projection

    def select(self, columns: slice) -> EfficientScores:
        """Those of some of the effects, with no others."""
        return EfficientScores(
            self.scores[:, columns],
            self.information[:, columns, columns],
            self.whole[:, columns, columns],
        )


def efficient_scores(
    sums: ItemTestSums, n_tested: int, cohort_precision: Array, freed: Ints
) -> EfficientScores:
    """Scores of the effects of every item, with all else projected out.

    Parameters
    ----------
    sums : ItemTestSums
        Over everyone.
    n_tested : int
        Number of effects of an item.
    cohort_precision : array (n_coefficients, n_coefficients)
        Prior precision of the cohort's coefficients.
    freed : int array (n_freed,)
        Items that may have effects when others are tested, see `item_test_sums`.
    """
    held = np.zeros(sums.shared_products.shape)
    cohort = slice(N_SCALE, N_SCALE + cohort_precision.shape[0])
    held[cohort, cohort] = cohort_precision
    n_items = sums.scores.shape[0]
    parts = [
        _project(sums, np.arange(a, min(a + CHUNK, n_items)), n_tested, held, freed)
        for a in range(0, n_items, CHUNK)
    ]
    names = EfficientScores.__dataclass_fields__
    return EfficientScores(
        *(np.concatenate([getattr(one, name) for one in parts]) for name in names)
    )


def _project(
    sums: ItemTestSums, items: Ints, n_tested: int, held: Array, freed: Ints
) -> EfficientScores:
    """Efficient scores of some of the items."""
    tested = slice(0, n_tested)
    rest = slice(n_tested, sums.scores.shape[1])
    n_rest = sums.scores.shape[1] - n_tested
    size = n_rest + sums.shared_scores.size
    nuisance = np.zeros((items.size, size, size))
    nuisance[:, :n_rest, :n_rest] = sums.products[items][:, rest, rest]
    nuisance[:, n_rest:, n_rest:] = sums.shared_products + held
    nuisance[:, :n_rest, n_rest:] = sums.across[items][:, rest]
    nuisance[:, n_rest:, :n_rest] = nuisance[:, :n_rest, n_rest:].swapaxes(1, 2)
    mixed = np.concatenate(
        [sums.products[items][:, tested, rest], sums.across[items][:, tested]], axis=2
    )
    first = size - freed.size * n_tested
    for k in np.flatnonzero(np.isin(freed, items)):  # an item's own effects are not projected out
        at = int(freed[k] - items[0])
        own = slice(first + k * n_tested, first + (k + 1) * n_tested)
        mixed[at, :, own] = 0.0
        nuisance[at, own] = 0.0
        nuisance[at, :, own] = 0.0
    # correlations instead of covariances: what is singular, such as a column that the cohort has
    # too, is then told from what is small by a ridge
    unit = np.sqrt(np.maximum(np.einsum("ikk->ik", nuisance), 1e-300))
    scaled = nuisance / (unit[:, :, None] * unit[:, None, :]) + RIDGE * np.eye(size)
    projection = np.linalg.solve(scaled, (mixed / unit[:, None, :]).swapaxes(1, 2))
    projection = projection.swapaxes(1, 2) / unit[:, None, :]
    shared = np.broadcast_to(sums.shared_scores, (items.size, sums.shared_scores.size))
    others = np.concatenate([sums.scores[items][:, rest], shared], axis=1)
    left = sums.scores[items][:, tested] - np.einsum("itk,ik->it", projection, others)
    whole = sums.products[items][:, tested, tested]
    return EfficientScores(left, whole - projection @ mixed.swapaxes(1, 2), whole)


@dataclass(frozen=True)
class JointTests:
    """Effects that each item seems to have of its own, tested together."""

    effects: Array  # (n_items, n_tested) one Newton step from 0; NaN where nothing can be tested
    covariance: Array  # (n_items, n_tested, n_tested)
    df: Ints  # (n_items,) degrees of freedom; 0 where nothing can be tested
    p: Array  # (n_items,) NaN where nothing can be tested


def joint_tests(efficient: EfficientScores) -> JointTests:
    """Chi-squared tests of all effects of an item, along directions of which enough is left."""
    sizes, axes = np.linalg.eigh(efficient.whole)
    has_data = sizes > np.maximum(LEAST_SIZE * sizes[:, -1:], 1e-300)
    whiten = np.where(has_data, sizes, np.inf)[:, :, None] ** -0.5 * axes.swapaxes(1, 2)
    values, vectors = np.linalg.eigh(whiten @ efficient.information @ whiten.swapaxes(1, 2))
    kept = values > LEAST_LEFT
    variance = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    ways = whiten.swapaxes(1, 2) @ vectors  # directions of effects, in columns
    seen = np.einsum("itk,it->ik", ways, efficient.scores)
    df = kept.sum(axis=1)
    effects = np.einsum("itk,ik->it", ways, seen * variance)
    covariance = np.einsum("itk,ik,iuk->itu", ways, variance, ways)
    p = chi2.sf((seen**2 * variance).sum(axis=1), np.maximum(df, 1))
    is_lost = df == 0
    return JointTests(
        np.where(is_lost[:, None], np.nan, effects),
        np.where(is_lost[:, None, None], np.nan, covariance),
        df,
        np.where(is_lost, np.nan, p),
    )


@dataclass(frozen=True)
class SingleTests:
    """Each effect of an item by itself, as if it were the only one."""

    effects: Array  # (n_items, n_tested) NaN where it cannot be tested
    se: Array
    p: Array


def single_tests(efficient: EfficientScores) -> SingleTests:
    """Tests of the effects of an item one by one."""
    information = np.einsum("itt->it", efficient.information)
    left = np.einsum("itt->it", efficient.whole) * LEAST_LEFT
    known = np.where(information > np.maximum(left, 1e-300), information, np.nan)
    z = efficient.scores / np.sqrt(known)
    return SingleTests(efficient.scores / known, known**-0.5, 2 * ndtr(-np.abs(z)))


def combined_p(p: Array) -> Array:
    """P values of tests that depend on each other, (n_items, n_tests), as one for each item.

    It is their mean as Cauchy variables, which holds for any dependence where p is small (Liu and
    Xie 2020); close to the smallest one, and with no more loss than for many independent tests. NaN
    are left out.
    """
    known = np.isfinite(p)
    tangents = np.where(known, 1.0 / np.tan(np.pi * np.clip(p, 1e-15, 1 - 1e-15)), 0.0)
    number = known.sum(axis=1)
    mean = np.where(known, tangents, 0.0).sum(axis=1) / np.maximum(number, 1)
    return np.where(number > 0, 0.5 - np.arctan(mean) / np.pi, np.nan)
