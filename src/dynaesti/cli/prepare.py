"""Sort answers by person and time and split them into shards, in bounded memory.

For data that memory cannot hold.
"""

from __future__ import annotations

import argparse
import sys

from dynaesti.cli.messages import print_notes
from dynaesti.cli.options import COLUMNS, LAYOUT, PARTS, data_options
from dynaesti.cli.output import print_result

EXAMPLE = "  dynaesti prepare answers-*.parquet --out shards\n  dynaesti fit shards --out run"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    data_options(parser)
    parser.add_argument(
        "--model-column", metavar="COLUMN", help="column that names each item's model"
    )
    parser.add_argument("--group", metavar="COLUMN", help="column of people's groups")
    parser.add_argument(
        "--effects", metavar="FORMULA", help="keep the columns that a fit with these effects needs"
    )
    parser.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="how many (default: about a million answers in each)",
    )
    parser.add_argument(
        "--out", default="shards", metavar="FOLDER", help="folder of the shards (default: shards)"
    )
    parser.add_argument(
        "--memory",
        default="1GB",
        help="memory for sorting (default: 1GB); the rest goes through the disk",
    )
    parser.add_argument(
        "--timeless", action="store_true", help="the answers have no times: constant abilities only"
    )
    parser.add_argument("--force", action="store_true", help="write over an earlier folder")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Read, sort and split the answers."""
    from dynaesti.sharded import prepare

    def show_progress(text: str) -> None:
        if not args.quiet and sys.stderr.isatty():
            print(f"\r{text:60}", end="", file=sys.stderr, flush=True)

    made = prepare(
        args.data,
        args.out,
        shards=args.shards,
        **{key: getattr(args, key) for key in (*COLUMNS, *LAYOUT, *PARTS)},
        model=args.model_column,
        group=args.group,
        effects=args.effects,
        unit=args.unit,
        unreadable="drop" if args.drop_unreadable else "refuse",
        timezone=args.timezone,
        time_format=args.time_format,
        code=dict(args.code) if args.code else None,
        distinct=args.drop_duplicates,
        timeless=args.timeless,
        force=args.force,
        memory=args.memory,
        on_progress=show_progress,
    )
    show_progress("")
    print_notes(*made.notes)
    print_result(
        args,
        {
            "out": args.out,
            "shards": len(made),
            "answers": made.rows,
            "people": made.people,
            "items": made.items.size,
            "dropped": made.dropped,
            "notes": list(made.notes),
        },
        f"{made.rows:,} answers of {made.people:,} people to {made.items.size:,} items are in "
        f"{len(made)} shards in {args.out}/. `dynaesti fit {args.out}` fits them.",
    )
    return 0
