"""Limits around the routes: sizes of bodies, rates, and no data in logs."""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dynaesti.serve.keys import digest_of
from dynaesti.serve.metrics import Metrics

CALLERS = 10_000  # whose rates are remembered
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
]
log = logging.getLogger("dynaesti.serve")


@dataclass(frozen=True)
class Limits:
    """How much a caller may ask.

    Parameters
    ----------
    body : int
        Bytes of one request.
    rate : float
        Requests a second by one key, or one address without a key; short bursts may have twice as
        many.
    """

    body: int = 8_000_000
    rate: float = 2000.0


class TooLarge(Exception):  # noqa: N818  a reason, not a fault
    """A body has passed its limit."""


class Guard:
    """What every request passes first and last; it also counts and times requests."""

    def __init__(
        self, app: ASGIApp, limits: Limits, metrics: Metrics, is_key: Callable[[str], bool]
    ) -> None:
        self.app = app
        self.is_key = is_key  # whether a digest is that of a key: one that is made up has no rate
        self.limits = limits
        self.metrics = metrics
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            await self._guarded(scope, receive, noted)
        except Exception as error:
            # traceback and words may hold answers: the kind and the place are enough to find it
            log.error("a request failed: %s in %s", type(error).__name__, _place(error))
            if not status:
                await _refuse(noted, 500, "a fault of the service itself; it was logged")
        finally:
            path = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(path, str(status)).inc()
            if path != "/events":
                self.metrics.seconds.labels(path).observe(time.perf_counter() - begun)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if not self._is_within_rate(scope, headers):
            await _refuse(send, 429, "too many requests; wait a second", [(b"retry-after", b"1")])
            return
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.limits.body:
            await self._refuse_body(send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.limits.body:
                raise TooLarge
            return message

        async def unless_too_large(message: Message) -> None:
            if size <= self.limits.body:  # else the routes' own words are of a broken body
                await send(message)

        with suppress(TooLarge):
            await self.app(scope, counted, unless_too_large)
        if size > self.limits.body:
            await self._refuse_body(send)

    async def _refuse_body(self, send: Send) -> None:
        most = self.limits.body
        await _refuse(
            send, 413, f"the body has more than {most:,} bytes", [(b"connection", b"close")]
        )

    def _is_within_rate(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """A bucket for each caller, which fills at the rate and holds twice a second's worth."""
        _, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        client = scope.get("client")
        caller = digest_of(key.strip())
        if not self.is_key(caller):
            caller = str(client[0] if client else "")
        now = time.monotonic()
        most = 2 * self.limits.rate
        left, then = self._left.pop(caller, (most, now))
        left = min(most, left + (now - then) * self.limits.rate)
        allowed = left >= 1
        self._left[caller] = (left - 1 if allowed else left, now)
        if len(self._left) > CALLERS:
            self._left.popitem(last=False)
        return allowed


async def _refuse(
    send: Send, status: int, detail: str, headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    body = json.dumps({"detail": detail}).encode()
    more: list[Any] = [(b"content-type", b"application/json"), *(headers or [])]
    more.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": more})
    await send({"type": "http.response.body", "body": body})


def _place(error: BaseException) -> str:
    """File and line where an error was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "nowhere"
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
