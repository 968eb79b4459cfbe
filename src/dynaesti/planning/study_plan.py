"""Several designs of a study side by side, and what they come to in a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri

from dynaesti.core import finite_number, whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError, option
from dynaesti.planning.designs import Design
from dynaesti.planning.replications import Outlook, Replication, replicate, summarise

ENOUGH = 0.8  # share of studies that find the effect: what planners usually ask for
REPLICATIONS = (
    50  # shared by the designs: under a minute of CPU time where studies are of usual size
)
FEWEST = 25  # for each design: a Monte Carlo error of 0.08 where 80 % find the effect
OnReplication = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """What designs of a study promise.

    Parameters
    ----------
    outlooks : tuple of Outlook
        What was found of each design, in the order asked for.
    level : float
        Probability of bands and intervals.

    Examples
    --------
    >>> import dynaesti as dy
    >>> plan = dy.plan(people=40, items=8, answers=8, rise=2.0, replications=2)
    >>> len(plan.outlooks), plan.level
    (1, 0.95)
    """

    outlooks: tuple[Outlook, ...]
    level: float

    @property
    def table(self) -> Any:
        """A frame with a row for each design.

        Its numbers (`people`, `items`, `answers`, `rise`, with groups `groups`), how wide bands
        are (`ability_margin`, `cohort_margin`, and `margin` of the effect: half the width) and how
        often they cover (`ability_cover`, `cohort_cover`, `cover`), the mean `estimate` of the
        effect, and in what share of studies it is `found`, with the Monte Carlo standard error
        `found_error`; `unclear` is the share of studies that cannot tell it.
        """
        rows = [_row(one) for one in self.outlooks]
        return make_frame({name: [row[name] for row in rows] for name in rows[0]})

    @property
    def advice(self) -> str:
        """What the designs come to, in one sentence."""
        clear = [one for one in self.outlooks if one.unclear < 0.5]
        if not clear:
            return (
                f"No design can tell {_effect(self.outlooks[0].design)} from items that become "
                "easier, because each item is met at one time only; let people meet the items at "
                f"different times ({option('assignment', 'shuffled')})."
            )
        if all(one.design.effect == 0 for one in clear):
            return _false_alarms(clear, self.level)
        real = [one for one in clear if one.design.effect != 0]
        enough = [one for one in real if one.found >= ENOUGH]
        if not enough:
            return _too_small(max(real, key=lambda one: one.found), len(self.outlooks))
        cheapest = min(enough, key=lambda one: one.design.people * one.design.answers)
        few = "" if len(self.outlooks) == 1 else "The fewest answers that do: "
        return (
            f"{few}{_size(cheapest.design)} will find {_effect(cheapest.design)} in "
            f"{_share(cheapest)} of studies, and know one person's ability to within "
            f"±{cheapest.ability_margin:.2f} sd."
        )


def plan(
    people: int | Sequence[int] = 200,
    items: int | Sequence[int] = 30,
    answers: int | Sequence[int] = 12,
    rise: float | Sequence[float] = 0.5,
    groups: float | Sequence[float] | None = None,
    *,
    model: str = "2PL",
    slope: float | None = None,
    guessing: float | None = None,
    span: float = 100.0,
    bandwidth: float | None = None,
    stays: float = 0.5,
    occasions: int | None = None,
    assignment: str = "shuffled",
    level: float = 0.95,
    replications: int | None = None,
    seed: int = 0,
    threads: int | None = 1,
    progress: bool | OnReplication = False,
) -> Plan:
    """Plan a study: how wide bands will be, and how often an effect will be found.

    Studies are drawn again and again and fitted by `DynAEsti` with its defaults. Of `people`,
    `items`, `answers`, `rise` and `groups` several may be given; all combinations are compared, on
    the same draws as far as they go.

    Parameters
    ----------
    people, items, answers : int or sequence of int, default 200, 30, 12
        Number of people, of items, and of answers of each person.
    rise : float or sequence of float, default 0.5
        How much everybody rises over the span, in sds of people. The study is to find it.
    groups : float or sequence of float, optional
        Half of the people are treated, and rise by so much more. The study is then to find this
        difference in growth.
    model : str, default "2PL"
        Item model: 1PL, 2PL, 3PL, 4PL, GRM, PCM, GPCM (with 4 categories), poisson, gaussian, beta.
    slope : float, optional
        Slope of a typical item, per sd of ability. Default: 1, or the middle of the model's prior.
    guessing : float, optional
        Chance to guess a typical item right, with "3PL" and "4PL". Default: 0.12.
    span : float, default 100
        How long the study lasts.
    bandwidth : float, optional
        Time scale on which a person moves about the cohort. Default: a quarter of the span.
    stays : float, default 0.5
        Share of the variance between people that does not move.
    occasions : int, optional
        At how many times, evenly apart, all people answer: 2 for before and after. Default: people
        answer at times of their own, all over the span.
    assignment : {"shuffled", "random", "ordered"}, default "shuffled"
        Who answers which items when. Each person meets the items in an order of their own
        ("shuffled": none again before all were met; "random": any at any time), or all in one order
        ("ordered").
    level : float, default 0.95
        Probability of bands and intervals. An effect is found where its interval excludes 0.
    replications : int, optional
        Studies drawn of each design. Default: 50, shared by the designs, but 25 for each at least.
    seed : int, default 0
        Seed of the draws.
    threads : int or None, default 1
        Threads of each fit; None: one for each core.
    progress : bool or callable, default False
        True shows a line; a function is called with the numbers of studies done and of all.

    Returns
    -------
    Plan
        Its `table` has a row for each design, its `advice` is one sentence.

    Raises
    ------
    InputError
        If a number is out of range; the message names it.

    Examples
    --------
    >>> import dynaesti as dy
    >>> plan = dy.plan(people=40, items=8, answers=(4, 8), rise=2.0, replications=2)
    >>> plan.table["answers"].tolist()
    [4, 8]
    >>> plan.table["replications"].tolist()
    [2, 2]
    """
    named = {"people": people, "items": items, "answers": answers, "rise": rise, "groups": groups}
    others = (model, slope, guessing, span, bandwidth, stays, occasions, assignment)
    designs = [
        Design(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], *others)
        for numbers in product(*(_several(value, name) for name, value in named.items()))
    ]
    if not 0 < finite_number(level, "level") < 1:
        raise InputError(f"level: expected a probability between 0 and 1, got {level!r}")
    whole_number(seed, "seed", 0)
    count = max(FEWEST, REPLICATIONS // len(designs))
    if replications is not None:
        count = whole_number(replications, "replications", 1)
    report = _print_progress if progress is True else progress or None
    found: list[list[Replication]] = [[] for _ in designs]
    for n, (own, k) in enumerate(product(range(len(designs)), range(count))):
        found[own].append(replicate(designs[own], (seed, k), level, threads))
        if report is not None:
            report(n + 1, len(designs) * count)
    outlooks = (summarise(*one, level) for one in zip(designs, found, strict=True))
    return Plan(tuple(outlooks), level)


def _several(value: Any, name: str) -> list[Any]:
    """One value or several, as a list."""
    if value is None or np.ndim(value) == 0:
        return [value]
    values = list(value)
    if not values:
        raise InputError(f"{name}: no value is given")
    return values


def _print_progress(done: int, total: int) -> None:
    """Show on standard error how many studies are done: live on a terminal, else by tenths."""
    live = sys.stderr.isatty()
    if live or done == total or done * 10 // total > (done - 1) * 10 // total:
        start, end = ("\r", "" if done < total else "\n") if live else ("", "\n")
        sys.stderr.write(f"{start}study {done} of {total}{end}")
        sys.stderr.flush()


def _row(one: Outlook) -> dict[str, Any]:
    """An outlook as a row of the table."""
    design = one.design
    numbers = {name: getattr(design, name) for name in ("people", "items", "answers", "rise")}
    if design.groups is not None:
        numbers["groups"] = design.groups
    names = [name for name in vars(one) if name not in ("design", "replications")]
    found = {name: getattr(one, name) for name in names}
    return {**numbers, **found, "replications": one.replications}


def _size(design: Design) -> str:
    """A design in words."""
    return f"{design.people:,} people with {design.answers} answers each to {design.items} items"


def _effect(design: Design) -> str:
    """What a study is to find, in words."""
    if design.groups is None:
        return f"a {'rise' if design.rise >= 0 else 'fall'} of {abs(design.rise):g} sd"
    return f"a difference of {abs(design.groups):g} sd in growth"


def _share(one: Outlook) -> str:
    """The share of studies that find the effect, with its Monte Carlo error."""
    return f"{one.found:.0%} (± {one.found_error:.0%})"


def _false_alarms(outlooks: Sequence[Outlook], level: float) -> str:
    """Without an effect: how often one is found all the same, in all designs together."""
    count = sum(one.replications for one in outlooks)
    share = sum(one.found * one.replications for one in outlooks) / count
    error = np.sqrt(level * (1 - level) / count)
    return (
        f"Where there is nothing to find, {share:.0%} of studies find something all the same "
        f"({1 - level:.0%} ± {error:.0%} are to be expected); name a rise or a difference to learn "
        "how often it will be found."
    )


def _too_small(best: Outlook, designs: int) -> str:
    """No design suffices: how many people would, because errors shrink with their root."""
    wanted = float(ndtri(ENOUGH)) * best.se + best.margin
    people = best.design.people * (wanted / abs(best.design.effect)) ** 2
    digits = 10 ** max(int(np.log10(people)) - 1, 0)
    needed = int(np.ceil(people / digits)) * digits
    start = "The best of these designs, " if designs > 1 else ""
    return (
        f"{start}{_size(best.design)}{',' if start else ''} will find {_effect(best.design)} in "
        f"only {_share(best)} of studies; for {ENOUGH:.0%} plan about {needed:,} people, or more "
        "answers of each."
    )
