"""The service as a program: killed under load, on SQLite and on PostgreSQL with two workers."""

import concurrent.futures
import sqlite3

import httpx
import pytest

import dynaesti as dy
from dynaesti.serve import open_database, refit_log
from support.kills import kill_under_load
from support.postgresql import postgresql
from support.service import Program, answer, assert_same_ability, post, replayed, wait_for


@pytest.fixture(scope="module")
def scorer():
    table = dy.simulate.responses(people=25, items=8, per_person=12, span=50.0, seed=5).table
    return dy.DynAEsti("2PL").fit(table).scorer()


@pytest.fixture
def run(scorer, tmp_path):
    return scorer.save(tmp_path / "run.dynscore")


@pytest.fixture(scope="module")
def server():
    with postgresql(durable=True) as address:
        yield address


@pytest.fixture
def database(server, request):
    """The address of a database of one test's own."""
    psycopg = pytest.importorskip("psycopg")
    name = f"test_{abs(hash(request.node.name))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.rpartition("/")[0] + f"/{name}"


def test_a_killed_service_on_sqlite_loses_nothing(run, scorer, tmp_path):
    assert kill_under_load(run, scorer, 1, f"sqlite:///{tmp_path}/answers.db") > 20


def test_a_killed_service_on_postgresql_loses_nothing(run, scorer, database):
    assert kill_under_load(run, scorer, 1, database, "--workers", 2) > 20


def test_an_acknowledged_answer_is_in_the_file_already(run, tmp_path):
    program = Program(run)
    try:
        with httpx.Client(base_url=program.url) as client:
            post(client, answer("ada", "i1", 1, 60.0, "a"))
            with sqlite3.connect(f"file:{tmp_path}/run.answers.db?mode=ro", uri=True) as other:
                assert other.execute("SELECT key FROM dynaesti_answers").fetchall() == [("a",)]
            other.close()
    finally:
        program.end()


def test_workers_on_one_postgresql_count_a_key_once(run, scorer, database):
    program = Program(run, "--db", database, "--workers", 2)
    sent = [answer(f"s{k % 3}", f"i{k % 8}", k % 2, 60.0 + k, f"k{k}") for k in range(60)]
    try:

        def send(k):
            with httpx.Client(base_url=program.url) as client:
                mine = sent[k:] + sent[:k]
                return sum(post(client, one)["new"] for one in mine)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(send, (0, 15, 30, 45))) == 60
        with httpx.Client(base_url=program.url) as client:
            for k in range(3):
                state = replayed(scorer, [one for one in sent if one["id"] == f"s{k}"])
                assert_same_ability(client.get(f"/people/s{k}").json(), scorer, state)
    finally:
        program.end()


def test_events_and_refits_reach_all_workers(scorer, tmp_path, database):
    table = dy.simulate.responses(people=25, items=8, per_person=12, span=50.0, seed=5).table
    run = dy.DynAEsti("2PL").fit(table).save(tmp_path / "run.dyn")
    program = Program(run, "--db", database, "--workers", 2)
    try:
        with httpx.Client(base_url=program.url, timeout=30) as client:
            wait_for(client)
            with client.stream("GET", "/events") as stream:
                lines = stream.iter_lines()
                next(lines)
                for k in range(8):  # over connections of their own, which workers share
                    with httpx.Client(base_url=program.url) as other:
                        post(other, answer("ada", "i1", 1, 60.0 + k, f"k{k}"))
                told = [next(one for one in lines if one.startswith("data:")) for _ in range(8)]
            assert len(set(told)) == 8
            own = open_database(database)
            assert refit_log(own, str(run)).scorer == 2
            own.close()
            for _ in range(100):
                numbers = set()
                for _ in range(6):
                    with httpx.Client(base_url=program.url) as other:
                        numbers.add(other.get("/health").json()["scorer"])
                if numbers == {2}:
                    break
            assert numbers == {2}
            assert client.get("/people/p01").json()["answers"] == 12
    finally:
        program.end()
