"""Next answers of new learners: practice, ours with and without it, beside logistic regression.

A fifth of the people is held out; each of their answers is predicted from what they answered before
(their first answers only, where they are very many). Logistic regression has item, skill and the
logs of how often the person answered anything, the skill and the item before, which is what knowledge
tracing builds on; its penalty is chosen on the training people.
"""

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dynaesti as dy
from benchmarks.peers.data import Jobs
from dynaesti.core import person_error
from dynaesti.results.evaluation.scores import EDGE

SHARE = 0.2
MOST_ANSWERS = 300  # of one held-out person
# log: its columns of skill (None: the item is one), and the practice that ours has
SETS = {
    "algebra05": (None, "practice(item)"),
    "assistments17": ("skill", "practice(item) + practice(skill)"),
}
PENALTIES = (0.1, 0.3, 1.0, 3.0)


def parts(log: str, folder: Path, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers of training people and of held-out ones, to items that both have met."""
    table = pd.read_parquet(folder / f"{log}.parquet")
    table = table.rename(columns={"person": "id", "time": "date", "response": "resp"})
    table = table.sort_values(["id", "date"], kind="stable").reset_index(drop=True)
    table["skill"] = (table["skill"] if SETS[log][0] else table["item"]).astype(str)
    table["item"] = table["item"].astype(str)
    people = np.sort(table["id"].unique())
    held = np.random.default_rng(seed).permutation(people)[: round(SHARE * people.size)]
    is_held = table["id"].isin(held)
    train, test = table[~is_held], table[is_held]
    test = test[test.groupby("id").cumcount() < MOST_ANSWERS]
    return train, test[test["item"].isin(train["item"]) & test["skill"].isin(train["skill"])]


def counts(table: pd.DataFrame) -> np.ndarray:
    """Logs of how often the person answered before: anything, this skill, this item."""
    keys = (["id"], ["id", "skill"], ["id", "item"])
    return np.log1p(np.column_stack([table.groupby(key).cumcount() for key in keys]))


def logistic_regression(train: pd.DataFrame, test: pd.DataFrame) -> np.ndarray:
    """Probability of 1; the penalty is chosen by a fifth of the training people."""
    from scipy.sparse import csr_array, hstack
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore").fit(train[["item", "skill"]])

    def features(table: pd.DataFrame) -> Any:
        coded = encoder.transform(table[["item", "skill"]])
        return hstack([coded, csr_array(counts(table))], format="csr")

    def fitted(table: pd.DataFrame, penalty: float) -> Any:
        model = LogisticRegression(C=penalty, max_iter=2000)
        return model.fit(features(table), table["resp"])

    people = train["id"].unique()
    inner = train["id"].isin(people[::5])
    losses = []
    for penalty in PENALTIES:
        p = fitted(train[~inner], penalty).predict_proba(features(train[inner]))[:, 1]
        losses.append(log_loss(p, train[inner]["resp"].to_numpy()).mean())
    best = fitted(train, PENALTIES[int(np.argmin(losses))])
    return np.asarray(best.predict_proba(features(test))[:, 1])


def ours(train: pd.DataFrame, test: pd.DataFrame, effects: str | None) -> np.ndarray:
    """Probability of 1 by our fit of the training people."""
    columns = ["id", "item", "date", "resp", "skill"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = dy.DynAEsti("2PL", effects=effects, standard_errors=False).fit(train[columns])
        return np.asarray(dy.evaluation.next_answers(fit, test[columns])["p1"])


def log_loss(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Loss of each answer."""
    return -np.log(np.maximum(np.where(y == 1, p, 1 - p), EDGE))


def contest(log: str, folder: Path, seed: int) -> dict[str, Any]:
    """All forecasts of one log, with paired differences to ours with practice."""
    if not (folder / f"{log}.parquet").exists():
        return {"skipped": f"{log}.parquet is not in {folder.name}"}
    train, test = parts(log, folder, seed)
    y = test["resp"].to_numpy()
    person = np.unique(test["id"], return_inverse=True)[1]
    found = {
        "ours, with practice": ours(train, test, SETS[log][1]),
        "ours": ours(train, test, None),
        "logistic regression": logistic_regression(train, test),
    }
    first = log_loss(found["ours, with practice"], y)
    rows = {}
    for name, p in found.items():
        loss = log_loss(p, y)
        rows[name] = {
            "log_loss": float(loss.mean()),
            "auc": dy.evaluation.auc(p, y),
            "behind": float((loss - first).mean()),
            "behind_se": person_error(loss - first, person),
        }
    return {
        "date": time.strftime("%Y-%m-%d"),
        "train": len(train),
        "test": len(test),
        "people": int(person.max()) + 1,
        "rows": rows,
    }


def jobs(folder: Path, names: list[str] | None, seeds: int = 3) -> Jobs:
    """Every log and seed of the split."""
    return {
        f"next answers {log} {seed}": partial(contest, log, folder, seed)
        for log in SETS
        if not names or log in names
        for seed in range(seeds)
    }
