"""Answers are read from a PostgreSQL server, which the test starts on loopback."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import dynaesti as dy
from support.oracles import assert_same_responses
from support.saying import spoken
from support.simulated import classroom

psycopg = pytest.importorskip("psycopg")
SECONDS = 60  # to wait for the server


def program(name):
    """A program of the server, which Debian keeps off the path."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(beside[-1]) if beside else shutil.which(name)


def plain_user():
    """Arguments that let a process run as a plain user, which the server insists on."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server():
    """The address of a database on a server of its own."""
    initdb, postgres = program("initdb"), program("postgres")
    if not initdb or not postgres:
        pytest.skip("PostgreSQL is not installed (make packages installs it where it may)")
    user = plain_user()
    if user is None:
        pytest.skip("PostgreSQL does not run as root, and there is no plain user")
    folder = tempfile.mkdtemp(prefix="dynaesti-pg-")
    if user:
        os.chown(folder, user["user"], user["group"])
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": folder}
    run = {"cwd": folder, "env": env, **user}
    data = f"{folder}/data"
    made = subprocess.run(
        [initdb, "-D", data, "-A", "trust", "-U", "ada", "--no-sync", "-E", "UTF8"],
        capture_output=True,
        text=True,
        **run,
    )
    if made.returncode:
        shutil.rmtree(folder)
        pytest.skip(f"initdb failed: {made.stderr.strip().splitlines()[-1:]}")
    port = free_port()
    with open(f"{folder}/log", "wb") as log:
        process = subprocess.Popen(
            [postgres, "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder, "-F"],
            stdout=log,
            stderr=log,
            **run,
        )
    try:
        for _ in range(10 * SECONDS):
            try:
                psycopg.connect(host="127.0.0.1", port=port, user="ada", dbname="postgres").close()
                break
            except psycopg.OperationalError:
                if process.poll() is not None:
                    pytest.skip(f"the server did not start: {Path(folder, 'log').read_text()}")
                time.sleep(0.1)
        yield f"postgresql://ada:secret@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)  # by which it does not wait for connections
        process.wait(SECONDS)
        shutil.rmtree(folder)


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
