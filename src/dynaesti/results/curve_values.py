"""Values of a curve at any times: marginals, moments, covariance, draws, densities, slopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from dynaesti.core import (
    Array,
    as_rng,
    as_vector,
    check_size,
    raise_where,
    single_blas_thread,
    whole_number,
)
from dynaesti.inference import HERMITE_WEIGHTS, HERMITE_X, Marginals
from dynaesti.model import REAL, UNIT

if TYPE_CHECKING:
    from dynaesti.inference import Audit, Observations
    from dynaesti.results.curve import Curve

MOST_AUDITED = 500  # instants of a curve whose exact posterior is asked for its moments
MIN_VARIANCE = 1e-300  # rounding may leave a variance at or below 0
SINGULAR = 1e-10  # part of the largest variance that keeps a covariance invertible
MEAN_STEP = 1e-5  # of central differences of a mean function, in spans of the data


@dataclass(frozen=True)
class Derivative:
    """Slope of a curve at some times, on the link's scale.

    Parameters
    ----------
    mean, sd : array (n_times,)
        Mean and standard deviation of the slope, per unit of time.
    rising : array (n_times,)
        Probability that the curve rises.
    """

    mean: Array
    sd: Array
    rising: Array


def offsets_of(curve: Curve, t: Any) -> Array:
    """Users' times as offsets on the curve's time axis, (n_times,)."""
    return curve.observations.axis.offsets(t, "t")


@single_blas_thread()
def latent_marginals(curve: Curve, t: Any) -> Marginals:
    """Latent marginals of every component at the times."""
    offsets = offsets_of(curve, t)
    weights, _, components = curve.weighted_components()
    pairs = [c.posterior.marginals(offsets) for c in components]
    base = curve.observations.mean_at(offsets)
    return Marginals(
        weights[:, None],
        base + np.array([m for m, _ in pairs]),
        np.sqrt(np.maximum([v for _, v in pairs], MIN_VARIANCE)),
    )


def moments(curve: Curve, t: Any, audit: Callable[[], Audit]) -> tuple[Array, Array]:
    """Mean and sd at each time, on the link's scale.

    Where a Gaussian's far tail would decide them (see `Marginals.heavy`), they are those of the
    exact posterior, which `audit` returns. Beyond the data nothing cuts that tail off, and of long
    series the exact posterior would take minutes: there they are those of the central part of the
    distribution.
    """
    marginals = curve.marginals(t)
    heavy = marginals.heavy(curve.link)
    if not heavy.any():
        return marginals.mean(curve.link), marginals.sd(curve.link)
    offsets = offsets_of(curve, t)
    first, last = curve.observations.span
    auditable = curve.observations.instants.size <= MOST_AUDITED
    exact = heavy & (offsets >= first) & (offsets <= last) & auditable
    central = heavy & ~exact
    mean = np.empty(heavy.size)
    sd = np.empty(heavy.size)
    light = marginals.take(~heavy)
    mean[~heavy] = light.mean(curve.link)
    sd[~heavy] = light.sd(curve.link)
    mean[central], sd[central] = marginals.take(central).trusted_moments(curve.link)
    if exact.any():
        times = curve.observations.axis.restore(offsets[exact])
        mean[exact] = audit().mean(times)
        sd[exact] = audit().sd(times)
    return mean, sd


@single_blas_thread()
def latent_covariance(curve: Curve, t: Any) -> Array:
    """Latent covariance between all pairs of times, (n_times, n_times)."""
    offsets = offsets_of(curve, t)
    weights, _, components = curve.weighted_components()
    means = curve.marginals(t).means
    away = means - weights @ means
    within = sum(
        w * c.posterior.covariance(offsets) for w, c in zip(weights, components, strict=True)
    )
    return np.asarray(within + (weights[:, None] * away).T @ away)


@single_blas_thread()
def sample_curves(curve: Curve, t: Any, size: int, seed: int | np.random.Generator | None) -> Array:
    """Whole curves drawn jointly, (size, n_times). Each draw picks its component."""
    size = whole_number(size, "size", 1)
    rng = as_rng(seed)
    offsets = offsets_of(curve, t)
    check_size(size * max(offsets.size, 1), "size")
    weights, _, components = curve.weighted_components()
    counts = rng.multinomial(size, weights)
    draws = [
        c.posterior.sample(offsets, int(k), rng)
        for k, c in zip(counts, components, strict=True)
        if k
    ]
    latent = np.concatenate(draws)[rng.permutation(size)] + curve.observations.mean_at(offsets)
    return curve.link.value(latent)


@single_blas_thread()
def log_density(curve: Curve, t: Any, y: Any) -> float:
    """Joint log density of the curve passing through the points (t, y)."""
    offsets = offsets_of(curve, t)
    x = _latent_values(curve, as_vector(y, "y", offsets.size))
    weights, _, components = curve.weighted_components()
    means = curve.marginals(t).means
    logs = [
        np.log(w) + _log_normal(x - m, c.posterior.covariance(offsets))
        for w, m, c in zip(weights, means, components, strict=True)
    ]
    return float(np.logaddexp.reduce(logs) - np.log(np.abs(curve.link.slope(x))).sum())


def _latent_values(curve: Curve, values: Array) -> Array:
    """Values on the link's scale before the link; those outside its range are refused."""
    if curve.link.range != REAL:
        outside = (values <= 0) | ((values >= 1) & (curve.link.range == UNIT))
        raise_where(outside, "y", f"not {curve.link.range}", "give values on the link's scale")
    x = curve.link.latent(values)
    raise_where(
        ~np.isfinite(x), "y", "outside the link's range", "give values that the curve can take"
    )
    return x


def _log_normal(away: Array, cov: Array) -> float:
    """Log N(away; 0, cov), also for covariances that are singular to rounding."""
    size = float(np.diag(cov).max())
    root = np.linalg.cholesky(cov + SINGULAR * size * np.eye(away.size))
    half = np.linalg.solve(root, away)
    return float(
        -0.5 * half @ half - np.log(np.diag(root)).sum() - 0.5 * away.size * np.log(2 * np.pi)
    )


@single_blas_thread()
def derivative(curve: Curve, t: Any) -> Derivative:
    """Slope of the curve at each time, on the link's scale."""
    offsets = offsets_of(curve, t)
    weights, _, components = curve.weighted_components()
    marginals = curve.marginals(t)
    link = curve.link
    first = np.zeros(offsets.size)
    second = np.zeros(offsets.size)
    rising = np.zeros(offsets.size)
    for w, m, sd, c in zip(weights, marginals.means, marginals.sds, components, strict=True):
        slope, var, cross = c.posterior.slopes(offsets)
        slope = slope + _mean_slope(curve.observations, offsets)
        # dy/dt = g′(x)·x′ with (x, x′) jointly Gaussian: x′ given x is a line
        # plus noise, then integrate over x
        x = m[:, None] + sd[:, None] * HERMITE_X
        line = slope[:, None] + (cross / sd)[:, None] * HERMITE_X
        noise = np.maximum(var - (cross / sd) ** 2, 0.0)
        gain = link.slope(x)
        first += w * ((gain * line) @ HERMITE_WEIGHTS)
        second += w * ((gain**2 * (line**2 + noise[:, None])) @ HERMITE_WEIGHTS)
        with np.errstate(divide="ignore", invalid="ignore"):
            rising += w * np.where(
                var > 0,
                ndtr(link.sign * slope / np.sqrt(var)),
                0.5 * (1 + link.sign * np.sign(slope)),
            )
    return Derivative(first, np.sqrt(np.maximum(second - first**2, 0.0)), rising)


def _mean_slope(observations: Observations, offsets: Array) -> Array:
    """Slope of the prior mean at the offsets, (n_times,); 0 where it is a number."""
    if not callable(observations.mean):
        return np.zeros(offsets.size)
    first, last = observations.span
    step = MEAN_STEP * max(1e-12, last - first)
    ahead = observations.mean_at(offsets + step)
    behind = observations.mean_at(offsets - step)
    return (ahead - behind) / (2 * step)
