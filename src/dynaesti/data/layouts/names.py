"""Names that patterns choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from dynaesti.data.labels import as_list, display_names, label_text
from dynaesti.errors import ResponseError

MOST_COMPARED = 500  # names that are searched for a similar one


def matching_names(names: Sequence[Any], wanted: Any, role: str) -> list[Any]:
    """The names that are wanted, or match a wanted pattern, in their own order.

    Raises
    ------
    ResponseError
        If a wanted name or pattern matches none; the message names similar ones.
    """
    texts = [label_text(name) for name in names]
    chosen: set[int] = set()
    for one in as_list(wanted):
        hits = _hits(texts, label_text(one))
        if not hits:
            similar = get_close_matches(label_text(one), texts[:MOST_COMPARED], n=1, cutoff=0.4)
            hint = f"did you mean {similar[0]!r}? " if similar else ""
            raise ResponseError(
                f"{role}: none is called {label_text(one)!r} or matches it; {hint}There are: "
                f"{display_names(names)}"
            )
        chosen.update(hits)
    return [name for k, name in enumerate(names) if k in chosen]


def _hits(texts: Sequence[str], pattern: str) -> Iterable[int]:
    """Where a text is the pattern itself, or else matches it."""
    same = [k for k, text in enumerate(texts) if text == pattern]
    return same or [k for k, text in enumerate(texts) if fnmatchcase(text, pattern)]
