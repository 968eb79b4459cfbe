"""More answers of known people, or of new ones: their curves move, the items stay. The run's fit is replaced."""

from __future__ import annotations

import argparse
from pathlib import Path

from dynaesti.commands.shared import FIT_NAME, as_json, data_options, further_responses, open_fit, run_option, say, write_frame

EXAMPLE = "  dynaesti update run today.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    parser.add_argument("--out", metavar="FOLDER", help="write to another folder and leave the run as it is")


def run(args: argparse.Namespace) -> int:
    """Update, write, tell."""
    fit = open_fit(args.fit)
    more = further_responses(args, fit)
    grown = fit.update(more)
    place = Path(args.fit)
    folder = Path(args.out) if args.out else place if place.is_dir() else place.parent
    folder.mkdir(parents=True, exist_ok=True)
    target = place if place.is_file() and not args.out else folder / FIT_NAME
    grown.save(target)
    abilities = grown.ability()
    for name in ("abilities.csv", "abilities.parquet"):
        if args.out or (folder / name).exists():
            write_frame(abilities, folder / name)
    new = grown.responses.people.size - fit.responses.people.size
    if args.json:
        print(as_json({"out": str(target), "answers": len(more), "people": more.people.size, "new_people": new,
                       "log_evidence": grown.log_evidence}))
    say(f"{len(more):,} answers of {more.people.size:,} people ({new:,} new) were added; items stay as they were. Written to {target}. "
        "`dynaesti report` makes the page anew.", args)
    return 0
