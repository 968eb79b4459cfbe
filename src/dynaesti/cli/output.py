"""What verbs hand out: tables to a file, a pipe or a terminal, and JSON for machines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynaesti.tables import aligned, printable

SHOWN = 40  # rows of a table on a terminal


def print_result(args: argparse.Namespace, facts: Mapping[str, Any], text: str) -> None:
    """Print what a verb did: the facts as JSON with --json, else the text."""
    print(as_json(facts) if args.json else printable(text))


def show(frame: Any, args: argparse.Namespace, **facts: Any) -> None:
    """Write a table to the file of --out, or print it: as JSON, as CSV to a pipe, else aligned.

    The facts join the JSON.
    """
    from dynaesti.tables import as_frame, csv_text, write_frame

    out = getattr(args, "out", None)
    table = as_frame(frame)
    if out is not None:
        write_frame(table, Path(out))
        facts["out"] = out
        if not args.json:
            print(f"wrote {out}", file=sys.stderr)
    if args.json:
        print(as_json({**facts, "rows": table.rows()} if out is None else facts))
    elif out is None and sys.stdout.isatty():
        print(aligned(table.to_dict(), SHOWN, remedy="; --out FILE writes all"), end="")
    elif out is None:
        print(csv_text(table), end="")


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
