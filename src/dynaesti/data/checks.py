"""A look at responses before they are fitted: what deserves attention, in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dynaesti.data.item_direction import backward_items
from dynaesti.data.labels import count_noun
from dynaesti.data.responses import Responses
from dynaesti.errors import option

RARE = 10
MANY = 0.02  # share of exact repeats that is no accident
OFTEN = 5  # answers of an item from which on its time is judged
NO_WEIGHT = 1e-3  # of an answer
OWN_TIMES = 0.9  # of the variance of time, between items
# what some fits know better: that items may run both ways, how hard they are at each time, and
# all about them
MEANT = "run against the rest"
CONFOUNDED = "Each item is met at a time of its own"
ALIKE = "got one answer only"


@dataclass(frozen=True)
class DataReport:
    """Findings, each a number and a sentence; `str(health)` is the whole in words."""

    rows: int
    people: int
    items: int
    dropped: int
    lone_people: int  # with one answer
    flat_items: int  # all answers alike
    blocks: int  # groups of people and items that share nothing with each other
    rare_categories: int
    duplicates: int  # same person, item, time and response
    backward_items: int
    padded_names: int
    sentences: tuple[str, ...]
    cautions: tuple[str, ...]  # those of them that change what a fit means

    @property
    def has_warnings(self) -> bool:
        """Whether something deserves attention before fitting."""
        return bool(
            self.cautions
            or self.dropped
            or self.rare_categories
            or self.duplicates
            or self.padded_names
            or self.lone_people > 0.1 * self.people
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def check_responses(responses: Responses) -> DataReport:
    """Look at people, items, connections, categories, duplicates and directions."""
    r = responses
    per_person = np.bincount(r.person, minlength=r.people.size)
    lone = int((per_person == 1).sum())
    flat = _flat_items(r)
    heard = (
        np.ones(len(r)) if r.weight is None else (r.weight > NO_WEIGHT) * 1.0
    )  # answers of no weight link nothing
    links = coo_array(
        (heard, (r.person, r.item + r.people.size)), shape=(r.people.size + r.items.size,) * 2
    ).tocsr()
    links.eliminate_zeros()
    blocks = int(connected_components(links, directed=False)[0])
    rare, example = _rare_categories(r)
    same = r.repeats
    padded = _padded(r)
    backward = backward_items(r.person, r.item, r.resp, r.people.size, r.items.size)
    per_item = np.bincount(r.item, minlength=r.items.size)
    words = [
        f"{count_noun(len(r), 'answers')} of {count_noun(r.people.size, 'people')} to "
        f"{count_noun(r.items.size, 'items')}; a person has "
        f"{count_noun(int(np.median(per_person)), 'answers')} in the middle, an item "
        f"{int(np.median(per_item))}."
    ]
    words += [f"{note[0].upper()}{note[1:]}." for note in r.notes]
    if r.dropped:
        words.append(f"{r.dropped:,} rows without a response were dropped.")
    if lone:
        words.append(
            f"{lone:,} people have one answer only: they say little, and their curves are mostly "
            f"the prior."
        )
    cautions = []
    if flat.size:
        cautions.append(
            f"{count_noun(flat.size, 'items')} {ALIKE}, from everybody (first: "
            f"{_label(r.items, flat[0])}): what is told "
            "of them rests on the priors, and without priors has no finite value."
        )
    if blocks > 1:
        cautions.append(
            f"People and items fall into {blocks:,} groups without a link: these have no common "
            f"scale. Each is told as if its "
            "people were like those of the others on average, so do not compare people or items "
            "across groups."
        )
    if rare:
        words.append(
            f"{rare:,} categories have fewer than {RARE} answers (first: {example}); merge them "
            f"with {option('rare', RARE)}."
        )
    if same.sum() > MANY * len(r) and r.columns.get("time", "") is not None:
        cautions.append(
            f"{int(same.sum()):,} of {len(r):,} answers repeat another one exactly (person, item, "
            f"time and response): each "
            "counts as one more proof of the same, so bands come out too narrow and slopes too "
            "steep. Count them once: "
            f"{option('distinct', True, python='Responses.read(…).distinct()')}."
        )
    elif same.any():
        words.append(
            f"{int(same.sum()):,} answers repeat another one exactly (person, item, time and "
            f"response)."
        )
    if padded:
        words.append(
            f"{padded:,} ids or item names begin or end with a space; the same name without it "
            f"counts as another."
        )
    if backward.size:
        cautions.append(
            f"{count_noun(backward.size, 'items')} of {r.items.size:,} {MEANT} (first: "
            f"{_label(r.items, backward[0])}): "
            "those who do well on the others do badly there. If that is meant, use "
            f"{option('direction', 'free')}; else recode them."
        )
    own = _at_their_own_times(r)
    if own > OWN_TIMES:
        cautions.append(
            f"{CONFOUNDED} ({own:.0%} of the variance of time lies between items): whether "
            f"everybody "
            "rises or items become easier cannot be told apart, so abilities are told relative to "
            "the others at the time."
        )
    return DataReport(
        len(r),
        r.people.size,
        r.items.size,
        r.dropped,
        lone,
        flat.size,
        blocks,
        rare,
        int(same.sum()),
        backward.size,
        padded,
        (*words, *cautions),
        tuple(cautions),
    )


def _padded(r: Responses) -> int:
    """Names with space around them: often one name written in two ways."""
    return sum(
        isinstance(label, str) and label != label.strip()
        for labels in (r.people, r.items)
        for label in labels.tolist()
    )


def _label(labels: Any, k: Any) -> str:
    return repr(labels.tolist()[int(k)])


def _flat_items(r: Responses) -> Any:
    low = np.full(r.items.size, np.inf)
    high = np.full(r.items.size, -np.inf)
    np.minimum.at(low, r.item, r.resp)
    np.maximum.at(high, r.item, r.resp)
    return np.flatnonzero(low == high)


def _rare_categories(r: Responses) -> tuple[int, str]:
    values, code = np.unique(r.resp, return_inverse=True)
    if values.size > 60:  # amounts
        return 0, ""
    counts = np.bincount(r.item * values.size + code, minlength=r.items.size * values.size).reshape(
        r.items.size, values.size
    )
    rare = (counts > 0) & (counts < RARE) & (counts.sum(axis=1, keepdims=True) >= 2 * RARE)
    if values.size <= 2 or not rare.any():
        return 0, ""
    item, value = np.argwhere(rare)[0]
    return int(
        rare.sum()
    ), f"response {values[value]:g} to item {_label(r.items, item)}, {counts[item, value]} times"


def _at_their_own_times(r: Responses) -> float:
    """Share of the variance of time that lies between items.

    Near 1 each item is met at a time of its own.
    """
    number = np.bincount(r.item, minlength=r.items.size)
    rows = np.flatnonzero(number[r.item] >= OFTEN)
    times = r.clock_times[rows]
    item = r.item[rows]
    if rows.size < 0.5 * len(r) or not np.ptp(times) > 0 or np.unique(item).size < 2:
        return 0.0
    n = np.maximum(np.bincount(item, minlength=r.items.size), 1)
    mean = np.bincount(item, times, r.items.size) / n
    return float(1.0 - ((times - mean[item]) ** 2).sum() / ((times - times.mean()) ** 2).sum())
