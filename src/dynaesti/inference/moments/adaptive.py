"""Tilted moments by adaptive brackets.

A bracket is assessed, then moved, narrowed or refined, until its moments are accurate.
"""

from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Ints, jit, jit_internal
from dynaesti.inference.moments.table import HALF_AGREE, MOST_NODES, NODES, interpolate

# the density at an end must be so far below the maximum, in logs: at 18, heavy tails still matter
EDGE = 25.0
ATTEMPTS = 80
DONE = 0
RETRY = 1
HOPELESS = 2


@jit
def snapped_nodes(lo: float, hi: float, n: int) -> tuple[float, float]:
    """(first node, step) of n nodes over about [lo, hi], snapped to a lattice.

    The nodes do not change when the bracket moves a little. Nodes that followed every move would
    make the quadrature of a kinked likelihood vary at random, and grafting could not converge.
    """
    step = 2.0 ** (np.ceil(8.0 * np.log2((hi - lo) / (n - 2))) / 8.0)
    return np.floor(lo / step) * step, step


@jit_internal
def _assess_bracket(
    log_w: Array, n: int, lo: float, step: float
) -> tuple[int, float, float, int, float, float, float]:
    """Assess a bracket with log densities at the n nodes lo + step·k.

    Returns
    -------
    verdict : int
        DONE, RETRY, or HOPELESS where the density is NaN, or zero however fine the nodes.
    lo, hi, nodes : float, float, int
        The bracket to try next, where the verdict is RETRY.
    log_sum, mean, variance : float
        Log integral and moments, where the verdict is DONE.
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
    if top == -np.inf:  # zero at all these nodes: try more of them
        if n >= MOST_NODES:
            return HOPELESS, lo, hi, n, -np.inf, np.nan, np.nan
        return RETRY, lo, hi, 4 * n, top, 0.0, 0.0
    width = hi - lo
    # a high density at an end means mass beyond it
    left = log_w[0] > top - EDGE
    right = log_w[n - 1] > top - EDGE
    if left or right:  # twice the nodes: a coarser step could miss a narrow mode
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
    first = 0
    last = n - 1
    while log_w[first] < top - EDGE - 2.0:
        first += 1
    while log_w[last] < top - EDGE - 2.0:
        last -= 1
    if last - first + 2 < 0.4 * (n - 1):  # most nodes are at empty ends: narrow the bracket
        nodes = NODES
        while nodes < last - first + 3:
            nodes *= 2
        return RETRY, lo + step * (first - 1), lo + step * (last + 1), nodes, top, 0.0, 0.0
    centre = lo + step * at
    s0 = 0.0
    s1 = 0.0
    s2 = 0.0
    h0 = 0.0
    h1 = 0.0
    h2 = 0.0
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


@jit
def spread_nodes(lo: Array, hi: Array, n: int) -> Array:
    """The nodes of many brackets (n_brackets, n)."""
    x = np.empty((lo.size, n))
    for k in range(lo.size):
        first, step = snapped_nodes(lo[k], hi[k], n)
        for j in range(n):
            x[k, j] = first + step * j
    return x


class Brackets(NamedTuple):
    """Intervals that are integrated over; all arrays have shape (n_brackets,)."""

    lo: Array
    hi: Array
    nodes: Ints


class BracketMoments(NamedTuple):
    """Log integral, mean and variance of the density in each bracket; (n_brackets,) each."""

    log_z: Array
    mean: Array
    variance: Array


@jit
def assess_brackets(log_w: Array, brackets: Brackets) -> tuple[BracketMoments, Ints]:
    """Assess many brackets with equally many nodes.

    Parameters
    ----------
    log_w : array (n_brackets, n_nodes)
        Log densities at the nodes (see `spread_nodes`).
    brackets : Brackets
        Overwritten by the bracket to try next, where the verdict is RETRY.

    Returns
    -------
    found : BracketMoments
    verdict : int array (n_brackets,)
        DONE, RETRY or HOPELESS.
    """
    count, n = log_w.shape
    found = BracketMoments(np.empty(count), np.empty(count), np.empty(count))
    verdict = np.empty(count, dtype=np.int64)
    for k in range(count):
        lo, step = snapped_nodes(brackets.lo[k], brackets.hi[k], n)
        verdict[k], lo, hi, nodes, log_z, mean, var = _assess_bracket(log_w[k], n, lo, step)
        brackets.lo[k] = lo
        brackets.hi[k] = hi
        brackets.nodes[k] = nodes
        found.log_z[k] = log_z
        found.mean[k] = mean
        found.variance[k] = var
    return found, verdict


@jit
def adaptive_moments(
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
    """Tilted moments by adaptive brackets, with interpolated table rows.

    Parameters
    ----------
    log_lik : array (n_rows, n_grid)
        Table of log-likelihoods on the grid start + step·k.
    members, coefs : array (n_members,)
        Rows of the site's factors, and their weights.
    mean, var : float
        Moments of the cavity.
    lo, hi : float
        The first bracket.
    log_w : array
        Memory; left with the log densities at the last nodes.

    Returns
    -------
    verdict : int
        DONE or HOPELESS; RETRY after too many attempts.
    log_z, mean, variance : float
        Tilted moments.
    first, gap, nodes : float, float, int
        The last nodes: first + gap·k.
    """
    n = int(np.int64(NODES))  # a constant would have what is called below compiled twice
    verdict = RETRY
    log_sum = 0.0
    m = 0.0
    v = 0.0
    gap = 0.0
    for _ in range(ATTEMPTS):
        lo, gap = snapped_nodes(lo, hi, n)
        for k in range(n):
            x = lo + gap * k
            log_w[k] = (
                interpolate(log_lik, members, coefs, start, step, x) - 0.5 * (x - mean) ** 2 / var
            )
        verdict, lo, hi, n, log_sum, m, v = _assess_bracket(log_w, n, lo, gap)
        if verdict != RETRY:
            break
    return verdict, log_sum - 0.5 * np.log(2.0 * np.pi * var), m, v, lo, gap, n
