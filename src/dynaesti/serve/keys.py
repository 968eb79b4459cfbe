"""API keys: kept as digests, each with its roles."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from dynaesti.errors import InputError
from dynaesti.serve.database import Database, Transaction

ROLES = ("write", "read", "admin")
PREFIX = "dyn_"
BYTES = 32  # of chance in a key, which is why a plain digest is enough
LONGEST_NAME = 100
MADE = "keys were made"  # name of that fact in the database


@dataclass(frozen=True)
class Key:
    """A key as the database knows it.

    Parameters
    ----------
    name : str
    roles : tuple of str
        Of "write" (post answers), "read" (ask) and "admin" (everything).
    made : str
        When, in UTC.
    """

    name: str
    roles: tuple[str, ...]
    made: str
    digest: str = ""

    def may(self, role: str) -> bool:
        """Whether the key opens what needs a role."""
        return role in self.roles or "admin" in self.roles


def make_key(database: Database, name: str, roles: Sequence[str]) -> str:
    """Make a key; its text is told once, and only its digest is kept.

    Raises
    ------
    InputError
        If the name is taken, or a role unknown.
    """
    unknown = [role for role in roles if role not in ROLES]
    if unknown or not roles:
        raise InputError(f"role: expected some of {', '.join(ROLES)}")
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(f"name: expected 1 to {LONGEST_NAME} printable characters")
    text = PREFIX + secrets.token_urlsafe(BYTES)
    with database.exclusive() as tx:
        if any(key.name == name for key in keys_in(tx)):
            raise InputError(f"name: there is a key {name!r} already; revoke it, or name another")
        tx.run(
            "INSERT INTO dynaesti_keys (name, digest, roles, made) "
            "VALUES (:name, :digest, :roles, :made)",
            name=name,
            digest=digest_of(text),
            roles=" ".join(role for role in ROLES if role in roles),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        tx.set_meta(MADE, "yes")
    return text


def revoke_key(database: Database, name: str) -> None:
    """Take a key away; servers notice within a second or two.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    with database.exclusive() as tx:
        if all(key.name != name for key in keys_in(tx)):
            raise InputError(f"name: there is no key {name!r}")
        tx.run("DELETE FROM dynaesti_keys WHERE name = :name", name=name)
        tx.set_meta(MADE, "yes")  # of a database whose keys an earlier version made


def were_made(tx: Transaction) -> bool:
    """Whether keys were ever made: from then on nothing is open, though all were revoked."""
    return tx.meta(MADE) is not None or bool(keys_in(tx))


def all_keys(database: Database) -> list[Key]:
    """The keys, by name."""
    with database.reading() as tx:
        return keys_in(tx)


def keys_in(tx: Transaction) -> list[Key]:
    """The keys that a transaction sees, by name."""
    found = tx.rows("SELECT name, roles, made, digest FROM dynaesti_keys ORDER BY name")
    return [Key(name, tuple(roles.split()), made, digest) for name, roles, made, digest in found]


def digest_of(text: str) -> str:
    """The digest of a key's text."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def find_key(keys: Sequence[Key], text: str) -> Key | None:
    """The key with a text, compared in constant time."""
    digest = digest_of(text)
    found = None
    for key in keys:
        if hmac.compare_digest(key.digest, digest):
            found = key
    return found
