"""Abilities of further people, or of further answers, with the items frozen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dynaesti.cli.inputs import further_responses, open_any, requested_times
from dynaesti.cli.messages import print_notes
from dynaesti.cli.options import data_options, out_option, run_option, when_options
from dynaesti.cli.output import show

if TYPE_CHECKING:
    from dynaesti.data import Responses
    from dynaesti.results import Fit
    from dynaesti.sharded import ShardedFit

EXAMPLE = "  dynaesti score run new-people.csv --at 30 60 90"


def options(parser: argparse.ArgumentParser) -> None:
    """Options of the verb."""
    run_option(parser)
    data_options(parser, known=True)
    when_options(parser)
    out_option(parser)


def run(args: argparse.Namespace) -> int:
    """Print or write the table of abilities."""
    fit = open_any(args.fit, args.connect)
    answers = further_responses(args, fit)
    _note_known_people(fit, answers)
    scored = fit.score(answers, at=requested_times(fit, args), level=args.level)
    show(scored, args, scale=fit.scale.name)
    return 0


def _note_known_people(fit: Fit | ShardedFit, answers: Responses) -> None:
    """Say of people of the fit that what they answered before is not counted."""
    from dynaesti.data import count_noun, try_index_of

    known = int((try_index_of(fit.response_template.people, answers.people.tolist()) >= 0).sum())
    if known:
        are = "is" if known == 1 else "are"
        print_notes(
            f"{count_noun(known, 'people')} {are} in the fit with earlier answers, which do not "
            f"count here; `dynaesti update` adds these to them"
        )
