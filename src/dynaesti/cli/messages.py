"""Words on the terminal.

Notes, results and errors, in the command line's own language, and without anything that a terminal
would obey.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Iterable

SAID_HERE = {
    "Responses.read(…, unreadable='drop') (on the command line --drop-unreadable)": "--drop-unreadable",
    "; unit= says otherwise (on the command line --unit)": "; --unit says otherwise",
    "code={'never': 0} (--code never=0)": "--code never=0",
    "force=True (--force)": "--force",
    "timeless=True": "--timeless",
    "new_items=True": "--new-items",
    "again=True": "--again",
    " (on the command line --timezone)": "",
    " (on the command line --time-format)": "",
    "raise iterations": "raise --iterations",
}
FLAGS = (
    "bandwidth",
    "direction",
    "rare",
    "scale",
    "clock",
    "model",
    "kernel",
    "priors",
    "unit",
    "timezone",
    "time_format",
    "id",
    "item",
    "resp",
    "time",
    "weight",
)


def as_flags(text: str) -> str:
    """A message that speaks of Python's options, in those of the command line.

    Bandwidth=inf is --bandwidth inf here.
    """
    for python, flag in SAID_HERE.items():
        text = text.replace(python, flag)
    return re.sub(
        rf"(?<![\w-])({'|'.join(FLAGS)})=('[^']*'|[\w.]+)",
        lambda found: f"--{found[1].replace('_', '-')} {shlex.quote(found[2].strip(chr(39)))}",
        text,
    )


def harmless(text: str) -> str:
    """Text without control characters.

    A name in a file must not set the title or the colours of whoever looks at it.
    """
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
    )


def complain(text: str) -> None:
    """An error or a hint, on standard error."""
    if sys.stderr is not None:
        print(harmless(text), file=sys.stderr)


def tell(notes: Iterable[str]) -> None:
    """What was decided, on standard error."""
    for note in notes:
        complain(f"note: {as_flags(note)}")


def say(text: str, args: argparse.Namespace) -> None:
    """Words for people; machines get theirs as JSON."""
    if not args.json:
        print(harmless(text))
