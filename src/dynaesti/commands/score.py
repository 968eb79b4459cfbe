"""Abilities of further people, or of further answers, with the items frozen."""

from __future__ import annotations

import argparse

from dynaesti.commands.shared import asked_times, data_options, further_responses, open_fit, out_option, run_option, show

EXAMPLE = "  dynaesti score run newcomers.csv --at 30 60 90"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    parser.add_argument("--at", nargs="+", metavar="TIME", help="times (default: the instants of the answers)")
    parser.add_argument("--grid", type=int, metavar="N", help="N times over those of the fit")
    parser.add_argument("--now", action="store_true", help="now (for numeric times: the last one of the fit)")
    parser.add_argument("--level", type=float, default=0.7, help="probability of the band (default: 0.7)")
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table."""
    fit = open_fit(args.fit)
    show(fit.score(further_responses(args, fit), at=asked_times(fit, args), level=args.level), args, scale=fit.scale.name)
    return 0
