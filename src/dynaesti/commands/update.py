"""More answers of known people, or of new ones: their curves move, the items stay. The run's fit is replaced."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dynaesti.commands.shared import as_json, data_options, further_responses, open_any, run_option, say, tell, write_frame
from dynaesti.runfolder import CHECKPOINT, FIT_NAME

if TYPE_CHECKING:
    from dynaesti.responses import Responses
    from dynaesti.results import Fit
    from dynaesti.shardedfit import ShardedFit

EXAMPLE = "  dynaesti update run today.csv"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    parser.add_argument("--out", metavar="FOLDER", help="write to another folder and leave the run as it is")
    parser.add_argument("--new-items", action="store_true", help="let in items never seen before, and learn them from these answers")
    parser.add_argument("--refresh", action="store_true", help="for a fit of shards: then learn the items again, from where they are")
    parser.add_argument("--dask", metavar="WHERE", help="for a fit of shards: a Dask scheduler's address, or local:N")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> int:
    """Update, write, tell."""
    from dynaesti.commands.fit import ability_table
    from dynaesti.errors import InputError
    from dynaesti.labels import told
    from dynaesti.results import Fit

    opened = open_any(args.fit)
    if not isinstance(opened, Fit):
        return _of_shards(args, opened)
    if args.refresh or args.dask:
        raise InputError("--refresh and --dask are for fits of shards; fit the whole again instead")
    fit = opened
    more = _unknown(fit, further_responses(args, fit), args.drop_duplicates)
    if not len(more):
        raise InputError("all of these answers are in the run already; nothing is left to add")
    grown = fit.update(more, new_items=args.new_items)
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
                       "new_items": grown.item_labels.size - fit.item_labels.size, "log_evidence": grown.log_evidence}))
    say(f"Added {told(len(more), 'answers')} of {told(more.people.size, 'people')} ({new:,} new); items stay as they were"
        f"{_joined(fit, grown)}. Written to {target}. `dynaesti report` makes the page anew.", args)
    return 0


def _of_shards(args: argparse.Namespace, fit: ShardedFit) -> int:
    """Add answers to the shards they belong to; with --refresh move the items too."""
    from dynaesti.dynaesti import refresh
    from dynaesti.engines import cluster
    from dynaesti.errors import InputError
    from dynaesti.labels import told

    if args.out:
        raise InputError("--out: a fit of shards is updated in its own folder")
    more = further_responses(args, fit)
    halfway = fit.run.exists(CHECKPOINT)
    if halfway and not args.refresh:
        raise InputError(f"{args.fit}: a refresh of this run was interrupted; `dynaesti update` with --refresh goes on with it")
    if halfway:
        tell(["going on with the refresh that was interrupted; the answers of that update are in already, and none are added now"])
    with cluster(args.dask) as engine:
        grown = fit if halfway else fit.update(more, engine=engine, distinct=args.drop_duplicates, new_items=args.new_items)
        if args.refresh:
            grown = refresh(grown, progress=not args.quiet, engine=engine)
    for name in ("items.csv", "items.parquet"):
        write_frame(grown.items, Path(grown.run.path(name)))
    new, count = grown.shards.people - fit.shards.people, grown.shards.rows - fit.shards.rows
    if args.json:
        print(as_json({"out": grown.run.root, "answers": count, "people": more.people.size, "new_people": new,
                       "new_items": grown.item_labels.size - fit.item_labels.size, "log_evidence": grown.log_evidence,
                       "refreshed": args.refresh}))
    items = f"items were learned again in {len(grown.trace)} steps" if args.refresh else "items stay as they were"
    say(f"Added {told(count, 'answers')} of {told(more.people.size, 'people')} ({new:,} new); {items}{_joined(fit, grown)}. Tables of "
        "abilities are up to date.", args)
    return 0


def _joined(fit: Fit | ShardedFit, grown: Fit | ShardedFit) -> str:
    """How many items are new, in words."""
    from dynaesti.labels import told

    count = grown.item_labels.size - fit.item_labels.size
    return f", and {told(count, 'items')} joined them" if count else ""


def _unknown(fit: Fit, more: Responses, drop: bool) -> Responses:
    """The answers, those left out (or told of) that repeat one of the run exactly."""
    import numpy as np

    from dynaesti.labels import look_up

    known = np.flatnonzero(look_up(fit.item_labels, more.items.tolist())[more.item] >= 0)
    again = known[fit.repeated(more.part(known))] if known.size else known
    if again.size and not drop:
        tell([f"{again.size:,} of {len(more):,} answers are in the run already, exactly; --drop-duplicates leaves them out"])
    if not again.size or not drop:
        return more
    tell([f"{again.size:,} answers that are in the run already were left out"])
    return more.part(np.setdiff1d(np.arange(len(more)), again))
