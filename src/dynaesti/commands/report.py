"""Write the report of a fit: one HTML page that works offline."""

from __future__ import annotations

import argparse
from pathlib import Path

from dynaesti.commands.shared import as_json, open_fit, run_option, say

EXAMPLE = "  dynaesti report run --out class.html --title 'Class of spring'"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument("--out", metavar="FILE", help="the page (default: report.html in the run's folder)")
    parser.add_argument("--title", help="the page's title")


def run(args: argparse.Namespace) -> int:
    """Open the fit and write its page."""
    from dynaesti.report import write_report

    place = Path(args.fit)
    target = Path(args.out) if args.out else (place if place.is_dir() else place.parent) / "report.html"
    write_report(open_fit(args.fit), target, title=args.title)
    if args.json:
        print(as_json({"out": str(target), "bytes": target.stat().st_size}))
    say(f"Wrote {target}.", args)
    return 0
