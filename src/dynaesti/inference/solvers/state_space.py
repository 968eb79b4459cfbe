"""The state-space solver: Matérn and Wiener curves by a Kalman filter and its adjoint.

The cost is linear in the number of sites. Filtering uses covariances, and the backward pass is that
of Bryson and Frazier: no matrix is inverted. So a negative site that makes a filtered variance
negative does no harm as long as the whole posterior is proper. That is read from the signs of the
pivots 1 + τs: by Sylvester's law of inertia the posterior is proper if and only if as many positive
sites as negative ones have a negative pivot. Kernels with features (Level, Trend, RBF, Periodic)
join as constant states, observed through b(t).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, jit, longest_row, symmetric_root
from dynaesti.inference.sites import Moments, NaturalGaussian
from dynaesti.inference.solvers.basis import Basis, SideBySide, summand_basis
from dynaesti.model import BaseKernel, Kernel, Level, Matern, Wiener


@dataclass(frozen=True)
class StateSpaceModel:
    """A curve at rising instants as a Markov chain: x_k = A_k x_{k−1} + noise Q_k, curve = H_k x_k.

    The first d states follow A (n, d, d) and Q; the others are constant. `start` is the covariance
    at the first instant.
    """

    transition: Array
    noise: Array
    start: Array
    seen: Array  # H, (n, states)
    seen_slope: Array | None


class MarkovChain(NamedTuple):
    """The arrays of a `StateSpaceModel` that compiled passes read."""

    transition: Array  # (n, d, d)
    noise: Array  # (n, d, d)
    start: Array  # (states, states)
    seen: Array  # (n, states)


@jit
def _smooth(
    chain: MarkovChain, latent: NaturalGaussian, posterior: Moments, reach: Array, gain: Array
) -> tuple[float, bool]:
    """Compute posterior moments of H_k x_k for every k; return (log ∫ prior × sites, proper).

    ``reach`` (n, states) and ``gain`` (n, 2) are memory: P_k Hᵀ and the pivot terms for the
    backward pass.
    """
    log_partition, proper = _filter(chain, latent, posterior, reach, gain)
    if not proper:
        return 0.0, False
    return log_partition, _backward(chain, posterior, reach, gain)


@jit
def _predict(a: Array, noise: Array, x: Array, p: Array, moved: Array, column: Array) -> None:
    """Move mean x and covariance P one transition on: A x, and A P Aᵀ + Q in the moving block."""
    d = a.shape[0]
    states = x.size
    for i in range(d):  # rows of the moving block: A P
        for j in range(states):
            s = 0.0
            for q in range(d):
                s += a[i, q] * p[q, j]
            moved[i, j] = s
        s = 0.0
        for q in range(d):
            s += a[i, q] * x[q]
        column[i] = s
    for i in range(d):
        x[i] = column[i]
        for j in range(d, states):
            p[i, j] = moved[i, j]
            p[j, i] = moved[i, j]
    for i in range(d):
        for j in range(i + 1):
            s = noise[i, j]
            for q in range(d):
                s += moved[i, q] * a[j, q]
            p[i, j] = s
            p[j, i] = s


@jit
def _filter(
    chain: MarkovChain, latent: NaturalGaussian, predicted: Moments, reach: Array, gain: Array
) -> tuple[float, bool]:
    """Forward pass: one-step predictions at every site; returns (log ∫ prior × sites, proper)."""
    n, states = chain.seen.shape
    d = chain.transition.shape[1]
    p = chain.start.copy()
    x = np.zeros(states)
    moved = np.empty((d, states))
    column = np.empty(d)
    log_partition = 0.0
    flips = 0
    for k in range(n):
        if k > 0:
            _predict(chain.transition[k], chain.noise[k], x, p, moved, column)
        h = chain.seen[k]
        u = reach[k]
        s = 0.0
        e = 0.0
        for i in range(states):
            t = 0.0
            for j in range(states):
                t += p[i, j] * h[j]
            u[i] = t
            s += h[i] * t
            e += h[i] * x[i]
        tau = latent.precision[k]
        nu = latent.shift[k]
        pivot = 1.0 + tau * s
        if abs(pivot) < 1e-10:
            return 0.0, False
        if pivot < 0.0:
            flips += 1 if tau > 0.0 else -1
        kappa = tau / pivot
        g = (nu - tau * e) / pivot
        log_partition += (
            -0.5 * np.log(abs(pivot)) + (0.5 * nu * nu * s + nu * e - 0.5 * tau * e * e) / pivot
        )
        gain[k, 0] = kappa
        gain[k, 1] = g
        predicted.mean[k] = e
        predicted.variance[k] = s
        for i in range(states):
            x[i] += u[i] * g
            for j in range(states):
                p[i, j] -= kappa * u[i] * u[j]
    return log_partition, flips == 0


@jit
def _through_transition(a: Array, big: Array, small: Array, column: Array) -> None:
    """Move the adjoint Λ, λ one transition back: AᵀΛA and Aᵀλ in the moving block."""
    d = a.shape[0]
    states = small.size
    for j in range(states):
        for i in range(d):
            s = 0.0
            for q in range(d):
                s += a[q, i] * big[q, j]
            column[i] = s
        for i in range(d):
            big[i, j] = column[i]
    for j in range(states):
        for i in range(d):
            s = 0.0
            for q in range(d):
                s += big[j, q] * a[q, i]
            column[i] = s
        for i in range(d):
            big[j, i] = column[i]
    for i in range(d):
        s = 0.0
        for q in range(d):
            s += a[q, i] * small[q]
        column[i] = s
    for i in range(d):
        small[i] = column[i]


@jit
def _backward(chain: MarkovChain, posterior: Moments, reach: Array, gain: Array) -> bool:
    """Backward pass: predictions become posterior moments; True if all variances are positive."""
    n, states = chain.seen.shape
    big = np.zeros((states, states))  # Λ and λ of the adjoint
    small = np.zeros(states)
    bu = np.empty(states)
    column = np.empty(chain.transition.shape[1])
    proper = True
    for k in range(n - 1, -1, -1):
        h = chain.seen[k]
        u = reach[k]
        kappa = gain[k, 0]
        g = gain[k, 1]
        ul = 0.0
        for i in range(states):
            ul += u[i] * small[i]
            t = 0.0
            for j in range(states):
                t += big[i, j] * u[j]
            bu[i] = t
        uu = 0.0
        for i in range(states):
            uu += u[i] * bu[i]
        for i in range(states):  # Λ ← hκhᵀ + CᵀΛC and λ ← Cᵀλ − hg with C = I − κuhᵀ
            small[i] -= h[i] * (kappa * ul + g)
            for j in range(states):
                big[i, j] += -kappa * (h[i] * bu[j] + bu[i] * h[j]) + h[i] * h[j] * (
                    kappa + kappa * kappa * uu
                )
        m = 0.0
        v = 0.0
        for i in range(states):
            m += u[i] * small[i]
            t = 0.0
            for j in range(states):
                t += big[i, j] * u[j]
            v += u[i] * t
        posterior.mean[k] -= m
        posterior.variance[k] -= v
        if not posterior.variance[k] > 0.0:
            proper = False
        if k > 0:
            _through_transition(chain.transition[k], big, small, column)
    return proper


def state_space_model(
    kernel: Kernel, instants: Array, span: tuple[float, float], begins: Ints | None = None
) -> StateSpaceModel:
    """The Markov form of a kernel at rising instants.

    Parameters
    ----------
    kernel : Kernel
    instants : array (n,)
        Rising within each curve.
    span : (float, float)
        Times that the features of constant states cover.
    begins : int array, optional
        Indices at which curves begin, the first at 0, for many curves in a row.
    """
    moving = [summand for summand in kernel.summands if not summand.has_finite_basis]
    gaps = np.diff(instants, prepend=instants[0])
    if begins is not None:
        gaps[begins] = 0.0
    parts = [_moving(summand, instants, gaps) for summand in moving]
    basis: Basis = SideBySide(
        [summand_basis(summand, *span) for summand in kernel.summands if summand.has_finite_basis]
    )
    size = sum(part.start.shape[0] for part in parts)
    n = instants.size
    transition = np.zeros((n, size, size))
    noise = np.zeros((n, size, size))
    start = np.eye(size + basis.rank)
    start[:size, :size] = 0.0
    seen = np.zeros((n, size + basis.rank))
    slope = np.zeros((n, size + basis.rank))
    at = 0
    for part in parts:
        block = slice(at, at + part.start.shape[0])
        transition[:, block, block] = part.transition
        noise[:, block, block] = part.noise
        start[block, block] = part.start
        seen[:, at] = 1.0
        if block.stop - at > 1:
            slope[:, at + 1] = 1.0
        at = block.stop
    if basis.rank:
        seen[:, size:] = basis.features(instants)
        slope[:, size:] = basis.slopes(instants)
    smooth = all(
        not isinstance(summand, Wiener) and getattr(summand, "order", 2) > 1 for summand in moving
    )
    return StateSpaceModel(transition, noise, start, seen, slope if smooth else None)


@dataclass(frozen=True)
class _Part:
    """One moving summand: transitions and noise (n, d, d), and covariance at the start (d, d)."""

    transition: Array
    noise: Array
    start: Array


def _moving(summand: BaseKernel, instants: Array, gaps: Array) -> _Part:
    """The states of a Wiener or Matérn summand."""
    if isinstance(summand, Wiener):
        noise = summand.variance * np.diff(
            summand.elapsed(instants), prepend=summand.elapsed(instants[:1])
        )
        start = summand.variance * (summand.start**2 + summand.elapsed(instants[:1]))
        return _Part(np.ones((gaps.size, 1, 1)), noise[:, None, None], start[:, None])
    assert isinstance(summand, Matern)
    rate = summand.rate / summand.value_of("bandwidth")
    # companion form of (d/dt + rate)^order; its exponential is e^{-rate·dt} times a finite series,
    # since the rest of the matrix is nilpotent
    nilpotent = companion(summand.order, rate) + rate * np.eye(summand.order)
    series = np.zeros((gaps.size, summand.order, summand.order))
    power = np.eye(summand.order)
    factorial = 1.0
    for k in range(summand.order):
        series += (gaps**k / factorial)[:, None, None] * power
        power = power @ nilpotent
        factorial = factorial * (k + 1)
    transition = np.exp(-rate * gaps)[:, None, None] * series
    start = summand.variance * stationary_covariance(summand.order, rate)
    noise = start - transition @ start @ transition.transpose(0, 2, 1)
    return _Part(transition, noise, start)


def companion(order: int, rate: float) -> Array:
    """Companion matrix of (d/dt + rate)^order."""
    last = {1: [-rate], 2: [-(rate**2), -2 * rate], 3: [-(rate**3), -3 * rate**2, -3 * rate]}[order]
    matrix = np.diag(np.ones(order - 1), 1)
    matrix[-1] = last
    return matrix


def stationary_covariance(order: int, rate: float) -> Array:
    """Covariance of the curve and its derivatives at one time, for unit variance."""
    if order == 1:
        return np.ones((1, 1))
    if order == 2:
        return np.diag([1.0, rate**2])
    k = rate**2 / 3
    return np.array([[1.0, 0.0, -k], [0.0, k, 0.0], [-k, 0.0, rate**4]])


@jit
def _smooth_curves(
    curves: Ints,
    site_start: Ints,
    chains: MarkovChain,
    latent: NaturalGaussian,
    posterior: Moments,
    log_partition: Array,
    proper: Bools,
) -> None:
    """Compute posterior moments of the chosen curves, one after the other.

    `chains` holds all curves end to end, with a start for each.
    """
    longest = longest_row(site_start, curves)
    reach = np.empty((longest, chains.seen.shape[1]))
    gain = np.empty((longest, 2))
    for curve in curves:
        a = site_start[curve]
        b = site_start[curve + 1]
        log_partition[curve], proper[curve] = _smooth(
            MarkovChain(
                chains.transition[a:b], chains.noise[a:b], chains.start[curve], chains.seen[a:b]
            ),
            NaturalGaussian(latent.precision[a:b], latent.shift[a:b]),
            Moments(posterior.mean[a:b], posterior.variance[a:b]),
            reach[: b - a],
            gain[: b - a],
        )


@dataclass(frozen=True)
class StateSpaceSolver:
    """Curves as Markov chains of equal dimensions, laid end to end.

    `chains.start` (n_curves, states, states) has one entry for each curve.
    """

    chains: MarkovChain
    site_start: Ints

    @property
    def size(self) -> int:
        """Numbers that the solver keeps in memory."""
        return sum(part.size for part in self.chains)

    def marginals(
        self,
        curves: Ints,
        latent_sites: NaturalGaussian,
        posterior: Moments,
        log_partition: Array,
        proper: Bools,
    ) -> None:
        """Compute posterior moments at the sites of the chosen curves: see `Solver.marginals`."""
        _smooth_curves(
            curves, self.site_start, self.chains, latent_sites, posterior, log_partition, proper
        )


def pack_state_space(chains: list[StateSpaceModel], site_start: Ints) -> StateSpaceSolver:
    """One solver for chains of equal dimensions."""
    transition, noise, seen = (
        np.concatenate([getattr(link, name) for link in chains])
        for name in ("transition", "noise", "seen")
    )
    start = np.stack([link.start for link in chains])
    return StateSpaceSolver(MarkovChain(transition, noise, start, seen), site_start)


def is_markov(kernel: Kernel) -> bool:
    """Whether a kernel is a Markov chain that does not depend on the span of the data.

    That is Matérn, with or without a level.
    """
    return not kernel.low_rank and all(
        isinstance(summand, Matern | Level) for summand in kernel.summands
    )


def batched_state_space(kernel: Kernel, times: Array, site_start: Ints) -> StateSpaceSolver:
    """The solver for many curves under one Markov kernel, built in one call."""
    whole = state_space_model(kernel, times, (0.0, 1.0), site_start[:-1])
    start = np.broadcast_to(whole.start, (site_start.size - 1, *whole.start.shape)).copy()
    return StateSpaceSolver(
        MarkovChain(whole.transition, whole.noise, start, whole.seen), site_start
    )


class StateSpacePosterior:
    """The posterior curve of one component in state space.

    Times at which it is evaluated are inserted among the instants as flat sites.
    """

    def __init__(self, kernel: Kernel, instants: Array, precision: Array, shift: Array) -> None:
        self.kernel = kernel
        self.instants = instants
        self.precision = precision
        self.shift = shift
        self.span = float(instants.min()), float(instants.max())

    def _weave(self, t: Array) -> tuple[StateSpaceModel, Array, Array, Ints]:
        """Insert new times among the instants.

        Returns
        -------
        chain : StateSpaceModel
            The chain over instants and new times.
        precision, shift : array
            Its sites, flat at the new times.
        index : int array (n_times,)
            Index of each new time in the chain.
        """
        both = np.concatenate([self.instants, t])
        order = np.argsort(both, kind="stable")
        index = np.empty(both.size, dtype=np.int64)
        index[order] = np.arange(both.size)
        precision = np.zeros(both.size)
        shift = np.zeros(both.size)
        precision[index[: self.instants.size]] = self.precision
        shift[index[: self.instants.size]] = self.shift
        return (
            state_space_model(self.kernel, both[order], self.span),
            precision,
            shift,
            index[self.instants.size :],
        )

    @staticmethod
    def _run(
        chain: StateSpaceModel, seen: Array, precision: Array, shift: Array
    ) -> tuple[Array, Array]:
        """Posterior mean and variance of ``seen`` · state at every point of a chain."""
        found = Moments(np.empty(len(seen)), np.empty(len(seen)))
        _smooth(
            MarkovChain(chain.transition, chain.noise, chain.start, np.ascontiguousarray(seen)),
            NaturalGaussian(precision, shift),
            found,
            np.empty(seen.shape),
            np.empty((len(seen), 2)),
        )
        return found.mean, found.variance

    def marginals(self, t: Array) -> tuple[Array, Array]:
        """Mean and variance of the curve at each time."""
        chain, precision, shift, index = self._weave(t)
        mean, var = self._run(chain, chain.seen, precision, shift)
        rest = sum(
            (summand.cov(t, t) - np.einsum("ij,ij->i", b, b) for summand, b in self._featured(t)),
            np.zeros(t.size),
        )
        return mean[index], var[index] + np.maximum(rest, 0.0)

    def _featured(self, t: Array) -> list[tuple[BaseKernel, Array]]:
        """Summands that are constant states, with their features at times t.

        The prior variance that the features do not represent is added to the posterior's.
        """
        return [
            (summand, summand_basis(summand, *self.span).features(t))
            for summand in self.kernel.summands
            if summand.has_finite_basis
        ]

    def covariance(self, t: Array) -> Array:
        """Covariance of the curve between all pairs of times.

        Column j is the response of the mean to a unit shift at time j.
        """
        chain, precision, _, index = self._weave(t)
        cov = np.empty((t.size, t.size))
        for j in range(t.size):
            impulse = np.zeros(precision.size)
            impulse[index[j]] = 1.0
            cov[j] = self._run(chain, chain.seen, precision, impulse)[0][index]
        return 0.5 * (cov + cov.T) + sum(
            (summand.cov(t[:, None], t) - b @ b.T for summand, b in self._featured(t)),
            np.zeros(cov.shape),
        )

    def slopes(self, t: Array) -> tuple[Array, Array, Array]:
        """Mean and variance of the slope, and its covariance with the value, at each time."""
        chain, precision, shift, index = self._weave(t)
        if chain.seen_slope is None:
            self.kernel.cov_slope(t[:1], t[:1])  # raises the kernel's own explanation
            raise AssertionError
        value = chain.seen.copy()
        slope = chain.seen.copy()
        both = chain.seen.copy()
        slope[index] = chain.seen_slope[index]
        both[index] += chain.seen_slope[index]
        mean, var = self._run(chain, slope, precision, shift)
        value_var = self._run(chain, value, precision, shift)[1]
        sum_var = self._run(chain, both, precision, shift)[1]
        rest, cross = self._slope_rest(t)
        return mean[index], var[index] + rest, 0.5 * (sum_var - var - value_var)[index] + cross

    def _slope_rest(self, t: Array) -> tuple[Array, Array]:
        """Variance of slopes, and covariance with the value, that features do not represent."""
        var = np.zeros(t.size)
        cross = np.zeros(t.size)
        for summand, b in self._featured(t):
            d = summand_basis(summand, *self.span).slopes(t)
            var += summand.cov_slopes(t, t) - np.einsum("ij,ij->i", d, d)
            cross += summand.cov_slope(t, t) - np.einsum("ij,ij->i", d, b)
        return np.maximum(var, 0.0), cross

    def sample(self, t: Array, size: int, rng: np.random.Generator) -> Array:
        """Joint draws of the curve at the times: (size, n_times)."""
        mean, _ = self.marginals(t)
        return mean + rng.standard_normal((size, t.size)) @ symmetric_root(self.covariance(t))
