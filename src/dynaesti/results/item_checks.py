"""Checks of items beside the people's abilities: wrong keys, useless, too easy, misfitting items.

Each answer is compared with the person's ability known without that answer. All that is needed are
sums over answers, which add up over people, wherever these are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, ndtri

from dynaesti.core import Array, Bools
from dynaesti.model import ItemBank
from dynaesti.results.residuals import LEAST, residuals_of

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

# bins of ability by which misfit is judged, in standard deviations of the population
EDGES = (-1.0, -0.35, 0.35, 1.0)
N_BINS = len(EDGES) + 1
MOMENTS = ("n", "y", "y²", "θ", "θ²", "yθ", "residual²", "variance", "z²")
N_CHECK_SUMS = len(MOMENTS) + 3 * N_BINS  # then, bin by bin: answers, residuals, their variances

WRONG_KEY, USELESS, TOO_EASY, TOO_HARD = "wrong key?", "useless", "too easy", "too hard"
MISFITS = "misfits"
DRIFTS = "drifts"


@dataclass(frozen=True)
class CheckSettings:
    """From when on an item is flagged.

    Chosen by simulation (`tests/statistical/test_item_flags.py`): an item with slope −1.2 is found
    from 100 answers on, of sound ones less than 1 % are flagged.
    """

    fewest: int = 30  # answers; fewer say too little
    against: float = 2.0  # standard errors below 0 of a correlation that speaks of a wrong key
    # a correlation with ability itself below which an item is useless, beyond doubt (95 %): so
    # large, or so large a part of the median item's
    useless: float = 0.1
    useless_part: float = 0.5
    extreme: float = 0.95  # share of the points beyond which an item is too easy, beyond doubt
    # probability of so large residuals where the model holds, and how large they must be: root mean
    # square over bins of ability, as a part of the item's range
    misfit_p: float = 1e-3
    misfit_size: float = 0.08
    sure: float = 0.95  # probability of intervals


DEFAULT = CheckSettings()


def item_checks(bank: ItemBank, sums: Array, direction: str) -> ItemChecks:
    """What sums over everyone's answers say of each item.

    Parameters
    ----------
    bank : ItemBank
    sums : array (N_CHECK_SUMS, n_items)
        See `item_check_sums`.
    direction : {"positive", "free"}
        Whether more of the response is meant to show more ability.
    """
    is_categorical = np.zeros(bank.item_count, dtype=bool)
    is_directed = np.full(bank.item_count, direction != "free")
    for block in bank.blocks:
        is_categorical[block.items] = block.model.categorical
        if block.model.needs_row_check:  # a user's formula decides: of times, less is more
            is_directed[block.items] = False
    return ItemChecks(sums, is_categorical, is_directed)


def item_check_sums(fit: Fit) -> Array:
    """Sums over a fit's answers, (N_CHECK_SUMS, n_items); those of parts of the people add up."""
    item = fit.responses.item
    found = residuals_of(fit)
    origin, width = origin_and_width(fit.bank)
    y = (fit.responses.resp - origin[item]) / width[item]
    theta = (found.ability - fit.shift) / fit.gain
    residual = found.residual / width[item]
    variance = found.variance / width[item] ** 2
    squares = residual**2 / variance
    ones = np.ones(item.size)
    columns = [ones, y, y**2, theta, theta**2, y * theta, residual**2, variance, squares]
    n_items = fit.item_labels.size
    cell = item * N_BINS + np.searchsorted(EDGES, theta)
    binned = [
        np.bincount(cell, values, n_items * N_BINS).reshape(n_items, N_BINS).T
        for values in (ones, residual, variance)
    ]
    moments = [np.bincount(item, column, n_items) for column in columns]
    return np.concatenate([np.stack(moments), *binned])


def origin_and_width(bank: ItemBank) -> tuple[Array, Array]:
    """What each item's responses are counted from, and in: its points, or its spread of amounts.

    Points go from the lowest category to the highest: where lower responses are better, as strokes
    are, the width is negative.
    """
    origin = np.zeros(bank.item_count)
    width = np.ones(bank.item_count)
    for block in bank.blocks:
        if block.model.categorical:
            low, high = block.values[:, 0], block.values[:, -1]
        else:
            middle = bank.ability_scale.theta(np.zeros(1))
            low = block.model.expected(block.u, middle, block.values)[:, 0]
            high = low + np.sqrt(block.model.variance(block.u, middle, block.values)[:, 0])
        origin[block.items] = low
        width[block.items] = np.where(np.abs(high - low) < LEAST, LEAST, high - low)
    return origin, width


@dataclass(frozen=True)
class ItemChecks:
    """What the sums say of each item."""

    sums: Array  # (N_CHECK_SUMS, n_items)
    is_categorical: Bools  # (n_items,)
    is_directed: Bools  # (n_items,) whether more of the response is meant to show more ability

    def __getitem__(self, name: str) -> Array:
        """A sum by its name in MOMENTS, (n_items,)."""
        row: Array = self.sums[MOMENTS.index(name)]
        return row

    @property
    def number(self) -> Array:
        """Answers, at least 1."""
        return np.maximum(self["n"], 1.0)

    @property
    def share(self) -> Array:
        """Share of the points: of right answers where these are 0 and 1; NaN for amounts."""
        return np.where(self.is_categorical & (self["n"] > 0), self["y"] / self.number, np.nan)

    @property
    def correlation(self) -> Array:
        """Correlation of responses with abilities known without them; NaN where either is even."""
        n = self.number
        covariance = self["yθ"] / n - self["y"] * self["θ"] / n**2
        spread = (self["y²"] / n - (self["y"] / n) ** 2) * self._ability_variance
        with np.errstate(invalid="ignore", divide="ignore"):
            found = np.where(spread > LEAST, covariance / np.sqrt(spread), np.nan)
        return np.asarray(np.clip(found, -1.0, 1.0))

    @property
    def _ability_variance(self) -> Array:
        n = self.number
        return np.maximum(self["θ²"] / n - (self["θ"] / n) ** 2, 0.0)

    @property
    def infit(self) -> Array:
        """Mean square of the residuals, weighted by information."""
        return np.asarray(self["residual²"] / np.maximum(self["variance"], LEAST))

    @property
    def outfit(self) -> Array:
        """Mean square of the standardised residuals."""
        return np.asarray(self["z²"] / self.number)

    @property
    def misfit(self) -> Array:
        """Squared standardised residuals of the means in classes of ability, added up."""
        _, residual, variance = self.sums[len(MOMENTS) :].reshape(3, N_BINS, -1)
        return np.asarray((residual**2 / np.maximum(variance, LEAST)).sum(axis=0))

    def columns(self) -> dict[str, Any]:
        """Columns of the item table."""
        return {"share": self.share, "item_rest": self.correlation, "flag": self.flags()}

    def flags(self, settings: CheckSettings = DEFAULT) -> list[str]:
        """What is wrong with each item, in words; empty where nothing is known to be."""
        low, high = _interval_of_share(self.share, self.number, settings)
        words = np.full(low.size, "", dtype=object)
        # of several words the last one is told
        words[self._misfits(settings)] = MISFITS
        words[self._is_useless(settings)] = USELESS
        words[low > settings.extreme] = TOO_EASY
        words[high < 1.0 - settings.extreme] = TOO_HARD
        words[self._runs_backward(settings) & self.is_directed] = WRONG_KEY
        words[self["n"] < settings.fewest] = ""
        return [str(word) for word in words]

    def _runs_backward(self, settings: CheckSettings) -> Bools:
        z = np.arctanh(np.clip(self.correlation, -0.999, 0.999)) * np.sqrt(self.number)
        return np.asarray(np.nan_to_num(z) < -settings.against)

    def _is_useless(self, settings: CheckSettings) -> Bools:
        """Whether even the largest correlation that may be is small."""
        reach = ndtri(0.5 + settings.sure / 2) / np.sqrt(np.maximum(self.number - 3.0, 1.0))
        r = np.tanh(np.arctanh(np.clip(np.abs(self.correlation), 0.0, 0.999)) + reach)
        # abilities that are known badly correlate less than the true ones
        reliability = np.clip(self._ability_variance, LEAST, 1.0)
        size = np.abs(self.correlation) / np.sqrt(reliability)
        usual = float(np.median(size[np.isfinite(size)])) if np.isfinite(size).any() else 0.0
        small = max(settings.useless, settings.useless_part * usual)
        return np.asarray(np.nan_to_num(r / np.sqrt(reliability), nan=1.0) < small)

    def _misfits(self, settings: CheckSettings) -> Bools:
        number, residual, _ = self.sums[len(MOMENTS) :].reshape(3, N_BINS, -1)
        squares = self.misfit
        size = np.sqrt((residual**2 / np.maximum(number, 1.0)).sum(axis=0) / self.number)
        return np.asarray(
            (chdtrc(N_BINS, squares) < settings.misfit_p) & (size > settings.misfit_size)
        )


def _interval_of_share(share: Array, n: Array, settings: CheckSettings) -> tuple[Array, Array]:
    """Wilson's interval."""
    z = float(ndtri(0.5 + settings.sure / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return middle - half, middle + half
