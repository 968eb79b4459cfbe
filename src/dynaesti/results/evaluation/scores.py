"""Proper scores of forecasts: log loss, Brier, AUC, IMV, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import rankdata

from dynaesti.core import Array, Ints, as_vector
from dynaesti.errors import InputError
from dynaesti.results.fit import Fit
from dynaesti.results.plotting.fit_plots import calibration_table
from dynaesti.results.updates import NewResponses, read_new_responses

EDGE = 1e-12
MOST_VALUES = 30  # distinct responses up to which simple forecasts have categories


@dataclass(frozen=True)
class Scores:
    """Scores of predicted chances.

    Lower is better for log loss and Brier, higher for AUC; IMV is against the base rate.
    """

    n: int
    log_loss: float
    brier: float
    auc: float  # NaN when not binary
    imv: float  # NaN when not binary

    def __str__(self) -> str:
        return f"n {self.n:,}, log loss {self.log_loss:.4f}, Brier {self.brier:.4f}, AUC {self.auc:.4f}, IMV {self.imv:.4f}"


def binary_scores(p: Any, y: Any, baseline: Any = None) -> Scores:
    """Scores of chances p of y = 1.

    `baseline` (default: the mean of y) is what the InterModel Vigorish is counted against.
    """
    chance = np.clip(as_vector(p, "p"), EDGE, 1 - EDGE)
    seen = as_vector(y, "y")
    if not seen.size:
        raise InputError("scores: no answers to score")
    if chance.size != seen.size or not np.isin(seen, (0, 1)).all():
        raise InputError("scores: p and y must be of one length, y of 0 and 1")
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


def _log_chance(p: Array, y: Array) -> Array:
    return np.where(y == 1, np.log(np.maximum(p, EDGE)), np.log(np.maximum(1 - p, EDGE)))


def auc(p: Array, y: Array) -> float:
    """Chance that a success was given a higher probability than a failure."""
    good = int(y.sum())
    if good in (0, y.size):
        return float("nan")
    return float((rankdata(p)[y == 1].sum() - good * (good + 1) / 2) / (good * (y.size - good)))


def imv(base: Array, p: Array, y: Array) -> float:
    """InterModel Vigorish: the gain of p over a baseline in terms of a weighted coin (Domingue et
    al. 2021).
    """
    coins = [_coin(float(_log_chance(q, y).mean())) for q in (base, p)]
    return (coins[1] - coins[0]) / coins[0]


def _coin(mean_log: float) -> float:
    """W ≥ ½ with w log w + (1 − w) log(1 − w) = the mean log-likelihood."""
    if mean_log <= np.log(0.5):
        return 0.5
    if mean_log >= -1e-12:
        return 1.0
    return float(
        brentq(lambda w: w * np.log(w) + (1 - w) * np.log1p(-w) - mean_log, 0.5, 1 - 1e-15)
    )


def scores_of(fit: Fit, new: NewResponses) -> Scores:
    """Scores of a fit's predictions of responses read on its terms."""
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
    brier = float("nan")
    if chances.shape[1] and np.isfinite(found.chances[:, 0]).all():
        brier = float(((chances**2).sum(axis=1) - 2 * found.given + 1).mean())
    return Scores(len(more), float(loss.mean()), brier, float("nan"), float("nan"))


def calibration(fit: Fit, data: Any, bins: int = 10) -> Any:
    """Predicted against observed mean responses in bins of equal size, with a standard error.

    A frame.
    """
    new = read_new_responses(fit, data)
    found = fit.predictions(new)
    return calibration_table(found.expected, found.variance, new.responses.resp, bins, fit.frame)


@dataclass(frozen=True)
class Forecast:
    """Chances of held-out answers.

    Of what was answered, of each category (none for amounts), and whose they are.
    """

    given: Array
    chances: Array
    resp: Array
    person: npt.NDArray[Any]

    @property
    def binary(self) -> bool:
        """Whether the answers are 0 and 1."""
        return self.chances.shape[1] == 2 and bool(np.isin(self.resp, (0, 1)).all())


def pooled(parts: Sequence[Forecast]) -> tuple[Scores, float]:
    """Scores over several parts, and the standard error of the log loss with answers of one person
    taken as one draw.
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
    whole = all(p.chances.shape[1] for p in parts)
    return Scores(
        loss.size, float(loss.mean()), brier if whole else float("nan"), float("nan"), float("nan")
    ), se


def person_error(values: Array, person: Ints) -> float:
    """Standard error of a mean over answers, those of one person taken as one draw.

    NaN for a single person.
    """
    sums = np.bincount(person, values - values.mean())
    people = np.unique(person).size
    return (
        float(np.sqrt((sums**2).sum() * people / max(people - 1, 1)) / values.size)
        if people > 1
        else float("nan")
    )
