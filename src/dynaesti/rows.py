"""Tilted moments: (log Z, mean, variance) of f(x)·N(x; m, v), for likelihoods tabulated on an even grid or evaluated.

The nodes follow the tilted distribution, not the cavity: a bracket around the last known tilted distribution is checked
at both ends (low enough?), for resolution (enough nodes within a standard deviation?) and for smoothness (do half the
nodes give the same answer?), and moved, zoomed or refined until all three hold. On even nodes the trapezoid rule converges
exponentially, so agreement of half the nodes to 1e-4 means all of them are right to about 1e-8.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.arrays import Array, Ints
from dynaesti.compiled import compiled

NODES = 32  # a bracket starts with so many
MOST_NODES = 2048  # counts are NODES times a power of two, so that brackets with equally many can share a block
WIDTH = 7.0  # half a bracket, in tilted standard deviations
EDGE = 25.0  # an end is low enough when its log density lies so far below the top: heavy tails still count at 18
GRID_EDGE = 18.4  # on a table's own grid: e^-18.4 is 1e-8
HALF_AGREE = 1e-4
ATTEMPTS = 80

DONE, RETRY, HOPELESS = 0, 1, 2

# ten-point Gauss–Hermite for a standard normal: enough where a row hardly bends within the cavity
_HERMITE_X, _HERMITE_W = np.polynomial.hermite_e.hermegauss(10)
_HERMITE_W = _HERMITE_W / np.sqrt(2 * np.pi)
NO_MOMENTS = False, 0.0, 0.0, 0.0, 0.0, 0.0
NEAR = 0.5  # how far a cavity may move at most, in sds, for derivatives to speak
NARROW = 2.4  # cavities this many grid steps wide, or less, see a row as nearly straight
THINNED = (1, 2, 4, 8)  # strides at which tables are laid out anew
PASSING = 5e-6  # error in sds from which on the rough nodes do


class Fineness(NamedTuple):
    """How a tilted distribution is laid on a grid, and what is asked of it before it is trusted."""

    reach: float  # half the bracket, in its sds
    nodes: int  # at least
    widest: float  # gap between nodes, in sds
    agree: float  # every other node against all of them: what these are off by is about the square
    low: float  # weight of either end


FULL = Fineness(WIDTH, NODES, 0.6, HALF_AGREE, 1e-8)
FAIR = Fineness(6.5, 23, 0.6, HALF_AGREE, 1e-8)
ROUGH = Fineness(
    5.6, 17, 0.75, 3e-3, 1e-6
)  # on the way, where grafting is not to settle to more than that


class RowTable(NamedTuple):
    """Rows log f on the even grid start + step·k. `lik` is exp(log_lik − top) for loops without exponentials.

    Behind it stand its every second, fourth and eighth point: nodes that lie far apart are then found side by side, where loops over
    millions of answers would wait for memory else (an integral in 65 ns instead of 90, even with 400 rows).
    """

    start: float
    step: float
    log_lik: Array  # (rows, grid)
    lik: Array  # (rows, grid and its thinner ones)
    top: Array  # (rows,)


def row_table(start: float, step: float, log_lik: Array) -> RowTable:
    """A table ready for the kernels."""
    rows, size = log_lik.shape
    log_lik, lik, top = (
        np.ascontiguousarray(log_lik),
        np.empty((rows, sum((size - 1) // thin + 1 for thin in THINNED))),
        np.empty(rows),
    )
    _fill_table(log_lik, lik, top)
    return RowTable(start, step, log_lik, lik, top)


@compiled
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
        for thin in THINNED[1:]:
            width = (size - 1) // thin + 1
            for k in range(width):
                lik[r, used + k] = lik[r, thin * k]
            used += width


@compiled
def thinned(size: int, stride: int) -> tuple[int, int, int]:
    """Of a grid of `size` points, the thinnest with no wider a stride: (its stride, where it begins in `lik`, its points)."""
    thin, begin, width = 1, 0, size
    while thin < THINNED[-1] and 2 * thin <= stride:
        thin *= 2
        begin += width
        width = (
            width + 1
        ) >> 1  # of every second point; divisions would take longer than an exponential
    return thin, begin, width


@compiled
def lattice(lo: float, hi: float, n: int) -> tuple[float, float]:
    """(first node, step) of n nodes over about [lo, hi] that stay put when the bracket moves a little.

    Nodes that followed every move would make the quadrature of a kinked likelihood jitter, and grafting could not settle on it.
    """
    step = 2.0 ** (np.ceil(8.0 * np.log2((hi - lo) / (n - 2))) / 8.0)
    return np.floor(lo / step) * step, step


@compiled
def _judge(
    log_w: Array, n: int, lo: float, step: float
) -> tuple[int, float, float, int, float, float, float]:
    """Judge a bracket of n nodes lo + step·k that carry log densities: (verdict, lo, hi, nodes, log Σ, mean, variance).

    When the verdict is RETRY, lo, hi and nodes say what to try next.
    """
    hi = lo + step * (n - 1)
    top = -np.inf
    at = 0
    for k in range(n):
        if np.isnan(log_w[k]):
            return HOPELESS, lo, hi, n, np.nan, np.nan, np.nan
        if log_w[k] > top:
            top = log_w[k]
            at = k
    if top == -np.inf:  # possible nowhere among these nodes: look closer
        if n >= MOST_NODES:
            return HOPELESS, lo, hi, n, -np.inf, np.nan, np.nan
        return RETRY, lo, hi, 4 * n, top, 0.0, 0.0
    width = hi - lo
    left, right = (
        log_w[0] > top - EDGE,
        log_w[n - 1] > top - EDGE,
    )  # a high end means mass beyond it
    if left or right:  # twice the nodes: a coarser step could lose a narrow top again
        nodes = min(2 * n, 2 * MOST_NODES)
        return (
            RETRY,
            lo - (0.5 * width if left else 0.0),
            hi + (0.5 * width if right else 0.0),
            nodes,
            top,
            0.0,
            0.0,
        )
    first, last = 0, n - 1
    while log_w[first] < top - EDGE - 2.0:
        first += 1
    while log_w[last] < top - EDGE - 2.0:
        last -= 1
    if last - first + 2 < 0.4 * (n - 1):  # most nodes are wasted on empty ends: zoom in
        nodes = NODES
        while nodes < last - first + 3:
            nodes *= 2
        return RETRY, lo + step * (first - 1), lo + step * (last + 1), nodes, top, 0.0, 0.0
    centre = lo + step * at
    s0, s1, s2, h0, h1, h2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        p = np.exp(log_w[k] - top)
        d = (k - at) * step
        s0 += p
        s1 += p * d
        s2 += p * d * d
        if (k - at) % 2 == 0:
            h0 += p
            h1 += p * d
            h2 += p * d * d
    mean = s1 / s0
    var = s2 / s0 - mean * mean
    sd = np.sqrt(max(var, 0.0))
    half_mean = h1 / h0
    half_var = h2 / h0 - half_mean * half_mean
    off = (
        max(abs(2.0 * h0 / s0 - 1.0), abs(half_mean - mean) / sd, abs(half_var / var - 1.0))
        if sd > 0
        else 1.0
    )
    if not off < HALF_AGREE and n < MOST_NODES:
        return RETRY, lo, hi, 2 * n, top, 0.0, 0.0
    return DONE, lo, hi, n, top + np.log(s0 * step), centre + mean, var


@compiled
def spread_nodes(lo: Array, hi: Array, n: int) -> Array:
    """The nodes of many brackets, one a row."""
    x = np.empty((lo.size, n))
    for k in range(lo.size):
        first, step = lattice(lo[k], hi[k], n)
        for j in range(n):
            x[k, j] = first + step * j
    return x


@compiled
def judge_block(
    log_w: Array,
    lo: Array,
    hi: Array,
    nodes: Ints,
    mean: Array,
    var: Array,
    log_z: Array,
    verdict: Ints,
) -> None:
    """Judge many brackets with equally many nodes on their lattices; the next brackets, moments and verdicts are written."""
    n = log_w.shape[1]
    for k in range(log_w.shape[0]):
        lo[k], step = lattice(lo[k], hi[k], n)
        verdict[k], lo[k], hi[k], nodes[k], log_z[k], mean[k], var[k] = _judge(
            log_w[k], n, lo[k], step
        )


@compiled
def _interpolate(
    log_lik: Array, members: Ints, coefs: Array, start: float, step: float, x: float
) -> float:
    """Σ over the member rows of coefficient · log f(x): six-point Lagrange, straight lines beyond the grid."""
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


@compiled
def lagrange(u: float, size: int) -> tuple[int, float, float, float, float, float, float]:
    """First of six grid points around place u (in steps from the grid's start), and their weights."""
    k = min(max(int(u) - 2, 0), size - 6)
    s = u - k
    a, b, c, d, e, f = s, s - 1.0, s - 2.0, s - 3.0, s - 4.0, s - 5.0
    ab, ef = a * b, e * f
    abc, up = ab * c, d * ef
    return (
        k,
        b * c * up * (-1 / 120),
        a * c * up * (1 / 24),
        ab * up * (-1 / 12),
        abc * ef * (1 / 12),
        abc * d * f * (-1 / 24),
        abc * d * e * (1 / 120),
    )


@compiled
def careful(
    log_lik: Array,
    members: Ints,
    coefs: Array,
    start: float,
    step: float,
    mean: float,
    var: float,
    lo: float,
    hi: float,
    log_w: Array,
) -> tuple[int, float, float, float, float, float, int]:
    """Tilted moments by judged brackets, with interpolated rows: (verdict, log Z, mean, variance, first node, gap, nodes).

    `log_w` is left holding the log densities at the nodes.
    """
    n = NODES
    verdict = RETRY
    log_sum, m, v, gap = 0.0, 0.0, 0.0, 0.0
    for _ in range(ATTEMPTS):
        lo, gap = lattice(lo, hi, n)
        for k in range(n):
            x = lo + gap * k
            log_w[k] = (
                _interpolate(log_lik, members, coefs, start, step, x) - 0.5 * (x - mean) ** 2 / var
            )
        verdict, lo, hi, n, log_sum, m, v = _judge(log_w, n, lo, gap)
        if verdict != RETRY:
            break
    return verdict, log_sum - 0.5 * np.log(2.0 * np.pi * var), m, v, lo, gap, n


@compiled
def on_grid(
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
    """Tilted moments of several members on the table's own grid: (trusted, log Z, mean, variance, first, stride, nodes).

    Member rows are added where the guess (centre, sd) says the tilted distribution lies; ends that are not low enough, too few nodes
    or halves that disagree are declined. `log_w` is left holding the log densities at the nodes.
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
        r, c = log_lik[members[j]], coefs[j]
        i = first
        for k in range(n):
            log_w[k] += c * r[i]
            i += stride
    top = log_w[0]
    for k in range(1, n):
        top = max(top, log_w[k])
    if not top > -np.inf or log_w[0] > top - GRID_EDGE or log_w[n - 1] > top - GRID_EDGE:
        return False, 0.0, 0.0, 0.0, 0, 0, 0
    s0, s1, s2, h0, h1, h2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
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
    m, half = s1 / s0, h1 / h0
    v = s2 / s0 - m * m
    if not v > (gap / 0.6) ** 2:
        return False, 0.0, 0.0, 0.0, 0, 0, 0
    off = max(
        abs(2.0 * h0 / s0 - 1.0), abs(half - m) / np.sqrt(v), abs((h2 / h0 - half * half) / v - 1.0)
    )
    log_z = top + np.log(s0 * gap) - 0.5 * np.log(2.0 * np.pi * var)
    return off < HALF_AGREE, log_z, centre + m, v, first, stride, n


@compiled
def _central(m: float, second: float, third: float, fourth: float) -> tuple[float, float]:
    """Third and fourth central moments from those about a point, at which the mean is m."""
    return (
        third - 3.0 * m * second + 2.0 * m**3,
        fourth - 4.0 * m * third + 6.0 * m * m * second - 3.0 * m**4,
    )


@compiled
def bell(
    exponent: float, off: float, gap: float, tight: float
) -> tuple[float, float, float, float, float]:
    """A Gaussian of precision `tight` at even nodes, by products alone: its values at the first two, their ratios, how these shrink.

    The first node is `off` from the mean, and its log value `exponent`. Even and odd nodes go side by side (a single recurrence would wait
    for its own products): each next value is the one before times its ratio, each next ratio the one before times the last number.
    """
    w = np.exp(exponent)
    ratio, shrink = np.exp(-0.5 * gap * (2.0 * off + gap) * tight), np.exp(-gap * gap * tight)
    twice, square = ratio * ratio * shrink, shrink * shrink
    return w, w * ratio, twice, twice * square, square * square


@compiled
def _quick(
    lik: Array,
    size: int,
    row: int,
    start: float,
    step: float,
    mean: float,
    var: float,
    centre: float,
    sd: float,
    fine: Fineness,
) -> tuple[bool, float, float, float, float, float]:
    """Tilted moments on the row's own grid without an exponential in the loop: (trusted, Z, mean, and second to fourth central).

    Gaussian weights follow a recurrence. Declines (False) whatever the judged brackets should look at.
    """
    reach, per_step = fine.reach * sd, 1.0 / step
    stride, begin, width = thinned(size, int(2.0 * reach * per_step * (1.0 / (fine.nodes - 1))))
    gap, per_gap = stride * step, per_step / stride
    first = int(np.ceil((centre - reach - start) * per_gap))
    n = 2 * (int(reach * per_gap) + 1)
    if gap > fine.widest * sd or first < 0 or first + n > width:
        return NO_MOMENTS
    x = start + gap * first
    tight = 1.0 / var
    exponent = -0.5 * (x - mean) ** 2 * tight
    if exponent < -600.0 or -0.5 * (x + gap * (n - 1) - mean) ** 2 * tight < -600.0:
        return NO_MOMENTS
    w, odd, ratio, odd_ratio, shrink = bell(exponent, x - mean, gap, tight)
    k = begin + first
    left, p = w * lik[row, k], 0.0
    d, wide = x - centre, 2.0 * gap
    e0, e1, e2, o0, o1, o2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    e3, e4, o3, o4 = 0.0, 0.0, 0.0, 0.0
    for _ in range(n // 2):
        q, p = w * lik[row, k], odd * lik[row, k + 1]
        c = d + gap
        qd, pc = q * d, p * c
        qdd, pcc = qd * d, pc * c
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
    s3, s4 = e3 + o3, e4 + o4
    s0, s1, s2 = e0 + o0, e1 + o1, e2 + o2
    if not s0 > 1e-150 or left > fine.low * s0 or p > fine.low * s0:  # p is the right end's
        return NO_MOMENTS
    both = 1.0 / (s0 * e0)
    each, half = e0 * both, s0 * both
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
    third, fourth = _central(m, s2 * each, s3 * each, s4 * each)
    return agree, s0 * gap * np.sqrt(tight * (0.5 / np.pi)), centre + m, v, third, fourth


@compiled
def _narrow(
    log_lik: Array, members: Ints, coefs: Array, start: float, step: float, mean: float, var: float
) -> tuple[bool, float, float, float, float, float]:
    """(trusted, log Z, mean, and second to fourth central moments) by Gauss–Hermite on the cavity, where the row hardly bends.

    Declines rows that change by more than a factor of e⁵ from the cavity's mean to the outermost node.
    """
    sd = np.sqrt(var)
    base = _interpolate(log_lik, members, coefs, start, step, mean)
    s0, s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(_HERMITE_X.size):
        z = _HERMITE_X[k]
        change = _interpolate(log_lik, members, coefs, start, step, mean + sd * z) - base
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


@compiled
def match_one(
    members: Ints,
    coefs: Array,
    log_lik: Array,
    lik: Array,
    top: Array,
    start: float,
    step: float,
    cav_mean: float,
    cav_var: float,
    mean: float,
    var: float,
    log_w: Array,
) -> tuple[bool, float, float, float, float, float]:
    """Tilted moments of one site, near the guess (mean, var): (done, log Z, mean, variance, third and fourth central).

    The last two are nan where only careful quadrature would do.
    """
    sd = np.sqrt(var)
    if members.size == 1:
        if cav_var < (NARROW * step) ** 2:
            found = _narrow(log_lik, members, coefs, start, step, cav_mean, cav_var)
            if found[0]:
                return found
        row = members[0]
        if coefs[0] == 1.0:
            trusted, z, m, v, third, fourth = _quick(
                lik, log_lik.shape[1], row, start, step, cav_mean, cav_var, mean, sd, FULL
            )
            if trusted:
                return True, np.log(z) + top[row], m, v, third, fourth
    else:
        trusted, lz, m, v, _, _, _ = on_grid(
            log_lik, members, coefs, start, step, cav_mean, cav_var, mean, sd, log_w
        )
        if trusted:
            return True, lz, m, v, np.nan, np.nan
    verdict, lz, m, v, _, _, _ = careful(
        log_lik,
        members,
        coefs,
        start,
        step,
        cav_mean,
        cav_var,
        mean - WIDTH * sd,
        mean + WIDTH * sd,
        log_w,
    )
    return verdict == DONE, lz, m, v, np.nan, np.nan


@compiled
def match_table(
    sites: Ints,
    group: Ints,
    member_start: Ints,
    member_row: Ints,
    member_coef: Array,
    log_lik: Array,
    lik: Array,
    top: Array,
    start: float,
    step: float,
    cav_mean: Array,
    cav_var: Array,
    log_z: Array,
    mean: Array,
    var: Array,
) -> int:
    """Tilted moments of the chosen sites. On entry `mean` and `var` hold a guess, for the bracket to try first.

    Returns the site that cannot be integrated, or -1.
    """
    log_w = np.empty(4 * MOST_NODES)
    for site in sites:
        g = group[site]
        a, b = member_start[g], member_start[g + 1]
        if a == b:
            log_z[site], mean[site], var[site] = 0.0, cav_mean[site], cav_var[site]
            continue
        done, lz, m, v, _, _ = match_one(
            member_row[a:b],
            member_coef[a:b],
            log_lik,
            lik,
            top,
            start,
            step,
            cav_mean[site],
            cav_var[site],
            mean[site],
            var[site],
            log_w,
        )
        if not done:
            return int(site)
        log_z[site], mean[site], var[site] = lz, m, v
    return -1


@compiled
def _lean(known: Array, m: float, v: float) -> tuple[float, float, float]:
    """(log Z, mean, variance) for a cavity near the one they are known at, see `match_again`."""
    m0, tight, log_z, mean, per_sd, third, fourth = (
        known[0],
        known[1],
        known[2],
        known[3],
        known[4],
        known[5],
        known[6],
    )
    var = 1.0 / (per_sd * per_sd)
    off, dm, dv = mean - m0, m - m0, v - 1.0 / tight
    wide = 0.5 * tight * tight
    new_mean = mean + var * tight * dm + wide * (third + 2.0 * off * var) * dv
    new_var = var + third * tight * dm + wide * (fourth - var * var + 2.0 * off * third) * dv
    new_off, now = new_mean - m, 1.0 / v
    slope = 0.5 * (off * tight + new_off * now)
    widening = 0.25 * (
        ((var + off * off) * tight - 1.0) * tight
        + ((new_var + new_off * new_off) * now - 1.0) * now
    )
    return log_z + slope * dm + widening * dv, new_mean, new_var


@compiled
def _range(tight: float, per_sd: float, third: float, fourth: float, slack: float) -> float:
    """How far the derivatives reach from a cavity of precision `tight`, in sds: the neglected terms are bends times half the squared move.

    The bends are the skewness and the excess, and for likelihoods that have neither, how much narrower than the cavity they make it (a
    variance does not follow the cavity's in a straight line). Nowhere (nan) where the moments are nan.
    """
    square = per_sd * per_sd
    bend = abs(third) * square * per_sd + abs(fourth * square * square - 3.0)
    return (
        min(NEAR, np.sqrt(2.0 * slack / max(bend, abs(1.0 - tight / square))))
        if bend == bend
        else np.nan
    )


@compiled
def match_again(
    sites: Ints,
    group: Ints,
    member_start: Ints,
    member_row: Ints,
    member_coef: Array,
    log_lik: Array,
    lik: Array,
    top: Array,
    start: float,
    step: float,
    cav_mean: Array,
    cav_var: Array,
    known: Array,
    slack: float,
    log_z: Array,
    mean: Array,
    var: Array,
) -> int:
    """The same from sweep to sweep: by derivative where the cavity is near the one of the last integral, which `known` keeps.

    known: (sites, 8), a line of memory each: the cavity's mean and precision; log Z, mean, 1 / sd, third and fourth central moment;
    and how far the cavity may move (NaN: no integral yet). `slack` is the error that may be made, in standard deviations.
    """
    log_w, narrow = np.empty(4 * MOST_NODES), (NARROW * step) ** 2
    size, fine = log_lik.shape[1], ROUGH if slack > PASSING else FAIR
    for i in sites:
        m, v, k = cav_mean[i], cav_var[i], known[i]
        if abs(m - k[0]) * k[4] + abs(v * k[1] - 1.0) < k[7]:
            log_z[i], mean[i], var[i] = _lean(k, m, v)
            continue
        g = group[i]
        a, b = member_start[g], member_start[g + 1]
        if a == b:
            log_z[i], mean[i], var[i] = 0.0, m, v
            continue
        done = False
        if (
            b == a + 1 and member_coef[a] == 1.0 and v >= narrow
        ):  # nearly all sites, and calls with many arrays cost more than the integral
            row = member_row[a]
            done, z, x, s, third, fourth = _quick(
                lik, size, row, start, step, m, v, mean[i], np.sqrt(var[i]), fine
            )
            if not done and z > 0.0:  # the guess was wide: again around what it found
                done, z, x, s, third, fourth = _quick(
                    lik, size, row, start, step, m, v, x, np.sqrt(s), fine
                )
            lz = np.log(z) + top[row] if done else 0.0
        if not done:
            done, lz, x, s, third, fourth = match_one(
                member_row[a:b],
                member_coef[a:b],
                log_lik,
                lik,
                top,
                start,
                step,
                m,
                v,
                mean[i],
                var[i],
                log_w,
            )
        if not done:
            return int(i)
        tight, per_sd = 1.0 / v, 1.0 / np.sqrt(s)
        k[0], k[1], k[2], k[3], k[4], k[5], k[6] = m, tight, lz, x, per_sd, third, fourth
        k[7] = _range(tight, per_sd, third, fourth, slack)
        log_z[i], mean[i], var[i] = lz, x, s
    return -1


@compiled
def sum_rows(log_lik: Array, rows: Ints, start: float, step: float, x: Array, out: Array) -> None:
    """out[i] = Σ_k log f_{rows[k]}(x[i, k]): the likelihood of whole curves, for the audit. Interpolated as by `_interpolate`."""
    last, per_step = log_lik.shape[1] - 1, 1.0 / step
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            row, u = rows[j], (x[i, j] - start) * per_step
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
