"""Make, list and revoke keys of a service.

A key's text is told once, when it is made; the database keeps only its digest. As soon as there
is a key, the service asks for one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dynaesti.cli.output import print_result, show
from dynaesti.cli.serve import database_option

EXAMPLE = (
    "  dynaesti keys run --make lms --role write\n"
    "  dynaesti keys run\n"
    "  dynaesti keys run --revoke lms"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("fit", metavar="RUN", help="the run that is served")
    database_option(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--make", metavar="NAME", help="make a key of this name")
    what.add_argument("--revoke", metavar="NAME", help="take this key away")
    parser.add_argument(
        "--role",
        nargs="+",
        choices=("write", "read", "admin"),
        default=None,
        help="what the new key opens: write posts answers, read asks, admin does all (default: "
        "read)",
    )


def run(args: argparse.Namespace) -> int:
    """Make, revoke or list keys."""
    from dynaesti.core import is_address
    from dynaesti.errors import FileError, InputError
    from dynaesti.serve import all_keys, default_address, make_key, open_database, revoke_key
    from dynaesti.tables import Frame

    if args.role is not None and args.make is None:
        raise InputError("--role says what a new key opens; name the key by --make")
    if not is_address(args.fit) and not Path(args.fit).exists():
        raise FileError(f"{args.fit}: no such run")
    roles = args.role or ["read"]
    database = open_database(args.db or default_address(args.fit))
    try:
        if args.make is not None:
            text = make_key(database, args.make, roles)
            print_result(args, {"name": args.make, "roles": roles, "key": text}, text)
        elif args.revoke is not None:
            revoke_key(database, args.revoke)
            print_result(args, {"revoked": args.revoke}, f"revoked {args.revoke}")
        else:
            keys = all_keys(database)
            columns = {
                "name": [key.name for key in keys],
                "roles": [" ".join(key.roles) for key in keys],
                "made": [key.made for key in keys],
            }
            show(Frame(columns), args)
    finally:
        database.close()
    return 0
