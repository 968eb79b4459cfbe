"""Fit abilities and items to answers.

From a file to a folder with the fit, its tables and a report.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynaesti.cli.inputs import default_model, estimator, named_model, read_responses
from dynaesti.cli.messages import say, tell
from dynaesti.cli.options import COLUMNS, data_options, model_options
from dynaesti.cli.output import as_json, write_frame, write_table
from dynaesti.core import CHECKPOINT, FIT_NAME, LOCK, STATIC_NAME

EXAMPLE = (
    "  dynaesti fit answers.csv --id student --item problem --resp correct --time ts --out run"
)
EVERY = 5.0  # seconds between checkpoints
# rows of the ability table, beyond which a grid of times takes the place of the answers' own
MOST_INSTANTS = 500_000
GRID = 12
TABLES = ("items.csv", "items.parquet", "abilities.csv", "abilities.parquet")


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    data_options(parser)
    model_options(parser)
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "--out",
        default="run",
        metavar="FOLDER",
        help="folder for the fit, the tables and the report (default: run)",
    )
    group.add_argument(
        "--force", action="store_true", help="write over an earlier fit in the folder"
    )
    group.add_argument("--no-report", action="store_true", help="leave out the report")
    group.add_argument(
        "--no-static", action="store_true", help="leave out the comparison with constant abilities"
    )
    group.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument(
        "--dask",
        metavar="WHERE",
        help="for shards: a Dask scheduler's address (tcp://host:8786), or local:N for N worker "
        "processes here",
    )


def run(args: argparse.Namespace) -> int:
    """Fit, write, tell."""
    from dynaesti.core import exclusive_lock, remove_partial_files
    from dynaesti.errors import InputError
    from dynaesti.sharded import is_shards

    if not args.out:
        raise InputError("--out: name a folder")
    folder = Path(args.out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out: {folder} is a file; name a folder")
    with exclusive_lock(folder / LOCK, f"--out: {folder}"):
        remove_partial_files(folder, FIT_NAME, STATIC_NAME, *TABLES)
        _refuse_full(folder, args)
        if len(args.data) == 1 and is_shards(args.data[0]):
            return _of_shards(args, folder)
        if args.dask:
            raise InputError(
                "--dask: a cluster works on shards; `dynaesti prepare DATA --out shards` makes them"
            )
        return _in_memory(args, folder)


def _in_memory(args: argparse.Namespace, folder: Path) -> int:
    """Read, fit, write, tell."""
    responses = read_responses(args, timeless=args.bandwidth == float("inf"))
    checkpoint = folder / CHECKPOINT
    args.after_interrupt = lambda: (
        f"the same command goes on from {checkpoint}"
        if checkpoint.exists()
        else "nothing had been saved yet; the same command begins anew"
    )
    chosen = estimator(
        named_model(args, responses), progress=not args.quiet, checkpoint=checkpoint, every=EVERY
    )
    return finish(chosen, responses, folder, args)


def _of_shards(args: argparse.Namespace, folder: Path) -> int:
    """Stream a folder of shards, write the tables, tell."""
    from dynaesti.errors import InputError
    from dynaesti.sharded import Shards, cluster

    shards = Shards.open(args.data[0])
    checkpoint = folder / CHECKPOINT
    given = [f"--{key}" for key in COLUMNS if getattr(args, key)] + [
        f"--{key}" for key in ("unit", "timezone") if getattr(args, key)
    ]
    if given:
        raise InputError(
            f"{given[0]}: the shards' columns and clock were named when they were prepared"
        )
    args.after_interrupt = lambda: (
        f"the same command goes on from {checkpoint}"
        if checkpoint.exists()
        else "nothing had been saved yet; the same command begins anew"
    )
    if args.force and not checkpoint.exists():
        (folder / FIT_NAME).unlink(missing_ok=True)
    if args.model is None and shards.models is None:
        args.model = default_model(shards.values())
        tell([f"the model is {args.model}, by the responses; --model names another"])
    with cluster(args.dask) as executor:
        fit = _fitted(
            estimator(args, progress=not args.quiet, executor=executor),
            shards,
            checkpoint,
            args,
            out=folder,
        )
        write_frame(fit.items, folder / "items.csv")
        write_frame(fit.items, folder / "items.parquet")
        where = fit.write_abilities(executor=executor)
    facts = {
        "out": str(folder),
        "files": [FIT_NAME, "items.csv", "items.parquet", "abilities"],
        "converged": fit.converged,
        "steps": len(fit.trace),
        "answers": shards.rows,
        "people": shards.people,
        "items": shards.items.size,
        "log_evidence": fit.log_evidence,
        "scale": fit.scale.name,
        "unit": shards.unit,
        "movement": fit.variance_components(),
    }
    if args.json:
        print(as_json(facts))
    say(
        f"{fit.summary()}\nWritten to {folder}/: {FIT_NAME}, items.csv, items.parquet, and "
        f"abilities shard by shard in {where}/. "
        f"`dynaesti report {folder}` makes a page.",
        args,
    )
    return 0


def _refuse_full(folder: Path, args: argparse.Namespace) -> None:
    """An earlier fit in the run's folder is not written over unasked."""
    from dynaesti.errors import InputError

    if (folder / FIT_NAME).exists() and not (folder / CHECKPOINT).exists() and not args.force:
        raise InputError(
            f"--out: {folder} holds a fit already; name another folder, or add --force to write "
            f"over it"
        )


def finish(
    chosen: Any, responses: Any, folder: Path, args: argparse.Namespace, title: str | None = None
) -> int:
    """Fit, hold against constant abilities, write everything into the folder, and tell."""
    from dynaesti.errors import InputError
    from dynaesti.report import findings
    from dynaesti.results import compare_with_static

    fit = _fitted(chosen, responses, folder / CHECKPOINT, args)
    written = write_run(fit, folder / FIT_NAME, TABLES)
    args.after_interrupt = lambda: (
        f"the fit is in {folder / FIT_NAME}; `dynaesti report {folder}` writes the page"
    )
    static_comparison = None
    if not args.no_static and not all(kernel.static for kernel in fit.kernels):
        try:
            static_comparison = compare_with_static(chosen, fit)
        except InputError as error:
            tell([f"no comparison with constant abilities: {error}"])
    (folder / STATIC_NAME).unlink(missing_ok=True)
    if static_comparison is not None:
        static_comparison.fit.save(folder / STATIC_NAME)
        written.append(STATIC_NAME)
    if not args.no_report:
        from dynaesti.report import write_report

        write_report(fit, folder / "report.html", static_comparison=static_comparison, title=title)
        written.append("report.html")
    if args.json:
        print(
            as_json(
                {
                    "out": str(folder),
                    "files": written,
                    "converged": fit.converged,
                    "steps": len(fit.trace),
                    "answers": len(responses),
                    "people": responses.people.size,
                    "items": responses.items.size,
                    "log_evidence": fit.log_evidence,
                    "scale": fit.scale.name,
                    "unit": responses.unit,
                    "movement": fit.variance_components(),
                    "static": None if static_comparison is None else static_comparison.facts(),
                    "notes": list(responses.notes),
                    "health": list(fit.health.sentences),
                }
            )
        )
        return 0
    say(
        "\n".join(
            [
                "",
                *findings(fit, static_comparison),
                "",
                f"Written to {folder}/: {', '.join(written)}",
            ]
        ),
        args,
    )
    if not args.no_report:
        say(f"Open {folder / 'report.html'} in a browser.", args)
    return 0


def write_run(fit: Any, target: Path, tables: Sequence[str]) -> list[str]:
    """The fit and its tables, all together or none; the names of the files."""
    from dynaesti.core import atomic_paths

    frames = {"items": fit.items, "abilities": ability_table(fit)}
    with atomic_paths() as stage:
        fit.save_into(stage(target))
        for name in tables:
            stem, _, ending = name.partition(".")
            write_table(frames[stem], stage(target.parent / name), ending == "parquet")
    return [target.name, *tables]


def _fitted(
    chosen: Any, responses: Any, checkpoint: Path, args: argparse.Namespace, **more: Any
) -> Any:
    """The fit, gone on with from its checkpoint if there is one.

    With --force one of other data or options is thrown away.
    """
    from dynaesti.errors import StorageError

    known = checkpoint.exists()
    try:
        if known:
            tell([f"going on from {checkpoint}"])
        return chosen.fit(responses, **more)
    except StorageError as error:
        if not known:
            raise
        if not getattr(args, "force", False):
            raise StorageError(f"{error} (--force does the first)") from error
        checkpoint.unlink()
        return chosen.fit(responses, **more)


def ability_table(fit: Any) -> Any:
    """Everyone at the instants of their answers, or on a grid where these are very many."""
    import numpy as np

    if fit.sites.layout.times.size <= MOST_INSTANTS:
        return fit.ability()
    times = fit.responses.clock_times
    tell(
        [
            f"{fit.sites.layout.times.size:,} instants are too many for a table; abilities are told at "
            f"{GRID} times"
        ]
    )
    return fit.ability(fit.from_clock(np.linspace(times.min(), times.max(), GRID)))
