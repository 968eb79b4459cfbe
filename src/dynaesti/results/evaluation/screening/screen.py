"""Screening of all items: score tests, corrected for many tests, with flagged items set free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.stats import false_discovery_control

from dynaesti.core import Array, Bools, Ints, single_blas_thread
from dynaesti.data import Responses
from dynaesti.errors import HealthWarning, warn_user
from dynaesti.estimation import (
    EfficientScores,
    EStep,
    EStepPosterior,
    ItemTestSums,
    Periods,
    PriorMixture,
    ResponseScores,
    efficient_scores,
    item_test_sums,
    response_scores,
)
from dynaesti.results.evaluation.screening.columns import ScreenedBy

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

MOST_ROUNDS = 12  # of setting flagged items free
CLEAR = 0.5  # log p of items that are set free together, relative to that of the clearest
MOST_FREED = 60  # effects of flagged items that others are tested beside


class Screener(Protocol):
    """What sums up over everyone, wherever they are."""

    def sums(self, by: ScreenedBy, freed: Ints) -> ItemTestSums:
        """Sums of scores, where these items may have effects when others are tested."""

    def ends(self) -> tuple[float, float]:
        """First and last date of all answers, on the fit's axis."""

    def counts(self, periods: Periods) -> Ints:
        """Number of answers to each item in each period, (n_items, n_periods)."""

    def efficient_scores(self, by: ScreenedBy, freed: Ints) -> EfficientScores:
        """Efficient scores of all items, with the effects of freed ones learned where they can."""


@dataclass(frozen=True)
class MemoryScreener:
    """A screener of people in memory; scores are computed once."""

    fit: Fit

    @cached_property
    def scores(self) -> ResponseScores:
        """Scores of all responses."""
        fit = self.fit
        e_step = EStep(fit.sites, fit.options.get("threads"))
        posterior = EStepPosterior(fit.ep, fit.weights)
        return response_scores(e_step, fit.bank, fit.likelihood_table, fit.priors, posterior)

    def sums(self, by: ScreenedBy, freed: Ints) -> ItemTestSums:
        return item_test_sums(self.scores, by.columns(self.fit.responses), freed)

    def ends(self) -> tuple[float, float]:
        times = self.fit.responses.offsets
        return float(times.min()), float(times.max())

    def counts(self, periods: Periods) -> Ints:
        return count_by_period(self.fit.responses, periods)

    def efficient_scores(self, by: ScreenedBy, freed: Ints) -> EfficientScores:
        """Efficient scores, at a fit in which freed items have their effects.

        Large effects of some items would leave a rest of theirs in the others, if they were only
        projected out.
        """
        from dynaesti.results.evaluation.screening.impact import with_freed_items

        columns = by.columns(self.fit.responses)
        made = with_freed_items(self.fit, columns.tested, freed)
        inner = MemoryScreener(made.fit)
        kept = ~made.is_freed
        scores = replace(inner.scores, cohort_design=inner.scores.cohort_design[:, kept])
        held = cohort_precision(made.fit.priors)[np.ix_(kept, kept)]
        found = efficient_scores(item_test_sums(scores, columns, freed), by.n_tested, held, freed)
        shifted = found.scores.copy()
        n_learned = made.effects.shape[1]
        shifted[freed] += np.einsum(
            "itu,iu->it", found.information[freed][:, :, :n_learned], made.effects
        )
        return replace(found, scores=shifted)


def cohort_precision(priors: PriorMixture) -> Array:
    """Prior precision of the cohort's coefficients; no rows without a cohort."""
    return np.zeros((0, 0)) if priors.cohort is None else priors.cohort.precision


def count_by_period(responses: Responses, periods: Periods) -> Ints:
    """Number of some responses to each item in each period, (n_items, n_periods)."""
    n_items = responses.items.size
    cell = responses.item * np.int64(periods.number) + periods.of(responses.offsets)
    found = np.bincount(cell, minlength=n_items * periods.number)
    return found.reshape(n_items, periods.number)


@dataclass(frozen=True)
class Screening:
    """Tests of all items, and which of them are flagged."""

    efficient: EfficientScores
    counts: Ints  # (n_items, n_groups) answers
    p: Array  # (n_items,) NaN where nothing can be tested
    p_adjusted: Array  # (n_items,) Benjamini–Hochberg
    flag: Bools  # (n_items,)


@single_blas_thread()
def screen_items(
    screener: Screener,
    priors: PriorMixture,
    by: ScreenedBy,
    n_items: int,
    level: float,
    purify: bool,
) -> Screening:
    """Test all items, again and again with flagged ones set free, until no more are flagged.

    An item that is easier for a group makes the group look more able, and all other items harder
    for it. So flagged items have effects of their own when the others are tested: first projected
    out, which takes one pass, then learned.
    """
    held = cohort_precision(priors)
    most = min(MOST_FREED // by.n_tested, (n_items - 1) // 2)
    freed = np.zeros(0, dtype=np.int64)
    found = None
    for learns in (False, True):
        for _ in range(MOST_ROUNDS):
            if learns and not freed.size:
                break
            sums = screener.sums(by, freed)
            projected = efficient_scores(sums, by.n_tested, held, freed)
            efficient = screener.efficient_scores(by, freed) if learns else projected
            p = by.p_values(_for_likelihood_ratio(efficient, projected, freed))
            found = _judged(by, efficient, p, sums.counts, level)
            now = _set_free(found, freed)[:most] if purify else freed
            if np.array_equal(np.sort(now), freed):
                break
            freed = np.sort(now)
    assert found is not None
    _warn_of_many(found)
    return found


def _for_likelihood_ratio(
    learned: EfficientScores, null: EfficientScores, freed: Ints
) -> EfficientScores:
    """Scores by which freed items are tested: their tests are likelihood ratios.

    At an item's estimated effect b the information J is often less than J₀, that where it has no
    effect, and a test by b and J alone would lose power. With the score quadratic in between, twice
    the log likelihood ratio is b'(2J + J₀)b / 3.
    """

    def between(at: Array, at_zero: Array) -> Array:
        out = at.copy()
        out[freed] = (2.0 * at[freed] + at_zero[freed]) / 3.0
        return out

    information = between(learned.information, null.information)
    inverse = np.linalg.pinv(learned.information[freed], rcond=1e-8, hermitian=True)
    effects = np.einsum("itu,iu->it", inverse, learned.scores[freed])
    scores = learned.scores.copy()
    scores[freed] = np.einsum("itu,iu->it", information[freed], effects)
    return EfficientScores(scores, information, between(learned.whole, null.whole))


def _judged(
    by: ScreenedBy, efficient: EfficientScores, p: Array, counts: Ints, level: float
) -> Screening:
    """Which items are flagged by their p values."""
    p = np.where(by.is_testable(counts), p, np.nan)
    adjusted = adjusted_p(p)
    with np.errstate(invalid="ignore"):
        return Screening(efficient, counts, p, adjusted, adjusted < level)


def _warn_of_many(found: Screening) -> None:
    tested = int(np.isfinite(found.p).sum())
    if tested and found.flag.sum() > 0.5 * tested:
        warn_user(
            f"{int(found.flag.sum()):,} of {tested:,} items are flagged: with so many, what is an "
            "effect on all answers and what one on single items is a matter of definition",
            HealthWarning,
        )


def _set_free(found: Screening, freed: Ints) -> Ints:
    """Items to set free next, the clearest first.

    They are those that are free and still flagged, and of the others the clearest only: most of
    what remains may be due to these.
    """
    clear = -np.log(np.maximum(np.where(found.flag, found.p, 1.0), 1e-300))
    kept = freed[found.flag[freed]]
    clear_of_others = clear.copy()
    clear_of_others[freed] = 0.0
    is_next = clear_of_others >= CLEAR * max(float(clear_of_others.max(initial=0.0)), 1e-12)
    chosen = np.union1d(kept, np.flatnonzero(is_next))
    return chosen[np.argsort(-clear[chosen], kind="stable")]


def adjusted_p(p: Array) -> Array:
    """P values corrected for the number of tests (Benjamini–Hochberg); NaN stay."""
    known = np.isfinite(p)
    out = np.full(p.shape, np.nan)
    if known.any():
        out[known] = false_discovery_control(p[known])
    return out
