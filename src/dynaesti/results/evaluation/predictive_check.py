"""Posterior predictive checks: answers that the model draws beside those that were given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, Ints, as_rng, whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.results.abilities import seen_beside_ability
from dynaesti.results.drawn_responses import draw_responses
from dynaesti.results.plausible import plausible_curves

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit
    from dynaesti.results.fit_base import FitBase

MOST_PEOPLE = 500  # who are drawn again, at random
LEVEL = 0.9  # of the intervals of drawn statistics


def predictive_check(fit: FitBase, draws: int = 50, seed: int = 0) -> Any:
    """Compare scores with those of answers drawn from the fit, for the same people and items.

    Abilities are drawn as whole curves from each person's posterior, then answers to the same items
    at the same times. A p near 0 or 1 says that the model does not draw what was seen.

    Parameters
    ----------
    fit : Fit or ShardedFit
    draws : int, default 50
        Number of times that all answers are drawn, at least 10.
    seed : int, default 0

    Returns
    -------
    frame
        Columns statistic, observed, mean, lower, upper (90 % of the draws), p (share of the draws
        that are above what was observed, ties half). Statistics are those of people's mean scores
        (mean, sd, lowest and highest tenth), of their first and last third of answers, of runs
        (how often an answer equals the one before it), and of the items' mean scores (sd).

    Raises
    ------
    InputError
        If a model of the fit cannot draw answers.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=30, items=5, per_person=12, seed=1).table
    >>> found = dy.evaluation.predictive_check(dy.DynAEsti("2PL").fit(table), draws=20)
    >>> list(found.columns)
    ['statistic', 'observed', 'mean', 'lower', 'upper', 'p']
    """
    draws = whole_number(draws, "draws", 10)
    rng = as_rng(seed)
    n_people = sum(part.responses.people.size for part in fit.parts())
    share = min(1.0, MOST_PEOPLE / max(n_people, 1))
    seen: list[Array] = []
    drawn: list[Array] = []
    person: list[Ints] = []
    item: list[Ints] = []
    for part in fit.parts():
        chosen = np.flatnonzero(rng.random(part.responses.people.size) < share)
        if not chosen.size:
            continue
        rows, made = _drawn_responses(part, chosen, draws, rng)
        seen.append(part.responses.resp[rows])
        drawn.append(made)
        before = person[-1].max() + 1 if person else 0
        person.append(before + np.unique(part.responses.person[rows], return_inverse=True)[1])
        item.append(part.responses.item[rows])
    if not seen:
        raise InputError("predictive_check: nobody was drawn; use another seed")
    who, what = np.concatenate(person), np.concatenate(item)
    observed, replicates = np.concatenate(seen), np.concatenate(drawn, axis=1)
    columns: dict[str, list[Any]] = {}
    for name, statistic in _statistics(who, what).items():
        values = np.array([statistic(one) for one in replicates])
        truth = statistic(observed)
        low, high = np.quantile(values, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
        above = float((values > truth).mean() + 0.5 * (values == truth).mean())
        above = above if np.isfinite(truth) else np.nan
        row = (name, truth, float(values.mean()), float(low), float(high), above)
        for key, value in zip(_NAMES, row, strict=True):
            columns.setdefault(key, []).append(value)
    return make_frame(columns, fit.frame)


_NAMES = ("statistic", "observed", "mean", "lower", "upper", "p")


def _drawn_responses(
    fit: Fit, people: Ints, draws: int, rng: np.random.Generator
) -> tuple[Ints, Array]:
    """Rows of some people's responses, and responses drawn in their place: (draws, n_rows)."""
    r = fit.responses
    rows = np.concatenate([np.arange(r.person_start[p], r.person_start[p + 1]) for p in people])
    abilities = np.empty((draws, rows.size))
    labels = r.people.tolist()
    done = 0
    for person in people:
        mine = np.arange(r.person_start[person], r.person_start[person + 1])
        times, at = np.unique(r.clock_times[mine], return_inverse=True)
        seed = int(rng.integers(2**31))
        found = plausible_curves(fit, labels[person], fit.from_clock(times), draws, seed)
        beside = fit.gain * seen_beside_ability(fit, np.array([person]), fit.priors.cohort)
        abilities[:, done : done + mine.size] = found[:, at] + beside
        done += mine.size
    z = (abilities - fit.shift) / fit.gain
    item = r.item[rows]
    return rows, np.array([draw_responses(fit.bank, item, one, rng) for one in z])


def _statistics(person: Ints, item: Ints) -> dict[str, Callable[[Array], float]]:
    """Statistics of responses, by name."""
    number = np.bincount(person)
    rank = np.arange(person.size) - (np.cumsum(number) - number)[person]
    early = rank < number[person] / 3
    late = rank >= 2 * number[person] / 3
    follows = np.flatnonzero(np.diff(person) == 0) + 1

    def mean_of(some: Any) -> float:
        return float(some.mean()) if some.size else float("nan")

    def means(resp: Array, group: Ints) -> Array:
        total = np.bincount(group)
        return np.asarray((np.bincount(group, resp) / np.maximum(total, 1))[total > 0])

    return {
        "mean score": lambda resp: float(means(resp, person).mean()),
        "sd of people's scores": lambda resp: float(means(resp, person).std()),
        "lowest tenth of people": lambda resp: float(np.quantile(means(resp, person), 0.1)),
        "highest tenth of people": lambda resp: float(np.quantile(means(resp, person), 0.9)),
        "first third of answers": lambda resp: mean_of(resp[early]),
        "last third of answers": lambda resp: mean_of(resp[late]),
        "equal to the one before": lambda resp: mean_of(resp[follows] == resp[follows - 1]),
        "sd of items' scores": lambda resp: float(means(resp, item).std()),
    }
