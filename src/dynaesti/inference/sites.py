"""Types of expectation propagation: Gaussian sites, moments, layouts and results.

All arrays of sites are flat: the sites of curve j follow those of curve j − 1. `SiteLayout` says
where each curve begins and which factors each site has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, starts_of, take_rows


class NaturalGaussian(NamedTuple):
    """Gaussian functions exp(shift · x − precision · x² / 2), elementwise.

    The precision may be negative: sites need not be normalisable.

    Parameters
    ----------
    precision, shift : array
        Natural parameters, of equal shape.
    """

    precision: Array
    shift: Array

    @staticmethod
    def empty(size: int) -> NaturalGaussian:
        """Flat sites (precision 0, shift 0), which carry no information."""
        return NaturalGaussian(np.zeros(size), np.zeros(size))

    def select(self, where: Ints | slice) -> NaturalGaussian:
        """The entries at some indices."""
        return NaturalGaussian(self.precision[where], self.shift[where])

    def times(self, other: NaturalGaussian) -> NaturalGaussian:
        """The product with other Gaussian functions: natural parameters add."""
        return NaturalGaussian(self.precision + other.precision, self.shift + other.shift)

    def about(self, mean: Array) -> NaturalGaussian:
        """The same functions of the distance from a mean, up to a factor."""
        return NaturalGaussian(self.precision, self.shift - self.precision * mean)

    def through_nugget(self, nugget: Array | float) -> NaturalGaussian:
        """The latent sites: the nugget between curve and emission integrated out.

        A site on curve + nugget becomes a site on the curve itself.
        """
        shrink = 1.0 + nugget * self.precision
        return NaturalGaussian(self.precision / shrink, self.shift / shrink)


class Moments(NamedTuple):
    """Means and variances, elementwise."""

    mean: Array
    variance: Array

    def select(self, where: Ints | slice) -> Moments:
        """The entries at some indices."""
        return Moments(self.mean[where], self.variance[where])

    def times(self, site: NaturalGaussian) -> Moments:
        """Moments of the product with a Gaussian function in natural form."""
        shrink = 1.0 + site.precision * self.variance
        return Moments((self.mean + site.shift * self.variance) / shrink, self.variance / shrink)


class SiteFactors(NamedTuple):
    """The factors of each site, in the form that compiled code reads.

    Site s has the factors ``start[g]:start[g + 1]`` with g = ``group[s]``.
    """

    group: Ints  # (n_sites,)
    start: Ints  # (n_groups + 1,)
    row: Ints  # (n_factors,) row of the likelihood table
    weight: Array  # (n_factors,)


@dataclass(frozen=True)
class EPResult:
    """Result of expectation propagation for many curves."""

    sites: NaturalGaussian  # (n_sites,)
    cavity: Moments  # (n_sites,) without the site and the Gaussian factors of its instant
    log_z: Array  # (n_sites,) log ∫ factors × cavity: the leave-one-out density of an instant
    log_evidence: Array  # (n_curves,)
    log_partition: Array  # (n_curves,) log ∫ prior × latent sites
    converged: Bools  # (n_curves,)
    residual: Array  # (n_curves,) largest difference of tilted and posterior moments, in sds
    sweeps: Ints  # (n_curves,)

    @staticmethod
    def empty(n_sites: int, n_curves: int) -> EPResult:
        """A result filled with zeros, for `write` to fill."""
        return EPResult(
            NaturalGaussian.empty(n_sites),
            Moments(np.zeros(n_sites), np.zeros(n_sites)),
            np.zeros(n_sites),
            np.zeros(n_curves),
            np.zeros(n_curves),
            np.zeros(n_curves, dtype=bool),
            np.zeros(n_curves),
            np.zeros(n_curves, dtype=np.int64),
        )

    @property
    def tilted(self) -> Moments:
        """Moments of the tilted distributions, valid where no instant has Gaussian factors."""
        return self.cavity.times(self.sites)

    def write(self, sites: Ints | slice, curves: Ints | slice, part: EPResult) -> None:
        """Write the result of some curves in place.

        Parameters
        ----------
        sites, curves : index arrays or slices
            Positions of the part's sites and curves in this result.
        part : EPResult
            The result of these curves.
        """
        self.sites.precision[sites] = part.sites.precision
        self.sites.shift[sites] = part.sites.shift
        self.cavity.mean[sites] = part.cavity.mean
        self.cavity.variance[sites] = part.cavity.variance
        self.log_z[sites] = part.log_z
        for name in ("log_evidence", "log_partition", "converged", "residual", "sweeps"):
            getattr(self, name)[curves] = getattr(part, name)

    def with_log_evidence(self, log_evidence: Array, cavity: Moments | None = None) -> EPResult:
        """The result with another log evidence (n_curves,), and other cavities where given."""
        return EPResult(
            self.sites,
            cavity or self.cavity,
            self.log_z,
            log_evidence,
            self.log_partition,
            self.converged,
            self.residual,
            self.sweeps,
        )

    def reflected(self) -> EPResult:
        """The result for the reflected curves, x → −x."""
        return replace(
            self,
            sites=NaturalGaussian(self.sites.precision, -self.sites.shift),
            cavity=Moments(-self.cavity.mean, self.cavity.variance),
        )

    def select(self, sites: Ints | slice, curves: Ints | slice) -> EPResult:
        """The result of some curves.

        Parameters
        ----------
        sites, curves : index arrays or slices
            The curves, and all their sites.
        """
        return EPResult(
            self.sites.select(sites),
            self.cavity.select(sites),
            self.log_z[sites],
            self.log_evidence[curves],
            self.log_partition[curves],
            self.converged[curves],
            self.residual[curves],
            self.sweeps[curves],
        )


@dataclass(frozen=True)
class SiteLayout:
    """The sites of many curves and the factors of each site, laid end to end.

    Curve j has the sites ``site_start[j]:site_start[j + 1]``, one for each of its instants; site s
    has the factors ``factor_start[s]:factor_start[s + 1]``.
    """

    times: Array  # (n_sites,) rising within a curve
    site_start: Ints  # (n_curves + 1,)
    factor_start: Ints  # (n_sites + 1,)
    factor_row: Ints  # (n_factors,) row of the likelihood table, or number of the emission
    factor_weight: Array  # (n_factors,)
    factor_response: Ints  # (n_factors,) the response that a factor belongs to

    @property
    def n_curves(self) -> int:
        """Number of curves."""
        return self.site_start.size - 1

    @property
    def n_sites(self) -> int:
        """Number of sites."""
        return self.times.size

    @cached_property
    def spans(self) -> tuple[Array, Array]:
        """First and last instant of each curve: two arrays (n_curves,)."""
        return self.times[self.site_start[:-1]], self.times[self.site_start[1:] - 1]

    @property
    def one_factor_per_site(self) -> bool:
        """Whether every site has a single factor."""
        return self.factor_row.size == self.times.size

    @cached_property
    def merged(self) -> SiteLayout:
        """The layout with all factors of a curve in one site: exact for constant curves."""
        first, last = self.spans
        return SiteLayout(
            0.5 * (first + last),
            np.arange(self.n_curves + 1),
            self.factor_start[self.site_start],
            self.factor_row,
            self.factor_weight,
            self.factor_response,
        )

    def sites_of(self, curves: Ints) -> Ints:
        """Indices of the sites of some curves, one curve after the other."""
        return take_rows(self.site_start, curves)

    def curve_slice(self, curves: Ints) -> slice:
        """The sites of consecutive curves, as a slice."""
        return slice(int(self.site_start[curves[0]]), int(self.site_start[curves[-1] + 1]))

    def select(self, curves: Ints) -> SiteLayout:
        """The layout of some curves, with responses renumbered from 0."""
        sites = self.sites_of(curves)
        factors = take_rows(self.factor_start, sites)
        response = self.factor_response[factors]
        return SiteLayout(
            self.times[sites],
            starts_of(self.site_start[curves + 1] - self.site_start[curves]),
            starts_of(self.factor_start[sites + 1] - self.factor_start[sites]),
            self.factor_row[factors],
            self.factor_weight[factors],
            np.cumsum(np.diff(response, prepend=response[:1]) != 0),
        )

    def factors(self, sites: Ints) -> SiteFactors:
        """The factors of some sites, for compiled code."""
        return SiteFactors(sites, self.factor_start, self.factor_row, self.factor_weight)
