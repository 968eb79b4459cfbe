"""Take answers over HTTP, keep them, and tell abilities at once; with a page to watch.

Answers are kept in a database: a SQLite file beside the run, or PostgreSQL. An answer that was
acknowledged is on disk. On this machine no key is asked for until some were made (`dynaesti
keys`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dynaesti.cli.messages import print_notes
from dynaesti.cli.output import print_result

if TYPE_CHECKING:
    from dynaesti.serve import Settings

EXAMPLE = (
    "  dynaesti serve run\n"
    "  dynaesti serve run.dynscore --db postgresql://ada@localhost/school --workers 2"
)

STUDENTS, SEED = 40, 7  # of the demonstration


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "fit",
        nargs="?",
        metavar="RUN",
        help="a folder written by `dynaesti fit`, a .dyn or a .dynscore file",
    )
    parser.add_argument(
        "--demo",
        action="store_true",
        help="instead of RUN: simulate a class, and let it answer while you watch",
    )
    database_option(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to bind (default: 127.0.0.1; others need keys)",
    )
    parser.add_argument("--port", type=int, default=8000, help="port (default: 8000; 0: any)")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes, on PostgreSQL (default: 1)"
    )
    _policy_options(parser)


def _policy_options(parser: argparse.ArgumentParser) -> None:
    """What is let in."""
    parser.add_argument(
        "--unknown-items",
        choices=("refuse", "queue"),
        default="refuse",
        help="what happens to answers to items that were never fitted: refused, or kept for "
        "`dynaesti refit`",
    )
    parser.add_argument(
        "--max-body",
        type=int,
        default=8_000_000,
        metavar="BYTES",
        help="of a request (default: 8000000)",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=2000.0,
        metavar="N",
        help="requests a second of one key, or one address without (default: 2000)",
    )
    parser.add_argument(
        "--connect",
        action="store_true",
        help="for a fit of shards: let it call addresses of other hosts that it names",
    )


def database_option(parser: argparse.ArgumentParser) -> None:
    """The database of the service."""
    parser.add_argument(
        "--db",
        metavar="ADDRESS",
        help="sqlite:///answers.db or postgresql://user@host/name (default: a SQLite file beside "
        "the run)",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from dynaesti.errors import InputError

    if args.demo and args.fit is not None:
        raise InputError("--demo: it serves a simulated class; give it or a RUN, not both")
    if not args.demo and args.fit is None:
        raise InputError("name a RUN, or give --demo for a simulated class")
    if args.demo:
        return _demonstrate(args)
    _serve(args, lambda _: None)
    return 0


def _serve(args: argparse.Namespace, then: Callable[[str], None]) -> None:
    """Serve, and do something with the address once it is bound."""
    from dynaesti.serve import run_server

    def ready(url: str, database: str) -> None:
        print_result(
            args,
            {"url": url, "database": database},
            f"Serving {args.fit} at {url} (answers are kept in {database}; Ctrl-C ends).",
        )
        sys.stdout.flush()
        then(url)

    run_server(settings_of(args), ready, args.connect)
    print_notes("the service has ended; all acknowledged answers are kept")


def _demonstrate(args: argparse.Namespace) -> int:
    """Serve a simulated class that goes on answering."""
    from dynaesti.cli.live_demo import HOURS_A_SECOND, LiveClass, SimulatedClass, make_run

    with TemporaryDirectory(prefix="dynaesti-demo-") as folder:
        one = SimulatedClass(STUDENTS, SEED)
        print_notes(f"two months of {STUDENTS} simulated students are fitted first")
        args.fit = str(make_run(one, Path(folder) / "class.dyn"))
        print_notes(f"then the class goes on, {HOURS_A_SECOND:g} of its hours in a second")
        _serve(args, lambda url: LiveClass(one, url).start())
    return 0


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings that the options describe."""
    from dynaesti.core import positive_number, whole_number
    from dynaesti.serve import Limits, Settings

    return Settings(
        args.fit,
        args.db,
        args.host,
        whole_number(args.port, "--port", 0),
        whole_number(args.workers, "--workers", 1),
        args.unknown_items,
        Limits(whole_number(args.max_body, "--max-body", 1), positive_number(args.rate, "--rate")),
    )
