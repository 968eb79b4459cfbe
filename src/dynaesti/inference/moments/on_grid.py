"""Tilted moments on a table's own grid, or by Gauss–Hermite where a row is nearly linear."""

import numpy as np

from dynaesti.core import Array, Ints, jit_internal
from dynaesti.inference.moments.table import (
    HALF_AGREE,
    NODES,
    WIDTH,
    QuadratureSettings,
    interpolate,
    strided_view,
)

GRID_EDGE = 18.4  # on a table's own grid: e^-18.4 is 1e-8
# ten-point Gauss–Hermite for a standard normal: enough where a row is nearly linear in the cavity
_HERMITE_X, _HERMITE_W = np.polynomial.hermite_e.hermegauss(10)
_HERMITE_W = _HERMITE_W / np.sqrt(2 * np.pi)
NO_MOMENTS = False, 0.0, 0.0, 0.0, 0.0, 0.0
NARROW = 2.4  # sd of a cavity, in grid steps, below which rows are nearly linear within it


@jit_internal
def summed_moments(
    log_lik: Array,
    members: Ints,
    coefs: Array,
    start: float,
    step: float,
    mean: float,
    var: float,
    centre: float,
    sd: float,
    log_w: Array,
) -> tuple[bool, float, float, float, int, int, int]:
    """Tilted moments of several factors on the table's own grid.

    Log-likelihood rows are added where the guess (centre, sd) says that the tilted distribution
    lies. The result is not trusted if the density at the ends is not low enough, if there are too
    few nodes, or if every other node disagrees with all of them.

    Returns
    -------
    trusted : bool
    log_z, mean, variance : float
        Tilted moments.
    first, stride, nodes : int
        The nodes are the grid points first + stride·k; `log_w` is left with the log densities
        there.
    """
    stride = max(1, int(2.0 * WIDTH * sd / (step * (NODES - 1))))
    gap = stride * step
    first = int(np.ceil((centre - WIDTH * sd - start) / step))
    n = min(int(2.0 * WIDTH * sd / gap) + 1, log_w.size)
    if gap > 0.6 * sd or first < 0 or first + stride * (n - 1) >= log_lik.shape[1]:
        return False, 0.0, 0.0, 0.0, 0, 0, 0
    x0 = start + step * first
    half = 0.5 / var
    for k in range(n):
        d = x0 + gap * k - mean
        log_w[k] = -half * d * d
    for j in range(members.size):
        r = log_lik[members[j]]
        c = coefs[j]
        i = first
        for k in range(n):
            log_w[k] += c * r[i]
            i += stride
    top = log_w[0]
    for k in range(1, n):
        top = max(top, log_w[k])
    if not top > -np.inf or log_w[0] > top - GRID_EDGE or log_w[n - 1] > top - GRID_EDGE:
        return False, 0.0, 0.0, 0.0, 0, 0, 0
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    h0 = 0.0
    h1 = 0.0
    h2 = 0.0
    for k in range(n):
        p = np.exp(log_w[k] - top)
        d = x0 + gap * k - centre
        s0 += p
        s1 += p * d
        s2 += p * d * d
        if k % 2 == 0:
            h0 += p
            h1 += p * d
            h2 += p * d * d
    m = s1 / s0
    half = h1 / h0
    v = s2 / s0 - m * m
    if not v > (gap / 0.6) ** 2:
        return False, 0.0, 0.0, 0.0, 0, 0, 0
    off = max(
        abs(2.0 * h0 / s0 - 1.0), abs(half - m) / np.sqrt(v), abs((h2 / h0 - half * half) / v - 1.0)
    )
    log_z = top + np.log(s0 * gap) - 0.5 * np.log(2.0 * np.pi * var)
    return off < HALF_AGREE, log_z, centre + m, v, first, stride, n


@jit_internal
def _central(m: float, second: float, third: float, fourth: float) -> tuple[float, float]:
    """Third and fourth central moments, from moments about a point at distance m from the mean."""
    return (
        third - 3.0 * m * second + 2.0 * m**3,
        fourth - 4.0 * m * third + 6.0 * m * m * second - 3.0 * m**4,
    )


@jit_internal
def gaussian_recurrence(
    exponent: float, off: float, gap: float, inv_var: float
) -> tuple[float, float, float, float, float]:
    """Set up a Gaussian of precision `inv_var` at evenly spaced nodes, by products alone.

    Each next value is the one before times its ratio, and each next ratio the one before times a
    constant. Even and odd nodes have separate recurrences: a single one would wait for its own
    products.

    Parameters
    ----------
    exponent : float
        Log value at the first node.
    off : float
        Distance of the first node from the mean.
    gap : float
        Distance between nodes.
    inv_var : float
        Precision.

    Returns
    -------
    value, odd_value : float
        Values at the first two nodes.
    ratio, odd_ratio : float
        Their first ratios, over two nodes.
    shrink : float
        The constant by which the ratios shrink.
    """
    w = np.exp(exponent)
    ratio = np.exp(-0.5 * gap * (2.0 * off + gap) * inv_var)
    shrink = np.exp(-gap * gap * inv_var)
    twice = ratio * ratio * shrink
    square = shrink * shrink
    return w, w * ratio, twice, twice * square, square * square


@jit_internal
def grid_moments(
    lik: Array,
    size: int,
    row: int,
    start: float,
    step: float,
    mean: float,
    var: float,
    centre: float,
    sd: float,
    fine: QuadratureSettings,
) -> tuple[bool, float, float, float, float, float]:
    """Tilted moments of one row on its own grid, without an exponential in the loop.

    The Gaussian weights follow a recurrence. Where the result cannot be trusted, adaptive brackets
    have to be used.

    Parameters
    ----------
    lik : array (n_rows, …)
        `LogLikelihoodTable.lik`.
    size : int
        Number of grid points.
    row : int
    start, step : float
        The grid.
    mean, var : float
        Moments of the cavity.
    centre, sd : float
        Guess of the tilted mean and sd.
    fine : QuadratureSettings

    Returns
    -------
    trusted : bool
    z : float
        Integral of row × cavity, without the row's `top`.
    mean, variance, third, fourth : float
        Tilted mean and central moments.
    """
    reach = fine.reach * sd
    per_step = 1.0 / step
    stride, begin, width = strided_view(
        size, int(2.0 * reach * per_step * (1.0 / (fine.nodes - 1)))
    )
    gap = stride * step
    per_gap = per_step / stride
    first = int(np.ceil((centre - reach - start) * per_gap))
    n = 2 * (int(reach * per_gap) + 1)
    if gap > fine.widest * sd or first < 0 or first + n > width:
        return NO_MOMENTS
    x = start + gap * first
    inv_var = 1.0 / var
    exponent = -0.5 * (x - mean) ** 2 * inv_var
    if exponent < -600.0 or -0.5 * (x + gap * (n - 1) - mean) ** 2 * inv_var < -600.0:
        return NO_MOMENTS
    w, odd, ratio, odd_ratio, shrink = gaussian_recurrence(exponent, x - mean, gap, inv_var)
    k = begin + first
    left = w * lik[row, k]
    p = 0.0
    d = x - centre
    wide = 2.0 * gap
    # sums over even and odd nodes of weight × powers of the distance to the centre
    e0 = e1 = e2 = e3 = e4 = 0.0
    o0 = o1 = o2 = o3 = o4 = 0.0
    for _ in range(n // 2):
        q = w * lik[row, k]
        p = odd * lik[row, k + 1]
        c = d + gap
        qd = q * d
        pc = p * c
        qdd = qd * d
        pcc = pc * c
        e0 += q
        o0 += p
        e1 += qd
        o1 += pc
        e2 += qdd
        o2 += pcc
        e3 += qdd * d
        o3 += pcc * c
        e4 += qdd * d * d
        o4 += pcc * c * c
        w *= ratio
        odd *= odd_ratio
        ratio *= shrink
        odd_ratio *= shrink
        k += 2
        d += wide
    s0 = e0 + o0
    s1 = e1 + o1
    s2 = e2 + o2
    # left and p are the weights at the two ends
    if not s0 > 1e-150 or left > fine.low * s0 or p > fine.low * s0:
        return NO_MOMENTS
    both = 1.0 / (s0 * e0)
    each = e0 * both
    half = s0 * both
    m = s1 * each
    v = s2 * each - m * m
    if not fine.widest * fine.widest * v > gap * gap:
        return NO_MOMENTS
    half_m = e1 * half
    agree = (
        abs(e0 - o0) < fine.agree * o0
        and (half_m - m) ** 2 < fine.agree**2 * v
        and abs(e2 * half - half_m * half_m - v) < fine.agree * v
    )
    third, fourth = _central(m, s2 * each, (e3 + o3) * each, (e4 + o4) * each)
    return agree, s0 * gap * np.sqrt(inv_var * (0.5 / np.pi)), centre + m, v, third, fourth


@jit_internal
def hermite_moments(
    log_lik: Array, members: Ints, coefs: Array, start: float, step: float, mean: float, var: float
) -> tuple[bool, float, float, float, float, float]:
    """Tilted moments by Gauss–Hermite on the cavity, where the row is nearly linear.

    Rows that change by more than a factor of e⁵ from the cavity's mean to the outermost node are
    not trusted.

    Returns
    -------
    trusted : bool
    log_z, mean, variance, third, fourth : float
        Log integral, tilted mean and central moments.
    """
    sd = np.sqrt(var)
    base = interpolate(log_lik, members, coefs, start, step, mean)
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    s3 = 0.0
    s4 = 0.0
    for k in range(_HERMITE_X.size):
        z = _HERMITE_X[k]
        change = interpolate(log_lik, members, coefs, start, step, mean + sd * z) - base
        if not abs(change) < 5.0:
            return NO_MOMENTS
        p = _HERMITE_W[k] * np.exp(change)
        s0 += p
        s1 += p * z
        s2 += p * z * z
        s3 += p * z * z * z
        s4 += p * z * z * z * z
    m = s1 / s0
    third, fourth = _central(m, s2 / s0, s3 / s0, s4 / s0)
    return (
        True,
        base + np.log(s0),
        mean + sd * m,
        var * (s2 / s0 - m * m),
        var * sd * third,
        var * var * fourth,
    )
