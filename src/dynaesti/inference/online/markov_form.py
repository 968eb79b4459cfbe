"""Kernels as Markov processes of few states, for filters that live from answer to answer.

Every kernel of a mixture is a constant level plus moving parts. A level is one state, Matérn
curves of order ½, 3/2 and 5/2 have one, two and three, exactly. An RBF has no finite state; the
process with five states whose covariance is nearest stands for it.

All states have unit variance and are uncorrelated before the first answer, so that over a gap
P ← A (P − I) Aᵀ + I. The transition A over a gap d is a sum of modes, Re(e^{ρd} dᵖ M).
All kernels have equally many states; those beyond a kernel's own are nowhere seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag, solve_continuous_lyapunov

from dynaesti.core import Array, Ints
from dynaesti.errors import InputError
from dynaesti.inference.solvers.state_space import companion, stationary_covariance
from dynaesti.model import RBF, BaseKernel, Kernel, Matern

LARGEST = 5  # states of one summand
MOST_STATES = 12  # of one kernel: the cost of an answer grows with their square
# A level that a kernel lacks is there with this sd, relative to the curve's: its covariance with
# the curve tells how far a common error of the mean is corrected by the answers.
UNSEEN_LEVEL = 1e-6
# Poles and zeros of the process whose covariance is nearest to exp(−½ t²), as long as none is
# farther from it than RBF_ERROR: minimax over t in [0, 10] by reweighted least squares
# (tests/unit/inference/test_markov_form.py finds them again).
RBF_POLES = np.array(
    [
        -1.7246608643659427 + 1.1463244781522477j,
        -1.6361711544669266 + 2.442912897185678j,
        -1.7513316506451235,
    ]
)
RBF_ZERO = 0.041311441078455614  # the numerator is 1 + RBF_ZERO · s²
RBF_ERROR = 6.2e-5


class MarkovForm(NamedTuple):
    """Kernels of a mixture as Markov processes; the first state of each is its level."""

    size: Ints  # (n_kernels,) number of states
    seen: Array  # (n_kernels, most_states): the curve is seen · state
    nugget: Array  # (n_kernels,) independent variance at each instant
    level: Array  # (n_kernels · most_states²,) transition of the levels, which stay
    rate: npt.NDArray[np.complex128]  # (n_modes,) ρ
    power: Array  # (n_modes,) p
    mode: npt.NDArray[np.complex128]  # (n_modes, n_kernels · most_states²) M, in its place


@dataclass(frozen=True)
class _Process:
    """One moving summand: F and its powers as modes, and the curve as seen · state."""

    rates: list[complex]
    powers: list[int]
    modes: list[Array]  # (d, d) each
    seen: Array  # (d,)


def markov_form(kernels: tuple[Kernel, ...]) -> MarkovForm:
    """The Markov form of a mixture's kernels.

    Raises
    ------
    InputError
        If a summand has no such form, or a kernel has too many states.
    """
    parts = [[_process(one) for one in kernel.summands if not one.constant] for kernel in kernels]
    size = np.array([1 + sum(part.seen.size for part in mine) for mine in parts])
    if size.max() > MOST_STATES:
        wide = kernels[int(size.argmax())]
        raise InputError(
            f"scorer: {wide.describe()} needs {size.max()} numbers for its state, and at most "
            f"{MOST_STATES} are kept; use fewer summands"
        )
    most = int(size.max())
    seen = np.zeros((len(kernels), most))
    level = np.zeros((len(kernels), most, most))
    level[:, 0, 0] = 1.0
    rates: list[complex] = []
    powers: list[int] = []
    modes = []
    for k, (kernel, mine) in enumerate(zip(kernels, parts, strict=True)):
        seen[k, 0] = _level(kernel)
        first = 1
        for part in mine:
            own = slice(first, first + part.seen.size)
            seen[k, own] = part.seen
            rates += part.rates
            powers += part.powers
            for mode in part.modes:
                whole = np.zeros(level.shape, dtype=complex)
                whole[k, own, own] = mode
                modes.append(whole.ravel())
            first = own.stop
    return MarkovForm(
        size.astype(np.int64),
        seen,
        np.array([kernel.nugget_variance for kernel in kernels]),
        level.ravel(),
        np.array(rates, dtype=complex),
        np.array(powers, dtype=float),
        np.array(modes, dtype=complex).reshape(-1, level.size),
    )


def transitions(form: MarkovForm, gaps: Array) -> Array:
    """Transitions A over gaps of at least 0: (n_gaps, n_kernels, most_states, most_states)."""
    away = gaps[:, None]
    factor = np.exp(away * form.rate) * away**form.power
    found = (factor @ form.mode).real + form.level
    return np.asarray(found).reshape(gaps.size, *form.seen.shape, form.seen.shape[1])


def _level(kernel: Kernel) -> float:
    """Standard deviation of the constant part; a tiny one where there is none."""
    constant = sum(one.variance for one in kernel.summands if one.constant)
    if constant:
        return float(np.sqrt(constant))
    return UNSEEN_LEVEL * float(np.sqrt(sum(one.variance for one in kernel.summands)))


def _process(summand: BaseKernel) -> _Process:
    """A moving summand in states of unit variance that are uncorrelated."""
    if isinstance(summand, Matern):
        return _matern(summand)
    if isinstance(summand, RBF):
        return _rbf(summand)
    raise InputError(
        f"scorer: {summand.describe()} has no state of a few numbers that grows an answer at a "
        "time; fit with a sum of Level, Matern12, Matern32, Matern52, RBF or Smooth"
    )


def _matern(summand: Matern) -> _Process:
    """exp(Fd) = e^{−λd} Σ_p dᵖ Nᵖ / p! with N = F + λ nilpotent, in units of the bandwidth."""
    bandwidth = summand.value_of("bandwidth")
    size = summand.order
    root = np.linalg.cholesky(stationary_covariance(size, summand.rate))
    nilpotent = companion(size, summand.rate) + summand.rate * np.eye(size)
    modes = []
    power = np.eye(size)
    for p in range(size):
        mode = np.linalg.solve(root, power @ root) / (factorial(p) * bandwidth**p)
        modes.append(mode.astype(complex))
        power = power @ nilpotent
    rates = [complex(-summand.rate / bandwidth)] * size
    return _Process(rates, list(range(size)), modes, np.sqrt(summand.variance) * root[0])


def _rbf(summand: RBF) -> _Process:
    """The process with `RBF_POLES` and `RBF_ZERO`: exp(Fd) = Re Σ c e^{ρd} v wᵀ.

    F is block diagonal with real blocks; of each pair of poles the one above the axis counts
    twice.
    """
    bandwidth = summand.value_of("bandwidth")
    pairs = RBF_POLES[RBF_POLES.imag > 0]
    real = RBF_POLES[RBF_POLES.imag == 0].real
    blocks = [np.array([[p.real, p.imag], [-p.imag, p.real]]) for p in pairs]
    drift = block_diag(*blocks, *real)
    poles = np.concatenate([pairs, pairs.conj(), real])
    # residues of (1 + zero · s²) / Π (s − pole): the impulse response is Σ residue · e^{pole · t}
    residues = np.array(
        [(1 + RBF_ZERO * p**2) / np.prod((p - poles)[np.arange(poles.size) != k])
         for k, p in enumerate(poles)]
    )  # fmt: skip
    into = []
    seen = []
    for residue in residues[: pairs.size]:
        # 2 Re(r e^{pt}) = [2 Re r, 2 Im r] rotated: seen by (1, 0)
        into += [2 * residue.real, -2 * residue.imag]
        seen += [1.0, 0.0]
    into += residues[2 * pairs.size :].real.tolist()
    seen += [1.0] * real.size
    column = np.array(into)
    stationary = solve_continuous_lyapunov(drift, -np.outer(column, column))
    root = np.linalg.cholesky(0.5 * (stationary + stationary.T))
    curve = np.array(seen) @ root
    modes = []
    for k, p in enumerate(RBF_POLES):
        here = slice(2 * k, 2 * k + (2 if p.imag else 1))
        selected = np.zeros(drift.shape, dtype=complex)
        # e^{Fd} of a block is Re(e^{pd}) I + Im(e^{pd}) J with J = [[0, 1], [−1, 0]]
        turn = np.array([[0.0, 1.0], [-1.0, 0.0]]) if p.imag else np.zeros((1, 1))
        selected[here, here] = np.eye(turn.shape[0]) - 1j * turn
        modes.append(np.linalg.solve(root, selected @ root))
    sd = np.sqrt(summand.variance / (curve @ curve))
    return _Process((RBF_POLES / bandwidth).tolist(), [0] * RBF_POLES.size, modes, sd * curve)
