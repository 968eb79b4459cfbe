"""What the service asks of a database: a log of answers, people, scorers and keys."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dynaesti.errors import InputError
from dynaesti.serve.rows import COLUMNS_OF_PERSON, AnswerRow, PersonRow

VERSION = "1"  # of the tables
CHUNK = 2000  # people or answers of one statement
# {serial}, {text}, {float}, {bytes} are the database's own words; text is compared by code points
TABLES = (
    "CREATE TABLE IF NOT EXISTS dynaesti_meta (name {text} PRIMARY KEY, value {text} NOT NULL)",
    "CREATE TABLE IF NOT EXISTS dynaesti_answers (seq {serial}, id {text} NOT NULL, "
    "item {text} NOT NULL, resp {float} NOT NULL, time {float} NOT NULL, key {text} NOT NULL, "
    "columns {text}, UNIQUE (id, key))",
    "CREATE TABLE IF NOT EXISTS dynaesti_people (id {text} PRIMARY KEY, "
    "total BIGINT NOT NULL DEFAULT 0, scorer BIGINT NOT NULL DEFAULT 0, state {bytes}, "
    "answers BIGINT NOT NULL DEFAULT 0, time {float}, key {text}, "
    "mean {float}, sd {float}, lower {float}, upper {float})",
    # states that a refit has made ahead, which are taken when its scorer is served
    "CREATE TABLE IF NOT EXISTS dynaesti_prepared (id {text} NOT NULL, scorer BIGINT NOT NULL, "
    "total BIGINT NOT NULL, state {bytes} NOT NULL, answers BIGINT NOT NULL, time {float}, "
    "key {text}, mean {float}, sd {float}, lower {float}, upper {float}, "
    "PRIMARY KEY (id, scorer))",
    "CREATE TABLE IF NOT EXISTS dynaesti_scorers (scorer BIGINT PRIMARY KEY, "
    "fingerprint {text} NOT NULL, made {text} NOT NULL, bytes {bytes} NOT NULL, "
    "report {text} NOT NULL)",
    "CREATE TABLE IF NOT EXISTS dynaesti_keys (name {text} PRIMARY KEY, digest {text} NOT NULL, "
    "roles {text} NOT NULL, made {text} NOT NULL)",
    "CREATE INDEX IF NOT EXISTS dynaesti_people_stale ON dynaesti_people (scorer)",
)
PERSON = ", ".join(COLUMNS_OF_PERSON)
PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


class Transaction(ABC):
    """What is read and written together."""

    @abstractmethod
    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""

    @abstractmethod
    def run_many(self, sql: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement for many values."""

    @abstractmethod
    def within(self, name: str) -> str:
        """The end of a condition: is one of the list of texts of this name."""

    def lower(self, column: str) -> str:
        """A column of text in lower case, letters with accents too."""
        return f"LOWER({column})"

    @abstractmethod
    def lock_people(self, ids: Sequence[str]) -> dict[str, PersonRow]:
        """The rows of people, made where absent; nobody else writes them until the end."""

    @abstractmethod
    def add_answers(self, answers: Sequence[AnswerRow]) -> set[tuple[str, str]]:
        """Log answers; (id, key) of those that were not there yet."""

    @abstractmethod
    def write_people(self, people: Sequence[PersonRow]) -> None:
        """Write rows of people that are there."""

    @abstractmethod
    def notify(self, messages: Sequence[str]) -> None:
        """Tell other workers on the same database, once this is committed."""

    def run(self, sql: str, **values: Any) -> None:
        """Run a statement."""
        self.run_many(sql, [values])

    def logs(self, ids: Sequence[str]) -> dict[str, list[AnswerRow]]:
        """All answers of people, in the order in which states take them in."""
        found: dict[str, list[AnswerRow]] = {one: [] for one in ids}
        for first in range(0, len(ids), CHUNK):
            for row in self.rows(
                "SELECT id, item, resp, time, key, columns, seq FROM dynaesti_answers WHERE id "
                + self.within("ids"),
                ids=list(ids[first : first + CHUNK]),
            ):
                found[row[0]].append(AnswerRow(*row))
        for answers in found.values():
            answers.sort(key=lambda one: one.order)
        return found

    def people(self, ids: Sequence[str]) -> dict[str, PersonRow]:
        """The rows of people that are there."""
        found = self.rows(
            f"SELECT {PERSON} FROM dynaesti_people WHERE id {self.within('ids')}", ids=list(ids)
        )
        return {row[0]: person_row(row) for row in found}

    def prepared(self, ids: Sequence[str], scorer: int) -> dict[str, PersonRow]:
        """Rows that a refit has made ahead for a scorer."""
        found = self.rows(
            "SELECT id, total, scorer, state, answers, time, key, mean, sd, lower, upper "
            f"FROM dynaesti_prepared WHERE scorer = :scorer AND id {self.within('ids')}",
            ids=list(ids),
            scorer=scorer,
        )
        return {row[0]: person_row(row) for row in found}

    def meta(self, name: str) -> str | None:
        """A fact about the whole database."""
        found = self.rows("SELECT value FROM dynaesti_meta WHERE name = :name", name=name)
        return str(found[0][0]) if found else None

    def set_meta(self, name: str, value: str) -> None:
        """Write a fact about the whole database."""
        self.run(
            "INSERT INTO dynaesti_meta (name, value) VALUES (:name, :value) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name=name,
            value=value,
        )


class Database(ABC):
    """A database with the service's tables."""

    name: str
    label: str  # for messages, without a password
    workers: bool  # whether several processes may write

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Transaction]:
        """Read and write together, durably at its end; one at a time in a process."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """Read, in any thread, as of one moment."""

    @abstractmethod
    def exclusive(self) -> AbstractContextManager[Transaction]:
        """A transaction that no other one of this kind runs beside."""

    @abstractmethod
    def listen(self, seconds: float) -> Iterator[str]:
        """Messages of all workers, this one's too; ends after a while without any."""

    @abstractmethod
    def is_lost(self, error: Exception) -> bool:
        """Whether an error says that the database cannot be reached or is full."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    def create(self) -> None:
        """Make the tables where they are absent.

        Raises
        ------
        InputError
            If they were made by a later version.
        """
        with self.exclusive() as tx:
            for table in TABLES:
                tx.run(self.spelled(table))
            version = tx.meta("version")
            if version is None:
                tx.set_meta("version", VERSION)
            elif version != VERSION:
                raise InputError(
                    f"db: {self.label} has tables of version {version}, and this dynaesti knows "
                    f"{VERSION}; upgrade dynaesti"
                )

    @abstractmethod
    def spelled(self, table: str) -> str:
        """A table's definition in the words of the database."""


def person_row(row: Sequence[Any]) -> PersonRow:
    """A row of people as it was read."""
    found = PersonRow(*row)
    if found.state is not None:
        found.state = bytes(found.state)
    return found


def open_database(address: str) -> Database:
    """The database at an address such as ``sqlite:///answers.db`` or ``postgresql://host/name``.

    Raises
    ------
    InputError
        If the address is of no kind that a service can use.
    """
    scheme = address.partition("://")[0].lower()
    if scheme == "sqlite":
        from dynaesti.serve.sqlite_database import SQLiteDatabase

        return SQLiteDatabase(address)
    if scheme in ("postgresql", "postgres"):
        from dynaesti.serve.postgresql_database import PostgreSQLDatabase

        return PostgreSQLDatabase(address)
    raise InputError(
        "db: expected an address such as sqlite:///answers.db or postgresql://user@host/name"
    )
