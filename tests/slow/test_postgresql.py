"""Answers are read from a PostgreSQL server, which the test starts on loopback."""

import pytest

import dynaesti as dy
from support.oracles import assert_same_responses
from support.postgresql import postgresql
from support.saying import spoken
from support.simulated import classroom

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def server():
    with postgresql() as address:
        yield address


@pytest.fixture(scope="module")
def table(server):
    """Answers, which the server has in the table `answers`."""
    found = classroom(12, 5, 10)
    with psycopg.connect(server) as connection:
        connection.execute(
            "CREATE TABLE answers (id text, item text, resp numeric, date double precision)"
        )
        connection.execute("CREATE TABLE notes (note text)")
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO answers VALUES (%s, %s, %s, %s)",
                list(found.itertuples(index=False, name=None)),
            )
    return found


def test_a_table_and_a_query_are_read(server, table):
    assert_same_responses(dy.Responses.read(f"{server}?table=answers"), dy.Responses.read(table))
    some = dy.Responses.read(server, query="SELECT * FROM answers WHERE item <> 'i00'")
    assert len(some) == (table["item"] != "i00").sum()
    assert_same_responses(
        dy.Responses.read(server, sheet="public.answers"), dy.Responses.read(table)
    )


def test_shards_are_prepared_from_it(server, table, tmp_path):
    assert dy.prepare(f"{server}?table=answers", tmp_path / "s", shards=2).rows == len(table)


def test_the_command_line_reads_it_and_tells_no_password(server, table, capsys):
    code, out, err = spoken(capsys, "validate", f"{server}?table=answers")
    assert code == 0
    assert f"{len(table)} answers" in out
    for words in (
        ("validate", server),
        ("validate", f"{server}?table=answer"),
        ("validate", server, "--query", "DELETE FROM answers"),
        ("validate", server.replace("ada:secret", "ben:secret"), "--sheet", "answers"),
    ):
        code, _, err = spoken(capsys, *words)
        assert code == 3
        assert "secret" not in err
        assert "Traceback" not in err
    assert len(dy.Responses.read(f"{server}?table=answers")) == len(table)
