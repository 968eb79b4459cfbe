"""Held-out scores of the model against baselines: constant, item + person, Elo, static IRT."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import estimator, read_responses, with_model
from dynaesti.cli.options import data_options, model_options, out_option
from dynaesti.cli.output import show

EXAMPLE = (
    "  dynaesti evaluate answers.csv --split last --share 0.15\n"
    "  dynaesti evaluate answers.csv --split rolling --folds 4"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    data_options(parser)
    model_options(parser)
    group = parser.add_argument_group("what is held out")
    group.add_argument(
        "--split",
        choices=("random", "last", "people", "rolling"),
        default="random",
        help="random answers, each person's last ones, all of some people, or what comes after a "
        "rolling origin",
    )
    group.add_argument("--share", type=float, default=0.2, help="share held out (default: 0.2)")
    group.add_argument(
        "--folds", type=int, default=3, help="origins, with --split rolling (default: 3)"
    )
    group.add_argument("--seed", type=int, default=0, help="seed of the random splits")
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Split the answers, fit one part, score the other."""
    from dynaesti.results import against_baselines, rolling, split

    responses = read_responses(args, timeless=args.bandwidth == float("inf"))
    chosen = estimator(with_model(args, responses), standard_errors=False)
    pairs = (
        rolling(responses, args.folds)
        if args.split == "rolling"
        else [split(responses, args.share, by=args.split, seed=args.seed)]
    )
    show(against_baselines(chosen, pairs), args, split=args.split)
    return 0
