"""What several verbs share: options of data, models and output, and what they stand for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynaesti.commands.words import tell
from dynaesti.runfolder import FIT_NAME

if TYPE_CHECKING:
    from dynaesti.responses import Responses
    from dynaesti.results import Fit
    from dynaesti.shardedfit import ShardedFit

COLUMNS = ("id", "item", "resp", "time", "weight")


# --- options ---------------------------------------------------------------------------------------------


def data_options(parser: argparse.ArgumentParser, *, known: bool = False) -> None:
    """DATA and how to read it."""
    parser.add_argument(
        "data",
        nargs="+",
        metavar="DATA",
        help="CSV, TSV, JSON lines or Parquet, also .gz; several, a pattern, or - for standard input",
    )
    group = parser.add_argument_group("reading the data")
    for name, what in zip(
        COLUMNS, ("people", "items", "responses", "times", "response weights"), strict=True
    ):
        guessed = (
            ""
            if name == "weight"
            else " (default: as in the fit)"
            if known
            else " (default: guessed, and told)"
        )
        group.add_argument(f"--{name}", metavar="COLUMN", help=f"column of the {what}{guessed}")
    group.add_argument(
        "--unit",
        help="what a unit of numeric times is (days, years, …); unix or unix-ms for such clocks",
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


def model_options(parser: argparse.ArgumentParser) -> None:
    """The estimator's options."""
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model",
        help="1PL, 2PL, 3PL, 4PL, GRM, PCM, GPCM, RSM, NRM, golf, poisson, gaussian or beta "
        "(default: 2PL for 0 and 1, GRM for a few whole numbers)",
    )
    group.add_argument(
        "--model-column", metavar="COLUMN", help="column that names each item's model"
    )
    group.add_argument(
        "--kernel",
        choices=KERNELS,
        help="prior of the curves (default: level+matern32; rbf is the paper's)",
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
        "--clock",
        choices=("calendar", "person"),
        default="calendar",
        help="person counts time from each one's first answer",
    )
    group.add_argument(
        "--rare", type=int, default=1, help="categories with fewer answers join a neighbour"
    )
    group.add_argument("--iterations", type=int, default=200, help="most steps of the fit")
    group.add_argument("--threads", type=int, help="threads to use (default: all cores)")


KERNELS = ("level+matern32", "level+rbf", "matern32", "rbf")


def run_option(parser: argparse.ArgumentParser) -> None:
    """The fit to ask."""
    parser.add_argument(
        "fit", metavar="RUN", help="a folder written by `dynaesti fit`, or a .dyn file"
    )
    parser.add_argument(
        "--connect",
        action="store_true",
        help="for a fit of shards: let it call addresses of other hosts that it names",
    )


def when_options(parser: argparse.ArgumentParser) -> None:
    """At which times abilities are told, and how wide the band is."""
    parser.add_argument(
        "--at",
        nargs="+",
        metavar="TIME",
        help="times: numbers, or ISO dates (default: the instants of the answers)",
    )
    parser.add_argument(
        "--grid", type=int, metavar="N", help="N times from the fit's first answer to its last"
    )
    parser.add_argument(
        "--now", action="store_true", help="now (for numeric times: the last one of the fit)"
    )
    parser.add_argument(
        "--level", type=float, default=0.7, help="probability of the band (default: 0.7)"
    )


def out_option(parser: argparse.ArgumentParser) -> None:
    """Where a table goes."""
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=_table_name,
        help="write to this CSV or Parquet file instead of the screen",
    )


def _table_name(name: str) -> str:
    if Path(name).suffix.lower() not in (".csv", ".parquet"):
        raise argparse.ArgumentTypeError(f"{name} is neither .csv nor .parquet")
    return name


def _coded(text: str) -> tuple[str, float]:
    word, _, number = text.rpartition("=")
    try:
        return word, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not TEXT=NUMBER, such as never=0") from None


# --- from options to objects -----------------------------------------------------------------------------


def read_responses(args: argparse.Namespace, *, timeless: bool = False) -> Responses:
    """The answers that the command line names; what was decided about them is told. Of a folder of shards the first one stands for all."""
    from dynaesti.shards import Shards, is_shards

    if len(args.data) == 1 and is_shards(args.data[0]):
        shards = Shards.open(args.data[0])
        busy = next(k for k, part in enumerate(shards.parts) if part.people)
        tell(
            [
                f"shard {busy + 1} of {len(shards)} stands for all: {shards.parts[busy].rows:,} of {shards.rows:,} answers"
            ]
        )
        return shards.responses(busy, getattr(args, "clock", "calendar"))
    return _read(
        args,
        {key: getattr(args, key) for key in COLUMNS},
        args.unit,
        model=getattr(args, "model_column", None),
        clock=getattr(args, "clock", "calendar"),
        timeless=timeless,
    )


def further_responses(
    args: argparse.Namespace, fit: Fit | ShardedFit, *, unanswered: bool = False
) -> Responses:
    """Further answers in the columns of a fit, or in those that the command line names."""
    like = fit.like
    names = {key: getattr(args, key) or like.columns.get(key) for key in COLUMNS}
    unit = args.unit or (None if like.axis.stamps else like.unit)
    more = _read(
        args,
        names,
        unit,
        clock=like.clock,
        timeless=like.columns.get("time") is None,
        unanswered=unanswered,
        known=True,
    )
    if like.people.size:
        from dynaesti.labels import look_up, told
        from dynaesti.strangers import told_strangers

        strange = int((look_up(like.people, more.people.tolist()) < 0).sum())
        odd = told_strangers(like.people, more.people)
        tell(
            [
                f"{told(len(more), 'answers')} of {told(more.people.size, 'people')}, {strange:,} of them new to the fit"
            ]
        )
        tell([] if odd is None else [odd])
    return more


def _read(
    args: argparse.Namespace, names: dict[str, Any], unit: str | None, **more: Any
) -> Responses:
    """Read, and tell every decision."""
    from dynaesti.responses import Responses
    from dynaesti.tables import read_table

    table = read_table(args.data)
    present = {
        key: name
        for key, name in names.items()
        if name in table.frame.columns or not more.get("known")
    }
    found = Responses.read(
        table,
        **present,
        unit=unit,
        unreadable="drop" if args.drop_unreadable else "refuse",
        timezone=args.timezone,
        time_format=args.time_format,
        code=dict(args.code) if args.code else None,
        **more,
    )
    found = found.distinct() if args.drop_duplicates else found
    tell(found.notes)
    return found


def default_model(values: Any) -> str:
    """The model that distinct responses ask for: 2PL for 0 and 1, GRM for a few whole numbers; amounts must be named."""
    import numpy as np

    from dynaesti.errors import InputError

    if np.isin(values, (0, 1)).all():
        return "2PL"
    if values.size <= 12 and np.all(values == np.floor(values)):
        return "GRM"
    raise InputError(
        f"resp: {values.size} different values from {values[0]:g} to {values[-1]:g}; name a --model: poisson for counts, "
        "gaussian for measurements, beta for shares between 0 and 1, GRM for grades"
    )


def named_model(args: argparse.Namespace, responses: Responses) -> argparse.Namespace:
    """The options with a model, told where they do not name one."""
    import numpy as np

    if args.model is None and responses.models is None:
        args.model = default_model(np.unique(responses.resp))
        tell([f"the model is {args.model}, by the responses; --model names another"])
    return args


def estimator(args: argparse.Namespace, **more: Any) -> Any:
    """The estimator that the options describe."""
    from dynaesti.dynaesti import DynAEsti

    return DynAEsti(
        args.model or "2PL",
        kernel=args.kernel,
        bandwidth=args.bandwidth,
        scale=args.scale,
        direction=args.direction,
        priors=None if args.priors == "none" else args.priors,
        clock=args.clock,
        unit=args.unit,
        rare=args.rare,
        iterations=args.iterations,
        threads=args.threads,
        **more,
    )


def open_fit(name: str, connect: bool = False) -> Fit:
    """The fit in a run's folder, or in a file; one of shards is refused."""
    from dynaesti.errors import InputError
    from dynaesti.results import Fit

    found = open_any(name, connect)
    if not isinstance(found, Fit):
        raise InputError(
            f"{name}: a fit of shards, whose people are not in memory; this verb works on ordinary fits. There are items, "
            "ability, predict, score, update and report"
        )
    return found


def open_any(name: str, connect: bool = False) -> Fit | ShardedFit:
    """The fit in a run's folder, or in a file, of shards or not."""
    from dynaesti.curves import Curve
    from dynaesti.errors import StorageError
    from dynaesti.opening import load

    empty = False
    with suppress(OSError, ValueError):  # a name too long, or with a zero in it: `load` tells
        empty = Path(name).is_dir() and not (Path(name) / FIT_NAME).exists()
    if empty:
        raise StorageError(
            f"{name}: no {FIT_NAME} in this folder; is it one that `dynaesti fit --out` wrote?"
        )
    found: Fit | ShardedFit | Curve = load(name, connect=connect)
    if isinstance(found, Curve):
        raise StorageError(f"{name}: holds a curve, not a fit of people and items")
    return found


def asked_times(fit: Fit | ShardedFit, args: argparse.Namespace) -> Any:
    """Times from --at, --grid or --now; None where nothing is asked."""
    import numpy as np

    from dynaesti.arrays import bounded, whole_number
    from dynaesti.errors import InputError

    if sum(value not in (None, False) for value in (args.at, args.grid, args.now)) > 1:
        raise InputError("give one of --at, --grid and --now")
    if args.grid is not None:
        bounded(whole_number(args.grid, "--grid", 1), "--grid", 1e7)
    if args.at is not None:
        return parsed_times(args.at)
    if args.grid is not None:
        return fit._restored(np.linspace(*fit.ends, args.grid))
    if args.now:
        if fit.like.axis.stamps and fit.like.clock == "calendar":
            return np.array([np.datetime64("now", "ns")])
        tell(["times are numbers, so now is the last one in the data"])
        return fit._restored(np.array([fit.ends[1]]))
    return None


def parsed_times(texts: Sequence[str]) -> Any:
    """Numbers where all are such, else ISO dates."""
    import numpy as np

    from dynaesti.times import parse_iso

    return (
        np.array([float(text) for text in texts])
        if all(map(is_number, texts))
        else parse_iso(list(texts), "--at")
    )


def is_number(text: str) -> bool:
    """Whether a word of the command line is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def asked_labels(labels: Sequence[Any], names: Sequence[str] | None) -> list[Any] | None:
    """Labels as the fit has them, from their written form."""
    if names is None:
        return None
    written = {str(label): label for label in labels}
    return [written.get(name, name) for name in names]
