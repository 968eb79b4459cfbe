"""Slips of whoever wrote a table: responses and times far from all others, names nearly alike."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data.labels import loose_label_text
from dynaesti.data.responses import Responses

MOST_GRADES = 12  # different responses among which odd ones are searched
FARTHEST_GRADE = 2  # steps beyond the other responses that are no gap
FEW_ODD = 3  # answers that may be mistakes, or FEW_ODD_SHARE of all
FEW_ODD_SHARE = 0.005
FEWEST_SOUND = 20  # other answers, beside which they are odd
ODD_GAP = 3.0  # between odd times and the others, in spans of the others


def odd_responses(r: Responses, known: Collection[float]) -> Ints:
    """A few responses far above a few whole grades, as 11 is among 0 and 1.

    Those in `known`, codes that say that there is no answer, are none of them.
    """
    values, counts = np.unique(r.resp, return_counts=True)
    is_few = counts <= max(FEW_ODD, FEW_ODD_SHARE * len(r))
    if not 2 < values.size <= MOST_GRADES or not np.all(values == np.rint(values)):
        return np.empty(0, dtype=np.int64)
    grades = values[~is_few]
    if grades.size < 2 or counts[~is_few].sum() < FEWEST_SOUND:
        return np.empty(0, dtype=np.int64)
    beyond = grades[-1] + max(FARTHEST_GRADE, 2 * (grades[-1] - grades[0]))
    is_code = np.isin(values, list(known))  # which have a caution of their own
    return np.flatnonzero(np.isin(r.resp, values[is_few & (values > beyond) & ~is_code]))


def odd_times(r: Responses) -> Ints:
    """Answers of a few sittings far before or after all others."""
    is_sitting = np.ones(len(r), dtype=bool)  # of one person, at one time
    is_sitting[1:] = (np.diff(r.person) != 0) | (np.diff(r.offsets) != 0)
    times = r.offsets[is_sitting]
    return np.flatnonzero(np.isin(np.cumsum(is_sitting) - 1, far_from_others(times)))


def far_from_others(times: Array) -> Ints:
    """Places of a few times before or after a gap of several spans of the others."""
    order = np.argsort(times, kind="stable")
    few = int(max(FEW_ODD, FEW_ODD_SHARE * times.size))
    if times.size < FEWEST_SOUND + few:
        return np.empty(0, dtype=np.int64)
    t = times[order]
    middle = t[few : t.size - few]
    allowed = ODD_GAP * float(np.ptp(middle))
    if not allowed > 0:
        return np.empty(0, dtype=np.int64)
    gaps = np.diff(t) > allowed
    early = int(gaps[:few].nonzero()[0].max(initial=-1)) + 1
    late = gaps[t.size - 1 - few :].nonzero()[0]
    n_late = few - int(late.min()) if late.size else 0
    return np.sort(np.concatenate([order[:early], order[t.size - n_late :]]))


def similar_names(labels: Any) -> list[tuple[str, str]]:
    """Pairs of labels that people would read as one."""
    seen: dict[str, str] = {}
    pairs: dict[str, tuple[str, str]] = {}
    for label in labels.tolist():
        if isinstance(label, str):
            loose = " ".join(loose_label_text(label).split())
            other = seen.setdefault(loose, label)
            # space around names has a remark of its own
            if other.strip() != label.strip():
                pairs.setdefault(loose, (other, label))
    return list(pairs.values())
