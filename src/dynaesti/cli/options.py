"""Options that several verbs share."""

from __future__ import annotations

import argparse
from pathlib import Path

from dynaesti.cli.messages import print_notes

PER_CENT = 100
COLUMNS = ("id", "item", "resp", "time", "weight")
LAYOUT = ("wide", "items", "key", "only")
PARTS = ("sheet", "query")


KERNELS = ("level+smooth", "level+matern32", "level+rbf", "matern32", "rbf")


def data_options(parser: argparse.ArgumentParser, *, known: bool = False) -> None:
    """DATA and how to read it; with `known` the columns are by default those of a fit."""
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help="CSV and other text, Excel, JSON, Parquet, SPSS, Stata, SQLite or DuckDB files, "
        "several or a pattern; the address of a database; or - for standard input",
    )
    group = parser.add_argument_group("reading the data")
    default = "as in the fit" if known else "guessed, with a note"
    for name, what in zip(
        COLUMNS, ("people", "items", "responses", "times", "response weights"), strict=True
    ):
        guessed = "" if name == "weight" else f" (default: {default})"
        group.add_argument(f"--{name}", metavar="COLUMN", help=f"column of the {what}{guessed}")
    _layout_options(group)
    _value_options(group)
    group.add_argument(
        "--drop-unreadable",
        action="store_true",
        help="leave out rows that cannot be read, instead of stopping",
    )
    group.add_argument(
        "--drop-duplicates",
        action="store_true",
        help="count answers that repeat another exactly only once",
    )


def _layout_options(group: argparse._ArgumentGroup) -> None:
    """Which table is read, how it is laid out, and which items are taken."""
    group.add_argument(
        "--sheet", metavar="NAME", help="sheet of a workbook, or table of a database"
    )
    group.add_argument("--query", metavar="SQL", help="what to ask a database for")
    group.add_argument(
        "--wide",
        action=argparse.BooleanOptionalAction,
        help="a row is a person or a sitting, a column an item (default: found out, with a note)",
    )
    group.add_argument(
        "--items",
        action="append",
        metavar="PATTERN",
        help="columns of a wide table that are items, such as 'Q*' (again for more)",
    )
    group.add_argument(
        "--key",
        metavar="KEY",
        help="right answers, to score by: a file, Q1=A,Q2=C, a row A,C,… in the order of the "
        "items, or the id of the row that has them",
    )
    group.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="items to keep, by name or pattern (again for more)",
    )


def _value_options(group: argparse._ArgumentGroup) -> None:
    """What the values in the columns mean."""
    group.add_argument(
        "--unit",
        help="what a unit of numeric times is (days, weeks, …); unix or unix-ms for such clocks; "
        "years counts dates in decimal years",
    )
    group.add_argument(
        "--timezone", metavar="ZONE", help="zone of timestamps that lack one, such as Europe/Zurich"
    )
    group.add_argument(
        "--time-format",
        metavar="FORMAT",
        help="how dates are written where it is not ISO, such as %%d.%%m.%%Y",
    )
    group.add_argument(
        "--code",
        action="append",
        type=_coded,
        metavar="TEXT=NUMBER",
        help="what a response in words stands for (again for more)",
    )


def model_options(parser: argparse.ArgumentParser) -> None:
    """The estimator's options."""
    group = parser.add_argument_group("the model")
    _item_options(group)
    group.add_argument(
        "--kernel",
        choices=KERNELS,
        help="prior of the curves (default: level+smooth; rbf is the paper's)",
    )
    group.add_argument(
        "--bandwidth",
        type=float,
        help="fix the time scale of an rbf, in the unit of the times; inf: constant abilities",
    )
    group.add_argument(
        "--scale",
        choices=("abilities", "items"),
        default="abilities",
        help="the unit: abilities of variance 1, or slopes of geometric mean 1",
    )
    group.add_argument(
        "--clock",
        choices=("calendar", "person"),
        default="calendar",
        help="person counts time from each one's first answer",
    )
    _population_options(group)
    group.add_argument("--iterations", type=int, default=200, help="most iterations of EM")
    group.add_argument("--threads", type=int, help="threads to use (default: all cores)")


def _population_options(group: argparse._ArgumentGroup) -> None:
    """Options of what moves everyone, some, or one answer."""
    group.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column of people's groups, each of which has a mean of its own over time",
    )
    group.add_argument(
        "--effects",
        metavar="FORMULA",
        help="columns that move people or answers, such as 'age + treat * time + practice(item) + "
        "random(rater)'",
    )
    group.add_argument(
        "--free",
        action="append",
        type=_freed,
        metavar="ITEM=COLUMN",
        help="split an item by a column, or at a time (ITEM=TIME), for items with DIF or drift",
    )
    group.add_argument(
        "--cohort",
        choices=("auto", "learn", "none"),
        default="auto",
        help="learn the population's mean over time (auto: unless abilities are constant)",
    )


def _item_options(group: argparse._ArgumentGroup) -> None:
    """Options of the item models."""
    group.add_argument(
        "--model",
        help="1PL, 2PL, 3PL, 4PL, GRM, PCM, GPCM, RSM, NRM, golf, poisson, gaussian or beta "
        "(default: 2PL for 0 and 1, GRM for a few whole numbers)",
    )
    group.add_argument(
        "--model-column", metavar="COLUMN", help="column that names each item's model"
    )
    group.add_argument(
        "--direction",
        choices=("positive", "free"),
        default="positive",
        help="free lets items run backwards (roll calls, attitudes)",
    )
    group.add_argument(
        "--priors",
        choices=("weak", "hierarchical", "none"),
        default="weak",
        help="priors on the items",
    )
    group.add_argument(
        "--rare", type=int, default=1, help="categories with fewer answers join a neighbour"
    )
    group.add_argument(
        "--fixed",
        metavar="FILE",
        help="item bank: a table with a column item and parameters (a, b, c, …; also mirt's a1, d "
        "or discrimination, difficulty), which are held and anchor the scale",
    )
    group.add_argument(
        "--start", metavar="FILE", help="such a table, from which items are only started"
    )
    group.add_argument(
        "--population",
        nargs=2,
        type=float,
        metavar=("MEAN", "SD"),
        help="mean and sd of abilities on the bank's scale, where they are known",
    )


def run_option(parser: argparse.ArgumentParser) -> None:
    """The fit that the verb works on."""
    parser.add_argument(
        "fit", metavar="RUN", help="a folder written by `dynaesti fit`, or a .dyn file"
    )
    parser.add_argument(
        "--connect",
        action="store_true",
        help="for a fit of shards: let it call addresses of other hosts that it names",
    )


def dask_option(parser: argparse.ArgumentParser) -> None:
    """The cluster that works on shards."""
    parser.add_argument(
        "--dask",
        metavar="WHERE",
        help="for shards: a Dask scheduler's address (tcp://host:8786), or local:N for N worker "
        "processes here",
    )


def people_option(parser: argparse.ArgumentParser) -> None:
    """The people that are asked for."""
    parser.add_argument(
        "--id",
        nargs="+",
        action="extend",
        metavar="ID",
        help="some people, behind RUN (default: everyone)",
    )


def probability(text: str) -> float:
    """A probability; 95, meant in per cent, is 0.95, with a note."""
    value = float(text)
    if 1 < value < PER_CENT:
        print_notes(f"--level {text} was taken as {value / PER_CENT:g}")
        return value / PER_CENT
    return value


def screening_options(parser: argparse.ArgumentParser) -> None:
    """How items are screened."""
    parser.add_argument(
        "--level",
        type=probability,
        default=0.05,
        help="rate of false discoveries among flagged items (default: 0.05)",
    )
    parser.add_argument(
        "--no-purify",
        action="store_true",
        help="test items as if flagged ones were sound",
    )
    dask_option(parser)


def when_options(
    parser: argparse.ArgumentParser, default: str = "the instants of the answers"
) -> None:
    """At which times abilities are given, and how wide the band is."""
    time_options(parser, default)
    parser.add_argument(
        "--level", type=probability, default=0.7, help="probability of the band (default: 0.7)"
    )


def time_options(parser: argparse.ArgumentParser, default: str) -> None:
    """At which times abilities are given."""
    parser.add_argument(
        "--at",
        nargs="+",
        metavar="TIME",
        help=f"times: numbers, or ISO dates (default: {default})",
    )
    parser.add_argument(
        "--grid", type=int, metavar="N", help="N times from the fit's first answer to its last"
    )
    parser.add_argument(
        "--now", action="store_true", help="now (for numeric times: the last one of the fit)"
    )


def out_option(parser: argparse.ArgumentParser) -> None:
    """The file that a table is written to."""
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=_table_name,
        help="write to this file instead of the screen: .csv, .parquet, .xlsx (Excel) or .tex",
    )


def _table_name(name: str) -> str:
    """The name of a file for a table, whose ending says its format."""
    from dynaesti.tables import TABLE_ENDINGS

    if Path(name).suffix.lower() not in TABLE_ENDINGS:
        raise argparse.ArgumentTypeError(f"{name} ends in none of {', '.join(TABLE_ENDINGS)}")
    return name


def _freed(text: str) -> tuple[str, str | float]:
    """The item of ITEM=COLUMN or ITEM=TIME, and the column or time."""
    item, _, by = text.rpartition("=")
    if not item or not by:
        raise argparse.ArgumentTypeError(f"{text!r} is not ITEM=COLUMN, such as i3=gender")
    try:
        return item, float(by)
    except ValueError:
        return item, by


def _coded(text: str) -> tuple[str, float]:
    """The text and the number of TEXT=NUMBER."""
    word, _, number = text.rpartition("=")
    try:
        return word, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not TEXT=NUMBER, such as never=0") from None
