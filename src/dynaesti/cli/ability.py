"""Abilities of people at any times, past, between or future: mean, sd and a band."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import open_any, requested_labels, requested_times
from dynaesti.cli.messages import print_text
from dynaesti.cli.options import out_option, people_option, run_option, when_options
from dynaesti.cli.output import show

EXAMPLE = (
    "  dynaesti ability run --id ada bob --at 2024-05-01 2024-06-01\n"
    "  dynaesti ability run --now --out now.csv"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    people_option(parser)
    when_options(parser)
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table of abilities."""
    from dynaesti.results import Fit

    fit = open_any(args.fit, args.connect)
    ids = requested_labels(fit.ids, args.id) if isinstance(fit, Fit) else args.id
    if ids is None and not isinstance(fit, Fit):
        folder = fit.write_abilities(requested_times(fit, args), level=args.level)
        print_text(
            f"Everyone's abilities are in {folder}/, a file for each shard. --id asks for single "
            f"people.",
            args,
        )
        return 0
    frame = fit.ability(requested_times(fit, args), ids, level=args.level)
    show(frame, args, scale=fit.scale.name, level=args.level)
    return 0
