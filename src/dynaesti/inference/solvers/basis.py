"""Few features that represent a smooth kernel.

The curve is b(t)·w + rest with w ~ N(0, I), where the rest is independent of the data.

RBF: values at Chebyshev points of the data's span, whitened. Within the span the rest is below 1e-8
of the variance; beyond it the rest is the uncertainty of a forecast. Level, Trend and Periodic have
exact features. The dense basis has the data's own instants as points.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dtrtrs
from scipy.special import ive

from dynaesti.core import Array, Ints
from dynaesti.errors import InputError
from dynaesti.model import (
    RBF,
    BaseKernel,
    Kernel,
    Level,
    Periodic,
    Trend,
    effect_sds,
    of_the_curve,
)

DROP = 1e-8  # smaller eigenvalues, relative to the largest, are below the nugget: dropped


class Basis(Protocol):
    """Features of one kernel; `rank` is their number."""

    rank: int

    def features(self, t: Array) -> Array:
        """b(t): (n_times, rank)."""

    def slopes(self, t: Array) -> Array:
        """Derivatives db/dt: (n_times, rank)."""


class LineBasis:
    """Level and Trend: one feature."""

    rank = 1

    def __init__(self, summand: BaseKernel) -> None:
        self.summand = summand
        self.sd = float(np.sqrt(summand.variance))

    def features(self, t: Array) -> Array:
        line = self.summand.line(t) if isinstance(self.summand, Trend) else np.ones_like(t)
        return self.sd * line[:, None]

    def slopes(self, t: Array) -> Array:
        slope = 1 / self.summand.value_of("reach") if isinstance(self.summand, Trend) else 0.0
        return np.full((t.size, 1), self.sd * slope)


class FourierBasis:
    """Periodic: exp((cos φ − 1)/h²) = Σ_k c_k cos kφ with Bessel coefficients."""

    def __init__(self, summand: Periodic) -> None:
        self.period = summand.period
        sharp = summand.value_of("bandwidth") ** -2
        k = np.arange(int(12 + 8 * np.sqrt(sharp)) + 1)
        power = summand.variance * ive(k, sharp) * np.where(k > 0, 2.0, 1.0)
        keep = power > 1e-12 * summand.variance
        self.k = k[keep]
        self.sd = np.sqrt(power[keep])
        self.rank = 2 * self.k.size - 1

    def _waves(self, t: Array) -> tuple[Array, Array, Array]:
        speed = np.asarray(2 * np.pi * self.k / self.period, dtype=np.float64)
        phase = t[:, None] * speed
        return np.asarray(self.sd * np.cos(phase)), np.asarray(self.sd * np.sin(phase)), speed

    def features(self, t: Array) -> Array:
        cosine, sine, _ = self._waves(t)
        return np.hstack([cosine, sine[:, 1:]])

    def slopes(self, t: Array) -> Array:
        cosine, sine, speed = self._waves(t)
        return np.hstack([-speed * sine, (speed * cosine)[:, 1:]])


@lru_cache(maxsize=256)
def _cached_points(length: float) -> tuple[Array, Array]:
    """`_rbf_points`, kept for lengths that occur again."""
    return _rbf_points(length)


def expected_rank(kernel: Kernel, span: float) -> float:
    """Approximate number of features of a low-rank kernel over a span."""
    return sum(
        2.0 * span / summand.value_of("bandwidth") + 6
        if isinstance(summand, RBF) and not summand.constant
        else 1
        for summand in of_the_curve(kernel)
    )


def _rbf_points(length: float) -> tuple[Array, Array]:
    """Chebyshev points on [0, length] and the whitening matrix (n_points, rank) of a unit RBF.

    `length` and the points are in bandwidths.
    """
    count = int(3.2 * length + 16)
    z = 0.5 * length * (1 - np.cos(np.pi * (np.arange(count) + 0.5) / count))
    values, vectors = eigh(np.exp(-0.5 * (z[:, None] - z) ** 2))
    keep = values > DROP * values[-1]
    return z, np.ascontiguousarray(vectors[:, keep] / np.sqrt(values[keep]))


def round_up_length(length: float) -> float:
    """The next length on a grid of ratio 1.1, so that similar spans share one cached basis."""
    return float(1.1 ** np.ceil(np.log(max(length, 1e-3)) / np.log(1.1) - 1e-9))


def lower_root(cov: Array) -> Array:
    """The lower triangle L with L Lᵀ = cov.

    Raises
    ------
    ContradictionError
        If cov is not positive definite.
    """
    try:
        return np.asarray(np.linalg.cholesky(cov), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ContradictionError(
            "the observations contradict each other, or the prior, beyond what double precision "
            "can tell; give them "
            "larger sds, or bring them to a common scale"
        ) from None


class ContradictionError(InputError, np.linalg.LinAlgError):
    """A covariance that is not positive definite.

    Internal code may catch it as a `LinAlgError`; otherwise the user reads its message.
    """


def solve_lower(root: Array, right: Array, transposed: bool = False) -> Array:
    """L⁻¹ right (or L⁻ᵀ right) for a lower triangle L, by LAPACK directly.

    For matrices this small, SciPy's wrappers cost more than the solution.
    """
    return np.asarray(dtrtrs(root, right, lower=1, trans=int(transposed))[0])


class RbfBasis:
    """RBF on a span: whitened values at Chebyshev points."""

    def __init__(self, summand: RBF, first: float, last: float) -> None:
        self.h = summand.value_of("bandwidth")
        self.sd = float(np.sqrt(summand.variance))
        length = round_up_length((last - first) / self.h)
        self.origin = 0.5 * (first + last) - 0.5 * length * self.h
        self.z, self.whiten = (_cached_points if length < 50 else _rbf_points)(length)
        self.rank = self.whiten.shape[1]

    def _away(self, t: Array) -> Array:
        """Distances of times from the points, in bandwidths: (n_times, n_points)."""
        return ((t - self.origin) / self.h)[:, None] - self.z

    def features(self, t: Array) -> Array:
        with np.errstate(over="ignore"):  # forecasts at 1e200, where all features are 0
            return np.asarray(np.exp(-0.5 * self._away(t) ** 2) @ (self.sd * self.whiten))

    def slopes(self, t: Array) -> Array:
        away = self._away(t)
        return np.asarray((-away * np.exp(-0.5 * away**2)) @ (self.sd / self.h * self.whiten))


class DenseBasis:
    """Any kernel: whitened values at the given instants, one feature for each."""

    def __init__(self, kernel: Kernel, instants: Array) -> None:
        self.kernel = kernel
        self.instants = instants
        cov = kernel.cov(instants[:, None], instants)
        size = float(np.diag(cov).max())
        self.root = lower_root(cov + 1e-10 * size * np.eye(instants.size))
        self.rank = instants.size

    def features(self, t: Array) -> Array:
        return solve_lower(self.root, self.kernel.cov(self.instants[:, None], t)).T

    def slopes(self, t: Array) -> Array:
        return solve_lower(self.root, self.kernel.cov_slope(t[:, None], self.instants).T).T


class SideBySide:
    """The features of a sum of kernels: those of all summands, side by side."""

    def __init__(self, bases: Sequence[Basis]) -> None:
        self.bases = tuple(bases)
        self.rank = sum(basis.rank for basis in bases)

    def features(self, t: Array) -> Array:
        return np.hstack([basis.features(t) for basis in self.bases])

    def slopes(self, t: Array) -> Array:
        return np.hstack([basis.slopes(t) for basis in self.bases])


def summand_basis(summand: BaseKernel, first: float, last: float) -> Basis:
    """The features of one low-rank summand over a span of times."""
    if summand.constant:
        return LineBasis(Level(amplitude=float(np.sqrt(summand.variance))))
    if isinstance(summand, RBF):
        return RbfBasis(summand, first, last)
    if isinstance(summand, Periodic):
        return FourierBasis(summand)
    return LineBasis(summand)


class NoFeatures:
    """Effects of emissions: features that are 0 at all times, since the curve has none of them."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def features(self, t: Array) -> Array:
        return np.zeros((t.size, self.rank))

    def slopes(self, t: Array) -> Array:
        return np.zeros((t.size, self.rank))


def kernel_basis(kernel: Kernel, first: float, last: float) -> Basis:
    """The features of a low-rank kernel over a span of times."""
    summands = of_the_curve(kernel)
    return SideBySide([summand_basis(summand, first, last) for summand in summands])


def with_effects(basis: Basis, kernel: Kernel) -> Basis:
    """The basis of a kernel with features for effects of emissions, where it has any; they last."""
    n_effects = effect_sds(kernel).size
    return SideBySide([basis, NoFeatures(n_effects)]) if n_effects else basis


def ragged_features(
    kernel: Kernel, times: Array, starts: Ints, first: Array, last: Array
) -> tuple[Array, Ints, Ints, Ints]:
    """Features of many curves that share a low-rank kernel.

    An RBF depends on differences only, so that curves of similar length share one set of points,
    shifted; each curve's rank follows its own length.

    Parameters
    ----------
    kernel : Kernel
    times : array (n_sites,)
        Curve j has the times ``starts[j]:starts[j + 1]``.
    starts : int array (n_curves + 1,)
    first, last : array (n_curves,)
        Span of each curve's data.

    Returns
    -------
    flat, feature_start, ranks, site_start
        The fields of a `LowRankSolver`.
    """
    counts = np.diff(starts)
    lengths = np.ones(counts.size)
    scales = [
        summand.value_of("bandwidth")
        for summand in kernel.summands
        if isinstance(summand, RBF) and not summand.constant
    ]
    if scales:
        lengths = np.array([round_up_length(length) for length in (last - first) / min(scales)])
    ranks = np.empty(counts.size, dtype=np.int64)
    blocks: list[tuple[Ints, Array]] = []
    for length in np.unique(lengths):
        mine = np.flatnonzero(lengths == length)
        sites = np.concatenate([np.arange(starts[j], starts[j + 1]) for j in mine])
        middle = np.repeat(0.5 * (first[mine] + last[mine]), counts[mine])
        reach = 0.5 * length * min(scales) if scales else 0.5
        columns = [
            summand_basis(summand, -reach, reach).features(
                times[sites] - middle if isinstance(summand, RBF) else times[sites]
            )
            for summand in kernel.summands
        ]
        table = np.hstack(columns)
        ranks[mine] = table.shape[1]
        blocks.append((sites, table))
    sizes = counts * ranks
    feature_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    flat = np.empty(int(feature_start[-1]))
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    position = np.repeat(feature_start[:-1], counts) + within
    stride = np.repeat(counts, counts)
    for sites, table in blocks:
        flat[position[sites][:, None] + stride[sites][:, None] * np.arange(table.shape[1])] = table
    return flat, feature_start, ranks, starts
