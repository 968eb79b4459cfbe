"""Write the simulated data of a tutorial, as CSV, Excel or Parquet; without a name, list them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynaesti.cli.output import print_result

EXAMPLE = "  dynaesti example\n  dynaesti example quizzes --out quizzes.xlsx"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="which data; all are listed without"
    )
    parser.add_argument("--out", metavar="FILE", help="the file (default: NAME.csv)")


def run(args: argparse.Namespace) -> int:
    """List the data sets, or write one."""
    from dynaesti import examples
    from dynaesti.errors import InputError
    from dynaesti.tables import write_frame

    names = sorted(dir(examples))
    first = {name: what_is_drawn(getattr(examples, name)) for name in names}
    if args.name is None:
        wide = max(map(len, names))
        lines = [f"{name:{wide}}  {said}" for name, said in first.items()]
        print_result(args, {"examples": names}, "\n".join(lines))
        return 0
    if args.name not in names:
        raise InputError(f"name: no data called {args.name!r}; there are {', '.join(names)}")
    frame = getattr(examples, args.name)()
    target = write_frame(frame, Path(args.out or f"{args.name}.csv"))
    print_result(
        args, {"out": str(target), "rows": len(frame)}, f"Wrote {target}: {first[args.name]}"
    )
    return 0


def what_is_drawn(draw: Callable[..., Any]) -> str:
    """The first line of a function's docstring, without the verb that it begins with."""
    return str(draw.__doc__).partition("\n")[0].removeprefix("Draw ")
