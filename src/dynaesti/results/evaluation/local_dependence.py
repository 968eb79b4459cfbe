"""Local dependence: pairs of items whose answers go together beyond ability (Yen's Q3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, triu
from scipy.special import ndtr

from dynaesti.core import whole_number
from dynaesti.data import Labels, make_frame
from dynaesti.inference import check_level
from dynaesti.results.evaluation.screening.screen import adjusted_p
from dynaesti.results.residuals import residuals_of

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit
    from dynaesti.results.fit_base import FitBase

COLUMNS = ("item", "other", "n", "q3", "excess", "z", "p", "p_adjusted", "flag")
LARGE = 0.2  # correlation beyond which a pair is flagged, if it is clear


class _PairSums(NamedTuple):
    """Sums over people for every pair of items, (n_items, n_items) each."""

    number: csr_array  # people who answered both
    products: csr_array  # of their residuals
    squares: csr_array  # of the first item's residuals, where both were answered

    def plus(self, other: _PairSums) -> _PairSums:
        return _PairSums(*(csr_array(a + b) for a, b in zip(self, other, strict=True)))


def q3(fit: FitBase, *, least: int = 20, most: int = 1000, level: float = 0.05) -> Any:
    """Correlations of residuals between pairs of items (Q3), the clearest first.

    Items that share a text, or of which one gives the other away, go together beyond what ability
    explains. Each answer is predicted without itself; several answers of a person to an item count
    by their mean. Where nothing goes together correlations are a little below 0, since an answer
    that is better than predicted raises the prediction of the others: pairs are judged by what they
    have beyond the average of all pairs.

    Parameters
    ----------
    fit : Fit or ShardedFit
    least : int, default 20
        Smallest number of people who answered both items of a pair.
    most : int, default 1000
        Number of pairs in the table.
    level : float, default 0.05
        Rate of false discoveries among the flagged pairs, which also have ``|excess| > 0.2``.

    Returns
    -------
    frame
        Columns item, other, n (people who answered both), q3, excess (over the average of all
        pairs), z, p, p_adjusted (Benjamini–Hochberg over all pairs), flag.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=60, items=5, per_person=12, seed=1).table
    >>> found = dy.evaluation.q3(dy.DynAEsti("2PL").fit(table))
    >>> list(found.columns), len(found)
    (['item', 'other', 'n', 'q3', 'excess', 'z', 'p', 'p_adjusted', 'flag'], 10)
    """
    least = whole_number(least, "least", 3)
    most = whole_number(most, "most", 1)
    check_level(level)
    sums = None
    for part in fit.parts():
        found = _sums_of(part)
        sums = found if sums is None else sums.plus(found)
    assert sums is not None
    return make_frame(_columns(sums, fit.item_labels, least, most, level), fit.frame)


def _sums_of(fit: Fit) -> _PairSums:
    """Sums over the people of a fit in memory."""
    r = fit.responses
    shape = (r.people.size, r.items.size)
    cells = (r.person, r.item)
    total = csr_array((residuals_of(fit).standardised, cells), shape=shape)
    number = csr_array((np.ones(len(r)), cells), shape=shape)
    total.sum_duplicates()
    number.sum_duplicates()
    mean = total.copy()
    mean.data = total.data / number.data
    is_met = number.copy()
    is_met.data = np.ones(number.nnz)
    squares = mean.copy()
    squares.data = mean.data**2
    return _PairSums(
        csr_array(is_met.T @ is_met), csr_array(mean.T @ mean), csr_array(squares.T @ is_met)
    )


def _columns(
    sums: _PairSums, labels: Labels, least: int, most: int, level: float
) -> dict[str, Any]:
    """Columns of the table, the clearest pairs first."""
    pairs = triu(sums.number, k=1).tocoo()
    enough = pairs.data >= least
    item, other = pairs.row[enough], pairs.col[enough]
    n = pairs.data[enough]
    if not n.size:  # sparse arrays have no empty choices
        return {name: [] for name in COLUMNS}
    both = np.asarray(sums.products[item, other]).ravel()
    own = np.asarray(sums.squares[item, other]).ravel()
    its = np.asarray(sums.squares[other, item]).ravel()
    correlation = both / np.sqrt(np.maximum(own * its, 1e-300))
    excess = correlation - n @ correlation / n.sum()
    # Fisher's transformation: nearly normal for few people too
    z = np.arctanh(np.clip(excess, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(np.maximum(n - 3, 1))
    p = 2 * ndtr(-np.abs(z))
    adjusted = adjusted_p(p)
    order = np.argsort(p, kind="stable")[:most]
    names = labels.tolist()
    return {
        "item": [names[k] for k in item[order]],
        "other": [names[k] for k in other[order]],
        "n": n[order].astype(np.int64),
        "q3": correlation[order],
        "excess": excess[order],
        "z": z[order],
        "p": p[order],
        "p_adjusted": adjusted[order],
        "flag": (adjusted[order] < level) & (np.abs(excess[order]) > LARGE),
    }
