"""Fit all answers of a service anew, on the old scale, and let it serve the result at once.

Items that were fitted before keep their parameters, and with them the zero and the unit of
ability; new items are calibrated on that scale, and what is known of the population is learned
again. A server notices within a second. If anything fails, nothing has changed.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dynaesti.cli.output import print_result
from dynaesti.cli.serve import database_option

if TYPE_CHECKING:
    from dynaesti.serve import RefitReport

EXAMPLE = "  dynaesti refit run\n  dynaesti refit run --db postgresql://ada@localhost/school --json"
SHOWN = 10  # items named in a sentence


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("fit", metavar="RUN", help="the run that is served")
    database_option(parser)
    parser.add_argument(
        "--least",
        type=int,
        default=30,
        metavar="N",
        help="answers that a new item needs before it is calibrated (default: 30)",
    )
    parser.add_argument("--threads", type=int, help="threads to use (default: all cores)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument(
        "--connect",
        action="store_true",
        help="for a fit of shards: let it call addresses of other hosts that it names",
    )


def run(args: argparse.Namespace) -> int:
    """Refit, and report what moved."""
    from dynaesti.core import whole_number
    from dynaesti.errors import FileError
    from dynaesti.serve import default_address, open_database, refit_log

    address = args.db or default_address(args.fit)
    scheme, _, file = address.partition(":///")
    if args.db is not None and scheme == "sqlite" and not Path(file).exists():
        raise FileError(f"--db: {file}: no such database; `dynaesti serve` makes it")
    database = open_database(address)
    try:
        report = refit_log(
            database,
            args.fit,
            least=whole_number(args.least, "--least", 2),
            connect=args.connect,
            threads=args.threads,
            progress=not args.quiet,
        )
    finally:
        database.close()
    print_result(args, asdict(report) | {"flagged": report.flagged}, _told(report))
    return 0


def _told(report: RefitReport) -> str:
    """The report in sentences."""
    from dynaesti.data import count_noun

    lines = [
        f"Scorer {report.scorer} is served now: {count_noun(report.answers, 'answers')} of "
        f"{count_noun(report.people, 'people')} to {report.items:,} items.",
        f"New items: {_named(report.new_items)}. Waiting for answers: {_named(report.waiting)}.",
        f"The old items hold the scale (largest change {report.scale_shift:.2g}); abilities "
        f"changed by {report.mean_change:+.3f} on average (sd {report.sd_change:.3f}).",
    ]
    if report.odd_times:
        first = report.odd_times[0]
        lines.append(
            f"Left out of the fit, since they lie far in time from all others: "
            f"{count_noun(len(report.odd_times), 'answers')} (first: {first['id']}, "
            f"{first['item']}, {first['time']})."
        )
    if report.flagged:
        lines.append(f"ALARM, items drift: {_named(report.flagged)}.")
        lines += [f"  {item}: {report.drift[item]['sentence']}" for item in report.flagged[:SHOWN]]
    else:
        lines.append("No item drifts.")
    return "\n".join(lines)


def _named(items: list[str]) -> str:
    if not items:
        return "none"
    more = f" and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return ", ".join(items[:SHOWN]) + more
