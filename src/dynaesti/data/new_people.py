"""Further answers: are they in already, and are people new who should not be? Told, never decided
in silence.
"""

from __future__ import annotations

import warnings

import numpy as np

from dynaesti.data.labels import Labels, count_noun, same_label, try_index_of
from dynaesti.data.responses import Responses
from dynaesti.errors import HealthWarning, option


def warn_already_added(more: Responses) -> None:
    """Say that these very answers are in already."""
    warnings.warn(
        f"these {count_noun(len(more), 'answers')} of {count_noun(more.people.size, 'people')} "
        f"were added by an earlier update; nothing was "
        f"added ({option('again', True)} adds them once more)",
        HealthWarning,
        stacklevel=4,
    )


def describe_new_people(known: Labels, people: Labels) -> str | None:
    """What is odd about people whom the fit does not know, in words.

    All are new, or some are called nearly as others are.
    """
    strange = np.flatnonzero(try_index_of(known, people.tolist()) < 0)
    if not strange.size or not known.size:
        return None
    names = [people.tolist()[k] for k in strange]
    usual = {same_label(label): label for label in known.tolist()}
    near = [(label, usual[same_label(label)]) for label in names if same_label(label) in usual]
    if near:
        return (
            f"{len(near):,} of {count_noun(people.size, 'people')} are new, but called nearly as "
            f"known ones are (first: {near[0][0]!r} "
            f"beside {near[0][1]!r}); names are compared as written, so make them alike if they "
            f"are the same"
        )
    if strange.size == people.size:
        return (
            f"none of the {people.size:,} people is known to the fit (such as {names[0]!r}; the "
            f"fit knows "
            f"{known.tolist()[0]!r})"
        )
    return None


def warn_new_people(known: Labels, people: Labels) -> None:
    """Warn of what is odd about people whom the fit does not know."""
    words = describe_new_people(known, people)
    if words is not None:
        warnings.warn(words, HealthWarning, stacklevel=4)
