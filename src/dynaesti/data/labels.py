"""Ids and item names of any type: numbered for the computation, and given back as they came."""

import unicodedata
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dynaesti.core import Ints
from dynaesti.errors import InputError

Labels: TypeAlias = npt.NDArray[Any]


def count_noun(count: int, what: str) -> str:
    """So many people, items or answers, in words: 1 person, 2 people."""
    return f"{count:,} {ONE.get(what, what.removesuffix('s')) if count == 1 else what}"


ONE = {"people": "person"}


def encode(values: Labels, name: str) -> tuple[Labels, Ints]:
    """Distinct labels in order, and each value's number.

    Labels of one type sort by value; of several, by type, then value.
    """
    if values.dtype.kind in "iufbM":
        labels, codes = np.unique(values, return_inverse=True)
        return labels, codes.astype(np.int64)
    seen: dict[Any, int] = {}
    try:
        as_list = values.tolist()
        if (
            len({type(value) for value in as_list}) > 1
        ):  # 1 beside "1" is one label, called as it came first
            called: dict[str, Any] = {}
            as_list = [called.setdefault(label_text(value), value) for value in as_list]
        first = np.array([seen.setdefault(value, len(seen)) for value in as_list], dtype=np.int64)
    except TypeError:
        raise InputError(
            f"{name}: labels must be numbers, text or dates, not "
            f"{type(values.tolist()[0]).__name__}"
        ) from None
    found = list(seen)
    try:
        order = sorted(range(len(found)), key=found.__getitem__)
    except TypeError:
        order = sorted(range(len(found)), key=lambda k: (type(found[k]).__name__, str(found[k])))
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found))
    return as_labels([found[k] for k in order]), place[first]


def as_labels(values: list[Any]) -> Labels:
    """Labels as an array that keeps their types."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def label_text(label: Any) -> str:
    """A label as it is written down, by which it is known again.

    17, 17.0 (what frames make of 17 beside a gap) and "17" are one.
    """
    plain = _plain(label)
    return str(int(plain)) if isinstance(plain, float) and plain.is_integer() else str(plain)


def same_label(label: Any) -> str:
    """What is left of a label without what people overlook.

    Space around it, upper case, the way an accent is encoded.
    """
    return unicodedata.normalize("NFKC", label_text(label)).strip().casefold()


def display_names(names: Sequence[Any], most: int = 12, longest: int = 40) -> str:
    """Names in a message: a few of them, none too long, and nothing that a terminal would obey."""

    def one(name: Any) -> str:
        text = str(name)
        cut = text if len(text) <= longest else text[: longest - 1] + "…"
        return cut if cut.isprintable() else repr(cut)[1:-1]

    rest = len(names) - most
    return ", ".join(map(one, names[:most])) + (f" and {rest:,} more" if rest > 0 else "")


def as_list(values: Any) -> list[Any]:
    """One label, or several, as a list."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        return [values]
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)


def try_index_of(labels: Labels, wanted: list[Any]) -> Ints:
    """Numbers of the wanted labels, −1 where unknown.

    Where types differ the written form counts: 17 is "17".
    """
    index = {label: k for k, label in enumerate(labels.tolist())}
    try:
        numbers = np.array([index.get(_plain(label), -1) for label in wanted], dtype=np.int64)
    except TypeError:
        odd = next(label for label in wanted if not isinstance(label, Hashable))
        raise InputError(f"labels: expected numbers, text or dates, got {odd!r}") from None
    if (numbers < 0).any():
        by_form: dict[str, int] = {}
        for label, k in index.items():
            by_form[label_text(label)] = -1 if label_text(label) in by_form else k
        for place in np.flatnonzero(numbers < 0):
            numbers[place] = by_form.get(label_text(wanted[place]), -1)
    return numbers


def index_of(labels: Labels, wanted: list[Any], name: str, remedy: str = "") -> Ints:
    """Numbers of the wanted labels.

    Unknown ones are refused with the nearest known, and what to do if they are meant.
    """
    numbers = try_index_of(labels, wanted)
    unknown = [label for label, k in zip(wanted, numbers, strict=True) if k < 0]
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(str(unknown[0]), [str(label) for label in labels.tolist()], n=1)
        hint = (
            f"; did you mean {near[0]!r}?"
            if near
            else f" (there are {labels.size}, such as {labels.tolist()[0]!r})"
        )
        raise InputError(
            f"{name}: {len(unknown)} of {len(wanted)} were never seen, first "
            f"{unknown[0]!r}{hint}{remedy}"
        )
    return numbers


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
