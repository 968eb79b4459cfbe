"""Effects of covariates, practice and exchangeable blocks, as a table."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import open_any
from dynaesti.cli.options import out_option, run_option
from dynaesti.cli.output import show

EXAMPLE = "  dynaesti effects run\n  dynaesti effects run --out effects.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table of effects."""
    fit = open_any(args.fit, args.connect)
    show(fit.effects, args, scale=fit.scale.name)
    return 0
