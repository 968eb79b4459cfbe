"""How well items and people fit the model: residuals of responses predicted without themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dynaesti.core import Array, Ints, as_rng, whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.results.evaluation.scores import EDGE
from dynaesti.results.residuals import Residuals, residuals_of

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase


def item_fit(fit: FitBase, by: str | None = None, bins: int = 5) -> Any:
    """Infit and outfit mean squares of each item, or its residuals by ability or time.

    Mean squares are about 1 where the model holds. Each answer is predicted without itself, so
    sparse data do not look better than they are.

    Parameters
    ----------
    fit : Fit
    by : {"ability", "time"}, optional
        Split the residuals of each item.
    bins : int, default 5
        Number of groups of about equal size that `by` splits into.

    Returns
    -------
    frame
        Columns item, infit, outfit, n; with `by` columns item, ability or time (median of the
        group), residual (mean), z (standardised), n.

    Raises
    ------
    InputError
        If `by` is neither "ability" nor "time".

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> fit = dy.DynAEsti("2PL").fit(table)
    >>> list(dy.evaluation.item_fit(fit).columns)
    ['item', 'infit', 'outfit', 'n']
    >>> list(dy.evaluation.item_fit(fit, by="time", bins=2).columns)
    ['item', 'time', 'residual', 'z', 'n']
    """
    labels = fit.item_labels.tolist()
    n_items = len(labels)
    if by is None:
        parts = [_squares(one.responses.item, n_items, residuals_of(one)) for one in fit.parts()]
        sums = np.sum(parts, axis=0)
        return make_frame({"item": labels, **_mean_squares(sums)}, fit.frame)
    if by not in ("ability", "time"):
        raise InputError(f"by: {by!r} is neither 'ability' nor 'time'")
    found = [(one.responses, residuals_of(one)) for one in fit.parts()]
    value = np.concatenate([r.clock_times if by == "time" else z.ability for r, z in found])
    item = np.concatenate([r.item for r, _ in found])
    raw = np.concatenate([z.residual for _, z in found])
    variance = np.concatenate([z.variance for _, z in found])
    bin_of, middle = _bins(value, bins)
    cell = item * middle.size + bin_of
    n = np.bincount(cell, minlength=n_items * middle.size)
    total = np.bincount(cell, raw, n.size)
    spread = np.bincount(cell, variance, n.size)
    keep = np.flatnonzero(n > 0)
    columns = {
        "item": [labels[k // middle.size] for k in keep],
        by: np.tile(middle, n_items)[keep],
        "residual": total[keep] / n[keep],
        "z": total[keep] / np.sqrt(np.maximum(spread[keep], EDGE)),
        "n": n[keep],
    }
    return make_frame(columns, fit.frame)


def person_fit(fit: FitBase, by: str | None = None, bins: int = 4) -> Any:
    """How well each person's answers fit the model, in all or along time.

    Large mean squares, or a very negative lz, mean answers that do not fit the person's curve:
    someone else answered, or gave up. Each answer is predicted without itself.

    Parameters
    ----------
    fit : Fit or ShardedFit
    by : {"time"}, optional
        Split each person's answers into periods of equal numbers of them.
    bins : int, default 4
        Number of periods.

    Returns
    -------
    frame
        Columns id, infit, outfit, n, lz (standardised log likelihood of the answers: about standard
        normal, negative where they are unlikely; NaN for amounts) and p (of as small an lz); with
        `by`, time before infit: the median of the period.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> fit = dy.DynAEsti("2PL").fit(table)
    >>> len(dy.evaluation.person_fit(fit))
    12
    """
    if by not in (None, "time"):
        raise InputError(f"by: {by!r} is not 'time'; leave it out for each person as a whole")
    bins = 1 if by is None else whole_number(bins, "bins", 1)
    columns: dict[str, list[Any]] = {}
    for part in fit.parts():
        r = part.responses
        z = residuals_of(part)
        number = np.diff(r.person_start)[r.person]
        rank = np.arange(len(r)) - r.person_start[r.person]
        cell = r.person * bins + np.minimum(rank * bins // np.maximum(number, 1), bins - 1)
        size = r.people.size * bins
        sums = _squares(cell, size, z)
        keep = np.flatnonzero(sums[0] > 0)
        people = r.people.tolist()
        found: dict[str, Any] = {"id": [people[k // bins] for k in keep]}
        if by is not None:
            found["time"] = part.from_clock(_medians(r.clock_times, cell, size)[keep])
        found |= {name: values[keep] for name, values in _mean_squares(sums).items()}
        lz = _sums(cell, z.surprise, size) / np.sqrt(
            np.maximum(_sums(cell, z.surprise_variance, size), EDGE)
        )
        found |= {"lz": lz[keep], "p": ndtr(lz[keep])}
        for name, values in found.items():
            columns.setdefault(name, []).append(np.asarray(values))
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    whole["id"] = whole["id"].tolist()
    return make_frame(whole, fit.frame)


def quantile_residuals(fit: FitBase, seed: int = 0) -> Any:
    """Randomised quantile (PIT) residuals of all answers, each predicted without itself.

    They are standard normal where the model is right, for categories too: there the place within
    the probability of the answer is drawn.

    Parameters
    ----------
    fit : Fit or ShardedFit
    seed : int, default 0

    Returns
    -------
    frame
        Columns id, item, time, resp, expected, residual; answers by person and time. NaN for custom
        models of amounts.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=40, items=5, per_person=12, seed=1).table
    >>> found = dy.evaluation.quantile_residuals(dy.DynAEsti("2PL").fit(table))
    >>> bool(0.9 < found["residual"].std() < 1.1)
    True
    """
    columns: dict[str, list[Any]] = {}
    rng = as_rng(seed)
    for part in fit.parts():
        r = part.responses
        predicted = part.leave_one_out[0]
        place = rng.random(len(r))
        inside = predicted.below + place * (predicted.upto - predicted.below)
        found = {
            "id": r.people[r.person],
            "item": r.items[r.item],
            "time": part.from_clock(r.clock_times),
            "resp": r.resp,
            "expected": predicted.expected,
            "residual": ndtri(np.clip(inside, EDGE, 1 - EDGE)),
        }
        for name, values in found.items():
            columns.setdefault(name, []).append(values)
    whole: dict[str, Any] = {name: np.concatenate(parts) for name, parts in columns.items()}
    whole |= {name: whole[name].tolist() for name in ("id", "item")}
    return make_frame(whole, fit.frame)


def _squares(group: Ints, size: int, z: Residuals) -> Array:
    """Sums over groups of answers, which add up: number, z², residual², variance: (4, size)."""
    columns = (np.ones(group.size), z.residual**2 / z.variance, z.residual**2, z.variance)
    return np.stack([_sums(group, column, size) for column in columns])


def _sums(group: Ints, values: Array, size: int) -> Array:
    return np.bincount(group, values, size).astype(np.float64)


def _mean_squares(sums: Array) -> dict[str, Array]:
    """Infit, outfit and number of each group."""
    n, squares, raw, variance = sums
    return {
        "infit": raw / np.maximum(variance, EDGE),
        "outfit": squares / np.maximum(n, 1),
        "n": n.astype(np.int64),
    }


def _bins(value: Array, bins: int) -> tuple[Ints, Array]:
    """Bin of each value, in bins of about equal size, and the median of each bin."""
    edges = np.quantile(value, np.linspace(0, 1, whole_number(bins, "bins", 1) + 1)[1:-1])
    # tied values leave bins empty
    used, number = np.unique(np.searchsorted(np.unique(edges), value), return_inverse=True)
    return number, _medians(value, number, used.size)


def _medians(value: Array, group: Ints, size: int) -> Array:
    """Median of the values of each group; NaN of empty ones."""
    order = np.lexsort((value, group))
    number = np.bincount(group, minlength=size)
    end = np.cumsum(number)
    begin = end - number
    middle = (begin + (number - 1) // 2, begin + number // 2)
    sorted_values = np.append(value[order], np.nan)
    last = value.size
    low, high = (sorted_values[np.where(number > 0, at, last)] for at in middle)
    return np.asarray(0.5 * (low + high))
