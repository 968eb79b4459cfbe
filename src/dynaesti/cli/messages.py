"""What the command line prints: notes, results and errors.

Options are named by their flags, and control characters are escaped.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping

from dynaesti.errors import NO_VALUE
from dynaesti.tables import printable

# options of the library that the command line takes by a flag of the same name (time_format:
# --time-format)
SAME_NAME = frozenset(
    (
        "again",
        "answers",
        "assignment",
        "bandwidth",
        "clock",
        "code",
        "cohort",
        "connect",
        "counts",
        "dask",
        "data",
        "direction",
        "effects",
        "exposure",
        "force",
        "free",
        "golf",
        "group",
        "groups",
        "id",
        "item",
        "items",
        "iterations",
        "kernel",
        "key",
        "model",
        "new_items",
        "noise",
        "only",
        "priors",
        "query",
        "rare",
        "resp",
        "scale",
        "sd",
        "sheet",
        "successes",
        "time",
        "time_format",
        "timeless",
        "timezone",
        "trials",
        "unit",
        "values",
        "votes",
        "weight",
    )
)
# and those that it takes otherwise
OTHER_NAME = {
    ("distinct", True): "--drop-duplicates",
    ("unreadable", "drop"): "--drop-unreadable",
    ("wide", False): "--no-wide",
    ("wide", True): "--wide",
}


def flag(name: str, value: object = NO_VALUE) -> str | None:
    """Spell an option of the library as a flag: bandwidth=inf is --bandwidth inf.

    None where the command line has no such flag, so that Python's spelling is shown.
    """
    if name == "new_items" and isinstance(value, str):
        return f"--new-items --new-model {_word(value)}"
    if name not in SAME_NAME:
        return next((found for key, found in OTHER_NAME.items() if key == (name, value)), None)
    found = f"--{name.replace('_', '-')}"
    if value is NO_VALUE or value is True:
        return found
    if isinstance(value, list):
        return " ".join(f"{found} {_word(str(one))}" for one in value)
    if isinstance(value, Mapping) and name == "key":
        return f"{found} {_word(','.join(f'{item}={right}' for item, right in value.items()))}"
    if isinstance(value, Mapping):
        return " ".join(f"{found} {_word(f'{key}={item}')}" for key, item in value.items())
    return f"{found} {_word(str(value))}"


# arguments of the library that verbs take by a flag of another name
OTHER_FLAG = {
    "group": "groups",
    "groups": "group",
    "ids": "id",
    "path": "out",
    "per_person": "answers_per_person",
    "students": "people",
}


def flags_of(verb: argparse.ArgumentParser) -> dict[str, str]:
    """The flags of a verb, by the names under which the library knows the options."""
    options = verb._actions  # noqa: SLF001  argparse has no public list of them
    flags = {a.dest: max(a.option_strings, key=len) for a in options if a.option_strings}
    return {name: flags[dest] for name, dest in OTHER_FLAG.items() if dest in flags} | flags


def with_flag(text: str, flags: Mapping[str, str]) -> str:
    """A message of the library about an argument (``bandwidth: expected …``), about the flag."""
    name, colon, rest = text.partition(": ")
    return f"{flags[name]}{colon}{rest}" if name in flags else text


def _word(text: str) -> str:
    """A word as a shell takes it, on one line."""
    return shlex.quote(text if text.isprintable() else repr(text)[1:-1])


def print_error(text: str) -> None:
    """Print an error or a hint to standard error."""
    if sys.stderr is not None:
        print(printable(text), file=sys.stderr)


def print_notes(*notes: str) -> None:
    """Print what was decided, a line each, to standard error."""
    for note in notes:
        print_error(f"note: {note}")


def print_text(text: str, args: argparse.Namespace) -> None:
    """Print a text for people; with --json, which is for machines, print nothing."""
    if not args.json:
        print(printable(text))
