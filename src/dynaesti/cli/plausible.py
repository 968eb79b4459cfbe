"""Plausible values: abilities of people drawn from their posterior, a column for each draw."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import open_any, requested_labels, requested_times
from dynaesti.cli.options import out_option, people_option, run_option, time_options
from dynaesti.cli.output import show

N_TIMES = 5  # where none are named
EXAMPLE = (
    "  dynaesti plausible run --at 2024-05-01 2024-06-01 --draws 10 --out values.csv\n"
    "  dynaesti plausible run --grid 5 --item-uncertainty"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    people_option(parser)
    time_options(parser, "5 times over all the data")
    parser.add_argument(
        "--draws", type=int, default=10, metavar="N", help="values of each person (default: 10)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="other values for another (default: 0)"
    )
    parser.add_argument(
        "--item-uncertainty",
        action="store_true",
        help="draw items and cohort too, anew for each value (takes as many times as long)",
    )
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table of values."""
    import numpy as np

    from dynaesti.results import Fit

    fit = open_any(args.fit, args.connect)
    ids = requested_labels(fit.ids, args.id) if isinstance(fit, Fit) else args.id
    at = requested_times(fit, args)
    if at is None:
        at = fit.from_clock(np.linspace(*fit.time_range, N_TIMES))
    frame = fit.plausible_values(
        at, ids, size=args.draws, seed=args.seed, item_uncertainty=args.item_uncertainty
    )
    show(frame, args, scale=fit.scale.name)
    return 0
