"""Proper scores of forecasts: log loss, Brier, AUC, IMV, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import rankdata

from dynaesti.core import Array, Ints, as_vector, person_error
from dynaesti.errors import InputError
from dynaesti.results.fit import Fit
from dynaesti.results.plotting.fit_plots import calibration_table
from dynaesti.results.updates import NewResponses, read_new_responses

EDGE = 1e-12  # smallest probability or variance: a logarithm or quotient stays finite
MOST_VALUES = 30  # distinct responses up to which simple forecasts have categories


@dataclass(frozen=True)
class Scores:
    """Scores of predicted probabilities.

    Lower is better for log loss and Brier, higher for AUC and IMV.

    Parameters
    ----------
    n : int
        Number of answers.
    log_loss : float
        Mean of −log(probability of the answer given).
    brier : float
        Mean squared distance between probabilities and answers; over all categories where there are
        more than two, NaN for amounts.
    auc : float
        Area under the ROC curve, NaN unless answers are 0 and 1.
    imv : float
        InterModel Vigorish over the base rates; for ordered answers averaged over the thresholds
        between them (`imv_ordered`), NaN for amounts.

    Examples
    --------
    >>> import dynaesti as dy
    >>> print(dy.evaluation.binary_scores([0.2, 0.7, 0.9], [0, 1, 1]))
    n 3, log loss 0.2284, Brier 0.0467, AUC 1.0000, IMV 0.4092
    """

    n: int
    log_loss: float
    brier: float
    auc: float
    imv: float

    def __str__(self) -> str:
        return (
            f"n {self.n:,}, log loss {self.log_loss:.4f}, Brier {self.brier:.4f}, "
            f"AUC {self.auc:.4f}, IMV {self.imv:.4f}"
        )


def binary_scores(p: Any, y: Any, baseline: Any = None) -> Scores:
    """Score probabilities of 0/1 answers.

    Parameters
    ----------
    p : array (n,)
        Predicted probabilities of 1.
    y : array (n,)
        Answers, 0 or 1.
    baseline : array (n,), optional
        Probabilities that the InterModel Vigorish compares with. Default: the mean of `y`.

    Returns
    -------
    Scores

    Raises
    ------
    InputError
        If there are no answers, lengths differ, or an answer is not 0 or 1.

    Examples
    --------
    >>> import dynaesti as dy
    >>> dy.evaluation.binary_scores([0.5, 0.5], [0, 1]).brier
    0.25
    """
    chance, seen = _forecasts_and_answers(p, y)
    chance = np.clip(chance, EDGE, 1 - EDGE)
    base = (
        np.full(seen.size, seen.mean())
        if baseline is None
        else np.clip(as_vector(baseline, "baseline", seen.size), EDGE, 1 - EDGE)
    )
    return Scores(
        seen.size,
        float(-_log_chance(chance, seen).mean()),
        float(((chance - seen) ** 2).mean()),
        auc(chance, seen),
        imv(base, chance, seen),
    )


def _forecasts_and_answers(p: Any, y: Any) -> tuple[Array, Array]:
    """Probabilities of 1, and as many answers of 0 or 1."""
    chance = as_vector(p, "p")
    seen = as_vector(y, "y")
    if not seen.size:
        raise InputError("scores: no answers to score")
    if chance.size != seen.size or not np.isin(seen, (0, 1)).all():
        raise InputError("scores: p and y must be of one length, y of 0 and 1")
    return chance, seen


def _log_chance(p: Array, y: Array) -> Array:
    return np.where(y == 1, np.log(np.maximum(p, EDGE)), np.log(np.maximum(1 - p, EDGE)))


def auc(p: Any, y: Any) -> float:
    """Area under the ROC curve.

    The probability that a success was given a higher probability than a failure; ties count half.

    Parameters
    ----------
    p : array (n,)
        Predicted probabilities of 1.
    y : array (n,)
        Answers, 0 or 1.

    Returns
    -------
    float
        NaN if all answers are alike.
    """
    chance, seen = _forecasts_and_answers(p, y)
    good = int(seen.sum())
    bad = seen.size - good
    if not good or not bad:
        return float("nan")
    rank_sum = rankdata(chance)[seen == 1].sum()
    return float((rank_sum - good * (good + 1) / 2) / (good * bad))


def imv(base: Any, p: Any, y: Any) -> float:
    """InterModel Vigorish: the gain of p over a baseline, by equivalent weighted coins.

    Domingue et al. (2021).

    Parameters
    ----------
    base, p : array (n,)
        Probabilities of 1 of the baseline, and of the forecast.
    y : array (n,)
        Answers, 0 or 1.

    Returns
    -------
    float
        (w − w0) / w0, with w and w0 the coins of the forecast and the baseline.
    """
    coins = [
        _coin(float(_log_chance(*_forecasts_and_answers(chance, y)).mean())) for chance in (base, p)
    ]
    return (coins[1] - coins[0]) / coins[0]


def imv_ordered(base: Any, chances: Any, code: Any) -> float:
    """InterModel Vigorish of ordered answers, averaged over the thresholds between categories.

    At each threshold answers are above it or not, as 0/1 answers are; thresholds count by the
    number of answers on their rarer side.

    Parameters
    ----------
    base, chances : array (n, n_categories)
        Probabilities of the categories, in order, of the baseline and of the forecast; NaN of
        categories that an item does not have.
    code : array (n,)
        Number of the category of each answer.

    Returns
    -------
    float
        NaN if no threshold has answers on both sides.

    Examples
    --------
    >>> import dynaesti as dy
    >>> base = [[0.25, 0.5, 0.25]] * 4
    >>> sure = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]]
    >>> round(dy.evaluation.imv_ordered(base, sure, [0, 1, 1, 2]), 2)
    0.31
    """
    number = as_vector(code, "code")
    shape = np.shape(chances)
    if len(shape) != 2 or np.shape(base) != shape or number.size != shape[0]:
        raise InputError("scores: base and chances need a row for each answer, of one shape")
    if not np.isin(number, np.arange(shape[1])).all():
        raise InputError(f"code: expected numbers of categories from 0 to {shape[1] - 1}")
    plain, better = (np.nan_to_num(np.asarray(p, dtype=np.float64)) for p in (base, chances))
    total = weight = 0.0
    for k in range(1, plain.shape[1]):
        above = (number >= k).astype(np.float64)
        rarer = float(min(above.sum(), (1 - above).sum()))
        if rarer > 0:
            sides = [np.clip(p[:, k:].sum(axis=1), EDGE, 1 - EDGE) for p in (plain, better)]
            total += rarer * imv(sides[0], sides[1], above)
            weight += rarer
    return total / weight if weight else float("nan")


def base_rates(code: Ints, n_categories: int) -> Array:
    """How often each category occurs, the same in every row: (n, n_categories)."""
    share = np.bincount(code, minlength=n_categories) / max(code.size, 1)
    return np.broadcast_to(share, (code.size, n_categories))


def _coin(mean_log: float) -> float:
    """Solve w log w + (1 − w) log(1 − w) = mean log-likelihood for w ≥ ½."""
    if mean_log <= np.log(0.5):
        return 0.5
    if mean_log >= -1e-12:
        return 1.0
    return float(
        brentq(lambda w: w * np.log(w) + (1 - w) * np.log1p(-w) - mean_log, 0.5, 1 - 1e-15)
    )


def scores_of(fit: Fit, new: NewResponses) -> Scores:
    """Score a fit's predictions of responses already read.

    Parameters
    ----------
    fit : Fit
    new : NewResponses
        Responses with the fit's labels.

    Returns
    -------
    Scores
    """
    found = fit.predictions(new)
    more = new.responses
    if (
        found.chances.shape[1] == 2
        and np.isfinite(found.chances).all()
        and np.isin(more.resp, (0, 1)).all()
    ):
        return binary_scores(found.chances[:, 1], more.resp)
    loss = -np.log(np.maximum(found.given, EDGE))
    chances = np.nan_to_num(found.chances)
    brier = ordered = float("nan")
    if chances.shape[1] and np.isfinite(found.chances[:, 0]).all():
        brier = float(((chances**2).sum(axis=1) - 2 * found.given + 1).mean())
        base = base_rates(found.category, chances.shape[1])
        ordered = imv_ordered(base, chances, found.category)
    return Scores(len(more), float(loss.mean()), brier, float("nan"), ordered)


def calibration(fit: Fit, data: Any, bins: int = 10) -> Any:
    """Predicted against observed mean responses, in groups of equal size.

    Parameters
    ----------
    fit : Fit
    data : frame, mapping, path or Responses
        Answers that the fit has not seen.
    bins : int, default 10
        Number of groups, by predicted mean.

    Returns
    -------
    frame
        Columns predicted, observed, se (of the observed mean), n.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> train, test = dy.evaluation.split(table, 0.25, by="last")
    >>> fit = dy.DynAEsti("2PL").fit(train)
    >>> list(dy.evaluation.calibration(fit, test, bins=3).columns)
    ['predicted', 'observed', 'se', 'n']
    """
    new = read_new_responses(fit, data)
    found = fit.predictions(new)
    return calibration_table(found.expected, found.variance, new.responses.resp, bins, fit.frame)


@dataclass(frozen=True)
class Forecast:
    """Predicted probabilities of held-out answers.

    Parameters
    ----------
    given : array (n_answers,)
        Probability or density of the answer given.
    chances : array (n_answers, n_categories)
        Probability of each category; no columns for amounts.
    resp : array (n_answers,)
        The answers.
    person : array (n_answers,)
        Label of the person who gave each.
    category : int array (n_answers,)
        Number of each answer's category, −1 for amounts.
    """

    given: Array
    chances: Array
    resp: Array
    person: npt.NDArray[Any]
    category: Ints

    @property
    def binary(self) -> bool:
        """Whether the answers are 0 and 1."""
        return self.chances.shape[1] == 2 and bool(np.isin(self.resp, (0, 1)).all())


def pooled(parts: Sequence[Forecast]) -> tuple[Scores, float]:
    """Scores over several forecasts together.

    Parameters
    ----------
    parts : sequence of Forecast

    Returns
    -------
    scores : Scores
    se : float
        Standard error of the log loss, with the answers of one person taken as one draw.
    """
    given = np.concatenate([p.given for p in parts])
    resp = np.concatenate([p.resp for p in parts])
    loss = -np.log(np.maximum(given, EDGE))
    person = np.unique(np.concatenate([p.person.astype(str) for p in parts]), return_inverse=True)[
        1
    ]
    se = person_error(loss, person)
    if all(p.binary for p in parts):
        return binary_scores(np.concatenate([p.chances[:, 1] for p in parts]), resp), se
    brier = float(
        np.concatenate(
            [(np.nan_to_num(p.chances) ** 2).sum(axis=1) - 2 * p.given + 1 for p in parts]
        ).mean()
    )
    nothing = float("nan")
    widths = {p.chances.shape[1] for p in parts}
    if 0 in widths:
        return Scores(loss.size, float(loss.mean()), nothing, nothing, nothing), se
    ordered = nothing
    category = np.concatenate([p.category for p in parts])
    if len(widths) == 1 and (category >= 0).all():
        chances = np.concatenate([p.chances for p in parts])
        ordered = imv_ordered(base_rates(category, chances.shape[1]), chances, category)
    return Scores(loss.size, float(loss.mean()), brier, nothing, ordered), se
