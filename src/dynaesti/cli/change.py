"""Who rose and who fell between two times: everyone's change, or that of groups or all."""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import open_any, parsed_times, requested_labels
from dynaesti.cli.options import out_option, people_option, probability, run_option
from dynaesti.cli.output import show

EXAMPLE = (
    "  dynaesti change run --from 2024-02-01 --to 2024-06-01\n"
    "  dynaesti change run --from 2024-02-01 --to 2024-06-01 --by group"
)


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument("--from", dest="t0", metavar="TIME", help="default: the first answer")
    parser.add_argument("--to", dest="t1", metavar="TIME", help="default: the last answer")
    parser.add_argument(
        "--by",
        choices=("person", "group", "cohort"),
        default="person",
        help="person: everyone's change, those who rose most first; group: differences of groups; "
        "cohort: growth of the population, or of each group",
    )
    people_option(parser)
    parser.add_argument(
        "--level",
        type=probability,
        help="probability of the band (default: 0.7, and 0.95 for groups and the cohort)",
    )
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table of changes."""
    import numpy as np

    from dynaesti.errors import InputError
    from dynaesti.results import Fit

    fit = open_any(args.fit, args.connect)
    ends = list(fit.from_clock(np.array(fit.time_range)))
    asked = {"--from": args.t0, "--to": args.t1}
    given = [
        None if text is None else parsed_times([text], name)[0] for name, text in asked.items()
    ]
    t0, t1 = (end if time is None else time for time, end in zip(given, ends, strict=True))
    facts = {"from": t0, "to": t1, "scale": fit.scale.name}
    if args.by != "person":
        if args.id:
            raise InputError(f"--id: it asks for people; leave it out with --by {args.by}")
        if args.by == "group" and len(getattr(fit.priors.cohort, "groups", ())) < 2:
            raise InputError(
                f"--by group: {args.fit} has no groups that could be compared; fit with --groups "
                "COLUMN"
            )
        level = 0.95 if args.level is None else args.level
        table = fit.compare_groups if args.by == "group" else fit.growth
        show(table(t0, t1, level=level), args, level=level, **facts)
        return 0
    level = 0.7 if args.level is None else args.level
    ids = requested_labels(fit.ids, args.id) if isinstance(fit, Fit) else args.id
    show(fit.changes(t0, t1, ids, level=level, sort=True), args, level=level, **facts)
    return 0
