"""Drift: items that become easier or harder in the course of time, beside the people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from dynaesti.core import whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.estimation import Periods, joint_tests, single_tests
from dynaesti.inference import check_level
from dynaesti.model import smooth_basis
from dynaesti.results.evaluation.screening.columns import DateColumns, quarters
from dynaesti.results.evaluation.screening.screen import Screening, screen_items

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase

LEVEL = 0.95  # of the intervals
N_PERIODS = 60  # in which the answers to an item are counted
HALF = 2  # of the tested columns: the step at the middle of an item's answers


class Drift(NamedTuple):
    """The screening of a fit for drift."""

    by: DateColumns
    found: Screening


def find_drift(fit: FitBase, level: float, purify: bool, executor: Any = None) -> Drift:
    """Test every item for drift."""
    screener = fit.item_screener(executor)
    first, last = screener.ends()
    if not last > first:
        raise InputError("drift: all answers are at one time, so that nothing can change")
    periods = Periods(first, last, N_PERIODS)
    counts = screener.counts(periods)
    basis = smooth_basis(periods.middles, first, last, counts.sum(axis=0).astype(np.float64))
    assert basis is not None  # there are answers in the first and in the last period
    by = DateColumns(basis, periods, quarters(counts))
    n_items = fit.item_labels.size
    return Drift(by, screen_items(screener, fit.priors, by, n_items, level, purify))


def drift(fit: FitBase, *, level: float = 0.05, purify: bool = True, executor: Any = None) -> Any:
    """Test every item for drift: whether it becomes easier or harder beside the others.

    A leaked item becomes easier although people stay the same; one that ages becomes harder. The
    change may be gradual or sudden. All items are tested in one pass, by score tests.

    Parameters
    ----------
    fit : Fit or ShardedFit
    level : float, default 0.05
        Rate of false discoveries among the flagged items.
    purify : bool, default True
        Whether flagged items have effects of their own when the others are tested.
    executor : ThreadExecutor or DaskExecutor, optional
        What works on shards. Default: threads of this process.

    Returns
    -------
    frame
        One row for each item: item, n, first, last (its answers, to a sixtieth of the time), easier
        (how much easier it was on average in the later half of its answers than in the earlier, on
        the scale of abilities), se, lower, upper (95 %), p (of any change), p_adjusted
        (Benjamini–Hochberg over items), flag. Items that are answered at one time only are not
        tested.

    Raises
    ------
    InputError
        If all answers are at one time.

    Warns
    -----
    HealthWarning
        If more than half of the items are flagged.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=80, items=5, per_person=12, seed=1).table
    >>> found = dy.evaluation.drift(dy.DynAEsti("2PL").fit(table))
    >>> list(found.columns)[:5], int(found["flag"].sum())
    (['item', 'n', 'first', 'last', 'easier'], 0)
    """
    check_level(level)
    by, found = find_drift(fit, level, purify, executor)
    tests = single_tests(found.efficient)
    easier = fit.gain * tests.effects[:, HALF]
    se = abs(fit.gain) * tests.se[:, HALF]
    reach = ndtri(0.5 + LEVEL / 2) * se
    middles = by.periods.middles
    is_answered = found.counts > 0
    begin = is_answered.argmax(axis=1)
    end = middles.size - 1 - is_answered[:, ::-1].argmax(axis=1)
    restore = fit.response_template.axis.restore
    columns = {
        "item": fit.item_labels.tolist(),
        "n": found.counts.sum(axis=1),
        "first": restore(middles[begin]),
        "last": restore(middles[end]),
        "easier": easier,
        "se": se,
        "lower": easier - reach,
        "upper": easier + reach,
        "p": found.p,
        "p_adjusted": found.p_adjusted,
        "flag": found.flag,
    }
    return make_frame(columns, fit.frame)


def drift_map(fit: FitBase, *, most: int = 30, level: float = 0.05, executor: Any = None) -> Any:
    """How easy items were over time, against their own average: in quarters of their answers.

    Parameters
    ----------
    fit : Fit or ShardedFit
    most : int, default 30
        Number of items, those with the clearest drift first.
    level : float, default 0.05
        Rate of false discoveries among the flagged items.
    executor : ThreadExecutor or DaskExecutor, optional
        What works on shards. Default: threads of this process.

    Returns
    -------
    frame
        Columns item, time (60 periods), easier (on the scale of abilities; NaN before the first and
        after the last answer), flag.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=80, items=5, per_person=12, seed=1).table
    >>> found = dy.evaluation.drift_map(dy.DynAEsti("2PL").fit(table), most=2)
    >>> list(found.columns), len(found)
    (['item', 'time', 'easier', 'flag'], 120)
    """
    check_level(level)
    by, found = find_drift(fit, level, True, executor)
    steps = fit.gain * joint_tests(found.efficient.select(slice(1, None))).effects
    period = np.arange(by.periods.number)
    values = ((period > by.cuts[:, :, None]) * steps[:, :, None]).sum(axis=1)
    shares = found.counts / np.maximum(found.counts.sum(axis=1, keepdims=True), 1)
    values -= (shares * values).sum(axis=1, keepdims=True)
    before = np.cumsum(found.counts, axis=1) == 0
    after = np.cumsum(found.counts[:, ::-1], axis=1)[:, ::-1] == 0
    is_known = np.isfinite(found.p)
    order = np.argsort(np.where(is_known, found.p, 2.0), kind="stable")
    chosen = order[: min(whole_number(most, "most", 1), int(is_known.sum()))]
    labels = fit.item_labels.tolist()
    times = fit.response_template.axis.restore(by.periods.middles)
    columns = {
        "item": [labels[k] for k in chosen for _ in period],
        "time": np.tile(times, chosen.size),
        "easier": np.where(before | after, np.nan, values)[chosen].ravel(),
        "flag": np.repeat(found.flag[chosen], period.size),
    }
    return make_frame(columns, fit.frame)
