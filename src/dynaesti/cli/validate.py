"""Check a file of answers before fitting: what can be used, and what needs attention.

The exit code says it too (see `dynaesti --help`).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dynaesti.cli.inputs import read_responses
from dynaesti.cli.messages import print_text
from dynaesti.cli.options import data_options
from dynaesti.cli.output import as_json

if TYPE_CHECKING:
    from dynaesti.data import Responses

EXAMPLE = "  dynaesti validate answers.csv && echo fine"
MOST_VALUES = 12  # distinct responses that are listed one by one


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    data_options(parser)


def _described(r: Responses) -> list[str]:
    """What was read, in sentences: columns, responses and times."""
    import numpy as np

    words = [
        "Columns: "
        + ", ".join(f"{key} is {name!r}" for key, name in r.columns.items() if name is not None)
        + "."
    ]
    values, counts = np.unique(r.resp, return_counts=True)
    if values.size <= MOST_VALUES:
        words.append(
            "Responses: "
            + ", ".join(
                f"{value:g} ({count:,})" for value, count in zip(values, counts, strict=True)
            )
            + "."
        )
    else:
        words.append(
            f"Responses: {values.size:,} different values from {values[0]:g} to {values[-1]:g}."
        )
    if r.columns.get("time") is not None:
        first, last = r.axis.restore(np.array([r.offsets.min(), r.offsets.max()]))
        words.append(f"Times run from {first} to {last} ({r.unit}).")
    return words


def run(args: argparse.Namespace) -> int:
    """Check the answers and print what was found."""
    from dataclasses import asdict

    from dynaesti.data import check_responses

    responses = read_responses(args, timeless=True)
    found = check_responses(responses)
    timeless = responses.columns.get("time") is None
    needs_attention = found.has_warnings or timeless
    if args.json:
        print(
            as_json(
                {
                    **asdict(found),
                    "sentences": found.sentences,
                    "cautions": [str(caution) for caution in found.cautions],
                    "timeless": timeless,
                    "needs_attention": needs_attention,
                    "columns": dict(responses.columns),
                    "unit": responses.unit,
                }
            )
        )
        return int(needs_attention)
    words = [found.sizes, *_described(responses), *found.sentences[1:]]
    if timeless:
        words.append(
            "There is no column of times: only constant abilities can be fitted (--bandwidth inf)."
        )
    print_text("\n".join(words), args)
    print_text(
        "Usable; the points above need attention."
        if needs_attention
        else "Usable, nothing special.",
        args,
    )
    return int(needs_attention)
