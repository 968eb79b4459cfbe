"""Abilities of people at any times, past, between or future: mean, sd and a band."""

from __future__ import annotations

import argparse

from dynaesti.commands.shared import asked_labels, asked_times, open_fit, out_option, run_option, show

EXAMPLE = "  dynaesti ability run --id ada --id bob --at 2024-05-01 2024-06-01\n  dynaesti ability run --now --out now.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument("--id", action="append", metavar="ID", help="a person (again for more; default: everyone)")
    parser.add_argument("--at", nargs="+", metavar="TIME", help="times: numbers, or ISO dates (default: the instants of the answers)")
    parser.add_argument("--grid", type=int, metavar="N", help="N times from the first answer to the last")
    parser.add_argument("--now", action="store_true", help="now (for numeric times: the last one)")
    parser.add_argument("--level", type=float, default=0.7, help="probability of the band (default: 0.7)")
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table."""
    fit = open_fit(args.fit)
    frame = fit.ability(asked_times(fit, args), asked_labels(fit.ids, args.id), level=args.level)
    show(frame, args, scale=fit.scale.name, level=args.level)
    return 0
