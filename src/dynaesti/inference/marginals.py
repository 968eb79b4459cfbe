"""Mixtures of Gaussian marginals behind a link: means, sds and quantiles at many points."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from dynaesti.core import Array, Bools, Ints, gauss_hermite, raise_where
from dynaesti.errors import InputError
from dynaesti.model import POSITIVE, Link

HERMITE_X, HERMITE_WEIGHTS = gauss_hermite(48)
# Above this latent sd of a component, moments under a link without an upper bound depend on a tail
# that the data may exclude. They are then taken within the central part of the distribution, of
# probability TRUSTED, as averages over so many quantiles.
HEAVY = 1.0
TRUSTED = 0.999
LEVELS = 400


def check_level(level: float) -> None:
    """Refuse a band probability that is not between 0 and 1."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise InputError(f"level: {level!r} is not between 0 and 1")


@dataclass(frozen=True)
class Marginals:
    """Latent marginals of a mixture at many points.

    Parameters
    ----------
    weights : array (n_components, n_points) or (n_components, 1)
        Weights of the components, which sum to 1.
    means, sds : array (n_components, n_points)
        Latent means and standard deviations.
    """

    weights: Array
    means: Array
    sds: Array

    def _average(self, values: Array) -> Array:
        """Weighted mean over the components."""
        return np.asarray((self.weights * values).sum(axis=0))

    def _through(self, link: Link) -> Array:
        """Values on the link's scale at the quadrature nodes of every component."""
        return link.value(self.means[..., None] + self.sds[..., None] * HERMITE_X)

    def mean(self, link: Link) -> Array:
        """Mean at each point, on the link's scale."""
        return self._average(
            self.means if link.name == "identity" else self._through(link) @ HERMITE_WEIGHTS
        )

    def sd(self, link: Link) -> Array:
        """Standard deviation at each point, on the link's scale."""
        mean = self.mean(link)
        if link.name == "identity":
            return np.sqrt(self._average(self.sds**2 + (self.means - mean) ** 2))
        return np.asarray(
            np.sqrt(self._average((self._through(link) - mean[:, None]) ** 2 @ HERMITE_WEIGHTS))
        )

    def heavy(self, link: Link) -> Bools:
        """At which points mean and sd depend on the far tails of the Gaussians.

        This happens for rates whose logarithm is very uncertain. e^x under a Gaussian of sd 4 has
        sd 9,000,000; the data (twelve counts of 0, say) may exclude such values, but the Gaussian
        does not show it.
        """
        return np.asarray(((self.sds > HEAVY) & (self.weights > 0)).any(axis=0)) & (
            link.range == POSITIVE
        )

    def trusted_moments(self, link: Link) -> tuple[Array, Array]:
        """Mean and sd within the central part of the distribution, for use where `heavy`."""
        levels = 0.5 + TRUSTED * (np.arange(LEVELS) + 0.5 - 0.5 * LEVELS) / LEVELS
        values = self.quantiles(levels, link)
        return values.mean(axis=0), values.std(axis=0)

    def take(self, points: Ints | Bools) -> "Marginals":
        """The marginals at some of the points."""
        return Marginals(
            np.broadcast_to(self.weights, self.means.shape)[:, points],
            self.means[:, points],
            self.sds[:, points],
        )

    def density(self, values: Array) -> Array:
        """Density of a single latent point at many values, up to a constant."""
        away = (values[:, None, None] - self.means) / self.sds
        return np.asarray((self.weights / self.sds * np.exp(-0.5 * away**2)).sum(axis=1)[:, 0])

    def quantiles(self, q: Array, link: Link) -> Array:
        """Quantiles on the link's scale, one row for each level.

        They are exact: a monotone link maps quantiles to quantiles.
        """
        raise_where((q <= 0) | (q >= 1), "q", "not between 0 and 1", "give probabilities")
        return np.array(
            [
                link.value(self._latent_quantile(level if link.sign > 0 else 1 - level))
                for level in q
            ]
        )

    def _latent_quantile(self, q: float) -> Array:
        """Latent quantile at each point, by Newton steps within a shrinking bracket."""
        ends = self.means + self.sds * ndtri(q)
        if len(self.means) == 1:
            return np.asarray(ends[0])
        lo = ends.min(axis=0)
        hi = ends.max(axis=0)
        x: Array = 0.5 * (lo + hi)
        for _ in range(100):
            z = (x - self.means) / self.sds
            above = self._average(ndtr(z)) - q
            lo = np.where(above < 0, x, lo)
            hi = np.where(above > 0, x, hi)
            slope = self._average(np.exp(-0.5 * z**2) / (self.sds * np.sqrt(2 * np.pi)))
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - above / slope
            step: Array = np.where((newton >= lo) & (newton <= hi), newton, 0.5 * (lo + hi))
            if np.all(np.abs(step - x) <= 1e-13 * (1 + np.abs(x))):
                return step
            x = step
        return x
