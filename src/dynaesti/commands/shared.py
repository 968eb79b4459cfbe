"""What several verbs share: options of data, models and output, runs on disk, and printing."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynaesti.runfolder import FIT_NAME

if TYPE_CHECKING:
    from dynaesti.responses import Responses
    from dynaesti.results import Fit
    from dynaesti.shardedfit import ShardedFit
    from dynaesti.tables import Table

COLUMNS = ("id", "item", "resp", "time", "weight")
SHOWN = 40  # rows of a table on a terminal


# --- options ---------------------------------------------------------------------------------------------


def data_options(parser: argparse.ArgumentParser, *, known: bool = False) -> None:
    """DATA and how to read it."""
    parser.add_argument("data", nargs="+", metavar="DATA",
                        help="CSV, TSV, JSON lines or Parquet, also .gz; several, a pattern, or - for standard input")
    group = parser.add_argument_group("reading the data")
    for name, what in zip(COLUMNS, ("people", "items", "responses", "times", "response weights"), strict=True):
        guessed = "" if name == "weight" else " (default: as in the fit)" if known else " (default: guessed, and told)"
        group.add_argument(f"--{name}", metavar="COLUMN", help=f"column of the {what}{guessed}")
    group.add_argument("--unit", help="what a unit of numeric times is (days, years, …); unix or unix-ms for such clocks")
    group.add_argument("--timezone", metavar="ZONE", help="zone of timestamps that lack one, such as Europe/Zurich")
    group.add_argument("--time-format", metavar="FORMAT", help="how dates are written where it is not ISO, such as %%d.%%m.%%Y")
    group.add_argument("--code", action="append", type=_coded, metavar="TEXT=NUMBER",
                       help="what a response in words stands for (again for more)")
    group.add_argument("--drop-unreadable", action="store_true", help="leave out rows that cannot be read, instead of stopping")
    group.add_argument("--drop-duplicates", action="store_true", help="count answers that repeat another exactly only once")


def model_options(parser: argparse.ArgumentParser) -> None:
    """The estimator's options."""
    group = parser.add_argument_group("the model")
    group.add_argument("--model", help="1PL, 2PL, 3PL, 4PL, GRM, PCM, GPCM, RSM, NRM, golf, poisson, gaussian or beta "
                                       "(default: 2PL for 0 and 1, GRM for a few whole numbers)")
    group.add_argument("--model-column", metavar="COLUMN", help="column that names each item's model")
    group.add_argument("--kernel", choices=KERNELS, help="prior of the curves (default: level+matern32; rbf is the paper's)")
    group.add_argument("--bandwidth", type=float, help="fix the time scale of an rbf, in the unit of the times; inf: constant abilities")
    group.add_argument("--scale", choices=("abilities", "items"), default="abilities",
                       help="the unit: abilities of variance 1, or slopes of geometric mean 1")
    group.add_argument("--direction", choices=("positive", "free"), default="positive",
                       help="free lets items run backwards (roll calls, attitudes)")
    group.add_argument("--priors", choices=("weak", "hierarchical", "none"), default="weak", help="priors on the items")
    group.add_argument("--clock", choices=("calendar", "person"), default="calendar",
                       help="person counts time from each one's first answer")
    group.add_argument("--rare", type=int, default=1, help="categories with fewer answers join a neighbour")
    group.add_argument("--iterations", type=int, default=200, help="most steps of the fit")
    group.add_argument("--threads", type=int, help="threads to use (default: all cores)")


KERNELS = ("level+matern32", "level+rbf", "matern32", "rbf")


def run_option(parser: argparse.ArgumentParser) -> None:
    """The fit to ask."""
    parser.add_argument("fit", metavar="RUN", help="a folder written by `dynaesti fit`, or a .dyn file")


def when_options(parser: argparse.ArgumentParser) -> None:
    """At which times abilities are told, and how wide the band is."""
    parser.add_argument("--at", nargs="+", metavar="TIME", help="times: numbers, or ISO dates (default: the instants of the answers)")
    parser.add_argument("--grid", type=int, metavar="N", help="N times from the fit's first answer to its last")
    parser.add_argument("--now", action="store_true", help="now (for numeric times: the last one of the fit)")
    parser.add_argument("--level", type=float, default=0.7, help="probability of the band (default: 0.7)")


def out_option(parser: argparse.ArgumentParser) -> None:
    """Where a table goes."""
    parser.add_argument("--out", metavar="FILE", type=_table_name, help="write to this CSV or Parquet file instead of the screen")


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
        tell([f"shard {busy + 1} of {len(shards)} stands for all: {shards.parts[busy].rows:,} of {shards.rows:,} answers"])
        return shards.responses(busy, getattr(args, "clock", "calendar"))
    return _read(args, {key: getattr(args, key) for key in COLUMNS}, args.unit, model=getattr(args, "model_column", None),
                 clock=getattr(args, "clock", "calendar"), timeless=timeless)


def further_responses(args: argparse.Namespace, fit: Fit | ShardedFit, *, unanswered: bool = False) -> Responses:
    """Further answers in the columns of a fit, or in those that the command line names."""
    like = fit.like
    names = {key: getattr(args, key) or like.columns.get(key) for key in COLUMNS}
    unit = args.unit or (None if like.axis.stamps else like.unit)
    more = _read(args, names, unit, clock=like.clock, timeless=like.columns.get("time") is None, unanswered=unanswered, known=True)
    from dynaesti.labels import look_up

    strangers = sum(k < 0 for k in look_up(like.people, more.people.tolist()).tolist())
    if like.people.size and strangers == more.people.size:
        tell([f"none of the {strangers:,} people is known to the fit (such as {more.people.tolist()[0]!r}; the fit knows "
              f"{like.people.tolist()[0]!r})"])
    return more


def guessed_unit(table: Table, time: str | None) -> tuple[str | None, str | None]:
    """The clock that numeric times look like, and a note that says so."""
    from dynaesti.columns import find_column, floats, looks_like_epoch

    column = find_column(table, "time", time, [], optional=True)
    values = None if column is None else floats(table.frame[column])
    unit = None if values is None else looks_like_epoch(values[values == values])
    if unit is None:
        return None, None
    kind = "seconds" if unit == "unix" else "milliseconds"
    return unit, f"time (column {column!r}): numbers were taken as Unix time in {kind}; --unit says otherwise"


def _read(args: argparse.Namespace, names: dict[str, Any], unit: str | None, **more: Any) -> Responses:
    """Read, with clocks that count seconds recognised, and tell every decision."""
    from dynaesti.responses import Responses
    from dynaesti.tables import read_table

    table = read_table(args.data)
    present = {key: name for key, name in names.items() if name in table.frame.columns or not more.get("known")}
    guessed, note = guessed_unit(table, present.get("time")) if unit is None else (None, None)
    found = Responses.read(table, **present, unit=guessed or unit, unreadable="drop" if args.drop_unreadable else "refuse",
                           timezone=args.timezone, time_format=args.time_format, code=dict(args.code) if args.code else None, **more)
    if note is not None:
        found = found.with_note(note)
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
    raise InputError(f"resp: {values.size} different values from {values[0]:g} to {values[-1]:g}; name a --model: poisson for counts, "
                     "gaussian for measurements, beta for shares between 0 and 1, GRM for grades")


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

    return DynAEsti(args.model or "2PL", kernel=args.kernel, bandwidth=args.bandwidth, scale=args.scale, direction=args.direction,
                    priors=None if args.priors == "none" else args.priors, clock=args.clock, unit=args.unit, rare=args.rare,
                    iterations=args.iterations, threads=args.threads, **more)


def open_fit(name: str) -> Fit:
    """The fit in a run's folder, or in a file; one of shards is refused."""
    from dynaesti.errors import InputError
    from dynaesti.results import Fit

    found = open_any(name)
    if not isinstance(found, Fit):
        raise InputError(f"{name}: a fit of shards, whose people are not in memory; this verb works on ordinary fits. There are items, "
                         "ability, predict, score, update and report")
    return found


def open_any(name: str) -> Fit | ShardedFit:
    """The fit in a run's folder, or in a file, of shards or not."""
    from dynaesti.curves import Curve
    from dynaesti.errors import StorageError
    from dynaesti.opening import load

    if Path(name).is_dir() and not (Path(name) / FIT_NAME).exists():
        raise StorageError(f"{name}: no {FIT_NAME} in this folder; is it one that `dynaesti fit --out` wrote?")
    found: Fit | ShardedFit | Curve = load(name)
    if isinstance(found, Curve):
        raise StorageError(f"{name}: holds a curve, not a fit of people and items")
    return found


def asked_times(fit: Fit | ShardedFit, args: argparse.Namespace) -> Any:
    """Times from --at, --grid or --now; None where nothing is asked."""
    import numpy as np

    from dynaesti.arrays import whole_number
    from dynaesti.errors import InputError

    if sum(value not in (None, False) for value in (args.at, args.grid, args.now)) > 1:
        raise InputError("give one of --at, --grid and --now")
    if args.grid is not None:
        whole_number(args.grid, "--grid", 1)
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

    return np.array([float(text) for text in texts]) if all(map(is_number, texts)) else parse_iso(list(texts), "--at")


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


# --- output ----------------------------------------------------------------------------------------------


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """A frame's columns as lists."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    return {name: table[name].to_list() for name in table.columns}


def show(frame: Any, args: argparse.Namespace, **facts: Any) -> None:
    """A table to a file, to machines, to a pipe or to a terminal."""
    out = getattr(args, "out", None)
    if out is not None:
        write_frame(frame, Path(out))
        facts["out"] = out
        if not args.json:
            print(f"wrote {out}", file=sys.stderr)
    columns = columns_of(frame)
    if args.json:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        print(as_json({**facts, "rows": rows} if out is None else facts))
    elif out is None:
        print(_aligned(columns) if sys.stdout.isatty() else _csv(columns), end="")


def write_frame(frame: Any, path: Path) -> None:
    """A frame as CSV or Parquet, by the file's name; written beside and moved into place."""
    from dynaesti.storage import beside

    columns = columns_of(frame)
    with beside(path) as part:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix.lower() == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({name: _one_type(values) for name, values in columns.items()}), part)
        else:
            part.write_text(_csv(columns), encoding="utf-8", newline="")


def _one_type(values: list[Any]) -> list[Any]:
    """A column of one type: labels of several types are written out."""
    kinds = {type(value) for value in values if value is not None}
    return [None if value is None else str(value) for value in values] if len(kinds) > 1 and not kinds <= {int, float} else values


def _csv(columns: Mapping[str, list[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*([_cell(value) for value in values] for values in columns.values()), strict=True))
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if value != value else repr(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _aligned(columns: Mapping[str, list[Any]]) -> str:
    """A table for eyes: few digits, few rows."""
    total = len(next(iter(columns.values()), []))
    shown = {name: [_short(value) for value in values[:SHOWN]] for name, values in columns.items()}
    widths = {name: max([len(name), *map(len, cells)]) for name, cells in shown.items()}
    numeric = {name: all(isinstance(value, int | float) for value in columns[name][:SHOWN]) for name in columns}
    lines = ["  ".join(name.rjust(widths[name]) if numeric[name] else name.ljust(widths[name]) for name in shown)]
    for row in zip(*shown.values(), strict=True):
        lines.append("  ".join(cell.rjust(widths[name]) if numeric[name] else cell.ljust(widths[name])
                               for name, cell in zip(shown, row, strict=True)))
    if total > SHOWN:
        lines.append(f"… {total - SHOWN:,} rows more; --out FILE writes all")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.3f}" if abs(value) < 1e4 else f"{value:.6g}"
    return str(value)[:19] if hasattr(value, "isoformat") else str(value)


def as_json(value: Any) -> str:
    """JSON without NaN, which it does not know; dates as ISO text."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        return _plain(value.item())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def tell(notes: Iterable[str]) -> None:
    """What was decided, on standard error."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def say(text: str, args: argparse.Namespace) -> None:
    """Words for people; machines get theirs as JSON."""
    if not args.json:
        print(text)
