"""What a fit found, in sentences."""

from __future__ import annotations

import numpy as np

from dynaesti.data import UNSTATED
from dynaesti.errors import option
from dynaesti.results import Fit, StaticComparison, group_differences, time_text

TWO = 2  # groups that are compared in a sentence; more are in a table


def findings(fit: Fit, static_comparison: StaticComparison | None = None) -> list[str]:
    """What a fit found, in sentences for people.

    The first is about the data; then convergence, scale, movement and static comparison.
    """
    r = fit.responses
    move = fit.variance_components()
    unit = "units of time" if r.unit == UNSTATED else r.unit
    ends = fit.from_clock(np.array([r.clock_times.min(), r.clock_times.max()]))
    first, last = (str(t)[:10] if ends.dtype.kind == "M" else f"{t:.6g}" for t in ends)
    models = sorted({block.model.name for block in fit.bank.blocks})
    words = [
        f"{len(r):,} answers of {r.people.size:,} people to {r.items.size:,} items "
        f"({', '.join(models)}), from {first} to {last}.",
        f"The fit {'converged' if fit.converged else 'did NOT converge'} after "
        f"{len(fit.trace)} iterations"
        + ("." if fit.converged else f"; raise {option('iterations')}."),
        {
            "abilities": "Abilities are in standard deviations of people about their cohort; 0 is "
            "the mean of the cohort over all answers."
            if fit.priors.cohort is not None
            else "Abilities have mean 0 and variance 1 in the population.",
            "items": "The unit is such that slopes have geometric mean 1.",
            "anchors": "The scale is that of the anchored items.",
        }[fit.scale.name],
    ]
    words += cohort_findings(fit)
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
    words.append(f"Reliability at the answers: {fit.reliability():.2f}.")
    if static_comparison is not None:
        words.append(static_comparison.verdict())
    return words


def cohort_findings(fit: Fit) -> list[str]:
    """How the cohort moved, how groups differ, and how many people rose or fell, in sentences."""
    cohort = fit.priors.cohort
    if cohort is None:
        return []
    ends = np.array(fit.time_range)
    t0, t1 = fit.from_clock(ends)
    span = f"from {time_text(t0)} to {time_text(t1)}"
    words = []
    for g, name in enumerate(cohort.groups or ("The cohort",)):
        step = np.subtract(*cohort.design(ends[::-1], np.full(2, g)))
        move = fit.gain * float(step @ cohort.coefficients)
        se = None
        if cohort.covariance is not None:
            se = fit.gain * float(np.sqrt(step @ cohort.covariance @ step))
        verb = "rose" if move >= 0 else "fell"
        words.append(
            f"{name} {verb} by {abs(move):.2f}"
            + ("" if se is None else f" ± {se:.2f}")
            + f" {span}."
        )
    if len(cohort.groups) == TWO and cohort.covariance is not None:
        table = group_differences(fit, t0, t1, 0.95)
        apart, low, high = (table[name][-1] for name in ("difference", "lower", "upper"))
        more = "more" if apart >= 0 else "less"
        words.append(
            f"{table['group'][-1]} grew by {abs(apart):.2f} {more} than {table['other'][-1]} (95 % "
            f"interval of the difference {low:+.2f} to {high:+.2f})."
        )
    return words


def points_of_attention(fit: Fit) -> list[str]:
    """What to look at before believing a fit: its cautions and the small findings of its data."""
    return [*map(str, fit.cautions), *fit.health.findings]
