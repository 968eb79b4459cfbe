"""Solvers in weight space: the curve is b(t)·w + rest with w ~ N(0, I) a priori.

The posterior of w is r × r for r features. `LowRankSolver` packs many curves of any length for one
compiled call; `DenseSolver` has as many features as instants, and uses LAPACK. Sites are given in
natural form on the curve itself: exp(shift·g − ½·precision·g²).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Bools, Ints, dot, jit, starts_of, symmetric_root
from dynaesti.inference.sites import Moments, NaturalGaussian
from dynaesti.inference.solvers.basis import Basis, kernel_basis, lower_root, solve_lower
from dynaesti.model import Kernel, effect_sds

SITES = 256  # sites at a time: a feature's block stays in the fastest cache
# feature values that a posterior keeps in memory: they are needed again, and to compute them takes
# longer than all else
KEPT = 100_000


@jit
def lowrank_weights(b: Array, tau: Array, nu: Array, a: Array, w: Array) -> tuple[bool, float]:
    """Compute the posterior of the weights.

    Loops run along the sites of one feature, so that vector units have long contiguous runs
    whatever the rank.

    Parameters
    ----------
    b : array (rank, n_sites)
        Features.
    tau, nu : array (n_sites,)
        Precision and shift of the latent sites.
    a : array (rank, rank)
        Receives L⁻¹, where A = I + B T Bᵀ = L Lᵀ is the precision of the weights.
    w : array (rank,)
        Receives the mean of the weights.

    Returns
    -------
    proper : bool
        Whether A is positive definite.
    log_partition : float
        log ∫ prior × sites.
    """
    r, n = b.shape
    scaled = np.empty(SITES)
    half = np.empty(r)
    a[:] = 0.0
    for i in range(r):
        a[i, i] = 1.0
        w[i] = 0.0
    for begin in range(0, n, SITES):
        end = min(begin + SITES, n)
        for i in range(r):
            row = b[i, begin:end]
            for s in range(end - begin):
                scaled[s] = tau[begin + s] * row[s]
            for k in range(i + 1):
                a[i, k] += dot(scaled[: end - begin], b[k, begin:end])
            w[i] += dot(row, nu[begin:end])
    if not _cholesky(a, r):
        return False, 0.0
    log_det = _invert_lower(a, r)
    total = 0.0
    for i in range(r):  # half = L⁻¹ c
        x = 0.0
        for k in range(i + 1):
            x += a[i, k] * w[k]
        half[i] = x
        total += x * x
    for k in range(r):  # w = L⁻ᵀ L⁻¹ c
        x = 0.0
        for i in range(k, r):
            x += a[i, k] * half[i]
        w[k] = x
    return True, 0.5 * total - log_det


@jit
def lowrank_at(b: Array, a: Array, w: Array, m: Array, v: Array) -> None:
    """Compute mean m and variance v of the curve at the sites whose features are b (rank, n).

    a and w are those of `lowrank_weights`.
    """
    r, n = b.shape
    scaled = np.empty(SITES)
    m[:] = 0.0
    v[:] = 0.0
    for begin in range(0, n, SITES):
        end = min(begin + SITES, n)
        for i in range(r):
            scaled[:] = 0.0
            fours = (i + 1) // 4 * 4
            for k in range(0, fours, 4):
                e = a[i, k]
                f = a[i, k + 1]
                g = a[i, k + 2]
                h = a[i, k + 3]
                for s in range(begin, end):
                    scaled[s - begin] += (e * b[k, s] + f * b[k + 1, s]) + (
                        g * b[k + 2, s] + h * b[k + 3, s]
                    )
            for k in range(fours, i + 1):
                f = a[i, k]
                row = b[k]
                for s in range(begin, end):
                    scaled[s - begin] += f * row[s]
            f = w[i]
            row = b[i]
            for s in range(begin, end):
                v[s] += scaled[s - begin] * scaled[s - begin]
                m[s] += f * row[s]


@jit
def _lowrank_marginals(
    jobs: Ints,
    features: Array,
    feature_start: Ints,
    ranks: Ints,
    site_start: Ints,
    precision: Array,
    shift: Array,
    mean: Array,
    var: Array,
    log_partition: Array,
    proper: Bools,
) -> None:
    """Compute posterior moments at every site of the chosen curves, and log ∫ prior × sites.

    Improper curves are flagged in ``proper``, and their moments are left as they were.
    """
    most = 0
    for job in jobs:
        most = max(most, ranks[job])
    store = np.empty((most, most))
    weights = np.empty(most)
    for job in jobs:
        r = ranks[job]
        first = site_start[job]
        last = site_start[job + 1]
        b = features[feature_start[job] : feature_start[job + 1]].reshape((r, last - first))
        a = store[:r, :r]
        w = weights[:r]
        proper[job], log_partition[job] = lowrank_weights(
            b, precision[first:last], shift[first:last], a, w
        )
        if proper[job]:
            lowrank_at(b, a, w, mean[first:last], var[first:last])


@jit
def _cholesky(a: Array, r: int) -> bool:
    """Factor the lower triangle in place; False if it is not positive definite."""
    for j in range(r):
        for k in range(j):
            f = a[j, k]
            for i in range(j, r):
                a[i, j] -= a[i, k] * f
        if not a[j, j] > 1e-14:
            return False
        root = np.sqrt(a[j, j])
        for i in range(j, r):
            a[i, j] /= root
    return True


@jit
def _invert_lower(a: Array, r: int) -> float:
    """Invert a lower triangle in place; return the log of its determinant (½ log |A|)."""
    log_det = 0.0
    for i in range(r):
        log_det += np.log(a[i, i])
    for j in range(r):
        a[j, j] = 1.0 / a[j, j]
        for i in range(j + 1, r):
            x = 0.0
            for k in range(j, i):
                x += a[i, k] * a[k, j]
            a[i, j] = -x / a[i, i]
    return log_det


@dataclass(frozen=True)
class LowRankSolver:
    """Many curves' features in one flat array.

    Curve j has ``features[feature_start[j]:feature_start[j + 1]]``, feature by feature.
    """

    features: Array
    feature_start: Ints
    ranks: Ints
    site_start: Ints

    @property
    def size(self) -> int:
        """Numbers that the solver keeps in memory."""
        return self.features.size

    def marginals(
        self,
        curves: Ints,
        latent_sites: NaturalGaussian,
        posterior: Moments,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Compute posterior moments at the sites of the chosen curves: see `Solver.marginals`."""
        _lowrank_marginals(
            curves,
            self.features,
            self.feature_start,
            self.ranks,
            self.site_start,
            *latent_sites,
            *posterior,
            log_partition,
            proper,
        )

    def squares(self) -> Array:
        """|b|² at every site: the prior variance that the features represent."""
        bounds = zip(self.feature_start[:-1], self.feature_start[1:], self.ranks, strict=True)
        parts = [self.features[a:b].reshape(rank, -1) for a, b, rank in bounds]
        return np.concatenate([np.einsum("ij,ij->j", part, part) for part in parts])


def pack_features(features: list[Array]) -> LowRankSolver:
    """One solver for curves with features (n_sites, rank) each."""
    sizes = np.array([f.size for f in features], dtype=np.int64)
    counts = np.array([len(f) for f in features], dtype=np.int64)
    return LowRankSolver(
        np.concatenate([f.T.ravel() for f in features]),
        starts_of(sizes),
        np.array([f.shape[1] for f in features], dtype=np.int64),
        starts_of(counts),
    )


@dataclass(frozen=True)
class DenseSolver:
    """Curves with one feature for each instant.

    It serves kernels without a small form, and as the reference for the other solvers.
    """

    features: list[Array]
    site_start: Ints

    def marginals(
        self,
        curves: Ints,
        latent_sites: NaturalGaussian,
        posterior: Moments,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Compute posterior moments at the sites of the chosen curves: see `Solver.marginals`."""
        for curve in curves:
            where = slice(self.site_start[curve], self.site_start[curve + 1])
            b = self.features[curve]
            tau = latent_sites.precision[where]
            nu = latent_sites.shift[where]
            try:
                root = lower_root(np.eye(b.shape[1]) + b.T @ (tau[:, None] * b))
            except np.linalg.LinAlgError:
                proper[curve] = False
                continue
            half = solve_lower(root, b.T)
            white_mean = half @ nu
            posterior.mean[where] = half.T @ white_mean
            posterior.variance[where] = np.einsum("ij,ij->j", half, half)
            log_partition[curve] = 0.5 * white_mean @ white_mean - np.log(np.diag(root)).sum()
            proper[curve] = True

    @property
    def size(self) -> int:
        """Numbers that the solver keeps in memory."""
        return sum(part.size for part in self.features)


class WeightPosterior:
    """The posterior curve of one component: weights N(mean, A⁻¹), plus the rest of the prior.

    The rest is the part of the prior that the features do not represent.

    Parameters
    ----------
    kernel : Kernel
    basis : Basis
    at_sites : array (n_sites, rank)
        Features at the sites.
    precision, shift : array (n_sites,)
        The latent sites.
    """

    def __init__(
        self, kernel: Kernel, basis: Basis, at_sites: Array, precision: Array, shift: Array
    ) -> None:
        self.kernel = kernel
        self.basis = basis
        # L of A = L Lᵀ
        self.root = lower_root(np.eye(basis.rank) + at_sites.T @ (precision[:, None] * at_sites))
        self.weights = solve_lower(
            self.root, solve_lower(self.root, at_sites.T @ shift), transposed=True
        )
        self.rank = basis.rank
        self.wider: Array | None = None  # W with WᵀW = I + the covariance correction
        has_effects = effect_sds(kernel).size > 0  # which no time brings back
        self._at_sites = at_sites if has_effects or at_sites.size <= KEPT else None

    def at_sites(self, instants: Array) -> Array:
        """Features (n_sites, rank) at the sites' own instants."""
        return self.basis.features(instants) if self._at_sites is None else self._at_sites

    def corrected(self, covariance_correction: Array) -> WeightPosterior:
        """The curve with covariance L⁻ᵀ (I + correction) L⁻¹ of its weights."""
        out = copy(self)
        out.wider = lower_root(np.eye(self.rank) + covariance_correction).T
        return out

    def last_weights(self, count: int) -> tuple[Array, Array]:
        """Mean and covariance of the last weights, which are effects of emissions."""
        spread = self._spread(np.eye(self.rank)[self.rank - count :])
        return self.weights[self.rank - count :], spread.T @ spread

    def _spread(self, rows: Array) -> Array:
        """L⁻¹bᵀ: its columns' inner products are posterior covariances."""
        plain = solve_lower(self.root, rows.T)
        return plain if self.wider is None else self.wider @ plain

    def marginals(self, t: Array) -> tuple[Array, Array]:
        """Mean and variance of the curve at each time."""
        b = self.basis.features(t)
        spread = self._spread(b)
        rest = np.maximum(_diagonal(self.kernel.cov, t) - np.einsum("ij,ij->i", b, b), 0.0)
        return b @ self.weights, np.einsum("ij,ij->j", spread, spread) + rest

    def covariance(self, t: Array) -> Array:
        """Covariance of the curve between all pairs of times."""
        b = self.basis.features(t)
        spread = self._spread(b)
        return spread.T @ spread + self._rest(t, b)

    def _rest(self, t: Array, b: Array) -> Array:
        """Prior covariance that the features do not represent."""
        return self.kernel.cov(t[:, None], t) - b @ b.T

    def slopes(self, t: Array) -> tuple[Array, Array, Array]:
        """Mean and variance of the slope, and its covariance with the value, at each time."""
        b = self.basis.features(t)
        d = self.basis.slopes(t)
        value = self._spread(b)
        slope = self._spread(d)
        rest = np.maximum(_diagonal(self.kernel.cov_slopes, t) - np.einsum("ij,ij->i", d, d), 0.0)
        cross = _diagonal(self.kernel.cov_slope, t) - np.einsum("ij,ij->i", d, b)
        return (
            d @ self.weights,
            np.einsum("ij,ij->j", slope, slope) + rest,
            np.einsum("ij,ij->j", slope, value) + cross,
        )

    def sample(self, t: Array, size: int, rng: np.random.Generator) -> Array:
        """Joint draws of the curve at the times: (size, n_times)."""
        b = self.basis.features(t)
        z = rng.standard_normal((size, self.rank))
        z = z if self.wider is None else z @ self.wider
        w = self.weights + solve_lower(self.root, z.T, transposed=True).T
        draws = w @ b.T
        unknown = np.flatnonzero(
            _diagonal(self.kernel.cov, t) - np.einsum("ij,ij->i", b, b)
            > 1e-7 * _diagonal(self.kernel.cov, t)
        )
        if unknown.size:
            root = symmetric_root(self._rest(t[unknown], b[unknown]))
            draws[:, unknown] += rng.standard_normal((size, unknown.size)) @ root
        return draws


def _diagonal(cov: Callable[[Array, Array], Array], t: Array) -> Array:
    """Covariance of each time with itself."""
    return np.broadcast_to(cov(t, t), t.shape)


def lowrank_basis(kernel: Kernel, instants: Array) -> Basis:
    """Few features over the span of the instants."""
    return kernel_basis(kernel, float(instants.min()), float(instants.max()))
