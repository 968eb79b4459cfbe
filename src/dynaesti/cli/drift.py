"""Items that become easier or harder in the course of time, as leaked or ageing ones do."""

from __future__ import annotations

import argparse

from dynaesti.cli.figures import draw_figure, figure_option
from dynaesti.cli.inputs import open_any
from dynaesti.cli.options import out_option, run_option, screening_options
from dynaesti.cli.output import show

EXAMPLE = "  dynaesti drift run\n  dynaesti drift run --figure drift.png --out drift.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    screening_options(parser)
    figure_option(parser)
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table, the clearest changes first; draw the map of items over time."""
    from dynaesti.results import evaluation, plot_drift_map
    from dynaesti.sharded import cluster
    from dynaesti.tables import as_frame

    fit = open_any(args.fit, args.connect)
    with cluster(args.dask) as executor:
        frame = evaluation.drift(
            fit, level=args.level, purify=not args.no_purify, executor=executor
        )
        draw_figure(
            args.figure,
            lambda: plot_drift_map(evaluation.drift_map(fit, level=args.level, executor=executor)),
        )
    show(as_frame(frame).sort("p"), args, scale=fit.scale.name)
    return 0
