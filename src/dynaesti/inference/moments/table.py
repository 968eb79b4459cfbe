"""Log-likelihood tables on an even grid, and how finely tilted distributions are integrated."""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Ints, jit, jit_internal

NODES = 32  # a bracket starts with so many nodes
# numbers of nodes are NODES times a power of two, so that brackets with equally many share a block
MOST_NODES = 2048
WIDTH = 7.0  # half a bracket, in tilted standard deviations
HALF_AGREE = 1e-4  # largest relative difference between every other node and all nodes
TABLE_STRIDES = (1, 2, 4, 8)  # strides at which tables hold copies of their rows


class QuadratureSettings(NamedTuple):
    """How a tilted distribution is integrated on a grid, and when the result is trusted."""

    reach: float  # half the bracket, in its sds
    nodes: int  # least number of nodes
    widest: float  # largest gap between nodes, in sds
    # largest relative difference between every other node and all nodes: the error with all of
    # them is about its square
    agree: float
    low: float  # largest weight of either end


FULL_QUADRATURE = QuadratureSettings(WIDTH, NODES, 0.6, HALF_AGREE, 1e-8)
FAIR_QUADRATURE = QuadratureSettings(6.5, 23, 0.6, HALF_AGREE, 1e-8)
# for early iterations, in which the tolerance of grafting is larger than these errors
ROUGH_QUADRATURE = QuadratureSettings(5.6, 17, 0.75, 3e-3, 1e-6)


class LogLikelihoodTable(NamedTuple):
    """Rows log f on the even grid start + step·k.

    `lik` is exp(log_lik − top), for loops without exponentials. Copies of every second, fourth and
    eighth point follow in the same row: nodes with a wide stride are then side by side, so that
    loops over millions of responses wait less for memory (an integral takes 65 ns instead of 90,
    even with 400 rows).
    """

    start: float
    step: float
    log_lik: Array  # (n_rows, n_grid)
    lik: Array  # (n_rows, n_grid and the points of the wider strides)
    top: Array  # (n_rows,) largest value of each row


def likelihood_table(start: float, step: float, log_lik: Array) -> LogLikelihoodTable:
    """A table of log-likelihoods (n_rows, n_grid) on the grid start + step·k."""
    rows, size = log_lik.shape
    log_lik = np.ascontiguousarray(log_lik)
    lik = np.empty((rows, sum((size - 1) // thin + 1 for thin in TABLE_STRIDES)))
    top = np.empty(rows)
    _fill_table(log_lik, lik, top)
    return LogLikelihoodTable(start, step, log_lik, lik, top)


@jit
def _fill_table(log_lik: Array, lik: Array, top: Array) -> None:
    """Fill in likelihoods relative to each row's maximum, with copies at the wider strides."""
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


@jit_internal
def strided_view(size: int, stride: int) -> tuple[int, int, int]:
    """The copy of a row with the widest stride that is at most `stride`.

    Returns
    -------
    thin : int
        Its stride, one of `TABLE_STRIDES`.
    begin : int
        Where it begins in a row of `lik`.
    width : int
        Number of its points.
    """
    thin = 1
    begin = 0
    width = size
    while thin < TABLE_STRIDES[-1] and 2 * thin <= stride:
        thin *= 2
        begin += width
        # points of every second one; a division would take longer than an exponential
        width = (width + 1) >> 1
    return thin, begin, width


@jit_internal
def interpolate(
    log_lik: Array, members: Ints, coefs: Array, start: float, step: float, x: float
) -> float:
    """Σ over the member rows of coefficient · log f(x), by six-point Lagrange interpolation.

    Beyond the grid rows are continued as straight lines.
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


@jit_internal
def lagrange(u: float, size: int) -> tuple[int, float, float, float, float, float, float]:
    """First of six grid points around position u, and their Lagrange weights.

    u is in steps from the start of a grid of `size` points.
    """
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
    """Compute out[i] = Σ_k log f_{rows[k]}(x[i, k]).

    This is the log-likelihood of whole curves, for the audit. Rows are interpolated as by
    `interpolate`.
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
