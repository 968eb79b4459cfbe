"""The nightly refit: new items join, the old ones hold the scale, and the scorer is swapped."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict

from dynaesti.errors import InputError
from dynaesti.results import Scorer
from dynaesti.serve.anchored_fit import anchored_fit, calibrated, without_odd_times
from dynaesti.serve.database import Database
from dynaesti.serve.intake import replay
from dynaesti.serve.refit_report import Move, RefitReport, changes_of, drift_of, scale_shift
from dynaesti.serve.rows import AnswerRow, PersonRow
from dynaesti.serve.scorers import add_scorer, attach, current_number, open_run, read_scorer_of
from dynaesti.serve.served import ServedScorer

DRAFT_BITS = 62  # of the number under which a refit keeps what it prepares
PREPARED = 200  # people whose states are made ahead in one transaction


def refit_log(
    database: Database,
    run: str,
    *,
    least: int = 30,
    connect: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> RefitReport:
    """Fit the log anew on the old scale, and let the new scorer be served.

    Parameters of items that the present scorer knows are held, which keeps zero and unit of
    ability; new items, kernels, the cohort and effects are learned from all answers. States are
    made ahead, and everything becomes visible in one transaction. Where anything fails before,
    nothing has changed.

    Parameters
    ----------
    database : Database
    run : str
        The run that is served; a database that does not know it is attached to it.
    least : int
        Answers that a new item needs.
    connect : bool
        Whether shards of the run may be read from other hosts.
    threads : int, optional
    progress : bool
        Whether a line is shown.

    Returns
    -------
    RefitReport

    Raises
    ------
    InputError
        If there are no answers, the fit does not converge, or another refit came first.
    """
    attach(database, *open_run(run, connect))
    served, rows = _read(database)
    if served.scorer.model.options.get("free"):
        raise InputError("refit: items of this fit are split, which a refit cannot hold; fit anew")
    chosen, waiting = calibrated(served, rows, least)
    chosen, odd = without_odd_times(served, chosen)
    if not chosen:
        raise InputError("refit: the log has no answers to fit")
    fit = anchored_fit(served, chosen, threads, progress)
    new = ServedScorer(served.number + 1, fit.scorer())
    shift = scale_shift(served, new)
    drift = drift_of(fit)
    draft = -1 - secrets.randbits(DRAFT_BITS)  # its own: another refit may run beside
    try:
        moves = _prepare(database, served, new, sorted({one.id for one in rows}), draft)
        report = RefitReport(
            new.number,
            len(rows),
            len({one.id for one in rows}),
            len(new.labels),
            sorted(set(new.labels) - set(served.labels)),
            waiting,
            shift,
            *changes_of(moves),
            drift,
            odd,
        )
        _swap(database, new.scorer, new.number, report, draft)
    except BaseException:
        with database.transaction() as tx:
            tx.run("DELETE FROM dynaesti_prepared WHERE scorer = :draft", draft=draft)
        raise
    return report


def _read(database: Database) -> tuple[ServedScorer, list[AnswerRow]]:
    """The scorer that is served, and the whole log."""
    with database.reading() as tx:
        served, _ = read_scorer_of(tx, current_number(tx))
        found = tx.rows(
            "SELECT id, item, resp, time, key, columns, seq FROM dynaesti_answers "
            "ORDER BY id, time, key"
        )
    return served, [AnswerRow(*row) for row in found]


def _prepare(
    database: Database, old: ServedScorer, new: ServedScorer, ids: Sequence[str], draft: int
) -> list[Move]:
    """Make states of the new scorer ahead, as a draft; abilities of each person by both."""
    moves: list[Move] = []
    for first in range(0, len(ids), PREPARED):
        part = ids[first : first + PREPARED]
        with database.reading() as tx:
            before = [PersonRow(one) for one in part]
            after = [PersonRow(one) for one in part]
            replay(tx, old, before)
            replay(tx, new, after)
        with database.transaction() as tx:
            tx.run_many(
                "INSERT INTO dynaesti_prepared (id, scorer, total, state, answers, time, key, "
                "mean, sd, lower, upper) VALUES (:id, :scorer, :total, :state, :answers, :time, "
                ":key, :mean, :sd, :lower, :upper)",
                [asdict(row) | {"scorer": draft} for row in after if row.state is not None],
            )
        moves += [
            (a.id, a.mean, b.mean)
            for a, b in zip(before, after, strict=True)
            if a.mean is not None and b.mean is not None
        ]
    return moves


def _swap(database: Database, scorer: Scorer, number: int, report: RefitReport, draft: int) -> None:
    """Let the new scorer be served, in one transaction."""
    with database.exclusive() as tx:
        if current_number(tx) != number - 1:
            raise InputError("refit: another refit came first; run this one again")
        made = add_scorer(tx, scorer, asdict(report))
        assert made == number
        # those of earlier scorers, and drafts of refits that ended before their swap
        tx.run("DELETE FROM dynaesti_prepared WHERE scorer <> :draft", draft=draft)
        tx.run(
            "UPDATE dynaesti_prepared SET scorer = :number WHERE scorer = :draft",
            number=number,
            draft=draft,
        )
