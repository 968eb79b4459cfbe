"""Fit abilities and items to answers.

From a file to a folder with the fit, its tables and a report.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynaesti.cli.inputs import estimator, read_responses, with_model
from dynaesti.cli.messages import print_notes, print_text
from dynaesti.cli.options import COLUMNS, LAYOUT, PARTS, dask_option, data_options, model_options
from dynaesti.cli.output import as_json, print_result
from dynaesti.core import CHECKPOINT, FIT_NAME, LOCK, STATIC_NAME

if TYPE_CHECKING:
    from dynaesti.ability_estimator import DynAEsti
    from dynaesti.data import Responses
    from dynaesti.results import Fit, StaticComparison

EXAMPLE = (
    "  dynaesti fit answers.csv --id student --item problem --resp correct --time ts --out run"
)
CHECKPOINT_SECONDS = 5.0  # between checkpoints
# largest ability table at the instants of the answers; beyond, it is at a few times instead
MOST_INSTANTS = 500_000
N_TABLE_TIMES = 12
TABLES = ("items.csv", "items.parquet", "abilities.csv", "abilities.parquet", "people.csv")
WORKBOOK = "tables.xlsx"  # all of them, a sheet each


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
    group.add_argument(
        "--excel",
        action="store_true",
        help=f"write all tables also as an Excel file ({WORKBOOK}, a sheet each; for shards "
        "items.xlsx)",
    )
    group.add_argument("--no-report", action="store_true", help="leave out the report")
    group.add_argument(
        "--no-static", action="store_true", help="leave out the comparison with constant abilities"
    )
    group.add_argument("--quiet", action="store_true", help="no progress")
    dask_option(parser)


def run(args: argparse.Namespace) -> int:
    """Fit a file of answers or a folder of shards into the folder of --out."""
    from dynaesti.core import exclusive_lock, remove_partial_files
    from dynaesti.errors import InputError
    from dynaesti.sharded import is_shards
    from dynaesti.tables import require_excel

    if not args.out:
        raise InputError("--out: name a folder")
    if args.excel:
        require_excel()
    folder = Path(args.out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out: {folder} is a file; name a folder")
    with exclusive_lock(folder / LOCK, f"--out: {folder}"):
        remove_partial_files(folder, FIT_NAME, STATIC_NAME, *TABLES, WORKBOOK)
        _refuse_full(folder, args)
        args.after_interrupt = lambda: _how_to_resume(folder / CHECKPOINT)
        if len(args.data) == 1 and is_shards(args.data[0]):
            return _fit_shards(args, folder)
        if args.dask:
            raise InputError(
                "--dask: a cluster works on shards; `dynaesti prepare DATA --out shards` makes them"
            )
        return _fit_file(args, folder)


def _how_to_resume(checkpoint: Path) -> str:
    """What to do after an interrupted fit."""
    return (
        f"the same command goes on from {checkpoint}"
        if checkpoint.exists()
        else "nothing had been saved yet; the same command begins anew"
    )


def _fit_file(args: argparse.Namespace, folder: Path) -> int:
    """Fit answers that fit into memory, and write the run."""
    responses = read_responses(args, timeless=args.bandwidth == float("inf"))
    chosen = estimator(
        with_model(args, responses),
        progress=not args.quiet,
        checkpoint=folder / CHECKPOINT,
        every=CHECKPOINT_SECONDS,
    )
    fit_and_write(chosen, responses, folder, args)
    return 0


def _fit_shards(args: argparse.Namespace, folder: Path) -> int:
    """Fit a folder of shards, and write the item table and each shard's abilities."""
    from dynaesti.model import default_model
    from dynaesti.sharded import Shards, cluster
    from dynaesti.tables import write_frame

    shards = Shards.open(args.data[0])
    _refuse_column_options(args)
    checkpoint = folder / CHECKPOINT
    if args.force and not checkpoint.exists():
        (folder / FIT_NAME).unlink(missing_ok=True)
    if args.model is None and shards.models is None:
        args.model = default_model(shards.values())
        print_notes(f"the model is {args.model}, by the responses; --model names another")
    with cluster(args.dask) as executor:
        chosen = estimator(args, progress=not args.quiet, executor=executor)
        fit = _fit_or_resume(chosen, shards, checkpoint, args, out=folder)
        tables = ["items.csv", "items.parquet", *(["items.xlsx"] if args.excel else [])]
        for name in tables:
            write_frame(fit.items, folder / name)
        abilities = fit.write_abilities(executor=executor)
    facts = {
        "out": str(folder),
        "files": [FIT_NAME, *tables, "abilities"],
        "converged": fit.converged,
        "iterations": len(fit.trace),
        "answers": shards.rows,
        "people": shards.people,
        "items": shards.items.size,
        "log_evidence": fit.log_evidence,
        "scale": fit.scale.name,
        "unit": shards.unit,
        "movement": fit.variance_components(),
    }
    print_result(
        args,
        facts,
        f"{' '.join(fit.sentences())}\nWritten to {folder}/: {FIT_NAME}, {', '.join(tables)}, and "
        f"abilities shard by shard in {abilities}/. `dynaesti report {folder}` makes a page.",
    )
    return 0


def _refuse_column_options(args: argparse.Namespace) -> None:
    """Refuse options that were decided when the shards were prepared."""
    from dynaesti.errors import InputError

    given = [
        f"--{key}"
        for key in (*COLUMNS, *LAYOUT, *PARTS, "unit", "timezone")
        if getattr(args, key) is not None
    ]
    if given:
        raise InputError(
            f"{given[0]}: the shards' columns and clock were named when they were prepared"
        )


def _refuse_full(folder: Path, args: argparse.Namespace) -> None:
    """Refuse a folder with a finished fit, unless --force allows to write over it."""
    from dynaesti.errors import InputError

    if (folder / FIT_NAME).exists() and not (folder / CHECKPOINT).exists() and not args.force:
        raise InputError(
            f"--out: {folder} holds a fit already; name another folder, or add --force to write "
            f"over it"
        )


def fit_and_write(
    chosen: DynAEsti,
    responses: Responses,
    folder: Path,
    args: argparse.Namespace,
    title: str | None = None,
) -> None:
    """Fit, compare with constant abilities, write everything into the folder, print a summary."""
    from dynaesti.report import write_report

    tables = [*possible_tables(), *([WORKBOOK] if getattr(args, "excel", False) else [])]
    fit = _fit_or_resume(chosen, responses, folder / CHECKPOINT, args)
    written = write_run(fit, folder / FIT_NAME, tables)
    args.after_interrupt = lambda: (
        f"the fit is in {folder / FIT_NAME}; `dynaesti report {folder}` writes the page"
    )
    static_comparison = None if args.no_static else _compare_with_static(chosen, fit)
    (folder / STATIC_NAME).unlink(missing_ok=True)
    if static_comparison is not None:
        static_comparison.fit.save(folder / STATIC_NAME)
        written.append(STATIC_NAME)
    if not args.no_report:
        write_report(fit, folder / "report.html", static_comparison=static_comparison, title=title)
        written.append("report.html")
    _print_summary(fit, static_comparison, folder, written, args)


def possible_tables() -> list[str]:
    """The tables of a run; where pyarrow is missing, with a note and without those in Parquet."""
    names = [name for name in TABLES if name.endswith(".csv") or find_spec("pyarrow")]
    if len(names) < len(TABLES):
        print_notes("no Parquet tables: they need pyarrow (pip install 'dynaesti[files]')")
    return names


def _compare_with_static(chosen: DynAEsti, fit: Fit) -> StaticComparison | None:
    """The static comparison; None where abilities are constant anyway, or it cannot be made."""
    from dynaesti.errors import InputError
    from dynaesti.results import compare_with_static

    if all(kernel.static for kernel in fit.kernels):
        return None
    try:
        return compare_with_static(chosen, fit)
    except InputError as error:
        print_notes(f"no comparison with constant abilities: {error}")
        return None


def _print_summary(
    fit: Fit,
    static_comparison: StaticComparison | None,
    folder: Path,
    written: Sequence[str],
    args: argparse.Namespace,
) -> None:
    """Print what was found and which files were written, as JSON or in words."""
    from dynaesti.report import findings, points_of_attention

    if args.json:
        print(as_json(_summary_facts(fit, static_comparison, folder, written)))
        return
    attention = [f"To look at: {sentence}" for sentence in points_of_attention(fit)]
    found = [*findings(fit, static_comparison), *attention]
    lines = ["", *found, "", f"Written to {folder}/: {', '.join(written)}"]
    if "report.html" in written:
        lines.append(f"Open {folder / 'report.html'} in a browser.")
    print_text("\n".join(lines), args)


def _summary_facts(
    fit: Fit, static_comparison: StaticComparison | None, folder: Path, written: Sequence[str]
) -> dict[str, Any]:
    """The summary of a fit for machines."""
    responses = fit.responses
    return {
        "out": str(folder),
        "files": list(written),
        "converged": fit.converged,
        "iterations": len(fit.trace),
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


def write_run(fit: Fit, target: Path, tables: Sequence[str]) -> list[str]:
    """Write a fit and its tables, all of them or none; return the names of the files."""
    from dynaesti.core import atomic_paths
    from dynaesti.tables import write_table, write_workbook

    frames = {"items": fit.items, "abilities": ability_table(fit), "people": fit.people()}
    with atomic_paths() as stage:
        fit.save_into(stage(target))
        for name in tables:
            file = stage(target.parent / name)
            if name == WORKBOOK:
                write_workbook(_that_fit(frames), file)
            else:
                write_table(frames[Path(name).stem], file, Path(name).suffix)
    return [target.name, *tables]


def _that_fit(frames: dict[str, Any]) -> dict[str, Any]:
    """The tables that an Excel sheet can hold; a note names the others."""
    from dynaesti.tables import MOST_ROWS

    large = [name for name, frame in frames.items() if len(frame) > MOST_ROWS]
    if large:
        print_notes(
            f"{WORKBOOK} lacks {', '.join(large)}: an Excel sheet holds {MOST_ROWS:,} rows; the "
            f"CSV has all"
        )
    return {name: frame for name, frame in frames.items() if name not in large}


def _fit_or_resume(
    chosen: DynAEsti, responses: Any, checkpoint: Path, args: argparse.Namespace, **more: Any
) -> Any:
    """Fit, from the checkpoint if there is one.

    With --force a checkpoint of other data or options is removed.
    """
    from dynaesti.errors import StorageError

    known = checkpoint.exists()
    try:
        if known:
            print_notes(f"going on from {checkpoint}")
        return chosen.fit(responses, **more)
    except StorageError as error:
        if not known:
            raise
        if not getattr(args, "force", False):
            raise StorageError(f"{error} (--force does the first)") from error
        checkpoint.unlink()
        return chosen.fit(responses, **more)


def ability_table(fit: Fit) -> Any:
    """Everyone's ability at the instants of the answers, or at a few times if these are many."""
    import numpy as np

    if fit.sites.layout.times.size <= MOST_INSTANTS:
        return fit.ability()
    times = fit.responses.clock_times
    print_notes(
        f"{fit.sites.layout.times.size:,} instants are too many for a table; abilities are given "
        f"at "
        f"{N_TABLE_TIMES} times"
    )
    return fit.ability(fit.from_clock(np.linspace(times.min(), times.max(), N_TABLE_TIMES)))
