"""Events for whoever listens: bounded queues, and a word where one was too slow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

QUEUE = 1000  # events that wait for one listener
LISTENERS = 500
KEEP_ALIVE = 15.0  # seconds of silence after which a comment is sent


@dataclass(eq=False)
class Listener:
    """One who listens, to everyone or to some people."""

    ids: frozenset[str]
    queue: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(QUEUE))
    lost: bool = False


class Broker:
    """Hands events to listeners; used in the event loop only."""

    def __init__(self) -> None:
        self.listeners: set[Listener] = set()
        self.closed = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether no further listener is taken."""
        return len(self.listeners) >= LISTENERS

    def publish(self, kind: str, facts: dict[str, Any]) -> None:
        """Hand an event to all listeners that want it."""
        if not self.listeners:
            return
        text = f"event: {kind}\ndata: {json.dumps(facts, ensure_ascii=True)}\n\n"
        who = facts.get("id")
        for one in self.listeners:
            if one.ids and who is not None and who not in one.ids:
                continue
            if one.queue.full():
                one.lost = True
                while not one.queue.empty():
                    one.queue.get_nowait()
            one.queue.put_nowait(text)

    async def stream(self, ids: frozenset[str]) -> AsyncIterator[str]:
        """Events as text/event-stream, until the listener goes or the service ends."""
        one = Listener(ids)
        self.listeners.add(one)
        closed = asyncio.ensure_future(self.closed.wait())
        got: asyncio.Future[str] | None = None
        try:
            yield ": listening\n\n"
            while not self.closed.is_set():
                got = asyncio.ensure_future(one.queue.get())
                await asyncio.wait(
                    (got, closed), timeout=KEEP_ALIVE, return_when=asyncio.FIRST_COMPLETED
                )
                if not got.done():
                    got.cancel()
                    yield ": \n\n"
                    continue
                if one.lost:
                    one.lost = False
                    yield "event: lost\ndata: {}\n\n"
                yield got.result()
        finally:
            self.listeners.discard(one)
            closed.cancel()
            if got is not None:
                got.cancel()
