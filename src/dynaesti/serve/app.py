"""The application: routes, their errors in words, limits, and the page."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dynaesti import __version__
from dynaesti.errors import InputError
from dynaesti.serve.database import open_database
from dynaesti.serve.limits import Guard, Limits
from dynaesti.serve.routes import MOST_TOLD, Refused, router
from dynaesti.serve.scorers import attach, default_address, open_run
from dynaesti.serve.service import Service, Unavailable

PAGE = Path(__file__).with_name("page")
REPORTS = PAGE.parents[1] / "report" / "assets"  # charts and style are those of the report
SHARED = ("charts.js", "report.css")
POLICY = b"default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"


def create_app(
    run: str | PathLike[str],
    db: str | None = None,
    *,
    unknown_items: Literal["refuse", "queue"] = "refuse",
    open_to_all: bool | None = None,
    limits: Limits | None = None,
    page: bool = True,
) -> FastAPI:
    """An application that serves a run: answers in, curves out.

    It runs under uvicorn, alone or mounted in another application, whose lifespan must then enter
    this one's: ``app.router.lifespan_context(app)``.

    Parameters
    ----------
    run : path
        A folder of a fit, a ``.dyn`` or a ``.dynscore`` file.
    db : str, optional
        Address of the database, ``sqlite:///answers.db`` or ``postgresql://user@host/name``.
        Default: a SQLite file beside the run.
    unknown_items : {"refuse", "queue"}, default "refuse"
        What happens to answers to items that the scorer does not know: they are refused, or kept
        until a refit calibrates the items.
    open_to_all : bool, optional
        Whether no keys are asked for, because the application around this one knows its users.
        Default: keys are asked for as soon as some were made; before, only requests that call the
        service by a name of loopback are answered.
    limits : Limits, optional
        Sizes and rates.
    page : bool, default True
        Whether the page is served at ``/``.

    Returns
    -------
    fastapi.FastAPI

    Raises
    ------
    StorageError
        If the run or the database cannot be opened.
    InputError
        If the database is of another kind, or counts time in another way than the run.

    Examples
    --------
    >>> import tempfile
    >>> import dynaesti as dy
    >>> from dynaesti.serve import create_app
    >>> from fastapi.testclient import TestClient
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = dy.DynAEsti("2PL").fit(table).scorer().save(f"{folder}/run.dynscore")
    ...     with TestClient(create_app(run, open_to_all=True)) as client:
    ...         answer = {"id": "ada", "item": "i3", "resp": 1, "time": 50.0, "key": "1"}
    ...         for _ in range(2):
    ...             print(client.post("/answers", json={"answers": [answer]}).json()["new"])
    ...         print(client.get("/people/ada").json()["answers"])
    1
    0
    1
    """
    if unknown_items not in ("refuse", "queue"):
        raise InputError(f"unknown_items: expected 'refuse' or 'queue', got {unknown_items!r}")
    path = fspath(run)
    database = open_database(db or default_address(path))
    try:
        attach(database, *open_run(path))
        service = Service(database)
    except BaseException:
        database.close()
        raise
    return app_of(service, unknown_items, open_to_all, limits or Limits(), page)


def app_of(
    service: Service, unknown_items: str, open_to_all: bool | None, limits: Limits, page: bool
) -> FastAPI:
    """The application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = FastAPIOffline(  # its OpenAPI page brings its scripts itself
        title="dynaesti",
        version=__version__,
        summary="Answers in, curves move",
        lifespan=lifespan,
    )
    app.state.service = service
    app.state.unknown_items = unknown_items
    app.state.open_to_all = open_to_all
    app.include_router(router)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(InputError, _unusable)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(Unavailable, _unavailable)
    app.add_exception_handler(HTTPException, _plain)
    app.add_middleware(
        Guard,
        limits=limits,
        metrics=service.metrics,
        is_key=lambda digest: any(key.digest == digest for key in service.keys),
    )
    if page:
        app.mount("/", _Page(_Files(directory=PAGE, html=True)))
    return app


class _Files(StaticFiles):
    """The page's own files, and those that it shares with reports."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        if path in SHARED:
            file = REPORTS / path
            return str(file), file.stat()
        return super().lookup_path(path)


class _Page:
    """The page's files, with a policy that lets them load nothing from elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"content-security-policy", POLICY),
                    (b"cache-control", b"no-cache"),
                ]
            await send(message)

        await self.app(scope, receive, noted)


# --- errors in words. What was posted is not repeated in them, but for names of items and columns.


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = []
    for one in error.errors()[:MOST_TOLD]:
        where = ".".join(str(part) for part in one["loc"] if part != "body")
        found.append(f"{where or 'body'}: {one['msg']}")
    return _told(422, "; ".join(found))


async def _unusable(_: Request, error: Exception) -> JSONResponse:
    return _told(422, str(error))


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    told = [{"answer": k, "detail": _written(text)} for k, text in error.errors[:MOST_TOLD]]
    detail = (
        f"{len(error.errors):,} of {error.posted:,} answers cannot be used, so none was kept "
        f"(first: answer {error.errors[0][0] + 1} of {error.posted:,}: {error.errors[0][1]})"
    )
    return JSONResponse({"detail": _written(detail), "errors": told}, 422)


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "1"})


async def _plain(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    return JSONResponse({"detail": _written(str(error.detail))}, error.status_code, headers)


def _told(status: int, text: str) -> JSONResponse:
    return JSONResponse({"detail": _written(text)}, status)


def _written(text: str) -> str:
    """A text that can be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()
