"""What can be asked of the log and the scorer: people, curves, what moved them, what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynaesti.errors import InputError
from dynaesti.results import State
from dynaesti.serve.database import PERSON, Transaction, person_row
from dynaesti.serve.follow import Path, follow, from_start
from dynaesti.serve.intake import replay, state_in
from dynaesti.serve.rows import PersonRow
from dynaesti.serve.served import ServedScorer
from dynaesti.tables import as_frame

LEVEL = 0.7
BINS = 16
CURVE = 60  # points of the population's curve
SORTS = ("id", "mean", "time", "answers")
Facts = dict[str, Any]


# --- people


def people(
    tx: Transaction, served: ServedScorer, search: str, sort: str, limit: int, offset: int
) -> tuple[list[PersonRow], int]:
    """People whose id contains a text, and how many there are."""
    column = sort.removeprefix("-")
    direction = "DESC" if sort.startswith("-") else "ASC"
    pattern = "%" + "".join(f"\\{c}" if c in "%_\\" else c for c in search.lower()) + "%"
    where = "WHERE total > 0"
    if search:
        where += f" AND {tx.lower('id')} LIKE :pattern ESCAPE '\\'"
    given: dict[str, Any] = {"pattern": pattern} if search else {}
    (total,) = tx.rows(f"SELECT COUNT(*) FROM dynaesti_people {where}", **given)[0]
    found = tx.rows(
        f"SELECT {PERSON} FROM dynaesti_people {where} "
        f"ORDER BY {column} IS NULL, {column} {direction}, id LIMIT :most OFFSET :first",
        most=limit,
        first=offset,
        **given,
    )
    return [_shown(person_row(row), served) for row in found], int(total)


def _shown(row: PersonRow, served: ServedScorer) -> PersonRow:
    """A row without the numbers of another scorer's state, which may be on another scale."""
    if row.scorer != served.number:
        row.mean = row.sd = row.lower = row.upper = None
    return row


def last_points(
    tx: Transaction, served: ServedScorer, ids: Sequence[str], n: int
) -> dict[str, list[Facts]]:
    """The last points of several people's curves."""
    logs = tx.logs(ids)
    paths = {one: from_start(served, logs[one], trail=True) for one in ids}
    follow(served, [path for path in paths.values() if path is not None])
    return {one: [] if path is None else points_of(served, path, n) for one, path in paths.items()}


def history(tx: Transaction, served: ServedScorer, id: str) -> Path | None:
    """A person's whole path, with the state after each answer."""
    path = from_start(served, tx.logs([id])[id], trail=True)
    if path is not None:
        follow(served, [path])
    return path


def points_of(served: ServedScorer, path: Path, n: int) -> list[Facts]:
    """What was known right after each of the last answers."""
    states = (path.trail or [])[-n:] if n else []
    if not states:
        return []
    found = served.scorer.ability(states, level=LEVEL)
    columns = [np.asarray(x).tolist() for x in (found.mean, found.sd, found.lower, found.upper)]
    times = [served.shown_time(one.time) for one in path.taken[-n:]]
    names = ("time", "mean", "sd", "lower", "upper")
    return [dict(zip(names, row, strict=True)) for row in zip(times, *columns, strict=True)]


def moves_of(served: ServedScorer, path: Path, n: int) -> list[Facts]:
    """What each of the last answers did to the mean ability, the newest first."""
    trail = path.trail or []
    first = max(len(trail) - n, 0)
    if first == len(trail):
        return []
    start = served.start(path.answers)
    before = [trail[k - 1] if k else start for k in range(first, len(trail))]
    asked = path.taken[first:]
    # before the first answer of all the learner's own clock has not begun
    when = [served.question_time(s, a.time) for s, a in zip(before, asked, strict=True)]
    prior = np.asarray(served.scorer.ability(before, when).mean).tolist()
    after = np.asarray(served.scorer.ability(trail[first:]).mean).tolist()
    out = []
    for k, answer in enumerate(asked):
        given = served.arguments(answer)
        frame = as_frame(
            served.scorer.predict(before[k], [given.item], when[k], **given.columns)
        ).to_dict()
        out.append(
            {
                "time": served.shown_time(answer.time),
                "item": answer.item,
                "resp": answer.resp,
                "expected": float(frame["expected"][0]),
                "before": prior[k],
                "after": after[k],
                "change": after[k] - prior[k],
                "key": answer.key,
            }
        )
    return out[::-1]


def ability_at(served: ServedScorer, state: State, at: float | None) -> Facts:
    """Ability at a time of the log, or at the last answer."""
    when = None if at is None else served.question_time(state, at)
    found = served.scorer.ability(state, when, level=LEVEL)
    return {"mean": found.mean, "sd": found.sd, "lower": found.lower, "upper": found.upper}


def state_of(
    tx: Transaction, served: ServedScorer, row: PersonRow | None, columns: Mapping[str, Any]
) -> State:
    """The state of a person; of someone of whom nothing is known where there are no answers.

    A state of another scorer, as one is while a refit's is swapped in, is made anew from the log.
    """
    found = None if row is None else state_in(row, served)
    if found is None and row is not None and row.total:
        replay(tx, served, [row])
        found = state_in(row, served)
    if found is not None:
        return found
    return served.scorer.start(**{k: v for k, v in columns.items() if k in served.personal})


def asked_items(tx: Transaction, id: str) -> list[str]:
    """Items that a person has answered."""
    found = tx.rows("SELECT DISTINCT item FROM dynaesti_answers WHERE id = :id", id=id)
    return [row[0] for row in found]


def next_items(
    served: ServedScorer, state: State, at: float | None, exclude: Sequence[str], **options: Any
) -> list[Facts]:
    """What to ask next, best first."""
    when = None if at is None else served.question_time(state, at)
    barred = [served.labels[item] for item in exclude]
    frame = as_frame(served.scorer.next_item(state, when, exclude=barred, **options)).to_dict()
    return [
        {"item": str(item), "information": float(information), "expected": float(expected)}
        for item, information, expected in zip(
            frame["item"], frame["information"], frame["expected"], strict=True
        )
    ]


def predictions(
    served: ServedScorer, state: State, items: Sequence[str], at: float, columns: Mapping[str, Any]
) -> list[Facts]:
    """Chances of answers to items."""
    unknown = [item for item in items if not served.knows(item)]
    if unknown:
        raise InputError(f"items: the scorer knows no item {unknown[0]!r}")
    given = {k: v for k, v in columns.items() if k in served.of_answers}
    when = served.question_time(state, at)
    labels = [served.labels[item] for item in items]
    frame = as_frame(served.scorer.predict(state, labels, when, **given)).to_dict()
    names = [name for name in frame if name[:1] == "p" and name[1:].isdigit()]
    out = []
    for k, item in enumerate(items):
        chances = [float(frame[name][k]) for name in names]
        known = [p for p in chances if p == p]  # items have different numbers of categories
        expected = float(frame["expected"][k])
        out.append({"item": item, "expected": expected, "probabilities": known or None})
    return out


# --- everyone


def cohort(tx: Transaction, served: ServedScorer, first: float | None) -> Facts:
    """The class now: how many, how able, and what to expect of a newcomer since the first time."""
    total, answers, last = tx.rows(
        "SELECT COUNT(*), COALESCE(SUM(total), 0), MAX(time) FROM dynaesti_people WHERE total > 0"
    )[0]
    means = np.array(
        tx.rows(
            "SELECT mean FROM dynaesti_people WHERE scorer = :number AND mean IS NOT NULL",
            number=served.number,
        ),
        dtype=np.float64,
    ).ravel()
    facts: Facts = {"people": int(total), "answers": int(answers), "time": served.shown_time(last)}
    facts |= dict.fromkeys(("mean", "sd", "lower", "upper")) | {"bins": []}
    if means.size:
        lower, upper = np.quantile(means, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2])
        facts |= {"mean": means.mean(), "sd": means.std(), "lower": lower, "upper": upper}
        counts, edges = np.histogram(means, bins=BINS)
        facts["bins"] = [
            {"lower": float(a), "upper": float(b), "people": int(n)}
            for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    return facts | {"curve": _population(served, first, last)}


def _population(served: ServedScorer, first: float | None, last: float | None) -> list[Facts]:
    """Ability of someone of whom nothing is known, from the first answer of all to the last."""
    if (
        first is None
        or last is None
        or served.scorer.personal_columns
        or served.scorer.template.clock == "person"
    ):
        return []
    stored = np.linspace(first, last, CURVE if last > first else 1).tolist()
    stored = [float(int(time)) for time in stored] if served.stamps else stored
    state = served.scorer.start()
    times = [served.given_time(time) for time in stored]
    found = served.scorer.ability([state] * len(times), np.array(times), level=LEVEL)
    columns = [np.asarray(x).tolist() for x in (found.mean, found.sd, found.lower, found.upper)]
    names = ("time", "mean", "sd", "lower", "upper")
    shown = [served.shown_time(time) for time in stored]
    return [dict(zip(names, row, strict=True)) for row in zip(shown, *columns, strict=True)]


def items(
    served: ServedScorer,
    counts: Mapping[str, int],
    report: Mapping[str, Any],
    search: str,
    limit: int,
    offset: int,
) -> Facts:
    """Items with their parameters, what a refit said of them, and items not yet calibrated."""
    labels = served.scorer.item_labels.tolist()
    wanted = [k for k, label in enumerate(labels) if search.lower() in str(label).lower()]
    parameters = item_parameters(served)
    drift = report.get("drift", {})
    rows = []
    for k in wanted[offset : offset + limit]:
        name = str(labels[k])
        model, values = parameters[k]
        rows.append(
            {
                "item": name,
                "model": model,
                "parameters": values,
                "answers": counts.get(name, 0),
                "drift": drift.get(name),
            }
        )
    queued = [
        {"item": item, "answers": n}
        for item, n in sorted(counts.items())
        if not served.knows(item) and search.lower() in item.lower()
    ]
    return {"items": rows, "total": len(wanted), "queued": queued}


def item_parameters(served: ServedScorer) -> list[tuple[str, dict[str, float]]]:
    """Model and reported parameters of each item."""
    scorer = served.scorer
    gain, shift = scorer.scale.gain, scorer.scale.shift
    out: list[tuple[str, dict[str, float]]] = [("", {})] * scorer.item_labels.size
    for block in scorer.model.bank.blocks:
        found = block.reported(block.u, gain, shift)
        for k, item in enumerate(block.items.tolist()):
            values = {name: float(column[k]) for name, column in found.items()}
            known = {name: value for name, value in values.items() if np.isfinite(value)}
            out[item] = (block.model.label, known)
    return out
