"""Warnings about further responses: added before, or of people who look new by mistake."""

from __future__ import annotations

import numpy as np

from dynaesti.data.labels import Labels, count_noun, loose_label_text, try_index_of
from dynaesti.data.responses import Responses
from dynaesti.errors import HealthWarning, option, warn_user


def warn_already_added(more: Responses) -> None:
    """Warn that these responses were added by an earlier update, and are not added again."""
    warn_user(
        f"these {count_noun(len(more), 'answers')} of {count_noun(more.people.size, 'people')} "
        f"were added by an earlier update; nothing was added ({option('again', True)} adds them "
        f"once more)",
        HealthWarning,
    )


def describe_left_out(given: int, added: int) -> str | None:
    """Say that some of the given responses are in the fit already and are not added; else None."""
    if added == given:
        return None
    return (
        f"{given - added:,} of {count_noun(given, 'answers')} are in the fit already, exactly "
        f"(person, item, time and response), and were left out; {option('again', True)} adds them "
        "once more"
    )


def warn_left_out(given: int, added: int) -> None:
    """Warn that some of the given responses are in the fit already, and are not added."""
    words = describe_left_out(given, added)
    if words is not None:
        warn_user(words, HealthWarning)


def describe_new_people(known: Labels, people: Labels) -> str | None:
    """Describe people whom the fit does not know, if that looks like a mistake; else None.

    It does if all are new, or if some are called nearly like known ones.

    Parameters
    ----------
    known : array (n_known,)
        Labels of the people of the fit.
    people : array (n_people,)
        Labels of the people of further responses.
    """
    new = np.flatnonzero(try_index_of(known, people.tolist()) < 0)
    if not new.size or not known.size:
        return None
    names = [people.tolist()[k] for k in new]
    known_as = {loose_label_text(label): label for label in known.tolist()}
    similar = [
        (label, known_as[loose_label_text(label)])
        for label in names
        if loose_label_text(label) in known_as
    ]
    if similar:
        label, known_label = similar[0]
        return (
            f"{len(similar):,} of {count_noun(people.size, 'people')} are new, but called nearly "
            f"as known ones are (first: {label!r} beside {known_label!r}); names are compared as "
            f"written, so make them alike if they are the same"
        )
    if new.size == people.size:
        return (
            f"the fit knows none of {count_noun(people.size, 'people')} (such as {names[0]!r}; it "
            f"knows {known.tolist()[0]!r})"
        )
    return None


def warn_new_people(known: Labels, people: Labels) -> None:
    """Warn if people whom the fit does not know look like a mistake."""
    words = describe_new_people(known, people)
    if words is not None:
        warn_user(words, HealthWarning)
