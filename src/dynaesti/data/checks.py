"""Checks of responses before they are fitted: what they hold, and what they cannot show."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dynaesti.core import Ints
from dynaesti.data.item_direction import backward_items
from dynaesti.data.labels import count_noun
from dynaesti.data.mistakes import (
    FARTHEST_GRADE,
    MOST_GRADES,
    odd_responses,
    odd_times,
    similar_names,
)
from dynaesti.data.responses import Responses
from dynaesti.errors import option

ROLES = frozenset(("id", "item", "resp", "time", "weight", "model", "group"))  # of columns
RARE_CATEGORY = 10  # responses, below which a category of an item is called rare
MOST_CATEGORIES = 60  # distinct values; more are amounts, not categories
MANY_REPEATS = 0.02  # fraction of exact repeats that is no accident
MANY_BLANK = 0.3  # fraction of rows without a response that is no matter of course
MANY_LONE_PEOPLE = 0.1  # fraction of people with one response that deserves attention
MIN_RESPONSES_TIMED = 5  # of an item, from which on it counts in `_time_variance_between_items`
NEGLIGIBLE_WEIGHT = 1e-3  # a response of this weight or less links no person to an item
# numbers by which surveys write that there is no answer
MISSING_CODES = frozenset((-9999, -999, -99, -98, -97, -9, -8, -7, -1, 8, 9, 77, 88, 97, 98, 99))
MISSING_CODES |= {888, 997, 998, 999, 8888, 9998, 9999}
MOST_BETWEEN_ITEMS = 0.9  # fraction of the variance of time between items


class CautionKind(StrEnum):
    """What a caution is about. Some fits know better and leave some kinds out."""

    ONE_CATEGORY_ITEMS = "one_category_items"  # everybody answered alike
    UNLINKED_GROUPS = "unlinked_groups"  # of people and items: no common scale
    REPEATED_RESPONSES = "repeated_responses"  # exact duplicates
    BACKWARD_ITEMS = "backward_items"  # run against the rest
    ODD_RESPONSES = "odd_responses"  # a few far from all others: typing errors
    ODD_TIMES = "odd_times"  # a few far from all others
    SIMILAR_NAMES = "similar_names"  # of people or items: alike but for case, space or accents
    MISSING_CODES = "missing_codes"  # numbers that often stand for no answer
    OWN_TIMES = "own_times"  # each item is met at a time of its own


@dataclass(frozen=True)
class Caution:
    """One thing that changes what a fit means; `str(caution)` is its sentence.

    Attributes
    ----------
    kind : CautionKind
        What it is about, by which callers select.
    text : str
        The sentence for users.
    """

    kind: CautionKind
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class DataReport:
    """What was found in responses, in numbers and in sentences; `str(report)` is all sentences."""

    rows: int
    people: int
    items: int
    dropped: int  # rows without a response
    lone_people: int  # with one response
    flat_items: int  # all responses alike
    blocks: int  # groups of people and items without a link between them
    rare_categories: int
    duplicates: int  # same person, item, time and response
    backward_items: int
    padded_names: int  # that begin or end with a space
    sizes: str  # of the data, in a sentence
    notes: tuple[str, ...]  # what reading the data did
    findings: tuple[str, ...]  # small ones, which do not change the meaning of a fit
    cautions: tuple[Caution, ...]  # what changes the meaning of a fit

    @property
    def remarks(self) -> tuple[str, ...]:
        """The sentences that are not cautions: sizes, notes of reading, and small findings."""
        return (self.sizes, *self.notes, *self.findings)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The remarks, then the texts of the cautions."""
        return (*self.remarks, *map(str, self.cautions))

    @property
    def has_warnings(self) -> bool:
        """Whether something deserves attention before fitting."""
        return bool(
            self.cautions
            or self.dropped > MANY_BLANK * (self.rows + self.dropped)
            or self.rare_categories
            or self.duplicates
            or self.padded_names
            or self.lone_people > MANY_LONE_PEOPLE * self.people
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def check_responses(responses: Responses) -> DataReport:
    """Check people, items, links between them, categories, duplicates and directions of items."""
    r = responses
    lone = int((np.bincount(r.person, minlength=r.people.size) == 1).sum())
    flat = _one_category_items(r)
    groups = _count_unlinked_groups(r)
    rare, rare_example = _rare_categories(r)
    repeated = int(r.repeats.sum())
    padded = _count_padded_names(r)
    backward = backward_items(r.person, r.item, r.resp, r.people.size, r.items.size)
    has_times = r.columns.get("time", "") is not None
    too_many_repeats = repeated > MANY_REPEATS * len(r) and has_times
    findings = (
        *_small_findings(r.dropped, lone, rare, rare_example),
        *([] if too_many_repeats else _repeats_remark(repeated)),
        *_padding_remark(padded),
    )
    cautions = (
        *_caution_one_category(r, flat),
        *_caution_unlinked(groups),
        *(_caution_repeated(r, repeated) if too_many_repeats else ()),
        *_caution_backward(r, backward),
        *_caution_missing_codes(r),
        *_caution_odd_responses(r),
        *_caution_odd_times(r),
        *_caution_similar_names(r),
        *_caution_own_times(r),
    )
    return DataReport(
        rows=len(r),
        people=r.people.size,
        items=r.items.size,
        dropped=r.dropped,
        lone_people=lone,
        flat_items=flat.size,
        blocks=groups,
        rare_categories=rare,
        duplicates=repeated,
        backward_items=backward.size,
        padded_names=padded,
        sizes=_size_remark(r),
        notes=tuple(f"{_capitalised(note)}." for note in r.notes),
        findings=findings,
        cautions=cautions,
    )


# --- remarks


def _capitalised(note: str) -> str:
    """A note as a sentence; one that begins with the name of a file or column keeps it as it is."""
    first = note.split(maxsplit=1)[0]
    return (
        note
        if first.rstrip(":,") in ROLES or not first.rstrip(":,").isalpha()
        else note[0].upper() + note[1:]
    )


def _size_remark(r: Responses) -> str:
    per_person = np.bincount(r.person, minlength=r.people.size)
    per_item = np.bincount(r.item, minlength=r.items.size)
    return (
        f"{count_noun(len(r), 'answers')} of {count_noun(r.people.size, 'people')} to "
        f"{count_noun(r.items.size, 'items')}; the median person has "
        f"{count_noun(int(np.median(per_person)), 'answers')}, the median item "
        f"{int(np.median(per_item))}."
    )


def _small_findings(dropped: int, lone: int, rare: int, rare_example: str) -> list[str]:
    out = []
    if dropped:
        out.append(f"Left out {count_noun(dropped, 'rows')} without a response.")
    if lone:
        out.append(
            f"{count_noun(lone, 'people')} with one answer only: they say little, and their curves "
            f"are mostly the prior."
        )
    if rare:
        out.append(
            f"{count_noun(rare, 'categories')} with fewer than {RARE_CATEGORY} answers (first: "
            f"{rare_example}); merge them with {option('rare', RARE_CATEGORY)}."
        )
    return out


def _repeats_remark(repeated: int) -> list[str]:
    if not repeated:
        return []
    return [f"{repeated:,} answers repeat another one exactly (person, item, time and response)."]


def _padding_remark(padded: int) -> list[str]:
    if not padded:
        return []
    return [
        f"{padded:,} ids or item names begin or end with a space; the same name without it "
        f"counts as another."
    ]


# --- cautions: none, or one


def _caution_one_category(r: Responses, flat: Ints) -> list[Caution]:
    if not flat.size:
        return []
    text = (
        f"{count_noun(flat.size, 'items')} got one answer only, from everybody (first: "
        f"{_label(r.items, flat[0])}): their parameters rest on the priors, and without priors "
        f"have no finite value."
    )
    return [Caution(CautionKind.ONE_CATEGORY_ITEMS, text)]


def _caution_unlinked(groups: int) -> list[Caution]:
    if groups <= 1:
        return []
    text = (
        f"People and items fall into {groups:,} groups without a link: these have no common "
        f"scale. Each group is reported as if its people were on average like those of the "
        f"others, so do not compare people or items across groups."
    )
    return [Caution(CautionKind.UNLINKED_GROUPS, text)]


def _caution_repeated(r: Responses, repeated: int) -> list[Caution]:
    text = (
        f"{repeated:,} of {len(r):,} answers repeat another one exactly (person, item, time and "
        f"response): each counts as one more proof of the same, so bands come out too narrow and "
        f"slopes too steep. Count them once: "
        f"{option('distinct', True, python='Responses.read(…).distinct()')}."
    )
    return [Caution(CautionKind.REPEATED_RESPONSES, text)]


def _caution_backward(r: Responses, backward: Ints) -> list[Caution]:
    if not backward.size:
        return []
    text = (
        f"{count_noun(backward.size, 'items')} of {r.items.size:,} "
        f"{'runs' if backward.size == 1 else 'run'} against the rest (first: "
        f"{_label(r.items, backward[0])}): those who do well on the others do badly there. A wrong "
        f"key? Then mend it. If that is meant, use {option('direction', 'free')}; else recode them."
    )
    return [Caution(CautionKind.BACKWARD_ITEMS, text)]


def _caution_missing_codes(r: Responses) -> list[Caution]:
    codes = _missing_codes(r)
    if not codes:
        return []
    count = int(np.isin(r.resp, list(codes)).sum())
    rest = r.resp[~np.isin(r.resp, list(codes))]
    given = " and ".join(f"{code:g}" for code in sorted(codes))
    text = (
        f"{count_noun(count, 'responses')} of {given} lie far from the others ({rest.min():g} to "
        f"{rest.max():g}), as numbers that stand for no answer do. If these do, leave them out by "
        f"{option('code', {f'{code:g}': float('nan') for code in sorted(codes)})}."
    )
    return [Caution(CautionKind.MISSING_CODES, text)]


def _caution_odd_responses(r: Responses) -> list[Caution]:
    odd = odd_responses(r, _missing_codes(r))
    if not odd.size:
        return []
    values = np.unique(r.resp[odd])
    rest = np.delete(r.resp, odd)
    given = " and ".join(f"{value:g}" for value in values)
    code = option("code", {f"{value:g}": float("nan") for value in values})
    text = (
        f"{count_noun(odd.size, 'responses')} of {given} {'lies' if odd.size == 1 else 'lie'} far "
        f"from all others ({rest.min():g} to {rest.max():g}; first: person "
        f"{_label(r.people, r.person[odd[0]])}, item {_label(r.items, r.item[odd[0]])}): a typing "
        f"error? Mend the data, or leave these out by {code}."
    )
    return [Caution(CautionKind.ODD_RESPONSES, text)]


def _caution_odd_times(r: Responses) -> list[Caution]:
    odd = odd_times(r)
    if not odd.size:
        return []
    rest = np.delete(r.offsets, odd)
    first, low, high = (
        str(one)[:10]
        for one in r.axis.restore(np.array([r.offsets[odd[0]], rest.min(), rest.max()]))
    )
    text = (
        f"{count_noun(odd.size, 'answers')} {'lies' if odd.size == 1 else 'lie'} far in time from "
        f"all others ({first}, person {_label(r.people, r.person[odd[0]])}; the others from {low} "
        f"to {high}): a mistyped date? Curves go on to there, without answers to hold them. Mend "
        f"the data, or leave these answers out."
    )
    return [Caution(CautionKind.ODD_TIMES, text)]


def _caution_similar_names(r: Responses) -> list[Caution]:
    out = []
    for labels, what in ((r.people, "people"), (r.items, "items")):
        pairs = similar_names(labels)
        if pairs:
            first, second = pairs[0]
            text = (
                f"{count_noun(len(pairs), 'names')} of {what} {'is' if len(pairs) == 1 else 'are'} "
                f"written in several ways, which differ in case, space or how accents are stored "
                f"only (first: {first!a} and {second!a}): each way counts as another. If "
                f"they are the same, write them in one way."
            )
            out.append(Caution(CautionKind.SIMILAR_NAMES, text))
    return out


def _caution_own_times(r: Responses) -> list[Caution]:
    between = _time_variance_between_items(r)
    if not between > MOST_BETWEEN_ITEMS:
        return []
    text = (
        f"Each item is met at a time of its own ({between:.0%} of the variance of time lies "
        f"between items): these answers cannot distinguish everybody's rise from easier items, "
        f"so abilities are relative to the other people's at the time."
    )
    return [Caution(CautionKind.OWN_TIMES, text)]


# --- what is counted


def _count_padded_names(r: Responses) -> int:
    """How many ids and item names have space around them: often one name written in two ways."""
    return sum(
        isinstance(label, str) and label != label.strip()
        for labels in (r.people, r.items)
        for label in labels.tolist()
    )


def _label(labels: Any, k: Any) -> str:
    return repr(labels.tolist()[int(k)])


def _one_category_items(r: Responses) -> Ints:
    """Items all of whose responses are alike."""
    low = np.full(r.items.size, np.inf)
    high = np.full(r.items.size, -np.inf)
    np.minimum.at(low, r.item, r.resp)
    np.maximum.at(high, r.item, r.resp)
    return np.flatnonzero(low == high)


def _count_unlinked_groups(r: Responses) -> int:
    """Connected components of the graph of people and items; responses are its edges."""
    counts = np.ones(len(r)) if r.weight is None else (r.weight > NEGLIGIBLE_WEIGHT) * 1.0
    n_nodes = r.people.size + r.items.size
    links = coo_array((counts, (r.person, r.item + r.people.size)), shape=(n_nodes,) * 2).tocsr()
    links.eliminate_zeros()
    return int(connected_components(links, directed=False)[0])


def _missing_codes(r: Responses) -> set[float]:
    """Responses that are far from a few whole grades, and are numbers that say "no answer"."""
    values, counts = np.unique(r.resp, return_counts=True)
    if not 2 < values.size <= MOST_GRADES or not np.all(values == np.rint(values)):
        return set()
    suspects = {value for value in values.tolist() if value in MISSING_CODES}
    grades = [value for value in values.tolist() if value not in suspects]
    if len(grades) < 2:
        return set()
    often = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return {
        value
        for value in suspects
        if value > grades[-1] + FARTHEST_GRADE
        or value < min(grades[0], 0.0) - FARTHEST_GRADE
        # one below none is a grade where it is as usual as others
        or (value < 0 <= grades[0] and often[value] < min(often[grade] for grade in grades))
    }


def _rare_categories(r: Responses) -> tuple[int, str]:
    """How many categories of items are rare, and the first one in words.

    Items with fewer than 2 · RARE_CATEGORY responses, and items with two categories, are not
    judged.
    """
    values, code = np.unique(r.resp, return_inverse=True)
    if values.size > MOST_CATEGORIES:
        return 0, ""
    counts = np.bincount(r.item * values.size + code, minlength=r.items.size * values.size).reshape(
        r.items.size, values.size
    )
    enough = counts.sum(axis=1, keepdims=True) >= 2 * RARE_CATEGORY
    rare = (counts > 0) & (counts < RARE_CATEGORY) & enough
    if values.size <= 2 or not rare.any():
        return 0, ""
    item, value = np.argwhere(rare)[0]
    example = (
        f"response {values[value]:g} to item {_label(r.items, item)}, {counts[item, value]} times"
    )
    return int(rare.sum()), example


def _time_variance_between_items(r: Responses) -> float:
    """Fraction of the variance of time that lies between items.

    1 − Σ (t − mean t of the item)² / Σ (t − mean t)²: near 1 each item is met at a time of its
    own. 0 where too few items have MIN_RESPONSES_TIMED responses to judge.
    """
    per_item = np.bincount(r.item, minlength=r.items.size)
    rows = np.flatnonzero(per_item[r.item] >= MIN_RESPONSES_TIMED)
    times = r.clock_times[rows]
    item = r.item[rows]
    if rows.size < 0.5 * len(r) or not np.ptp(times) > 0 or np.unique(item).size < 2:
        return 0.0
    n = np.maximum(np.bincount(item, minlength=r.items.size), 1)
    mean = np.bincount(item, times, r.items.size) / n
    return float(1.0 - ((times - mean[item]) ** 2).sum() / ((times - times.mean()) ** 2).sum())
