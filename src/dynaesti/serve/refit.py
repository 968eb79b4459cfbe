"""The nightly refit: new items join, the old ones hold the scale, and the scorer is swapped."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dynaesti.ability_estimator import DynAEsti
from dynaesti.data import UNSTATED
from dynaesti.errors import ConvergenceWarning, HealthWarning, InputError
from dynaesti.results import Fit, Scorer, evaluation
from dynaesti.serve.database import Database, Transaction
from dynaesti.serve.intake import replay
from dynaesti.serve.questions import item_parameters
from dynaesti.serve.rows import AnswerRow, PersonRow
from dynaesti.serve.scorers import add_scorer, attach, current_number, open_run, read_scorer_of
from dynaesti.serve.served import ServedScorer, columns_of
from dynaesti.tables import as_frame

NOBODY = " nobody"  # whose answers of weight 0 keep items and categories that nobody has met
HELD = 1e-6  # largest change of a held parameter, relative
MOST_MOVED = 10  # people in the report
PREPARED = 200  # people whose states are made ahead in one transaction


@dataclass(frozen=True)
class RefitReport:
    """What a refit did.

    Parameters
    ----------
    scorer : int
        Number of the new scorer.
    answers, people : int
        In the log, when it was read.
    items : int
    new_items : list of str
        Items that were calibrated for the first time.
    waiting : list of str
        Items that still have too few answers, or only one kind of response.
    scale_shift : float
        Largest change of a parameter of the old items, which hold the scale.
    mean_change, sd_change : float
        Of the people's abilities, old and new scorer side by side on the same answers.
    moved : list of dict
        The people whose ability changed most: id, before, after, change.
    drift : dict of dict
        What the test for drift found of each item: flagged, shift, se, sentence.
    """

    scorer: int
    answers: int
    people: int
    items: int
    new_items: list[str]
    waiting: list[str]
    scale_shift: float
    mean_change: float
    sd_change: float
    moved: list[dict[str, Any]]
    drift: dict[str, dict[str, Any]]

    @property
    def flagged(self) -> list[str]:
        """Items whose drift is an alarm."""
        return [item for item, found in self.drift.items() if found["flagged"]]


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
    with database.reading() as tx:
        served, _ = read_scorer_of(tx, current_number(tx))
        rows = [
            AnswerRow(*row)
            for row in tx.rows(
                "SELECT id, item, resp, time, key, columns, seq FROM dynaesti_answers "
                "ORDER BY id, time, key"
            )
        ]
    if served.scorer.model.options.get("free"):
        raise InputError("refit: items of this fit are split, which a refit cannot hold; fit anew")
    chosen, waiting = _calibrated(served, rows, least)
    if not chosen:
        raise InputError("refit: the log has no answers to fit")
    fit = _fit(served, chosen, threads, progress)
    new = ServedScorer(served.number + 1, fit.scorer())
    shift = _scale_shift(served, new)
    drift = _drift(fit)
    old = set(served.labels)
    try:
        moves = _prepare(database, served, new, sorted({one.id for one in rows}))
        report = RefitReport(
            new.number,
            len(rows),
            len({one.id for one in rows}),
            len(new.labels),
            sorted(set(new.labels) - old),
            waiting,
            shift,
            *_changes(moves),
            drift,
        )
        _swap(database, new.scorer, new.number, report)
    except BaseException:
        with database.transaction() as tx:
            if current_number(tx) < new.number:
                _forget(tx, new.number)
        raise
    return report


# --- the fit


def _calibrated(
    served: ServedScorer, rows: Sequence[AnswerRow], least: int
) -> tuple[list[AnswerRow], list[str]]:
    """Answers to known items, and to new ones with enough of them; and new items that wait."""
    counts = Counter(one.item for one in rows if not served.knows(one.item))
    kinds: dict[str, set[float]] = {}
    for one in rows:
        if one.item in counts:
            kinds.setdefault(one.item, set()).add(one.resp)
    waiting = sorted(item for item, n in counts.items() if n < least or len(kinds[item]) < 2)
    return [one for one in rows if one.item not in waiting], waiting


def _fit(
    served: ServedScorer, rows: Sequence[AnswerRow], threads: int | None, progress: bool
) -> Fit:
    """The answers fitted with the options of the run, the parameters of its items held."""
    scorer = served.scorer
    kept = scorer.model.options
    template = scorer.template
    models = {
        str(label): model
        for label, model in zip(
            scorer.item_labels.tolist(), scorer.model.coding.models, strict=True
        )
    }
    usual = Counter(model.name for model in models.values()).most_common(1)[0][0]
    like = next(model for model in models.values() if model.name == usual)
    models |= {one.item: like for one in rows if one.item not in models}
    static = all(kernel.static for kernel in scorer.model.kernels)
    estimator = DynAEsti(
        models,
        scale=kept["scale"],
        direction=kept["direction"],
        orient=None if kept.get("orient") is None else {"item": next(iter(models))},
        bandwidth=np.inf if static else None,
        priors=kept["priors"],
        clock=template.clock,
        cohort=kept.get("cohort"),
        groups=kept.get("groups"),
        effects=kept.get("effects"),
        unit=None if served.stamps or template.unit == UNSTATED else template.unit,
        rare=kept["rare"],
        tolerance=kept["tolerance"],
        threads=threads,
        fixed=_held(served),
        progress=progress,
    )
    names: dict[str, Any] = {
        role: template.columns.get(role) or role for role in ("id", "item", "resp", "time")
    } | {"weight": served.weight or " weight"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)  # the report of the run tells of the data
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            found: Any = estimator.fit(_table(served, rows, names), **names)
        except ConvergenceWarning as error:
            raise InputError(f"refit: {error}; the present scorer stays") from None
    assert isinstance(found, Fit)
    return found


def _held(served: ServedScorer) -> dict[str, dict[str, float]]:
    """Parameters of the items that hold the scale."""
    out = {}
    for label, (_, values) in zip(
        served.scorer.item_labels.tolist(), item_parameters(served), strict=True
    ):
        # an intercept beside a difficulty says the same once more
        twice = "b" in values
        out[str(label)] = {k: v for k, v in values.items() if not (twice and k == "intercept")}
    return out


def _table(
    served: ServedScorer, rows: Sequence[AnswerRow], names: Mapping[str, str]
) -> dict[str, list[Any]]:
    """The log as a table of the columns that the fit reads."""
    extra = sorted(served.personal | served.of_answers)
    rows = [*rows, *_of_nobody(served, rows)]
    table: dict[str, list[Any]] = {
        names["id"]: [one.id for one in rows],
        names["item"]: [one.item for one in rows],
        names["resp"]: [one.resp for one in rows],
        names["time"]: [served.shown_time(one.time) for one in rows],
    }
    first = _first_columns(served, rows)
    given = [columns_of(one) for one in rows]
    weights = [found.get(names["weight"], 1.0) for found in given]
    table[names["weight"]] = [
        0.0 if one.id == NOBODY else weight for one, weight in zip(rows, weights, strict=True)
    ]
    for name in extra:
        own = name in served.personal
        table[name] = [
            (first[one.id] if own else found).get(name)
            for one, found in zip(rows, given, strict=True)
        ]
    return table


def _first_columns(served: ServedScorer, rows: Sequence[AnswerRow]) -> dict[str, Mapping[str, Any]]:
    """What the first answer of each person tells of the person, as states have it."""
    first: dict[str, AnswerRow] = {}
    for one in rows:
        if one.id not in first or one.order < first[one.id].order:
            first[one.id] = one
    return {who: columns_of(one) if served.personal else {} for who, one in first.items()}


def _of_nobody(served: ServedScorer, rows: Sequence[AnswerRow]) -> list[AnswerRow]:
    """Answers that count for nothing, so that no item or category of the scorer is lost."""
    met = {(one.item, one.resp) for one in rows}
    items = {item for item, _ in met}
    first = rows[0]
    out = []
    labels = served.scorer.item_labels.tolist()
    for block in served.scorer.model.bank.blocks:
        for k, item in enumerate(block.items.tolist()):
            name = str(labels[item])
            values = block.values[k].tolist() if block.model.categorical else [0.0]
            if not block.model.categorical and name in items:
                continue
            missing = [float(value) for value in values if (name, float(value)) not in met]
            out += [
                replace(first, id=NOBODY, item=name, resp=value, key=f"{name} {value}")
                for value in missing
            ]
    return out


# --- what moved


def _scale_shift(old: ServedScorer, new: ServedScorer) -> float:
    """Largest change of a parameter that was held.

    Raises
    ------
    InputError
        If one was not held after all.
    """
    before, after = _held(old), _held(new)
    largest = 0.0
    for item, values in before.items():
        for name, value in values.items():
            change = abs(after[item][name] - value)
            if change > HELD * (1 + abs(value)):
                raise InputError(f"refit: {name} of item {item!r} was not held; nothing is changed")
            largest = max(largest, change)
    return largest


def _drift(fit: Fit) -> dict[str, dict[str, Any]]:
    """The test for drift of all items; nothing where it cannot be made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)
        try:
            frame = as_frame(evaluation.drift(fit)).to_dict()
        except InputError:  # all answers are of one time
            return {}
    out = {}
    columns = (frame["item"], frame["easier"], frame["se"], frame["p_adjusted"], frame["flag"])
    for item, easier, se, p, flag in zip(*columns, strict=True):
        tested = bool(np.isfinite(p))
        word = "easier" if easier > 0 else "harder"
        sentence = (
            f"it became {word} by {abs(easier):.2f} (se {se:.2f}, adjusted p {p:.2g})"
            if tested
            else "too few answers, or of one time only"
        )
        out[str(item)] = {
            "flagged": bool(flag),
            "shift": float(easier) if tested else None,
            "se": float(se) if tested else None,
            "sentence": sentence,
        }
    return out


Move = tuple[str, float, float]  # person, mean ability by the old scorer and by the new one


def _changes(moves: Sequence[Move]) -> tuple[float, float, list[dict[str, Any]]]:
    """Mean and sd of changes, and the largest of them."""
    change = np.array([after - before for _, before, after in moves])
    if not change.size:
        return 0.0, 0.0, []
    most = np.argsort(-np.abs(change), kind="stable")[:MOST_MOVED]
    told = [
        {
            "id": moves[k][0],
            "before": moves[k][1],
            "after": moves[k][2],
            "change": float(change[k]),
        }
        for k in most.tolist()
    ]
    return float(change.mean()), float(change.std()), told


# --- the swap


def _prepare(
    database: Database, old: ServedScorer, new: ServedScorer, ids: Sequence[str]
) -> list[Move]:
    """Make states of the new scorer ahead; abilities of each person by both."""
    with database.transaction() as tx:
        _forget(tx, new.number)
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
                [asdict(row) for row in after if row.state is not None],
            )
        moves += [
            (a.id, a.mean, b.mean)
            for a, b in zip(before, after, strict=True)
            if a.mean is not None and b.mean is not None
        ]
    return moves


def _swap(database: Database, scorer: Scorer, number: int, report: RefitReport) -> None:
    """Let the new scorer be served, in one transaction."""
    with database.exclusive() as tx:
        if current_number(tx) != number - 1:
            raise InputError("refit: another refit came first; run this one again")
        made = add_scorer(tx, scorer, asdict(report))
        assert made == number
        tx.run("DELETE FROM dynaesti_prepared WHERE scorer < :number", number=number)


def _forget(tx: Transaction, number: int) -> None:
    """Drop states that were made ahead for a scorer that is not served."""
    tx.run("DELETE FROM dynaesti_prepared WHERE scorer = :number", number=number)
