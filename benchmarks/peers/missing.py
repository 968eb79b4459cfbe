"""What the default model misses on 0/1 logs.

How much held-out log loss a few known facts about each answer would still gain.

The fit's forecasts of held-out answers enter a logistic regression as log odds, beside features
that the model does not have: earlier attempts at the same item, how they went, trends of the
cohort, the place within a session, the answer before. The regression is learned from one half of
the people and judged on the other: what a feature gains there is what the model misses of it.
"""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import dynaesti as dy
from benchmarks.peers.data import LOGS, Jobs, Log, held_out
from dynaesti.core import person_error
from dynaesti.data.responses import Responses

EDGE = 1e-6
GAP = 1 / 24  # days without an answer after which a session ends


def history(
    person: np.ndarray, item: np.ndarray, y: np.ndarray, t: np.ndarray, learn: np.ndarray
) -> dict[str, np.ndarray]:
    """Of each answer, from the training answers before it.

    Attempts at the item and wins, the last result, place in the session.
    """
    n = person.size
    out = {name: np.zeros(n) for name in ("attempts", "wins", "last_here", "place", "before")}
    seen: dict[tuple[int, int], list[float]] = {}
    who, since, previous, place = -1, -np.inf, 0.0, 0
    for k in np.lexsort((t, person)):
        if person[k] != who:
            who, since, previous, place = int(person[k]), -np.inf, 0.0, 0
        if t[k] - since > GAP:
            previous, place = 0.0, 0
        past = seen.setdefault((who, int(item[k])), [0.0, 0.0, 0.0])
        out["attempts"][k], out["wins"][k], out["last_here"][k] = past
        out["place"][k], out["before"][k] = np.log1p(place), previous
        since, place = t[k], place + 1
        if learn[k]:
            sign = 2.0 * y[k] - 1.0
            past[0], past[1], past[2], previous = past[0] + 1, past[1] + y[k], sign, sign
    return out


def numbered(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Labels of both parts as numbers."""
    return np.unique(np.concatenate([train, test]).astype(str), return_inverse=True)[1]


def loss(odds: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, np.where(y == 1, -odds, odds))


def regression(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton steps."""
    w = np.zeros(x.shape[1])
    w[0] = 1.0
    for _ in range(30):
        p = expit(x @ w)
        step = np.linalg.solve(
            (x * (p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(w.size), x.T @ (y - p)
        )
        w += step
        if np.abs(step).max() < 1e-8:
            break
    return w


def examined(train: Responses, test: Responses, options: dict[str, Any]) -> dict[str, Any]:
    """Held-out log loss as it is, and what each group of features gains.

    Regressions on one half of the people, judged on the other.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti("2PL", standard_errors=False, **options).fit(train)
        ahead = np.empty(len(test))
        ahead[np.argsort(test.row, kind="stable")] = np.asarray(fit.predict(test)["p1"], float)
    odds, mine = logit(np.clip(ahead, EDGE, 1 - EDGE)), slice(len(train), None)
    person = numbered(train.people[train.person], test.people[test.person])
    item = numbered(train.items[train.item], test.items[test.item])
    t = np.concatenate([train.offsets, train.axis.offsets(test.axis.restore(test.offsets))])
    h = history(
        person, item, np.concatenate([train.resp, test.resp]), t, np.arange(t.size) < len(train)
    )
    first = np.full(person.max() + 1, np.inf)
    np.minimum.at(first, person, t)
    own, calendar = t - first[person], (t - t.min()) / max(np.ptp(t), 1e-12)
    groups = {
        "nothing but a recalibration": [],
        "attempts at the item so far (log)": [np.log1p(h["attempts"])],
        "how they went (log wins, log failures, the last)": [
            np.log1p(h["wins"]),
            np.log1p(h["attempts"] - h["wins"]),
            h["last_here"],
        ],
        "trend of the cohort (calendar, squared)": [calendar, calendar**2],
        "trend since one's first answer (linear, log)": [
            own / max(own.max(), 1e-12),
            np.log1p(own),
        ],
        "place within the session (log)": [h["place"]],
        "the answer before, in the session": [h["before"]],
    }
    y, plain, out = test.resp, loss(odds, test.resp), {}
    for name, columns in groups.items():
        x = np.stack([odds, np.ones(odds.size), *(column[mine] for column in columns)], axis=1)
        gain, weights = np.empty(odds.size), []
        for half in (0, 1):
            judged = test.person % 2 == half
            weights.append(regression(x[~judged], y[~judged]))
            gain[judged] = plain[judged] - loss(x[judged] @ weights[-1], y[judged])
        out[name] = {
            "gain": float(gain.mean()),
            "se": person_error(gain, test.person),
            "weights": np.mean(weights, axis=0).round(4).tolist(),
        }
    return {"log_loss": float(plain.mean()), "gains": out}


def examined_log(log: Log, how: str, folder: Path) -> dict[str, Any]:
    """The same of one split of a log."""
    return examined(*held_out(log.read(folder), how), log.options)


def jobs(folder: Path, names: list[str] | None) -> Jobs:
    """The learning platforms' logs, cells and future."""
    return {
        f"missing {log.name} {how}": partial(examined_log, log, how, folder)
        for log in LOGS
        for how in ("cells", "future")
        if log.skill is not None
        and (not names or log.name in names)
        and (folder / log.file).exists()
    }
