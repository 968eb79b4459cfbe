"""Audit of a curve: importance sampling from the grafted posterior to the exact one.

The curve is a function of a few weights. So draws from the grafted Gaussian with heavier tails,
reweighted by the exact likelihood, give the exact posterior: means, sds, quantiles and evidence.
The effective sample size and Pareto k̂ say whether to trust them. Where that proposal fits badly or
may have missed a mode, others are found (`proposals`). Priors without a small form (Matérn, Wiener,
rank above 50) are sampled at the instants from the Gaussian itself: still exact in the limit, but
in many dimensions, so k̂ matters more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from dynaesti.core import Array, as_rng, as_vector, check_size, raise_where, whole_number
from dynaesti.data import make_frame
from dynaesti.errors import InputError
from dynaesti.inference.audit.exact import (
    CACHED_VALUES,
    ExactLikelihood,
    ImportanceDraws,
    values_at,
)
from dynaesti.inference.audit.proposals import StudentComponent, adaptive_sample
from dynaesti.inference.audit.psis import smooth_weights
from dynaesti.inference.marginals import check_level
from dynaesti.inference.observations import Observations
from dynaesti.inference.single_curve import MAX_RANK, GraftedCurve, weight_space_posterior
from dynaesti.inference.solvers.basis import lower_root, solve_lower
from dynaesti.model import Link


@dataclass(frozen=True)
class AuditSettings:
    """Limits of an audit, with the reason for each number."""

    min_draws: int = 200  # fewer cannot decide anything
    max_values: float = 1e10  # draws × instants: minutes of work
    # Draws of each component in proportion to its weight, and at least so many: light ones need
    # some for their evidence too.
    min_component_draws: int = 30
    # The Gaussian is safe up to these errors. Mean and sd, in sds; moments do not show every shape,
    # so also median and 70 % band, in sds, and log evidence, in nats.
    max_moment_error: float = 0.1
    max_band_error: float = 0.3
    max_evidence_error: float = 0.5
    # Corrected values are reliable below this Pareto k̂ (Vehtari et al., 2024), and above so many
    # effective draws.
    max_pareto_k: float = 0.7
    min_ess: float = 100.0
    compared_times: int = 60  # evenly spaced, at which curves are compared
    band: tuple[float, float, float] = (0.15, 0.5, 0.85)


SETTINGS = AuditSettings()


class Verdict(StrEnum):
    """What an audit found."""

    SAFE = "safe"  # the grafted curve agrees with the exact posterior
    UNSAFE = "unsafe"  # it does not; the corrected values can be used instead
    UNRELIABLE = "unreliable"  # reweighting does not reach the exact posterior


class AuditableCurve(Protocol):
    """What the audit needs of a curve."""

    @property
    def observations(self) -> Observations:
        """The emissions, with times and mean."""

    @property
    def link(self) -> Link:
        """The scale to report on."""

    @property
    def latent(self) -> AuditableCurve:
        """The curve before the link."""

    @property
    def frame(self) -> str | None:
        """Kind of data frame to return."""

    @property
    def log_evidence(self) -> float:
        """Log probability of the observations."""

    def weighted_components(self) -> tuple[Array, Array, list[GraftedCurve]]:
        """Weights, log prior masses and components of the curve's mixture."""

    def mean(self, t: Any) -> Array:
        """Mean at each time."""

    def sd(self, t: Any) -> Array:
        """Standard deviation at each time."""

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles at each time, one row for each q."""

    def grid(self, points: int) -> npt.NDArray[Any]:
        """Evenly spaced times over the data's span."""


@dataclass(frozen=True)
class Audit:
    """Comparison of a grafted curve with the exact posterior, by importance sampling.

    Made by `Curve.audit`. Values are on the scale of the curve.

    Parameters
    ----------
    curve : Curve
        The curve that is audited.
    parts : tuple
        Draws for each component of the curve.
    weights : array (n_draws,)
        Importance weights of all draws, smoothed and normalised.
    pareto_k : float
        Shape k̂ of the weights' tail: reliable below 0.7.
    log_evidence : float
        Log probability of the observations, by the draws.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> import dynaesti as dy
    >>> curve = dy.CurvFiFE(bandwidth=2.0).fit([0.0, 1.0, 2.0, 3.0], dy.Bernoulli([0, 0, 1, 1]))
    >>> audit = curve.audit(draws=2000)
    >>> audit.safe, str(audit.outcome)
    (True, 'safe')
    >>> audit.mean([0.0, 3.0]).round(1).tolist()
    [0.3, 0.7]
    """

    curve: AuditableCurve
    parts: tuple[ImportanceDraws, ...]
    weights: Array
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
        """Largest errors of the grafted latent curve over the span.

        Returns
        -------
        mean : float
            Largest error of the mean, in exact sds.
        sd : float
            Largest relative error of the sd.
        """
        t = self.curve.grid(SETTINGS.compared_times)
        latent = self.curve.latent
        mean = latent.mean(t)
        sd = latent.sd(t)
        x = self._latent(t)
        exact_mean = self.weights @ x
        exact_sd = np.sqrt(self.weights @ (x - exact_mean) ** 2)
        mean_error = np.abs((mean - exact_mean) / exact_sd).max()
        return float(mean_error), float(np.abs(sd / exact_sd - 1).max())

    @cached_property
    def band_off(self) -> float:
        """Largest error of the grafted latent median and 70 % band over the span, in sds."""
        t = self.curve.grid(SETTINGS.compared_times)
        levels = np.array(SETTINGS.band)
        x = self._latent(t)
        exact_sd = np.sqrt(self.weights @ (x - self.weights @ x) ** 2)
        grafted = self.curve.latent.quantile(t, levels)
        error = np.abs(grafted - _weighted_quantiles(x, self.weights, levels))
        return float((error / exact_sd).max())

    @property
    def outcome(self) -> Verdict:
        """The verdict: "safe", "unsafe" or "unreliable"."""
        if not self.reliable:
            return Verdict.UNRELIABLE
        evidence_error = abs(self.curve.log_evidence - self.log_evidence)
        agrees = (
            max(self.off) <= SETTINGS.max_moment_error
            and self.band_off <= SETTINGS.max_band_error
            and evidence_error <= SETTINGS.max_evidence_error
        )
        return Verdict.SAFE if agrees else Verdict.UNSAFE

    @property
    def safe(self) -> bool:
        """Whether the grafted bands can be used as they are."""
        return self.outcome is Verdict.SAFE

    @property
    def reliable(self) -> bool:
        """Whether the corrected values can be trusted."""
        return self.pareto_k < SETTINGS.max_pareto_k and self.ess > SETTINGS.min_ess

    @property
    def how(self) -> str:
        """What was sampled, in words."""
        many = [d for d in self.parts if weight_space_posterior(d.component) is None]
        if many:
            kernel = max(many, key=lambda d: d.weight).component.kernel
            return (
                f"{kernel.describe()} has no small form: sampled at {many[0].points.shape[1]} "
                f"instants from the Gaussian itself"
            )
        return f"sampled in at most {max(d.points.shape[1] for d in self.parts)} weights"

    @property
    def verdict(self) -> str:
        """The verdict as a sentence, with the errors and the effective draws."""
        mean, sd = self.off
        tail = f"Pareto k {self.pareto_k:.2f}" if np.isfinite(self.pareto_k) else "no heavy ones"
        facts = f"effective draws {self.ess:.0f} of {self.draws}, {tail}, {self.how}"
        if self.outcome is Verdict.UNRELIABLE:
            return (
                f"Unsure: the exact posterior differs too much from the grafted one to be reached "
                f"by reweighting ({facts})."
            )
        if self.outcome is Verdict.SAFE:
            return (
                f"Safe: the grafted curve is within {mean:.2f} sd in means and {sd:.1%} in sds of "
                f"the exact posterior ({facts}). That judges the approximation, not whether the "
                "model suits the data: for that see curve.residuals()."
            )
        return (
            f"Not safe: the grafted curve is off by up to {mean:.2f} sd in means, {sd:.0%} in "
            f"sds, {self.band_off:.2f} sd in the 70 % band and by "
            f"{self.curve.log_evidence - self.log_evidence:+.2f} in log evidence; use "
            f"curve.exact(t) instead ({facts})."
        )

    def _latent(self, t: Any) -> Array:
        """Latent curve of every draw at the times: (n_draws, n_times)."""
        offsets = self.curve.observations.axis.offsets(t, "t")
        rng = np.random.default_rng(self.seed + 1)
        values = [values_at(part, offsets, rng) for part in self.parts]
        return np.concatenate(values) + self.curve.observations.mean_at(offsets)

    def mean(self, t: Any) -> Array:
        """Corrected mean (n_times,) at times t."""
        return self.weights @ self.curve.link.value(self._latent(t))

    def sd(self, t: Any) -> Array:
        """Corrected standard deviation (n_times,) at times t."""
        y = self.curve.link.value(self._latent(t))
        return np.sqrt(self.weights @ (y - self.weights @ y) ** 2)

    def quantile(self, t: Any, q: Any) -> Array:
        """Corrected quantiles.

        Parameters
        ----------
        t : times (n_times,)
            Numbers or dates, as for the curve.
        q : float or sequence of float
            Probabilities between 0 and 1.

        Returns
        -------
        array (n_times,) or (n_q, n_times)
            One row for each q, where there are several.
        """
        levels = as_vector(q, "q")
        raise_where((levels <= 0) | (levels >= 1), "q", "not between 0 and 1", "give probabilities")
        rows = _weighted_quantiles(self.curve.link.value(self._latent(t)), self.weights, levels)
        return rows[0] if np.ndim(q) == 0 else rows

    def to_frame(self, t: Any = None, level: float = 0.7) -> Any:
        """Corrected marginals as a frame.

        Parameters
        ----------
        t : times, optional
            Default: 200 times over the span of the data.
        level : float, default 0.7
            Probability of the band.

        Returns
        -------
        frame
            Columns time, mean, sd, lower, median, upper.
        """
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
    """Audit a curve.

    Parameters
    ----------
    curve : Curve
        The curve.
    draws : int
        Number of draws, at least 200.
    seed : int
        Seed of the draws.
    """
    draws = whole_number(draws, "draws", SETTINGS.min_draws)
    rng = as_rng(seed)
    check_size(draws * max(curve.observations.instants.size, 1), "draws", SETTINGS.max_values)
    component_weights, log_priors, components = curve.weighted_components()
    counts = np.maximum(
        np.rint(draws * component_weights).astype(int), SETTINGS.min_component_draws
    )
    parts = []
    logs = []
    for count, weight, component, log_prior in zip(
        counts, component_weights, components, log_priors, strict=True
    ):
        points, log_weights = _sample(curve.observations, component, int(count), rng)
        parts.append(ImportanceDraws(component, float(weight), points, log_weights))
        # all draws of a component together have its prior mass
        logs.append(log_weights + log_prior - np.log(count))
    joint = np.concatenate(logs)
    log_evidence = float(logsumexp(joint))
    weights, k = smooth_weights(joint)
    return Audit(curve, tuple(parts), weights, k, log_evidence, seed)


def _sample(
    obs: Observations, component: GraftedCurve, count: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Draws for one component and their log weights.

    The draws are weights of features where the component has few, else values at the instants.
    """
    posterior = weight_space_posterior(component)
    exact = ExactLikelihood(obs, component)
    if posterior is None and component.columns is not None:
        raise InputError(
            f"audit: curves with effects are audited with up to {MAX_RANK} weights, and this one "
            "has more: fewer columns, or a longer bandwidth, have less"
        )
    if posterior is None:
        values = component.posterior.sample(component.instants, count, rng)
        sites = (
            values @ component.latent_sites.shift
            - 0.5 * values**2 @ component.latent_sites.precision
        )
        return values, exact(values) - sites + component.log_partition
    at_sites = posterior.at_sites(component.instants)
    half = solve_lower(posterior.root, np.eye(posterior.rank), transposed=True)  # A⁻¹ = half halfᵀ
    size = max(1, CACHED_VALUES // len(at_sites))

    def log_likelihood(points: Array) -> Array:
        return np.concatenate(
            [exact(points[a : a + size] @ at_sites.T) for a in range(0, len(points), size)]
        )

    first = StudentComponent(1.0, posterior.weights, lower_root(half @ half.T))
    return adaptive_sample(log_likelihood, first, count, rng, unimodal=exact.concave())


def _weighted_quantiles(values: Array, weights: Array, q: Array) -> Array:
    """Quantiles of weighted draws (n_draws, n_times): one row for each q."""
    order = np.argsort(values, axis=0)
    out = np.empty((q.size, values.shape[1]))
    for j in range(values.shape[1]):
        mass = np.cumsum(weights[order[:, j]])
        out[:, j] = np.interp(q, mass - 0.5 * weights[order[:, j]], values[order[:, j], j])
    return out
