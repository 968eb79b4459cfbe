"""Labels: ids and item names of any type, numbered for computing and returned as they came."""

import re
import unicodedata
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dynaesti.core import Ints
from dynaesti.errors import InputError

Labels: TypeAlias = npt.NDArray[Any]
DIGITS = re.compile("[0-9]+")
LONGEST_NUMBER = 20  # digits in a label; longer numbers are sorted as text
SINGULAR = {"people": "person", "categories": "category"}  # of nouns that do not only lose an s


def count_noun(count: int, what: str) -> str:
    """A number with its noun, which is given in the plural: 1 person, 2,000 people."""
    noun = SINGULAR.get(what, what.removesuffix("s")) if count == 1 else what
    return f"{count:,} {noun}"


def encode(values: Labels, name: str) -> tuple[Labels, Ints]:
    """Number labels.

    Labels of one type are sorted by value, text in natural order (q2 before q10); of several types,
    by type, then as text. Labels that are
    written alike are one, called as the first of them: 1 and "1".

    Parameters
    ----------
    values : array (n,)
        Labels, with repetitions.
    name : str
        What they are, for messages.

    Returns
    -------
    labels : array (n_distinct,)
        Distinct labels in order.
    codes : int array (n,)
        The number of each value in `labels`.
    """
    if values.dtype.kind in "iufbM":
        labels, codes = np.unique(values, return_inverse=True)
        return labels, codes.astype(np.int64)
    texts = _encode_texts(values)
    if texts is not None:
        return texts
    seen: dict[Any, int] = {}
    try:
        plain = values.tolist()
        if len({type(value) for value in plain}) > 1:
            first_written_so: dict[str, Any] = {}
            plain = [first_written_so.setdefault(label_text(value), value) for value in plain]
        by_occurrence = np.array(
            [seen.setdefault(value, len(seen)) for value in plain], dtype=np.int64
        )
    except TypeError:
        raise InputError(
            f"{name}: labels must be numbers, text or dates, not "
            f"{type(values.tolist()[0]).__name__}"
        ) from None
    found = list(seen)
    try:
        key = natural_key if all(isinstance(label, str) for label in found) else _plain
        keys = [key(label) for label in found]
        order = sorted(range(len(found)), key=keys.__getitem__)
    except TypeError:
        order = sorted(range(len(found)), key=lambda k: (type(found[k]).__name__, str(found[k])))
    rank = np.empty(len(found), dtype=np.int64)
    rank[order] = np.arange(len(found))
    return as_labels([found[k] for k in order]), rank[by_occurrence]


def natural_key(text: str) -> str:
    """What sorts text in natural order: numbers in it by their size, q2 before q10."""
    return f"{DIGITS.sub(_padded, text)}\0{text}"


def _padded(digits: re.Match[str]) -> str:
    return digits.group().zfill(LONGEST_NUMBER)


def _encode_texts(values: Labels) -> tuple[Labels, Ints] | None:
    """`encode` where all labels are text, by Arrow; None where some are not, or without Arrow."""
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        found = pa.array(values, pa.string()).dictionary_encode()
    except (pa.ArrowException, TypeError, UnicodeError):
        return None
    if found.null_count:
        return None
    labels = found.dictionary.to_pylist()
    keys = [natural_key(label) for label in labels]
    order = sorted(range(len(labels)), key=keys.__getitem__)
    rank = np.empty(len(labels), dtype=np.int64)
    rank[order] = np.arange(len(labels))
    return as_labels([labels[k] for k in order]), rank[found.indices.to_numpy()]


def as_labels(values: list[Any]) -> Labels:
    """Labels as an array of objects, which keeps their types."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def label_text(label: Any) -> str:
    """A label as text, the same for labels that are one.

    17, "17" and 17.0 (which frames make of 17 in a column with gaps) are one label.
    """
    plain = _plain(label)
    return str(int(plain)) if isinstance(plain, float) and plain.is_integer() else str(plain)


def loose_label_text(label: Any) -> str:
    """A label as text without what people overlook: space around it, case, encoding of accents."""
    return unicodedata.normalize("NFKC", label_text(label)).strip().casefold()


def display_names(names: Sequence[Any], most: int = 12, longest: int = 40) -> str:
    """List names in a message: at most `most` of them, each cut to `longest` characters.

    Control characters are escaped: a terminal would obey them.
    """

    def shortened(name: Any) -> str:
        text = str(name)
        cut = text if len(text) <= longest else text[: longest - 1] + "…"
        return cut if cut.isprintable() else repr(cut)[1:-1]

    n_more = len(names) - most
    return ", ".join(map(shortened, names[:most])) + (f" and {n_more:,} more" if n_more > 0 else "")


def as_list(values: Any) -> list[Any]:
    """A single label, or several in any container, as a list."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        return [values]
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)


def try_index_of(labels: Labels, wanted: list[Any]) -> Ints:
    """Numbers of the wanted labels among `labels`, −1 where unknown: int array (n_wanted,).

    Labels of another type are compared as text: 17 is found as "17", unless several labels are
    written so.
    """
    index = {label: k for k, label in enumerate(labels.tolist())}
    try:
        numbers = np.array([index.get(_plain(label), -1) for label in wanted], dtype=np.int64)
    except TypeError:
        odd = next(label for label in wanted if not isinstance(label, Hashable))
        raise InputError(f"labels: expected numbers, text or dates, got {odd!r}") from None
    if (numbers < 0).any():
        by_text: dict[str, int] = {}
        for label, k in index.items():
            by_text[label_text(label)] = -1 if label_text(label) in by_text else k
        for j in np.flatnonzero(numbers < 0):
            numbers[j] = by_text.get(label_text(wanted[j]), -1)
    return numbers


def index_of(labels: Labels, wanted: list[Any], name: str, remedy: str = "") -> Ints:
    """Numbers of the wanted labels among `labels`: int array (n_wanted,).

    Parameters
    ----------
    labels : array (n,)
        Known labels.
    wanted : list
        Labels to find.
    name : str
        What they are, for messages.
    remedy : str, default=""
        End of the message: what to do if new labels are meant.

    Raises
    ------
    InputError
        If some are unknown; the message names the most similar known one.
    """
    numbers = try_index_of(labels, wanted)
    unknown = [label for label, k in zip(wanted, numbers, strict=True) if k < 0]
    if unknown:
        from difflib import get_close_matches

        similar = get_close_matches(str(unknown[0]), [str(label) for label in labels.tolist()], n=1)
        hint = (
            f"; did you mean {similar[0]!r}?"
            if similar
            else f" (there are {labels.size}, such as {labels.tolist()[0]!r})"
            if labels.size
            else " (there are none)"
        )
        which = (
            f"{unknown[0]!r} was never seen"
            if len(wanted) == 1
            else f"{len(unknown)} of {len(wanted)} were never seen, first {unknown[0]!r}"
        )
        raise InputError(f"{name}: {which}{hint}{remedy}")
    return numbers


def _plain(label: Any) -> Any:
    """A label as Python's own type."""
    return label.item() if isinstance(label, np.generic) else label
