"""A look at responses before they are fitted: what deserves attention, in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dynaesti.labels import told
from dynaesti.responses import Responses

RARE = 10


@dataclass(frozen=True)
class Health:
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

    @property
    def wants_a_look(self) -> bool:
        """Whether something deserves attention before fitting."""
        return bool(self.dropped or self.flat_items or self.blocks > 1 or self.rare_categories or self.duplicates or self.backward_items
                    or self.padded_names or self.lone_people > 0.1 * self.people)

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def examine(responses: Responses) -> Health:
    """Look at people, items, connections, categories, duplicates and directions."""
    r = responses
    per_person = np.bincount(r.person, minlength=r.people.size)
    lone = int((per_person == 1).sum())
    flat = _flat_items(r)
    blocks = int(connected_components(coo_array((np.ones(len(r)), (r.person, r.item + r.people.size)),
                                                shape=(r.people.size + r.items.size,) * 2), directed=False)[0])
    rare, example = _rare_categories(r)
    same, padded = r.repeats, _padded(r)
    backward = _backward_items(r)
    per_item = np.bincount(r.item, minlength=r.items.size)
    words = [f"{told(len(r), 'answers')} of {told(r.people.size, 'people')} to {told(r.items.size, 'items')}; a person has "
             f"{told(int(np.median(per_person)), 'answers')} in the middle, an item {int(np.median(per_item))}."]
    words += [f"{note[0].upper()}{note[1:]}." for note in r.notes]
    if r.dropped:
        words.append(f"{r.dropped:,} rows without a response were dropped.")
    if lone:
        words.append(f"{lone:,} people have one answer only: they say little, and their curves are mostly the prior.")
    if flat.size:
        words.append(f"{flat.size:,} items were answered alike by everybody (first: {_label(r.items, flat[0])}): their parameters rest on "
                     "the priors.")
    if blocks > 1:
        words.append(f"People and items fall into {blocks:,} groups without a link: abilities are comparable across groups only as far as "
                     "their populations are alike.")
    if rare:
        words.append(f"{rare:,} categories have fewer than {RARE} answers (first: {example}); merge them with rare={RARE}.")
    if same.any():
        words.append(f"{int(same.sum()):,} answers repeat another one exactly (person, item, time and response).")
    if padded:
        words.append(f"{padded:,} ids or item names begin or end with a space; the same name without it counts as another.")
    if backward.size:
        words.append(f"{backward.size:,} items run against the rest (first: {_label(r.items, backward[0])}); if that is meant, use "
                     "direction='free'.")
    return Health(len(r), r.people.size, r.items.size, r.dropped, lone, flat.size, blocks, rare, int(same.sum()), backward.size, padded,
                  tuple(words))


def _padded(r: Responses) -> int:
    """Names with space around them: often one name written in two ways."""
    return sum(isinstance(label, str) and label != label.strip() for labels in (r.people, r.items) for label in labels.tolist())


def _label(labels: Any, k: Any) -> str:
    return repr(labels.tolist()[int(k)])


def _flat_items(r: Responses) -> Any:
    low, high = np.full(r.items.size, np.inf), np.full(r.items.size, -np.inf)
    np.minimum.at(low, r.item, r.resp)
    np.maximum.at(high, r.item, r.resp)
    return np.flatnonzero(low == high)


def _rare_categories(r: Responses) -> tuple[int, str]:
    values, code = np.unique(r.resp, return_inverse=True)
    if values.size > 60:  # amounts
        return 0, ""
    counts = np.bincount(r.item * values.size + code, minlength=r.items.size * values.size).reshape(r.items.size, values.size)
    rare = (counts > 0) & (counts < RARE) & (counts.sum(axis=1, keepdims=True) >= 2 * RARE)
    if values.size <= 2 or not rare.any():
        return 0, ""
    item, value = np.argwhere(rare)[0]
    return int(rare.sum()), f"response {values[value]:g} to item {_label(r.items, item)}, {counts[item, value]} times"


def _backward_items(r: Responses) -> Any:
    """Items whose answers go against the person's mean on all other items, beyond chance."""
    n = np.bincount(r.item, minlength=r.items.size)
    mean = np.bincount(r.item, r.resp, r.items.size) / np.maximum(n, 1)
    sd = np.sqrt(np.maximum(np.bincount(r.item, (r.resp - mean[r.item]) ** 2, r.items.size) / np.maximum(n, 1), 1e-12))
    z = (r.resp - mean[r.item]) / sd[r.item]
    total, count = np.bincount(r.person, z, r.people.size), np.bincount(r.person, minlength=r.people.size)
    rest = (total[r.person] - z) / np.maximum(count[r.person] - 1, 1)
    product = np.bincount(r.item, z * rest, r.items.size)
    spread = np.sqrt(np.maximum(np.bincount(r.item, (z * rest) ** 2, r.items.size), 1e-12))
    return np.flatnonzero((product / spread < -3.0) & (n >= 30))
