"""Tables and queries of databases: SQLite, DuckDB, and any that SQLAlchemy reaches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from dynaesti.data.labels import display_names
from dynaesti.data.readers.table import Source, Table, as_arrow, from_columns
from dynaesti.errors import FileError, MissingExtraError, ResponseError, option

SCHEMES = ("sqlite", "duckdb", "postgresql", "postgres", "mysql", "mariadb", "mssql", "oracle")
PIECE = 1_000_000  # rows that are fetched at a time


@dataclass(frozen=True)
class Database:
    """A database, and which rows of it are asked for."""

    scheme: str
    address: str  # a path for SQLite and DuckDB, else the whole address
    label: str  # without a password
    table: str | None
    query: str | None


def is_database(name: str) -> bool:
    """Whether a name is the address of a database."""
    scheme, colon, _ = name.partition("://")
    return bool(colon) and scheme.partition("+")[0].lower() in SCHEMES


def database_at(address: str, table: str | None, query: str | None) -> Database:
    """The database of an address such as sqlite:///answers.db?table=answers."""
    parts = urlsplit(address)
    scheme = parts.scheme.lower()
    options = dict(parse_qsl(parts.query))
    table = options.pop("table", None) or table
    kind = scheme.partition("+")[0]
    if kind in ("sqlite", "duckdb"):
        path = unquote(parts.path.removeprefix("/"))
        return Database(kind, path, Path(path).name, table, query)
    host = parts.hostname or ""
    if kind in ("postgres", "postgresql") and "+" not in scheme:
        scheme = "postgresql+psycopg"
    rest = f"?{urlencode(options)}" if options else ""
    whole = f"{scheme}://{parts.netloc}{parts.path}{rest}"
    return Database("sqlalchemy", whole, f"{kind}://{host}{parts.path}", table, query)


def read_database(database: Database, rows: int | None) -> Iterator[Table]:
    """The rows of a table or query, in tables of at most `rows` rows; as one if that is None.

    Raises
    ------
    FileError
        If there is no such file.
    ResponseError
        If the table is missing or none is named, or the query fails.
    """
    start = 0
    pieces: list[Table] = []
    for names, found in _READERS[database.scheme](database, rows or PIECE):
        columns = {name: [_plain(row[k]) for row in found] for k, name in enumerate(names)}
        frame = as_arrow(from_columns(columns))
        pieces.append(Table(frame, None, (Source(database.label, len(frame), start),)))
        start += len(frame)
        if rows is not None:
            yield pieces.pop()
    yield from pieces


def _plain(value: Any) -> Any:
    """A value as frames take it: decimals as floats, ids of other types as text."""
    if value is None or isinstance(value, str | int | float | date):
        return value
    return float(value) if isinstance(value, Decimal) else str(value)


Rows = Iterator[tuple[Sequence[str], Sequence[Sequence[Any]]]]


def _sqlite_rows(database: Database, size: int) -> Rows:
    path = _existing(database)
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        query = _query(database, [name for (name,) in found])
        try:
            cursor = connection.execute(query)
        except sqlite3.Error as error:
            raise ResponseError(f"{database.label}: the query failed ({error})") from None
        yield from _fetched(cursor, [column[0] for column in cursor.description or ()], size)


def _duckdb_rows(database: Database, size: int) -> Rows:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError(
            "reading DuckDB files needs duckdb: pip install 'dynaesti[databases]'"
        ) from None
    with closing(duckdb.connect(str(_existing(database)), read_only=True)) as connection:
        found = connection.execute(
            "SELECT table_name FROM information_schema.tables ORDER BY table_name"
        ).fetchall()
        query = _query(database, [name for (name,) in found])
        try:
            cursor = connection.execute(query)
        except duckdb.Error as error:
            raise ResponseError(
                f"{database.label}: the query failed ({str(error).splitlines()[0]})"
            ) from None
        yield from _fetched(cursor, [column[0] for column in cursor.description or ()], size)


def _sqlalchemy_rows(database: Database, size: int) -> Rows:
    try:
        import sqlalchemy
    except ImportError:
        raise MissingExtraError(
            "reading databases by address needs SQLAlchemy and the database's driver: "
            "pip install 'dynaesti[databases]'"
        ) from None
    try:
        pool = sqlalchemy.create_engine(
            database.address,
            poolclass=sqlalchemy.pool.NullPool,  # closed when it is done
            execution_options={"postgresql_readonly": True},
        )
        with closing(pool.connect()) as connection:
            inspector = sqlalchemy.inspect(connection)
            names = [*inspector.get_table_names(), *inspector.get_view_names()]
            query = _query(database, sorted(names), pool.dialect.identifier_preparer.quote)
            streamed = connection.execution_options(stream_results=True)
            with closing(streamed.exec_driver_sql(query)) as result:
                yield from _fetched(result, list(result.keys()), size)
    except ImportError as error:
        raise MissingExtraError(
            f"{database.label}: its driver is missing ({error.name}); pip install "
            f"'dynaesti[databases]' has that of PostgreSQL"
        ) from None
    except sqlalchemy.exc.SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise ResponseError(
            f"{database.label}: the database refused ({str(cause).splitlines()[0]})"
        ) from None


_READERS = {"sqlite": _sqlite_rows, "duckdb": _duckdb_rows, "sqlalchemy": _sqlalchemy_rows}


def _existing(database: Database) -> Path:
    path = Path(database.address)
    if not path.is_file():
        raise FileError(f"{database.address}: no such file")
    return path


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _query(database: Database, names: Sequence[str], quote: Any = _quoted) -> str:
    """The query that was given, or one for all rows of the table."""
    if database.query is not None:
        return database.query
    table = database.table
    if table is None and len(names) == 1:
        table = names[0]
    if table is None:
        raise ResponseError(
            f"{database.label}: {len(names)} tables ({display_names(names)}); name one by "
            f"{option('sheet', names[0] if names else 'answers')}, or give a "
            f"{option('query')}"
        )
    if table in names:
        return f"SELECT * FROM {quote(table)}"
    schema, point, rest = table.partition(".")
    if point:
        return f"SELECT * FROM {quote(schema)}.{quote(rest)}"
    raise ResponseError(f"{database.label}: no table {table!r}; there are: {display_names(names)}")


def _fetched(cursor: Any, names: Sequence[str], size: int) -> Rows:
    """Rows of a cursor, so many at a time; at least one list, if only an empty one."""
    if not names:
        raise ResponseError("query: it returns no rows; write a SELECT")
    found = cursor.fetchmany(size)
    yield names, found
    while len(found) == size:
        found = cursor.fetchmany(size)
        if found:
            yield names, found
