"""States after answers: many people at once, each answer one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dynaesti.errors import InputError
from dynaesti.results import State
from dynaesti.serve.rows import AnswerRow, PersonRow
from dynaesti.serve.served import ServedScorer


@dataclass(slots=True)
class Path:
    """A person's way from a state over further answers, in their order.

    Parameters
    ----------
    state : State
        Before the answers; in the end after them.
    answers : sequence of AnswerRow
    taken : list of AnswerRow
        Answers that the scorer has taken in; others are of items it does not know, or are refused.
    trail : list of State, optional
        With it, the state after each answer taken in.
    """

    state: State
    answers: Sequence[AnswerRow]
    taken: list[AnswerRow] = field(default_factory=list)
    trail: list[State] | None = None


def follow(served: ServedScorer, paths: Sequence[Path]) -> None:
    """Take in all answers of all paths; the k-th answers of everyone are one call."""
    for path in paths:
        path.answers = [one for one in path.answers if served.knows(one.item)]
    longest = max((len(path.answers) for path in paths), default=0)
    for k in range(longest):
        step = [path for path in paths if k < len(path.answers)]
        try:
            _take_in(served, step, k)
        except InputError:  # one of them is refused: by themselves the others are not
            for path in step:
                try:
                    _take_in(served, [path], k)
                except InputError:
                    continue


def _take_in(served: ServedScorer, paths: Sequence[Path], k: int) -> None:
    """Take in the k-th answer of each path."""
    given = [served.arguments(path.answers[k]) for path in paths]
    found = served.scorer.add_each(
        [path.state for path in paths],
        [one.time for one in given],
        [one.item for one in given],
        [one.resp for one in given],
        [one.weight for one in given],
        [one.columns for one in given],
    )
    for path, state in zip(paths, found, strict=True):
        path.state = state
        path.taken.append(path.answers[k])
        if path.trail is not None:
            path.trail.append(state)


def from_start(
    served: ServedScorer, answers: Sequence[AnswerRow], trail: bool = False
) -> Path | None:
    """The path over a whole history, which begins with what its answers tell of the person.

    None where the scorer needs more of a person than they tell.
    """
    known = [one for one in answers if served.knows(one.item)]
    try:
        start = served.start(known)
    except InputError:
        return None
    return Path(start, known, trail=[] if trail else None)


def write_state(row: PersonRow, served: ServedScorer, path: Path) -> None:
    """Write where a path ended into a person's row, but for the ability."""
    row.scorer = served.number
    row.state = path.state.to_bytes()
    row.answers = path.state.answers
    if path.taken:
        row.time, row.key = path.taken[-1].order


def write_abilities(
    rows: Sequence[PersonRow], states: Sequence[State], served: ServedScorer
) -> None:
    """Write abilities at the last answers into rows."""
    if not rows:
        return
    found = served.scorer.ability(list(states))
    columns = [np.asarray(x).tolist() for x in (found.mean, found.sd, found.lower, found.upper)]
    for row, mean, sd, lower, upper in zip(rows, *columns, strict=True):
        row.mean, row.sd, row.lower, row.upper = mean, sd, lower, upper
