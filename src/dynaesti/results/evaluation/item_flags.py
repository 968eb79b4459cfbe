"""Which items deserve a look, and why: wrong keys, useless, too easy, misfitting, drifting ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.results.evaluation.screening.drift import find_drift
from dynaesti.results.item_checks import DRIFTS

if TYPE_CHECKING:
    from dynaesti.results.fit_base import FitBase

DRIFT_RATE = 0.05  # of false discoveries among items that drift


def flag_items(fit: FitBase, *, drift: bool = False, executor: Any = None) -> Any:
    """Say which items deserve a look, and why.

    An item is flagged where its answers leave little doubt: "wrong key?" (the able do worse),
    "useless" (it has next to nothing to do with ability), "too easy" or "too hard" (more than 95 %
    of the points, or less than 5 %), "misfits" (its answers do not follow its response function
    over ability), and where it is asked for "drifts" (it becomes easier or harder in the course of
    time). Items with fewer than 30 answers are not judged, and keys only where
    ``direction="positive"``.

    Parameters
    ----------
    fit : Fit or ShardedFit
    drift : bool, default False
        Whether to test for drift too.
    executor : ThreadExecutor or DaskExecutor, optional
        What works on shards. Default: threads of this process.

    Returns
    -------
    frame
        One row for each item: item, n, share (of the points), item_rest (correlation of the answers
        with ability known without them), infit, outfit, flag (words, or nothing).

    Raises
    ------
    InputError
        If the fit was saved by a version that did not check items.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=60, items=5, per_person=20, seed=1).table
    >>> table["resp"] = [
    ...     1 - y if item == "i3" else y for y, item in zip(table["resp"], table["item"])
    ... ]
    >>> found = dy.evaluation.flag_items(dy.DynAEsti("2PL").fit(table))
    >>> dict(zip(found["item"], found["flag"]))["i3"]
    'wrong key?'
    """
    fit.require_people()
    checks = fit.item_checks
    if checks is None:
        raise InputError("fit: its items were not checked; fit the data again")
    flags = checks.flags()
    if drift:
        drifting = find_drift(fit, DRIFT_RATE, True, executor).found.flag
        flags = [_joined(flag, bool(moves)) for flag, moves in zip(flags, drifting, strict=True)]
    columns = {
        "item": fit.item_labels.tolist(),
        "n": np.asarray(fit.responses_per_item),
        "share": checks.share,
        "item_rest": checks.correlation,
        "infit": checks.infit,
        "outfit": checks.outfit,
        "flag": flags,
    }
    return make_frame(columns, fit.frame)


def _joined(flag: str, drifts: bool) -> str:
    """An item's flag with its drift."""
    return ", ".join([word for word in (flag, DRIFTS if drifts else "") if word])
