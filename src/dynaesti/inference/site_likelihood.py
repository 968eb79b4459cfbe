"""Emissions at one instant become one site.

A group whose members' likelihoods multiply. Groups are matched to Gaussians.

Two ways to the same tilted moments: rows on an even latent grid where few are distinct (compiled,
no evaluation in the loop), and the families' own formulas at the nodes everywhere else (many
exposures, user functions, sharp likelihoods).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynaesti.core import Array, Bools, Ints
from dynaesti.errors import EmissionError
from dynaesti.inference.moments.adaptive import (
    ATTEMPTS,
    DONE,
    EDGE,
    HOPELESS,
    assess_brackets,
    spread_nodes,
)
from dynaesti.inference.moments.match import match_sites, match_sites_cached
from dynaesti.inference.moments.table import NODES, WIDTH, LogLikelihoodTable, likelihood_table
from dynaesti.model import Emissions, Link, LinkedPoints, emission_blocks

REACH = 8.0  # of tabulated rows either side of their centre, for a prior of unit variance
CELLS = (
    640,
    1280,
    2560,
)  # grid steps over the whole reach: the first count that resolves the rows is taken
MOST_ROWS = 4096
MOST_CELLS = 8_000_000
SLACK = 1e-8  # error of matching by derivative, in sds: a tenth of what grafting settles to
SCAN = np.linspace(
    -40.0, 40.0, 641
)  # sds of the cavity at which mass is looked for where data drag a curve beyond its prior
BLOCK = 1 << 17  # evaluated points at a time: about a megabyte, stays in cache


@dataclass(frozen=True)
class Groups:
    """Which emissions multiply into which group: members[start[g]:start[g + 1]]."""

    start: Ints
    members: Ints

    def __len__(self) -> int:
        return self.start.size - 1

    def of(self, group: int) -> Ints:
        """The emissions of one group."""
        return self.members[self.start[group] : self.start[group + 1]]

    def sums(self, values: Array) -> Array:
        """Sum over each group's members."""
        if len(self.members) == 0:
            return np.zeros(len(self))
        padded = np.append(values[self.members], 0.0)
        return np.where(
            np.diff(self.start) > 0,
            np.add.reduceat(padded, self.start[:-1].clip(max=len(self.members))),
            0.0,
        )


def group_by_instant(times: Array) -> tuple[Array, Groups]:
    """Distinct times, rising, and the groups of emissions at each.

    The last group holds every emission (a static curve).
    """
    instants, inverse = np.unique(times, return_inverse=True)
    order = np.argsort(inverse, kind="stable").astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(inverse, minlength=instants.size))]).astype(
        np.int64
    )
    return instants, Groups(
        np.append(start, 2 * times.size), np.concatenate([order, np.arange(times.size)])
    )


@dataclass(frozen=True)
class Fixed:
    """The exactly Gaussian part of each group in natural form.

    Exp(constant + shift·x − ½·precision·x²).
    """

    precision: Array
    shift: Array
    constant: Array


@dataclass(frozen=True)
class Likelihood:
    """All emissions of a fit behind their link, and the groups they form.

    Rows may be tabulated over centre ± reach.
    """

    emissions: Emissions
    link: Link
    groups: Groups
    centre: float = 0.0
    reach: float = REACH

    @cached_property
    def is_gaussian(self) -> Bools:
        """Which emissions are exactly Gaussian in the latent value."""
        exact = np.zeros(len(self.emissions), dtype=bool)
        for part, where in emission_blocks(self.emissions):
            exact[where] = part.gaussian() is not None and self.link.name == "identity"
        return exact

    def gaussian_values(self) -> tuple[Array, Array]:
        """(values, precisions) of the Gaussian emissions, zeros elsewhere."""
        values = np.zeros(len(self.emissions))
        precision = np.zeros(len(self.emissions))
        for part, where in emission_blocks(self.emissions):
            exact = part.gaussian()
            if exact is not None and self.is_gaussian[where].all():
                values[where] = exact[0]
                precision[where] = exact[1] ** -2
        return values, precision

    def gaussian_log_density(self, rows: Ints, mean: Array, var: Array) -> Array:
        """Log predictive density of Gaussian emissions whose latent values have the given means and
        variances.
        """
        values, precision = (part[rows] for part in self.gaussian_values())
        spread = var + 1.0 / precision
        return np.asarray(-0.5 * np.log(2 * np.pi * spread) - 0.5 * (values - mean) ** 2 / spread)

    def fixed(self, offset: Array) -> Fixed:
        """The Gaussian part of every group, for x counted from `offset` (one an emission), which
        keeps digits.
        """
        values, precision = self.gaussian_values()
        away = np.where(precision > 0, values - offset, 0.0)
        with np.errstate(divide="ignore"):
            constant = np.where(
                precision > 0,
                0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * away**2,
                0.0,
            )
        return Fixed(
            self.groups.sums(precision),
            self.groups.sums(precision * away),
            self.groups.sums(constant),
        )

    @cached_property
    def inexact(self) -> Groups:
        """The groups without their Gaussian members: what must be matched."""
        if not self.is_gaussian.any():
            return self.groups
        keep = ~self.is_gaussian[self.groups.members]
        counts = np.concatenate([[0], np.cumsum(keep)])
        return Groups(counts[self.groups.start].astype(np.int64), self.groups.members[keep])

    @cached_property
    def bent(self) -> Bools:
        """Which groups have members that are not Gaussian."""
        return np.asarray(np.diff(self.inexact.start) > 0)

    @cached_property
    def table(self) -> tuple[LogLikelihoodTable, Ints] | None:
        """Rows on the latent grid and each emission's row.

        None where formulas at the nodes are better.
        """
        return tabulate(self.emissions, self.link, self.centre, self.reach)

    @cached_property
    def _member_rows(self) -> Ints:
        """The table row of every member that must be matched."""
        assert self.table is not None
        return self.table[1][self.inexact.members]

    @cached_property
    def _unit_coefs(self) -> Array:
        return np.ones(self.inexact.members.size)

    def evaluate(self, rows: Ints, x: Array) -> Array:
        """Log f of emissions `rows` at latent x (rows, nodes).

        NaN and +inf are refused by position.
        """
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            values = self.emissions.log_prob(LinkedPoints(x, self.link), rows)
        bad = np.isnan(values) | (values == np.inf)
        if bad.any():
            k, j = np.argwhere(bad)[0]
            y = float(self.link.value(x[k : k + 1, j])[0])
            raise EmissionError(
                f"emission {rows[k]}: its log-likelihood is {values[k, j]} at y = {y:.6g}; "
                f"it must be a number below infinity for every y that is {self.link.range}"
            )
        return values

    def group_values(self, group: Ints, x: Array, groups: Groups | None = None) -> Array:
        """Log f of whole groups at latent x (groups, nodes), members multiplied."""
        groups = groups or self.inexact
        first = groups.start[group]
        counts = groups.start[group + 1] - groups.start[group]
        if np.all(counts == 1):
            return self.evaluate(groups.members[first], x)
        owner = np.repeat(np.arange(group.size), counts)
        place = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts) + first[owner]
        out = np.zeros_like(x)
        most = max(1, BLOCK // x.shape[1])
        for a in range(0, owner.size, most):
            mine = owner[a : a + most]
            values = self.evaluate(groups.members[place[a : a + most]], x[mine])
            begin = np.flatnonzero(np.diff(mine, prepend=-1))
            out[mine[begin]] += np.add.reduceat(values, begin, axis=0)
        return out

    def match(
        self,
        sites: Ints,
        group: Ints,
        cavity_mean: Array,
        cavity_var: Array,
        log_z: Array,
        mean: Array,
        var: Array,
        tabulated: bool = True,
        known: Array | None = None,
        wide: bool = False,
    ) -> None:
        """Tilted moments of the chosen sites, written into log_z, mean and var, which come in
        holding a guess.

        `tabulated` says that the prior keeps the curve well within the table's reach; `known` is
        where the last integrals are kept from sweep to sweep, see `match_sites_cached`. `wide`
        looks for mass far off too, where the guess may know nothing of it.
        """
        if tabulated and self.table is not None:
            table = self.table[0]
            members = (
                group,
                self.inexact.start,
                self._member_rows,
                self._unit_coefs,
                table.log_lik,
                table.lik,
                table.top,
            )
            if known is None:
                hopeless = match_sites(
                    sites,
                    *members,
                    table.start,
                    table.step,
                    cavity_mean,
                    cavity_var,
                    log_z,
                    mean,
                    var,
                )
            else:
                hopeless = match_sites_cached(
                    sites,
                    *members,
                    table.start,
                    table.step,
                    cavity_mean,
                    cavity_var,
                    known,
                    SLACK,
                    log_z,
                    mean,
                    var,
                )
            if hopeless >= 0:
                self._refuse(int(group[hopeless]))
            return
        empty = np.diff(self.inexact.start)[group[sites]] == 0
        flat = sites[empty]
        log_z[flat] = 0.0
        mean[flat] = cavity_mean[flat]
        var[flat] = cavity_var[flat]
        sites = sites[~empty]
        for a in range(0, sites.size, BLOCK // NODES):
            self._match_block(
                sites[a : a + BLOCK // NODES],
                group,
                cavity_mean,
                cavity_var,
                log_z,
                mean,
                var,
                wide,
            )

    def _scanned(
        self, sites: Ints, group: Ints, cavity_mean: Array, cavity_var: Array
    ) -> tuple[Array, Array]:
        """Brackets that hold all that counts of each tilted distribution, from a coarse look far
        and wide: it may have several humps.
        """
        lo = np.empty(sites.size)
        hi = np.empty(sites.size)
        for a in range(0, sites.size, BLOCK // SCAN.size):
            some = sites[a : a + BLOCK // SCAN.size]
            sd = np.sqrt(cavity_var[some])[:, None]
            x = cavity_mean[some, None] + sd * SCAN
            log_w = self.group_values(group[some], x) - 0.5 * SCAN**2
            counts = log_w > log_w.max(axis=1, keepdims=True) - EDGE
            first = counts.argmax(axis=1)
            last = SCAN.size - 1 - counts[:, ::-1].argmax(axis=1)
            row = np.arange(some.size)
            lo[a : a + some.size] = x[row, np.maximum(first - 1, 0)]
            hi[a : a + some.size] = x[row, np.minimum(last + 1, SCAN.size - 1)]
        return lo, hi

    def _match_block(
        self,
        sites: Ints,
        group: Ints,
        cavity_mean: Array,
        cavity_var: Array,
        log_z: Array,
        mean: Array,
        var: Array,
        wide: bool,
    ) -> None:
        reach = WIDTH * np.sqrt(var[sites])
        lo, hi = (
            self._scanned(sites, group, cavity_mean, cavity_var)
            if wide
            else (mean[sites] - reach, mean[sites] + reach)
        )
        nodes = np.full(sites.size, NODES)
        todo = np.arange(sites.size)
        for _ in range(8 * ATTEMPTS):  # a pass serves the brackets with equally many nodes
            n = int(nodes[todo].min())
            now = todo[nodes[todo] == n]
            at = sites[now]
            a = lo[now]
            b = hi[now]
            count = nodes[now]
            x = spread_nodes(a, b, n)
            log_w = (
                self.group_values(group[at], x)
                - 0.5 * (x - cavity_mean[at, None]) ** 2 / cavity_var[at, None]
            )
            m = np.empty(now.size)
            v = np.empty(now.size)
            lz = np.empty(now.size)
            verdict = np.empty(now.size, dtype=np.int64)
            assess_brackets(log_w, a, b, count, m, v, lz, verdict)
            lo[now] = a
            hi[now] = b
            nodes[now] = count
            done = verdict == DONE
            mean[at[done]] = m[done]
            var[at[done]] = v[done]
            log_z[at[done]] = lz[done] - 0.5 * np.log(2 * np.pi * cavity_var[at[done]])
            if np.any(verdict == HOPELESS):
                self._refuse(int(group[at[verdict == HOPELESS][0]]))
            todo = todo[~np.isin(todo, now[done])]
            if todo.size == 0:
                return
        raise EmissionError(
            f"emission {self.inexact.of(int(group[sites[todo[0]]]))[0]}: its likelihood could not "
            f"be integrated "
            f"({todo.size} sites); is it smooth and finite where the curve can be?"
        )

    def _refuse(self, group: int) -> None:
        members = self.inexact.of(group)
        what = (
            f"emission {members[0]}"
            if members.size == 1
            else f"the {members.size} emissions at one instant (first: {members[0]})"
        )
        raise EmissionError(
            f"{what}: impossible (log-likelihood -inf) wherever the curve can be; drop or repair it"
        )


def tabulate(
    emissions: Emissions, link: Link, centre: float, reach: float
) -> tuple[LogLikelihoodTable, Ints] | None:
    """Rows of the distinct emissions on the latent grid, if they are few and a grid resolves them.

    And each emission's row.
    """
    first = emissions.unique_index()
    if first is None:
        return None
    leaders, row = np.unique(first, return_inverse=True)
    if leaders.size > MOST_ROWS:
        return None
    for cells in CELLS:
        if leaders.size * cells > MOST_CELLS:
            return None
        step = 2 * reach / cells
        rows = _resolved_rows(
            emissions, link, leaders, np.linspace(centre - reach, centre + reach, cells + 1)
        )
        if rows is not None:
            return likelihood_table(centre - reach, step, rows), row.astype(np.int64)
    return None


def _resolved_rows(emissions: Emissions, link: Link, leaders: Ints, x: Array) -> Array | None:
    """Rows on the grid x, if six-point interpolation between its points meets the formula to 1e-7."""
    middle = 0.5 * (x[2:-3] + x[3:-2])
    with np.errstate(all="ignore"):
        rows = emissions.log_prob(LinkedPoints(np.tile(x, (leaders.size, 1)), link), leaders)
        if not np.all(np.isfinite(rows)):
            return None
        truth = emissions.log_prob(LinkedPoints(np.tile(middle, (leaders.size, 1)), link), leaders)
    weights = np.array([3.0, -25.0, 150.0, 150.0, -25.0, 3.0]) / 256.0
    guess = sum(w * rows[:, k : k + middle.size] for k, w in enumerate(weights))
    near = truth > truth.max(axis=1, keepdims=True) - 700.0
    return (
        rows
        if np.all(np.abs(guess - truth)[near] < 1e-7 * np.maximum(1.0, np.abs(truth[near])))
        else None
    )
