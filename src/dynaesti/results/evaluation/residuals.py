"""How well items and people fit the model: standardised residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints, whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.results.evaluation.scores import EDGE
from dynaesti.results.fit import Fit


def item_fit(fit: Fit, by: str | None = None, bins: int = 5) -> Any:
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
    r = fit.responses
    z = _standardised(fit)
    labels = r.items.tolist()
    if by is None:
        outfit, infit = _mean_squares(r.item, r.items.size, z)
        return make_frame(
            {
                "item": labels,
                "infit": infit,
                "outfit": outfit,
                "n": np.bincount(r.item, minlength=r.items.size),
            },
            fit.frame,
        )
    if by not in ("ability", "time"):
        raise InputError(f"by: {by!r} is neither 'ability' nor 'time'")
    value = r.clock_times if by == "time" else z.ability
    edges = np.unique(
        np.quantile(value, np.linspace(0, 1, whole_number(bins, "bins", 1) + 1)[1:-1])
    )
    used, bin_of = np.unique(
        np.searchsorted(edges, value), return_inverse=True
    )  # tied values leave bins empty
    bins = used.size
    cell = r.item * bins + bin_of
    n = np.bincount(cell, minlength=r.items.size * bins)
    raw = np.bincount(cell, z.residual, r.items.size * bins)
    var = np.bincount(cell, z.variance, r.items.size * bins)
    middle = [float(np.median(value[bin_of == b])) for b in range(bins)]
    keep = n > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        return make_frame(
            {
                "item": [labels[k // bins] for k in np.flatnonzero(keep)],
                by: np.tile(middle, r.items.size)[keep],
                "residual": (raw / n)[keep],
                "z": (raw / np.sqrt(var))[keep],
                "n": n[keep],
            },
            fit.frame,
        )


def person_fit(fit: Fit) -> Any:
    """Infit and outfit mean squares of each person.

    Large values mean answers that do not fit the person's curve. Each answer is predicted without
    itself.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    frame
        Columns id, infit, outfit, n.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> fit = dy.DynAEsti("2PL").fit(table)
    >>> len(dy.evaluation.person_fit(fit))
    12
    """
    r = fit.responses
    outfit, infit = _mean_squares(r.person, r.people.size, _standardised(fit))
    return make_frame(
        {
            "id": r.people.tolist(),
            "infit": infit,
            "outfit": outfit,
            "n": np.bincount(r.person, minlength=r.people.size),
        },
        fit.frame,
    )


@dataclass(frozen=True)
class Residuals:
    """Each answer against its prediction without itself.

    Parameters
    ----------
    residual : array (n_answers,)
        Answer minus predicted mean.
    variance : array (n_answers,)
        Predicted variance.
    ability : array (n_answers,)
        Mean ability that it was predicted from.
    """

    residual: Array
    variance: Array
    ability: Array


def _standardised(fit: Fit) -> Residuals:
    """Residuals of all answers of a fit."""
    r = fit.responses
    found, ability = fit.leave_one_out
    return Residuals(r.resp - found.expected, np.maximum(found.variance, EDGE), ability)


def _mean_squares(group: Ints, size: int, z: Residuals) -> tuple[Array, Array]:
    """Outfit and infit mean squares of groups of answers, (size,) each."""
    n = np.maximum(np.bincount(group, minlength=size), 1)
    outfit = np.bincount(group, z.residual**2 / z.variance, size) / n
    infit = np.bincount(group, z.residual**2, size) / np.maximum(
        np.bincount(group, z.variance, size), EDGE
    )
    return outfit, infit
