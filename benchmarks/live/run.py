"""Live: states, the service under load, kills, refits, and the page.

    python -m benchmarks live --data FOLDER --out docs/evidence/live.json

Traffic goes to loopback only. A part that is run again replaces its own lines of the file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))  # the service, PostgreSQL and Chromium as the tests start them
DATABASES = ("sqlite", "postgresql")
LOGS = {"algebra05": (0,), "assistments17": (0, 1)}  # seeds of who is held out
PARTS = ("states", "next", "rates", "million", "kills", "refit", "openapi", "page")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks live",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    parser.add_argument("--data", type=Path, help="folder of the real logs, for `next`")
    parser.add_argument("--rate", type=float, default=550.0, help="answers a second (550)")
    parser.add_argument("--seconds", type=float, default=300.0, help="of a sustained run (300)")
    parser.add_argument("--kills", type=int, default=30, help="for each database (30)")
    parser.add_argument("--examples", type=int, default=300, help="requests drawn of a kind (300)")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="let service, database and sender of sustained runs go before all other processes",
    )
    parser.add_argument("--pictures", type=Path, help="folder for pictures of the page")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/live.json")
    args = parser.parse_args(arguments)
    told = json.loads(args.out.read_text()) if args.out.exists() else {}
    told["machine"] = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }
    for key, job in jobs(args):
        print(key, file=sys.stderr, flush=True)
        begun = time.perf_counter()
        told[key] = job() | {"took_seconds": time.perf_counter() - begun}
        args.out.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
        print(json.dumps(told[key], indent=1), file=sys.stderr, flush=True)


def jobs(args: argparse.Namespace) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """What is to be measured, by the name of its place in the file."""
    from benchmarks.live import scoring

    out: list[tuple[str, Callable[[], dict[str, Any]]]] = []
    if "states" in args.parts:
        out += [("states", lambda: {**scoring.seconds(), "file": scoring.sizes()})]
    if "next" in args.parts and args.data is not None:
        for name, seeds in LOGS.items():
            for seed in seeds:
                out.append(
                    (
                        f"next {name} {seed}",
                        lambda name=name, seed=seed: scoring.next_answers(args.data, name, seed),
                    )
                )
    for part in ("rates", "million", "kills", "refit", "openapi"):
        if part in args.parts:
            for name in args.databases:
                out.append(
                    (f"{part} {name}", lambda part=part, name=name: of_service(args, part, name))
                )
    if "page" in args.parts:
        out.append(("page", lambda: of_page(args)))
    return out


def of_service(args: argparse.Namespace, part: str, name: str) -> dict[str, Any]:
    """One part on one database."""
    from benchmarks.live import service

    folder = service.temporary()
    realtime = args.realtime and part in ("rates", "million")
    with ExitStack() as stack:
        with service.before_others(realtime):
            (address,) = stack.enter_context(service.databases(name, folder, 1))
        if part == "refit":
            return service.refit(name, folder, address)
        if part == "kills":
            return service.kills(name, folder, address, args.kills)
        run = service.make_run(folder)
        if part == "openapi":
            return service.requests_drawn(run, address, args.examples)
        stored = service.fill(address, run) if part == "million" else 0
        found = service.rates(name, run, address, args.rate, args.seconds, realtime)
        return {"stored_before": stored, **found}


def of_page(args: argparse.Namespace) -> dict[str, Any]:
    """The page in Chromium."""
    from benchmarks.live import page, service

    return page.delays(service.temporary(), args.pictures)
