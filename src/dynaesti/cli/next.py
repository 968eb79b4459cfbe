"""What to ask a person next: the most informative items, or those of a chance of success."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import open_any, parsed_times, requested_labels
from dynaesti.cli.options import out_option, run_option
from dynaesti.cli.output import show

EXAMPLE = (
    "  dynaesti next run --id ada --at 2024-06-01\n"
    "  dynaesti next run --id ada --target 0.8 --exclude i3 i7"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument("--id", required=True, metavar="ID", help="a person of the fit")
    parser.add_argument(
        "--at", metavar="TIME", help="when (default: the time of the person's last answer)"
    )
    parser.add_argument(
        "--target",
        type=float,
        metavar="SHARE",
        help="items that are answered right with this chance, such as 0.8, in place of the most "
        "informative ones",
    )
    parser.add_argument("--exclude", nargs="+", default=[], metavar="ITEM", help="not these items")
    parser.add_argument(
        "--exposure", type=int, metavar="N", help="draw among the N best, to spare the best one"
    )
    parser.add_argument(
        "--stop", type=float, metavar="SD", help="no item once ability is known to this sd"
    )
    parser.add_argument("--count", type=int, default=1, metavar="N", help="items (default: 1)")
    parser.add_argument("--seed", type=int, help="of --exposure's draw (default: a new one)")
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the chosen items."""
    from dynaesti.results import Fit

    fit = open_any(args.fit, args.connect)
    known = requested_labels(fit.ids, [args.id]) if isinstance(fit, Fit) else [args.id]
    assert known is not None
    scorer = fit.scorer()
    state = fit.state(known[0])
    at = None if args.at is None else parsed_times([args.at])[0]
    frame = scorer.next_item(
        state,
        at,
        target=args.target,
        exclude=requested_labels(scorer.item_labels.tolist(), args.exclude),
        exposure=args.exposure,
        stop=args.stop,
        count=args.count,
        seed=args.seed,
    )
    ability = scorer.ability(state, at)
    show(frame, args, scale=scorer.scale.name, ability=ability.mean, sd=ability.sd)
    return 0
