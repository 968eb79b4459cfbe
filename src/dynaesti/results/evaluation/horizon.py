"""How far ahead forecasts are good: scores by the time since a person's last known answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.results.evaluation.scores import EDGE, base_rates, imv_ordered
from dynaesti.results.updates import on_fits_axis, read_new_responses

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit


def by_horizon(fit: Fit, data: Any, bins: int = 5) -> Any:
    """Score forecasts of later answers by how far ahead they are.

    Parameters
    ----------
    fit : Fit
    data : frame, mapping, path or Responses
        Answers of people of the fit, later than those that it has.
    bins : int, default 5
        Number of groups of about equal size.

    Returns
    -------
    frame
        Columns from, to (time since the person's last answer in the fit), n, log_loss, and imv, the
        InterModel Vigorish over the items' own rates in the fit's data (for ordered answers
        averaged over thresholds; NaN for amounts).

    Raises
    ------
    InputError
        If nobody of the fit answers later in the data.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=40, items=5, per_person=20, seed=1).table
    >>> train, test = dy.evaluation.split(table, 0.3, by="last")
    >>> found = dy.evaluation.by_horizon(dy.DynAEsti("2PL").fit(train), test, bins=3)
    >>> list(found.columns), len(found)
    (['from', 'to', 'n', 'log_loss', 'imv'], 3)
    """
    if not hasattr(fit, "responses"):
        raise InputError("by_horizon: expected a fit in memory; a shard is one, fit.shard(k)")
    new = read_new_responses(fit, data)
    more = on_fits_axis(fit, new)
    known = new.people[more.person]
    last = np.full(fit.responses.people.size, -np.inf)
    np.maximum.at(last, fit.responses.person, fit.responses.offsets)
    ahead = np.where(known >= 0, more.offsets - last[np.maximum(known, 0)], np.nan)
    with np.errstate(invalid="ignore"):
        later = np.flatnonzero(ahead > 0)
    if not later.size:
        raise InputError("data: nobody of the fit answers later than in the fit's own data")
    found = fit.predictions(new)
    order = later[np.argsort(ahead[later], kind="stable")]
    rates = _item_rates(fit, found.chances.shape[1])[new.items[more.item]]
    rows: dict[str, list[Any]] = {name: [] for name in ("from", "to", "n", "log_loss", "imv")}
    for part in np.array_split(order, min(whole_number(bins, "bins", 1), order.size)):
        rows["from"].append(float(ahead[part[0]]))
        rows["to"].append(float(ahead[part[-1]]))
        rows["n"].append(part.size)
        rows["log_loss"].append(float(-np.log(np.maximum(found.given[part], EDGE)).mean()))
        code = found.category[part]
        has_categories = found.chances.shape[1] > 1 and (code >= 0).all()
        chances = found.chances[part]
        value = imv_ordered(rates[part], chances, code) if has_categories else np.nan
        rows["imv"].append(value)
    return make_frame(rows, fit.frame)


def _item_rates(fit: Fit, n_categories: int) -> Any:
    """How often each category of each item occurs in the fit, (n_items, n_categories).

    One answer is added that is spread as those to all items are.
    """
    found = fit.leave_one_out[0]
    if not n_categories or not (found.category >= 0).all():
        return np.full((fit.responses.items.size, n_categories), np.nan)
    prior = base_rates(found.category, n_categories)[0]
    cell = fit.responses.item * np.int64(n_categories) + found.category
    counts = np.bincount(cell, minlength=fit.responses.items.size * n_categories)
    counts = counts.reshape(-1, n_categories) + prior
    return counts / counts.sum(axis=1, keepdims=True)
