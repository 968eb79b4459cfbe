"""The scorer that is served: what it needs of an answer, and times as senders write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dynaesti.data import parse_iso
from dynaesti.errors import InputError
from dynaesti.results import Scorer, State
from dynaesti.serve.rows import AnswerRow

LIKE = 0.7  # how alike a misspelt name is, from 0 to 1
KNOWN_PAIRS = 200_000  # pairs of item and response that were checked already


class Arguments(NamedTuple):
    """What a scorer takes of an answer."""

    time: Any
    item: Any
    resp: float
    weight: float
    columns: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class ServedScorer:
    """A scorer with its number in the database.

    Parameters
    ----------
    number : int
        Later scorers have higher ones.
    scorer : Scorer
    """

    number: int
    scorer: Scorer

    # --- names

    @cached_property
    def labels(self) -> dict[str, Any]:
        """The fit's labels of items by how they are written."""
        found = {str(label): label for label in self.scorer.item_labels.tolist()}
        free = self.scorer.model.options.get("free") or {}
        return found | {str(item): item for item in free}

    def knows(self, item: str) -> bool:
        """Whether an item can be scored."""
        return item in self.labels

    @cached_property
    def personal(self) -> frozenset[str]:
        """Columns that belong to a person: those that `Scorer.start` takes."""
        group = self.scorer.template.columns.get("group")
        named = {str(group)} if self.scorer.template.groups else set()
        return frozenset(self.scorer.personal_columns) | named

    @cached_property
    def of_answers(self) -> frozenset[str]:
        """Columns that belong to an answer: those that `Scorer.add` takes."""
        return frozenset(self.scorer.column_kinds) - frozenset(self.scorer.personal_columns)

    @property
    def weight(self) -> str | None:
        """The column that says how often an answer counts."""
        return self.scorer.template.columns.get("weight")

    @cached_property
    def _reads_columns(self) -> bool:
        """Whether anything beside the response can matter."""
        return bool(self.of_answers or self.personal or self.weight)

    @cached_property
    def _known_pairs(self) -> set[tuple[str, float]]:
        return set()

    # --- times

    @property
    def stamps(self) -> bool:
        """Whether times are timestamps, not numbers."""
        return self.scorer.template.axis.stamps

    def stored_time(self, time: float | str) -> float:
        """A sender's time as the log keeps it.

        Raises
        ------
        InputError
            If it is of the wrong kind.
        """
        axis = self.scorer.template.axis
        if isinstance(time, str) and not self.stamps:
            try:
                time = float(time)
            except ValueError:
                raise InputError("time: expected a number, as in the fit's data") from None
        if isinstance(time, str) != self.stamps:
            kind = "an ISO date such as 2024-05-31T12:30:00" if self.stamps else "a number"
            raise InputError(f"time: expected {kind}, as in the fit's data")
        if not isinstance(time, str):
            if not abs(time) < 1e100:
                raise InputError("time: expected a finite number")
            return float(time)
        axis.offsets(parse_iso([_normal(time)], "time"), "time")  # refuses what it cannot count
        found = parse_iso([_normal(time)], "time")[0].astype(np.int64)
        if _has_zone(time) and not axis.zoned:
            raise InputError("time: the fit's times lack a zone, and this one has one")
        return float(found)

    def given_time(self, stored: float) -> Any:
        """A time of the log as the scorer takes it."""
        return np.datetime64(int(stored), "us") if self.stamps else stored

    def shown_time(self, stored: float | None) -> float | str | None:
        """A time of the log as senders write it."""
        if stored is None or not self.stamps:
            return stored
        text = str(np.datetime64(int(stored), "us")).removesuffix(".000000")
        return f"{text}Z" if self.scorer.template.axis.zoned else text

    def question_time(self, state: State, stored: float) -> Any:
        """A time of the log as questions about a state take it."""
        if self.scorer.template.clock != "person":
            return self.given_time(stored)
        axis = self.scorer.template.axis
        at = np.array([self.given_time(stored)])
        origin = state.origin if state.origin == state.origin else float(axis.offsets(at)[0])
        return float(axis.offsets(at)[0]) - origin

    # --- answers

    def warm(self) -> None:
        """Compile and load what answers and questions need, before the first one comes."""
        if not (self.personal or self.of_answers):
            block = self.scorer.model.bank.blocks[0]
            value = float(block.values[0].ravel()[0]) if block.values.size else 0.0
            item = self.scorer.item_labels[block.items[0]]
            with suppress(InputError):
                state = self.scorer.start()
                state = self.scorer.add(state, self.given_time(self.stored_origin), item, value)
                self.scorer.ability([state, state])
                self.scorer.ability(state)
                self.scorer.next_item(state)

    @property
    def stored_origin(self) -> float:
        """The zero of the fit's times, as the log keeps it."""
        axis = self.scorer.template.axis
        return float(axis.origin_ns // 1000) if axis.stamps else axis.origin

    def personal_of(self, answers: Iterable[AnswerRow]) -> dict[str, Any]:
        """What answers, in their order, tell of the person: of each column what was told first."""
        found: dict[str, Any] = {}
        for one in answers if self.personal else ():
            for name, value in columns_of(one).items():
                if name in self.personal and value not in (None, ""):
                    found.setdefault(name, value)
        return found

    def start(self, answers: Iterable[AnswerRow]) -> State:
        """The state before someone's first answer; all answers tell what belongs to the person."""
        return self.scorer.start(**self.personal_of(answers))

    def tells_more(self, state: State, answers: Iterable[AnswerRow], are_late: bool) -> bool:
        """Whether answers tell of the person what a state does not know, or has otherwise.

        What comes after answers that told already changes nothing: the first one decides.
        """
        if not are_late and state.group >= 0:
            return False
        given = self.personal_of(answers)
        if not given:
            return False
        try:
            told = self.scorer.start(**given)
        except InputError:  # not all that a start needs
            return True
        return (told.group, told.personal) != (state.group, state.personal)

    def arguments(self, answer: AnswerRow) -> Arguments:
        """What `Scorer.add_each` takes of an answer."""
        columns: Mapping[str, Any] = {}
        weight = 1.0
        if self._reads_columns and answer.columns:
            given = columns_of(answer)
            columns = {k: v for k, v in given.items() if k in self.of_answers}
            weight = given.get(self.weight or "", 1.0)
        item = self.labels[answer.item]
        return Arguments(self.given_time(answer.time), item, answer.resp, weight, columns)

    def check(self, answer: AnswerRow) -> None:
        """Refuse an answer that the scorer could not take in, before it is kept.

        Raises
        ------
        InputError
            If the response is not one of the item's own, or a column is absent or unknown.
        """
        self._refuse_misspelt_columns(answer)
        pair = (answer.item, answer.resp)
        if not self._reads_columns and pair in self._known_pairs:
            return
        found = self.arguments(answer)
        self.scorer.add(
            self.start([answer]), found.time, found.item, found.resp, found.weight, **found.columns
        )
        if not self._reads_columns and len(self._known_pairs) < KNOWN_PAIRS:
            self._known_pairs.add(pair)

    def _refuse_misspelt_columns(self, answer: AnswerRow) -> None:
        """Raise if a column is nearly called as one that the fit needs; others are just kept."""
        if not answer.columns:
            return
        known = {*self.personal, *self.of_answers, *([self.weight] if self.weight else [])}
        for name in columns_of(answer):
            meant = [] if name in known else get_close_matches(name, known, n=1, cutoff=LIKE)
            if meant:
                raise InputError(
                    f"columns: the fit knows no {name!r}; did you mean {meant[0]!r}? It takes "
                    f"{', '.join(sorted(known))}"
                )


def columns_of(answer: AnswerRow | None) -> Mapping[str, Any]:
    """What else came with an answer."""
    if answer is None or not answer.columns:
        return {}
    found: dict[str, Any] = json.loads(answer.columns)
    return found


def _normal(time: str) -> str:
    """A timestamp as `parse_iso` takes it: with a T, and +00:00 for Z."""
    text = time.strip()
    return f"{text[:-1]}+00:00" if text[-1:] in ("Z", "z") else text


def _has_zone(time: str) -> bool:
    text = _normal(time)
    return "T" in text.replace(" ", "T") and any(sign in text[11:] for sign in "+-")
