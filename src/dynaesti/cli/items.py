"""The item table of a fit: parameters, standard errors, checks, with --fit infit and outfit."""

from __future__ import annotations

import argparse
from typing import Any

from dynaesti.cli.inputs import open_any, open_fit
from dynaesti.cli.options import out_option, run_option
from dynaesti.cli.output import columns_of, show

EXAMPLE = "  dynaesti items run --sort b --fit"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    parser.add_argument(
        "--sort",
        metavar="COLUMN",
        help="sort by a column; -COLUMN for the largest first (write --sort=-a)",
    )
    parser.add_argument(
        "--drift", action="store_true", help="flag items that become easier or harder too"
    )
    parser.add_argument(
        "--fit", dest="with_fit", action="store_true", help="add infit and outfit mean squares"
    )
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the item table."""
    from dynaesti.data import make_frame

    fit = open_any(args.fit, args.connect)
    columns = columns_of(fit.items)
    if args.drift:
        from dynaesti.results import flag_items

        columns["flag"] = columns_of(flag_items(fit, drift=True))["flag"]
    if args.with_fit:
        from dynaesti.results import item_fit

        found = columns_of(item_fit(open_fit(args.fit, args.connect)))
        columns |= {name: found[name] for name in ("infit", "outfit")}
    if args.sort:
        columns = _sorted(columns, args.sort)
    show(make_frame(columns), args, scale=fit.scale.name)
    return 0


def _sorted(columns: dict[str, list[Any]], by: str) -> dict[str, list[Any]]:
    """Columns sorted by one of them; by -COLUMN with the largest first."""
    import numpy as np

    from dynaesti.errors import InputError

    name = by.removeprefix("-")
    backwards = by.startswith("-")
    if name not in columns:
        raise InputError(f"--sort: no column {name!r}; there are {', '.join(columns)}")
    values = columns[name]
    numeric = all(isinstance(v, int | float) for v in values)
    keys = np.array(values, dtype=float) if numeric else np.array([str(v) for v in values])
    order = np.argsort(-keys if backwards and numeric else keys, kind="stable")
    order = order[::-1] if backwards and not numeric else order
    return {key: [column[k] for k in order] for key, column in columns.items()}
