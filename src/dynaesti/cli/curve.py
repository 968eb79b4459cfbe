"""A smooth curve from a file of votes, counts, successes or values over time (CurvFiFE)."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from dynaesti.cli.figures import draw_figure, figure_option
from dynaesti.cli.inputs import MOST_TIMES, is_number, parsed_times
from dynaesti.cli.messages import print_notes
from dynaesti.cli.options import out_option, probability
from dynaesti.cli.output import show

if TYPE_CHECKING:
    from dynaesti.core import Array, Ints
    from dynaesti.curve_estimator import CurvFiFE
    from dynaesti.data import Labels, ReadLog, Table, TimeAxis
    from dynaesti.tables import Frame

EXAMPLE = (
    "  dynaesti curve polls.csv --time day --successes yes --trials n --figure polls.png\n"
    "  dynaesti curve polls.csv --successes yes --trials n --effects 'random(house)' --noise"
)
MOST_NOTES = 12  # effects that are told; --json has all


SEEN = ("votes", "successes", "counts", "values", "trials", "exposure", "sd")
OWNERS = {"trials": "successes", "exposure": "counts", "sd": "values"}


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help="CSV, TSV, JSON lines or Parquet; - for standard input",
    )
    _observation_options(parser)
    parser.add_argument(
        "--bandwidth", type=float, help="fix the time scale (default: averaged over)"
    )
    parser.add_argument("--at", nargs="+", metavar="TIME", help="times of the table's rows")
    parser.add_argument(
        "--grid",
        type=int,
        default=50,
        metavar="N",
        help="N times from the first to the last (default: 50)",
    )
    parser.add_argument(
        "--level", type=probability, default=0.7, help="probability of the band (default: 0.7)"
    )
    figure_option(parser)
    parser.add_argument(
        "--drop-unreadable",
        action="store_true",
        help="leave out rows that cannot be read, instead of stopping",
    )
    parser.add_argument("--timezone", metavar="ZONE", help="zone of timestamps that lack one")
    parser.add_argument(
        "--time-format", metavar="FORMAT", help="how dates are written where it is not ISO"
    )
    out_option(parser)


def _observation_options(parser: argparse.ArgumentParser) -> None:
    """Options that name the columns, and with them the family of the emissions."""
    group = parser.add_argument_group("what was seen, at each time")
    group.add_argument("--time", metavar="COLUMN", help="column of the times (default: guessed)")
    kinds = group.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--votes", metavar="COLUMN", help="0 or 1")
    kinds.add_argument("--successes", metavar="COLUMN", help="successes out of --trials")
    kinds.add_argument(
        "--counts", metavar="COLUMN", help="counts, out of --exposure where it varies"
    )
    kinds.add_argument(
        "--values", metavar="COLUMN", help="measurements with a standard deviation --sd"
    )
    group.add_argument("--trials", metavar="COLUMN", help="trials behind the successes")
    group.add_argument(
        "--exposure", metavar="COLUMN", help="exposure behind the counts (default: 1)"
    )
    group.add_argument(
        "--sd", metavar="COLUMN", help="standard deviation of each value, a column or a number"
    )
    group.add_argument("--group", metavar="COLUMN", help="a curve for each group")
    group.add_argument(
        "--effects",
        metavar="FORMULA",
        help="columns that move single observations, such as 'random(house)'",
    )
    group.add_argument(
        "--noise",
        action="store_true",
        help="learn how much more observations differ than their sizes explain",
    )


def run(args: argparse.Namespace) -> int:
    """Fit one curve, or one for each group; print or write the table, draw the figure."""
    import numpy as np

    from dynaesti.core import check_size, whole_number
    from dynaesti.curve_estimator import CurvFiFE
    from dynaesti.results import plot_groups, width_sentence
    from dynaesti.tables import as_frame

    _check(args)
    data = _read(args)
    model = CurvFiFE(bandwidth=args.bandwidth, effects=args.effects, noise=args.noise)
    check_size(args.grid, "--grid", MOST_TIMES)
    grid = np.linspace(data.offsets.min(), data.offsets.max(), whole_number(args.grid, "--grid", 1))
    at = data.axis.restore(grid) if args.at is None else parsed_times(args.at)
    if data.group is not None:
        frame = _fit_groups(model, data, at, args)
        draw_figure(args.figure, lambda: plot_groups(frame, args.level))
        show(frame, args)
        return 0
    curve = model.fit(data.axis.restore(data.offsets), data.emissions, data.covariates)
    facts: dict[str, Any] = {"log_evidence": curve.log_evidence, "converged": curve.converged}
    print_notes(*width_sentence(curve).strip().splitlines())
    if args.effects is not None or args.noise:
        effects = as_frame(curve.effects)
        facts["effects"] = effects.rows()
        print_notes(*_effect_notes(effects))
    show(curve.to_frame(at, args.level), args, **facts)
    draw_figure(args.figure, lambda: curve.plot(level=args.level))
    return 0


def _fit_groups(model: CurvFiFE, data: _Observations, at: Any, args: argparse.Namespace) -> Any:
    """A curve for each group, as one frame: together, or one by one with effects or noise."""
    import numpy as np

    from dynaesti.tables import Frame, as_frame

    times = data.axis.restore(data.offsets)
    assert data.group is not None
    if args.effects is None and not args.noise:
        return model.fit_many(data.group, times, data.emissions).to_frame(at, args.level)
    parts: dict[str, list[Any]] = {}
    for label in np.unique(data.group).tolist():
        rows = np.flatnonzero(data.group == label)
        covariates = None
        if data.covariates is not None:
            covariates = {
                name: [values[k] for k in rows] for name, values in data.covariates.items()
            }
        curve = model.fit(times[rows], data.emissions.take(rows), covariates)
        print_notes(*(f"{label}, {note}" for note in _effect_notes(as_frame(curve.effects))))
        one = as_frame(curve.to_frame(at, args.level)).to_arrays()
        for name, values in {"group": np.repeat(label, len(at)), **one}.items():
            parts.setdefault(name, []).append(values)
    return Frame({name: np.concatenate(found) for name, found in parts.items()})


def _effect_notes(effects: Frame) -> list[str]:
    """The effects in a few lines."""
    lines = []
    for row in effects.rows():
        error = f" ± {row['se']:.3f}" if row["se"] == row["se"] else ""
        lines.append(f"{row['term']}: {row['estimate']:.3f}{error}")
    more = (
        [f"and {len(lines) - MOST_NOTES} more: --json has all"] if len(lines) > MOST_NOTES else []
    )
    return lines[:MOST_NOTES] + more


class _Observations(NamedTuple):
    """The rows of a table that can be used."""

    axis: TimeAxis
    offsets: Array  # (n_rows,) on the axis
    emissions: Any  # n_rows of them
    group: Labels | None  # (n_rows,) of --group
    covariates: dict[str, list[Any]] | None  # columns that --effects needs


def _read(args: argparse.Namespace) -> _Observations:
    """Read the columns that the options name, and print what was decided about them."""
    import numpy as np

    from dynaesti.data import (
        ReadLog,
        TimeOptions,
        find_column,
        parse_labels,
        parse_times,
        read_table,
    )
    from dynaesti.errors import InputError

    table = read_table(args.data)
    if not len(table.frame):
        raise InputError("the table has no rows")
    log = ReadLog(table, np.zeros(len(table.frame), dtype=bool))
    time = str(find_column(table, "time", args.time, log.notes))
    seen = {
        key: _column(table, log, key, getattr(args, key))
        for key in SEEN
        if getattr(args, key) is not None and not (key == "sd" and is_number(args.sd))
    }
    group = None
    if args.group is not None:
        name = str(find_column(table, "group", args.group, []))
        group = parse_labels(table.frame[name], f"group (column {name!r})", log)
    axis, offsets = parse_times(
        table.frame[time],
        f"time (column {time!r})",
        TimeOptions(None, args.timezone, args.time_format),
        log,
    )
    log.raise_or_drop(args.drop_unreadable)
    print_notes(*log.notes)
    keep = np.flatnonzero(~log.bad)
    emissions = _emissions(args, {key: values[keep] for key, values in seen.items()}, keep.size)
    group = None if group is None else group[keep]
    return _Observations(axis, offsets[keep], emissions, group, _covariates(args, table, keep))


def _covariates(args: argparse.Namespace, table: Table, keep: Ints) -> dict[str, list[Any]] | None:
    """The columns that --effects needs, of the rows that are kept."""
    if args.effects is None:
        return None
    from dynaesti.data import find_column, parse_formula

    names = {
        name: str(find_column(table, "effects", name, []))
        for name in parse_formula(args.effects).columns
    }
    return {name: table.frame[column][keep.tolist()].to_list() for name, column in names.items()}


def _check(args: argparse.Namespace) -> None:
    """Refuse options that lack the ones they belong to."""
    from dynaesti.errors import InputError

    for name, owner in OWNERS.items():
        if getattr(args, name) is not None and getattr(args, owner) is None:
            raise InputError(f"--{name}: it belongs to --{owner}, which is not given")
    if args.successes is not None and args.trials is None:
        raise InputError("--trials: name the column of trials behind the successes")
    if args.values is not None and args.sd is None:
        raise InputError("--sd: name the column of standard deviations, or give a number")


def _column(table: Table, log: ReadLog, key: str, given: str) -> Array:
    """A column of numbers, 0 in unusable rows; rows without a number go to the log."""
    import numpy as np

    from dynaesti.data import find_column, parse_numbers

    name = str(find_column(table, key, given, []))
    values, missing = parse_numbers(table.frame[name], f"{key} (column {name!r})", log)
    log.reject(missing, f"{key} (column {name!r})", "have none")
    return np.where(log.bad, 0.0, values)


def _emissions(args: argparse.Namespace, seen: dict[str, Array], size: int) -> Any:
    """Emissions of the family that the options name."""
    import numpy as np

    from dynaesti.model import Bernoulli, Binomial, Gaussian, Poisson

    if args.votes is not None:
        return Bernoulli(seen["votes"])
    if args.successes is not None:
        return Binomial(seen["successes"], seen["trials"])
    if args.counts is not None:
        return Poisson(seen["counts"], seen.get("exposure", np.ones(size)))
    return Gaussian(seen["values"], seen["sd"] if "sd" in seen else np.full(size, float(args.sd)))
