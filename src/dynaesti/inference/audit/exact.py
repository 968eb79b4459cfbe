"""The exact likelihood of whole curves, with the nugget integrated out, for the audit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from dynaesti.core import Array, Ints, gauss_hermite, symmetric_root
from dynaesti.inference.moments.table import LogLikelihoodTable, sum_log_likelihoods
from dynaesti.inference.observations import Observations
from dynaesti.inference.single_curve import (
    GraftedCurve,
    can_use_table,
    full_cavity_and_tilted,
    weight_space_posterior,
)

# Nugget variance × site precision up to which tables are smoothed over the nugget. Above, the
# quadrature nodes have to follow the site.
MAX_SMOOTHED_CURVATURE = 0.5
FLAT_CURVATURE = 0.05  # below this, 3 quadrature nodes are enough for the nugget, else 9
BLOCK = 2_000_000  # likelihood values at a time
# Log-concavity is judged at this many points, so many prior sds to either side of the mean.
CONCAVITY_POINTS = 65
CONCAVITY_SDS = 5.0
CACHED_VALUES = 100_000  # curve values at a time: they stay in the processor's cache


@dataclass(frozen=True)
class ImportanceDraws:
    """Draws for one component of a curve, with their importance weights."""

    component: GraftedCurve
    weight: float  # of the component in the mixture
    # (n_draws, rank) weights of its features, or (n_draws, n_instants) values of the curve
    points: Array
    log_weights: Array  # (n_draws,) log of exact joint density over proposal density


class ExactLikelihood:
    """log Π f̃ᵢ of curve values at a component's sites, each instant's nugget integrated out.

    Parameters
    ----------
    obs : Observations
        What was observed.
    component : GraftedCurve
        Kernel and converged sites; these only place quadrature nodes.
    """

    def __init__(self, obs: Observations, component: GraftedCurve) -> None:
        self.obs = obs
        self.component = component
        self.offset = obs.mean_at(component.instants)
        self.nugget = component.kernel.nugget_variance
        natural, constant = obs.gaussian_factors
        self.precision, self.shift = natural.select(component.groups)
        self.shrink = 1.0 + self.nugget * self.precision
        through_nugget = 0.5 * self.nugget * self.shift**2 / self.shrink
        self.constant = (
            constant[component.groups].sum() + (-0.5 * np.log(self.shrink) + through_nugget).sum()
        )
        self.gaussian = bool(self.precision.any() or self.shift.any())
        self.sites = np.flatnonzero(obs.likelihood.has_factors[component.groups])
        # largest curvature of a site over the width of the nugget
        self.nugget_curvature = float(
            (self.nugget * np.abs(component.ep.sites.precision)).max(initial=0.0)
        )
        self.nodes = gauss_hermite(3 if self.nugget_curvature < FLAT_CURVATURE else 9)
        self.rows = self._smoothed_rows() if self.sites.size else None

    def __call__(self, values: Array) -> Array:
        """Σᵢ log f̃ᵢ for each draw.

        Parameters
        ----------
        values : array (n_draws, n_sites)
            Deviations of the curve from its mean at the sites.

        Returns
        -------
        array (n_draws,)
            Log-likelihoods.
        """
        total = np.full(len(values), self.constant)
        inner = values
        if self.gaussian:
            linear = values @ (self.shift / self.shrink)
            total += linear - 0.5 * values**2 @ (self.precision / self.shrink)
            inner = (values + self.nugget * self.shift) / self.shrink
        if not self.sites.size:
            return total
        inner = (inner + self.offset)[:, self.sites]
        if self.rows is not None:
            rows, index = self.rows
            out = np.empty(len(values))
            sum_log_likelihoods(
                rows.log_lik, index, rows.start, rows.step, np.ascontiguousarray(inner), out
            )
            return np.asarray(total + out)
        return np.asarray(total + self._by_formula(inner))

    def concave(self) -> bool:
        """Whether every factor is log-concave in the range of the prior.

        Then the posterior has one mode.
        """
        if self.rows is not None and self.obs.likelihood.table is not None:
            # products of such rows, and their averages over a nugget, are log-concave too
            return is_log_concave(self.obs.likelihood.table[0].log_lik)
        kernel = self.component.kernel
        times = self.component.instants[self.sites]
        reach = CONCAVITY_SDS * np.sqrt(
            np.broadcast_to(kernel.cov(times, times), times.shape) + self.nugget
        )
        steps = np.linspace(-1.0, 1.0, CONCAVITY_POINTS)
        x = self.offset[self.sites][:, None] + reach[:, None] * steps
        size = max(1, BLOCK // CONCAVITY_POINTS)
        groups = self.component.groups[self.sites]
        return all(
            is_log_concave(self.obs.likelihood.group_values(groups[a : a + size], x[a : a + size]))
            for a in range(0, groups.size, size)
        )

    def _spread(self) -> Array:
        """Sd of the nugget at each site, given the Gaussian factors there."""
        return np.sqrt(self.nugget / self.shrink[self.sites])

    def _smoothed_rows(self) -> tuple[LogLikelihoodTable, Ints] | None:
        """Likelihood table averaged over the nugget, and the row of each site.

        None where the likelihood has no table, or is too sharp relative to the nugget.
        """
        likelihood = self.obs.likelihood
        groups = self.component.groups[self.sites]
        if self.nugget_curvature > MAX_SMOOTHED_CURVATURE or np.ptp(self.shrink[self.sites]) > 0:
            return None
        _, tilted = full_cavity_and_tilted(self.component, self.obs)
        if not can_use_table(self.component, self.obs, tilted):
            return None
        if likelihood.table is None:
            return None
        table, row = likelihood.table
        emissions = likelihood.non_gaussian
        single = emissions.lengths[groups] == 1
        if (~single).sum() * table.log_lik.shape[1] > BLOCK:
            return None
        merged = [table.log_lik[row[emissions.row(int(g))]].sum(axis=0) for g in groups[~single]]
        rows = np.concatenate([table.log_lik, np.array(merged).reshape(-1, table.log_lik.shape[1])])
        index = np.empty(groups.size, dtype=np.int64)
        index[single] = row[emissions.values[emissions.start[groups[single]]]]
        index[~single] = len(table.log_lik) + np.arange(len(merged))
        spread = float(self._spread()[0])
        if spread > 0:
            grid = np.asarray(table.start + table.step * np.arange(rows.shape[1]), dtype=np.float64)
            shifted = [_shifted_rows(rows, grid, spread * x) for x in self.nodes[0]]
            rows = logsumexp(np.array(shifted), axis=0, b=self.nodes[1][:, None, None])
        return table._replace(log_lik=np.ascontiguousarray(rows)), index

    def _by_formula(self, inner: Array) -> Array:
        """Log-likelihoods by formula, a block of draws at a time.

        The nugget is integrated by a few nodes at the centre and width of nugget × site, since the
        site may be the narrower of the two.
        """
        likelihood = self.obs.likelihood
        groups = self.component.groups[self.sites]
        spread = self._spread()
        out = np.empty(len(inner))
        nodes, weights = self.nodes if spread.any() else (np.zeros(1), np.ones(1))
        tau = np.maximum(self.component.ep.sites.precision[self.sites], 0.0)
        var = spread**2 / (1.0 + spread**2 * tau)
        size = max(1, BLOCK // (groups.size * nodes.size))
        for a in range(0, len(inner), size):
            part = inner[a : a + size].T  # (groups, draws)
            gradient = self.component.ep.sites.shift[self.sites][:, None] - tau[:, None] * (
                part - self.offset[self.sites][:, None]
            )
            deviation = (var[:, None] * gradient)[:, :, None] + np.sqrt(var)[:, None, None] * nodes
            x = part[:, :, None] + deviation
            values = likelihood.group_values(groups, x.reshape(groups.size, -1)).reshape(x.shape)
            if spread.any():  # weights of the nodes under the nugget itself
                values += (
                    0.5 * nodes**2
                    - 0.5 * (deviation / spread[:, None, None]) ** 2
                    + 0.5 * np.log(var / spread**2)[:, None, None]
                )
            out[a : a + size] = logsumexp(values, axis=2, b=weights).sum(axis=0)
        return out


def is_log_concave(log_rows: Array) -> bool:
    """Whether rows on even grids are concave up to rounding, and finite everywhere."""
    with np.errstate(invalid="ignore"):
        second = np.diff(log_rows, n=2, axis=1)
    return bool(
        np.isfinite(log_rows).all()
        and (second <= 1e-6 * np.maximum(1.0, np.abs(log_rows[:, 1:-1]))).all()
    )


def _shifted_rows(rows: Array, grid: Array, shift: float) -> Array:
    """Rows at grid + shift, by cubic interpolation; constant beyond the ends."""
    from scipy.interpolate import make_interp_spline

    inside = np.clip(grid + shift, grid[0], grid[-1])
    return np.asarray(make_interp_spline(grid, rows, k=3, axis=1)(inside))


def values_at(draws: ImportanceDraws, offsets: Array, rng: np.random.Generator) -> Array:
    """Deviations of the curve from its mean at any times: (n_draws, n_times).

    What the draws do not determine is drawn from the prior.
    """
    posterior = weight_space_posterior(draws.component)
    component = draws.component
    if posterior is not None:
        b = posterior.basis.features(offsets)
        values = draws.points @ b.T
        residual = component.kernel.cov(offsets[:, None], offsets) - b @ b.T
    else:  # values at the instants: extend to other times by the prior's conditional
        cov = component.kernel.cov(component.instants[:, None], component.instants)
        cov[np.diag_indices_from(cov)] += 1e-9 * cov.diagonal().max()
        cross = component.kernel.cov(component.instants[:, None], offsets)
        gain = np.linalg.solve(cov, cross)
        values = draws.points @ gain
        residual = component.kernel.cov(offsets[:, None], offsets) - cross.T @ gain
    if np.diag(residual).max(initial=0.0) > 1e-6 * np.diag(
        component.kernel.cov(offsets[:, None], offsets)
    ).max(initial=0.0):
        values = values + rng.standard_normal(values.shape) @ symmetric_root(residual)
    return values
