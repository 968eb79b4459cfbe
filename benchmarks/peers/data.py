"""The real logs: where they are, what their columns mean, and three ways of holding answers out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dynaesti.data.responses import Responses
from dynaesti.results.evaluation.splits import split

SPLITS = {"cells": "random", "future": "last", "people": "people"}
SHARE = 0.15
Jobs = dict[
    str, Callable[[], dict[str, Any]]
]  # pieces of work that need not wait for each other, by the name of their result


@dataclass(frozen=True)
class Log:
    """One data set. `options` are facts of the data (which way items run), not tuning."""

    name: str
    file: str
    model: str
    options: dict[str, Any] = field(default_factory=dict)
    item: str = "item"
    skill: str | None = None  # column by which knowledge tracing groups items
    keep: tuple[str, ...] = ()  # items to keep

    @property
    def binary(self) -> bool:
        return self.model == "2PL"

    def read(self, folder: Path) -> Responses:
        """All answers."""
        frame = pd.read_parquet(folder / self.file)
        if self.keep:
            frame = frame[frame["item"].astype(str).isin(self.keep)]
        return Responses.read(
            frame[["person", self.item, "time", "response"]],
            id="person",
            item=self.item,
            time="time",
            resp="response",
        )

    def skills(self, folder: Path) -> dict[Any, Any]:
        """The skill of each item."""
        frame = pd.read_parquet(folder / self.file, columns=list({"item", self.skill}))
        return dict(zip(frame["item"].tolist(), frame[self.skill].tolist(), strict=True))


LOGS = (
    Log("assistments17", "assistments17.parquet", "2PL", skill="skill"),
    Log("algebra05", "algebra05.parquet", "2PL", skill="item"),
    Log("scotus", "scotus_votes.parquet", "2PL"),
    Log("ema_students2020", "ema_students2020.parquet", "GRM", keep=("Q1", "Q2", "Q3", "Q4")),
    Log("taps_econ", "taps_econ.parquet", "GRM"),
    Log("masters_golf", "masters_golf.parquet", "GRM", item="hole"),
    Log("un_votes", "un_votes_1946_1985.parquet", "GRM", {"direction": "free"}),
    Log("senate", "senate_1957_1990.parquet", "2PL", {"direction": "free"}),
)


def held_out(responses: Responses, how: str, seed: int = 0) -> tuple[Responses, Responses]:
    """(training, held-out) answers; held-out ones are to items that the training part has."""
    train, test = split(responses, SHARE, by=SPLITS[how], seed=seed)
    known = np.isin(test.items.astype(object), train.items.astype(object))[test.item]
    return train, test.select_responses(np.flatnonzero(known), drop_unused=True)


def thinned(responses: Responses, most: int, seed: int = 0) -> Responses:
    """Whole people at random, with about so many answers together."""
    if len(responses) <= most:
        return responses
    order = np.random.default_rng(seed).permutation(responses.people.size)
    sizes = np.diff(responses.person_start)[order]
    chosen = order[: max(2, int(np.searchsorted(np.cumsum(sizes), most)))]
    return responses.select_responses(
        np.flatnonzero(np.isin(responses.person, chosen)), drop_unused=True
    )
