"""Which columns of a wide table are items, and at which occasion each is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from dynaesti.data.headings import SYNONYMS, plain_name
from dynaesti.data.layouts.layout import LayoutOptions, is_blank
from dynaesti.data.layouts.names import matching_names
from dynaesti.data.readers.table import Table
from dynaesti.data.response_words import MARKS, WORDS, is_choice, is_no_answer, written_numbers

NUMBERED = re.compile(r"(?P<stem>.*?)[\s_.#(\[-]*(?P<number>\d+)[a-z]?[)\]]?(\s*/\s*[\d.,]+)?")
LED_BY_NUMBER = re.compile(r"(?P<stem>[a-z]{0,10})[\s_.#]*(?P<number>\d+)[.:)]?\s+\S.*")
SCORED = re.compile(
    r"(?P<item>.+?)[\s_-]*[\[(]?(score|points|punkte|punktzahl|puntuacion|note)[\])]?"
)
POINTS = frozenset(("points", "point", "pts", "score", "correct", "is_correct", "punkte", "result"))
SAMPLED = 2000  # rows by which it is judged what a column holds
MOST_VALUES = 25  # distinct ones of a column of answers
MOST_ODD = 4  # distinct texts among a column's answers that are mistakes in it
ODD_SHARE = 0.2  # of its cells that are
FEWEST_ALIKE = 3  # columns without numbers in their names that make a wide table
TOTALS = re.compile(
    r"(grand[ _])?(total|sum|mean|average|score|points|grade|mark|percent|percentage|summe|gesamt|"
    r"punkte|note|ergebnis|moyenne|somme|suma|promedio|nota)\b.*|%",
)
OCCASION = r"(?:t|time|wave|w|welle|occasion|session|sitting|mzp)[\s_.]?(?P<time>\d+)"
BEFORE_AFTER = {"pre": 0.0, "post": 1.0}
ITEM_AND_OCCASION = (
    re.compile(rf"(?P<item>.+?)[\s_.-]{OCCASION}", re.IGNORECASE),
    re.compile(rf"{OCCASION}[\s_.-](?P<item>.+)", re.IGNORECASE),
    re.compile(r"(?P<item>.+?)[\s_.-](?P<time>pre|post)", re.IGNORECASE),
    re.compile(r"(?P<time>pre|post)[\s_.-](?P<item>.+)", re.IGNORECASE),
)


def choose_items(
    table: Table, free: Sequence[str], options: LayoutOptions, keyed: Sequence[str]
) -> list[str]:
    """Columns of items: as named, as the key has them, numbered alike, or holding 0 and 1.

    Parameters
    ----------
    table : Table
    free : sequence of str
        Columns that may be items.
    options : LayoutOptions
    keyed : sequence of str
        Items that the answer key names.

    Raises
    ------
    ResponseError
        If patterns of items match none.
    """
    if options.items is not None:
        return matching_names(free, options.items, "items")
    kinds = {name: _kind_of_answers(table.frame[name]) for name in free}
    scored = _scored(free, kinds)
    if scored:
        return scored
    numbered = _numbered(free, kinds, NUMBERED) or _numbered(free, kinds, LED_BY_NUMBER)
    with_key = [name for name in free if name in keyed]
    if len(with_key) > 1 and not set(with_key) <= set(numbered):
        return with_key
    if numbered:
        return numbered
    answers = [name for name in free if kinds[name] and not TOTALS.fullmatch(plain_name(name))]
    if options.wide:
        return answers
    alike = [name for name in answers if kinds[name] in ("binary", "letters")]
    return alike if len(alike) >= FEWEST_ALIKE and 2 * len(alike) >= len(free) else []


def occasions_of(items: Sequence[str]) -> dict[str, tuple[str, float]]:
    """The item and the occasion of each column, where all headings have both; else nothing.

    Q1_T1, Q2_T1, Q1_T2 and Q2_T2 are two items at two occasions.
    """
    for pattern in ITEM_AND_OCCASION:
        found = {name: pattern.fullmatch(name.strip()) for name in items}
        pairs = {
            name: (match["item"], _occasion(match["time"]))
            for name, match in found.items()
            if match is not None
        }
        crossed = {item for item, time in pairs.values()}
        if len(pairs) == len(items) and len({time for _, time in pairs.values()}) > 1:
            # items that are met more than once, each column another pair
            return pairs if 1 < len(crossed) < len(set(pairs.values())) == len(items) else {}
    return {}


def _occasion(text: str) -> float:
    known = BEFORE_AFTER.get(text.lower())
    return float(text) if known is None else known


def _scored(free: Sequence[str], kinds: Mapping[str, str | None]) -> list[str]:
    """Columns of points that stand beside the columns of the answers they are given for."""
    matches = {name: SCORED.fullmatch(name.strip().lower()) for name in free}
    plain = {name.strip().lower() for name in free}
    return [
        name
        for name, match in matches.items()
        if match is not None and match["item"] in plain and kinds[name] in ("binary", "numbers")
    ]


def _numbered(
    free: Sequence[str], kinds: Mapping[str, str | None], pattern: re.Pattern[str]
) -> list[str]:
    """Columns whose names differ in a number and that hold answers (or nothing).

    Of several such rows of columns with the same numbers, those of points are taken.
    """
    stems: dict[str, list[str]] = {}
    numbers: dict[str, list[str]] = {}
    others = {*SYNONYMS["id"], *SYNONYMS["time"], "weight", "cov", "rt"}
    for name in free:
        match = pattern.fullmatch(name.strip().lower())
        if match and plain_name(match["stem"]) not in others and kinds[name]:
            stems.setdefault(match["stem"], []).append(name)
            numbers.setdefault(match["stem"], []).append(match["number"])
    groups = {
        stem: names
        for stem, names in stems.items()
        if len(set(numbers[stem])) > 1 and any(kinds[name] != "empty" for name in names)
    }
    points = next((stem for stem in groups if plain_name(stem) in POINTS), None)
    if points is not None:
        groups = {
            stem: names
            for stem, names in groups.items()
            if stem == points or numbers[stem] != numbers[points]
        }
    chosen = {name for names in groups.values() for name in names}
    return [name for name in free if name in chosen]


def _kind_of_answers(series: nw.Series[Any]) -> str | None:
    """What answers a column holds: binary, numbers, letters, empty; None if it holds others.

    A few odd cells among answers are mistakes in a column of answers, for the parser to name.
    """
    cells = [
        str(value).strip().lower()
        for value in series.head(SAMPLED).to_list()
        if not is_blank(value)
    ]
    kind = _kind_of_values(set(cells))
    odd = {cell for cell in set(cells) if not _is_number(cell) and not is_no_answer(cell)}
    if kind is not None or len(odd) > MOST_ODD or len(odd) == len(set(cells)):
        return kind
    n_odd = sum(cell in odd for cell in cells)
    return _kind_of_values(set(cells) - odd) if n_odd <= ODD_SHARE * len(cells) else None


def _kind_of_values(values: set[str]) -> str | None:
    """What answers distinct texts are, see `_kind_of_answers`."""
    if any(values - {""} <= set(marks) for marks in MARKS):
        return "binary" if values - {""} else "empty"
    values = {value for value in values if not is_no_answer(value)}
    if not values:
        return "empty"
    if len(values) > MOST_VALUES:
        return None
    if values <= {"0", "1", "0.0", "1.0", *WORDS}:
        return "binary"
    words = {value for value in values if not _is_number(value)}
    if words <= written_numbers(words).keys():
        return "numbers"
    return "letters" if all(map(is_choice, values)) else None


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
