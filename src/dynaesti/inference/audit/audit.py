"""Audit of a curve: importance sampling from the grafted posterior to the exact one.

The curve lives in a few weights, so draws from the grafted Gaussian with heavier tails, reweighted
by the exact likelihood, give the exact posterior: means, sds, quantiles and evidence, with the
effective sample size and Pareto k̂ to tell whether to trust them. Where that proposal fits badly or
may have missed a hump, others are found (`proposals`). Priors without a small form (Matérn, Wiener,
rank above 50) are sampled at the instants from the Gaussian itself: still exact in the limit, but
in many dimensions, so k̂ matters more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from dynaesti.core import Array, as_rng, as_vector, check_size, raise_where, whole_number
from dynaesti.data import make_frame
from dynaesti.inference.audit.exact import CACHED, ExactLikelihood, ImportanceDraws, values_at
from dynaesti.inference.audit.proposals import StudentComponent, adaptive_sample
from dynaesti.inference.audit.psis import smooth_weights
from dynaesti.inference.marginals import check_level
from dynaesti.inference.observations import Observations
from dynaesti.inference.single_curve import GraftedCurve, weight_space_posterior
from dynaesti.inference.solvers.basis import lower_root, solve_lower
from dynaesti.model import Link

FEWEST = 200  # draws that can tell anything
MOST_DRAWN = 1e10  # values of curves at the instants: minutes
OFF = 0.1  # sds that mean or sd may be off before the Gaussian is called unsafe,
# and sds that median and band may be, and nats of log evidence: moments do not tell every shape
BAND_OFF = 0.3
EVIDENCE_OFF = 0.5
RELIABLE_K = 0.7


class AuditableCurve(Protocol):
    """What the audit asks of a curve."""

    @property
    def observations(self) -> Observations:
        """What was observed."""

    @property
    def link(self) -> Link:
        """The scale to report on."""

    @property
    def latent(self) -> AuditableCurve:
        """The curve before the link."""

    @property
    def frame(self) -> str | None:
        """The kind of data frame to answer with."""

    @property
    def log_evidence(self) -> float:
        """Log probability of the observations."""

    def weighted_components(self) -> tuple[Array, Array, list[GraftedCurve]]:
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
class Audit:
    """What importance sampling says of a grafted curve. Values are on the curve's scale."""

    curve: AuditableCurve
    parts: tuple[ImportanceDraws, ...]
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
        mean = latent.mean(t)
        sd = latent.sd(t)
        x = self._latent(t)
        right = self.weights @ x
        right_sd = np.sqrt(self.weights @ (x - right) ** 2)
        return float(np.abs((mean - right) / right_sd).max()), float(
            np.abs(sd / right_sd - 1).max()
        )

    @cached_property
    def band_off(self) -> float:
        """Largest error of the grafted latent median and 70 % band over the span, in sds."""
        t = self.curve.grid(60)
        levels = np.array([0.15, 0.5, 0.85])
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
        many = [d for d in self.parts if weight_space_posterior(d.component) is None]
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
            f"Not safe: the grafted curve is off by up to {mean:.2f} sd in means, {sd:.0%} in "
            f"sds, {self.band_off:.2f} sd in the 70 % "
            f"band and by {self.curve.log_evidence - self.log_evidence:+.2f} in log evidence; use "
            f"curve.exact(t) instead ({facts})."
        )

    def _latent(self, t: Any) -> Array:
        """Latent curve values of every draw at the times: (draws, times)."""
        offsets = self.curve.observations.axis.offsets(t, "t")
        rng = np.random.default_rng(self.seed + 1)
        values = [values_at(part, offsets, rng) for part in self.parts]
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
        raise_where((levels <= 0) | (levels >= 1), "q", "not between 0 and 1", "give probabilities")
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


def audit_curve(curve: AuditableCurve, draws: int, seed: int) -> Audit:
    """Reweight draws of the grafted mixture by the exact posterior."""
    draws = whole_number(draws, "draws", FEWEST)
    rng = as_rng(seed)
    check_size(draws * max(curve.observations.instants.size, 1), "draws", MOST_DRAWN)
    shares, log_priors, components = curve.weighted_components()
    counts = np.maximum(
        np.rint(draws * shares).astype(int), 30
    )  # in proportion; light components need a few for their evidence too
    parts = []
    logs = []
    for count, share, component, log_prior in zip(
        counts, shares, components, log_priors, strict=True
    ):
        points, log_weights = _sample(curve.observations, component, int(count), rng)
        parts.append(ImportanceDraws(component, float(share), points, log_weights))
        logs.append(
            log_weights + log_prior - np.log(count)
        )  # a draw stands for its component's mass
    joint = np.concatenate(logs)
    log_evidence = float(logsumexp(joint))
    weights, k = smooth_weights(joint)
    return Audit(curve, tuple(parts), weights, k, log_evidence, seed)


def _sample(
    obs: Observations, component: GraftedCurve, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    posterior = weight_space_posterior(component)
    exact = ExactLikelihood(obs, component)
    if posterior is None:
        values = component.posterior.sample(component.instants, count, rng)
        sites = (
            values @ component.latent_sites.shift
            - 0.5 * values**2 @ component.latent_sites.precision
        )
        return values, exact(values) - sites + component.log_partition
    at_sites = posterior.at_sites(component.instants)
    half = solve_lower(posterior.root, np.eye(posterior.rank), transposed=True)  # A⁻¹ = half halfᵀ
    size = max(1, CACHED // len(at_sites))

    def log_likelihood(points: Array) -> Array:
        return np.concatenate(
            [exact(points[a : a + size] @ at_sites.T) for a in range(0, len(points), size)]
        )

    first = StudentComponent(1.0, posterior.weights, lower_root(half @ half.T))
    return adaptive_sample(log_likelihood, first, count, rng, one_hump=exact.concave())


def _weighted_quantiles(values: Array, weights: Array, q: Array) -> Array:
    """Quantiles of weighted draws, one row a level, one column a time."""
    order = np.argsort(values, axis=0)
    out = np.empty((q.size, values.shape[1]))
    for j in range(values.shape[1]):
        mass = np.cumsum(weights[order[:, j]])
        out[:, j] = np.interp(q, mass - 0.5 * weights[order[:, j]], values[order[:, j], j])
    return out
