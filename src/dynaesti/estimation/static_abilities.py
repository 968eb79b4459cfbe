"""Constant abilities: each person's one ability integrated over the items' rows on an even grid, as
coarse as exactness allows.

The trapezoidal rule on an even grid is exact to rounding for smooth integrands once the gap is well
below their width, so about thirty nodes around where an ability was found last do. Whether they did
is seen at the ends, and by leaving out every other node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dynaesti.core import Array, Bools, Ints, dot, jit
from dynaesti.inference import HALF_AGREE, WIDTH, LogLikelihoodTable, Moments, SiteFactors

Tables = dict[int, Array]  # by stride: at every so many nodes of the grid
STRIDES = (8, 4, 2, 1)  # nodes are every so many of the fine grid's
FINE = 0.6  # largest gap, in standard deviations of what is integrated
ENDS = 1e-8  # largest part of the mass at an end node


@jit
def _posterior(
    factor_rows: Ints, coefs: Array, rows: Array, log_prior: Array, lo: int, n: int, p: Array
) -> float:
    """Weights p of one ability at n nodes from lo on, normalised.

    Returns the log of what they added up to, −inf where none is possible.
    """
    for k in range(n):
        p[k] = log_prior[lo + k]
    for j in range(factor_rows.size):
        row = rows[factor_rows[j], lo : lo + n]
        c = coefs[j]
        for k in range(n):
            p[k] += c * row[k]
    top = p[0]
    for k in range(1, n):
        top = max(top, p[k])
    if not top > -np.inf:
        return -np.inf
    total = 0.0
    for k in range(n):
        p[k] = np.exp(p[k] - top)
        total += p[k]
    scale = 1.0 / total
    for k in range(n):
        p[k] *= scale
    return float(top + np.log(total))


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
    """Log evidence and moments of each person's ability, written at ``index``.

    Not done are those for whom the nodes are too few.
    """
    p = np.empty(rows.shape[1])
    for q in range(people.size):
        i = people[q]
        n = size[q]
        a = factors.start[i]
        b = factors.start[i + 1]
        total = _posterior(factors.row[a:b], factors.weight[a:b], rows, log_prior, lo[q], n, p)
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
    """Add the weights of each one's ability, times the answers' coefficients, to their rows of
    `counts`.
    """
    p = np.empty(rows.shape[1])
    for q in range(people.size):
        i = people[q]
        n = size[q]
        w = weight[i]
        if w < 1e-9:
            continue
        a = factors.start[i]
        b = factors.start[i + 1]
        _posterior(factors.row[a:b], factors.weight[a:b], rows, log_prior, lo[q], n, p)
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
    """Add to out[member] the expected score of every answer's term.

    Mean of coefficient × slopes[row, parameter].
    """
    p = np.empty(rows.shape[1])
    for q in range(people.size):
        i = people[q]
        n = size[q]
        w = weight[i]
        if w < 1e-9:
            continue
        a = factors.start[i]
        b = factors.start[i + 1]
        _posterior(factors.row[a:b], factors.weight[a:b], rows, log_prior, lo[q], n, p)
        for j in range(a, b):
            for d in range(slopes.shape[1]):
                out[j, d] += (
                    w * factors.weight[j] * dot(p[:n], slopes[factors.row[j], d, lo[q] : lo[q] + n])
                )


@dataclass
class StaticAbilityIntegrator:
    """People's answers integrated under one normal prior N(0, variance), each over nodes around
    where their ability was found last.
    """

    table: LogLikelihoodTable
    variance: float
    factors: SiteFactors  # one site a person
    _rows: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def nodes(self, stride: int) -> tuple[Array, Array]:
        """(rows at every so many nodes, log prior density there)."""
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
        """The widest stride that suits each variance; 0 where none does."""
        widest = FINE * np.sqrt(np.maximum(var, 0.0)) / self.table.step
        out = np.zeros(var.size, dtype=np.int64)
        for stride in STRIDES[::-1]:
            out[widest >= stride] = stride
        return out

    def integrate(
        self, people: Ints, start: tuple[Array, Array] | None, log_z: Array, posterior: Moments
    ) -> Bools:
        """Log evidence and moments of the ability of some people, from last time's mean and
        variance.

        All arrays have an entry for each of these people. Returns for whom it could be done.
        """
        done = np.zeros(people.size, dtype=bool)
        if start is not None:
            chosen = self.strides(start[1])
            for stride in STRIDES:
                mine = np.flatnonzero(chosen == stride)
                self._integrate_on(stride, mine, people, start, log_z, posterior, done)
        for stride in STRIDES:  # whoever is left: everywhere, on finer and finer nodes
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
        """First node and number of nodes of each person: a bracket around a mean, or everywhere."""
        last = self.nodes(stride)[1].size - 1
        gap = stride * self.table.step
        if around is None:
            return np.zeros(count, dtype=np.int64), np.full(count, last + 1)
        middle = (around[0] - self.table.start) / gap
        reach = WIDTH * np.sqrt(around[1]) / gap
        lo = np.clip(np.floor(middle - reach), 0, last - 1).astype(np.int64)
        return lo, np.clip(np.ceil(middle + reach), lo + 1, last).astype(np.int64) - lo + 1

    def count(self, people: Ints, mean: Array, var: Array, weight: Array, counts: Tables) -> None:
        """Add expected counts to tables by stride: at every so many nodes."""
        for stride, mine, lo, size in self._by_stride(people, mean, var):
            if stride not in counts:
                counts[stride] = np.zeros(self.nodes(stride)[0].shape)
            _count(mine, lo, size, weight, self.factors, *self.nodes(stride), counts[stride])

    def score(
        self, people: Ints, mean: Array, var: Array, weight: Array, slopes: Tables, out: Array
    ) -> None:
        """Add expected scores; `slopes` by stride: those at every so many nodes."""
        for stride, mine, lo, size in self._by_stride(people, mean, var):
            _score(mine, lo, size, weight, self.factors, *self.nodes(stride), slopes[stride], out)

    def _by_stride(
        self, people: Ints, mean: Array, var: Array
    ) -> Iterator[tuple[int, Ints, Ints, Ints]]:
        """People who share a stride, and their windows."""
        chosen = self.strides(var[people])
        for stride in STRIDES:
            mine = people[chosen == stride]
            if mine.size:
                yield stride, mine, *self._window(stride, mine.size, (mean[mine], var[mine]))
