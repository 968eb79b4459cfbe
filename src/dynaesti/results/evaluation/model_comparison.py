"""Two fits side by side: evidence, information criteria, leave-one-out and held-out scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaesti.core import Array, person_error
from dynaesti.data import make_frame
from dynaesti.errors import HealthWarning, warn_user
from dynaesti.results.evaluation.comparison import held_out
from dynaesti.results.evaluation.screening.screen import MemoryScreener
from dynaesti.results.fit import Fit
from dynaesti.results.residuals import LEAST

LEAST_LEFT = 0.1  # of the information on an item, without one answer


def compare(first: Fit, second: Fit, data: Any = None) -> Any:
    """Two fits side by side.

    AIC and BIC take the log evidence, in which curves are integrated out, for the log likelihood,
    count all parameters (`Fit.n_parameters`), and people as observations. Leave-one-out counts
    nothing: each answer is predicted by a curve without it and by items without it (by their
    infinitesimal jackknife).

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

    Warns
    -----
    HealthWarning
        If the fits are of different answers, so that only held-out scores can be compared.

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
    same = _are_of_the_same(first, second)
    if not same:
        warn_user(
            "the fits are of different answers: evidence, AIC, BIC and leave-one-out of one say "
            "nothing beside the other's",
            HealthWarning,
        )
    known = leave_one_out_logs(first)
    rows = [
        _row(first, known, known, data),
        _row(second, leave_one_out_logs(second), known if same else None, data),
    ]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    return make_frame({"fit": ["first", "second"], **columns}, first.frame)


def _row(fit: Fit, logs: Array, others: Array | None, data: Any) -> dict[str, float]:
    """What is told of one fit, with the leave-one-out logs of it and of the first one's answers."""
    parameters = fit.n_parameters
    deviance = -2 * fit.log_evidence
    difference, error = np.nan, np.nan
    if others is not None:
        apart = logs - others
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


def leave_one_out_logs(fit: Fit) -> Array:
    """Log probability of each answer, by a curve and by items that are predicted without it."""
    given = fit.leave_one_out[0].given
    logs = np.log(
        np.maximum(given, LEAST), where=np.isfinite(given), out=np.full(given.shape, np.nan)
    )
    return np.asarray(logs - _gain_of_items(fit))


def _gain_of_items(fit: Fit) -> Array:
    """By how much items are nearer to each answer for having been learned from it too.

    Without answer i its item's parameters move by −H⁻¹s, s the score of the answer and H the
    information that the others hold, the prior's included; its log probability falls by sᵀH⁻¹s.
    Summed up, that is about the number of parameters. What all items share, one slope and where it
    is free the zero of ability, moves in the same way.
    """
    found = MemoryScreener(fit).scores
    item_scores = found.scores[:, : found.n_parameters]
    outer = np.einsum("rp,rq->rpq", item_scores, item_scores)
    information = np.zeros((found.n_items, found.n_parameters, found.n_parameters))
    np.add.at(information, found.item, outer)
    is_free = np.zeros((found.n_items, found.n_parameters), dtype=bool)
    for block in fit.bank.blocks:
        width = block.u.shape[1]
        is_free[block.items, :width] = block.free
        held = block.item_prior.value_gradient_curvature(block.u, block.item_prior.slope)[2]
        information[block.items, :width, :width] += held
    both = is_free[:, :, None] & is_free[:, None, :]
    # of answers that are all alike nothing may be known without priors
    information = np.where(both, information, 0.0) + LEAST * np.eye(found.n_parameters)
    information += np.eye(found.n_parameters) * ~is_free[:, :, None]
    gain = _share_of_own(information[found.item], np.where(is_free[found.item], item_scores, 0.0))
    scale = fit.bank.ability_scale
    shared = found.scores[:, found.n_parameters :] * [scale.free_location, scale.free_scale]
    free = np.flatnonzero([scale.free_location, scale.free_scale])
    if free.size:
        gram = shared[:, free].T @ shared[:, free] + LEAST * np.eye(free.size)
        whole = np.broadcast_to(gram, (shared.shape[0], free.size, free.size))
        gain = gain + _share_of_own(whole, shared[:, free])
    return np.asarray(gain)


def _share_of_own(information: Array, scores: Array) -> Array:
    """What sᵀH⁻¹s is without the answer's own part sᵀs of the information: q / (1 − q)."""
    q = np.einsum("rp,rp->r", scores, np.linalg.solve(information, scores[:, :, None])[:, :, 0])
    return np.asarray(q / np.maximum(1.0 - q, LEAST_LEFT))


def _are_of_the_same(one: Fit, other: Fit) -> bool:
    """Whether two fits are of the same answers, in the same order."""
    return (
        one.responses.people.tolist() == other.responses.people.tolist()
        and np.array_equal(one.responses.person, other.responses.person)
        and np.array_equal(one.responses.resp, other.responses.resp)
        and np.array_equal(one.responses.offsets, other.responses.offsets)
    )
