"""The exact likelihood of whole curves, nugget integrated out: what the audit compares with."""

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

# precision of a site, in those of the nugget, from which on the nodes of the nugget have to
# follow the site
SHARP = 0.5
BLOCK = 2_000_000  # likelihood values at a time
# prior sds either side, and points, at which likelihoods are looked at
REACH = 5.0
LOOKS = 65
CACHED = 100_000  # curve values at a time: what stays in the cache is read again at no cost


@dataclass(frozen=True)
class ImportanceDraws:
    """Draws of one component.

    Weights of its features (or curve values at probe times), and their importance.
    """

    component: GraftedCurve
    share: float  # of the mixture
    points: Array  # (draws, rank) weights, or (draws, instants) values
    log_weights: Array  # exact joint density over proposal density


class ExactLikelihood:
    """log Π f̃_i of curve values at a component's sites, with each instant's nugget integrated out."""

    def __init__(self, obs: Observations, component: GraftedCurve) -> None:
        self.obs = obs
        self.component = component
        self.offset = obs.mean_at(component.instants)
        self.nugget = component.kernel.nugget_variance
        natural, constant = obs.gaussian_factors
        self.tau, self.nu = natural.select(component.groups)
        self.shrink = 1.0 + self.nugget * self.tau
        through_nugget = 0.5 * self.nugget * self.nu**2 / self.shrink
        self.constant = (
            constant[component.groups].sum() + (-0.5 * np.log(self.shrink) + through_nugget).sum()
        )
        self.gaussian = bool(self.tau.any() or self.nu.any())
        self.sites = np.flatnonzero(obs.likelihood.has_factors[component.groups])
        # how much a site curves within its nugget
        self.nugget_curvature = float(
            (self.nugget * np.abs(component.ep.sites.precision)).max(initial=0.0)
        )
        self.nodes = gauss_hermite(3 if self.nugget_curvature < 0.05 else 9)
        self.rows = self._smoothed_rows() if self.sites.size else None

    def __call__(self, values: Array) -> Array:
        """Σ_i log f̃_i for each draw (row) of curve deviations at the sites."""
        total = np.full(len(values), self.constant)
        inner = values
        if self.gaussian:
            total += values @ (self.nu / self.shrink) - 0.5 * values**2 @ (self.tau / self.shrink)
            inner = (values + self.nugget * self.nu) / self.shrink
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
        return np.asarray(total + self._evaluated(inner))

    def concave(self) -> bool:
        """Whether every factor is log-concave wherever the prior lets the curve go.

        Then the posterior has one hump.
        """
        if (
            self.rows is not None and self.obs.likelihood.table is not None
        ):  # as are products, and averages over a nugget, of such rows
            return is_log_concave(self.obs.likelihood.table[0].log_lik)
        kernel = self.component.kernel
        times = self.component.instants[self.sites]
        reach = REACH * np.sqrt(
            np.broadcast_to(kernel.cov(times, times), times.shape) + self.nugget
        )
        x = self.offset[self.sites][:, None] + reach[:, None] * np.linspace(-1.0, 1.0, LOOKS)
        size = max(1, BLOCK // LOOKS)
        groups = self.component.groups[self.sites]
        return all(
            is_log_concave(self.obs.likelihood.group_values(groups[a : a + size], x[a : a + size]))
            for a in range(0, groups.size, size)
        )

    def _spread(self) -> Array:
        """Sd of the nugget that is left after the group's Gaussian members."""
        return np.sqrt(self.nugget / self.shrink[self.sites])

    def _smoothed_rows(self) -> tuple[LogLikelihoodTable, Ints] | None:
        """Tabulated rows of the groups, averaged over the nugget.

        None where the likelihood has no table, or is sharper than the nugget.
        """
        likelihood = self.obs.likelihood
        groups = self.component.groups[self.sites]
        if self.nugget_curvature > SHARP or np.ptp(self.shrink[self.sites]) > 0:
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
            away = [_shifted_rows(rows, grid, spread * x) for x in self.nodes[0]]
            rows = logsumexp(np.array(away), axis=0, b=self.nodes[1][:, None, None])
        return table._replace(log_lik=np.ascontiguousarray(rows)), index

    def _evaluated(self, inner: Array) -> Array:
        """By formula, a block of draws at a time.

        The nugget by a few nodes, placed where nugget × site lies: sites may be the sharper.
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
            pull = self.component.ep.sites.shift[self.sites][:, None] - tau[:, None] * (
                part - self.offset[self.sites][:, None]
            )
            away = (var[:, None] * pull)[:, :, None] + np.sqrt(var)[:, None, None] * nodes
            x = part[:, :, None] + away
            values = likelihood.group_values(groups, x.reshape(groups.size, -1)).reshape(x.shape)
            if spread.any():  # weights of the nodes under the nugget alone
                values += (
                    0.5 * nodes**2
                    - 0.5 * (away / spread[:, None, None]) ** 2
                    + 0.5 * np.log(var / spread**2)[:, None, None]
                )
            out[a : a + size] = logsumexp(values, axis=2, b=weights).sum(axis=0)
        return out


def is_log_concave(log_rows: Array) -> bool:
    """Whether rows on even grids are concave but for rounding, and possible everywhere."""
    with np.errstate(invalid="ignore"):
        bend = np.diff(log_rows, n=2, axis=1)
    return bool(
        np.isfinite(log_rows).all()
        and (bend <= 1e-6 * np.maximum(1.0, np.abs(log_rows[:, 1:-1]))).all()
    )


def _shifted_rows(rows: Array, grid: Array, shift: float) -> Array:
    """Rows read a little beside their grid, by cubic interpolation."""
    from scipy.interpolate import make_interp_spline

    inside = np.clip(grid + shift, grid[0], grid[-1])
    return np.asarray(make_interp_spline(grid, rows, k=3, axis=1)(inside))


def values_at(part: ImportanceDraws, offsets: Array, rng: np.random.Generator) -> Array:
    """Curve deviations of a component's draws at any times."""
    posterior = weight_space_posterior(part.component)
    component = part.component
    if posterior is not None:
        b = posterior.basis.features(offsets)
        values = part.points @ b.T
        rest = component.kernel.cov(offsets[:, None], offsets) - b @ b.T
    else:  # values at the instants: extend to other times by the prior's conditional
        cov = component.kernel.cov(component.instants[:, None], component.instants)
        cov[np.diag_indices_from(cov)] += 1e-9 * cov.diagonal().max()
        cross = component.kernel.cov(component.instants[:, None], offsets)
        gain = np.linalg.solve(cov, cross)
        values = part.points @ gain
        rest = component.kernel.cov(offsets[:, None], offsets) - cross.T @ gain
    if np.diag(rest).max(initial=0.0) > 1e-6 * np.diag(
        component.kernel.cov(offsets[:, None], offsets)
    ).max(initial=0.0):
        values = values + rng.standard_normal(values.shape) @ symmetric_root(rest)
    return values
