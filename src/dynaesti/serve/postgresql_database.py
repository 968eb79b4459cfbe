"""The service's tables in PostgreSQL: several workers, who lock the people they write."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from dynaesti.errors import MissingExtraError, StorageError
from dynaesti.serve.database import PARAMETER, PERSON, Database, Transaction, person_row
from dynaesti.serve.rows import COLUMNS_OF_PERSON, AnswerRow, PersonRow

try:
    import psycopg
except ImportError:
    raise MissingExtraError(
        "a service on PostgreSQL needs psycopg: pip install 'dynaesti[databases]'"
    ) from None

WAIT = 10  # seconds to connect
LOCK = 0x64796E61  # of what only one process does at a time
CHANNEL = "dynaesti"
LETTERS = "und-x-icu"  # a collation that knows all letters, where the server was built with it
WORDS = {
    "serial": "BIGSERIAL PRIMARY KEY",
    "text": 'TEXT COLLATE "C"',
    "float": "DOUBLE PRECISION",
    "bytes": "BYTEA",
}
TYPES = {"id": "text", "key": "text", "state": "bytea", "time": "float8", "mean": "float8",
         "sd": "float8", "lower": "float8", "upper": "float8"}  # fmt: skip
UPDATE = (
    "UPDATE dynaesti_people AS old SET "
    + ", ".join(f"{name} = new.{name}" for name in COLUMNS_OF_PERSON[1:])
    + " FROM unnest("
    + ", ".join(f"%s::{TYPES.get(name, 'bigint')}[]" for name in COLUMNS_OF_PERSON)
    + f") AS new ({PERSON}) WHERE old.id = new.id"
)
INSERT = (
    "INSERT INTO dynaesti_answers (id, item, resp, time, key, columns) SELECT * FROM unnest("
    "%s::text[], %s::text[], %s::float8[], %s::float8[], %s::text[], %s::text[]) "
    "ON CONFLICT (id, key) DO NOTHING RETURNING id, key"
)


class PostgreSQLTransaction(Transaction):
    """A transaction on one connection."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.connection = connection

    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(_spelled(sql), values).fetchall()

    def run_many(self, sql: str, values: Iterable[Mapping[str, Any]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(_spelled(sql), values)

    def within(self, name: str) -> str:
        return f"= ANY(:{name})"

    def lower(self, column: str) -> str:
        known = self.rows("SELECT 1 FROM pg_collation WHERE collname = :name", name=LETTERS)
        return f'LOWER({column} COLLATE "{LETTERS}")' if known else super().lower(column)

    def lock_people(self, ids: Sequence[str]) -> dict[str, PersonRow]:
        # always in the same order, so that two workers never wait for each other
        wanted = sorted(ids)
        with self.connection.pipeline():
            self.connection.execute(
                "INSERT INTO dynaesti_people (id) SELECT * FROM unnest(%s::text[]) "
                "ON CONFLICT (id) DO NOTHING",
                (wanted,),
            )
            found = self.connection.execute(
                f"SELECT {PERSON} FROM dynaesti_people WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
                (wanted,),
                binary=True,
            )
        return {row[0]: person_row(row) for row in found.fetchall()}

    def add_answers(self, answers: Sequence[AnswerRow]) -> set[tuple[str, str]]:
        names = ("id", "item", "resp", "time", "key", "columns")
        given = [[getattr(one, name) for one in answers] for name in names]
        return {(row[0], row[1]) for row in self.connection.execute(INSERT, given).fetchall()}

    def write_people(self, people: Sequence[PersonRow]) -> None:
        given = [[getattr(one, name) for one in people] for name in COLUMNS_OF_PERSON]
        self.connection.execute(UPDATE, given)

    def notify(self, messages: Sequence[str]) -> None:
        if messages:
            self.connection.execute(
                "SELECT pg_notify(%s, message) FROM unnest(%s::text[]) AS message",
                (CHANNEL, list(messages)),
            )


class PostgreSQLDatabase(Database):
    """A PostgreSQL database, whose commits wait for the disk (synchronous_commit=on)."""

    name = "postgresql"
    workers = True

    def __init__(self, address: str) -> None:
        self.address = address
        parts = urlsplit(address)
        self.label = f"postgresql://{parts.hostname or ''}{parts.path}"
        self._lock = threading.RLock()
        self._local = threading.local()
        self._writer: psycopg.Connection[tuple[Any, ...]] | None = None
        self._listener: psycopg.Connection[tuple[Any, ...]] | None = None
        self._readers: list[psycopg.Connection[tuple[Any, ...]]] = []
        try:
            self.create()
        except psycopg.OperationalError as error:
            # the driver's own words hold host and user, never the password
            raise StorageError(f"db: {self.label} cannot be reached ({error})") from None

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            self.address, autocommit=True, connect_timeout=WAIT, options="-c synchronous_commit=on"
        )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with self._lock:
            if self._writer is None or self._writer.closed:
                self._writer = self._connect()
            with self._writer.transaction():
                yield PostgreSQLTransaction(self._writer)

    @contextmanager
    def exclusive(self) -> Iterator[Transaction]:
        with self.transaction() as tx:
            tx.rows("SELECT pg_advisory_xact_lock(:number)", number=LOCK)
            yield tx

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            connection = self._local.connection = self._connect()
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            self._readers.append(connection)
        with connection.transaction():
            yield PostgreSQLTransaction(connection)

    def listen(self, seconds: float) -> Iterator[str]:
        if self._listener is None or self._listener.closed:
            self._listener = self._connect()
            self._listener.execute(f"LISTEN {CHANNEL}")
        for message in self._listener.notifies(timeout=seconds):
            yield message.payload

    def is_lost(self, error: Exception) -> bool:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def close(self) -> None:
        for connection in (*self._readers, self._listener, self._writer):
            if connection is not None:
                with suppress(psycopg.Error):
                    connection.close()

    def spelled(self, table: str) -> str:
        return table.format(**WORDS)


def _spelled(sql: str) -> str:
    """A statement with its parameters as the driver takes them."""
    return PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
