"""What a fit found, in sentences."""

from __future__ import annotations

import numpy as np

from dynaesti.data import UNSTATED, time_text
from dynaesti.errors import option
from dynaesti.results import Fit, StaticComparison, cohort_sentences, explained_sentences


def findings(fit: Fit, static_comparison: StaticComparison | None = None) -> list[str]:
    """What a fit found, in sentences for people.

    The first is about the data; then convergence, scale, movement and static comparison.
    """
    r = fit.responses
    move = fit.variance_components()
    unit = "units of time" if r.unit == UNSTATED else r.unit
    ends = fit.from_clock(np.array([r.clock_times.min(), r.clock_times.max()]))
    first, last = (str(t)[:10] if ends.dtype.kind == "M" else time_text(t) for t in ends)
    # a table without times has one instant, 0
    when = "" if (first, last) == ("0", "0") else f", from {first} to {last}"
    models = sorted({block.model.name for block in fit.bank.blocks})
    words = [
        f"{len(r):,} answers of {r.people.size:,} people to {r.items.size:,} items "
        f"({', '.join(models)}){when}.",
        f"The fit {'converged' if fit.converged else 'did NOT converge'} after "
        f"{len(fit.trace)} iterations"
        + ("." if fit.converged else f"; raise {option('iterations')}."),
        {
            "abilities": "Abilities are in standard deviations of people about their cohort; 0 is "
            "the mean of the cohort over all answers."
            if fit.has_cohort
            else "Abilities have mean 0 and variance 1 in the population.",
            "items": "The unit is such that slopes have geometric mean 1.",
            "anchors": "The scale is that of the anchored items.",
        }[fit.scale.name],
    ]
    words += cohort_sentences(fit)
    if np.isfinite(move["bandwidth"]):
        reach = (
            f" ({move['shortest']:.3g} to {move['longest']:.3g})"
            if move["shortest"] < move["longest"]
            else ""
        )
        words.append(
            f"Of the variance of ability {move['stays']:.0%} stays with a person and "
            f"{1 - move['stays']:.0%} moves, on a time "
            f"scale of about {move['bandwidth']:.3g} {unit}{reach}."
        )
    else:
        words.append("Abilities are constant in time.")
    words += explained_sentences(fit)
    words += fit.item_sentences()
    if static_comparison is not None:
        words.append(static_comparison.verdict())
    return words


def points_of_attention(fit: Fit) -> list[str]:
    """What to look at before believing a fit: its cautions and the small findings of its data."""
    return [*map(str, fit.cautions), *fit.health.findings]
