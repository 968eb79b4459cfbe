"""The likelihood of sites: emissions at one instant form a group, whose likelihoods multiply.

Groups are matched to Gaussians. There are two ways to the same tilted moments: rows on an even
latent grid where few are distinct (compiled, no evaluation in the loop), and the families' own
formulas at quadrature nodes everywhere else (many exposures, user functions, sharp likelihoods).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, Ragged, starts_of
from dynaesti.errors import EmissionError
from dynaesti.inference.moments.adaptive import (
    ATTEMPTS,
    DONE,
    EDGE,
    HOPELESS,
    Brackets,
    assess_brackets,
    spread_nodes,
)
from dynaesti.inference.moments.match import match_sites, match_sites_cached
from dynaesti.inference.moments.table import NODES, WIDTH, LogLikelihoodTable, likelihood_table
from dynaesti.inference.sites import Moments, NaturalGaussian, SiteFactors
from dynaesti.model import Emissions, Link, LinkedPoints, emission_blocks

# tables extend so far to either side of their centre, for a prior of unit variance
TABLE_HALF_WIDTH = 8.0
# grid steps over the whole table: the first number that resolves the rows is taken
TABLE_SIZES = (640, 1280, 2560)
MOST_ROWS = 4096
MOST_CELLS = 8_000_000
# error of matching by derivatives, in sds: a tenth of the tolerance of grafting
CACHE_TOLERANCE = 1e-8
# where data move a curve beyond its prior, mass is searched for at these sds of the cavity
SCAN = np.linspace(-40.0, 40.0, 641)
BLOCK = 1 << 17  # evaluated points at a time: about a megabyte, stays in cache


def group_by_instant(times: Array) -> tuple[Array, Ragged]:
    """Distinct times in rising order, and the emissions at each.

    The last group holds every emission: a constant curve has this one site.
    """
    instants, inverse = np.unique(times, return_inverse=True)
    order = np.argsort(inverse, kind="stable").astype(np.int64)
    start = starts_of(np.bincount(inverse, minlength=instants.size))
    everyone = np.arange(times.size)
    return instants, Ragged(np.append(start, 2 * times.size), np.concatenate([order, everyone]))


def keep_apart(times: Array) -> tuple[Array, Ragged]:
    """Times in rising order, each with one emission; the last group holds every emission."""
    order = np.argsort(times, kind="stable").astype(np.int64)
    start = np.arange(times.size + 1)
    everyone = np.arange(times.size)
    return times[order], Ragged(np.append(start, 2 * times.size), np.concatenate([order, everyone]))


class GaussianFactors(NamedTuple):
    """The exactly Gaussian emissions of each group, multiplied.

    Their product is exp(constant + shift · x − precision · x² / 2).
    """

    natural: NaturalGaussian  # (n_groups,)
    constant: Array  # (n_groups,)


@dataclass(frozen=True)
class Integration:
    """How tilted moments are integrated.

    Parameters
    ----------
    tabulated : bool
        Read likelihoods from the table: the prior keeps the curve well within it.
    cache : array (n_sites, CACHE_SIZE), optional
        Earlier integrals, kept from sweep to sweep: see `match_sites_cached`.
    wide : bool
        Search for mass far from the guess too.
    """

    tabulated: bool = True
    cache: Array | None = None
    wide: bool = False


@dataclass(frozen=True)
class SiteLikelihood:
    """All emissions of a fit behind their link, and the groups that they form.

    Parameters
    ----------
    emissions : Emissions
    link : Link
    groups : Ragged
        Numbers of the emissions in each group.
    centre, reach : float
        Rows may be tabulated over centre ± reach, on the latent scale.
    """

    emissions: Emissions
    link: Link
    groups: Ragged
    centre: float = 0.0
    reach: float = TABLE_HALF_WIDTH

    @cached_property
    def is_gaussian(self) -> Bools:
        """Which emissions are exactly Gaussian in the latent value."""
        exact = np.zeros(len(self.emissions), dtype=bool)
        for part, where in emission_blocks(self.emissions):
            exact[where] = part.gaussian() is not None and self.link.name == "identity"
        return exact

    def gaussian_values(self) -> tuple[Array, Array]:
        """Values and precisions (n_emissions,) of the Gaussian emissions, zeros elsewhere."""
        values = np.zeros(len(self.emissions))
        precision = np.zeros(len(self.emissions))
        for part, where in emission_blocks(self.emissions):
            exact = part.gaussian()
            if exact is not None and self.is_gaussian[where].all():
                values[where] = exact[0]
                precision[where] = exact[1] ** -2
        return values, precision

    def gaussian_log_density(self, rows: Ints, mean: Array, var: Array) -> Array:
        """Log predictive density of Gaussian emissions, given moments of the latent values."""
        values, precision = (part[rows] for part in self.gaussian_values())
        spread = var + 1.0 / precision
        return np.asarray(-0.5 * np.log(2 * np.pi * spread) - 0.5 * (values - mean) ** 2 / spread)

    def gaussian_factors(self, offset: Array) -> GaussianFactors:
        """The Gaussian part of every group, as a function of the deviation from `offset`.

        `offset` (n_emissions,) is the prior mean at each emission: to subtract it first keeps
        digits.
        """
        values, precision = self.gaussian_values()
        away = np.where(precision > 0, values - offset, 0.0)
        with np.errstate(divide="ignore"):
            constant = np.where(
                precision > 0,
                0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * away**2,
                0.0,
            )
        return GaussianFactors(
            NaturalGaussian(self.groups.sums(precision), self.groups.sums(precision * away)),
            self.groups.sums(constant),
        )

    @cached_property
    def non_gaussian(self) -> Ragged:
        """The groups without their Gaussian emissions: what has to be matched."""
        if not self.is_gaussian.any():
            return self.groups
        keep = ~self.is_gaussian[self.groups.values]
        return Ragged(starts_of(keep)[self.groups.start], self.groups.values[keep])

    @cached_property
    def has_factors(self) -> Bools:
        """Which groups have emissions that are not Gaussian."""
        return self.non_gaussian.lengths > 0

    @cached_property
    def table(self) -> tuple[LogLikelihoodTable, Ints] | None:
        """Likelihood rows on the latent grid, and each emission's row.

        None where formulas at the nodes are better.
        """
        return tabulate(self.emissions, self.link, self.centre, self.reach)

    @cached_property
    def _factor_rows(self) -> Ints:
        """The table row of every emission that is not Gaussian."""
        assert self.table is not None
        return self.table[1][self.non_gaussian.values]

    @cached_property
    def _unit_weights(self) -> Array:
        return np.ones(self.non_gaussian.values.size)

    def evaluate(self, rows: Ints, x: Array) -> Array:
        """Log f of some emissions at latent x (n_rows, n_nodes).

        NaN and +inf are refused, with the number of the emission.
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

    def group_values(self, group: Ints, x: Array, groups: Ragged | None = None) -> Array:
        """Log f of whole groups at latent x (n_groups, n_nodes), summed over their emissions."""
        groups = groups or self.non_gaussian
        first = groups.start[group]
        counts = groups.start[group + 1] - groups.start[group]
        if np.all(counts == 1):
            return self.evaluate(groups.values[first], x)
        owner = np.repeat(np.arange(group.size), counts)
        position = (
            np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts) + first[owner]
        )
        out = np.zeros_like(x)
        most = max(1, BLOCK // x.shape[1])
        for a in range(0, owner.size, most):
            mine = owner[a : a + most]
            values = self.evaluate(groups.values[position[a : a + most]], x[mine])
            begin = np.flatnonzero(np.diff(mine, prepend=-1))
            out[mine[begin]] += np.add.reduceat(values, begin, axis=0)
        return out

    def match(
        self,
        sites: Ints,
        group: Ints,
        cavity: Moments,
        log_z: Array,
        tilted: Moments,
        integration: Integration,
    ) -> None:
        """Compute tilted moments of the chosen sites, in place.

        Parameters
        ----------
        sites : array of int
            The sites to match.
        group : int array (n_sites,)
            Site s holds the emissions of group ``group[s]``.
        cavity : Moments (n_sites,)
        log_z : array (n_sites,)
            Receives log ∫ factors × cavity.
        tilted : Moments (n_sites,)
            Holds a guess, and receives the tilted moments.
        integration : Integration
            By table or by formula, and the cache of earlier integrals.
        """
        if integration.tabulated and self.table is not None:
            self._match_tabulated(sites, group, cavity, log_z, tilted, integration.cache)
            return
        empty = self.non_gaussian.lengths[group[sites]] == 0
        flat = sites[empty]
        log_z[flat] = 0.0
        tilted.mean[flat] = cavity.mean[flat]
        tilted.variance[flat] = cavity.variance[flat]
        sites = sites[~empty]
        for a in range(0, sites.size, BLOCK // NODES):
            some = sites[a : a + BLOCK // NODES]
            if integration.wide:
                lo, hi = self._scan(some, group, cavity)
            else:
                reach = WIDTH * np.sqrt(tilted.variance[some])
                lo, hi = tilted.mean[some] - reach, tilted.mean[some] + reach
            self._match_by_formula(some, group, cavity, log_z, tilted, lo, hi)

    def _match_tabulated(
        self,
        sites: Ints,
        group: Ints,
        cavity: Moments,
        log_z: Array,
        tilted: Moments,
        cache: Array | None,
    ) -> None:
        """Compute tilted moments from the table of likelihoods."""
        assert self.table is not None
        table = self.table[0]
        factors = self.site_factors(group)
        if cache is None:
            failed = match_sites(sites, factors, table, cavity, log_z, tilted)
        else:
            failed = match_sites_cached(
                sites, factors, table, cavity, cache, CACHE_TOLERANCE, log_z, tilted
            )
        if failed >= 0:
            self._refuse(int(group[failed]))

    def site_factors(self, group: Ints) -> SiteFactors:
        """Rows of the table for sites that hold these groups of emissions."""
        return SiteFactors(group, self.non_gaussian.start, self._factor_rows, self._unit_weights)

    def _scan(self, sites: Ints, group: Ints, cavity: Moments) -> tuple[Array, Array]:
        """Brackets that hold all mass of each tilted distribution, from a coarse scan.

        A bracket covers all modes where there are several.
        """
        lo = np.empty(sites.size)
        hi = np.empty(sites.size)
        for a in range(0, sites.size, BLOCK // SCAN.size):
            some = sites[a : a + BLOCK // SCAN.size]
            sd = np.sqrt(cavity.variance[some])[:, None]
            x = cavity.mean[some, None] + sd * SCAN
            log_w = self.group_values(group[some], x) - 0.5 * SCAN**2
            counts = log_w > log_w.max(axis=1, keepdims=True) - EDGE
            first = counts.argmax(axis=1)
            last = SCAN.size - 1 - counts[:, ::-1].argmax(axis=1)
            row = np.arange(some.size)
            lo[a : a + some.size] = x[row, np.maximum(first - 1, 0)]
            hi[a : a + some.size] = x[row, np.minimum(last + 1, SCAN.size - 1)]
        return lo, hi

    def _match_by_formula(
        self,
        sites: Ints,
        group: Ints,
        cavity: Moments,
        log_z: Array,
        tilted: Moments,
        lo: Array,
        hi: Array,
    ) -> None:
        """Compute tilted moments by evaluating the emissions at nodes over brackets [lo, hi].

        Brackets are refined until their moments are accurate.
        """
        nodes = np.full(sites.size, NODES)
        todo = np.arange(sites.size)
        for _ in range(8 * ATTEMPTS):  # each pass takes the brackets with the fewest nodes
            n = int(nodes[todo].min())
            now = todo[nodes[todo] == n]
            at = sites[now]
            brackets = Brackets(lo[now], hi[now], nodes[now])
            x = spread_nodes(brackets.lo, brackets.hi, n)
            away = x - cavity.mean[at, None]
            log_w = self.group_values(group[at], x) - 0.5 * away**2 / cavity.variance[at, None]
            found, verdict = assess_brackets(log_w, brackets)
            lo[now], hi[now], nodes[now] = brackets
            done = verdict == DONE
            tilted.mean[at[done]] = found.mean[done]
            tilted.variance[at[done]] = found.variance[done]
            constant = 0.5 * np.log(2 * np.pi * cavity.variance[at[done]])
            log_z[at[done]] = found.log_z[done] - constant
            if np.any(verdict == HOPELESS):
                self._refuse(int(group[at[verdict == HOPELESS][0]]))
            todo = todo[~np.isin(todo, now[done])]
            if todo.size == 0:
                return
        raise EmissionError(
            f"emission {self.non_gaussian.row(int(group[sites[todo[0]]]))[0]}: its likelihood "
            f"could not be "
            f"integrated ({todo.size} sites); is it smooth and finite where the curve can be?"
        )

    def _refuse(self, group: int) -> None:
        """Raise an error that names the impossible emissions of a group."""
        members = self.non_gaussian.row(group)
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
    """Likelihood rows of the distinct emissions on the latent grid, and each emission's row.

    None if distinct emissions are too many, or if no grid resolves them.
    """
    first = emissions.unique_index()
    if first is None:
        return None
    leaders, row = np.unique(first, return_inverse=True)
    if leaders.size > MOST_ROWS:
        return None
    for cells in TABLE_SIZES:
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
    """Rows on the grid x; None if six-point interpolation misses the formula by more than 1e-7."""
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
