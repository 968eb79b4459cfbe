"""Constant abilities: each person's ability integrated over the item rows on an even grid.

The trapezoidal rule on an even grid is exact to rounding for smooth integrands once the gap is well
below their width. So about thirty nodes around the ability found in the last iteration suffice.
Whether they did is checked by the density at the ends, and by leaving out every other node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dynaesti.core import Array, Bools, Ints, dot, jit, jit_internal
from dynaesti.inference import HALF_AGREE, WIDTH, LogLikelihoodTable, Moments, SiteFactors

Tables = dict[int, Array]  # from a stride s to a table at every s-th point of the grid
STRIDES = (8, 4, 2, 1)  # a quadrature node at every s-th point of the fine grid
FINE = 0.6  # largest gap between nodes, in standard deviations of the integrand
ENDS = 1e-8  # largest fraction of the mass at an end node


@jit_internal
def _posterior(
    person: int, factors: SiteFactors, rows: Array, log_prior: Array, lo: int, n: int, p: Array
) -> tuple[int, int, float]:
    """Compute normalised weights p of one person's ability at n nodes from node lo on.

    Returns where the person's factors begin and end, and the log of the weights' sum before
    normalising, −inf where the likelihood is zero at all nodes.
    """
    a = factors.start[person]
    b = factors.start[person + 1]
    for k in range(n):
        p[k] = log_prior[lo + k]
    for j in range(a, b):
        row = rows[factors.row[j], lo : lo + n]
        c = factors.weight[j]
        for k in range(n):
            p[k] += c * row[k]
    top = p[0]
    for k in range(1, n):
        top = max(top, p[k])
    if not top > -np.inf:
        return a, b, -np.inf
    total = 0.0
    for k in range(n):
        p[k] = np.exp(p[k] - top)
        total += p[k]
    scale = 1.0 / total
    for k in range(n):
        p[k] *= scale
    return a, b, float(top + np.log(total))


@jit
def _integrate(
    people: Ints,
    index: Ints,
    lo: Ints,
    size: Ints,
    factors: SiteFactors,
    rows: Array,
    log_prior: Array,
    first: float,
    gap: float,
    log_z: Array,
    posterior: Moments,
    done: Bools,
) -> None:
    """Compute log evidence and moments of each person's ability, written at ``index``.

    ``done`` is False for people for whom the nodes are too few.
    """
    p = np.empty(rows.shape[1])
    for q in range(people.size):
        i = people[q]
        n = size[q]
        _, _, total = _posterior(i, factors, rows, log_prior, lo[q], n, p)
        done[q] = False
        if not total > -np.inf or p[0] > ENDS or p[n - 1] > ENDS:
            continue
        m = 0.0
        v = 0.0
        half = 0.0
        half_m = 0.0
        half_v = 0.0
        for k in range(n):
            m += k * p[k]
        for k in range(n):
            v += (k - m) ** 2 * p[k]
        for k in range(0, n, 2):
            half += p[k]
            half_m += (k - m) * p[k]
            half_v += (k - m) ** 2 * p[k]
        half_m /= half
        off = max(
            abs(2.0 * half - 1.0),
            abs(half_m) / np.sqrt(v),
            abs((half_v / half - half_m * half_m) / v - 1.0),
        )
        if not off < HALF_AGREE or FINE * FINE * v < 1.0:
            continue
        done[q] = True
        log_z[index[q]] = total + np.log(gap)
        posterior.mean[index[q]] = first + gap * (lo[q] + m)
        posterior.variance[index[q]] = gap * gap * v


@jit
def _count(
    people: Ints,
    lo: Ints,
    size: Ints,
    weight: Array,
    factors: SiteFactors,
    rows: Array,
    log_prior: Array,
    counts: Array,
) -> None:
    """Add expected counts of each person's responses to their rows of `counts`.

    They are the posterior weights of the ability times the factors' weights.
    """
    p = np.empty(rows.shape[1])
    for q in range(people.size):
        i = people[q]
        n = size[q]
        w = weight[i]
        if w < 1e-9:
            continue
        a, b, _ = _posterior(i, factors, rows, log_prior, lo[q], n, p)
        for j in range(a, b):
            out = counts[factors.row[j], lo[q] : lo[q] + n]
            c = w * factors.weight[j]
            for k in range(n):
                out[k] += c * p[k]


@jit
def _score(
    people: Ints,
    lo: Ints,
    size: Ints,
    weight: Array,
    factors: SiteFactors,
    rows: Array,
    log_prior: Array,
    slopes: Array,
    out: Array,
) -> None:
    """Add to out[factor] the expected score of every factor.

    It is the posterior mean of factor weight × slopes[row, parameter].
    """
    p = np.empty(rows.shape[1])
    for q in range(people.size):
        i = people[q]
        n = size[q]
        w = weight[i]
        if w < 1e-9:
            continue
        a, b, _ = _posterior(i, factors, rows, log_prior, lo[q], n, p)
        for j in range(a, b):
            for d in range(slopes.shape[1]):
                out[j, d] += (
                    w * factors.weight[j] * dot(p[:n], slopes[factors.row[j], d, lo[q] : lo[q] + n])
                )


@dataclass
class StaticAbilityIntegrator:
    """Integrates people's constant abilities under one normal prior N(0, variance).

    The nodes of each person lie around the ability found in the last iteration.
    """

    table: LogLikelihoodTable
    variance: float
    factors: SiteFactors  # one site for each person
    _rows: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def nodes(self, stride: int) -> tuple[Array, Array]:
        """Rows and log prior density at every `stride`-th point of the grid."""
        found = self._rows.get(stride)
        if found is None:
            x = self.table.start + self.table.step * np.arange(
                0, self.table.log_lik.shape[1], stride
            )
            log_prior = -0.5 * x**2 / self.variance - 0.5 * np.log(2 * np.pi * self.variance)
            found = self._rows[stride] = (
                np.ascontiguousarray(self.table.log_lik[:, ::stride]),
                log_prior,
            )
        return found

    def strides(self, var: Array) -> Ints:
        """The widest stride that is fine enough for each variance; 0 where none is."""
        widest = FINE * np.sqrt(np.maximum(var, 0.0)) / self.table.step
        out = np.zeros(var.size, dtype=np.int64)
        for stride in STRIDES[::-1]:
            out[widest >= stride] = stride
        return out

    def integrate(
        self, people: Ints, start: tuple[Array, Array] | None, log_z: Array, posterior: Moments
    ) -> Bools:
        """Compute log evidence and moments of the abilities of some people.

        Parameters
        ----------
        people : int array (n,)
        start : (means, variances) of arrays (n,), optional
            Moments of the last iteration. Default: integrate over the whole grid.
        log_z : array (n,)
            Receives the log evidence.
        posterior : Moments (n,)
            Receives the moments.

        Returns
        -------
        bool array (n,)
            For whom the integral is accurate.
        """
        done = np.zeros(people.size, dtype=bool)
        if start is not None:
            chosen = self.strides(start[1])
            for stride in STRIDES:
                mine = np.flatnonzero(chosen == stride)
                self._integrate_on(stride, mine, people, start, log_z, posterior, done)
        for stride in STRIDES:  # the remaining people: over the whole grid, with finer nodes
            left = np.flatnonzero(~done)
            self._integrate_on(stride, left, people, None, log_z, posterior, done)
        return done

    def _integrate_on(
        self,
        stride: int,
        chosen: Ints,
        people: Ints,
        start: tuple[Array, Array] | None,
        log_z: Array,
        posterior: Moments,
        done: Bools,
    ) -> None:
        """Integrate the chosen people over nodes of one stride."""
        if not chosen.size:
            return
        lo, size = self._window(
            stride, chosen.size, None if start is None else (start[0][chosen], start[1][chosen])
        )
        fine = np.empty(chosen.size, dtype=bool)
        _integrate(
            people[chosen],
            chosen,
            lo,
            size,
            self.factors,
            *self.nodes(stride),
            self.table.start,
            stride * self.table.step,
            log_z,
            posterior,
            fine,
        )
        done[chosen] = fine

    def _window(
        self, stride: int, count: int, around: tuple[Array, Array] | None
    ) -> tuple[Ints, Ints]:
        """First node and number of nodes of each person: around a mean, or over the whole grid."""
        last = self.nodes(stride)[1].size - 1
        gap = stride * self.table.step
        if around is None:
            return np.zeros(count, dtype=np.int64), np.full(count, last + 1)
        middle = (around[0] - self.table.start) / gap
        reach = WIDTH * np.sqrt(around[1]) / gap
        lo = np.clip(np.floor(middle - reach), 0, last - 1).astype(np.int64)
        return lo, np.clip(np.ceil(middle + reach), lo + 1, last).astype(np.int64) - lo + 1

    def count(self, people: Ints, mean: Array, var: Array, weight: Array, counts: Tables) -> None:
        """Add expected counts to the table of each person's stride."""
        for stride, mine, lo, size in self._by_stride(people, mean, var):
            if stride not in counts:
                counts[stride] = np.zeros(self.nodes(stride)[0].shape)
            _count(mine, lo, size, weight, self.factors, *self.nodes(stride), counts[stride])

    def score(
        self, people: Ints, mean: Array, var: Array, weight: Array, slopes: Tables, out: Array
    ) -> None:
        """Add expected scores; `slopes` has derivatives of the rows for each stride."""
        for stride, mine, lo, size in self._by_stride(people, mean, var):
            _score(mine, lo, size, weight, self.factors, *self.nodes(stride), slopes[stride], out)

    def _by_stride(
        self, people: Ints, mean: Array, var: Array
    ) -> Iterator[tuple[int, Ints, Ints, Ints]]:
        """People who share a stride, with first node and number of nodes of each."""
        chosen = self.strides(var[people])
        for stride in STRIDES:
            mine = people[chosen == stride]
            if mine.size:
                yield stride, mine, *self._window(stride, mine.size, (mean[mine], var[mine]))
