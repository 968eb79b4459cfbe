"""Columns of a table: found by their names, and parsed as numbers or labels.

Parsers take the name by which messages call the column and a `ReadLog`; rows that cannot be read
are rejected in the log, and their values mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools
from dynaesti.data.date_formats import is_date
from dynaesti.data.headings import (
    SYNONYMS,
    guess,
    recognise,
    resemble_data,
    sides_of_matches,
    speaks_of_others,
)
from dynaesti.data.labels import display_names, label_text
from dynaesti.data.read_log import ReadLog
from dynaesti.data.readers.table import Table
from dynaesti.data.response_words import (
    MISSING,
    SEVERAL,
    is_choice,
    is_no_answer,
    meanings,
    written_numbers,
)
from dynaesti.errors import MissingColumnError, ResponseError, option

ABSENT = "\0"  # stands for "there is no such column"; no column can be called so
MOST_NAMES_COMPARED = 500  # columns that are searched for a similar name, when one is missing
PROBED = 100  # values that are converted before all are
MOST_TOLD = 10  # words whose meaning is told
LARGEST_EXACT = 2.0**53  # whole numbers below this differ as floats too
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
COMMA_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
POINT_THOUSANDS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")


# --- finding columns


def find_column(
    table: Table, role: str, given: str | None, notes: list[str], optional: bool = False
) -> str | None:
    """Find the column that plays a role: the one given, or one with a usual name.

    Parameters
    ----------
    table : Table
        Where to look.
    role : str
        A key of SYNONYMS; any name if `given` is not None.
    given : str, optional
        The column's name as the user gave it.
    notes : list of str
        Gets a note if a column was recognised by a name other than the role's first.
    optional : bool, default=False
        Whether the table may lack such a column.

    Returns
    -------
    str or None
        The column's name; None only if it is optional and missing.

    Raises
    ------
    MissingColumnError
        If there is no such column; the message names similar ones.
    """
    names = [str(name) for name in table.frame.columns]
    if given is not None:
        if given in names:
            return given
        raise _given_column_missing(role, given, names)
    found = guess_columns(table, role)
    if found:
        others = found[1:] if role == "time" else []
        beside = f" (not {', '.join(map(repr, others))})" if others else ""
        if found[0] != SYNONYMS[role][0] or others:
            notes.append(f"{role} is {found[0]!r}{beside}")
        return found[0]
    if optional:
        return None
    raise _no_column_recognised(role, [name for name in names if name not in table.made])


def guess_columns(table: Table, role: str) -> list[str]:
    """The columns that a role's usual headings name; else the only column of dates, for times."""
    names = list(table.frame.columns)
    found = guess(names, role)
    if found or role != "time":
        return found
    dates = [name for name in names if not speaks_of_others(name) and _holds_dates(table, name)]
    return dates if len(dates) == 1 else []


def _holds_dates(table: Table, name: str) -> bool:
    """Whether a column holds dates, by its type or its first values."""
    series = table.frame[name]
    if series.dtype in (nw.Datetime, nw.Date):
        return True
    if series.dtype != nw.String:
        return False
    given = [text for text in series.head(PROBED).to_list() if text and text.strip() not in MISSING]
    return bool(given) and all(is_date(text) for text in given)


def _given_column_missing(role: str, given: str, names: list[str]) -> MissingColumnError:
    similar = get_close_matches(str(given), names[:MOST_NAMES_COMPARED], n=3, cutoff=0.4)
    hint = f"did you mean {similar[0]!r}? " if similar else ""
    return MissingColumnError(
        f"{role}: no column {given!r}; {hint}There are: {display_names(names)}"
    )


def _no_column_recognised(role: str, names: list[str]) -> MissingColumnError:
    found = f"no column for {role} among {display_names(names)}"
    sides = sides_of_matches(names)
    if resemble_data(names):
        return MissingColumnError(
            f"{found}: the first line seems to be an answer already; write a line of headings "
            f"above it, such as id,item,resp,date"
        )
    if sides is not None and role in ("id", "item"):
        return MissingColumnError(
            f"{found}: {sides[0]!r} and {sides[1]!r} seem to be the two sides of matches, which "
            f"are no answers of a person to an item and cannot be fitted"
        )
    # a column that is known to be something else is not meant
    taken = {name for other in SYNONYMS if other != role for name in recognise(names, other)}
    free = [name for name in names[:MOST_NAMES_COMPARED] if name not in taken]
    similar = [
        name
        for synonym in SYNONYMS[role]
        for name in get_close_matches(synonym, free, n=1, cutoff=0.7)
    ]
    named = f"; name it: {option(role, 'name')}"
    hint = f"; did you mean {option(role, similar[0])}?" if similar else named
    if role == "item":
        columns = option("items", ["Q*"])
        hint += f", or, where items are columns, name those: {columns}"
    if role == "time":
        hint += (
            f", or fit one constant ability per person ({option('bandwidth', float('inf'))}; when "
            f"preparing shards {option('timeless', True)})"
        )
    return MissingColumnError(f"{found}{hint}")


def null_mask(series: nw.Series[Any]) -> Bools:
    """Where a column has no value: bool array (n_rows,)."""
    # a copy: frame libraries return read-only views
    return np.array(series.is_null().to_numpy(), dtype=bool)


# --- numbers


def parse_numbers(
    series: nw.Series[Any], name: str, log: ReadLog, code: Mapping[str, float] | None = None
) -> tuple[Array, Bools]:
    """Parse a column as floats.

    Text is parsed too. Values that are neither numbers, nor words in `code` or known ones, are
    rejected, and so are infinite ones.

    Returns
    -------
    values : array (n_rows,)
        NaN where missing or infinite.
    missing : bool array (n_rows,)
        Rows without a value.
    """
    missing = null_mask(series)
    numbers = None if code else try_floats(series)
    if numbers is not None:
        values = numbers
    else:
        raw = np.asarray(series.to_numpy(), dtype=object)
        values, missing = _parse_number_texts(raw, missing, name, log, code or {})
    missing |= np.isnan(values) & ~log.bad
    infinite = np.isinf(values)
    log.reject(infinite, name, "are infinite")
    values[infinite] = np.nan
    return values, missing


def try_floats(series: nw.Series[Any]) -> Array | None:
    """Convert a whole column to floats at once; None if some values are no numbers."""
    if series.dtype == nw.Object:
        return _try_floats_of_objects(series.to_list())
    if not (series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.String)):
        return None
    try:
        if series.dtype == nw.String:
            series.head(PROBED).cast(nw.Float64)  # all of them take long to fail
        return np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    except Exception:  # each frame library has errors of its own
        return None


def _try_floats_of_objects(values: list[Any]) -> Array | None:
    """Numbers that a frame holds as objects, as floats; None if some are no numbers."""
    if not all(
        value is None
        or (
            isinstance(value, int | float | Decimal | np.number)
            and not isinstance(value, bool | np.complexfloating)
        )
        for value in values
    ):
        return None
    try:
        return np.array([np.nan if value is None else float(value) for value in values])
    except (OverflowError, TypeError, ValueError):
        return None


def floats_of_texts(texts: list[str]) -> tuple[Array, bool]:
    """Texts as numbers (NaN where they are none), and whether commas were read as decimal points.

    If all commas could separate thousands, none is read: 1,000 may be a thousand or one. Beside
    decimal commas, points that could separate thousands are not read either.
    """
    with_comma = [text for text in texts if DECIMAL_COMMA.fullmatch(text)]
    decimal_commas = any(not COMMA_THOUSANDS.fullmatch(text) for text in with_comma)
    out = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        if decimal_commas and POINT_THOUSANDS.fullmatch(text):
            continue
        comma = decimal_commas and DECIMAL_COMMA.fullmatch(text)
        try:
            out[k] = float(text.replace(",", ".") if comma else text)
        except ValueError:
            continue
    return out, decimal_commas


def _parse_number_texts(
    raw: npt.NDArray[Any], missing: Bools, name: str, log: ReadLog, code: Mapping[str, float]
) -> tuple[Array, Bools]:
    """Text as numbers, and which are missing; each distinct text is parsed once."""
    texts, index = np.unique(as_text(raw, missing), return_inverse=True)
    plain = [text.strip().lower() for text in texts.tolist()]
    given = {label_text(word).strip().lower(): float(value) for word, value in code.items()}
    meaning = meanings(set(plain)) | given
    values, commas = floats_of_texts(plain)
    coded = {
        text: meaning[_whole(text, meaning)] for text in plain if _whole(text, meaning) in meaning
    }
    written = written_numbers(
        text
        for text, value in zip(plain, values, strict=True)
        if np.isnan(value) and text not in coded
    )
    for k, text in enumerate(plain):
        values[k] = coded.get(text, written.get(text, values[k]))
    absent = np.array(
        [np.isnan(coded[text]) if text in coded else is_no_answer(text) for text in plain],
        dtype=bool,
    )
    unreadable = np.isnan(values) & ~absent & np.array([text != "nan" for text in plain])
    log.notes += _told_meanings(name, coded, written)
    for_none = [text for text in plain if is_no_answer(text) and text not in {*MISSING, *coded}]
    if for_none:
        log.notes.append(f"{name}: {_few(list(map(repr, for_none)))} counted as no answer")
    used = {_whole(text, meaning) for text in coded}
    unused = [word for word in given if word not in used]
    if unused:
        log.notes.append(f"code: no response is {_few([repr(word) for word in unused])}")
    if commas:
        log.notes.append(f"{name}: commas were read as decimal points")
    words = [text.strip() for text, bad in zip(texts.tolist(), unreadable, strict=True) if bad]
    several = bool(words) and all(map(SEVERAL.fullmatch, words))
    what = "hold text where numbers belong"
    if several:
        what = "hold several answers each; write one answer a row, or one item a column"
    log.reject(unreadable[index], name, what, raw)
    log.beside_numbers |= bool(words) and bool(np.isfinite(values).any())
    # one word and gaps: a cross for what is right, and nothing for the rest
    crosses = len(words) == 1 and "" in plain and not np.isfinite(values).any()
    if not several:
        log.unread_words += ["", *words] if crosses else words
    log.needs_key |= len(words) > 1 and all(map(is_choice, words))
    # blanks that stand for something are no gaps
    return values[index], absent[index] if "" in coded else missing | absent[index]


def _whole(text: str, meaning: Mapping[str, float]) -> str:
    """A text as its meaning knows it: 9 for 9.0, which frames make of 9 beside gaps."""
    return text if text in meaning else text.removesuffix(".0")


def _told_meanings(
    name: str, coded: Mapping[str, float], written: Mapping[str, float]
) -> list[str]:
    """Notes on words that stand for numbers, and on numbers that were written with words."""
    notes = []
    told = [
        f"{word!r} is no answer" if np.isnan(number) else f"{word!r} counts as {number:g}"
        for word, number in coded.items()
    ]
    if told:
        notes.append(f"{name}: {_few(told)}")
    if written:
        told = [f"{text!r} is {number:g}" for text, number in written.items()]
        notes.append(f"{name}: numbers are written with words: {_few(told)}")
    return notes


def _few(told: Sequence[str]) -> str:
    """The first clauses, and how many more there are."""
    more = f" and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    return f"{', '.join(told[:MOST_TOLD])}{more}"


def as_text(raw: npt.NDArray[Any], missing: Bools) -> npt.NDArray[np.str_]:
    """Values as text, "" where they are missing."""
    try:
        return np.where(missing, "", raw).astype(str)
    except ValueError:  # lists among them
        return np.array(
            ["" if absent else str(value) for value, absent in zip(raw, missing, strict=True)]
        )


# --- labels


def parse_labels(series: nw.Series[Any], name: str, log: ReadLog) -> npt.NDArray[Any]:
    """Parse a column as labels (ids, item names); rows without one are rejected.

    Raises
    ------
    ResponseError
        If labels are floats so large that neighbouring whole numbers coincide.
    """
    blank = null_mask(series)
    if series.dtype.is_integer():
        values = _integer_labels(series, blank)
    else:
        values = np.asarray(series.to_numpy())
    if values.dtype.kind == "f":
        blank |= np.isnan(values)
        _refuse_rounded(values, blank, name, log)
    log.reject(blank, name, "have none")
    if values.dtype.kind == "O":
        values = _reject_unusable_names(values, name, log)
    return values


def _integer_labels(series: nw.Series[Any], blank: Bools) -> npt.NDArray[Any]:
    """Whole numbers, 0 where blank; as text, "" where blank, if some are beyond 64 bits."""
    # without the blanks: beside them frame libraries return floats, which round long ids
    given = series.filter((~blank).tolist()) if blank.any() else series
    try:
        whole = np.asarray(given.to_numpy())
    except Exception:  # wider than 64 bits
        whole = np.array(given.cast(nw.String).to_list(), dtype=object)
    if whole.dtype.kind == "O" and any(
        not isinstance(value, int) or abs(value) >= 2**63 for value in whole.tolist()
    ):
        texts = np.full(blank.size, "", dtype=object)
        texts[~blank] = [str(value) for value in whole.tolist()]
        return texts
    values = np.zeros(blank.size, dtype=np.int64 if whole.dtype.kind == "O" else whole.dtype)
    values[~blank] = whole
    return values


def _refuse_rounded(values: npt.NDArray[Any], blank: Bools, name: str, log: ReadLog) -> None:
    """Refuse float labels of 2⁵³ or more: distinct ids may have been rounded to the same one."""
    rounded = np.flatnonzero((np.abs(values) >= LARGEST_EXACT) & ~blank)
    if rounded.size:
        first = int(rounded[0])
        raise ResponseError(
            f"{name}: {rounded.size:,} of {blank.size:,} are numbers with a point beyond 2⁵³ "
            f"(first: {values[first]:.0f} in {log.table.where(first)}), where neighbours cannot "
            f"be told apart; read them as text or whole numbers"
        )


def _reject_unusable_names(values: npt.NDArray[Any], name: str, log: ReadLog) -> npt.NDArray[Any]:
    """Reject names that cannot be used; "" replaces those that cannot be hashed.

    Lists and the like cannot be compared. Text with lone surrogates cannot be written to any file,
    frame or page.
    """
    try:
        distinct = set(values.tolist())
    except TypeError:
        unhashable = np.array([not isinstance(value, Hashable) for value in values.tolist()])
        log.reject(unhashable, name, "hold lists or the like")
        values = np.array(
            ["" if bad else value for value, bad in zip(values.tolist(), log.bad, strict=True)],
            dtype=object,
        )
        distinct = set(values.tolist())
    unwritable = {
        value
        for value in distinct
        if isinstance(value, str) and not value.isascii() and not _can_be_encoded(value)
    }
    if unwritable:
        log.reject(
            np.array([isinstance(value, str) and value in unwritable for value in values.tolist()]),
            name,
            "hold text that cannot be written down (half of a character pair)",
        )
    return values


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
