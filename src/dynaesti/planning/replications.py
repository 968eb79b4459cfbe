"""One study drawn and fitted, and what many of them say together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from dynaesti.ability_estimator import DynAEsti
from dynaesti.core import Array
from dynaesti.model import BUILT_IN
from dynaesti.planning.designs import Design
from dynaesti.results import Fit, cohort_columns, group_differences, growth_columns

IDENTITY = BUILT_IN["identity"]
TIMES = 11  # at which the cohort's band is looked at


@dataclass(frozen=True)
class Replication:
    """What the fit of one drawn study found.

    Margins are half the width of a band or interval, covers are shares of truths inside. NaN stands
    for what the fit could not tell.
    """

    ability_margin: float
    ability_cover: float
    cohort_margin: float
    cohort_cover: float
    estimate: float  # of the effect
    se: float


@dataclass(frozen=True)
class Outlook:
    """What many drawn studies of one design found together.

    Parameters
    ----------
    design : Design
    replications : int
    ability_margin, ability_cover, cohort_margin, cohort_cover : float
        Means over the studies, see `Replication`.
    estimate, se : float
        Mean estimate of the effect, and its mean standard error.
    margin, cover : float
        Half the width of the effect's interval, and how often it covers.
    found, found_error : float
        Share of studies whose interval excludes 0, and its Monte Carlo standard error.
    unclear : float
        Share of studies that cannot tell the effect from items that change.
    """

    design: Design
    replications: int
    ability_margin: float
    ability_cover: float
    cohort_margin: float
    cohort_cover: float
    estimate: float
    se: float
    margin: float
    cover: float
    found: float
    found_error: float
    unclear: float


def replicate(
    design: Design, seed: Sequence[int], level: float, threads: int | None
) -> Replication:
    """Draw a study, fit it as `DynAEsti` does by default, and look at its bands."""
    drawn = design.draw(np.random.default_rng(seed))
    groups = None if design.groups is None else "group"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what one drawn study lacks, the table tells of all
        fit = DynAEsti(design.model, groups=groups, threads=threads).fit(drawn.table)
    ability = _ability_bands(fit, design, drawn.table["date"], drawn.ability.ravel(), level)
    if fit.priors.cohort is None or not fit.priors.cohort.has_curve:
        return Replication(*ability, *[np.nan] * 4)
    return Replication(*ability, *_cohort_bands(fit, design, level), *_effect(fit, design, level))


def _ability_bands(
    fit: Fit, design: Design, times: Array, truth: Array, level: float
) -> tuple[float, float]:
    """Margin and cover of everyone's bands at the answers."""
    person = np.repeat(np.arange(design.people), design.answers)
    outside = 0.5 - level / 2
    low, high = fit.marginals(person, fit.to_clock(times)).quantiles(
        np.array([outside, 1 - outside]), IDENTITY
    )
    return _margin_and_cover(low, high, truth)


def _cohort_bands(fit: Fit, design: Design, level: float) -> tuple[float, float]:
    """Margin and cover of the band of the cohort's mean, or of the groups' means."""
    times = np.linspace(0.0, design.span, TIMES)
    columns = cohort_columns(fit, times, level)
    truth = design.world.rises[:, None] * (times / design.span - 0.5)
    return _margin_and_cover(columns["lower"], columns["upper"], truth.ravel())


def _effect(fit: Fit, design: Design, level: float) -> tuple[float, float]:
    """Estimate and standard error of what the study is to find."""
    if design.groups is None:
        columns = growth_columns(fit, 0.0, design.span, level)
        return columns["growth"][0], columns["se"][0]
    columns = group_differences(fit, 0.0, design.span, level)
    growth = columns["what"].index("growth")
    return -columns["difference"][growth], columns["se"][growth]  # treated less control


def _margin_and_cover(low: Array, high: Array, truth: Array) -> tuple[float, float]:
    """Mean half width of intervals, and the share that covers."""
    inside = (low <= truth) & (truth <= high)
    return float(np.mean(high - low) / 2), float(np.mean(inside))


def summarise(design: Design, found: Sequence[Replication], level: float) -> Outlook:
    """What replications of a design say together."""
    values = {name: np.array([getattr(one, name) for one in found]) for name in vars(found[0])}
    beyond = float(ndtri(0.5 + level / 2))
    estimate, se = values["estimate"], values["se"]
    clear = np.isfinite(se)
    count = len(found)
    hits = int(np.sum(np.abs(estimate[clear]) > beyond * se[clear]))
    covered = np.abs(estimate[clear] - design.effect) <= beyond * se[clear]
    # two more of each kind (Agresti and Coull): the error is not 0 where all are found, or none
    share = (hits + 2) / (count + 4)
    return Outlook(
        design=design,
        replications=count,
        **{name: _mean(values[name]) for name in values if name not in ("estimate", "se")},
        estimate=_mean(estimate),
        se=_mean(se),
        margin=beyond * _mean(se),
        cover=_mean(covered),
        found=hits / count,
        found_error=float(np.sqrt(share * (1 - share) / (count + 4))),
        unclear=float(np.mean(~clear)),
    )


def _mean(values: Any) -> float:
    """Mean of what is there; NaN where nothing is."""
    there = np.asarray(values, dtype=float)
    there = there[np.isfinite(there)]
    return float(there.mean()) if there.size else float("nan")
