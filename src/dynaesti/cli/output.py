"""What verbs hand out: tables to a file, a pipe or a terminal, and JSON for machines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynaesti.cli.inputs import is_number
from dynaesti.cli.messages import printable

SHOWN = 40  # rows of a table on a terminal
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the beginning of one


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """A frame's columns as lists."""
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    return {name: table[name].to_list() for name in table.columns}


def rows_of(columns: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Columns as rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def print_result(args: argparse.Namespace, facts: Mapping[str, Any], text: str) -> None:
    """Print what a verb did: the facts as JSON with --json, else the text."""
    print(as_json(facts) if args.json else printable(text))


def show(frame: Any, args: argparse.Namespace, **facts: Any) -> None:
    """Write a table to the file of --out, or print it: as JSON, as CSV to a pipe, else aligned.

    The facts join the JSON.
    """
    out = getattr(args, "out", None)
    if out is not None:
        write_frame(frame, Path(out))
        facts["out"] = out
        if not args.json:
            print(f"wrote {out}", file=sys.stderr)
    columns = columns_of(frame)
    if args.json:
        print(as_json({**facts, "rows": rows_of(columns)} if out is None else facts))
    elif out is None:
        print(_aligned(columns) if sys.stdout.isatty() else _csv(columns), end="")


def sorted_frame(frame: Any, by: str) -> Any:
    """A frame sorted by a column, rows without a value last."""
    import narwhals as nw
    import numpy as np

    table = nw.from_native(frame, eager_only=True)
    order = np.argsort(np.asarray(table[by].to_numpy()), kind="stable")
    return table[order.tolist()].to_native()


def write_frame(frame: Any, path: Path) -> None:
    """Write a frame as CSV or Parquet, by the file's ending: beside the file, then moved there."""
    from dynaesti.core import atomic_path

    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as part:
        write_table(frame, part, path.suffix.lower() == ".parquet")


def write_table(frame: Any, file: Path, parquet: bool) -> None:
    """Write a frame straight into a file, as Parquet or CSV."""
    columns = columns_of(frame)
    if parquet:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(
            pa.table({name: _one_type(values) for name, values in columns.items()}), file
        )
    else:
        file.write_text(_csv(columns), encoding="utf-8", newline="")


def _one_type(values: list[Any]) -> list[Any]:
    """A column of one type: labels of several types become text."""
    kinds = {type(value) for value in values if value is not None}
    return (
        [None if value is None else str(value) for value in values]
        if len(kinds) > 1 and not kinds <= {int, float}
        else values
    )


def _csv(columns: Mapping[str, list[Any]]) -> str:
    table = [
        [_text_cell(name) for name in columns],
        *zip(*([_cell(value) for value in values] for values in columns.values()), strict=True),
    ]
    return "".join(",".join(row) + "\n" for row in table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else repr(value)
    if isinstance(value, str):
        return _text_cell(value)
    return "" if value is None else value.isoformat() if hasattr(value, "isoformat") else str(value)


def _text_cell(text: str) -> str:
    """A text as a CSV cell, quoted where it has to be.

    What a spreadsheet would run as a formula gets a ' in front.
    """
    if text.startswith(FORMULA) and not is_number(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text


def _aligned(columns: Mapping[str, list[Any]]) -> str:
    """A table for people to read: columns aligned, few digits, the first rows only."""
    total = len(next(iter(columns.values()), []))
    shown = {
        printable(name): [printable(_short(value)) for value in values[:SHOWN]]
        for name, values in columns.items()
    }
    columns = dict(zip(shown, columns.values(), strict=True))
    widths = {name: max([len(name), *map(len, cells)]) for name, cells in shown.items()}
    numeric = {
        name: all(isinstance(value, int | float) for value in columns[name][:SHOWN])
        for name in columns
    }
    lines = [
        "  ".join(
            name.rjust(widths[name]) if numeric[name] else name.ljust(widths[name])
            for name in shown
        )
    ]
    for row in zip(*shown.values(), strict=True):
        lines.append(
            "  ".join(
                cell.rjust(widths[name]) if numeric[name] else cell.ljust(widths[name])
                for name, cell in zip(shown, row, strict=True)
            )
        )
    if total > SHOWN:
        lines.append(f"… {total - SHOWN:,} rows more; --out FILE writes all")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.3f}" if abs(value) < 1e4 else f"{value:.6g}"
    return str(value)[:19] if hasattr(value, "isoformat") else str(value)


def as_json(value: Any) -> str:
    """Encode a value as JSON: NaN and infinity as null, dates as ISO text."""
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
