"""Draw answers from the model.

Abilities change over time, items are of any model, times are irregular. The true abilities and
items are written beside the answers.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from dynaesti.cli.output import print_result

EXAMPLE = (
    "  dynaesti simulate --people 200 --items 40 --answers-per-person 60 --out class\n"
    "  dynaesti simulate --people 1000000 --items 10000 --answers-per-person 100 --out platform"
)
MOST_IN_MEMORY = 2_000_000  # answers; more are drawn into shards


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("--people", type=int, default=200, help="number of people (default: 200)")
    parser.add_argument("--items", type=int, default=40, help="number of items (default: 40)")
    parser.add_argument(
        "--answers-per-person",
        type=_answers_per_person,
        default=60,
        metavar="N",
        help="answers of each (default: 60); 5:2000 for as few and as many, spread over their "
        "logarithms",
    )
    _model_options(parser)
    parser.add_argument("--seed", type=int, default=0, help="seed (default: 0)")
    parser.add_argument(
        "--shards",
        type=int,
        metavar="N",
        help="write N shards, one at a time (default: beyond two million answers, a million in "
        "each)",
    )
    parser.add_argument(
        "--out",
        default="simulated",
        metavar="FOLDER",
        help="folder for answers, items and abilities (default: simulated)",
    )
    parser.add_argument(
        "--force", action="store_true", help="write over earlier answers in the folder"
    )


def _model_options(parser: argparse.ArgumentParser) -> None:
    """Options of the model that the answers are drawn from."""
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
    parser.add_argument(
        "--groups",
        type=_groups,
        metavar="NAME=RISE,…",
        help="groups of people, and how much more each rises, such as control=0,treated=0.8",
    )


def run(args: argparse.Namespace) -> int:
    """Draw answers and write them, in one file or in shards."""
    count = args.answers_per_person
    most = count if isinstance(count, int) else count[1]
    in_shards = args.shards is not None or not isinstance(count, int)
    if in_shards or args.people * most > MOST_IN_MEMORY:
        _draw_shards(args)
    else:
        _draw_file(args)
    return 0


def _draw_file(args: argparse.Namespace) -> None:
    """Draw everyone's answers at once, and write them with the truth beside them."""
    from dynaesti.model import responses
    from dynaesti.tables import Frame, write_frame

    folder = Path(args.out)
    _refuse_full(folder, "answers", (folder / "answers.csv").exists(), args)
    drawn = responses(
        args.people, args.items, args.answers_per_person, seed=args.seed, **_truth_options(args)
    )
    files = {
        "answers.csv": drawn.table,
        "answers.parquet": drawn.table,
        "true_items.csv": drawn.items,
        "true_abilities.csv": drawn.abilities,
        "true_cohort.csv": drawn.cohort,
    }
    for name, columns in files.items():
        write_frame(Frame(columns), folder / name)
    count = len(drawn.table["id"])
    print_result(
        args,
        {"out": str(folder), "files": list(files), "answers": count},
        f"{count:,} answers of {args.people:,} people to {args.items:,} items ({args.model}) are "
        f"in {folder}/answers.csv, the truth beside them.",
    )


def _draw_shards(args: argparse.Namespace) -> None:
    """Draw the answers a shard at a time."""
    from dynaesti.sharded import is_shards, simulate_shards
    from dynaesti.tables import Frame, write_frame

    folder = Path(args.out)
    _refuse_full(folder, "shards", is_shards(folder / "shards"), args)
    made, items = simulate_shards(
        folder / "shards",
        args.people,
        args.items,
        args.answers_per_person,
        shards=args.shards,
        seed=args.seed,
        on_progress=_show_progress,
        **_truth_options(args),
    )
    write_frame(Frame(items), folder / "true_items.csv")
    print_result(
        args,
        {
            "out": str(folder),
            "files": ["shards", "true_items.csv"],
            "answers": made.rows,
            "shards": len(made),
        },
        f"{made.rows:,} answers of {made.people:,} people to {args.items:,} items ({args.model}) "
        f"are in {len(made)} shards in {folder}/shards, true abilities in its folder truth, true "
        f"items in {folder}/true_items.csv.",
    )


def _truth_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `_model_options` as keywords of the simulators."""
    names = ("model", "span", "bandwidth", "level", "growth", "groups")
    return {name: getattr(args, name) for name in names}


def _refuse_full(folder: Path, what: str, full: bool, args: argparse.Namespace) -> None:
    """Refuse a folder that holds drawn answers, unless --force allows to write over them."""
    from dynaesti.errors import InputError

    if full and not args.force:
        raise InputError(
            f"--out: {folder} holds {what} already; name another folder, or add --force to write "
            f"over them"
        )


def _show_progress(done: int, shards: int) -> None:
    """Show on a terminal how many shards are done."""
    if sys.stderr.isatty():
        print(
            f"\rshard {done} of {shards}",
            end="" if done < shards else "\n",
            file=sys.stderr,
            flush=True,
        )


def _groups(text: str) -> dict[str, float]:
    """Groups and their rises, NAME=RISE separated by commas."""
    try:
        pairs = [part.rsplit("=", 1) for part in text.split(",")]
        groups = {name.strip(): float(rise) for name, rise in pairs}
        if "" in groups or len(groups) < len(pairs):
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=RISE,… such as control=0,treated=0.8"
        ) from None
    return groups


def _answers_per_person(text: str) -> int | tuple[int, int]:
    """A number, or LEAST:MOST."""
    least, _, most = text.partition(":")
    try:
        return (int(least), int(most)) if most else int(least)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number nor LEAST:MOST, such as 5:2000"
        ) from None
