"""What the page shows of abilities that do not move: everyone's, in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.model import BUILT_IN
from dynaesti.report.summary import Phrase, success_share, typographic
from dynaesti.report.terms import LEVEL
from dynaesti.results import Fit

IDENTITY = BUILT_IN["identity"]
MOST_NAMED = 3  # people whom a finding names
HEADINGS = {
    "ability": ("ability", "ability"),
    "±": ("±", "error"),
    "answers": ("answers", "n_answers"),
}


def is_constant(fit: Fit) -> bool:
    """Whether no ability of the fit moves, so that there are no curves to show."""
    return not fit.has_cohort and all(kernel.static for kernel in fit.kernels)


def abilities(fit: Fit, people: Ints) -> dict[str, Any]:
    """Everyone's ability with its band: columns and bands, as the page's first table has them."""
    labels = fit.responses.people.tolist()
    mix = fit.marginals(people, fit.sites.layout.spans[1][people])
    edges = mix.quantiles(np.array([0.5 - LEVEL / 2, 0.5 + LEVEL / 2]), IDENTITY)
    groups: dict[str, list[Any]] = {}
    if fit.responses.groups:
        names = [*fit.responses.groups, ""]
        groups["group"] = [str(names[g]) for g in fit.group_of(people)]
    return {
        "columns": {
            "who": [str(labels[p]) for p in people],
            "ability": np.round(mix.mean(IDENTITY), 2).tolist(),
            **groups,
            "±": np.round(mix.sd(IDENTITY), 2).tolist(),
            "answers": np.diff(fit.responses.person_start)[people].tolist(),
        },
        "shown": np.arange(people.size).tolist(),
        "bands": np.round(np.array([*edges]).T, 2).tolist(),
        "note": [
            ("Ability", "ability"),
            " of each person, with its ",
            (f"{LEVEL:.0%} band".replace("%", " %"), "band"),
            "; people whose bands overlap cannot be told apart. people.csv has everybody.",
        ],
    }


def caption() -> Phrase:
    """What the first picture shows."""
    return [
        ("Ability", "ability"),
        " of each person, from the least to the most able, with its ",
        (f"{LEVEL:.0%} band".replace("%", " %"), "band"),
        ".",
    ]


def of_the_whole(fit: Fit) -> Phrase:
    """How far abilities are apart, and what that means on an average item."""
    mean = _means(fit)
    low, high = np.quantile(mean, (0.1, 0.9))
    found: Phrase = [
        "Abilities are taken as constant in time. The middle 80 % of people lie between ",
        (typographic(f"{low:.2f}"), "ability"),
        " and ",
        (typographic(f"{high:.2f}"), "ability"),
    ]
    share = success_share(fit, np.array([low, high]))
    if share is None:
        return [*found, "."]
    from_, to = (f"{100 * value:.0f} %" for value in share)
    return [
        *found,
        ": on an ",
        ("average item", "average_item"),
        f" {from_} to {to} of the points.",
    ]


def of_people(fit: Fit) -> Phrase:
    """Who is most and who is least able."""
    labels = [str(label) for label in fit.responses.people.tolist()]
    order = np.argsort(-_means(fit), kind="stable")
    if order.size <= 2 * MOST_NAMED:
        return [f"From the most to the least able: {', '.join(labels[k] for k in order)}."]
    most = ", ".join(labels[k] for k in order[:MOST_NAMED])
    least = ", ".join(labels[k] for k in order[: -MOST_NAMED - 1 : -1])
    return [f"The most able are {most}; the least able {least}. Everybody is in the list below."]


def _means(fit: Fit) -> Array:
    """Everyone's mean ability, (n_people,)."""
    last = fit.sites.layout.spans[1]
    return fit.marginals(np.arange(last.size), last).mean(IDENTITY)
