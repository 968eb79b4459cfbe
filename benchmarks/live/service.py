"""The service under load: sustained rates, kills, a refit; on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import dynaesti as dy
from benchmarks.live.load import Class, Replies, send
from dynaesti.serve import open_database
from dynaesti.serve.intake import refresh
from dynaesti.serve.rows import AnswerRow
from dynaesti.serve.scorers import attach, current_number, open_run, read_scorer_of
from support.kills import kill_under_load
from support.openapi import draw_requests
from support.postgresql import postgresql
from support.service import Program

ITEMS, FIRST = 300, 100.0  # items of the run, and the day on which its answers end
LEARNERS, EACH = 10_000, 100  # stored before: a million answers
PART = 500  # learners filled in at a time
QUESTIONS = 1.0  # of each kind a second, beside the answers
REFIT_RATE, REFIT_AFTER = 100.0, 5.0


def make_run(folder: Path, people: bool = False) -> Path:
    """A fit of 400 simulated people, or its scorer alone."""
    table = dy.simulate.responses(people=400, items=ITEMS, per_person=60, span=FIRST, seed=5).table
    fit = dy.DynAEsti("2PL").fit(table)
    return fit.save(folder / "run.dyn") if people else fit.scorer().save(folder / "run.dynscore")


@contextmanager
def databases(name: str, folder: Path, count: int) -> Iterator[list[str]]:
    """Addresses of fresh databases, on a server of their own where they need one."""
    if name == "sqlite":
        yield [f"sqlite:///{folder}/{k}.db" for k in range(count)]
        return
    import psycopg

    with postgresql(durable=True) as server:
        for k in range(count):
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE live{k}")
        yield [f"{server.rpartition('/')[0]}/live{k}" for k in range(count)]


@contextmanager
def before_others(wanted: bool) -> Iterator[None]:
    """Let processes that are started here go before all others of a shared machine."""
    if not wanted:
        yield
        return
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def words_of(name: str, address: str) -> list[str]:
    """How the service is started: on PostgreSQL with two workers."""
    words = ["--db", address, "--rate", "100000"]
    return words if name == "sqlite" else [*words, "--workers", "2"]


def fill(address: str, run: Path, learners: int = LEARNERS, each: int = EACH) -> int:
    """Store answers of many learners, and their states; how many answers."""
    database = open_database(address)
    attach(database, *open_run(str(run)))
    draw = random.Random(3)
    with database.reading() as tx:
        served, _ = read_scorer_of(tx, current_number(tx))
    labels = [str(one) for one in served.scorer.item_labels]
    for first in range(0, learners, PART):
        ids = [f"s{k:05d}" for k in range(first, min(first + PART, learners))]
        rows = [
            AnswerRow(who, draw.choice(labels), draw.randrange(2), FIRST * n / each, f"old {n}")
            for who in ids
            for n in range(each)
        ]
        with database.transaction() as tx:
            tx.lock_people(ids)
            tx.add_answers(rows)
            refresh(tx, served, ids)
    database.close()
    return learners * each


def rates(
    name: str, run: Path, address: str, rate: float, seconds: float, realtime: bool
) -> dict[str, Any]:
    """Answers one by one at a rate, with questions and listeners beside them.

    On SQLite the service has the first core to itself, as far as the machine leaves it.
    """
    cores = os.sched_getaffinity(0)
    class_ = Class(labels_of(run), LEARNERS, int(time.time()), FIRST)
    with before_others(realtime):
        if name == "sqlite":
            os.sched_setaffinity(0, {min(cores)})  # which its process inherits
        program = Program(run, *words_of(name, address))
        os.sched_setaffinity(0, cores - {min(cores)} if name == "sqlite" else cores)
        try:
            requests = class_.requests(program.url, rate, seconds, QUESTIONS)
            before, load = program.cpu, os.getloadavg()[0]
            replies = send(program.url, requests)
            spent = program.cpu - before
        finally:
            program.end()
            os.sched_setaffinity(0, cores)
    return {
        **summary(replies),
        "offered_per_second": rate,
        "seconds": seconds,
        "before_others": realtime,
        "cpu_of_service": spent / replies.span,
        "load_average": [load, os.getloadavg()[0]],
    }


def labels_of(run: Path) -> list[str]:
    """Items of a run, as they are written."""
    return [str(one) for one in open_run(str(run))[0].item_labels]


def summary(replies: Replies) -> dict[str, Any]:
    """Rates, latencies and failures."""
    return {
        "kept": replies.kept,
        "per_second": replies.kept / replies.span,
        "failures": replies.failures,
        "codes": {
            kind: {str(k): n for k, n in codes.items()} for kind, codes in replies.codes.items()
        },
        "milliseconds": {
            kind: {str(q): replies.quantile(kind, q) for q in (0.5, 0.95, 0.99, 0.999, 1.0)}
            for kind in replies.seconds
        },
    }


def kills(name: str, folder: Path, address: str, count: int) -> dict[str, Any]:
    """Kill the service at random moments under load; the comparison raises where it fails."""
    table = dy.simulate.responses(people=25, items=8, per_person=12, span=50.0, seed=5).table
    scorer = dy.DynAEsti("2PL").fit(table).scorer()
    run = scorer.save(folder / "run.dynscore")
    begun = time.perf_counter()
    words = words_of(name, address)[2:]
    kept = kill_under_load(run, scorer, count, address, *words, seed=7)
    return {"kills": count, "acknowledged": kept, "seconds": time.perf_counter() - begun}


def refit(name: str, folder: Path, address: str, rest: float = 15.0) -> dict[str, Any]:
    """A refit while answers arrive: requests that failed, and how far the scale moved."""
    run = make_run(folder, people=True)
    program = Program(run, *words_of(name, address))
    told: dict[str, Any] = {}

    def job() -> None:
        time.sleep(REFIT_AFTER)
        begun = time.perf_counter()
        found = subprocess.run(
            [sys.executable, "-m", "dynaesti", "refit", str(run), "--db", address, "--json"],
            capture_output=True,
            text=True,
        )
        told["seconds"] = time.perf_counter() - begun
        told["report"] = json.loads(found.stdout or "null")
        told["error"] = found.stderr

    thread = Thread(target=job)
    replies = Replies()
    try:
        class_ = Class(labels_of(run), 400, 11, FIRST)
        thread.start()
        while True:  # until the new scorer has been served for a while
            ended = not thread.is_alive()
            found = send(program.url, class_.requests(program.url, REFIT_RATE, rest, QUESTIONS))
            replies.add(found)
            if ended:
                break
    finally:
        thread.join()
        program.end()
    report = told["report"]
    if report is None:
        raise RuntimeError(told["error"])
    kept = ("scorer", "answers", "people", "scale_shift", "mean_change", "sd_change")
    return {
        **summary(replies),
        "refit_seconds": told["seconds"],
        "report": {key: report[key] for key in kept},
    }


def requests_drawn(run: Path, address: str, examples: int) -> dict[str, Any]:
    """Requests drawn from the OpenAPI page; raises where one meets a fault."""
    program = Program(run, "--db", address, "--rate", "100000", "--unknown-items", "queue")
    try:
        told = draw_requests(program.url, examples, {})
    finally:
        program.end()
    return {
        "requests": sum(sum(codes.values()) for codes in told.values()),
        "routes": {route: {str(k): n for k, n in codes.items()} for route, codes in told.items()},
    }


def temporary() -> Path:
    """A folder for one part."""
    return Path(tempfile.mkdtemp(prefix="dynaesti-live-"))
