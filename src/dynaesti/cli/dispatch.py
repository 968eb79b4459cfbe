"""`dynaesti VERB …`: parsing, errors in one paragraph, exit codes.

Nothing heavy is imported before a verb runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from dynaesti import __version__
from dynaesti.cli.messages import complain, flag, tell

VERBS = {
    "fit": "fit abilities and items to a file of answers, and write a report",
    "prepare": "sort and split answers that memory cannot hold into shards",
    "validate": "look at a file of answers before fitting",
    "report": "write the report of a fit as one HTML page",
    "items": "the item table of a fit",
    "ability": "abilities of people at times",
    "predict": "chances of answers, given or not yet given",
    "score": "abilities of further people with the items frozen",
    "update": "more answers of known or new people; items stay",
    "evaluate": "held-out scores against baselines",
    "simulate": "draw answers from the model",
    "curve": "a smooth curve from a file of votes, counts, successes or values",
    "reproduce": "the paper's studies, beside the paper's numbers",
    "demo": "simulate a class over a term, fit it, write the report",
}
FINE = 0
LOOK = 1
USAGE = 2
BAD_DATA = 3
NO_FILE = 4
FAULT = 5
STOPPED = 130
EXIT_CODES = """exit codes:
  0    done
  1    validate: usable, but something deserves a look
  2    a wrong command line
  3    data or options that cannot be used
  4    a file that cannot be read or written, or a package that is missing
  5    a fault of the program itself
  130  interrupted (a fit goes on from its checkpoint when called again)"""


def parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """The parser; with a verb's name only that one gets its options, which keeps `--help` quick."""
    top = argparse.ArgumentParser(
        prog="dynaesti",
        description="Abilities that change over time, from who answered what, when and how.",
        epilog=f"example:\n  dynaesti fit answers.csv --out run\n\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"dynaesti {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, line in VERBS.items():
        if wanted not in (None, name):
            verbs.add_parser(name, help=line, add_help=False)
            continue
        module = import_module(f"dynaesti.cli.{name}")
        one = verbs.add_parser(
            name,
            help=line,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=f"example:\n{module.EXAMPLE}",
        )
        module.options(one)
        one.add_argument("--json", action="store_true", help="print one JSON object, for machines")
        one.add_argument("--debug", action="store_true", help="show the traceback of an error")
        one.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns its exit code."""
    _open_streams()
    given = sys.argv[1:] if argv is None else list(argv)
    wanted = next((word for word in given if word in VERBS), None)
    args = parser(wanted or "").parse_args(given)
    try:
        return _run(args)
    except KeyboardInterrupt:
        hint = getattr(args, "after_interrupt", None)
        complain(f"\ninterrupted{f': {hint()}' if hint else ''}")
        return STOPPED
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE


def _open_streams() -> None:
    """Streams that take every character, escaped where their encoding lacks it.

    One that was closed leads nowhere.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for as long as the process lives
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _run(args: argparse.Namespace) -> int:
    from dynaesti.errors import DynaestiError, MissingExtraError, StorageError, spell_options

    with warnings.catch_warnings(), spell_options(flag):
        warnings.showwarning = _told
        try:
            return int(args.run(args) or FINE)
        except DynaestiError as error:
            if args.debug:
                raise
            complain(f"dynaesti {args.verb}: {error}")
            return NO_FILE if isinstance(error, StorageError | MissingExtraError) else BAD_DATA
        except OSError as error:
            if args.debug or isinstance(error, BrokenPipeError):
                raise
            complain(f"dynaesti {args.verb}: {error.filename or ''}: {error.strerror or error}")
            return NO_FILE
        except MemoryError as error:
            if args.debug:
                raise
            complain(
                f"dynaesti {args.verb}: not enough memory ({str(error) or 'none is left'}). "
                f"Nothing that was written before is lost. "
                "Ask for fewer times or people at once, or split the data into shards: `dynaesti "
                "prepare`"
            )
            return BAD_DATA
        except Exception as error:
            if args.debug:
                raise
            complain(
                f"dynaesti {args.verb}: a fault of the program itself ({type(error).__name__}: "
                f"{error}); --debug shows where. Nothing "
                "that was written before is lost; please tell the developers"
            )
            return FAULT


def _told(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Our own warnings as notes, each once; those of libraries are for `--debug`."""
    from dynaesti.errors import DynaestiWarning, HealthWarning

    ours = issubclass(category, DynaestiWarning) and not issubclass(
        category, HealthWarning
    )  # health is told with the results
    if (ours and str(message) not in _said) or "--debug" in sys.argv:
        _said.add(str(message))
        tell([str(message)])


_said: set[str] = set()
