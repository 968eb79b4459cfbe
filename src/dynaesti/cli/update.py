"""More answers of known people, or of new ones.

Their curves move, the items stay. The run's fit is replaced.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dynaesti.cli.fit import TABLES
from dynaesti.cli.inputs import further_responses, open_any
from dynaesti.cli.messages import say, tell
from dynaesti.cli.options import data_options, run_option
from dynaesti.cli.output import as_json, write_table
from dynaesti.core import CHECKPOINT, FIT_NAME, LOCK, is_address

if TYPE_CHECKING:
    from dynaesti.data import Responses
    from dynaesti.results import Fit
    from dynaesti.sharded import ShardedFit

EXAMPLE = "  dynaesti update run today.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    parser.add_argument(
        "--out", metavar="FOLDER", help="write to another folder and leave the run as it is"
    )
    parser.add_argument(
        "--new-items",
        action="store_true",
        help="let in items never seen before, and learn them from these answers",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="add the answers even if an earlier update has added the very same",
    )
    parser.add_argument(
        "--refit-items",
        action="store_true",
        help="for a fit of shards: then learn the items again, from where they are",
    )
    parser.add_argument(
        "--dask",
        metavar="WHERE",
        help="for a fit of shards: a Dask scheduler's address, or local:N",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Update, write, tell. Of several updates at once each waits for the one before."""
    from dynaesti.core import LOCK_TIMEOUT, exclusive_lock, remove_partial_files
    from dynaesti.errors import InputError
    from dynaesti.results import Fit

    place = Path(os.path.realpath(args.out or args.fit))
    if not Path(args.fit).exists():
        open_any(args.fit, args.connect)  # which says so, or opens what lies at an address
    whole = bool(args.out) or place.is_dir() or place.name == FIT_NAME
    folder = place.parent if place.name == FIT_NAME and not args.out else place
    lock = folder / LOCK if whole else place.with_name(f".{place.name}{LOCK}")
    with exclusive_lock(
        args.fit if is_address(args.fit) else lock,
        args.fit,
        wait=LOCK_TIMEOUT,
        on_wait=lambda text: tell([text]),
    ):
        if whole and folder.is_dir():
            remove_partial_files(folder, FIT_NAME, *TABLES)
        opened = open_any(args.fit, args.connect)
        if not isinstance(opened, Fit):
            return _of_shards(args, opened)
        if args.refit_items or args.dask:
            raise InputError(
                "--refit-items and --dask are for fits of shards; fit the whole again instead"
            )
        return _in_memory(args, opened)


def _in_memory(args: argparse.Namespace, fit: Fit) -> int:
    """Add answers to a fit; the run changes at once, or not at all."""
    from dynaesti.cli.fit import write_run
    from dynaesti.data import count_noun
    from dynaesti.errors import InputError

    place = Path(args.fit)
    folder = Path(args.out) if args.out else place if place.is_dir() else place.parent
    target = place if place.is_file() and not args.out else folder / FIT_NAME
    batch = further_responses(args, fit)
    more = batch
    known = batch.fingerprint() in fit.batches and not args.again
    if known:
        _tell_known(batch)
        grown = fit
        count = 0
    else:
        more = _unknown(fit, batch, args.drop_duplicates)
        count = len(more)
        if not count:
            raise InputError("all of these answers are in the run already; nothing is left to add")
        grown = replace(
            fit.update(more, new_items=args.new_items, again=args.again),
            batches=(*fit.batches, batch.fingerprint()),
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_run(grown, target, [name for name in TABLES if args.out or (folder / name).exists()])
    new = grown.responses.people.size - fit.responses.people.size
    if args.json:
        print(
            as_json(
                {
                    "out": str(target),
                    "answers": count,
                    "people": more.people.size,
                    "new_people": new,
                    "new_items": grown.item_labels.size - fit.item_labels.size,
                    "log_evidence": grown.log_evidence,
                    "known": known,
                }
            )
        )
    say(
        f"Added {count_noun(count, 'answers')} of {count_noun(more.people.size, 'people')} "
        f"({new:,} new); items stay as they were"
        f"{_joined(fit, grown)}. Written to {target}. `dynaesti report` makes the page anew.",
        args,
    )
    return 0


def _of_shards(args: argparse.Namespace, fit: ShardedFit) -> int:
    """Add answers to the shards they belong to; with --refit-items move the items too."""
    from dynaesti.ability_estimator import refit_items
    from dynaesti.data import count_noun
    from dynaesti.errors import InputError
    from dynaesti.sharded import cluster

    if args.out:
        raise InputError("--out: a fit of shards is updated in its own folder")
    more = further_responses(args, fit)
    halfway = fit.run.exists(CHECKPOINT)
    if halfway and not args.refit_items:
        raise InputError(
            f"{args.fit}: a refit of this run was interrupted; `dynaesti update` with "
            f"--refit-items goes on with it"
        )
    known = more.fingerprint() in fit.batches and not args.again
    with cluster(args.dask) as executor:
        now = fit
        if halfway:
            tell(["going on with the refit that was interrupted"])
            now = refit_items(now, progress=not args.quiet, executor=executor)
        if known:
            _tell_known(more)
            now.finish_update(more, executor)
            grown = now
        else:
            grown = now.update(
                more,
                executor=executor,
                distinct=args.drop_duplicates,
                new_items=args.new_items,
                again=args.again,
            )
        if args.refit_items and grown.stale:
            grown = refit_items(grown, progress=not args.quiet, executor=executor)
    for name in ("items.csv", "items.parquet"):
        with (
            TemporaryDirectory() as folder,
            grown.run.writing(name) as file,
        ):  # the run may lie at an address
            write_table(grown.items, Path(folder) / name, name.endswith("parquet"))
            file.write((Path(folder) / name).read_bytes())
    new = grown.shards.people - fit.shards.people
    count = grown.shards.rows - fit.shards.rows
    if args.json:
        print(
            as_json(
                {
                    "out": grown.run.root,
                    "answers": count,
                    "people": more.people.size,
                    "new_people": new,
                    "new_items": grown.item_labels.size - fit.item_labels.size,
                    "log_evidence": grown.log_evidence,
                    "refitted": args.refit_items,
                    "known": known,
                }
            )
        )
    items = (
        f"items were learned again in {len(grown.trace)} steps"
        if args.refit_items
        else "items stay as they were"
    )
    say(
        f"Added {count_noun(count, 'answers')} of {count_noun(more.people.size, 'people')} "
        f"({new:,} new); {items}{_joined(fit, grown)}. Tables of "
        "abilities are up to date.",
        args,
    )
    return 0


def _tell_known(batch: Responses) -> None:
    from dynaesti.data import count_noun

    tell(
        [
            f"these {count_noun(len(batch), 'answers')} were added by an earlier update, and none "
            f"are added now; --again adds them once more"
        ]
    )


def _joined(fit: Fit | ShardedFit, grown: Fit | ShardedFit) -> str:
    """How many items are new, in words."""
    from dynaesti.data import count_noun

    count = grown.item_labels.size - fit.item_labels.size
    return f", and {count_noun(count, 'items')} joined them" if count else ""


def _unknown(fit: Fit, more: Responses, drop: bool) -> Responses:
    """The answers, those left out (or told of) that repeat one of the run exactly."""
    import numpy as np

    from dynaesti.data import try_index_of

    known = np.flatnonzero(try_index_of(fit.item_labels, more.items.tolist())[more.item] >= 0)
    again = (
        known[fit.repeated(more.select_responses(known, drop_unused=True))] if known.size else known
    )
    if again.size and not drop:
        tell(
            [
                f"{again.size:,} of {len(more):,} answers are in the run already, exactly; "
                f"--drop-duplicates leaves them out"
            ]
        )
    if not again.size or not drop:
        return more
    tell([f"{again.size:,} answers that are in the run already were left out"])
    return more.select_responses(np.setdiff1d(np.arange(len(more)), again), drop_unused=True)
