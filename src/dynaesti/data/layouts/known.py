"""Layouts of well-known sources, recognised by their headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynaesti.data.headings import plain_name
from dynaesti.data.labels import count_noun, label_text
from dynaesti.data.layouts.layout import column_texts, keep_rows, with_column, with_notes
from dynaesti.data.readers.table import Table
from dynaesti.data.response_words import MISSING

NO_ANSWER = float("nan")  # as the meaning of a value


@dataclass(frozen=True)
class Origin:
    """Where the values of a role come from, by the plain names of columns.

    how: "first" takes the first column there is, "join" writes the values of all one after the
    other, "fill" takes in each row the first value there is, "file" the name of the file.
    """

    names: tuple[str, ...]
    how: str = "first"


@dataclass(frozen=True)
class Source:
    """A well-known source of answers."""

    name: str
    headings: frozenset[str]  # plain names that its tables have
    origins: Mapping[str, Origin]  # by role
    code: Mapping[str, float] = field(default_factory=dict)
    once: str | None = None  # rows alike in this column are one answer
    kept: tuple[str, str, str] | None = None  # column, value of rows to keep, what others are


def _source(name: str, headings: str, origins: Mapping[str, str | Origin], **more: Any) -> Source:
    return Source(
        name,
        frozenset(headings.split()),
        {
            role: origin if isinstance(origin, Origin) else Origin((origin,))
            for role, origin in origins.items()
        },
        **more,
    )


STEP = Origin(("problem_name", "step_name"), "join")
STEP_TIME = Origin(("first_transaction_time", "step_start_time"))
OUTCOMES = {"correct": 1.0, "incorrect": 0.0, "hint": 0.0}
SOURCES = (
    _source(
        "DataShop (transactions)",
        "anon_student_id problem_name step_name attempt_at_step outcome time",
        {"id": "anon_student_id", "item": STEP, "resp": "outcome", "time": "time"},
        code=OUTCOMES,
        kept=("attempt_at_step", "1", "later attempts at a step"),
    ),
    _source(
        "KDD Cup 2010",
        "anon_student_id problem_name step_name correct_first_attempt",
        {"id": "anon_student_id", "item": STEP, "resp": "correct_first_attempt", "time": STEP_TIME},
    ),
    _source(
        "DataShop (steps)",
        "anon_student_id problem_name step_name first_attempt",
        {"id": "anon_student_id", "item": STEP, "resp": "first_attempt", "time": STEP_TIME},
        code=OUTCOMES,
    ),
    _source(
        "ASSISTments 2009",
        "order_id user_id problem_id correct skill_id",
        {"id": "user_id", "item": "problem_id", "resp": "correct", "time": "order_id"},
        once="order_id",
    ),
    _source(
        "ASSISTments 2012",
        "problem_log_id user_id problem_id correct start_time",
        {"id": "user_id", "item": "problem_id", "resp": "correct", "time": "start_time"},
        once="problem_log_id",
    ),
    _source(
        "ASSISTments 2015",
        "log_id user_id sequence_id correct",
        {"id": "user_id", "item": "sequence_id", "resp": "correct", "time": "log_id"},
    ),
    _source(
        "ASSISTments 2017",
        "studentid problemid starttime correct",
        {"id": "studentid", "item": "problemid", "resp": "correct", "time": "starttime"},
    ),
    _source(
        "EdNet KT1",
        "timestamp solving_id question_id user_answer",
        {
            "id": Origin(("user_id",), "file"),
            "item": "question_id",
            "resp": "user_answer",
            "time": "timestamp",
        },
    ),
    _source(
        "Riiid (EdNet)",
        "timestamp user_id content_id content_type_id answered_correctly",
        {"id": "user_id", "item": "content_id", "resp": "answered_correctly", "time": "timestamp"},
        kept=("content_type_id", "0", "lectures"),
    ),
    _source(
        "Voteview",
        "congress chamber rollnumber icpsr cast_code",
        {
            "id": "icpsr",
            "item": Origin(("chamber", "congress", "rollnumber"), "join"),
            "resp": "cast_code",
            "time": Origin(("date", "congress")),
        },
        code={
            **dict.fromkeys("123", 1.0),
            **dict.fromkeys("456", 0.0),
            **dict.fromkeys("0789", NO_ANSWER),
        },
    ),
    _source(
        "UN votes",
        "rcid vote",
        {
            "id": Origin(("country", "countryname", "country_name", "ccode", "stateabb")),
            "item": "rcid",
            "resp": "vote",
            "time": Origin(("date", "year", "session")),
        },
        code={
            **dict.fromkeys(("1", "yes"), 1.0),
            **dict.fromkeys(("3", "no"), 0.0),
            **dict.fromkeys(("2", "abstain", "8", "absent", "9"), NO_ANSWER),
        },
    ),
    _source(
        "xAPI",
        "verb_id object_id",
        {
            "id": Origin(
                (
                    "actor_account_name",
                    "actor_mbox",
                    "actor_mbox_sha1sum",
                    "actor_openid",
                    "actor_name",
                ),
                "fill",
            ),
            "item": "object_id",
            "resp": Origin(("result_success", "result_score_scaled"), "fill"),
            "time": Origin(("timestamp", "stored"), "fill"),
        },
    ),
)


@dataclass(frozen=True)
class KnownLayout:
    """A table of a well-known source."""

    source: Source
    roles: Mapping[str, str]
    derived: Mapping[str, Origin]  # columns that are made of others

    @property
    def code(self) -> Mapping[str, float]:
        """Numbers that values of the responses stand for."""
        return self.source.code

    def apply(self, table: Table) -> Table:
        """The table with the columns that are made of others, without rows that are no answers."""
        source = self.source
        by_plain_name = _by_plain_name(table)
        notes = [f"headings are those of {source.name}"]
        for name, origin in self.derived.items():
            columns = [by_plain_name[part] for part in origin.names if part in by_plain_name]
            table = with_column(table, name, _values(table, columns, origin.how))
        before = len(table.frame)
        if source.once is not None:
            table = keep_rows(table, _first_of_each(table, by_plain_name[source.once]))
            if len(table.frame) < before:
                notes.append(
                    f"{count_noun(before - len(table.frame), 'rows')} repeat an answer for another "
                    f"skill ({by_plain_name[source.once]!r}) and were left out"
                )
        if source.kept is not None:
            column, value, others = source.kept
            texts = column_texts(table, by_plain_name[column])
            keep = np.array([label_text(text) == value for text in texts], dtype=bool)
            table = keep_rows(table, keep)
            if not keep.all():
                notes.append(f"{int((~keep).sum()):,} rows are {others} and were left out")
        return with_notes(table, *notes)


def find_known(table: Table, given: Mapping[str, str | None]) -> KnownLayout | None:
    """The layout of a well-known source, if the headings are one's; named columns are as named."""
    by_plain_name = _by_plain_name(table)
    source = next((one for one in SOURCES if one.headings <= by_plain_name.keys()), None)
    if source is None:
        return None
    roles: dict[str, str] = {}
    derived: dict[str, Origin] = {}
    for role, origin in source.origins.items():
        names = [by_plain_name[name] for name in origin.names if name in by_plain_name]
        if given.get(role) in table.frame.columns:
            continue
        if origin.how == "file" and not names and table.sources:
            roles[role] = "file"
            derived["file"] = origin
        elif names and (origin.how in ("first", "file") or len(names) == 1):
            roles[role] = names[0]
        elif names:
            roles[role] = " / ".join(names)
            derived[roles[role]] = origin
    return KnownLayout(source, roles, derived)


def _by_plain_name(table: Table) -> dict[str, str]:
    return {plain_name(name): name for name in reversed(table.frame.columns)}


def _values(table: Table, columns: Sequence[str], how: str) -> list[str | None]:
    """The values of a column that is made of others."""
    if how == "file":
        return [
            Path(one.name).name.partition(".")[0] for one in table.sources for _ in range(one.rows)
        ]
    rows = zip(*(column_texts(table, name) for name in columns), strict=True)
    if how == "join":
        return [" / ".join(map(_whole, row)) for row in rows]
    return [
        next((text for text in row if text.strip().lower() not in MISSING), None) for row in rows
    ]


def _whole(text: str) -> str:
    return text.removesuffix(".0")


def _first_of_each(table: Table, column: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each row is the first with its value."""
    texts = np.array(column_texts(table, column), dtype=object).astype(str)
    _, first = np.unique(texts, return_index=True)
    keep = np.zeros(texts.size, dtype=bool)
    keep[first] = True
    return keep
