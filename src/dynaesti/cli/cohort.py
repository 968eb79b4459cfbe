"""The population's mean ability over time, or that of each of its groups, with its band."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import open_any, requested_times
from dynaesti.cli.options import out_option, run_option, when_options
from dynaesti.cli.output import show

EXAMPLE = (
    "  dynaesti cohort run --at 2024-05-01 2024-06-01\n"
    "  dynaesti cohort run --grid 30 --level 0.9 --out cohort.csv"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    when_options(parser, "50 times over all the data")
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the cohort's curve."""
    fit = open_any(args.fit, args.connect)
    frame = fit.cohort(requested_times(fit, args), level=args.level)
    show(frame, args, scale=fit.scale.name, level=args.level)
    return 0
