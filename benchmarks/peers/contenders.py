"""Forecasts of held-out answers by everyone.

Simple ones, ours, and the peers' packages. Each gives chances (answers, categories).
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

import dynaesti as dy
from benchmarks.peers.data import Log
from dynaesti.data.responses import Responses
from dynaesti.results.evaluation.baselines import constant, elo, item_and_person

Forecast = Callable[[Responses, Responses], np.ndarray]
SPAN_PART = (
    0.3  # the peers' time scale: this part of the middle person's span (they do not learn it)
)
LEAST = 1e-6  # chance that a forecast may give at least: a peer's bare 0 would cost it everything
ITEM_SD = 1.5


def values_of(train: Responses, test: Responses) -> np.ndarray:
    return np.unique(np.concatenate([train.resp, test.resp]))


def two(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, LEAST, 1 - LEAST)
    return np.stack([1 - p, p], axis=1)


def on_clock_of(train: Responses, test: Responses) -> np.ndarray:
    """Held-out times on the training part's clock."""
    return train.axis.offsets(test.axis.restore(test.offsets))


def simple(kind: Callable[..., np.ndarray]) -> Forecast:
    return lambda train, test: kind(train, test, values_of(train, test))


def ours(**options: Any) -> Forecast:
    """Defaults; the chances of the values that occur."""

    def run(train: Responses, test: Responses) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = dy.DynAEsti(standard_errors=False, **options).fit(train)
            return chances_of(fit, train, test)

    return run


def chances_of(fit: dy.Fit, train: Responses, test: Responses) -> np.ndarray:
    """What a fit gives each value that occurs, (answers, values)."""
    found = fit.predict(test)
    columns = [f"p{value:g}" for value in values_of(train, test)]
    chances = np.stack(
        [
            np.asarray(found[name], float) if name in found else np.full(len(test), np.nan)
            for name in columns
        ],
        axis=1,
    )
    chances = np.maximum(np.nan_to_num(chances), LEAST)  # a value that an item never had before
    out = np.empty_like(chances)
    out[np.argsort(test.row, kind="stable")] = chances / chances.sum(axis=1, keepdims=True)
    return out


def typical_scale(train: Responses) -> float:
    first, last = train.offsets[train.person_start[:-1]], train.offsets[train.person_start[1:] - 1]
    return float(SPAN_PART * np.median((last - first)[last > first]))


def kickscore(
    train: Responses, test: Responses, scale: float | None = None, rounds: int = 30
) -> np.ndarray:
    """Person against item: a level plus Matérn 3/2 for people, a constant for items."""
    import kickscore as ks

    model, scale = ks.BinaryModel(), scale or typical_scale(train)
    for person in train.people.tolist():
        model.add_item(
            f"p{person}",
            kernel=ks.kernel.Constant(var=0.5) + ks.kernel.Matern32(var=0.5, lscale=scale),
        )
    for item in {*train.items.tolist(), *test.items.tolist()}:
        model.add_item(f"i{item}", kernel=ks.kernel.Constant(var=ITEM_SD**2))
    for person in set(test.people.tolist()) - set(train.people.tolist()):
        model.add_item(f"p{person}", kernel=ks.kernel.Constant(var=1.0))
    people, items = train.people.tolist(), train.items.tolist()
    for k in np.argsort(train.offsets, kind="stable"):
        pair = [f"p{people[train.person[k]]}"], [f"i{items[train.item[k]]}"]
        winners, losers = pair if train.resp[k] == 1 else pair[::-1]
        model.observe(winners=winners, losers=losers, t=float(train.offsets[k]))
    model.fit(method="ep", lr=0.3, max_iter=rounds)  # full steps diverge on all of these logs
    people, items = test.people.tolist(), test.items.tolist()
    return two(
        np.array(
            [
                model.probabilities([f"p{people[p]}"], [f"i{items[i]}"], t=float(t))[0]
                for p, i, t in zip(test.person, test.item, on_clock_of(train, test), strict=True)
            ]
        )
    )


def through_time(
    train: Responses,
    test: Responses,
    scale: float | None = None,
    rounds: int = 10,
    ticks: float = 10.0,
) -> np.ndarray:
    """TrueSkillThroughTime.

    Person against item; people drift by gamma a tick of its clock, items do not. Ticks: to a time
    scale.
    """
    import trueskillthroughtime as ttt

    scale = scale or typical_scale(train)
    unit = scale / ticks  # its clock has whole numbers
    gamma, beta, sigma = (
        np.sqrt(0.5 * 2 / (scale / unit)),
        0.85,
        1.0,
    )  # about the variance and the time scale that the others have
    people, items = train.people.tolist(), train.items.tolist()
    order = np.argsort(train.offsets, kind="stable")
    times = np.floor(train.offsets / unit).astype(int) + 1
    games = [[[f"p{people[train.person[k]]}"], [f"i{items[train.item[k]]}"]] for k in order]
    results = [[1, 0] if train.resp[k] == 1 else [0, 1] for k in order]
    priors = {f"i{item}": ttt.Player(ttt.Gaussian(0.0, ITEM_SD), beta, 0.0) for item in items}
    priors |= {f"p{person}": ttt.Player(ttt.Gaussian(0.0, sigma), beta, gamma) for person in people}
    history = ttt.History(
        games, results, [int(times[k]) for k in order], priors, sigma=sigma, beta=beta, gamma=gamma
    )
    history.convergence(epsilon=1e-3, iterations=rounds, verbose=False)
    curves = {
        name: (np.array([t for t, _ in curve]), np.array([[g.mu, g.sigma] for _, g in curve]))
        for name, curve in history.learning_curves().items()
    }

    def at(name: str, t: int, drift: float, fresh: float) -> tuple[float, float]:
        if name not in curves:
            return 0.0, fresh**2
        when, values = curves[name]
        j = max(int(np.searchsorted(when, t, side="right")) - 1, 0)
        return float(values[j, 0]), float(values[j, 1] ** 2 + drift**2 * abs(t - when[j]))

    people, items = test.people.tolist(), test.items.tolist()
    shift = np.floor(on_clock_of(train, test) / unit).astype(int) + 1
    out = []
    for p, i, t in zip(test.person, test.item, shift, strict=True):
        a, b = at(f"p{people[p]}", int(t), gamma, sigma), at(f"i{items[i]}", int(t), 0.0, ITEM_SD)
        out.append(ndtr((a[0] - b[0]) / np.sqrt(2 * beta**2 + a[1] + b[1])))
    return two(np.array(out))


def girth_2pl(train: Responses, test: Responses) -> np.ndarray:
    """Static 2PL by girth's marginal maximum likelihood, abilities by its EAP."""
    import girth

    tagged = girth.tag_missing_data(answer_matrix(train).T, [0, 1])
    found = girth.twopl_mml(tagged)
    theta = girth.ability_eap(tagged, found["Difficulty"], found["Discrimination"])
    return line_forecast(train, test, theta, found["Discrimination"], found["Difficulty"])


def mirt_2pl(train: Responses, test: Responses) -> np.ndarray:
    """Static 2PL by mirt for Python, abilities by its EAP."""
    import mirt

    matrix = answer_matrix(train)
    found = mirt.fit_mirt(matrix, model="2PL", compute_standard_errors=False)
    theta = np.asarray(mirt.fscores(found, matrix).theta).reshape(-1)
    return line_forecast(
        train,
        test,
        theta,
        found.model.parameters["discrimination"],
        found.model.parameters["difficulty"],
    )


def answer_matrix(train: Responses) -> np.ndarray:
    """(people, items), −1 where there is no answer; of repeated ones the last."""
    matrix = np.full((train.people.size, train.items.size), -1)
    matrix[train.person, train.item] = train.resp.astype(int)
    return matrix


def line_forecast(
    train: Responses, test: Responses, theta: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    """Chances under a 2PL with these abilities; new people have ability 0."""
    person = {label: k for k, label in enumerate(train.people.tolist())}
    item = {label: k for k, label in enumerate(train.items.tolist())}
    at = np.array([person.get(label, -1) for label in test.people.tolist()])[test.person]
    ability = np.where(at >= 0, theta[np.maximum(at, 0)], 0.0)
    j = np.array([item[label] for label in test.items.tolist()])[test.item]
    return two(expit(a[j] * (ability - b[j])))


def knowledge_tracing(skills: dict[Any, Any]) -> Forecast:
    """Bayesian knowledge tracing by pyBKT, a model for each skill.

    Held-out answers are hidden from it and predicted in their places.
    """

    def run(train: Responses, test: Responses) -> np.ndarray:
        from pyBKT.models import Model

        def table(part: Responses, known: bool, when: np.ndarray) -> pd.DataFrame:
            names = part.items[part.item].tolist()
            return pd.DataFrame(
                {
                    "user_id": part.people[part.person].astype(str),
                    "skill_name": [str(skills[name]) for name in names],
                    "correct": part.resp.astype(int) if known else -1,
                    "order_id": when,
                    "row": np.arange(len(part)),
                    "held": not known,
                }
            )

        model = Model(seed=0, num_fits=1, parallel=False)
        model.fit(data=table(train, True, train.offsets))
        both = pd.concat(
            [table(train, True, train.offsets), table(test, False, on_clock_of(train, test))]
        )
        both = both.sort_values(["user_id", "order_id"], kind="stable").reset_index(drop=True)
        both["order_id"] = np.arange(len(both))
        found = model.predict(data=both.copy())
        mine = found["held"].to_numpy()
        out = np.full(len(test), np.nan)
        out[found.loc[mine, "row"].to_numpy()] = found.loc[mine, "correct_predictions"].to_numpy()
        return two(np.nan_to_num(out, nan=float(train.resp.mean())))

    return run


def everyone(log: Log, folder: Path, answers: int, most: int) -> dict[str, Forecast]:
    """The contenders of a log; slow packages only where it has at most so many answers."""
    out: dict[str, Forecast] = {
        "constant": simple(constant),
        "item + person": simple(item_and_person),
    }
    if log.binary:
        out["Elo"] = lambda train, test: two(elo(train, test))
    if log.binary and log.skill:
        out["BKT (pyBKT)"] = knowledge_tracing(log.skills(folder))
    if log.binary and answers <= most:
        out |= {
            "girth 2PL": girth_2pl,
            "mirt 2PL": mirt_2pl,
            "kickscore": kickscore,
            "TrueSkillThroughTime": through_time,
        }
    out["ours, static"] = ours(model=log.model, bandwidth=np.inf, **log.options)
    out["ours"] = ours(model=log.model, **log.options)
    return out
