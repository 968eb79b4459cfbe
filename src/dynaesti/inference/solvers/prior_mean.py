"""Priors with a mean: any solver, for curves that vary about known values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit
from dynaesti.inference.sites import Moments, NaturalGaussian
from dynaesti.inference.solvers.contract import Solver


@dataclass(frozen=True)
class PriorMeanSolver:
    """A solver of curves whose prior mean is not 0.

    The curve is its prior mean plus a curve of mean 0, of which the given solver knows.
    """

    centred: Solver
    mean: Array  # (n_sites,)

    @property
    def site_start(self) -> Ints:
        """Where each curve's sites begin."""
        return self.centred.site_start

    @property
    def size(self) -> int:
        """Numbers that the solver keeps in memory."""
        return self.centred.size + self.mean.size

    def marginals(
        self,
        curves: Ints,
        latent_sites: NaturalGaussian,
        posterior: Moments,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Compute posterior moments and log partitions, see `Solver`."""
        about_mean = NaturalGaussian(latent_sites.precision, np.empty(self.mean.size))
        at_mean = np.zeros(self.site_start.size - 1)
        _move_sites(curves, self.site_start, self.mean, latent_sites, about_mean.shift, at_mean)
        self.centred.marginals(curves, about_mean, posterior, log_partition, proper)
        _move_back(curves, self.site_start, self.mean, at_mean, posterior.mean, log_partition)


@jit
def _move_sites(
    curves: Ints, start: Ints, mean: Array, sites: NaturalGaussian, shift: Array, at_mean: Array
) -> None:
    """Shifts of the sites as functions of the distance from the mean, and log sites at the mean."""
    precision, old = sites
    for curve in curves:
        total = 0.0
        for i in range(start[curve], start[curve + 1]):
            drawn = precision[i] * mean[i]
            shift[i] = old[i] - drawn
            total += mean[i] * (old[i] - 0.5 * drawn)
        at_mean[curve] = total


@jit
def _move_back(
    curves: Ints,
    start: Ints,
    mean: Array,
    at_mean: Array,
    posterior_mean: Array,
    log_partition: Array,
) -> None:
    """Add the prior mean to the posterior's, and the sites' values at the mean to the partition."""
    for curve in curves:
        log_partition[curve] += at_mean[curve]
        for i in range(start[curve], start[curve + 1]):
            posterior_mean[i] += mean[i]
