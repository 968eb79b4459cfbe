"""Plan a study by simulation.

How wide the bands of abilities, of the cohort's mean and of an effect will be, whether they cover,
and how often a rise, or a difference in growth between two groups, will be found. Several numbers
of people, items, answers, rises or differences are compared side by side.
"""

from __future__ import annotations

import argparse

from dynaesti.cli.messages import print_error
from dynaesti.cli.options import out_option, probability
from dynaesti.cli.output import show

EXAMPLE = (
    "  dynaesti plan --people 200 --items 30 --answers 6 12 24 --rise 0.5\n"
    "  dynaesti plan --people 100 200 400 --answers 12 --rise 1 --groups 0.5 --occasions 2"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    counts = (("people", 200, "people"), ("items", 30, "items"), ("answers", 12, "answers of each"))
    for name, default, what in counts:
        parser.add_argument(
            f"--{name}",
            type=int,
            nargs="+",
            default=[default],
            metavar="N",
            help=f"number of {what} (default: {default}); several are compared",
        )
    parser.add_argument(
        "--rise",
        type=float,
        nargs="+",
        default=[0.5],
        metavar="SD",
        help="how much everybody rises over the study, in sds of people (default: 0.5)",
    )
    parser.add_argument(
        "--groups",
        type=float,
        nargs="+",
        metavar="SD",
        help="half of the people are treated and rise by so much more; the study is to find it",
    )
    _world_options(parser)
    _run_options(parser)
    out_option(parser)


def _world_options(parser: argparse.ArgumentParser) -> None:
    """Options of the items, and of how people move and answer."""
    parser.add_argument(
        "--model",
        default="2PL",
        help="1PL, 2PL, 3PL, 4PL, GRM, PCM, GPCM, poisson, gaussian or beta (default: 2PL)",
    )
    parser.add_argument(
        "--slope", type=float, help="slope of a typical item, per sd of ability (default: 1)"
    )
    parser.add_argument(
        "--guessing",
        type=float,
        metavar="CHANCE",
        help="chance to guess a typical item right, with 3PL and 4PL (default: 0.12)",
    )
    parser.add_argument(
        "--span", type=float, default=100.0, help="how long the study lasts (default: 100)"
    )
    parser.add_argument(
        "--bandwidth",
        type=float,
        help="time scale on which people move about the cohort (default: a quarter of the span)",
    )
    parser.add_argument(
        "--stays",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="share of the variance between people that does not move (default: 0.5)",
    )
    parser.add_argument(
        "--occasions",
        type=int,
        metavar="N",
        help="all answer at N times, evenly apart: 2 for before and after (default: each at times "
        "of their own)",
    )
    parser.add_argument(
        "--assignment",
        choices=("shuffled", "random", "ordered"),
        default="shuffled",
        help="each meets the items in an order of their own, none again before all were met "
        "(shuffled, the default); any at any time (random); or all in one order (ordered)",
    )


def _run_options(parser: argparse.ArgumentParser) -> None:
    """Options of the simulation."""
    parser.add_argument(
        "--level",
        type=probability,
        default=0.95,
        help="probability of bands and intervals (default: 0.95)",
    )
    parser.add_argument(
        "--replications",
        type=int,
        metavar="N",
        help="studies drawn of each design (default: 50, shared by the designs, 25 at least)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each fit (default: 1)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Draw and fit the studies; print the table and the advice."""
    from dynaesti.planning import plan

    several = ("people", "items", "answers", "rise", "groups")
    others = ("model", "slope", "guessing", "span", "bandwidth", "stays", "occasions", "assignment")
    found = plan(
        **{name: getattr(args, name) for name in (*several, *others)},
        level=args.level,
        replications=args.replications,
        seed=args.seed,
        threads=args.threads,
        progress=not args.quiet,
    )
    show(found.table, args, level=args.level, advice=found.advice)
    if not args.json:
        print_error(found.advice)
    return 0
