"""Write the report of a fit: one HTML page that works offline, or the same on paper."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dynaesti.cli.inputs import open_any, open_fit
from dynaesti.cli.messages import print_notes
from dynaesti.cli.options import run_option
from dynaesti.cli.output import print_result
from dynaesti.core import STATIC_NAME

if TYPE_CHECKING:
    from dynaesti.results import Fit, StaticComparison
    from dynaesti.sharded import ShardedFit

PAGE_NAME, PAPER_NAME = "report.html", "report.pdf"
EXAMPLE = "  dynaesti report run --out class.html --title 'Class of spring'"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the page, or a PDF (default: report.html, or with --pdf report.pdf, in the run's "
        "folder)",
    )
    parser.add_argument(
        "--pdf", action="store_true", help="print it as PDF, by Chromium, Chrome or Edge"
    )
    parser.add_argument("--title", help="the page's title (default: that of the page before)")


def run(args: argparse.Namespace) -> int:
    """Open the fit and write its page."""
    from dynaesti.errors import InputError
    from dynaesti.report import title_of

    path = Path(args.fit)
    folder = path if path.is_dir() else path.parent
    target = Path(args.out) if args.out else folder / (PAPER_NAME if args.pdf else PAGE_NAME)
    if args.pdf and target.suffix.lower() != ".pdf":
        raise InputError(f"--pdf: {target.name} should end in .pdf")
    title = args.title or title_of(folder / PAGE_NAME)
    write_page(open_any(args.fit, args.connect), path, target, title)
    print_result(args, {"out": str(target), "bytes": target.stat().st_size}, f"Wrote {target}.")
    return 0


def write_page(opened: Fit | ShardedFit, path: Path, target: Path, title: str | None) -> None:
    """Write the page of a fit, in memory or of shards, that was opened at a path."""
    from dynaesti.report import write_report
    from dynaesti.results import Fit

    fit = opened if isinstance(opened, Fit) else _largest_shard(opened)
    write_report(fit, target, static_comparison=_static_comparison(fit, path), title=title)


def rewrite_page(fit: Fit | ShardedFit, before: Path, folder: Path) -> bool:
    """Write the page of a run that changed, where it had one `before`; its title stays."""
    from dynaesti.report import title_of

    if not (before / PAGE_NAME).exists():
        return False
    write_page(fit, folder, folder / PAGE_NAME, title_of(before / PAGE_NAME))
    return True


def _largest_shard(fit: ShardedFit) -> Fit:
    """The fit of the shard with most people, with a note that the page shows no others."""
    import numpy as np

    chosen = int(np.argmax([part.people for part in fit.shards.parts]))
    note = (
        f"of {len(fit.shards)} shards with {fit.shards.rows:,} answers of "
        f"{fit.shards.people:,} people this page shows those of shard {chosen}; items and priors "
        "are those of all"
    )
    print_notes(note)
    part = fit.shard(chosen)
    return replace(part, responses=part.responses.with_note(note))


def _static_comparison(fit: Fit, folder: Path) -> StaticComparison | None:
    """The comparison with constant abilities, where the run has one of the same answers."""
    from dynaesti.errors import InputError
    from dynaesti.results import static_comparison_of

    saved = folder / STATIC_NAME
    if not folder.is_dir() or not saved.exists():
        return None
    try:
        return static_comparison_of(fit, open_fit(str(saved)))
    except InputError as error:
        print_notes(f"the comparison with constant abilities is left out: {error}")
        return None
