"""Who may ask what: keys with roles, and on loopback nobody else where no keys were made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import HTTPException, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from dynaesti.serve.keys import Key, find_key
from dynaesti.serve.service import Service

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_bearer = HTTPBearer(auto_error=False, description="a key that `dynaesti keys` has made")


def needs(role: str) -> Callable[..., Awaitable[None]]:
    """What lets only those pass who have a role."""

    async def check(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    ) -> None:
        service: Service = request.app.state.service
        open_to_all: bool | None = request.app.state.open_to_all
        if open_to_all:
            return
        if not service.asks_for_keys and open_to_all is None:
            _only_from_here(request)
            return
        key = None if credentials is None else find_key(service.keys, credentials.credentials)
        if key is None:
            raise HTTPException(
                401,
                "a key is needed: Authorization: Bearer KEY (dynaesti keys makes them)",
                {"WWW-Authenticate": "Bearer"},
            )
        _refuse_other_role(key, role)

    return check


def _refuse_other_role(key: Key, role: str) -> None:
    if not key.may(role):
        raise HTTPException(403, f"this key has not the role {role!r}")


def _only_from_here(request: Request) -> None:
    """Without keys: programs and pages of this machine only.

    A page from elsewhere, open in a browser here, could reach loopback too; it shows by the name
    it calls the service by, or by its origin.
    """
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).hostname not in LOOPBACK
    if host not in LOOPBACK or foreign:
        raise HTTPException(
            403, "no keys were made, so only this machine may ask; make keys with dynaesti keys"
        )
