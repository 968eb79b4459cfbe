"""Log likelihoods tabulated on an even grid, and how finely a tilted distribution is laid on it."""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Ints, jit

NODES = 32  # a bracket starts with so many
# counts are NODES times a power of two, so that brackets with equally many can share a block
MOST_NODES = 2048
WIDTH = 7.0  # half a bracket, in tilted standard deviations
HALF_AGREE = 1e-4
TABLE_STRIDES = (1, 2, 4, 8)  # strides at which tables are laid out anew


class QuadratureSettings(NamedTuple):
    """How a tilted distribution is laid on a grid, and what is asked of it before it is trusted."""

    reach: float  # half the bracket, in its sds
    nodes: int  # at least
    widest: float  # gap between nodes, in sds
    agree: float  # every other node against all of them: what these are off by is about the square
    low: float  # weight of either end


FULL_QUADRATURE = QuadratureSettings(WIDTH, NODES, 0.6, HALF_AGREE, 1e-8)
FAIR_QUADRATURE = QuadratureSettings(6.5, 23, 0.6, HALF_AGREE, 1e-8)
ROUGH_QUADRATURE = QuadratureSettings(
    5.6, 17, 0.75, 3e-3, 1e-6
)  # on the way, where grafting is not to settle to more than that


class LogLikelihoodTable(NamedTuple):
    """Rows log f on the even grid start + step·k.

    `lik` is exp(log_lik − top) for loops without exponentials.

    Behind it stand its every second, fourth and eighth point: nodes that lie far apart are then
    found side by side, where loops over millions of answers would wait for memory else (an integral
    in 65 ns instead of 90, even with 400 rows).
    """

    start: float
    step: float
    log_lik: Array  # (rows, grid)
    lik: Array  # (rows, grid and its thinner ones)
    top: Array  # (rows,)


def likelihood_table(start: float, step: float, log_lik: Array) -> LogLikelihoodTable:
    """A table ready for the kernels."""
    rows, size = log_lik.shape
    log_lik = np.ascontiguousarray(log_lik)
    lik = np.empty((rows, sum((size - 1) // thin + 1 for thin in TABLE_STRIDES)))
    top = np.empty(rows)
    _fill_table(log_lik, lik, top)
    return LogLikelihoodTable(start, step, log_lik, lik, top)


@jit
def _fill_table(log_lik: Array, lik: Array, top: Array) -> None:
    """Rows as likelihoods, and their thinner ones behind them."""
    rows, size = log_lik.shape
    for r in range(rows):
        highest = log_lik[r, 0]
        for k in range(1, size):
            highest = max(highest, log_lik[r, k])
        top[r] = highest
        for k in range(size):
            lik[r, k] = np.exp(log_lik[r, k] - highest)
        used = size
        for thin in TABLE_STRIDES[1:]:
            width = (size - 1) // thin + 1
            for k in range(width):
                lik[r, used + k] = lik[r, thin * k]
            used += width


@jit
def strided_view(size: int, stride: int) -> tuple[int, int, int]:
    """Of a grid of `size` points, the thinnest with no wider a stride.

    (its stride, where it begins in `lik`, its points).
    """
    thin = 1
    begin = 0
    width = size
    while thin < TABLE_STRIDES[-1] and 2 * thin <= stride:
        thin *= 2
        begin += width
        width = (
            width + 1
        ) >> 1  # of every second point; divisions would take longer than an exponential
    return thin, begin, width


@jit
def interpolate(
    log_lik: Array, members: Ints, coefs: Array, start: float, step: float, x: float
) -> float:
    """Σ over the member rows of coefficient · log f(x).

    Six-point Lagrange, straight lines beyond the grid.
    """
    size = log_lik.shape[1]
    u = (x - start) / step
    if u < 0.0 or u > size - 1:
        end, inner = (0, 1) if u < 0.0 else (size - 1, size - 2)
        away = -u if u < 0.0 else u - (size - 1)
        total = 0.0
        for j in range(members.size):
            row = members[j]
            total += coefs[j] * (
                log_lik[row, end] + (log_lik[row, end] - log_lik[row, inner]) * away
            )
        return total
    k, w0, w1, w2, w3, w4, w5 = lagrange(u, size)
    total = 0.0
    for j in range(members.size):
        r = log_lik[members[j]]
        total += coefs[j] * (
            w0 * r[k]
            + w1 * r[k + 1]
            + w2 * r[k + 2]
            + w3 * r[k + 3]
            + w4 * r[k + 4]
            + w5 * r[k + 5]
        )
    return total


@jit
def lagrange(u: float, size: int) -> tuple[int, float, float, float, float, float, float]:
    """First of six grid points around place u (in steps from the grid's start), and their weights."""
    k = min(max(int(u) - 2, 0), size - 6)
    s = u - k
    a = s
    b = s - 1.0
    c = s - 2.0
    d = s - 3.0
    e = s - 4.0
    f = s - 5.0
    ab = a * b
    ef = e * f
    abc = ab * c
    up = d * ef
    return (
        k,
        b * c * up * (-1 / 120),
        a * c * up * (1 / 24),
        ab * up * (-1 / 12),
        abc * ef * (1 / 12),
        abc * d * f * (-1 / 24),
        abc * d * e * (1 / 120),
    )


@jit
def sum_log_likelihoods(
    log_lik: Array, rows: Ints, start: float, step: float, x: Array, out: Array
) -> None:
    """out[i] = Σ_k log f_{rows[k]}(x[i, k]).

    The likelihood of whole curves, for the audit. Interpolated as by `_interpolate`.
    """
    last = log_lik.shape[1] - 1
    per_step = 1.0 / step
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            row = rows[j]
            u = (x[i, j] - start) * per_step
            if u < 0.0:
                total += log_lik[row, 0] - (log_lik[row, 0] - log_lik[row, 1]) * u
            elif u > last:
                total += log_lik[row, last] + (log_lik[row, last] - log_lik[row, last - 1]) * (
                    u - last
                )
            else:
                k, w0, w1, w2, w3, w4, w5 = lagrange(u, last + 1)
                total += (
                    (w0 * log_lik[row, k] + w1 * log_lik[row, k + 1])
                    + (w2 * log_lik[row, k + 2] + w3 * log_lik[row, k + 3])
                    + (w4 * log_lik[row, k + 4] + w5 * log_lik[row, k + 5])
                )
        out[i] = total
