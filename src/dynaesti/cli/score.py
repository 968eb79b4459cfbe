"""Abilities of further people, or of further answers, with the items frozen."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import further_responses, open_any, requested_times
from dynaesti.cli.options import data_options, out_option, run_option, when_options
from dynaesti.cli.output import show

EXAMPLE = "  dynaesti score run new-people.csv --at 30 60 90"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    when_options(parser)
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table of abilities."""
    fit = open_any(args.fit, args.connect)
    show(
        fit.score(further_responses(args, fit), at=requested_times(fit, args), level=args.level),
        args,
        scale=fit.scale.name,
    )
    return 0
