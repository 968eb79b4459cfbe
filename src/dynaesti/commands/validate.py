"""Look at a file of answers before fitting: what can be used, what deserves a look. The exit code says it (see `dynaesti --help`)."""

from __future__ import annotations

import argparse

from dynaesti.commands.shared import as_json, data_options, read_responses, say

EXAMPLE = "  dynaesti validate answers.csv && echo fine"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    data_options(parser)


def run(args: argparse.Namespace) -> int:
    """Examine and tell."""
    from dataclasses import asdict

    from dynaesti.health import examine

    responses = read_responses(args, timeless=True)
    found = examine(responses)
    timeless = responses.columns.get("time") is None
    look = found.wants_a_look or timeless
    if args.json:
        print(as_json({**asdict(found), "timeless": timeless, "look": look, "columns": dict(responses.columns), "unit": responses.unit}))
        return int(look)
    words = list(found.sentences)
    if timeless:
        words.append("There is no column of times: only constant abilities can be fitted (--bandwidth inf).")
    say("\n".join(words), args)
    say("Usable; the points above deserve a look." if look else "Usable, nothing special.", args)
    return int(look)
