"""Simulate a class over a term, fit it, and write the report: everything in one command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EXAMPLE = "  dynaesti demo --out demo"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "--out", default="demo", metavar="FOLDER", help="folder for everything (default: demo)"
    )
    parser.add_argument("--people", type=int, default=120, help="students (default: 120)")
    parser.add_argument("--seed", type=int, default=7, help="seed (default: 7)")


def run(args: argparse.Namespace) -> int:
    """Draw the answers, fit them, write the run."""
    from dynaesti.ability_estimator import DynAEsti
    from dynaesti.cli.demo_data import term
    from dynaesti.cli.fit import fit_and_write
    from dynaesti.data import Responses
    from dynaesti.tables import Frame, write_frame

    folder = Path(args.out)
    write_frame(Frame(term(args.people, seed=args.seed)), folder / "answers.csv")
    print(
        f"A term of {args.people} students was drawn into {folder / 'answers.csv'}; now it is "
        f"fitted.",
        file=sys.stderr,
    )
    args.no_static = False
    args.no_report = False
    chosen = DynAEsti("2PL", progress=True)
    fit_and_write(
        chosen,
        Responses.read(str(folder / "answers.csv")),
        folder,
        args,
        title="A class over a term (simulated)",
    )
    return 0
