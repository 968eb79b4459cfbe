"""Probabilities of each response at its time.

For known people from their curves, for new ones from the population.
"""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import further_responses, open_any
from dynaesti.cli.options import data_options, out_option, run_option
from dynaesti.cli.output import show

EXAMPLE = "  dynaesti predict run tomorrow.csv --out predicted.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table of probabilities."""
    fit = open_any(args.fit, args.connect)
    show(fit.predict(further_responses(args, fit, unanswered=True)), args)
    return 0
