"""A smooth curve from a file of votes, counts, successes or values over time (CurvFiFE)."""

from __future__ import annotations

import argparse
from typing import Any

from dynaesti.commands.shared import out_option, show

EXAMPLE = "  dynaesti curve polls.csv --time day --successes yes --trials n --grid 100 --figure polls.png"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument("data", nargs="+", metavar="DATA", help="CSV, TSV, JSON lines or Parquet; - for standard input")
    group = parser.add_argument_group("what was seen, at each time")
    group.add_argument("--time", metavar="COLUMN", help="column of the times (default: guessed)")
    kinds = group.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--votes", metavar="COLUMN", help="0 or 1")
    kinds.add_argument("--successes", metavar="COLUMN", help="successes out of --trials")
    kinds.add_argument("--counts", metavar="COLUMN", help="counts, out of --exposure where it varies")
    kinds.add_argument("--values", metavar="COLUMN", help="measurements with a standard deviation --sd")
    group.add_argument("--trials", metavar="COLUMN", help="trials behind the successes")
    group.add_argument("--exposure", metavar="COLUMN", help="exposure behind the counts (default: 1)")
    group.add_argument("--sd", metavar="COLUMN", help="standard deviation of each value, a column or a number")
    group.add_argument("--group", metavar="COLUMN", help="a curve for each group")
    parser.add_argument("--bandwidth", type=float, help="fix the time scale (default: averaged over)")
    parser.add_argument("--at", nargs="+", metavar="TIME", help="times to tell the curve at")
    parser.add_argument("--grid", type=int, default=50, metavar="N", help="N times from the first to the last (default: 50)")
    parser.add_argument("--level", type=float, default=0.7, help="probability of the band (default: 0.7)")
    parser.add_argument("--figure", metavar="FILE", help="draw it (PNG, SVG or PDF)")
    parser.add_argument("--timezone", metavar="ZONE", help="zone of timestamps that lack one")
    parser.add_argument("--time-format", metavar="FORMAT", help="how dates are written where it is not ISO")
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Read, fit, tell, draw."""
    import numpy as np

    from dynaesti.columns import Clock, Findings, find_column, labels, times
    from dynaesti.curvfife import CurvFiFE
    from dynaesti.errors import InputError
    from dynaesti.tables import read_table

    table = read_table(args.data)
    found = Findings(table, np.zeros(len(table.frame), dtype=bool))
    column = str(find_column(table, "time", args.time, found.notes))
    axis, offsets = times(table.frame[column], f"time (column {column!r})", Clock(None, args.timezone, args.time_format), found)
    emissions = _emissions(args, table, found)
    found.settle(drop=False)
    when = axis.restore(offsets)
    model = CurvFiFE() if args.bandwidth is None else CurvFiFE(bandwidth=args.bandwidth)
    at = axis.restore(np.linspace(offsets.min(), offsets.max(), args.grid)) if args.at is None else _times(args.at)
    if args.group is not None:
        if args.figure is not None:
            raise InputError("--figure: draws one curve; leave out --group, or draw from the table")
        name = str(find_column(table, "group", args.group, []))
        curves = model.fit_many(labels(table.frame[name], f"group (column {name!r})", found), when, emissions)
        show(curves.to_frame(at, args.level), args)
        return 0
    curve = model.fit(when, emissions)
    show(curve.to_frame(at, args.level), args, log_evidence=curve.log_evidence, converged=curve.converged)
    if args.figure is not None:
        import matplotlib as mpl

        mpl.use("Agg")
        curve.plot(level=args.level).figure.savefig(args.figure, dpi=150)
    return 0


def _times(texts: list[str]) -> Any:
    import numpy as np

    try:
        return np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts, dtype="datetime64[ns]")


def _emissions(args: argparse.Namespace, table: Any, found: Any) -> Any:
    """The family that the options name."""
    import numpy as np

    from dynaesti import emissions
    from dynaesti.columns import find_column, numbers
    from dynaesti.errors import InputError

    def column(key: str) -> Any:
        name = str(find_column(table, key, getattr(args, key), []))
        values, missing = numbers(table.frame[name], f"{key} (column {name!r})", found)
        found.complain(missing, f"{key} (column {name!r})", "have none")
        return np.where(found.bad, 0.0, values)

    if args.votes is not None:
        return emissions.Bernoulli(column("votes"))
    if args.successes is not None:
        if args.trials is None:
            raise InputError("--trials: name the column of trials behind the successes")
        return emissions.Binomial(column("successes"), column("trials"))
    if args.counts is not None:
        return emissions.Poisson(column("counts"), np.ones(len(table.frame)) if args.exposure is None else column("exposure"))
    if args.sd is None:
        raise InputError("--sd: name the column of standard deviations, or give a number")
    try:
        sd: Any = float(args.sd)
    except ValueError:
        sd = column("sd")
    return emissions.Gaussian(column("values"), sd)
