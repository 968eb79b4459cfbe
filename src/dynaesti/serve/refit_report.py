"""What a refit tells: what moved, and which items drift."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaesti.errors import HealthWarning, InputError
from dynaesti.results import Fit, evaluation
from dynaesti.serve.anchored_fit import held_parameters
from dynaesti.serve.served import ServedScorer
from dynaesti.tables import as_frame

HELD = 1e-6  # largest change of a held parameter, relative
MOST_MOVED = 10  # people in the report
SEPARATED = 2.0  # standard error of a change, on the scale of abilities, that tells nothing
CLEAR = 5.0  # z of residuals of late that is no chance
Move = tuple[str, float, float]  # person, mean ability by the old scorer and by the new one


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
    odd_times : list of dict
        Answers so far in time from all others that they were left out of the fit: id, item, time.
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
    odd_times: list[dict[str, Any]]

    @property
    def flagged(self) -> list[str]:
        """Items whose drift is an alarm."""
        return [item for item, found in self.drift.items() if found["flagged"]]


def scale_shift(old: ServedScorer, new: ServedScorer) -> float:
    """Largest change of a parameter that was held.

    Raises
    ------
    InputError
        If one was not held after all.
    """
    before, after = held_parameters(old), held_parameters(new)
    largest = 0.0
    for item, values in before.items():
        for name, value in values.items():
            change = abs(after[item][name] - value)
            if change > HELD * (1 + abs(value)):
                raise InputError(f"refit: {name} of item {item!r} was not held; nothing is changed")
            largest = max(largest, change)
    return largest


def drift_of(fit: Fit) -> dict[str, dict[str, Any]]:
    """The test for drift of all items; nothing where it cannot be made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)
        try:
            frame = as_frame(evaluation.drift(fit)).to_dict()
        except InputError:  # all answers are of one time
            return {}
    out = {}
    late = _late_residuals(fit)
    columns = (frame["item"], frame["easier"], frame["se"], frame["p_adjusted"], frame["flag"])
    for item, easier, se, p, flag in zip(*columns, strict=True):
        tested = bool(np.isfinite(p))
        flagged = bool(flag)
        sentence = "too few answers, or of one time only"
        if tested:
            word = "easier" if easier > 0 else "harder"
            sentence = f"it became {word} by {abs(easier):.2f} (se {se:.2f}, adjusted p {p:.2g})"
        # where all answers of late are alike, the effect has no finite value and its test no power
        if tested and not flagged and se > SEPARATED and abs(late[item][1]) > CLEAR:
            residual, z = late[item]
            flagged = True
            word = "higher" if residual > 0 else "lower"
            sentence = (
                f"it became {'easier' if residual > 0 else 'harder'}: answers of late are {word} "
                f"than it lets expect, by {abs(residual):.2f} on average (z {z:.1f})"
            )
        out[str(item)] = {
            "flagged": flagged,
            "shift": float(easier) if tested else None,
            "se": float(se) if tested else None,
            "sentence": sentence,
        }
    return out


def _late_residuals(fit: Fit) -> dict[Any, tuple[float, float]]:
    """Mean residual of each item's answers in the last part of the time, and its z."""
    frame = as_frame(evaluation.item_fit(fit, by="time")).to_dict()
    rows = zip(frame["item"], frame["residual"], frame["z"], strict=True)
    found: dict[Any, tuple[float, float]] = {}
    for item, residual, z in rows:  # in the order of time
        found[item] = (float(residual), float(z))
    return found


def changes_of(moves: Sequence[Move]) -> tuple[float, float, list[dict[str, Any]]]:
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
