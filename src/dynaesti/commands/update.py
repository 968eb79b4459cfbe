"""More answers of known people, or of new ones: their curves move, the items stay. The run's fit is replaced."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dynaesti.commands.shared import FIT_NAME, as_json, data_options, further_responses, open_fit, run_option, say, tell, write_frame

if TYPE_CHECKING:
    from dynaesti.responses import Responses
    from dynaesti.results import Fit

EXAMPLE = "  dynaesti update run today.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    parser.add_argument("--out", metavar="FOLDER", help="write to another folder and leave the run as it is")


def run(args: argparse.Namespace) -> int:
    """Update, write, tell."""
    from dynaesti.commands.fit import ability_table
    from dynaesti.errors import InputError

    fit = open_fit(args.fit)
    more = _unknown(fit, further_responses(args, fit), args.drop_duplicates)
    if not len(more):
        raise InputError("all of these answers are in the run already; nothing is left to add")
    grown = fit.update(more)
    place = Path(args.fit)
    folder = Path(args.out) if args.out else place if place.is_dir() else place.parent
    target = place if place.is_file() and not args.out else folder / FIT_NAME
    folder.mkdir(parents=True, exist_ok=True)
    grown.save(target)
    tables = {"items": grown.items, "abilities": ability_table(grown)}
    for name in (f"{stem}{end}" for stem in tables for end in (".csv", ".parquet")):
        if args.out or (folder / name).exists():
            write_frame(tables[name.partition(".")[0]], folder / name)
    new = grown.responses.people.size - fit.responses.people.size
    if args.json:
        print(as_json({"out": str(target), "answers": len(more), "people": more.people.size, "new_people": new,
                       "log_evidence": grown.log_evidence}))
    say(f"{len(more):,} answers of {more.people.size:,} people ({new:,} new) were added; items stay as they were. Written to {target}. "
        "`dynaesti report` makes the page anew.", args)
    return 0


def _unknown(fit: Fit, more: Responses, drop: bool) -> Responses:
    """The answers, those left out (or told of) that repeat one of the run exactly."""
    import numpy as np

    from dynaesti.evaluate import part_of

    joined = fit.responses.joined(fit._read(more)[0])
    again = joined.row[np.flatnonzero(joined.repeats) + 1] - len(fit.responses)
    again = again[again >= 0]
    if again.size and not drop:
        tell([f"{again.size:,} of {len(more):,} answers are in the run already, exactly; --drop-duplicates leaves them out"])
    if not again.size or not drop:
        return more
    tell([f"{again.size:,} answers that are in the run already were left out"])
    return part_of(more, np.setdiff1d(np.arange(len(more)), again))
