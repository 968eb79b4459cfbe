"""Held-out scores of a fit beside those of baselines and of other models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dynaesti.data import Responses, make_frame
from dynaesti.errors import InputError
from dynaesti.results.evaluation.baselines import constant, elo, item_and_person
from dynaesti.results.evaluation.estimator import Estimator
from dynaesti.results.evaluation.scores import MOST_VALUES, Forecast, Scores, pooled, scores_of
from dynaesti.results.fit import Fit
from dynaesti.results.updates import read_new_responses


def held_out(fit: Fit, data: Any) -> Scores:
    """Score a fit's predictions of answers it has not seen.

    Parameters
    ----------
    fit : Fit
    data : frame, mapping, path or Responses
        Held-out answers to items of the fit.

    Returns
    -------
    Scores
        For several categories log loss and a multi-category Brier score.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> train, test = dy.evaluation.split(table, 0.25, by="last")
    >>> fit = dy.DynAEsti("2PL").fit(train)
    >>> scores = dy.evaluation.held_out(fit, test)
    >>> scores.n, 0 < scores.log_loss < 2
    (36, True)
    """
    return scores_of(fit, read_new_responses(fit, data))


def against_baselines(
    estimator: Estimator, pairs: Sequence[tuple[Responses, Responses]], *, static: bool = True
) -> Any:
    """Held-out scores of a model beside simpler forecasts.

    Parameters
    ----------
    estimator : DynAEsti
    pairs : sequence of (Responses, Responses)
        (training, held-out) answers, as from `split` and `rolling`. Scores are pooled over the
        pairs. Answers to items that the training part lacks are left out.
    static : bool, default True
        Whether the estimator with constant abilities is among the forecasts.

    Returns
    -------
    frame
        Columns forecast, log_loss, se (standard error of the log loss over people), brier, auc,
        imv, n, skipped (answers left out). Rows: constant, item + person, Elo (0/1 answers only),
        static IRT, dynamic IRT.

    Raises
    ------
    InputError
        If no held-out answer is to an item of the training part.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> pair = dy.evaluation.split(table, 0.25, by="last")
    >>> frame = dy.evaluation.against_baselines(dy.DynAEsti("2PL"), [pair])
    >>> list(frame["forecast"])
    ['constant', 'item + person', 'Elo', 'static IRT', 'dynamic IRT']
    """
    rows: dict[str, list[Forecast]] = {}
    skipped = 0
    if isinstance(pairs, Responses):
        raise InputError("pairs: expected pairs of training and test data, as `split` gives them")
    for train, test in pairs:
        known = np.isin(test.items.astype(object), train.items.astype(object))[test.item]
        skipped += int((~known).sum())
        if not known.any():
            continue
        for name, forecast in _forecasts(
            estimator, train, test.select_responses(np.flatnonzero(known), drop_unused=True), static
        ):
            rows.setdefault(name, []).append(forecast)
    if not rows:
        raise InputError("no held-out answer is to an item that the training part has")
    table = {name: pooled(parts) for name, parts in rows.items()}
    return make_frame(
        {
            "forecast": list(table),
            "log_loss": [s.log_loss for s, _ in table.values()],
            "se": [se for _, se in table.values()],
            "brier": [s.brier for s, _ in table.values()],
            "auc": [s.auc for s, _ in table.values()],
            "imv": [s.imv for s, _ in table.values()],
            "n": [s.n for s, _ in table.values()],
            "skipped": [skipped] * len(table),
        },
        pairs[0][0].frame,
    )


def _forecasts(
    estimator: Estimator, train: Responses, test: Responses, static: bool
) -> Iterator[tuple[str, Forecast]]:
    """Forecasts of the held-out part by name: baselines, then fits to the training part."""
    people = test.people[test.person]
    values = np.unique(np.concatenate([train.resp, test.resp]))
    code = np.searchsorted(values, test.resp)
    fits = (
        []
        if not static or estimator.kernel.static
        else [
            (
                "static IRT",
                estimator.with_options(bandwidth=np.inf, cohort=None, groups=None, effects=None),
            )
        ]
    )
    fits.append(("static IRT" if estimator.kernel.static else "dynamic IRT", estimator))
    if values.size <= MOST_VALUES:
        simple = {
            "constant": constant(train, test, values),
            "item + person": item_and_person(train, test, values),
        }
        if np.isin(values, (0, 1)).all():
            chance = elo(train, test)
            simple["Elo"] = np.stack([1 - chance, chance], axis=1)
        for name, chances in simple.items():
            given = chances[np.arange(len(test)), code]
            yield name, Forecast(given, chances, test.resp, people, code)
    for name, chosen in fits:
        fit = chosen.fit(train)
        found = fit.predictions(read_new_responses(fit, test))
        yield name, Forecast(found.given, found.chances, test.resp, people, found.category)
