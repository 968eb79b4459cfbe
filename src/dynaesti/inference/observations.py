"""Observations of a curve: checked times and emissions behind a link, grouped by instant.

`observe` makes them from the user's arguments; fits work on them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dynaesti.core import Array, Ints, Ragged, raise_where
from dynaesti.data import TimeAxis, read_times
from dynaesti.errors import InputError
from dynaesti.inference.site_likelihood import (
    TABLE_HALF_WIDTH,
    GaussianFactors,
    SiteLikelihood,
    group_by_instant,
    keep_apart,
)
from dynaesti.model import (
    POSITIVE,
    REAL,
    UNIT,
    Emissions,
    Link,
    Table,
    as_emissions,
    as_link,
    emission_blocks,
)

MeanFunction: TypeAlias = float | Callable[[Any], Any]


@dataclass(frozen=True)
class Observations:
    """Emissions at offsets on a time axis.

    Parameters
    ----------
    axis : TimeAxis
    offsets : array (n_emissions,)
        Times in the axis's unit.
    emissions : Emissions
    link : Link
    mean : float or callable
        Prior mean of the latent curve, a number or a function of time.
    reach : float
        Half the width of the likelihood table around the mean, on the latent scale.
    centre : float
        Middle of the likelihood table where the mean is a function of time.
    columns : array (n_emissions, n_columns), optional
        Columns of effects.
    separate : bool
        Whether emissions at one instant see different values: with noise of their own, or effects.
    """

    axis: TimeAxis
    offsets: Array
    emissions: Emissions
    link: Link
    mean: MeanFunction = 0.0
    reach: float = TABLE_HALF_WIDTH
    centre: float = 0.0
    columns: Array | None = None
    separate: bool = False

    @cached_property
    def _grouped(self) -> tuple[Array, SiteLikelihood]:
        group = keep_apart if self.separate else group_by_instant
        instants, groups = group(self.offsets)
        return instants, self.grouped(groups)

    @cached_property
    def site_of_emission(self) -> Ints:
        """Number of the site of each emission, (n_emissions,)."""
        if not self.separate:
            return np.searchsorted(self.instants, self.offsets).astype(np.int64)
        return np.argsort(np.argsort(self.offsets, kind="stable"), kind="stable").astype(np.int64)

    @cached_property
    def columns_at_sites(self) -> Array | None:
        """Columns of effects at the sites, (n_sites, n_columns); None without effects."""
        if self.columns is None:
            return None
        return self.columns[np.argsort(self.offsets, kind="stable")]

    def grouped(self, groups: Ragged) -> SiteLikelihood:
        """The likelihood of the emissions in the given groups, one group for each site."""
        return SiteLikelihood(
            self.emissions,
            self.link,
            groups,
            self.centre if callable(self.mean) else float(self.mean),
            self.reach,
        )

    @property
    def instants(self) -> Array:
        """Offsets of the sites, in rising order: distinct, unless emissions are kept apart."""
        return self._grouped[0]

    @property
    def likelihood(self) -> SiteLikelihood:
        """The grouped emissions: one group for each instant, and a last one with all emissions."""
        return self._grouped[1]

    @cached_property
    def gaussian_factors(self) -> GaussianFactors:
        """The Gaussian emissions of all groups, by deviations from the prior mean."""
        return self.likelihood.gaussian_factors(self.mean_at(self.offsets))

    def mean_at(self, offsets: Array) -> Array:
        """The prior mean of the latent curve at offsets, of the same shape."""
        if not callable(self.mean):
            return np.full(offsets.shape, float(self.mean))
        try:
            values = np.asarray(self.mean(self.axis.restore(offsets)), dtype=np.float64)
        except Exception as error:  # whatever the user's function raised
            raise InputError(
                f"mean: the function raised {type(error).__name__}: {error}"
            ) from error
        if values.shape not in ((), offsets.shape) or not np.all(np.isfinite(values)):
            raise InputError(
                "mean: the function must return one finite number for each time it is given"
            )
        return np.broadcast_to(values, offsets.shape)

    @property
    def span(self) -> tuple[float, float]:
        """First and last instant."""
        return float(self.instants[0]), float(self.instants[-1])

    def typical_gap(self) -> float:
        """Median distance of neighbouring instants, at most a twentieth of the span."""
        distinct = np.unique(self.instants)
        if distinct.size < 2:
            return 1.0
        return float(min(np.median(np.diff(distinct)), np.ptp(distinct) / 20))

    def joined(self, times: Any, emissions: Any, columns: Array | None = None) -> "Observations":
        """The observations with further emissions appended, after checks."""
        more = as_emissions(emissions)
        offsets = self.axis.offsets(times)
        _check_lengths(offsets, more)
        check_support(more, self.link)
        parts = [part for part, _ in emission_blocks(self.emissions)]
        joint = as_emissions([*parts, *(part for part, _ in emission_blocks(more))])
        if self.columns is not None and columns is not None:
            columns = np.concatenate([self.columns, columns])
        return replace(
            self,
            offsets=np.concatenate([self.offsets, offsets]),
            emissions=joint,
            columns=columns,
        )

    def take(self, rows: Ints) -> "Observations":
        """Some of the emissions; `rows` are their indices in rising order."""
        columns = None if self.columns is None else self.columns[rows]
        taken = self.emissions.take(rows)
        return replace(self, offsets=self.offsets[rows], emissions=taken, columns=columns)


def observe(times: Any, emissions: Any, link: Any) -> Observations:
    """Check and group the user's times and emissions; the default link is the emissions' own."""
    axis, offsets = read_times(times)
    given = as_emissions(emissions)
    _check_lengths(offsets, given)
    chosen = as_link(default_link(given) if link is None else link)
    check_support(given, chosen)
    return Observations(axis, offsets, given, chosen)


def default_link(emissions: Emissions) -> str:
    """The link that all families of emissions suggest; an error where they differ."""
    names = {part.link for part, _ in emission_blocks(emissions)}
    if len(names) > 1:
        raise InputError(
            f"link: these emissions suggest different links ({', '.join(sorted(names))}); name one"
        )
    return names.pop()


def check_support(emissions: Emissions, link: Link) -> None:
    """Refuse emissions whose values, or tables whose grids, do not suit the range of the link."""
    for part, _ in emission_blocks(emissions):
        if isinstance(part, Table) and not part.latent:
            low, high = {UNIT: (0.0, 1.0), POSITIVE: (0.0, np.inf)}.get(
                link.range, (-np.inf, np.inf)
            )
            raise_where(
                (part.grid < low) | (part.grid > high),
                "Table grid",
                f"not {link.range}",
                f"the {link.name} link cannot reach them",
            )
        if part.support not in (REAL, link.range):
            raise InputError(
                f"link: {part.kind} emissions need y to be {part.support}, but under the "
                f"{link.name} link y is "
                f"{link.range}; use {part.link!r}"
            )


def unit_scale(observations: Observations) -> bool:
    """Whether a prior with mean 0 and variance 1 suits the latent curve, as the paper argues."""
    return all(
        part.unit_prior and (part.support != UNIT or observations.link.name == "probit")
        for part, _ in emission_blocks(observations.emissions)
    )


def rough_scale(observations: Observations) -> tuple[float, float]:
    """Rough location and spread of the latent curve, from the emissions alone.

    They centre the prior where mean and amplitude are learned.
    """
    rough = [
        values
        for part, _ in emission_blocks(observations.emissions)
        if (values := part.initial_latent(observations.link)) is not None
    ]
    if not rough:
        return 0.0, 1.0
    values = np.concatenate(rough)
    location = float(np.median(values))
    quarter = float(np.subtract(*np.percentile(values, [75, 25]))) / 1.35
    # by quartiles, so that an outlier does not set the scale
    spread = quarter if quarter > 0 else float(np.std(values))
    if observations.link.name == "log":
        # rates that vary by e^3 and more are not learned from a few counts
        return location, float(np.clip(spread, 0.3, 3.0))
    return location, spread if spread > 1e-12 * max(1.0, abs(location)) else max(abs(location), 1.0)


def _check_lengths(offsets: Array, emissions: Emissions) -> None:
    if offsets.size != len(emissions):
        raise InputError(
            f"times and emissions differ in length: {offsets.size} times, {len(emissions)} "
            f"emissions; "
            "each emission needs its own time"
        )
