"""Answers and questions sent to a service at given moments, and how long it took to reply.

Requests leave when they are due, whatever became of those before (an open loop): a service that
stalls makes all that wait late, and the waiting counts.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE = 30.0  # seconds for a reply


class Request(NamedTuple):
    """A request that is due at a moment, in seconds since the start."""

    due: float
    kind: str
    raw: bytes
    answers: int = 0


@dataclass
class Replies:
    """What came back, by kind of request."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    codes: dict[str, dict[int, int]] = field(default_factory=dict)
    kept: int = 0
    failures: list[str] = field(default_factory=list)
    span: float = 0.0

    def note(self, request: Request, code: int, waited: float) -> None:
        """Count one reply."""
        self.seconds.setdefault(request.kind, []).append(waited)
        found = self.codes.setdefault(request.kind, {})
        found[code] = found.get(code, 0) + 1
        if code == 200:
            self.kept += request.answers

    def add(self, other: Replies) -> None:
        """Those of a further stretch."""
        for kind, seconds in other.seconds.items():
            self.seconds.setdefault(kind, []).extend(seconds)
            mine = self.codes.setdefault(kind, {})
            for code, n in other.codes[kind].items():
                mine[code] = mine.get(code, 0) + n
        self.kept += other.kept
        self.failures += other.failures
        self.span += other.span

    def quantile(self, kind: str, q: float) -> float:
        """Milliseconds within which a share of the replies came."""
        found = sorted(self.seconds[kind])
        return 1000 * found[min(int(q * len(found)), len(found) - 1)]


def posted(url: str, path: str, body: object) -> bytes:
    """A POST request as it goes over the wire."""
    data = json.dumps(body).encode()
    host = urlsplit(url).netloc
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def asked(url: str, path: str) -> bytes:
    """A GET request as it goes over the wire."""
    return f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode()


def at_random(rate: float, seconds: float, draw: random.Random) -> Iterator[float]:
    """Moments of a Poisson process."""
    now = draw.expovariate(rate)
    while now < seconds:
        yield now
        now += draw.expovariate(rate)


def send(url: str, requests: list[Request], connections: int = 32) -> Replies:
    """Send requests when they are due, over connections that stay open."""
    return asyncio.run(_send(url, sorted(requests, key=lambda one: one.due), connections))


async def _send(url: str, requests: list[Request], connections: int) -> Replies:
    host, port = urlsplit(url).hostname, urlsplit(url).port
    replies = Replies()
    waiting: asyncio.Queue[Request | None] = asyncio.Queue()
    start = time.perf_counter()
    jobs = [
        asyncio.create_task(_connection(host, port, waiting, replies, start))
        for _ in range(connections)
    ]
    for one in requests:
        wait = start + one.due - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        waiting.put_nowait(one)
    for _ in jobs:
        waiting.put_nowait(None)
    await asyncio.gather(*jobs)
    replies.span = time.perf_counter() - start
    return replies


async def _connection(
    host: str | None,
    port: int | None,
    waiting: asyncio.Queue[Request | None],
    replies: Replies,
    start: float,
) -> None:
    """One connection, which takes up requests as they become due."""
    reader, writer = await asyncio.open_connection(host, port)
    while (one := await waiting.get()) is not None:
        try:
            writer.write(one.raw)
            code = await asyncio.wait_for(_reply(reader), PATIENCE)
        except (OSError, EOFError, TimeoutError) as error:
            replies.failures.append(f"{one.kind}: {type(error).__name__}")
            writer.close()
            reader, writer = await asyncio.open_connection(host, port)
            continue
        replies.note(one, code, time.perf_counter() - start - one.due)
    writer.close()


async def _reply(reader: asyncio.StreamReader) -> int:
    """Read a reply whose length is told; its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    await reader.readexactly(length)
    return int(head[9:12])


@dataclass
class Class:
    """Learners who answer at random moments, some answers late, some sent twice."""

    items: list[str]
    people: int
    seed: int
    first: float  # time of the first answer
    day: float = 1 / 86400  # of the fit's clock in a second
    late: float = 0.02
    again: float = 0.02
    name: Callable[[int], str] = "s{:05d}".format

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.count = 0
        self.sent: list[dict[str, object]] = []

    def answer(self, due: float) -> dict[str, object]:
        """The next answer."""
        draw = self.draw
        if self.sent and draw.random() < self.again:
            return draw.choice(self.sent)
        self.count += 1
        back = draw.random() * 0.01 if draw.random() < self.late else 0.0
        one: dict[str, object] = {
            "id": self.name(draw.randrange(self.people)),
            "item": draw.choice(self.items),
            "resp": draw.randrange(2),
            "time": self.first + due * self.day - back,
            "key": f"k{self.seed}-{self.count}",
        }
        self.sent.append(one)
        return one

    def requests(self, url: str, rate: float, seconds: float, questions: float) -> list[Request]:
        """Answers one by one at a rate, and questions of each kind at another."""
        out = [
            Request(due, "answers", posted(url, "/answers", {"answers": [self.answer(due)]}), 1)
            for due in at_random(rate, seconds, self.draw)
        ]
        kinds = {
            "person": lambda who: asked(url, f"/people/{who}"),
            "next": lambda who: asked(url, f"/people/{who}/next"),
            "cohort": lambda _: asked(url, "/cohort"),
        }
        for kind, raw in kinds.items():
            for due in at_random(questions, seconds, self.draw) if questions else ():
                out.append(Request(due, kind, raw(self.name(self.draw.randrange(self.people)))))
        return out
