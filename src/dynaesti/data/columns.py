"""Columns of a table as numbers or labels, found by their names."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from dynaesti.core import Array, Bools
from dynaesti.data.labels import display_label
from dynaesti.data.read_log import ReadLog
from dynaesti.data.readers.table import Table
from dynaesti.errors import ResponseError, option

SYNONYMS = {
    "id": (
        "id",
        "person",
        "student",
        "user",
        "user_id",
        "userid",
        "student_id",
        "studentid",
        "anon_student_id",
        "learner",
        "learner_id",
        "respondent",
        "subject",
        "subject_id",
        "player",
        "pid",
        "person_id",
        "name",
    ),
    "item": (
        "item",
        "problem",
        "question",
        "item_id",
        "itemid",
        "problem_id",
        "problemid",
        "question_id",
        "task",
        "exercise",
        "skill",
        "case",
        "hole",
        "route",
    ),
    "resp": (
        "resp",
        "response",
        "correct",
        "score",
        "answer",
        "is_correct",
        "outcome",
        "result",
        "vote",
        "y",
        "value",
    ),
    "time": (
        "date",
        "time",
        "timestamp",
        "ts",
        "when",
        "datetime",
        "day",
        "days",
        "year",
        "start_time",
        "starttime",
        "created_at",
        "wave",
    ),
}
ABSENT = "\0"  # no column can be called so
MOST_NAMES = 500  # columns that are searched for one that was meant
MISSING = frozenset(("", "na", "n/a", "nan", "none", "null", "."))
WORDS = {
    "true": 1.0,
    "false": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "correct": 1.0,
    "incorrect": 0.0,
    "right": 1.0,
    "wrong": 0.0,
    "pass": 1.0,
    "fail": 0.0,
}


def find_column(
    table: Table, key: str, given: str | None, notes: list[str], optional: bool = False
) -> str | None:
    """The name of the column that plays a role.

    As given, the default, or a synonym, which is told.
    """
    names = [str(name) for name in table.frame.columns]
    if given is not None:
        if given in names:
            return given
        near = get_close_matches(str(given), names[:MOST_NAMES], n=3, cutoff=0.4)
        raise ResponseError(
            f"{key}: no column {given!r}; {f'did you mean {near[0]!r}? ' if near else ''}There "
            f"are: {display_label(names)}"
        )
    lowered = {name.lower().strip().replace(" ", "_"): name for name in reversed(names)}
    for synonym in SYNONYMS[key]:
        if synonym in lowered:
            if lowered[synonym] != SYNONYMS[key][0]:
                notes.append(f"{key} is {lowered[synonym]!r}")
            return lowered[synonym]
    if optional:
        return None
    near = [
        name
        for synonym in SYNONYMS[key]
        for name in get_close_matches(synonym, names[:MOST_NAMES], n=1, cutoff=0.7)
    ]
    hint = (
        f"; did you mean {option(key, near[0])}?" if near else f"; name it: {option(key, 'name')}"
    )
    rest = (
        f", or fit one constant ability per person ({option('bandwidth', np.inf)}; when preparing "
        f"shards {option('timeless', True)})"
        if key == "time"
        else ""
    )
    raise ResponseError(f"no column for {key} among {display_label(names)}{hint}{rest}")


def nulls(series: nw.Series[Any]) -> Bools:
    """Where a column has no value."""
    return np.array(
        series.is_null().to_numpy(), dtype=bool
    )  # a copy: frame libraries hand out read-only views


def parse_numbers(
    series: nw.Series[Any], name: str, found: ReadLog, code: Mapping[str, float] | None = None
) -> tuple[Array, Bools]:
    """A column as floats, and which are missing.

    Text is parsed; what is no number, nor has a code, is complained of.
    """
    missing = nulls(series)
    quick = None if code else floats(series)
    if quick is not None:
        values = quick
    else:
        values, missing = _numbers_of_text(
            np.asarray(series.to_numpy(), dtype=object), missing, name, found, code or {}
        )
    missing |= np.isnan(values) & ~found.bad
    infinite = np.isinf(values)
    found.complain(infinite, name, "are infinite")
    values[infinite] = np.nan
    return values, missing


def floats(series: nw.Series[Any]) -> Array | None:
    """The column as floats in one go; None where some text is no number."""
    if series.dtype == nw.Object:
        return _floats_of_objects(series.to_list())
    if not (series.dtype.is_numeric() or series.dtype in (nw.Boolean, nw.String)):
        return None
    try:
        return np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    except Exception:  # each frame library has errors of its own
        return None


def _floats_of_objects(values: list[Any]) -> Array | None:
    """Numbers that a frame holds as objects; None where some are no numbers."""
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


DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")
THOUSAND_POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")


def written_numbers(texts: list[str]) -> tuple[Array, bool]:
    """Texts as numbers (NaN where they are none), and whether commas were read as decimal points.

    Commas that could all part thousands are not read at all: 1,000 may be either. Nor are points
    that could, beside decimal commas.
    """
    commas = [text for text in texts if DECIMAL_COMMA.fullmatch(text)]
    decimal = any(not THOUSANDS.fullmatch(text) for text in commas)
    out = np.full(len(texts), np.nan)
    for k, text in enumerate(texts):
        if decimal and THOUSAND_POINTS.fullmatch(text):
            continue
        try:
            out[k] = float(
                text.replace(",", ".") if decimal and DECIMAL_COMMA.fullmatch(text) else text
            )
        except ValueError:
            continue
    return out, decimal


def _numbers_of_text(
    raw: npt.NDArray[Any], missing: Bools, name: str, found: ReadLog, code: Mapping[str, float]
) -> tuple[Array, Bools]:
    texts, place = np.unique(as_text(raw, missing), return_inverse=True)
    plain = [text.strip().lower() for text in texts.tolist()]
    meaning = WORDS | {word.strip().lower(): float(value) for word, value in code.items()}
    values, commas = written_numbers(plain)
    coded = [text for text in plain if text in meaning]
    for k, text in enumerate(plain):
        values[k] = meaning.get(text, values[k])
    absent = np.array([text in MISSING and text not in meaning for text in plain])
    odd = np.isnan(values) & ~absent & np.array([text != "nan" for text in plain])
    if coded:
        found.notes.append(
            f"{name}: " + ", ".join(f"{word!r} counts as {meaning[word]:g}" for word in coded[:8])
        )
    if commas:
        found.notes.append(f"{name}: commas were read as decimal points")
    found.complain(odd[place], name, "hold text where numbers belong", raw)
    found.wordy |= bool(odd.any())
    return values[place], missing | absent[place]


def as_text(raw: npt.NDArray[Any], missing: Bools) -> npt.NDArray[np.str_]:
    """Values as they are written, nothing where they are missing."""
    try:
        return np.where(missing, "", raw).astype(str)
    except ValueError:  # lists among them
        return np.array(
            ["" if gone else str(value) for value, gone in zip(raw, missing, strict=True)]
        )


def parse_labels(series: nw.Series[Any], name: str, found: ReadLog) -> npt.NDArray[Any]:
    """A column as labels; rows without one are complained of."""
    blank = nulls(series)
    if (
        series.dtype.is_integer()
    ):  # without the gaps: beside them frame libraries hand over floats, which round long ids
        some = series.filter((~blank).tolist()) if blank.any() else series
        try:
            whole = np.asarray(some.to_numpy())
        except Exception:  # wider than 64 bits: as written
            whole = np.array(some.cast(nw.String).to_list(), dtype=object)
        if whole.dtype.kind == "O" and any(
            not isinstance(value, int) or abs(value) >= 2**63 for value in whole.tolist()
        ):
            values = np.full(blank.size, "", dtype=object)
            values[~blank] = [str(value) for value in whole.tolist()]
            found.complain(blank, name, "have none")
            return values
        values = np.zeros(blank.size, dtype=np.int64 if whole.dtype.kind == "O" else whole.dtype)
        values[~blank] = whole
    else:
        values = np.asarray(series.to_numpy())
    if values.dtype.kind == "f":
        blank |= np.isnan(values)
        rounded = np.flatnonzero((np.abs(values) >= EXACT) & ~blank)
        if rounded.size:
            first = int(rounded[0])
            raise ResponseError(
                f"{name}: {rounded.size:,} of {blank.size:,} are numbers with a point beyond 2⁵³ "
                f"(first: "
                f"{values[first]:.0f} in {found.table.where(first)}), where neighbours cannot be "
                f"told apart; read them as "
                "text or whole numbers"
            )
    found.complain(blank, name, "have none")
    if values.dtype.kind == "O":
        values = _checked_names(values, name, found)
    return values


EXACT = 2.0**53  # whole numbers below are told apart by floats


def _checked_names(values: npt.NDArray[Any], name: str, found: ReadLog) -> npt.NDArray[Any]:
    """Names of any kind; lists and the like, and text with lone surrogates, which no file, frame or
    page could take, are complained of.
    """
    try:
        kinds = set(values.tolist())
    except TypeError:
        found.complain(
            np.array([not isinstance(value, Hashable) for value in values.tolist()]),
            name,
            "hold lists or the like",
        )
        values = np.array(
            ["" if bad else value for value, bad in zip(values.tolist(), found.bad, strict=True)],
            dtype=object,
        )
        kinds = set(values.tolist())
    torn = {
        value
        for value in kinds
        if isinstance(value, str) and not value.isascii() and _is_torn(value)
    }
    if torn:
        found.complain(
            np.array([isinstance(value, str) and value in torn for value in values.tolist()]),
            name,
            "hold text that cannot be written down (half of a character pair)",
        )
    return values


def _is_torn(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
