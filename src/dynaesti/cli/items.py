"""The item table of a fit: parameters, standard errors, checks, with --fit infit and outfit."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dynaesti.cli.inputs import open_any, open_fit
from dynaesti.cli.options import out_option, run_option
from dynaesti.cli.output import show

if TYPE_CHECKING:
    from dynaesti.tables import Frame

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
    from dynaesti.tables import as_frame

    fit = open_any(args.fit, args.connect)
    table = as_frame(fit.items)
    if args.drift:
        from dynaesti.results import flag_items

        table["flag"] = as_frame(flag_items(fit, drift=True))["flag"]
    if args.with_fit:
        from dynaesti.results import item_fit

        found = as_frame(item_fit(open_fit(args.fit, args.connect)))
        for name in ("infit", "outfit"):
            table[name] = found[name]
    if args.sort:
        table = _sorted(table, args.sort)
    show(table, args, scale=fit.scale.name)
    return 0


def _sorted(table: Frame, by: str) -> Frame:
    """A table sorted by one of its columns; by -COLUMN with the largest first."""
    from dynaesti.errors import InputError

    name = by.removeprefix("-")
    if name not in table:
        raise InputError(f"--sort: no column {name!r}; there are {', '.join(table.columns)}")
    return table.sort(name, descending=by.startswith("-"))
