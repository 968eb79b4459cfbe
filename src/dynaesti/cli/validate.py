"""Check a file of answers before fitting: what can be used, and what needs attention.

The exit code says it too (see `dynaesti --help`).
"""

from __future__ import annotations

import argparse

from dynaesti.cli.inputs import read_responses
from dynaesti.cli.options import data_options
from dynaesti.cli.output import print_result

EXAMPLE = "  dynaesti validate answers.csv && echo fine"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Check the answers and print what was found."""
    from dynaesti.data import Validation

    # what was decided is among the findings
    found = Validation.of(read_responses(args, timeless=True, silent=True))
    print_result(args, found.as_dict(), str(found))
    return int(found.needs_attention)
