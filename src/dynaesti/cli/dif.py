"""Items that are easier for one group of people than for another of the same ability (DIF)."""

from __future__ import annotations

import argparse

from dynaesti.cli.figures import draw_figure, figure_option
from dynaesti.cli.inputs import open_any
from dynaesti.cli.options import out_option, run_option, screening_options
from dynaesti.cli.output import show

EXAMPLE = (
    "  dynaesti dif run --by gender --data pupils.csv --figure dif.png\n"
    "  dynaesti fit answers.csv --groups gender --out run && dynaesti dif run --by gender"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument(
        "--by", metavar="COLUMN", required=True, help="column of the groups that are compared"
    )
    parser.add_argument(
        "--data",
        metavar="FILE",
        help="table with ids and that column, one row a person or the answers (default: the fit's "
        "own groups or effects)",
    )
    parser.add_argument("--slopes", action="store_true", help="test also if slopes differ")
    screening_options(parser)
    figure_option(parser)
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table, the clearest differences first."""
    from dynaesti.results import evaluation, plot_item_effects
    from dynaesti.sharded import cluster
    from dynaesti.tables import as_frame

    fit = open_any(args.fit, args.connect)
    with cluster(args.dask) as executor:
        frame = evaluation.dif(
            fit,
            args.by,
            args.data,
            slopes=args.slopes,
            level=args.level,
            purify=not args.no_purify,
            executor=executor,
        )
    frame = as_frame(frame).sort("p")
    draw_figure(args.figure, lambda: plot_item_effects(frame, "effect"))
    show(frame, args, scale=fit.scale.name, by=args.by)
    return 0
