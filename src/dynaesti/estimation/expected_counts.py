"""Expected counts of every likelihood row at every ability, for M-step and standard errors.

The tilted distribution of a site is cavity × (all its rows). Under it, the gradient of the evidence
by a row's value at a grid point is the expected number of responses there times their weight. Where
the nodes of a site are off the grid, their weights go to the six grid points around them, by the
transpose of the interpolation that grafting uses: so the gradient is exact, not approximate.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Ints, jit, jit_internal
from dynaesti.inference import (
    DONE,
    MOST_NODES,
    WIDTH,
    LogLikelihoodTable,
    Moments,
    SiteFactors,
    adaptive_moments,
    gaussian_recurrence,
    lagrange,
    summed_moments,
)

# half a bracket, in tilted sds, and its nodes: first NEAR, and FAR where that is not accurate
NEAR = (5.6, 15)
FAR = (6.5, 19)
APART = 1e-3  # largest difference of even and odd nodes, as a fraction of the weight
LOW = 1e-6  # largest fraction of the weight at an end
DECLINED = 0, 0, 0, 0.0


@jit_internal
def _grid_weights(
    lik: Array,
    size: int,
    row: int,
    start: float,
    step: float,
    mean: float,
    var: float,
    centre: float,
    sd: float,
    bracket: tuple[float, int],
    p: Array,
) -> tuple[int, int, int, float]:
    """Weights p of cavity × one row on the grid, without an exponential in the loop.

    Even and odd nodes must have nearly equal sums: the error of the trapezoid rule is about the
    square of that with half the nodes.

    Returns
    -------
    nodes : int
        0 where the weights are not accurate.
    first, stride : int
        The nodes are the grid points first + stride·k.
    total : float
        Sum of the weights.
    """
    reach = bracket[0] * sd
    per_step = 1.0 / step
    stride = max(1, int(reach * per_step * (2.0 / (bracket[1] - 1))))
    gap = stride * step
    first = int(np.ceil((centre - reach - start) * per_step))
    n = 2 * (int(reach / gap) + 1)
    if gap > 0.85 * sd or first < 0 or first + stride * (n - 1) >= size:
        return DECLINED
    x = start + step * first
    inv_var = 1.0 / var
    exponent = -0.5 * (x - mean) ** 2 * inv_var
    if exponent < -600.0 or -0.5 * (x + gap * (n - 1) - mean) ** 2 * inv_var < -600.0:
        return DECLINED
    w, odd, ratio, odd_ratio, shrink = gaussian_recurrence(exponent, x - mean, gap, inv_var)
    total = 0.0
    rest = 0.0
    i = first
    for k in range(0, n, 2):
        p[k] = w * lik[row, i]
        p[k + 1] = odd * lik[row, i + stride]
        i += 2 * stride
        total += p[k]
        rest += p[k + 1]
        w *= ratio
        odd *= odd_ratio
        ratio *= shrink
        odd_ratio *= shrink
    apart = abs(total - rest)
    total += rest
    if (
        not (total > 1e-250 and apart < APART * total)
        or p[0] > LOW * total
        or p[n - 1] > LOW * total
    ):
        return DECLINED
    return n, first, stride, total


class TiltedSite(NamedTuple):
    """Cavity and tilted moments of one site."""

    cavity_mean: float
    cavity_var: float
    mean: float
    sd: float


@jit_internal
def _tilted_weights(
    rows: Ints, weights: Array, table: LogLikelihoodTable, site: TiltedSite, p: Array
) -> tuple[int, int, int, float, float]:
    """Normalised weights p at the nodes of one tilted distribution.

    Returns
    -------
    nodes : int
        0 where the site cannot be integrated.
    first, stride : int
        The nodes are the grid points first + stride·k; a stride of 0 says that they are off the
        grid.
    lowest, gap : float
        Then they are at lowest + gap·k.
    """
    if rows.size == 1 and weights[0] == 1.0:
        lik, size, start, step = table.lik, table.log_lik.shape[1], table.start, table.step
        cavity_mean, cavity_var, mean, sd = site
        n, first, stride, total = _grid_weights(
            lik, size, rows[0], start, step, cavity_mean, cavity_var, mean, sd, NEAR, p
        )
        if n == 0:
            n, first, stride, total = _grid_weights(
                lik, size, rows[0], start, step, cavity_mean, cavity_var, mean, sd, FAR, p
            )
        for k in range(n):
            p[k] /= total
        if n > 0:
            return n, first, stride, 0.0, 0.0
    return _adaptive_weights(rows, weights, table, site, p)


@jit_internal
def _adaptive_weights(
    rows: Ints, weights: Array, table: LogLikelihoodTable, site: TiltedSite, p: Array
) -> tuple[int, int, int, float, float]:
    """Normalised weights p by summed rows, or by adaptive brackets where these are not accurate.

    Returns the same tuple as `_tilted_weights`.
    """
    log_lik, start, step = table.log_lik, table.start, table.step
    cavity_mean, cavity_var, mean, sd = site
    trusted, _, _, _, first, stride, n = summed_moments(
        log_lik, rows, weights, start, step, cavity_mean, cavity_var, mean, sd, p
    )
    lo = 0.0
    gap = 0.0
    if not trusted:
        verdict, _, _, _, lo, gap, n = adaptive_moments(
            log_lik,
            rows,
            weights,
            start,
            step,
            cavity_mean,
            cavity_var,
            mean - WIDTH * sd,
            mean + WIDTH * sd,
            p,
        )
        first = 0
        stride = 0
        if verdict != DONE:
            return 0, 0, 0, 0.0, 0.0
    top = p[0]
    for k in range(1, n):
        top = max(top, p[k])
    total = 0.0
    for k in range(n):
        p[k] = np.exp(p[k] - top)
        total += p[k]
    for k in range(n):
        p[k] /= total
    return n, first, stride, lo, gap


@jit
def add_counts(
    sites: Ints,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    moments: Array,
    counts: Array,
) -> None:
    """Add the expected counts of the sites' responses to their rows of `counts`.

    They are tilted distributions times the factors' weights and the sites' weights.

    Parameters
    ----------
    sites : array of int
        In the order of their rows.
    factors : SiteFactors
    table : LogLikelihoodTable
    moments : array (n_sites, 5)
        Cavity mean and variance, tilted mean and variance, and weight of each site: side by side,
        so that a site in any order takes one access to memory.
    counts : array (n_rows, n_grid)
    """
    factor_start, factor_row, factor_weight = factors.start, factors.row, factors.weight
    log_lik, lik, start, step = table.log_lik, table.lik, table.start, table.step
    p = np.empty(4 * MOST_NODES)
    size = log_lik.shape[1]
    for site in sites:
        cavity_mean = moments[site, 0]
        cavity_var = moments[site, 1]
        mean = moments[site, 2]
        sd = np.sqrt(moments[site, 3])
        w = moments[site, 4]
        if w < 1e-9:
            continue
        a = factor_start[site]
        b = factor_start[site + 1]
        # nearly all sites: slices and calls with many arrays would cost more than the sum
        if b == a + 1 and factor_weight[a] == 1.0:
            row = factor_row[a]
            n, first, stride, total = _grid_weights(
                lik, size, row, start, step, cavity_mean, cavity_var, mean, sd, NEAR, p
            )
            if n == 0:
                n, first, stride, total = _grid_weights(
                    lik, size, row, start, step, cavity_mean, cavity_var, mean, sd, FAR, p
                )
            if n > 0:
                each = w / total
                for k in range(n):
                    counts[row, first + stride * k] += each * p[k]
                continue
        members = factor_row[a:b]
        coefs = factor_weight[a:b]
        tilted = TiltedSite(cavity_mean, cavity_var, mean, sd)
        n, first, stride, lo, gap = _adaptive_weights(members, coefs, table, tilted, p)
        for j in range(members.size):
            out = counts[members[j]]
            c = w * coefs[j]
            if stride > 0:
                i = first
                for k in range(n):
                    out[i] += c * p[k]
                    i += stride
                continue
            for k in range(n):
                u = min(max((lo + gap * k - start) / step, 0.0), size - 1.0)
                i, w0, w1, w2, w3, w4, w5 = lagrange(u, size)
                q = c * p[k]
                out[i] += q * w0
                out[i + 1] += q * w1
                out[i + 2] += q * w2
                out[i + 3] += q * w3
                out[i + 4] += q * w4
                out[i + 5] += q * w5


@jit
def add_scores(
    people: Ints,
    weight: Array,
    site_start: Ints,
    factors: SiteFactors,
    table: LogLikelihoodTable,
    cavity: Moments,
    tilted: Moments,
    slopes: Array,
    out: Array,
) -> None:
    """Add to out[factor] the expected score of every factor.

    It is the tilted mean of factor weight × slopes[row, parameter].
    """
    factor_start, factor_row, factor_weight = factors.start, factors.row, factors.weight
    start, step = table.start, table.step
    p = np.empty(4 * MOST_NODES)
    size = table.log_lik.shape[1]
    width = slopes.shape[1]
    for person in people:
        w = weight[person]
        if w < 1e-9:
            continue
        for site in range(site_start[person], site_start[person + 1]):
            a = factor_start[site]
            b = factor_start[site + 1]
            members = factor_row[a:b]
            coefs = factor_weight[a:b]
            here = TiltedSite(
                cavity.mean[site],
                cavity.variance[site],
                tilted.mean[site],
                np.sqrt(tilted.variance[site]),
            )
            n, first, stride, lo, gap = _tilted_weights(members, coefs, table, here, p)
            for j in range(members.size):
                for d in range(width):
                    s = slopes[members[j], d]
                    total = 0.0
                    if stride > 0:
                        for k in range(n):
                            total += p[k] * s[first + stride * k]
                    else:
                        for k in range(n):
                            u = min(max((lo + gap * k - start) / step, 0.0), size - 1.0)
                            i, w0, w1, w2, w3, w4, w5 = lagrange(u, size)
                            total += p[k] * (
                                w0 * s[i]
                                + w1 * s[i + 1]
                                + w2 * s[i + 2]
                                + w3 * s[i + 3]
                                + w4 * s[i + 4]
                                + w5 * s[i + 5]
                            )
                    out[a + j, d] += w * coefs[j] * total


@jit
def leave_each_out(
    n_sites: int,
    factors: SiteFactors,
    factor_response: Ints,
    table: LogLikelihoodTable,
    cavity: Moments,
    tilted: Moments,
    out: Moments,
) -> None:
    """Mean and variance of ability at each response's instant without that response.

    They are those of the cavity × the other responses of the instant.
    """
    factor_start, factor_row, factor_weight = factors.start, factors.row, factors.weight
    log_lik, start, step = table.log_lik, table.start, table.step
    p = np.empty(4 * MOST_NODES)
    q = np.empty(4 * MOST_NODES)
    size = log_lik.shape[1]
    for site in range(n_sites):
        a = factor_start[site]
        b = factor_start[site + 1]
        if factor_response[a] == factor_response[b - 1]:  # the only response of its instant
            out.mean[factor_response[a]] = cavity.mean[site]
            out.variance[factor_response[a]] = cavity.variance[site]
            continue
        # nodes over 7 tilted sds to either side: without one response the distribution is wider
        here = TiltedSite(
            cavity.mean[site],
            cavity.variance[site],
            tilted.mean[site],
            np.sqrt(tilted.variance[site]),
        )
        n, first, stride, lo, gap = _tilted_weights(
            factor_row[a:b], factor_weight[a:b], table, here, p
        )
        j = a
        while j < b:
            end = j
            while end < b and factor_response[end] == factor_response[j]:
                end += 1
            top = -np.inf
            for k in range(n):
                log_f = 0.0
                i, w0, w1, w2, w3, w4, w5 = lagrange(
                    min(max((lo + gap * k - start) / step, 0.0), size - 1.0), size
                )
                for m in range(j, end):
                    row = log_lik[factor_row[m]]
                    log_f += factor_weight[m] * (
                        row[first + stride * k]
                        if stride > 0
                        else w0 * row[i]
                        + w1 * row[i + 1]
                        + w2 * row[i + 2]
                        + w3 * row[i + 3]
                        + w4 * row[i + 4]
                        + w5 * row[i + 5]
                    )
                q[k] = np.log(max(p[k], 1e-300)) - log_f
                top = max(top, q[k])
            total = 0.0
            s1 = 0.0
            s2 = 0.0
            for k in range(n):
                x = start + step * (first + stride * k) if stride > 0 else lo + gap * k
                weight = np.exp(q[k] - top)
                total += weight
                s1 += weight * x
                s2 += weight * x * x
            centre = s1 / total
            out.mean[factor_response[j]] = centre
            out.variance[factor_response[j]] = max(s2 / total - centre * centre, 1e-12)
            j = end
