"""Write the report of a fit: one HTML page that works offline."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dynaesti.cli.inputs import open_any, open_fit
from dynaesti.cli.messages import say, tell
from dynaesti.cli.options import run_option
from dynaesti.cli.output import as_json
from dynaesti.core import STATIC_NAME

if TYPE_CHECKING:
    from dynaesti.results import Fit, StaticComparison

EXAMPLE = "  dynaesti report run --out class.html --title 'Class of spring'"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument(
        "--out", metavar="FILE", help="the page (default: report.html in the run's folder)"
    )
    parser.add_argument("--title", help="the page's title")


def _twin(fit: Fit, place: Path) -> StaticComparison | None:
    """The comparison with constant abilities, where the run has one of the same answers."""
    from dynaesti.errors import InputError
    from dynaesti.results import static_comparison_of

    atomic_path = place / STATIC_NAME
    if not place.is_dir() or not atomic_path.exists():
        return None
    try:
        return static_comparison_of(fit, open_fit(str(atomic_path)))
    except InputError as error:
        tell([f"the comparison with constant abilities is left out: {error}"])
        return None


def run(args: argparse.Namespace) -> int:
    """Open the fit and write its page."""
    import numpy as np

    from dynaesti.report import write_report
    from dynaesti.results import Fit

    place = Path(args.fit)
    target = (
        Path(args.out) if args.out else (place if place.is_dir() else place.parent) / "report.html"
    )
    fit = open_any(args.fit, args.connect)
    if not isinstance(fit, Fit):
        chosen = int(np.argmax([part.people for part in fit.shards.parts]))
        note = (
            f"of {len(fit.shards)} shards with {fit.shards.rows:,} answers of "
            f"{fit.shards.people:,} people this page shows those "
            f"of shard {chosen}; items and priors are those of all"
        )
        tell([note])
        part = fit.shard(chosen)
        fit = replace(part, responses=part.responses.with_note(note))
    write_report(fit, target, static_comparison=_twin(fit, place), title=args.title)
    if args.json:
        print(as_json({"out": str(target), "bytes": target.stat().st_size}))
    say(f"Wrote {target}.", args)
    return 0
