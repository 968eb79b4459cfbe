"""Items that become easier or harder: learned from everyone's answers, to predict with.

An item's location moves about its own level as a stationary process over time (Ornstein and
Uhlenbeck), with a variance and a timescale that all items share. Both follow from the scores of
responses by ability, added up over the responses to each item in each of a few periods: sums over
people. Abilities and items are those of a fit without drift; what an item was like at the time of
a prediction is one step of regression from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, minimize

from dynaesti.core import Array, Bools, Ints, jit, starts_of
from dynaesti.estimation.e_step import EStep, EStepPosterior
from dynaesti.estimation.expected_scores import ability_scores
from dynaesti.estimation.periods import Periods
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.inference import LogLikelihoodTable, Moments
from dynaesti.model import ItemBank, ItemBlock

N_PERIODS = 100
# nats that drift must add to the evidence: it has two parameters, one of them at its bound
LEAST_GAIN = 8.0
# of the search for variance (squared sds of ability) and timescale (as a part of the whole time)
VARIANCES = (0.01, 0.05, 0.2, 0.8)
TIMESCALES = (0.01, 0.03, 0.1, 0.3, 1.0)
LOWEST, HIGHEST = (1e-4, 0.3 / N_PERIODS), (4.0, 10.0)
# variance of a level that no prior knows, in squared sds of ability
VAGUE = 100.0
LEAST = 1e-9  # information of the answers of a period, below which they say nothing
STEP = 1e-4  # of central differences


def drift_periods(people: PersonSummary) -> Periods | None:
    """The periods by which drift is learned; None where all answers are of one instant."""
    first, last = float(people.first.min()), float(people.last.max())
    return Periods(first, last, N_PERIODS) if last > first else None


@dataclass(frozen=True)
class DriftSums:
    """Sums over responses, by item and period: (n_items, n_periods) each."""

    periods: Periods
    score: Array  # by ability
    information: Array  # that is expected of them
    across: Array  # products of the scores of different responses of one person

    def __add__(self, other: DriftSums) -> DriftSums:
        return DriftSums(
            self.periods,
            self.score + other.score,
            self.information + other.information,
            self.across + other.across,
        )


def drift_sums(
    e_step: EStep,
    bank: ItemBank,
    table: LogLikelihoodTable,
    priors: PriorMixture,
    posterior: EStepPosterior,
    periods: Periods,
) -> DriftSums:
    """What the responses of some people say of the drift of items."""
    found = ability_scores(e_step, bank, table, priors, posterior)
    shape = (bank.item_count, periods.number)
    cell = found.item * np.int64(periods.number) + periods.of(found.time)
    size = shape[0] * shape[1]
    n_people = e_step.sites.n_people
    pair, number = np.unique(cell * np.int64(n_people) + found.person, return_inverse=True)
    by_person = np.bincount(number, found.score, pair.size)
    squares = np.bincount(cell, found.score**2, size)
    sums = (
        np.bincount(cell, found.score, size),
        np.bincount(cell, found.information, size),
        np.bincount(pair // n_people, by_person**2, size) - squares,
    )
    return DriftSums(periods, *(np.asarray(one, dtype=np.float64).reshape(shape) for one in sums))


@dataclass(frozen=True)
class ItemDrift:
    """How items drift, and what their answers in each period say of it.

    Item i has the entries ``start[i]:start[i + 1]``: the periods in which it was answered, how much
    easier it seemed than its parameters say, and the error variance of that. Everything is in
    standardised abilities.
    """

    periods: Periods
    variance: float  # of an item's drift about its level
    timescale: float  # over which its correlation falls to 1/e
    start: Ints  # (n_items + 1,)
    period: Ints  # (n_entries,)
    seen: Array  # (n_entries,)
    noise: Array  # (n_entries,)
    level: Array  # (n_items,) what the item's prior expects of its level, against its parameters
    level_variance: Array  # (n_items,) of that

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.level.size

    def reflected(self) -> ItemDrift:
        """The drift on the reflected scale, θ → −θ."""
        return replace(self, seen=-self.seen, level=-self.level)

    def append(self, n_items: int) -> ItemDrift:
        """The drift of so many items: further ones, of which nothing is known, at the end."""
        number = n_items - self.n_items
        last = np.full(number, self.start[-1])
        nothing = np.zeros(number)
        return replace(
            self,
            start=np.append(self.start, last),
            level=np.append(self.level, nothing),
            level_variance=np.append(self.level_variance, nothing),
        )

    def at(self, item: Ints, times: Array) -> Moments:
        """How much easier items are at times than their parameters say: (n_responses,).

        The variance is what drift adds to that of the items' parameters.
        """
        out = Moments(np.zeros(item.size), np.zeros(item.size))
        order = np.argsort(item, kind="stable")
        cuts = np.flatnonzero(np.diff(item[order])) + 1
        for rows in np.split(order, cuts) if item.size else ():
            out.mean[rows], out.variance[rows] = self._of_item(int(item[rows[0]]), times[rows])
        return out

    def _of_item(self, item: int, times: Array) -> tuple[Array, Array]:
        own = slice(self.start[item], self.start[item + 1])
        level = float(self.level_variance[item])
        if own.start == own.stop:
            return np.zeros(times.size), np.zeros(times.size)
        x = self.periods.middles[self.period[own]]
        noise = np.diag(self.noise[own])
        between = self._covariance(x, x) + level
        across = self._covariance(times, x) + level
        gain = np.linalg.solve(between + noise, across.T).T
        mean = self.level[item] + gain @ (self.seen[own] - self.level[item])
        variance = self.variance + level - (gain * across).sum(axis=1)
        known = level / (1.0 + level * (1.0 / self.noise[own]).sum())  # of the level, without drift
        return mean, np.maximum(variance - known, 0.0)

    def _covariance(self, s: Array, t: Array) -> Array:
        return np.asarray(self.variance * np.exp(-np.abs(s[:, None] - t) / self.timescale))


def learn_drift(bank: ItemBank, sums: DriftSums) -> ItemDrift | None:
    """The drift of a bank's items; None if the evidence for any is not clear."""
    seen = _seen_drift(bank, sums)
    if seen is None:
        return None
    none = drift_log_evidence(seen)

    def loss(x: Array) -> float:
        return none - drift_log_evidence(_with(seen, x))

    span = sums.periods.last - sums.periods.first
    tried = [np.log([v, share * span]) for v in VARIANCES for share in TIMESCALES]
    begin = min(tried, key=loss)
    within = Bounds(np.log([LOWEST[0], LOWEST[1] * span]), np.log([HIGHEST[0], HIGHEST[1] * span]))
    found = minimize(
        loss, begin, method="Nelder-Mead", bounds=within, options={"xatol": 0.05, "fatol": 0.05}
    )
    return _with(seen, found.x) if found.fun < -LEAST_GAIN else None


def _with(drift: ItemDrift, x: Array) -> ItemDrift:
    """The drift with another log variance and log timescale."""
    return replace(drift, variance=float(np.exp(x[0])), timescale=float(np.exp(x[1])))


def _seen_drift(bank: ItemBank, sums: DriftSums) -> ItemDrift | None:
    """What the sums say of each item, with no drift yet; None if no item can show any."""
    moves, precision = _levels(bank)
    has = (sums.information > LEAST) & moves[:, None]
    if not (has.sum(axis=1) > 1).any():
        return None
    information = sums.information[has]
    # answers of one person to one item go together for reasons of their own
    noise = (information + np.maximum(sums.across[has], 0.0)) / information**2
    seen = sums.score[has] / information
    item, period = np.nonzero(has)
    variance = 1.0 / np.maximum(precision, 1.0 / VAGUE)
    # items are where their answers and priors balance: without drift, their levels stay there
    pull = np.bincount(item, seen / noise, bank.item_count)
    return ItemDrift(
        sums.periods,
        0.0,
        1.0,
        starts_of(has.sum(axis=1)),
        period,
        seen,
        noise,
        -variance * pull,
        variance,
    )


def _levels(bank: ItemBank) -> tuple[Bools, Array]:
    """Items that may drift, and the precision that priors give their levels."""
    moves = np.zeros(bank.item_count, dtype=bool)
    precision = np.zeros(bank.item_count)
    for block in bank.blocks:
        if block.model.has_value_rows and block.model.can_be_rescaled:
            moves[block.items] = block.free.all(axis=1)
            precision[block.items] = _level_precision(block) * bank.ability_scale.scale**2
    return moves, precision


def _level_precision(block: ItemBlock) -> Array:
    """Precision of the prior along a shift of each item, (n_items,)."""

    def shifted(by: float) -> Array:
        return block.model.unconstrain(block.model.constrain(block.u, 1.0, by), block.size)

    direction = (shifted(STEP) - shifted(-STEP)) / (2 * STEP)
    return np.asarray(((direction / block.item_prior.spread) ** 2).sum(axis=1))


def drift_log_evidence(drift: ItemDrift) -> float:
    """Log density of what was seen of all items: a Kalman filter of level and drift."""
    gaps = np.diff(drift.period, prepend=0) * drift.periods.width
    decay = np.exp(-np.maximum(gaps, 0.0) / drift.timescale)
    return float(
        _filtered_log_density(
            drift.start,
            decay,
            drift.seen,
            drift.noise,
            drift.level,
            drift.level_variance,
            drift.variance,
        )
    )


@jit
def _filtered_log_density(
    start: Ints,
    decay: Array,
    seen: Array,
    noise: Array,
    level: Array,
    level_variance: Array,
    variance: float,
) -> float:
    """Sum over items of the log density of what was seen, entry by entry given those before."""
    total = 0.0
    for i in range(start.size - 1):
        mean_level, mean_drift = level[i], 0.0
        p, q, r = level_variance[i], 0.0, variance  # of level, both, drift
        for k in range(start[i], start[i + 1]):
            if k > start[i]:
                mean_drift *= decay[k]
                q *= decay[k]
                r = variance + decay[k] ** 2 * (r - variance)
            spread = p + 2 * q + r + noise[k]
            away = seen[k] - mean_level - mean_drift
            total -= 0.5 * (np.log(2 * np.pi * spread) + away**2 / spread)
            gain_level, gain_drift = (p + q) / spread, (q + r) / spread
            mean_level += gain_level * away
            mean_drift += gain_drift * away
            p, q, r = (
                p - gain_level * (p + q),
                q - gain_level * (q + r),
                r - gain_drift * (q + r),
            )
    return total
