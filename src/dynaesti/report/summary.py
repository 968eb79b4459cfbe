"""The page's opening: a headline and three findings, for people who never met the method.

A phrase is a list of parts: text, or a pair of a text and the key of the term that explains it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy.special import ndtr

from dynaesti.core import Array
from dynaesti.data import UNSTATED
from dynaesti.model import BUILT_IN
from dynaesti.report.terms import SURE
from dynaesti.results import (
    Changes,
    CohortMove,
    Fit,
    StaticComparison,
    cohort_moves,
    group_differences,
)

Phrase = list[str | tuple[str, str]]

MOST_GROUPS = 4  # that a finding names
MOST_ITEMS = 3
MOST_NAMED = 4  # people whom a finding names
TINY = 1e-12  # sd of what does not move
IDENTITY = BUILT_IN["identity"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
REVERSED_SHARE = 0.1  # of the items that fall with ability: beyond, high points mean nothing


def typographic(text: str) -> str:
    """Text with proper minus signs before its numbers."""
    return re.sub(r"(?<![\w.\-])-(?=\d)", "−", text)


def span_text(fit: Fit) -> str:
    """From when to when the answers are, in words: between two dates, or from day 0 to 100."""
    r = fit.responses
    ends = fit.from_clock(np.array(fit.time_range))
    if ends.dtype.kind == "M":
        first, last = (_day_text(t) for t in ends)
        return f"on {first}" if first == last else f"between {first} and {last}"
    if ends[0] == ends[1] == 0.0 and r.unit == UNSTATED:
        return ""  # there was no column of times
    digits = int(np.clip(np.ceil(2 - np.log10(max(float(np.ptp(ends)), 1e-9))), 0, 9))
    first, last = (f"{t:.{digits}f}" for t in ends)
    unit = "time" if r.unit == UNSTATED else r.unit
    since = " since each one's start" if r.clock == "person" else ""
    return typographic(
        f"{unit} {first}{since}" if first == last else f"from {unit} {first} to {last}{since}"
    )


def _day_text(time: Any) -> str:
    """The day of a date."""
    year, month, number = str(time)[:10].split("-")
    return f"{int(number)} {MONTHS[int(month) - 1]} {year}"


def lead(fit: Fit) -> Phrase:
    """What the data are, in one sentence."""
    r = fit.responses
    span = span_text(fit)
    sizes = f"{len(r):,} answers of {r.people.size:,} people to {r.items.size:,} items"
    return [f"{sizes}, {span}." if span else f"{sizes}."]


def verdicts(rose: Array) -> list[str]:
    """Who rose, who fell and who cannot be told, by the probabilities of a rise."""
    return [
        "rose" if p >= SURE else "fell" if p <= 1.0 - SURE else "not sure" for p in rose.tolist()
    ]


def beside_others(changes: Changes) -> Array:
    """Who pulled "ahead" of the cohort, and who fell "behind" it, beyond doubt: (n_people,)."""
    z = (changes.mean - changes.cohort) / np.maximum(changes.marginals.sd(IDENTITY), TINY)
    words = np.full(z.size, "", dtype=object)
    words[ndtr(z) >= SURE] = "ahead"
    words[ndtr(z) <= 1.0 - SURE] = "behind"
    return words


def headline(fit: Fit, changes: Changes | None) -> str:
    """The one thing to take away."""
    moves = cohort_moves(fit)
    if fit.ability_probability < 0.5:
        return "These answers hardly tell people apart"
    if len(moves) > 1:
        return _headline_of_groups(fit, moves)
    if moves:
        (one,) = moves
        if one.is_clear:
            return f"On the whole, abilities {'rose' if one.move > 0 else 'fell'}"
        if not np.isnan(one.se):
            return "On the whole, abilities neither clearly rose nor clearly fell"
    if changes is None or all(kernel.static for kernel in fit.kernels):
        return "How able each person is"
    said = verdicts(changes.rose)
    rose, fell = said.count("rose"), said.count("fell")
    if not rose + fell:
        return "Nobody clearly rose or fell"
    return f"{_count(rose).capitalize()} of {len(said):,} people clearly rose, {_count(fell)} fell"


def _count(number: int) -> str:
    """A number of people in a sentence."""
    return f"{number:,}" if number else "none"


def _headline_of_groups(fit: Fit, moves: list[CohortMove]) -> str:
    """Which group grew more, if any clearly did."""
    pair = _clearest_pair(fit)
    if pair is not None and pair["is_clear"]:
        return f"{pair['more']} gained on {pair['less']}"
    clear = [one for one in moves if one.is_clear]
    for sign, word in ((1, "rose"), (-1, "fell")):
        if len(clear) == len(moves) and all(sign * one.move > 0 for one in moves):
            return f"All groups {word}, and none clearly more than another"
    return "No group clearly gained on another"


def _clearest_pair(fit: Fit) -> dict[str, Any] | None:
    """The two groups whose growths differ most, in standard errors; None where none can be told."""
    cohort = fit.priors.cohort
    if cohort is None or len(cohort.groups) < 2 or cohort.covariance is None:
        return None
    first, last = fit.from_clock(np.array(fit.time_range))
    table = group_differences(fit, first, last, 0.95)
    rows = [
        {name: values[k] for name, values in table.items()}
        for k, what in enumerate(table["what"])
        if what == "growth" and np.isfinite(table["difference"][k])
    ]
    if not rows:
        return None
    row = max(rows, key=lambda row: abs(row["difference"]) / row["se"])
    sign = 1.0 if row["difference"] >= 0 else -1.0
    ends = sorted((sign * row["lower"], sign * row["upper"]))
    more, less = (row["group"], row["other"])[:: int(sign)]
    return {
        "more": more,
        "less": less,
        "by": sign * row["difference"],
        "lower": ends[0],
        "upper": ends[1],
        "is_clear": ends[0] > 0,
    }


def findings_for_all(
    fit: Fit,
    static_comparison: StaticComparison | None,
    changes: Changes | None,
    constant: tuple[Phrase, Phrase] | None,
) -> list[dict[str, Any]]:
    """Three findings with their titles: the whole, the people, and how sure they are.

    `constant` are the first two where abilities do not move.
    """
    whole, people = constant or (_of_the_whole(fit), _of_people(fit, changes))
    return [
        {"title": "On the whole", "parts": whole},
        {"title": "Person by person", "parts": people},
        {"title": "How far to trust it", "parts": _of_trust(fit, static_comparison)},
    ]


def _of_the_whole(fit: Fit) -> Phrase:
    """How the cohort or its groups moved, and what that means on an average item."""
    moves = cohort_moves(fit)
    if not moves:
        return [
            "The mean of everyone is taken as constant: these answers cannot show, or were not "
            "asked, how it moved. See each person's own change."
        ]
    found: Phrase = []
    for k, one in enumerate(sorted(moves, key=lambda one: -one.move)[:MOST_GROUPS]):
        name: str | tuple[str, str] = ("The mean of everyone", "mean")
        if one.group is not None:
            name = (f"The mean of {one.group}", "mean")
        found += [" " if k else "", name, *_moved(one), *_on_an_average_item(fit, one), "."]
    if len(moves) > MOST_GROUPS:
        found += [f" {len(moves) - MOST_GROUPS} more groups are in the picture."]
    pair = _clearest_pair(fit)
    if pair is not None:
        found += [
            f" {pair['more']} gained ",
            (f"{pair['by']:.2f}", "ability"),
            f" more than {pair['less']} (",
            (typographic(f"{pair['lower']:.2f} to {pair['upper']:.2f}"), "interval"),
            "), which is clear." if pair["is_clear"] else "), which may be chance.",
        ]
    return found


def _moved(one: CohortMove) -> Phrase:
    """By how much a mean rose or fell."""
    said: Phrase = [
        f" {'rose' if one.move >= 0 else 'fell'} by ",
        (f"{abs(one.move):.2f}", "ability"),
    ]
    if np.isnan(one.se):
        return said
    said += [" (", (f"± {one.se:.2f}", "error"), ")"]
    return said if one.is_clear else [*said, ", which may be chance"]


def _on_an_average_item(fit: Fit, one: CohortMove) -> Phrase:
    """What a move means on an average item; nothing where no item has points."""
    share = success_share(fit, np.array([one.before, one.after]))
    if share is None:
        return []
    is_binary = all(block.values.shape[1] == 2 for block in fit.bank.blocks)
    before, after = (f"{100 * value:.0f} %" for value in share)
    what = (
        f" from a {before} to a {after} chance of success"
        if is_binary
        else f" from {before} to {after} of the points"
    )
    return [": on an ", ("average item", "average_item"), what]


def success_share(fit: Fit, ability: Array) -> Array | None:
    """Expected share of the points at abilities, averaged over items.

    None where items have amounts in place of categories, or high points do not mean more ability.
    """
    theta = fit.bank.ability_scale.theta((ability - fit.shift) / fit.gain)
    if fit.options.get("direction") == "free":
        return None
    shares = []
    ends = fit.bank.ability_scale.theta(np.array([-1.0, 1.0]))
    falling = 0
    for block in fit.bank.blocks:
        if not block.model.categorical:
            return None
        low = block.values.min(axis=1, keepdims=True)
        width = np.maximum(block.values.max(axis=1, keepdims=True) - low, 1e-12)
        at, outer = (
            np.einsum("ick,ic->ik", np.exp(block.model.log_likelihood(block.u, x)), block.values)
            for x in (theta, ends)
        )
        falling += int((outer[:, 1] < outer[:, 0]).sum())
        shares.append((at - low) / width)
    every = np.concatenate(shares)
    return None if falling > REVERSED_SHARE * len(every) else np.asarray(every.mean(axis=0))


def _of_people(fit: Fit, changes: Changes | None) -> Phrase:
    """How many rose, fell, and cannot be told."""
    if changes is None or all(kernel.static for kernel in fit.kernels):
        return [
            "Nobody's change can be seen: "
            + (
                "abilities are constant in this fit."
                if changes is not None
                else "everybody answered at one time only."
            )
        ]
    said = verdicts(changes.rose)
    rose, unsure, fell = (said.count(word) for word in ("rose", "not sure", "fell"))
    number = len(said)
    whom = "" if number == fit.responses.people.size else " who answered at more than one time"
    return [
        f"Of {number:,} people{whom}, ",
        (f"{_count(rose)} clearly rose", "rose"),
        " and ",
        (f"{_count(fell)} clearly fell", "rose"),
        f"; for {unsure:,} the answers cannot tell." if unsure else ".",
        *(_of_those_beside(fit, changes) if fit.has_cohort else []),
    ]


def _of_those_beside(fit: Fit, changes: Changes) -> Phrase:
    """Who fell behind the others, whatever all of them did, and who pulled ahead."""
    words = beside_others(changes)
    own = changes.mean - changes.cohort
    first, last = fit.sites.layout.spans
    who = fit.responses.people[np.flatnonzero(last > first)]
    said = (("behind", "fell behind the others", 1.0), ("ahead", "pulled ahead of them", -1.0))
    found: Phrase = []
    for word, verb, sign in said:
        at = np.flatnonzero(words == word)
        if at.size:
            named = [str(who[k]) for k in at[np.argsort(sign * own[at])][:MOST_NAMED]]
            more = f" and {at.size - MOST_NAMED:,} more" if at.size > MOST_NAMED else ""
            found += [" ", (f"Clearly {verb}", "beside"), f": {', '.join(named)}{more}."]
    return found


def _of_trust(fit: Fit, static_comparison: StaticComparison | None) -> Phrase:
    """How well people are told apart, whether time matters, and which items to look at."""
    reliability = fit.reliability()
    how = "well" if reliability >= 0.8 else "fairly well" if reliability >= 0.6 else "poorly"
    found: Phrase = [
        f"The answers tell people apart {how} (",
        ("reliability", "reliability"),
        f" {reliability:.2f}). ",
    ]
    if static_comparison is not None:
        gain = static_comparison.static_loss - static_comparison.dynamic_loss
        better = gain > 2 * static_comparison.se
        found += [
            ("Curves over time", "over_time"),
            f" predict answers {'better than' if better else 'no better than'} constant "
            "abilities do. ",
        ]
    flags = [] if fit.item_checks is None else fit.item_checks.flags()
    flagged = [
        str(label) for label, flag in zip(fit.item_labels.tolist(), flags, strict=False) if flag
    ]
    if not flagged:
        return [*found, "No item stands out."]
    more = f" and {len(flagged) - MOST_ITEMS:,} more" if len(flagged) > MOST_ITEMS else ""
    verb = "deserves" if len(flagged) == 1 else "deserve"
    return [
        *found,
        (f"{len(flagged):,} of {fit.item_labels.size:,} items", "flag"),
        f" {verb} a look: {', '.join(flagged[:MOST_ITEMS])}{more}.",
    ]
