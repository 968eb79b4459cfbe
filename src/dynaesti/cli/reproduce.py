"""Run the paper's studies and show the results beside the paper's own numbers.

The studies are polling, prior, synthetic, static, golf and palmer.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dynaesti.cli.messages import print_notes, print_text
from dynaesti.cli.output import as_json

EXAMPLE = (
    "  dynaesti reproduce polling --out paper\n"
    "  dynaesti reproduce all --golf masters.parquet --page docs/evidence/paper.md"
)
STUDIES = ("polling", "prior", "synthetic", "static", "golf", "palmer")


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("study", choices=(*STUDIES, "all"), help="which study")
    parser.add_argument(
        "--seeds", type=int, default=5, help="seeds of the synthetic studies (default: 5)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes and few seeds: a first impression, not a result",
    )
    parser.add_argument(
        "--golf",
        type=Path,
        metavar="FILE",
        help="the Masters' scorecards: person, hole, year, response, par",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("paper"),
        metavar="FOLDER",
        help="figures and JSON (default: paper)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="also write a page (Markdown); the figures go beside it",
    )
    parser.add_argument("--threads", type=int, help="threads to use (default: all cores)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Run the studies, write and print what they found."""
    from dynaesti.core import whole_number
    from dynaesti.studies import Options, run_study

    chosen = Options(
        whole_number(args.seeds, "--seeds", 1), args.quick, args.golf, args.threads, args.quiet
    )
    wanted = list(STUDIES) if args.study == "all" else [args.study]
    if args.study == "all" and args.golf is None:
        from dynaesti.studies import how_to_get_scorecards

        print_notes(f"golf and palmer are left out: {how_to_get_scorecards()}")
        wanted = [name for name in wanted if name not in ("golf", "palmer")]
    found = []
    for name in wanted:
        study = run_study(name, chosen)
        study.write(args.out)
        print_text(f"\n{study.as_text()}\n", args)
        found.append(study)
    if args.page is not None:
        _page(found, args)
    if args.json:
        print(as_json({"studies": [study.as_dict() for study in found]}))
    print_text(f"Figures and numbers are in {args.out}/.", args)
    return 0


def _page(found: list[Any], args: argparse.Namespace) -> None:
    """Write a page that can be read without the paper at hand."""
    folder = args.page.parent / args.page.stem
    folder.mkdir(parents=True, exist_ok=True)
    for study in found:
        for name, _, figure in study.figures:
            figure.savefig(folder / f"{name}.png", dpi=90)
    total = sum(study.seconds for study in found)
    head = (
        "# The paper, reproduced\n\nTripathi and Domingue (ICDM 2019) estimate abilities that "
        "move. Here is every number and figure of "
        f"theirs beside ours, made by one command, `dynaesti reproduce {args.study}`, in "
        f"{total / 60:.1f} minutes on the machine at "
        "hand. ‘Limit or bar’ is the best that can be had, or what we set ourselves."
    )
    args.page.write_text(
        "\n\n".join([head, *(study.markdown(folder.name) for study in found)]) + "\n",
        encoding="utf-8",
    )
