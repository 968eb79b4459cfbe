"""Draw answers from the model.

People whose abilities move, items of any kind, irregular times. The truth is written beside.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dynaesti.cli.messages import say
from dynaesti.cli.output import as_json, write_frame

EXAMPLE = (
    "  dynaesti simulate --people 200 --items 40 --answers-per-person 60 --out class\n"
    "  dynaesti simulate --people 1000000 --items 10000 --answers-per-person 100 --out platform"
)
MOST = 2_000_000  # answers in memory


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--people", type=int, default=200, help="number of people (default: 200)")
    parser.add_argument("--items", type=int, default=40, help="number of items (default: 40)")
    parser.add_argument(
        "--answers-per-person",
        type=_extrapolation_radius,
        default=60,
        metavar="N",
        help="answers of each (default: 60); 5:2000 for as few and as many, spread over their "
        "logarithms",
    )
    parser.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="write N shards, one at a time (default: beyond two million answers, a million in "
        "each)",
    )
    parser.add_argument(
        "--model",
        default="2PL",
        help="1PL, 2PL, 3PL, 4PL, GRM, GPCM, PCM, poisson or gaussian (default: 2PL)",
    )
    parser.add_argument("--span", type=float, default=100.0, help="length of time (default: 100)")
    parser.add_argument(
        "--bandwidth", type=float, default=25.0, help="time scale of what moves (default: 25)"
    )
    parser.add_argument(
        "--level",
        type=float,
        default=0.5,
        help="share of the variance that stays with a person (default: 0.5)",
    )
    parser.add_argument(
        "--growth",
        type=float,
        default=0.0,
        help="rise of everybody's ability over the span, in sds (default: 0)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    parser.add_argument(
        "--out",
        default="simulated",
        metavar="FOLDER",
        help="folder for answers, items and abilities (default: simulated)",
    )

    parser.add_argument(
        "--force", action="store_true", help="write over earlier answers in the folder"
    )


def _extrapolation_radius(text: str) -> int | tuple[int, int]:
    least, _, most = text.partition(":")
    try:
        return (int(least), int(most)) if most else int(least)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number nor LEAST:MOST, such as 5:2000"
        ) from None


def _to_shards(args: argparse.Namespace) -> int:
    """Draw a shard at a time."""
    from dynaesti.data import make_frame
    from dynaesti.errors import InputError
    from dynaesti.sharded import is_shards, simulate_shards

    folder = Path(args.out)
    if is_shards(folder / "shards") and not args.force:
        raise InputError(
            f"--out: {folder} holds shards already; name another folder, or add --force to write "
            f"over them"
        )

    def live(done: int, shards: int) -> None:
        if sys.stderr.isatty():
            print(
                f"\rshard {done} of {shards}",
                end="" if done < shards else "\n",
                file=sys.stderr,
                flush=True,
            )

    made, items = simulate_shards(
        folder / "shards",
        args.people,
        args.items,
        args.answers_per_person,
        shards=args.shards,
        model=args.model,
        span=args.span,
        bandwidth=args.bandwidth,
        level=args.level,
        growth=args.growth,
        seed=args.seed,
        tell=live,
    )
    write_frame(make_frame(items), folder / "true_items.csv")
    if args.json:
        print(
            as_json(
                {
                    "out": str(folder),
                    "files": ["shards", "true_items.csv"],
                    "answers": made.rows,
                    "shards": len(made),
                }
            )
        )
    say(
        f"{made.rows:,} answers of {made.people:,} people to {args.items:,} items ({args.model}) "
        f"are in {len(made)} shards in "
        f"{folder}/shards, true abilities in its folder truth, true items in "
        f"{folder}/true_items.csv.",
        args,
    )
    return 0


def run(args: argparse.Namespace) -> int:
    """Draw and write."""
    from dynaesti.data import make_frame
    from dynaesti.errors import InputError
    from dynaesti.model import responses

    most = (
        args.answers_per_person
        if isinstance(args.answers_per_person, int)
        else args.answers_per_person[1]
    )
    if (
        args.shards is not None
        or not isinstance(args.answers_per_person, int)
        or args.people * most > MOST
    ):
        return _to_shards(args)
    drawn = responses(
        args.people,
        args.items,
        args.answers_per_person,
        model=args.model,
        span=args.span,
        bandwidth=args.bandwidth,
        level=args.level,
        growth=args.growth,
        seed=args.seed,
    )
    folder = Path(args.out)
    if (folder / "answers.csv").exists() and not args.force:
        raise InputError(
            f"--out: {folder} holds answers already; name another folder, or add --force to write "
            f"over them"
        )
    files = {
        "answers.csv": drawn.table,
        "answers.parquet": drawn.table,
        "true_items.csv": drawn.items,
        "true_abilities.csv": drawn.abilities,
    }
    for name, columns in files.items():
        write_frame(make_frame(columns), folder / name)
    if args.json:
        print(
            as_json({"out": str(folder), "files": list(files), "answers": len(drawn.table["id"])})
        )
    say(
        f"{len(drawn.table['id']):,} answers of {args.people:,} people to {args.items:,} items "
        f"({args.model}) are in {folder}/answers.csv, "
        "the truth beside them.",
        args,
    )
    return 0
