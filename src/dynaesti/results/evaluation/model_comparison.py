"""Two fits side by side: evidence, information criteria, leave-one-out and held-out scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaesti.core import Array, person_error
from dynaesti.data import make_frame
from dynaesti.results.evaluation.comparison import held_out
from dynaesti.results.fit import Fit
from dynaesti.results.residuals import LEAST


def compare(first: Fit, second: Fit, data: Any = None) -> Any:
    """Two fits side by side.

    AIC and BIC take the log evidence, in which curves are integrated out, for the log likelihood,
    count all parameters (`Fit.n_parameters`), and people as observations. Leave-one-out needs no
    count: each answer is predicted without itself.

    Parameters
    ----------
    first, second : Fit
    data : frame, mapping, path or Responses, optional
        Held-out answers to score both on.

    Returns
    -------
    frame
        Columns fit, log_evidence, parameters, aic, bic, loo (sum of the log probabilities of all
        answers, each predicted without itself), loo_difference (to the first fit; NaN unless both
        are of the same answers) and loo_se (its standard error, over people), log_loss, brier, auc
        (NaN without data).

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=40, items=5, per_person=12, seed=1).table
    >>> train, test = dy.evaluation.split(table, 0.25, by="last")
    >>> static = dy.DynAEsti("2PL", bandwidth=float("inf"))
    >>> rasch = static.with_options(model="1PL")
    >>> found = dy.evaluation.compare(static.fit(train), rasch.fit(train), test)
    >>> found["parameters"].tolist()
    [10.0, 6.0]
    >>> bool(abs(found["loo_difference"][1]) < 5 * found["loo_se"][1])
    True
    """
    rows = [_row(fit, first, data) for fit in (first, second)]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return make_frame({"fit": ["first", "second"], **columns}, first.frame)


def _row(fit: Fit, first: Fit, data: Any) -> dict[str, float]:
    """What is told of one fit."""
    parameters = fit.n_parameters
    deviance = -2 * fit.log_evidence
    logs = _leave_one_out_logs(fit)
    difference, error = np.nan, np.nan
    if _are_of_the_same(fit, first):
        apart = logs - _leave_one_out_logs(first)
        known = np.flatnonzero(np.isfinite(apart))
        difference = float(apart[known].sum())
        error = person_error(apart[known], fit.responses.person[known]) * known.size
    scores = None if data is None else held_out(fit, data)
    return {
        "log_evidence": fit.log_evidence,
        "parameters": float(parameters),
        "aic": deviance + 2 * parameters,
        "bic": deviance + float(np.log(fit.responses.people.size)) * parameters,
        "loo": float(np.nansum(logs)),
        "loo_difference": difference,
        "loo_se": error,
        "log_loss": scores.log_loss if scores else np.nan,
        "brier": scores.brier if scores else np.nan,
        "auc": scores.auc if scores else np.nan,
    }


def _leave_one_out_logs(fit: Fit) -> Array:
    """Log probability of each answer, predicted without itself."""
    given = fit.leave_one_out[0].given
    return np.log(
        np.maximum(given, LEAST), where=np.isfinite(given), out=np.full(given.shape, np.nan)
    )


def _are_of_the_same(one: Fit, other: Fit) -> bool:
    """Whether two fits are of the same answers, in the same order."""
    return (
        one.responses.people.tolist() == other.responses.people.tolist()
        and np.array_equal(one.responses.person, other.responses.person)
        and np.array_equal(one.responses.resp, other.responses.resp)
        and np.array_equal(one.responses.offsets, other.responses.offsets)
    )
