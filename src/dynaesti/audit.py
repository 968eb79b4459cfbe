"""Audit of a curve: importance sampling from the grafted posterior to the exact one.

The curve lives in a few weights, so draws from the grafted Gaussian with heavier tails, reweighted by the exact likelihood, give the exact
posterior: means, sds, quantiles and evidence, with the effective sample size and Pareto k̂ to tell whether to trust them. Where that
proposal fits badly or may have missed a hump, others are found (`proposals`). Priors without a small form (Matérn, Wiener, rank above 50)
are sampled at the instants from the Gaussian itself: still exact in the limit, but in many dimensions, so k̂ matters more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from dynaesti.arrays import (
    Array,
    Ints,
    as_vector,
    bounded,
    generator,
    refuse,
    symmetric_root,
    whole_number,
)
from dynaesti.components import Component, read_from_table, small_form, tilted
from dynaesti.frames import make_frame
from dynaesti.links import Link
from dynaesti.mixtures import check_level
from dynaesti.observations import Observations
from dynaesti.pareto import smooth_weights
from dynaesti.priors.features import lower_root, solve_lower
from dynaesti.proposals import Hump, adaptive_sample
from dynaesti.rows import RowTable, sum_rows

FEWEST = 200  # draws that can tell anything
MOST_DRAWN = 1e10  # values of curves at the instants: minutes
OFF = 0.1  # sds that mean or sd may be off before the Gaussian is called unsafe,
BAND_OFF, EVIDENCE_OFF = (
    0.3,
    0.5,
)  # and sds that median and band may be, and nats of log evidence: moments do not tell every shape
SHARP = 0.5  # precision of a site, in those of the nugget, from which on the nodes of the nugget have to follow the site
RELIABLE_K = 0.7
BLOCK = 2_000_000  # likelihood values at a time
REACH, LOOKS = 5.0, 65  # prior sds either side, and points, at which likelihoods are looked at
CACHED = 100_000  # curve values at a time: what stays in the cache is read again at no cost


class Audited(Protocol):
    """What the audit asks of a curve."""

    @property
    def observations(self) -> Observations:
        """What was observed."""

    @property
    def link(self) -> Link:
        """The scale to report on."""

    @property
    def latent(self) -> Audited:
        """The curve before the link."""

    @property
    def frame(self) -> str | None:
        """The kind of data frame to answer with."""

    @property
    def log_evidence(self) -> float:
        """Log probability of the observations."""

    def weighted_components(self) -> tuple[Array, Array, list[Component]]:
        """Weights, log prior masses and components that carry the curve."""

    def mean(self, t: Any) -> Array:
        """Mean at each time."""

    def sd(self, t: Any) -> Array:
        """Standard deviation at each time."""

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles at each time, one row a level."""

    def grid(self, points: int) -> npt.NDArray[Any]:
        """Evenly spaced times over the data's span."""


@dataclass(frozen=True)
class Draws:
    """Draws of one component: weights of its features (or curve values at probe times), and their importance."""

    component: Component
    share: float  # of the mixture
    points: Array  # (draws, rank) weights, or (draws, instants) values
    log_weights: Array  # exact joint density over proposal density


@dataclass(frozen=True)
class Audit:
    """What importance sampling says of a grafted curve. Values are on the curve's scale."""

    curve: Audited
    parts: tuple[Draws, ...]
    weights: Array  # smoothed and normalised, over all draws
    pareto_k: float
    log_evidence: float
    seed: int

    @property
    def draws(self) -> int:
        """Number of draws."""
        return self.weights.size

    @property
    def ess(self) -> float:
        """Effective sample size of the reweighted draws."""
        return float(1.0 / np.sum(self.weights**2))

    @cached_property
    def off(self) -> tuple[float, float]:
        """Largest error of the grafted latent curve over the span: (means in sds, sds relative)."""
        t = self.curve.grid(60)
        latent = self.curve.latent
        mean, sd = latent.mean(t), latent.sd(t)
        x = self._latent(t)
        right = self.weights @ x
        right_sd = np.sqrt(self.weights @ (x - right) ** 2)
        return float(np.abs((mean - right) / right_sd).max()), float(
            np.abs(sd / right_sd - 1).max()
        )

    @cached_property
    def band_off(self) -> float:
        """Largest error of the grafted latent median and 70 % band over the span, in sds."""
        t, levels = self.curve.grid(60), np.array([0.15, 0.5, 0.85])
        x = self._latent(t)
        right_sd = np.sqrt(self.weights @ (x - self.weights @ x) ** 2)
        return float(
            (
                np.abs(
                    self.curve.latent.quantile(t, levels)
                    - _weighted_quantiles(x, self.weights, levels)
                )
                / right_sd
            ).max()
        )

    @property
    def safe(self) -> bool:
        """Whether the grafted bands can be used as they are."""
        alike = (
            self.band_off <= BAND_OFF
            and abs(self.curve.log_evidence - self.log_evidence) <= EVIDENCE_OFF
        )
        return self.reliable and max(self.off) <= OFF and alike

    @property
    def reliable(self) -> bool:
        """Whether the corrected values can be trusted."""
        return self.pareto_k < RELIABLE_K and self.ess > 100

    @property
    def how(self) -> str:
        """What was sampled."""
        many = [d for d in self.parts if small_form(d.component) is None]
        if many:
            kernel = max(many, key=lambda d: d.share).component.kernel
            return f"{kernel.describe()} has no small form: sampled at {many[0].points.shape[1]} instants from the Gaussian itself"
        return f"sampled in at most {max(d.points.shape[1] for d in self.parts)} weights"

    @property
    def verdict(self) -> str:
        """One sentence: is the Gaussian safe here?"""
        mean, sd = self.off
        heavy = f"Pareto k {self.pareto_k:.2f}" if np.isfinite(self.pareto_k) else "no heavy ones"
        facts = f"effective draws {self.ess:.0f} of {self.draws}, {heavy}, {self.how}"
        if not self.reliable:
            return f"Unsure: the exact posterior differs too much from the grafted one to be reached by reweighting ({facts})."
        if self.safe:
            return f"Safe: the grafted curve is within {mean:.2f} sd in means and {sd:.1%} in sds of the exact posterior ({facts})."
        return (
            f"Not safe: the grafted curve is off by up to {mean:.2f} sd in means, {sd:.0%} in sds, {self.band_off:.2f} sd in the 70 % "
            f"band and by {self.curve.log_evidence - self.log_evidence:+.2f} in log evidence; use curve.exact(t) instead ({facts})."
        )

    def _latent(self, t: Any) -> Array:
        """Latent curve values of every draw at the times: (draws, times)."""
        offsets = self.curve.observations.axis.offsets(t, "t")
        rng = np.random.default_rng(self.seed + 1)
        values = [_values_at(part, offsets, rng) for part in self.parts]
        return np.concatenate(values) + self.curve.observations.mean_at(offsets)

    def mean(self, t: Any) -> Array:
        """Corrected mean at each time."""
        return self.weights @ self.curve.link.value(self._latent(t))

    def sd(self, t: Any) -> Array:
        """Corrected standard deviation at each time."""
        y = self.curve.link.value(self._latent(t))
        return np.sqrt(self.weights @ (y - self.weights @ y) ** 2)

    def quantile(self, t: Any, q: Any) -> Array:
        """Corrected quantiles; for several q one row each."""
        levels = as_vector(q, "q")
        refuse((levels <= 0) | (levels >= 1), "q", "not between 0 and 1", "give probabilities")
        rows = _weighted_quantiles(self.curve.link.value(self._latent(t)), self.weights, levels)
        return rows[0] if np.ndim(q) == 0 else rows

    def to_frame(self, t: Any = None, level: float = 0.7) -> Any:
        """Corrected marginals: time, mean, sd, lower, median, upper."""
        check_level(level)
        times = self.curve.grid(200) if t is None else t
        y = self.curve.link.value(self._latent(times))
        mean = self.weights @ y
        lower, median, upper = _weighted_quantiles(
            y, self.weights, np.array([0.5 - level / 2, 0.5, 0.5 + level / 2])
        )
        return make_frame(
            {
                "time": np.asarray(times),
                "mean": mean,
                "sd": np.sqrt(self.weights @ (y - mean) ** 2),
                "lower": lower,
                "median": median,
                "upper": upper,
            },
            self.curve.frame,
        )

    def __repr__(self) -> str:
        return f"<Audit: {self.verdict}>"


def audit(curve: Audited, draws: int, seed: int) -> Audit:
    """Reweight draws of the grafted mixture by the exact posterior."""
    draws, rng = whole_number(draws, "draws", FEWEST), generator(seed)
    bounded(draws * max(curve.observations.instants.size, 1), "draws", MOST_DRAWN)
    shares, log_priors, components = curve.weighted_components()
    counts = np.maximum(
        np.rint(draws * shares).astype(int), 30
    )  # in proportion; light components need a few for their evidence too
    parts, logs = [], []
    for count, share, component, log_prior in zip(
        counts, shares, components, log_priors, strict=True
    ):
        points, log_weights = _sample(curve.observations, component, int(count), rng)
        parts.append(Draws(component, float(share), points, log_weights))
        logs.append(
            log_weights + log_prior - np.log(count)
        )  # a draw stands for its component's mass
    joint = np.concatenate(logs)
    log_evidence = float(logsumexp(joint))
    weights, k = smooth_weights(joint)
    return Audit(curve, tuple(parts), weights, k, log_evidence, seed)


def _sample(
    obs: Observations, component: Component, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    posterior = small_form(component)
    exact = ExactLikelihood(obs, component)
    if posterior is None:
        values = component.posterior.sample(component.instants, count, rng)
        sites = values @ component.curve_shift - 0.5 * values**2 @ component.curve_precision
        return values, exact(values) - sites + component.log_partition
    at_sites = posterior.at_sites(component.instants)
    half = solve_lower(posterior.root, np.eye(posterior.rank), transposed=True)  # A⁻¹ = half halfᵀ
    size = max(1, CACHED // len(at_sites))

    def log_likelihood(points: Array) -> Array:
        return np.concatenate(
            [exact(points[a : a + size] @ at_sites.T) for a in range(0, len(points), size)]
        )

    first = Hump(1.0, posterior.weights, lower_root(half @ half.T))
    return adaptive_sample(log_likelihood, first, count, rng, one_hump=exact.concave())


class ExactLikelihood:
    """log Π f̃_i of curve values at a component's sites, with each instant's nugget integrated out."""

    def __init__(self, obs: Observations, component: Component) -> None:
        self.obs, self.component = obs, component
        self.offset = obs.mean_at(component.instants)
        self.nugget = component.kernel.instant_var
        fixed = obs.fixed
        self.tau, self.nu = fixed.precision[component.groups], fixed.shift[component.groups]
        thin = 1.0 + self.nugget * self.tau
        self.constant = (
            fixed.constant[component.groups].sum()
            + (-0.5 * np.log(thin) + 0.5 * self.nugget * self.nu**2 / thin).sum()
        )
        self.thin, self.gaussian = thin, bool(self.tau.any() or self.nu.any())
        self.bent = np.flatnonzero(np.diff(obs.likelihood.inexact.start)[component.groups] > 0)
        self.bends = float(
            (self.nugget * np.abs(component.precision)).max(initial=0.0)
        )  # how much a site bends within its nugget
        nodes, weights = np.polynomial.hermite_e.hermegauss(3 if self.bends < 0.05 else 9)
        self.nodes = nodes, weights / np.sqrt(2 * np.pi)
        self.rows = self._smoothed_rows() if self.bent.size else None

    def __call__(self, values: Array) -> Array:
        """Σ_i log f̃_i for each draw (row) of curve deviations at the sites."""
        total, inner = np.full(len(values), self.constant), values
        if self.gaussian:
            total += values @ (self.nu / self.thin) - 0.5 * values**2 @ (self.tau / self.thin)
            inner = (values + self.nugget * self.nu) / self.thin
        if not self.bent.size:
            return total
        inner = (inner + self.offset)[:, self.bent]
        if self.rows is not None:
            rows, index = self.rows
            out = np.empty(len(values))
            sum_rows(rows.log_lik, index, rows.start, rows.step, np.ascontiguousarray(inner), out)
            return np.asarray(total + out)
        return np.asarray(total + self._evaluated(inner))

    def concave(self) -> bool:
        """Whether every factor is log-concave wherever the prior lets the curve go: then the posterior has one hump."""
        if (
            self.rows is not None and self.obs.likelihood.table is not None
        ):  # as are products, and averages over a nugget, of such rows
            return _falls_ever_faster(self.obs.likelihood.table[0].log_lik)
        kernel, times = self.component.kernel, self.component.instants[self.bent]
        reach = REACH * np.sqrt(
            np.broadcast_to(kernel.cov(times, times), times.shape) + self.nugget
        )
        x = self.offset[self.bent][:, None] + reach[:, None] * np.linspace(-1.0, 1.0, LOOKS)
        size = max(1, BLOCK // LOOKS)
        groups = self.component.groups[self.bent]
        return all(
            _falls_ever_faster(
                self.obs.likelihood.group_values(groups[a : a + size], x[a : a + size])
            )
            for a in range(0, groups.size, size)
        )

    def _spread(self) -> Array:
        """Sd of the nugget that is left after the group's Gaussian members."""
        return np.sqrt(self.nugget / self.thin[self.bent])

    def _smoothed_rows(self) -> tuple[RowTable, Ints] | None:
        """Tabulated rows of the groups, averaged over the nugget; None where the likelihood has no table, or is sharper than the nugget."""
        likelihood, groups = self.obs.likelihood, self.component.groups[self.bent]
        if self.bends > SHARP or np.ptp(self.thin[self.bent]) > 0:
            return None
        _, _, mean, var = tilted(self.component, self.obs)
        if not read_from_table(self.component, self.obs, mean, var):
            return None
        if likelihood.table is None:
            return None
        table, row = likelihood.table
        inexact = likelihood.inexact
        single = np.diff(inexact.start)[groups] == 1
        if (~single).sum() * table.log_lik.shape[1] > BLOCK:
            return None
        merged = [table.log_lik[row[inexact.of(int(g))]].sum(axis=0) for g in groups[~single]]
        rows = np.concatenate([table.log_lik, np.array(merged).reshape(-1, table.log_lik.shape[1])])
        index = np.empty(groups.size, dtype=np.int64)
        index[single] = row[inexact.members[inexact.start[groups[single]]]]
        index[~single] = len(table.log_lik) + np.arange(len(merged))
        spread = float(self._spread()[0])
        if spread > 0:
            grid = np.asarray(table.start + table.step * np.arange(rows.shape[1]), dtype=np.float64)
            away = [_shifted(rows, grid, spread * x) for x in self.nodes[0]]
            rows = logsumexp(np.array(away), axis=0, b=self.nodes[1][:, None, None])
        return table._replace(log_lik=np.ascontiguousarray(rows)), index

    def _evaluated(self, inner: Array) -> Array:
        """By formula, a block of draws at a time; the nugget by a few nodes, placed where nugget × site lies: sites may be the sharper."""
        likelihood, groups, spread = (
            self.obs.likelihood,
            self.component.groups[self.bent],
            self._spread(),
        )
        out = np.empty(len(inner))
        nodes, weights = self.nodes if spread.any() else (np.zeros(1), np.ones(1))
        tau = np.maximum(self.component.precision[self.bent], 0.0)
        var = spread**2 / (1.0 + spread**2 * tau)
        size = max(1, BLOCK // (groups.size * nodes.size))
        for a in range(0, len(inner), size):
            part = inner[a : a + size].T  # (groups, draws)
            pull = self.component.shift[self.bent][:, None] - tau[:, None] * (
                part - self.offset[self.bent][:, None]
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


def _falls_ever_faster(log_rows: Array) -> bool:
    """Whether rows on even grids are concave but for rounding, and possible everywhere."""
    with np.errstate(invalid="ignore"):
        bend = np.diff(log_rows, n=2, axis=1)
    return bool(
        np.isfinite(log_rows).all()
        and (bend <= 1e-6 * np.maximum(1.0, np.abs(log_rows[:, 1:-1]))).all()
    )


def _shifted(rows: Array, grid: Array, shift: float) -> Array:
    """Rows read a little beside their grid, by cubic interpolation."""
    from scipy.interpolate import make_interp_spline

    inside = np.clip(grid + shift, grid[0], grid[-1])
    return np.asarray(make_interp_spline(grid, rows, k=3, axis=1)(inside))


def _values_at(part: Draws, offsets: Array, rng: np.random.Generator) -> Array:
    """Curve deviations of a component's draws at any times."""
    posterior, component = small_form(part.component), part.component
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


def _weighted_quantiles(values: Array, weights: Array, q: Array) -> Array:
    """Quantiles of weighted draws, one row a level, one column a time."""
    order = np.argsort(values, axis=0)
    out = np.empty((q.size, values.shape[1]))
    for j in range(values.shape[1]):
        mass = np.cumsum(weights[order[:, j]])
        out[:, j] = np.interp(q, mass - 0.5 * weights[order[:, j]], values[order[:, j], j])
    return out
