"""Scorers in the database: the run's first, then those of refits; the last one is served."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dynaesti import __version__
from dynaesti.core import FIT_NAME, is_address
from dynaesti.data import Responses
from dynaesti.errors import InputError, StorageError
from dynaesti.loading import load
from dynaesti.results import Curve, Fit, Scorer, State
from dynaesti.serve.database import CHUNK, Database, Transaction
from dynaesti.serve.rows import AnswerRow
from dynaesti.serve.served import ServedScorer

ANSWERS = "answers of the run"  # name of their print among the facts of a database
BESIDE = "answers.db"  # the database of a run, in its folder


def open_run(path: str, connect: bool = False) -> tuple[Scorer, Fit | None]:
    """The scorer of a run, and its fit where that holds people in memory.

    Raises
    ------
    StorageError
        If there is neither a fit nor a scorer.
    """
    found = load(path, connect=connect)
    if isinstance(found, Scorer):
        return found, None
    if isinstance(found, Curve):
        raise StorageError(f"{path}: holds a curve, not a fit of people and items")
    return found.scorer(), found if isinstance(found, Fit) else None


def default_address(run: str) -> str:
    """The address of the database beside a run."""
    if is_address(run):
        raise InputError("db: name a database; a run at an address has none beside it")
    path = Path(run)
    if path.is_dir():
        file = path / BESIDE
    elif path.name == FIT_NAME:
        file = path.with_name(BESIDE)
    else:
        file = path.with_suffix(f".{BESIDE}")
    return f"sqlite:///{file}"


def attach(database: Database, scorer: Scorer, fit: Fit | None) -> int:
    """Let a database serve a run, once; the number of the scorer that is served.

    The answers of the fit's people join the log, but for those that it has already (the same
    person, item, time and response); after an update of the run, the further ones do. A run that
    the database knows with its answers changes nothing: a scorer that a refit made since stays.

    Raises
    ------
    InputError
        If the database's answers count time in another way.
    """
    fingerprint = scorer.fingerprint.hex()
    with database.exclusive() as tx:
        _check_times(tx, scorer, database.label)
        known = tx.rows(
            "SELECT scorer FROM dynaesti_scorers WHERE fingerprint = :fingerprint",
            fingerprint=fingerprint,
        )
        if fit is not None:
            print_of_answers = _print_of(fit.responses)
            if tx.meta(ANSWERS) != print_of_answers:
                _add_fits_answers(tx, ServedScorer(0, scorer), fit, print_of_answers)
                tx.set_meta(ANSWERS, print_of_answers)
        if not known:
            add_scorer(tx, scorer, {})
        _drop_foreign_states(tx)
        return current_number(tx)


def _print_of(responses: Responses) -> str:
    """What tells the answers of a fit from those after an update."""
    found = sha256()
    for part in (responses.person, responses.item, responses.resp, responses.offsets):
        found.update(np.ascontiguousarray(part).tobytes())
    for labels in (responses.people, responses.items):
        found.update("\n".join(map(str, labels.tolist())).encode("utf-8", "surrogateescape"))
    return found.hexdigest()[:16]


def _drop_foreign_states(tx: Transaction) -> None:
    """Let states that another version of the package has made be made anew."""
    form = State(np.zeros(1), bytes(8)).to_bytes()[:4]
    made_by = f"{__version__} {form.hex()}"
    if tx.meta("states") != made_by:
        tx.run("UPDATE dynaesti_people SET scorer = 0, state = NULL")
        tx.set_meta("states", made_by)


def _check_times(tx: Transaction, scorer: Scorer, label: str) -> None:
    kind = "timestamps" if scorer.template.axis.stamps else "numbers"
    had = tx.meta("times")
    if had is None:
        tx.set_meta("times", kind)
    elif had != kind:
        raise InputError(
            f"db: the answers in {label} have {had} as times, and those of the run have {kind}; "
            "name another database"
        )


def add_scorer(tx: Transaction, scorer: Scorer, report: Mapping[str, Any]) -> int:
    """Add a scorer, which is served from now on."""
    number = current_number(tx) + 1
    with TemporaryDirectory() as folder:
        data = scorer.save(Path(folder) / "run.dynscore").read_bytes()
    tx.run(
        "INSERT INTO dynaesti_scorers (scorer, fingerprint, made, bytes, report) "
        "VALUES (:scorer, :fingerprint, :made, :bytes, :report)",
        scorer=number,
        fingerprint=scorer.fingerprint.hex(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        bytes=data,
        report=json.dumps(report),
    )
    return number


def current_number(tx: Transaction) -> int:
    """Number of the scorer that is served; 0 where there is none yet."""
    return int(tx.rows("SELECT COALESCE(MAX(scorer), 0) FROM dynaesti_scorers")[0][0])


def read_scorer_of(tx: Transaction, number: int) -> tuple[ServedScorer, dict[str, Any]]:
    """A scorer of the database, and the report of the refit that made it."""
    (data, report), *_ = tx.rows(
        "SELECT bytes, report FROM dynaesti_scorers WHERE scorer = :number", number=number
    )
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.dynscore"
        file.write_bytes(data)
        return ServedScorer(number, load(file)), json.loads(report)


def _add_fits_answers(
    tx: Transaction, served: ServedScorer, fit: Fit, print_of_answers: str
) -> None:
    """Log the answers of a fit's people."""
    prefix = f" fit {print_of_answers} "  # before senders' keys of the same time
    people = [str(label) for label in fit.responses.people.tolist()]
    rows = list(_rows_of(fit.responses, served, prefix))
    for first in range(0, len(people), CHUNK):
        tx.lock_people(people[first : first + CHUNK])
    kept = {tuple(row) for row in tx.rows("SELECT id, item, time, resp FROM dynaesti_answers")}
    rows = [one for one in rows if (one.id, one.item, one.time, one.resp) not in kept]
    for first in range(0, len(rows), CHUNK):
        tx.add_answers(rows[first : first + CHUNK])
    tx.run(
        "UPDATE dynaesti_people SET scorer = 0, state = NULL, total = "
        "(SELECT COUNT(*) FROM dynaesti_answers AS a WHERE a.id = dynaesti_people.id)"
    )


def _rows_of(responses: Responses, served: ServedScorer, prefix: str) -> Iterator[AnswerRow]:
    """The answers of a fit as the log keeps them."""
    people = [str(label) for label in responses.people.tolist()]
    items = [str(label) for label in responses.items.tolist()]
    times = responses.axis.restore(responses.offsets)
    stored = (times.astype("datetime64[us]").astype("int64") if served.stamps else times).tolist()
    group = None
    if responses.group is not None and responses.groups:
        names = [*responses.groups, None]
        group = [names[k] for k in responses.group.tolist()]  # −1, of no group, is the last
    kept = {
        name: column.values.tolist() if column.levels is None else [
            column.levels[int(k)] for k in column.values
        ]
        for name, column in responses.covariates.items()
    }  # fmt: skip
    weight = None if responses.weight is None else responses.weight.tolist()
    for k, (who, what) in enumerate(
        zip(responses.person.tolist(), responses.item.tolist(), strict=True)
    ):
        columns = {name: values[k] for name, values in kept.items()}
        if group is not None and group[who] is not None:
            columns[str(responses.columns["group"])] = group[who]
        if weight is not None and weight[k] != 1.0:
            columns[str(responses.columns["weight"])] = weight[k]
        yield AnswerRow(
            people[who],
            items[what],
            float(responses.resp[k]),
            float(stored[k]),
            f"{prefix}{k:09d}",
            json.dumps(columns) if columns else None,
        )
