"""`dynaesti VERB …`: parsing, errors in one paragraph, exit codes.

Nothing heavy is imported before a verb runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from dynaesti import __version__
from dynaesti.cli.messages import flag, flags_of, print_error, print_notes, with_flag

VERBS = {
    "fit": "fit abilities and items to a file of answers, and write a report",
    "prepare": "sort and split answers that memory cannot hold into shards",
    "validate": "check a file of answers before fitting",
    "report": "write the report of a fit as one HTML page, or as PDF",
    "items": "the item table of a fit",
    "ability": "abilities of people at times",
    "plausible": "abilities of people drawn from their posterior",
    "cohort": "the population's mean ability over time, and that of its groups",
    "effects": "effects of covariates, practice and raters, with standard errors",
    "dif": "items that are easier for one group than for another as able",
    "drift": "items that become easier or harder in the course of time",
    "change": "who rose and who fell between two times",
    "predict": "probabilities of answers, given or not yet given",
    "score": "abilities of further people with the items frozen",
    "next": "what to ask a person next",
    "update": "more answers of known or new people; items stay",
    "serve": "take answers over HTTP and tell abilities at once, with a page to watch",
    "keys": "keys of a service: make, list, revoke",
    "refit": "fit all answers of a service anew, on the old scale, while it serves",
    "evaluate": "held-out scores against baselines",
    "plan": "plan a study: how wide bands will be, and how often an effect will be found",
    "simulate": "draw answers from the model",
    "curve": "a smooth curve from a file of votes, counts, successes or values",
    "reproduce": "the paper's studies, beside the paper's numbers",
    "demo": "simulate a class over a term, fit it, write the report",
    "example": "write the data of a tutorial",
    "warmup": "compile the inner loops ahead of the first fit",
}
# exit codes; argparse has 2 as well, and `validate` 1
DONE = 0
WRONG_COMMAND = 2
BAD_DATA = 3
NO_FILE = 4
FAULT = 5
INTERRUPTED = 130
# packages that verbs may lack, and the extras that bring them
EXTRAS = {
    "plot": "matplotlib",
    "files": "pyarrow",
    "excel": "xlsxwriter python_calamine",
    "spss": "pyreadstat",
    "databases": "sqlalchemy psycopg",
    "scale": "duckdb fsspec",
    "dask": "distributed dask",
    "xarray": "xarray",
    "serve": "fastapi fastapi_offline starlette pydantic uvicorn prometheus_client",
}
EXIT_CODES = """exit codes:
  0    done
  1    validate: usable, but something needs attention
  2    a wrong command line
  3    data or options that cannot be used
  4    a file that cannot be read or written, or a package that is missing
  5    a fault of the program itself
  130  interrupted (a fit goes on from its checkpoint when called again)"""


def parser(wanted: str | None = None) -> argparse.ArgumentParser:
    """The parser of the command line.

    With a verb's name only that verb gets its options, so that nothing else is imported.
    """
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
        one.set_defaults(run=module.run, flags=flags_of(one))
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns its exit code."""
    _open_streams()
    given = sys.argv[1:] if argv is None else list(argv)
    if not given:
        parser("").print_help()
        return DONE
    wanted = next((word for word in given if word in VERBS), None)
    if wanted is None and not given[0].startswith("-"):
        print_error(_unknown_verb(given[0]))
        raise SystemExit(WRONG_COMMAND)  # as argparse does
    top = parser(wanted or "")
    args, unknown = top.parse_known_args(given)
    if unknown:
        top.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(unknown, args)}")
    try:
        return _run(args)
    except KeyboardInterrupt:
        hint = getattr(args, "after_interrupt", None)
        print_error(f"\ninterrupted{f': {hint()}' if hint else ''}")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _unknown_verb(word: str) -> str:
    similar = get_close_matches(word, VERBS, n=1)
    hint = f"did you mean `dynaesti {similar[0]}`?" if similar else "`dynaesti` alone lists them"
    return f"dynaesti: there is no verb {word!r}; {hint}"


def _meant(words: Sequence[str], args: argparse.Namespace) -> str:
    """The flag that the first unknown one resembles, as a question; or nothing."""
    flags = [word for word in words if word.startswith("--")]
    known = sorted(set(getattr(args, "flags", {}).values()))
    similar = get_close_matches(flags[0].partition("=")[0], known, n=1) if flags else []
    return f"; did you mean {similar[0]}?" if similar else ""


def _open_streams() -> None:
    """Let standard output and error take every character, escaped where their encoding lacks it.

    A stream that was closed becomes the null device.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for as long as the process lives
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _run(args: argparse.Namespace) -> int:
    """Run a verb; print its errors and return the exit code."""
    from dynaesti.errors import (
        DynaestiError,
        MissingExtraError,
        StorageError,
        notices_to,
        spell_options,
    )

    quiet = args.json or getattr(args, "quiet", False)
    say = _unsaid if quiet else print_notes
    with warnings.catch_warnings(), spell_options(flag), notices_to(say):
        warnings.showwarning = _warning_printer(args.debug)
        try:
            return int(args.run(args) or DONE)
        except DynaestiError as error:
            _show_traceback(error, args)
            print_error(f"dynaesti {args.verb}: {with_flag(str(error), args.flags)}")
            return NO_FILE if isinstance(error, StorageError | MissingExtraError) else BAD_DATA
        except ModuleNotFoundError as error:
            _show_traceback(error, args)
            return _tell_missing_package(error, args.verb)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            _show_traceback(error, args)
            print_error(f"dynaesti {args.verb}: {error.filename or ''}: {error.strerror or error}")
            return NO_FILE
        except MemoryError as error:
            _show_traceback(error, args)
            print_error(
                f"dynaesti {args.verb}: not enough memory ({str(error) or 'none is left'}). "
                f"Nothing that was written before is lost. "
                "Ask for fewer times or people at once, or split the data into shards: `dynaesti "
                "prepare`"
            )
            return BAD_DATA
        except Exception as error:
            _show_traceback(error, args)
            return _tell_fault(error, args.verb)


def _tell_missing_package(error: ModuleNotFoundError, verb: str) -> int:
    """Say which extra brings a package that is missing; return the exit code."""
    package = (error.name or "").partition(".")[0]
    extra = next((name for name, brought in EXTRAS.items() if package in brought.split()), None)
    if extra is None:
        return _tell_fault(error, verb)
    print_error(f"dynaesti {verb}: it needs {package}: pip install 'dynaesti[{extra}]'")
    return NO_FILE


def _tell_fault(error: Exception, verb: str) -> int:
    """Say that the program itself is at fault; return the exit code."""
    print_error(
        f"dynaesti {verb}: a fault of the program itself ({type(error).__name__}: "
        f"{error}); --debug shows where. Nothing "
        "that was written before is lost; please tell the developers"
    )
    return FAULT


def _unsaid(sentence: str) -> None:
    """Where nobody waits, notices are not printed."""


def _show_traceback(error: Exception, args: argparse.Namespace) -> None:
    """Print where an error comes from, with --debug; the exit code stays that of the error."""
    if args.debug:
        traceback.print_exception(error)


def _warning_printer(debug: bool) -> Callable[..., None]:
    """What prints warnings of one command: ours as notes, each once; others only with --debug."""
    from dynaesti.errors import DynaestiWarning, HealthWarning

    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        # a HealthWarning repeats what the results say
        ours = issubclass(category, DynaestiWarning) and not issubclass(category, HealthWarning)
        if str(message) not in printed and (ours or debug):
            printed.add(str(message))
            print_notes(str(message))

    return show
