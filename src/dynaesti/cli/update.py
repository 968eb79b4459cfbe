"""Add answers of known or new people to a run.

Their curves change, the items stay. The run's fit is replaced.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dynaesti.cli.fit import TABLES, WORKBOOK, possible_tables
from dynaesti.cli.inputs import further_responses, open_any
from dynaesti.cli.messages import print_notes
from dynaesti.cli.options import data_options, run_option
from dynaesti.cli.output import print_result
from dynaesti.cli.report import PAGE_NAME, rewrite_page
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
        "--new-model",
        action="append",
        metavar="MODEL",
        help="with --new-items: the model of the new ones, or ITEM=MODEL of one of them; needed "
        "where the others have several",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="add answers even if the run has the very same already",
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
    """Add the answers to the run; of several updates at once each waits for the one before."""
    from dynaesti.core import LOCK_TIMEOUT, exclusive_lock, remove_partial_files
    from dynaesti.errors import InputError
    from dynaesti.results import Fit

    path = Path(os.path.realpath(args.out or args.fit))
    if not Path(args.fit).exists():
        open_any(args.fit, args.connect)  # which refuses it, or opens what lies at an address
    is_run = bool(args.out) or path.is_dir() or path.name == FIT_NAME
    folder = path.parent if path.name == FIT_NAME and not args.out else path
    lock = folder / LOCK if is_run else path.with_name(f".{path.name}{LOCK}")
    with exclusive_lock(
        args.fit if is_address(args.fit) else lock,
        args.fit,
        wait=LOCK_TIMEOUT,
        on_wait=print_notes,
    ):
        if is_run and folder.is_dir():
            remove_partial_files(folder, FIT_NAME, *TABLES, WORKBOOK)
        opened = open_any(args.fit, args.connect)
        if not isinstance(opened, Fit):
            return _update_shards(args, opened)
        if args.refit_items or args.dask:
            raise InputError(
                "--refit-items and --dask are for fits of shards; fit the whole again instead"
            )
        return _update_fit(args, opened)


def _update_fit(args: argparse.Namespace, fit: Fit) -> int:
    """Add answers to a fit in memory; the files of the run change together, or not at all."""
    from dynaesti.cli.fit import write_run

    path = Path(args.fit)
    folder = Path(args.out) if args.out else path if path.is_dir() else path.parent
    target = path if path.is_file() and not args.out else folder / FIT_NAME
    batch = further_responses(args, fit)
    known = batch.fingerprint() in fit.batches and not args.again
    if known:
        _note_known_batch(batch)
        grown = fit
    else:
        grown = fit.update(batch, new_items=_new_items(args), again=args.again)
    added = len(grown.responses) - len(fit.responses)
    _note_left_out(batch, added, known)
    folder.mkdir(parents=True, exist_ok=True)
    write_run(grown, target, _tables(args, folder))
    is_run = target.name == FIT_NAME
    before = Path(args.fit) if Path(args.fit).is_dir() else Path(args.fit).parent
    has_page = is_run and rewrite_page(grown, before, folder)
    change = _Change(
        out=str(target),
        answers=added,
        people=batch.people.size,
        new_people=grown.responses.people.size - fit.responses.people.size,
        new_items=grown.item_labels.size - fit.item_labels.size,
        log_evidence=grown.log_evidence,
        known=known,
    )
    print_result(
        args,
        asdict(change),
        f"{change.describe('items stay as they were')} Written to {target}"
        f"{f', and the page {PAGE_NAME} anew' if has_page else ''}.",
    )
    return 0


def _new_items(args: argparse.Namespace) -> bool | str | dict[str, str]:
    """Whether new items are let in, and with which models."""
    from dynaesti.errors import InputError

    named = args.new_model or []
    if not named:
        return bool(args.new_items)
    if len(named) == 1 and "=" not in named[0]:
        return str(named[0])
    if any("=" not in one for one in named):
        raise InputError("--new-model: give one MODEL for all new items, or ITEM=MODEL for each")
    pairs = (one.rpartition("=") for one in named)
    return {item: model for item, _, model in pairs}


def _tables(args: argparse.Namespace, folder: Path) -> list[str]:
    """The tables to write: those that the run has; in a new folder all, as `fit` writes them."""
    if not args.out:
        return [name for name in (*TABLES, WORKBOOK) if (folder / name).exists()]
    has_workbook = (Path(args.fit) / WORKBOOK).exists()
    return [*possible_tables(), *([WORKBOOK] if has_workbook else [])]


def _update_shards(args: argparse.Namespace, fit: ShardedFit) -> int:
    """Add answers to the shards they belong to; with --refit-items learn the items again."""
    from dynaesti.errors import InputError

    if args.out:
        raise InputError("--out: a fit of shards is updated in its own folder")
    batch = further_responses(args, fit)
    known = batch.fingerprint() in fit.batches and not args.again
    grown = _grown_shards(fit, batch, known, args)
    added = grown.shards.rows - fit.shards.rows
    _note_left_out(batch, added, known)
    _write_item_tables(grown)
    folder = Path(args.fit)
    pages = " and the page" if folder.is_dir() and rewrite_page(grown, folder, folder) else ""
    change = _Change(
        out=grown.run.root,
        answers=added,
        people=batch.people.size,
        new_people=grown.shards.people - fit.shards.people,
        new_items=grown.item_labels.size - fit.item_labels.size,
        log_evidence=grown.log_evidence,
        known=known,
    )
    items = (
        f"items were learned again in {len(grown.trace)} iterations"
        if args.refit_items
        else "items stay as they were"
    )
    print_result(
        args,
        {**asdict(change), "refitted": args.refit_items},
        f"{change.describe(items)} Tables of abilities{pages} are up to date.",
    )
    return 0


def _grown_shards(
    fit: ShardedFit, batch: Responses, known: bool, args: argparse.Namespace
) -> ShardedFit:
    """The fit of shards with a batch of answers, after a refit that was interrupted is finished."""
    from dynaesti.ability_estimator import refit_items
    from dynaesti.errors import InputError
    from dynaesti.sharded import cluster

    interrupted = fit.run.exists(CHECKPOINT)
    if interrupted and not args.refit_items:
        raise InputError(
            f"{args.fit}: a refit of this run was interrupted; `dynaesti update` with "
            f"--refit-items goes on with it"
        )
    with cluster(args.dask) as executor:
        if interrupted:
            print_notes("going on with the refit that was interrupted")
            fit = refit_items(fit, progress=not args.quiet, executor=executor)
        if known:
            _note_known_batch(batch)
            fit.finish_update(batch, executor)
            grown = fit
        else:
            grown = fit.update(
                batch,
                executor=executor,
                new_items=_new_items(args),
                again=args.again,
            )
        if args.refit_items and grown.stale:
            grown = refit_items(grown, progress=not args.quiet, executor=executor)
    return grown


def _write_item_tables(fit: ShardedFit) -> None:
    """Write the item tables beside a fit of shards, which may lie at an address."""
    from dynaesti.tables import write_table

    for name in ("items.csv", "items.parquet"):
        with TemporaryDirectory() as folder, fit.run.writing(name) as file:
            write_table(fit.items, Path(folder) / name, Path(name).suffix)
            file.write((Path(folder) / name).read_bytes())


@dataclass(frozen=True)
class _Change:
    """What an update did, for machines and in words."""

    out: str
    answers: int
    people: int
    new_people: int
    new_items: int
    log_evidence: float
    known: bool  # whether an earlier update had added the very same answers

    def describe(self, items: str) -> str:
        """One sentence; `items` says what happened to the items of the fit."""
        from dynaesti.data import count_noun

        joined = (
            f", and {count_noun(self.new_items, 'items')} joined them" if self.new_items else ""
        )
        return (
            f"Added {count_noun(self.answers, 'answers')} of {count_noun(self.people, 'people')} "
            f"({self.new_people:,} new); {items}{joined}."
        )


def _note_left_out(batch: Responses, added: int, known: bool) -> None:
    """Say how many of a batch's answers the run had already, unless all of it is known."""
    from dynaesti.data import describe_left_out

    words = None if known else describe_left_out(len(batch), added)
    if words is not None:
        print_notes(words)


def _note_known_batch(batch: Responses) -> None:
    """Say that an earlier update has added these very answers."""
    from dynaesti.data import count_noun

    print_notes(
        f"these {count_noun(len(batch), 'answers')} were added by an earlier update, and none "
        f"are added now; --again adds them once more"
    )
