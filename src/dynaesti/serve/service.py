"""The service behind the routes: it groups answers, follows people, and notices refits."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from dynaesti.serve.database import Database, Transaction
from dynaesti.serve.events import Broker
from dynaesti.serve.intake import Change, Intake, refresh, state_in, take_in
from dynaesti.serve.keys import Key, keys_in, were_made
from dynaesti.serve.log_counts import LogCounts
from dynaesti.serve.metrics import Metrics
from dynaesti.serve.rows import AnswerRow, PersonRow
from dynaesti.serve.scorers import current_number, read_scorer_of
from dynaesti.serve.served import ServedScorer
from dynaesti.serve.snapshots import Snapshots

GROUP = 1000  # answers that are made durable together, at most
WAITING = 50_000  # answers that may wait before further ones are refused
READERS = 4  # threads for questions
REFRESH = 20  # people whose states are made anew in one transaction
PAUSE = 0.005  # seconds between such transactions
EVERY = 0.5  # seconds between checks for a new scorer and changed keys
MESSAGE = 7000  # bytes of one message to other workers
log = logging.getLogger("dynaesti.serve")
T = TypeVar("T")


class Unavailable(Exception):  # noqa: N818  what is told to the sender
    """The database cannot be reached, or too much waits for it; nothing was kept."""


@dataclass
class Posted:
    """The answers of one request, until they are durable."""

    answers: Sequence[AnswerRow]
    done: asyncio.Future[set[tuple[str, str]]]  # id and key of those that were new


class Service:
    """What all routes of one process share.

    Parameters
    ----------
    database : Database
        With a scorer in it: see `attach`.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.metrics = Metrics()
        self.counts = LogCounts()
        self.keys: list[Key] = []
        self.asks_for_keys = False
        self._swapping = threading.Lock()
        self._posted: queue.SimpleQueue[Posted | None] = queue.SimpleQueue()
        self._snapshots = Snapshots()
        self._waiting = 0
        self._numbers = itertools.count()
        self._origin = os.urandom(4).hex()
        self._stop = threading.Event()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="dynaesti-read")
        self._threads: list[threading.Thread] = []
        with database.reading() as tx:
            self._serving = read_scorer_of(tx, current_number(tx))
            self.counts.read(tx)
        self._notice_changes()
        self.served.warm()

    # --- life

    async def start(self) -> None:
        """Start the threads that write, watch and listen."""
        self._loop = asyncio.get_running_loop()
        self.broker = Broker()
        jobs = [self._write, self._watch]
        if self.database.workers:
            jobs.append(self._listen)
        for job in jobs:
            thread = threading.Thread(target=job, name=f"dynaesti{job.__name__}", daemon=True)
            thread.start()
            self._threads.append(thread)

    async def stop(self) -> None:
        """Make durable what waits, and end."""
        self.broker.closed.set()
        self._stop.set()
        self._posted.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._readers.shutdown(wait=True)
        self.database.close()

    # --- for routes

    def made_up_key(self) -> str:
        """A key for an answer without one: later ones come later."""
        return f"~{time.time_ns():020d}{next(self._numbers) % 10**6:06d}{self._origin}"

    async def post(self, answers: Sequence[AnswerRow]) -> set[tuple[str, str]]:
        """Keep answers; id and key of those that were new, once these are durable.

        Raises
        ------
        Unavailable
            If nothing was kept.
        """
        if self._waiting + len(answers) > WAITING:
            raise Unavailable("too many answers wait to be written; send them again in a moment")
        self._waiting += len(answers)
        posted = Posted(answers, self._loop.create_future())
        self._posted.put(posted)
        try:
            return await posted.done
        finally:
            self._waiting -= len(answers)

    @property
    def waiting(self) -> int:
        """Answers that are not durable yet."""
        return self._waiting

    async def read(self, question: Callable[[Transaction, ServedScorer], T]) -> T:
        """Ask the database and the scorer something, in a thread."""

        def ask() -> T:
            with self.database.reading() as tx:
                return question(tx, self.served)

        try:
            return await self._loop.run_in_executor(self._readers, ask)
        except Exception as error:
            if self.database.is_lost(error):
                raise Unavailable("the database cannot be reached; ask again later") from None
            raise

    async def person(self, id: str) -> PersonRow | None:
        """A person's row with a state of the scorer that is served; None where nobody answered."""

        def current(tx: Transaction, served: ServedScorer) -> tuple[PersonRow | None, bool]:
            row = tx.people([id]).get(id)
            return row, row is not None and state_in(row, served) is not None

        row, fine = await self.read(current)
        if row is None or fine:
            return row
        await self._loop.run_in_executor(self._readers, self._refresh, [id])
        return (await self.read(current))[0]

    # --- threads

    def _write(self) -> None:
        """Take in what was posted, in groups that are made durable together."""
        while True:
            first = self._posted.get()
            if first is None:
                return
            group = [first]
            size = len(first.answers)
            while size < GROUP:
                try:
                    more = self._posted.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._posted.put(None)
                    break
                group.append(more)
                size += len(more.answers)
            self._take_in(group)

    def _take_in(self, group: Sequence[Posted]) -> None:
        """Take in a group; where it fails, each request by itself."""
        answers = [one for posted in group for one in posted.answers]
        start = time.perf_counter()
        try:
            found = self._commit(answers)
        except Exception as error:
            lost = self.database.is_lost(error)
            if len(group) > 1 and not lost:
                for posted in group:
                    self._take_in([posted])
                return
            self.metrics.failures.inc()
            # the words of an error may hold data: only its kind is logged
            log.error("a group of answers was not kept: %s", type(error).__name__)
            failure = Unavailable("the answers could not be kept; send them again later")
            self._call(_fail, group, failure)
            return
        self.metrics.groups.observe(len(answers))
        self.metrics.commits.observe(time.perf_counter() - start)
        self.metrics.replayed.inc(found.replayed)
        self.metrics.rebuilt.inc(found.rebuilt)
        self._call(self._tell, group, found)

    def _commit(self, answers: Sequence[AnswerRow]) -> Intake:
        with self.database.transaction() as tx:
            served = self._current(tx)
            found = take_in(tx, served, answers, self._snapshots)
            if self.database.workers and found.changes:
                tx.notify(_messages([event_of(one, served) for one in found.changes]))
        return found

    def _current(self, tx: Transaction) -> ServedScorer:
        """The scorer to serve by; a refit may have brought another one."""
        number = current_number(tx)
        with self._swapping:
            # a thread that reads as of a moment before does not bring the old one back
            if number > self.served.number:
                self._serving = read_scorer_of(tx, number)
                self.metrics.scorer.set(number)
                self._call(self._publish, "scorer", {"scorer": number})
            return self.served

    @property
    def served(self) -> ServedScorer:
        """The scorer that is served."""
        return self._serving[0]

    def report_of(self, served: ServedScorer) -> dict[str, Any]:
        """The report of the refit that made a scorer; empty where it is served no more."""
        scorer, report = self._serving
        return report if scorer is served else {}

    def _tell(self, group: Sequence[Posted], found: Intake) -> None:
        """Answer the senders, and tell listeners; in the event loop."""
        left = set(found.new)
        for posted in group:
            names = {(one.id, one.key) for one in posted.answers}
            mine = names & left
            left -= mine
            if not posted.done.done():
                posted.done.set_result(mine)
        if not self.database.workers and self.broker.listeners:
            for change in found.changes:
                self.broker.publish("answer", event_of(change, self.served))

    def _watch(self) -> None:
        """Notice refits and changed keys, and make states anew that are of another scorer."""
        while not self._stop.wait(EVERY):
            try:
                self._notice_changes()
                while not self._stop.is_set():
                    with self.database.reading() as tx:
                        found = tx.rows(
                            "SELECT id FROM dynaesti_people "  # <> would not use its index
                            "WHERE scorer < :number OR scorer > :number LIMIT :most",
                            number=self.served.number,
                            most=REFRESH,
                        )
                    if not found:
                        break
                    self._refresh([row[0] for row in found])
                    self._stop.wait(PAUSE)  # answers come first
            except Exception as error:
                log.error("watching the database failed: %s", type(error).__name__)

    def _notice_changes(self) -> None:
        with self.database.reading() as tx:
            self.keys, self.asks_for_keys = keys_in(tx), were_made(tx)
            self._current(tx)
        self.metrics.scorer.set(self.served.number)

    def _refresh(self, ids: Sequence[str]) -> None:
        with self.database.transaction() as tx:
            self.metrics.rebuilt.inc(refresh(tx, self._current(tx), ids))

    def _listen(self) -> None:
        """Hand on what any worker on the database tells."""
        while not self._stop.is_set():
            try:
                for message in self.database.listen(EVERY):
                    for facts in json.loads(message):
                        self._call(self._publish, "answer", facts)
                    if self._stop.is_set():
                        break
            except Exception as error:
                log.error("listening to the database failed: %s", type(error).__name__)
                self._stop.wait(EVERY)

    def _publish(self, kind: str, facts: dict[str, Any]) -> None:
        self.broker.publish(kind, facts)

    def _call(self, job: Callable[..., None], *arguments: Any) -> None:
        """Run something in the event loop, from a thread."""
        if self._threads:
            self._loop.call_soon_threadsafe(job, *arguments)


def event_of(change: Change, served: ServedScorer) -> dict[str, Any]:
    """What listeners are told of a person's new answers."""
    mean, before = change.person.mean, change.before
    return {
        **person_facts(change.person, served),
        "item": change.last.item,
        "resp": change.last.resp,
        "before": before,
        "change": None if mean is None or before is None else mean - before,
    }


def person_facts(row: PersonRow, served: ServedScorer) -> dict[str, Any]:
    """A person's row as it is told."""
    return {
        "id": row.id,
        "answers": row.answers,
        "time": served.shown_time(row.time),
        "mean": row.mean,
        "sd": row.sd,
        "lower": row.lower,
        "upper": row.upper,
    }


def _messages(events: Sequence[dict[str, Any]]) -> list[str]:
    """Events as JSON lists that are short enough for the database's messages."""
    out: list[str] = []
    part: list[str] = []
    size = 0
    for event in events:
        text = json.dumps(event)
        if part and size + len(text) > MESSAGE:
            out.append(f"[{','.join(part)}]")
            part, size = [], 0
        if len(text) <= MESSAGE:
            part.append(text)
            size += len(text) + 1
    return [*out, f"[{','.join(part)}]"] if part else out


def _fail(group: Sequence[Posted], failure: Exception) -> None:
    for posted in group:
        if not posted.done.done():
            posted.done.set_exception(failure)
