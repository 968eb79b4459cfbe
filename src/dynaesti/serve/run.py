"""A server of its own: sockets, worker processes, and what may be bound."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from dynaesti.errors import InputError, StorageError
from dynaesti.serve.app import app_of
from dynaesti.serve.database import open_database
from dynaesti.serve.keys import all_keys
from dynaesti.serve.limits import Limits
from dynaesti.serve.scorers import attach, default_address, open_run
from dynaesti.serve.service import Service

PATIENCE = 3.0  # seconds for a port that a server killed just now still holds
KEEP_ALIVE = 65  # seconds that idle connections stay open
# Seconds in which a worker must show that it lives. Its imports come first: on a machine that is
# busy they take longer than uvicorn's 5 s, and workers would be ended and begun for ever.
ALIVE = 120
GRACE = 3  # seconds that open event streams may take to end
# Seconds for which a thread may reckon before another one has its turn: a question about a long
# history would else hold up each step of the answers that come meanwhile by Python's 5 ms.
TURN = 0.0005
PARENT = 0.2  # seconds between checks whether the parent lives


@dataclass(frozen=True)
class Settings:
    """What a server is told.

    Parameters
    ----------
    run : str
    db : str, optional
        Address of the database. Default: a SQLite file beside the run.
    host : str
    port : int
        0 for any that is free.
    workers : int
        Processes; more than one on PostgreSQL only.
    unknown_items : {"refuse", "queue"}
    limits : Limits
    """

    run: str
    db: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    unknown_items: str = "refuse"
    limits: Limits = field(default_factory=Limits)

    @property
    def address(self) -> str:
        """Address of the database."""
        return self.db or default_address(self.run)


@dataclass(frozen=True)
class Worker:
    """Makes the application in a worker process, which ends when its parent does."""

    settings: Settings
    open_to_all: bool | None
    parent: int | None = None

    def __call__(self) -> FastAPI:
        """The application."""
        if self.parent is not None:
            threading.Thread(target=self._end_with_parent, daemon=True).start()
        sys.setswitchinterval(TURN)
        service = Service(open_database(self.settings.address))
        chosen = self.settings
        app = app_of(service, chosen.unknown_items, self.open_to_all, chosen.limits, page=True)
        gc.collect()
        gc.freeze()  # modules and the scorer stay: collections need not walk over them
        return app

    def _end_with_parent(self) -> None:
        while os.getppid() == self.parent:
            time.sleep(PARENT)
        os._exit(1)


def run_server(
    settings: Settings,
    ready: Callable[[str, str], None],
    connect: bool = False,
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    settings : Settings
    ready : callable
        Called with the address at which the service will answer, once that is bound, and the
        database's name.
    connect : bool
        Whether shards of the run may be read from other hosts.

    Raises
    ------
    InputError
        If the settings do not go together, or something beyond loopback is to be bound without
        keys.
    StorageError
        If the run, the database or the port cannot be opened.
    """
    database = open_database(settings.address)
    try:
        if settings.workers > 1 and not database.workers:
            raise InputError(
                f"workers: a SQLite file has one writer, so {settings.workers} workers need "
                "a database of PostgreSQL (postgresql://…)"
            )
        attach(database, *open_run(settings.run, connect))
        local = is_loopback(settings.host)
        if not local and not all_keys(database):
            raise InputError(
                f"host: {settings.host} can be reached from elsewhere, and no keys were made; "
                "make some with `dynaesti keys`, or stay on 127.0.0.1"
            )
        bound = _bound(settings.host, settings.port)
        ready(_url(bound), database.label)
    finally:
        database.close()
    _serve(settings, bound, None if local else False)


def _serve(settings: Settings, bound: socket.socket, open_to_all: bool | None) -> None:
    """Serve on a bound socket, in this process or in several."""
    logging.getLogger("dynaesti.serve").addHandler(logging.StreamHandler())
    several = settings.workers > 1
    config = uvicorn.Config(
        Worker(settings, open_to_all, os.getpid() if several else None),
        factory=True,
        workers=settings.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
        timeout_worker_healthcheck=ALIVE,
    )
    if several:
        bound.set_inheritable(True)
        Multiprocess(config, sockets=[bound]).run()
    else:
        # uvicorn ends orderly and then repeats the signal: that it is one that can be caught
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[bound])


def is_loopback(host: str) -> bool:
    """Whether a host's name can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bound(host: str, port: int) -> socket.socket:
    """A socket bound to a port, after a moment of patience."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    until = time.monotonic() + PATIENCE
    while True:
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, port))
            found.listen(2048)
        except (OSError, OverflowError) as error:
            found.close()
            if time.monotonic() > until or not isinstance(error, OSError):
                raise StorageError(f"port: {host}:{port} cannot be bound ({error})") from None
            time.sleep(0.1)
        else:
            return found


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
