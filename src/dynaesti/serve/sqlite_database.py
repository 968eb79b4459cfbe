"""The service's tables in a SQLite file: one writer, any number of readers."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dynaesti.errors import InputError, StorageError
from dynaesti.serve.database import PERSON, Database, Transaction, person_row
from dynaesti.serve.rows import COLUMNS_OF_PERSON, AnswerRow, PersonRow

WAIT = 30.0  # seconds for another process that writes
WORDS = {
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "text": "TEXT",
    "float": "REAL",
    "bytes": "BLOB",
}
UPDATE = (
    "UPDATE dynaesti_people SET "
    + ", ".join(f"{name} = ?" for name in COLUMNS_OF_PERSON[1:])
    + " WHERE id = ?"
)
INSERT = (
    "INSERT INTO dynaesti_answers (id, item, resp, time, key, columns) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id, key) DO NOTHING"
)


class SQLiteTransaction(Transaction):
    """A transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        given = {k: json.dumps(v) if isinstance(v, list) else v for k, v in values.items()}
        return self.connection.execute(sql, given).fetchall()

    def run_many(self, sql: str, values: Iterable[Mapping[str, Any]]) -> None:
        self.connection.executemany(sql, values)

    def within(self, name: str) -> str:
        return f"IN (SELECT value FROM json_each(:{name}))"

    def lock_people(self, ids: Sequence[str]) -> dict[str, PersonRow]:
        execute = self.connection.execute
        found = {}
        for one in ids:  # the writer's lock holds for the whole file
            row = execute(f"SELECT {PERSON} FROM dynaesti_people WHERE id = ?", (one,)).fetchone()
            if row is None:
                execute("INSERT INTO dynaesti_people (id) VALUES (?)", (one,))
            found[one] = PersonRow(one) if row is None else person_row(row)
        return found

    def add_answers(self, answers: Sequence[AnswerRow]) -> set[tuple[str, str]]:
        execute = self.connection.execute
        new = set()
        for one in answers:
            row = (one.id, one.item, one.resp, one.time, one.key, one.columns)
            if execute(INSERT, row).rowcount:
                new.add((one.id, one.key))
        return new

    def write_people(self, people: Sequence[PersonRow]) -> None:
        rows = [(*(getattr(one, name) for name in COLUMNS_OF_PERSON[1:]), one.id) for one in people]
        self.connection.executemany(UPDATE, rows)

    def notify(self, messages: Sequence[str]) -> None:
        """Nobody else is there to be told: a file has one writer."""


class SQLiteDatabase(Database):
    """A SQLite file in WAL mode; what was committed is on disk (synchronous=FULL)."""

    name = "sqlite"
    workers = False

    def __init__(self, address: str) -> None:
        path = unquote(urlsplit(address).path.removeprefix("/"))
        if not path or path == ":memory:":
            raise InputError("db: name a file, as in sqlite:///answers.db; memory is not durable")
        self.path = Path(path)
        self.label = self.path.name
        self._lock = threading.RLock()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        try:
            self._writer = self._connect()
        except sqlite3.Error as error:
            raise StorageError(f"db: {self.path} cannot be opened ({error})") from None
        self.create()

    def _connect(self) -> sqlite3.Connection:
        found = sqlite3.connect(
            self.path, timeout=WAIT, isolation_level=None, check_same_thread=False
        )
        found.execute("PRAGMA journal_mode = WAL")
        found.execute("PRAGMA synchronous = FULL")
        found.create_function("lower", 1, str.lower, deterministic=True)  # of all letters
        return found

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield SQLiteTransaction(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    exclusive = transaction

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            self._readers.append(connection)
        connection.execute("BEGIN")
        try:
            yield SQLiteTransaction(connection)
        finally:
            connection.execute("COMMIT")

    def listen(self, seconds: float) -> Iterator[str]:  # noqa: ARG002  nobody else writes
        return iter(())

    def is_lost(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.OperationalError)

    def close(self) -> None:
        for connection in (*self._readers, self._writer):
            connection.close()

    def spelled(self, table: str) -> str:
        return table.format(**WORDS)
