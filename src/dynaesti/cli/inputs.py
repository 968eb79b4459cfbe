"""From options to what verbs work on: responses, fits, times and labels."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynaesti.cli.messages import print_notes
from dynaesti.cli.options import COLUMNS, LAYOUT, PARTS
from dynaesti.core import FIT_NAME

if TYPE_CHECKING:
    from dynaesti.data import Responses
    from dynaesti.results import Fit
    from dynaesti.sharded import ShardedFit

MOST_TIMES = 1e7  # of --grid


def read_responses(
    args: argparse.Namespace, *, timeless: bool = False, silent: bool = False
) -> Responses:
    """Read the answers that the command line names; unless `silent`, print what was decided.

    Of a folder of shards only the first one with people in it is read.
    """
    from dynaesti.sharded import Shards, is_shards

    if len(args.data) == 1 and is_shards(args.data[0]):
        shards = Shards.open(args.data[0])
        busy = next(k for k, part in enumerate(shards.parts) if part.people)
        print_notes(
            f"only shard {busy + 1} of {len(shards)} is read: {shards.parts[busy].rows:,} of "
            f"{shards.rows:,} answers"
        )
        return shards.responses(busy, getattr(args, "clock", "calendar"))
    return _read(
        args,
        {key: getattr(args, key) for key in COLUMNS},
        args.unit,
        model=getattr(args, "model_column", None),
        group=getattr(args, "groups", None),
        covariates=covariates_of(args),
        clock=getattr(args, "clock", "calendar"),
        timeless=timeless,
        silent=silent,
    )


def covariates_of(args: argparse.Namespace) -> dict[str, str]:
    """Columns that --effects and --free need, with their kinds."""
    from dynaesti.data import columns_needed

    return columns_needed(getattr(args, "effects", None), dict(getattr(args, "free", None) or ()))


def further_responses(
    args: argparse.Namespace, fit: Fit | ShardedFit, *, unanswered: bool = False
) -> Responses:
    """Read further answers, in the columns of a fit or in those that the command line names."""
    from dynaesti.data import split_items

    like = fit.response_template
    names = {key: getattr(args, key) or like.columns.get(key) for key in COLUMNS}
    if like.columns.get("group"):
        names["group"] = like.columns["group"]
    unit = args.unit or (None if like.axis.stamps else like.unit)
    more = _read(
        args,
        names,
        unit,
        clock=like.clock,
        timeless=like.columns.get("time") is None,
        unanswered=unanswered,
        reuse_columns=True,
        covariates=fit.covariate_kinds,
    )
    more = split_items(more, fit.options.get("free"))
    if like.people.size:
        from dynaesti.data import count_noun, describe_new_people, try_index_of

        n_new = int((try_index_of(like.people, more.people.tolist()) < 0).sum())
        caution = describe_new_people(like.people, more.people)
        print_notes(
            f"{count_noun(len(more), 'answers')} of {count_noun(more.people.size, 'people')}, "
            f"{n_new:,} of them new to the fit"
        )
        if caution is not None:
            print_notes(caution)
    return more


def _read(
    args: argparse.Namespace,
    names: dict[str, Any],
    unit: str | None,
    *,
    silent: bool = False,
    **more: Any,
) -> Responses:
    """Read responses, and print every decision that was made unless `silent`."""
    from dynaesti.data import Responses, read_table

    table = read_table(args.data, **{key: getattr(args, key) for key in PARTS})
    present = {
        key: name
        for key, name in names.items()
        if name in table.frame.columns or not more.get("reuse_columns")
    }
    found = Responses.read(
        table,
        **present,
        unit=unit,
        unreadable="drop" if args.drop_unreadable else "refuse",
        timezone=args.timezone,
        time_format=args.time_format,
        code=dict(args.code) if args.code else None,
        **{key: getattr(args, key) for key in LAYOUT},
        **more,
    )
    found = found.distinct() if args.drop_duplicates else found
    if not silent:
        print_notes(*found.notes)
    return found


def with_model(args: argparse.Namespace, responses: Responses) -> argparse.Namespace:
    """The options with a model: one by the responses, with a note, where they name none."""
    import numpy as np

    from dynaesti.model import default_model

    if args.model is None and responses.models is None:
        values = np.unique(responses.resp)
        args.model = default_model(values)
        shown = ", ".join(f"{value:g}" for value in values)
        print_notes(f"the model is {args.model}, by the responses ({shown}); --model names another")
    return args


def estimator(args: argparse.Namespace, **more: Any) -> Any:
    """The estimator that the options describe."""
    from dynaesti.ability_estimator import DynAEsti

    return DynAEsti(
        args.model or "2PL",
        kernel=args.kernel,
        bandwidth=args.bandwidth,
        scale=args.scale,
        direction=args.direction,
        priors=None if args.priors == "none" else args.priors,
        clock=args.clock,
        cohort=None if args.cohort == "none" else args.cohort,
        groups=args.groups,
        effects=args.effects,
        free=_freed_items(args.free),
        unit=args.unit,
        rare=args.rare,
        fixed=args.fixed,
        start=args.start,
        population=None if args.population is None else tuple(args.population),
        iterations=args.iterations,
        threads=args.threads,
        **more,
    )


def _freed_items(given: list[tuple[str, str | float]] | None) -> dict[str, str | float] | None:
    """Items of --free with the column or time of each; an item is split once."""
    from dynaesti.errors import InputError

    if given is None:
        return None
    items = [item for item, _ in given]
    twice = [item for item in items if items.count(item) > 1]
    if twice:
        raise InputError(f"--free: {twice[0]!r} is split twice; an item has one column or time")
    return dict(given)


def open_fit(name: str, connect: bool = False) -> Fit:
    """The fit in a run's folder, or in a file; one of shards is refused."""
    from dynaesti.errors import InputError
    from dynaesti.results import Fit

    found = open_any(name, connect)
    if not isinstance(found, Fit):
        raise InputError(
            f"{name}: a fit of shards, whose people are not in memory; this verb works on "
            f"ordinary fits. There are items, "
            "ability, cohort, change, predict, score, update and report"
        )
    return found


def open_any(name: str, connect: bool = False) -> Fit | ShardedFit:
    """The fit in a run's folder, or in a file, of shards or not."""
    from dynaesti.errors import StorageError
    from dynaesti.loading import load
    from dynaesti.results import Curve, Scorer

    empty = False
    with suppress(OSError, ValueError):  # a name too long or with a zero in it: `load` refuses it
        empty = Path(name).is_dir() and not (Path(name) / FIT_NAME).exists()
    if empty:
        raise StorageError(
            f"{name}: no {FIT_NAME} in this folder; is it one that `dynaesti fit --out` wrote?"
        )
    found: Fit | ShardedFit | Curve | Scorer = load(name, connect=connect)
    if isinstance(found, Curve):
        raise StorageError(f"{name}: holds a curve, not a fit of people and items")
    if isinstance(found, Scorer):
        raise StorageError(
            f"{name}: holds a scorer, which knows no people; this verb needs the fit it was made of"
        )
    return found


def requested_times(fit: Fit | ShardedFit, args: argparse.Namespace) -> Any:
    """Times from --at, --grid or --now; None where nothing is asked."""
    import numpy as np

    from dynaesti.core import check_size, whole_number
    from dynaesti.errors import InputError

    if sum(value not in (None, False) for value in (args.at, args.grid, args.now)) > 1:
        raise InputError("give one of --at, --grid and --now")
    if args.grid is not None:
        check_size(whole_number(args.grid, "--grid", 1), "--grid", MOST_TIMES)
    if args.at is not None:
        return parsed_times(args.at)
    if args.grid is not None:
        return fit.from_clock(np.linspace(*fit.time_range, args.grid))
    if args.now:
        return _now(fit)
    return None


def _now(fit: Fit | ShardedFit) -> Any:
    """The present where times are dates, else the last time of the data; a note says which."""
    import numpy as np

    last = fit.from_clock(np.array([fit.time_range[1]]))
    if not fit.response_template.axis.stamps or fit.response_template.clock != "calendar":
        print_notes(f"times are numbers, so now is the last one in the data, {last[0]:g}")
        return last
    now = np.datetime64("now", "ns")
    if now - last[0] > np.timedelta64(1, "D"):
        print_notes(
            f"now is {str(now)[:16]} UTC, and the last answer is of {str(last[0])[:16]}: abilities "
            f"are forecasts; --at {str(last[0])[:10]} asks for the end of the data"
        )
    return np.array([now])


def parsed_times(texts: Sequence[str], name: str = "--at") -> Any:
    """Times from a flag: numbers where all are numbers, else ISO dates."""
    import numpy as np

    from dynaesti.data import parse_iso

    return (
        np.array([float(text) for text in texts])
        if all(map(is_number, texts))
        else parse_iso(list(texts), name)
    )


def is_number(text: str) -> bool:
    """Whether a word of the command line is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def requested_labels(labels: Sequence[Any], names: Sequence[str] | None) -> list[Any] | None:
    """Labels of the fit by their written form; None where none are asked for."""
    if names is None:
        return None
    written = {str(label): label for label in labels}
    return [written.get(name, name) for name in names]
