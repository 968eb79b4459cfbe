"""The log fitted anew, with the parameters of known items held."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.ability_estimator import DynAEsti
from dynaesti.data import UNSTATED, far_from_others
from dynaesti.errors import ConvergenceWarning, HealthWarning, InputError
from dynaesti.model import ItemModel
from dynaesti.results import Fit, Scorer
from dynaesti.serve.questions import item_parameters
from dynaesti.serve.rows import AnswerRow
from dynaesti.serve.served import ServedScorer, columns_of

NOBODY = " nobody"  # whose answers of weight 0 keep items and categories that nobody has met


def calibrated(
    served: ServedScorer, rows: Sequence[AnswerRow], least: int
) -> tuple[list[AnswerRow], list[str]]:
    """Answers to known items, and to new ones with enough of them; and new items that wait."""
    counts = Counter(one.item for one in rows if not served.knows(one.item))
    kinds: dict[str, set[float]] = {}
    for one in rows:
        if one.item in counts:
            kinds.setdefault(one.item, set()).add(one.resp)
    waiting = sorted(item for item, n in counts.items() if n < least or len(kinds[item]) < 2)
    too_few = set(waiting)
    return [one for one in rows if one.item not in too_few], waiting


def without_odd_times(
    served: ServedScorer, rows: Sequence[AnswerRow]
) -> tuple[list[AnswerRow], list[dict[str, Any]]]:
    """Answers but for a few that lie far in time from all others, and these, as they are told.

    A device whose clock was never set dates an answer at 1970; a curve that went on to there would
    be no ability of anyone.
    """
    odd = set(far_from_others(np.array([one.time for one in rows])).tolist())
    told = [
        {"id": rows[k].id, "item": rows[k].item, "time": served.shown_time(rows[k].time)}
        for k in sorted(odd)
    ]
    return [one for k, one in enumerate(rows) if k not in odd], told


def anchored_fit(
    served: ServedScorer, rows: Sequence[AnswerRow], threads: int | None, progress: bool
) -> Fit:
    """The answers fitted with the options of the run, the parameters of its items held."""
    scorer = served.scorer
    kept = scorer.model.options
    template = scorer.template
    models = _models(scorer, rows)
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
        fixed=held_parameters(served),
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


def _models(scorer: Scorer, rows: Sequence[AnswerRow]) -> dict[str, ItemModel]:
    """The model of each item; new ones have that of most others."""
    labels = map(str, scorer.item_labels.tolist())
    models = dict(zip(labels, scorer.model.coding.models, strict=True))
    usual = Counter(model.name for model in models.values()).most_common(1)[0][0]
    like = next(model for model in models.values() if model.name == usual)
    return models | {one.item: like for one in rows if one.item not in models}


def held_parameters(served: ServedScorer) -> dict[str, dict[str, float]]:
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
    of_person = _personal_columns(served, rows)
    given = [columns_of(one) for one in rows]
    weights = [found.get(names["weight"], 1.0) for found in given]
    table[names["weight"]] = [
        0.0 if one.id == NOBODY else weight for one, weight in zip(rows, weights, strict=True)
    ]
    for name in extra:
        own = name in served.personal
        table[name] = [
            (of_person[one.id] if own else found).get(name)
            for one, found in zip(rows, given, strict=True)
        ]
    return table


def _personal_columns(
    served: ServedScorer, rows: Sequence[AnswerRow]
) -> dict[str, Mapping[str, Any]]:
    """What each person's answers tell of the person, as states have it."""
    logs: dict[str, list[AnswerRow]] = {}
    for one in sorted(rows, key=lambda one: one.order):
        logs.setdefault(one.id, []).append(one)
    return {who: served.personal_of(log) for who, log in logs.items()}


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
