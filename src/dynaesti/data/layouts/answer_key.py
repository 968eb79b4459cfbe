"""Answer keys: the right answer to each item, and answers scored by it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from dynaesti.data.columns import as_text, null_mask
from dynaesti.data.headings import plain_name
from dynaesti.data.labels import as_list, count_noun, display_names, label_text, loose_label_text
from dynaesti.data.layouts.layout import column_texts, keep_rows, with_column, with_notes
from dynaesti.data.readers.read import read_table
from dynaesti.data.readers.table import Table
from dynaesti.data.response_words import KEY_ROW, MISSING, is_no_answer
from dynaesti.errors import FileError, ResponseError, option

ITEM_HEADINGS = ("item", "question", "item_id", "question_id", "problem", "problem_id", "aufgabe")
ANSWER_HEADINGS = (
    "key",
    "correct_answer",
    "right_answer",
    "answer",
    "correct",
    "right",
    "solution",
    "losung",
    "loesung",
    "reponse",
    "respuesta",
)
SEPARATORS = re.compile(r"[|;/]")  # between several right answers
MOST_TOLD = 5  # answers that a message names
KEYED_EACH = re.compile(r"[^=,;]+=[^=,;]+([,;][^=,;]+=[^=,;]+)*")


@dataclass(frozen=True)
class AnswerKey:
    """Right answers: by item, or in the order of the items, or in a row of the table itself."""

    by_item: Mapping[str, str] | None = None
    in_order: tuple[str, ...] | None = None
    row_of: str | None = None  # the id of the row that has them

    @property
    def items(self) -> tuple[str, ...]:
        """Items that the key names."""
        return tuple(self.by_item or ())


def read_key(key: Any) -> AnswerKey | None:
    """The key in a mapping, a sequence, a file, or a text such as "Q1=A,Q2=C" or "A,C".

    A text that is nothing of these names the row of the table that has the right answers, or
    has a letter for each item ("ACDB").

    Raises
    ------
    ResponseError
        If a file holds no key.
    """
    if key is None:
        return None
    if isinstance(key, Mapping):
        return AnswerKey({label_text(item): label_text(right) for item, right in key.items()})
    if isinstance(key, str | PathLike):
        return _key_of_text(str(key))
    if hasattr(key, "columns"):
        return _key_of_table(read_table(key), "key")
    return AnswerKey(in_order=tuple(label_text(right) for right in as_list(key)))


def _key_of_text(text: str) -> AnswerKey:
    """The key of a file of that name, or that a text spells."""
    if Path(text).is_file():
        return _key_of_table(read_table(text), Path(text).name)
    if KEYED_EACH.fullmatch(text):
        pairs = [part.partition("=") for part in re.split("[,;]", text)]
        return AnswerKey({item.strip(): right.strip() for item, _, right in pairs})
    if "," in text:
        return AnswerKey(in_order=tuple(part.strip() for part in text.split(",")))
    if Path(text).suffix:
        raise FileError(f"key: {text}: no such file")
    return AnswerKey(row_of=text)


def _key_of_table(table: Table, label: str) -> AnswerKey:
    """The key in a table: a column of items and one of answers, or a row with a cell an item."""
    plain = {plain_name(name): name for name in reversed(table.frame.columns)}
    item = next((plain[name] for name in ITEM_HEADINGS if name in plain), None)
    right = next(
        (plain[name] for name in ANSWER_HEADINGS if name in plain and plain[name] != item), None
    )
    if item is not None and right is not None:
        items = column_texts(table, item)
        return AnswerKey(dict(zip(items, column_texts(table, right), strict=True)))
    if len(table.frame) == 1:
        return AnswerKey({name: column_texts(table, name)[0] for name in table.frame.columns})
    if len(table.frame.columns) == 2:
        first, second = table.frame.columns
        items = [first, *column_texts(table, first)]  # whose heading is an item too
        return AnswerKey(dict(zip(items, [second, *column_texts(table, second)], strict=True)))
    raise ResponseError(
        f"key: {label} has {len(table.frame):,} rows and the columns "
        f"{display_names(table.frame.columns)}; give a row with the right answer in each item's "
        f"column, or the columns item and key"
    )


def score(
    table: Table,
    key: AnswerKey,
    roles: Mapping[str, str | None],
    order: Sequence[str],
    code: Mapping[str, float],
) -> Table:
    """A table of one row an answer, with 1 for right answers and 0 for others.

    Parameters
    ----------
    table : Table
    key : AnswerKey
    roles : mapping of role to column
        With id, item and resp.
    order : sequence of str
        The items in the order of a key without their names.
    code : mapping of word to number
        What some answers stand for, whatever the key says; NaN: they are none.

    Raises
    ------
    ResponseError
        If answered items have no right answer, answers are none that could be chosen, or not one
        of them is right.
    """
    resp = str(roles["resp"])
    if key.row_of is not None:
        table, key = _take_key_row(table, key.row_of, roles, len(order))
    right = _right_answers(key, order)
    items, item = _distinct_texts(table, str(roles["item"]))
    _refuse_items_without_key(items, right)
    answers, answer = _distinct_texts(table, resp)
    plain = [_plain_answer(text) for text in answers]
    stated = {loose_label_text(word): float(points) for word, points in code.items()}
    points_of = np.array([stated.get(text, np.nan) for text in plain])
    missing = np.array(
        [np.isnan(stated[text]) if text in stated else is_no_answer(text) for text in plain],
        dtype=bool,
    )
    _refuse_odd_answers(plain, np.bincount(answer, minlength=len(answers)), right, stated)
    points = np.where(
        np.isnan(points_of[answer]), _marked(items, item, plain, answer, right), points_of[answer]
    )
    if not (points * ~missing[answer]).any() and not missing.all():
        raise ResponseError(
            f"key: not one of {count_noun(len(points), 'answers')} is right by this key "
            f"({_shown(right)}); is it the key of these items?"
        )
    values = [None if gone else point for point, gone in zip(points, missing[answer], strict=True)]
    scored = with_column(table, resp, values, nw.Float64)
    unused = [name for name in right if name not in set(items)]
    notes = [f"resp: scored by the key of {count_noun(len(right), 'items')}"]
    words = [repr(text) for text in plain if is_no_answer(text) and text not in MISSING]
    if words:
        notes.append(f"resp: {', '.join(words[:MOST_TOLD])} counted as no answer")
    if unused:
        notes.append(f"key: nobody answered {display_names(unused, most=6)}")
    return with_notes(scored, *notes)


def _marked(
    items: Sequence[str],
    item: np.ndarray[Any, Any],
    plain: Sequence[str],
    answer: np.ndarray[Any, Any],
    right: Mapping[str, set[str]],
) -> np.ndarray[Any, Any]:
    """1 for rows with a right answer, 0 for others; rows hold numbers of items and answers."""
    pairs, pair = np.unique(item * len(plain) + answer, return_inverse=True)
    marks = [plain[k % len(plain)] in right.get(items[k // len(plain)], ()) for k in pairs.tolist()]
    return np.array(marks, dtype=np.float64)[pair]


def _refuse_odd_answers(
    answers: Sequence[str],
    counts: np.ndarray[Any, Any],
    right: Mapping[str, set[str]],
    stated: Mapping[str, float],
) -> None:
    """Where the right answers are letters, refuse what is neither letters to choose nor none.

    Several letters are an answer, if a wrong one: somebody chose two.
    """
    letters = {text for texts in right.values() for text in texts}
    if not all(len(text) == 1 and text.isalpha() for text in letters):
        return
    letters |= {text for text in answers if len(text) == 1 and text.isalpha()}
    odd = [
        (text, int(count))
        for text, count in zip(answers, counts, strict=True)
        if not (text in stated or is_no_answer(text) or _can_be_chosen(text, letters))
    ]
    if not odd:
        return
    told = ", ".join(f"{text!r} ({count:,} times)" for text, count in odd[:MOST_TOLD])
    none = option("code", {odd[0][0]: float("nan")})
    wrong = option("code", {odd[0][0]: 0})
    raise ResponseError(
        f"key: some answers are no letters to choose: {told}; say what they stand for, such as "
        f"{none} (no answer) or {wrong} (wrong)"
    )


def _can_be_chosen(text: str, letters: set[str]) -> bool:
    """Whether a text is one or more of some letters."""
    chosen = set(re.sub(r"[\W_]", "", text))
    return bool(chosen) and chosen <= letters


def _shown(right: Mapping[str, set[str]]) -> str:
    """The first right answers of a key."""
    told = [f"{item}={'|'.join(sorted(texts))}" for item, texts in right.items()]
    return ", ".join(told[:MOST_TOLD]) + (", …" if len(told) > MOST_TOLD else "")


def _take_key_row(
    table: Table, name: str, roles: Mapping[str, str | None], n_items: int
) -> tuple[Table, AnswerKey]:
    """The key in the rows of one id, and the table without them; or a letter for each item."""
    ids = np.array([loose_label_text(text) for text in column_texts(table, str(roles["id"]))])
    of_key = ids == loose_label_text(name)
    is_word = KEY_ROW.fullmatch(name.strip().lower()) is not None
    if not of_key.any() and len(name) == n_items and not is_word:
        return table, AnswerKey(in_order=tuple(name))
    if not of_key.any():
        raise ResponseError(
            f"key: {name!r} is no file, no answers such as 'Q1=A,Q2=C', no letter for each of "
            f"{count_noun(n_items, 'items')}, and the id of no row"
        )
    items = column_texts(table, str(roles["item"]))
    answers = column_texts(table, str(roles["resp"]))
    rows = np.flatnonzero(of_key).tolist()
    return keep_rows(table, ~of_key), AnswerKey({items[k]: answers[k] for k in rows})


def _right_answers(key: AnswerKey, order: Sequence[str]) -> dict[str, set[str]]:
    """The right answers of each item, without what people overlook; blank ones are none."""
    if key.in_order is not None:
        if len(key.in_order) != len(order):
            raise ResponseError(
                f"key: {count_noun(len(key.in_order), 'answers')} for "
                f"{count_noun(len(order), 'items')} ({display_names(order)}); give one for each"
            )
        by_item = dict(zip(order, key.in_order, strict=True))
    else:
        by_item = dict(key.by_item or {})
    return {
        item: {_plain_answer(part) for part in SEPARATORS.split(right)}
        for item, right in by_item.items()
        if right.strip()
    }


def _plain_answer(text: str) -> str:
    """An answer without space around it, case, and the point of 3.0."""
    loose = loose_label_text(text)
    return loose.removesuffix(".0")


def _refuse_items_without_key(items: Sequence[str], right: Mapping[str, set[str]]) -> None:
    without = [name for name in items if name and name not in right]
    if without:
        raise ResponseError(
            f"key: {len(without)} of {count_noun(len(items), 'items')} have no right answer "
            f"({display_names(without, most=6)}); add theirs, or leave them out by "
            f"{option('only', ['Q*'])}"
        )


def _distinct_texts(table: Table, name: str) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The distinct values of a column as text, and the number of each row's."""
    series = table.frame[name]
    raw = np.asarray(series.to_numpy(), dtype=object)
    texts, index = np.unique(as_text(raw, null_mask(series)), return_inverse=True)
    return [_whole(text) for text in texts.tolist()], index


def _whole(text: str) -> str:
    """A number that a frame has made 3.0, as 3."""
    return text.removesuffix(".0") if text.replace(".", "", 1).isdigit() else text
