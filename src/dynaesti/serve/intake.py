"""Answers into the log, and states after them, within one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from dynaesti.errors import DynaestiError
from dynaesti.results import State
from dynaesti.serve.database import Transaction
from dynaesti.serve.follow import Path, follow, from_start, write_abilities, write_state
from dynaesti.serve.rows import AnswerRow, PersonRow
from dynaesti.serve.served import ServedScorer
from dynaesti.serve.snapshots import Snapshot, Snapshots


@dataclass(frozen=True)
class Change:
    """What the new answers of one person did."""

    person: PersonRow
    before: float | None  # mean ability
    last: AnswerRow  # of the new answers, in their order


@dataclass(frozen=True)
class Intake:
    """What a group of answers did."""

    new: set[tuple[str, str]]
    changes: list[Change]
    replayed: int  # people whose answers came late
    rebuilt: int  # people whose state was lost, or of another scorer


def take_in(
    tx: Transaction,
    served: ServedScorer,
    answers: Sequence[AnswerRow],
    snapshots: Snapshots,
) -> Intake:
    """Log answers and bring the states of their people up to date.

    An answer whose key the person has used already is not new. Answers that come late, before
    others that a state has taken in, are put in their place: the person's log is replayed, from the
    latest snapshot that lies before them.
    """
    people = tx.lock_people(sorted({one.id for one in answers}))
    new = tx.add_answers(answers)
    added: dict[str, list[AnswerRow]] = {}
    seen: set[tuple[str, str]] = set()
    for one in answers:
        name = (one.id, one.key)
        if name in new and name not in seen:
            seen.add(name)
            added.setdefault(one.id, []).append(one)
    touched = [people[one] for one in added]
    before = {row.id: row.mean for row in touched}
    for row in touched:
        added[row.id].sort(key=lambda one: one.order)
        row.total += len(added[row.id])
    states = {row.id: state_in(row, served) for row in touched}
    late = {
        row.id for row in touched if row.order is not None and added[row.id][0].order < row.order
    }
    stale = {
        who
        for who, state in states.items()
        if state is None or served.tells_more(state, added[who], who in late)
    }
    states = {who: None if who in stale else state for who, state in states.items()}
    late -= stale
    replay(tx, served, [people[one] for one in sorted(stale)])
    replay(tx, served, [people[one] for one in sorted(late)], snapshots)
    ahead = dict(_known(states, late))
    for who, state in ahead.items():
        place = people[who].order
        # only where the state holds all answers before these: none lies in the log beyond its place
        if place is not None and state.answers == people[who].total - len(added[who]):
            snapshots.note(who, Snapshot(served.number, place, state))
    paths = [Path(state, added[who]) for who, state in ahead.items()]
    _finish(served, [people[who] for who in ahead], paths)
    tx.write_people(touched)
    changes = [Change(row, before[row.id], added[row.id][-1]) for row in touched]
    return Intake(new, changes, len(late), len(stale))


def replay(
    tx: Transaction,
    served: ServedScorer,
    rows: Sequence[PersonRow],
    snapshots: Snapshots | None = None,
) -> None:
    """Make the states in people's rows anew, from all their answers."""
    if not rows:
        return
    logs = tx.logs([row.id for row in rows])
    begun = []
    paths = []
    for row in rows:
        log = logs[row.id]
        row.time = row.key = row.state = None
        row.mean = row.sd = row.lower = row.upper = None
        row.scorer, row.answers, row.total = served.number, 0, len(log)
        known = None if snapshots is None else snapshots.find(row.id, served.number, log)
        if known is not None:
            row.time, row.key = known.order
            path: Path | None = Path(known.state, log[known.total :])
        else:
            path = from_start(served, log)
        if path is not None:
            begun.append(row)
            paths.append(path)
    _finish(served, begun, paths)


def refresh(tx: Transaction, served: ServedScorer, ids: Iterable[str]) -> int:
    """Bring states of another scorer, or lost ones, up to date; how many."""
    people = tx.lock_people(sorted(ids))
    stale = [row for row in people.values() if state_in(row, served) is None]
    ahead = tx.prepared([row.id for row in stale], served.number)
    ready = [
        found
        for row in stale
        if (found := ahead.get(row.id)) is not None
        and found.total == row.total
        and state_in(found, served) is not None
    ]
    done = {row.id for row in ready}
    rest = [row for row in stale if row.id not in done]
    replay(tx, served, rest)
    tx.write_people([*ready, *rest])
    return len(stale)


def _finish(served: ServedScorer, rows: Sequence[PersonRow], paths: Sequence[Path]) -> None:
    """Follow paths to their ends, and write those into the rows."""
    follow(served, paths)
    for row, path in zip(rows, paths, strict=True):
        write_state(row, served, path)
    write_abilities(rows, [path.state for path in paths], served)


def state_in(row: PersonRow, served: ServedScorer) -> State | None:
    """The state in a row; None where it is lost, damaged, or of another scorer."""
    if row.scorer != served.number or row.state is None:
        return None
    try:
        return served.scorer.state(row.state)
    except DynaestiError:
        return None


def _known(states: Mapping[str, State | None], late: Set[str]) -> Iterator[tuple[str, State]]:
    """States that only need the new answers."""
    for one, state in states.items():
        if state is not None and one not in late:
            yield one, state
