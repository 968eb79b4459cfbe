"""The cohort: the population's mean ability over time, a smooth curve for each group.

Effects of covariates add to it. All is linear in its coefficients. So the gradient and the
information about them are sums over people, as everything else that is learned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg import eigh
from scipy.sparse import csr_array

from dynaesti.core import Array, Ints, check_array, require
from dynaesti.data import TimeAxis
from dynaesti.model.effects import Effects, effects_header, read_effects

MOST_KNOTS = 10
# Beyond the data the slope fades: after this fraction of the data's span it is 1/e of what it was.
FADING = 0.5
LOST = 0.05  # how far directions that were not learned may move what is told of groups
LINE = 1  # number of the basis's function that is a line
BASIS_ARRAYS = ("knots", "values", "roughness")


@dataclass(frozen=True)
class SmoothBasis:
    """Smooth functions of the clock: a constant, a line, and bumps ever shorter.

    They are natural cubic splines, orthonormal over the times of the responses, and ordered by
    their roughness. Beyond the knots they go on with a slope that fades.
    """

    knots: Array  # (n_knots,) rising times
    values: Array  # (n_knots, n_columns) of each function at the knots
    roughness: Array  # (n_columns,) integral of the squared second derivative, with the span as 1

    @property
    def n_columns(self) -> int:
        """Number of functions."""
        return int(self.values.shape[1])

    @property
    def span(self) -> float:
        """Time from the first to the last knot."""
        return float(self.knots[-1] - self.knots[0])

    @cached_property
    def _splines(self) -> CubicSpline:
        return CubicSpline(self.knots, self.values, bc_type="natural")

    def columns(self, times: Array) -> Array:
        """Values of all functions at times: (n_times, n_columns)."""
        return np.asarray(self._splines(self._faded(times)), dtype=np.float64)

    def end_slopes(self, times: Array) -> Array:
        """Slopes of all functions at the end nearest to each time: (n_times, n_columns)."""
        last = times > 0.5 * (self.knots[0] + self.knots[-1])
        slopes = self._splines(self.knots[[0, -1]], 1)
        return np.asarray(slopes[last.astype(np.int64)], dtype=np.float64)

    def beyond(self, times: Array) -> Array:
        """How far times lie beyond the knots, 0 within: (n_times,)."""
        below = np.maximum(self.knots[0] - times, 0.0)
        return np.asarray(below + np.maximum(times - self.knots[-1], 0.0))

    def _faded(self, times: Array) -> Array:
        """Times, slowed down beyond the knots."""
        length = FADING * self.span
        slowed = length * -np.expm1(-self.beyond(times) / length)
        inside = np.clip(times, self.knots[0], self.knots[-1])
        return np.asarray(inside + np.where(times < self.knots[0], -slowed, slowed))


def flat_basis(first: float, last: float) -> SmoothBasis:
    """A basis for a population whose mean does not change: a constant and a line, both unused."""
    knots = np.array([first, last if last > first else first + 1.0])
    return SmoothBasis(knots, np.array([[1.0, -1.0], [1.0, 1.0]]), np.zeros(2))


def smooth_basis(
    times: Array, first: float, last: float, weights: Array | None = None
) -> SmoothBasis | None:
    """The basis for responses at these times; None if all are at one time.

    Parameters
    ----------
    times : array (n_times,)
        Times of responses, or of a fair sample of them.
    first, last : float
        Of all responses.
    weights : array (n_times,), optional
        How often each response counts. Default: once.
    """
    if not last > first:
        return None
    weights = np.ones(times.size) if weights is None else weights
    distinct = np.unique(times)
    size = min(MOST_KNOTS, max(distinct.size, 2))
    inner = _quantiles(times, weights, np.linspace(0.0, 1.0, size)[1:-1])
    # knots closer than a thousandth of the span would only add rounding errors
    knots = np.unique(np.concatenate([[first], inner, [last]]))
    knots = knots[np.diff(knots, prepend=-np.inf) > 1e-3 * (last - first)]
    knots[-1] = last
    x = (knots - first) / (last - first)
    at = np.clip((times - first) / (last - first), 0.0, 1.0)
    cardinal = CubicSpline(x, np.eye(x.size), bc_type="natural")
    here = cardinal(at)
    share = weights / weights.sum()
    gram = here.T @ (share[:, None] * here)
    rough = _roughness(x, cardinal(x, 2))
    centre = float(share @ at)
    spread = float(np.sqrt(share @ (at - centre) ** 2))
    if not spread > 0:
        return None
    line = (x - centre) / spread
    columns = [np.ones(x.size), line]
    roughness, vectors = eigh(rough, gram + 1e-9 * np.trace(gram) * np.eye(x.size))
    for vector in vectors.T[2:]:
        columns.append(vector * np.sign(vector[np.abs(vector).argmax()]))
    return SmoothBasis(
        knots, np.stack(columns, axis=1), np.concatenate([np.zeros(2), roughness[2:]])
    )


def _quantiles(values: Array, weights: Array, levels: Array) -> Array:
    """Quantiles of weighted values, each one of the values."""
    order = np.argsort(values, kind="stable")
    mass = np.cumsum(weights[order])
    return np.asarray(values[order][np.searchsorted(mass, levels * mass[-1])])


def _roughness(x: Array, second: Array) -> Array:
    """Integrals of products of second derivatives, which are linear between the knots x.

    `second` (n_knots, n_functions) are the second derivatives at the knots.
    """
    gap = np.diff(x)[:, None, None]
    left = second[:-1]
    right = second[1:]
    same = left[:, :, None] * left[:, None] + right[:, :, None] * right[:, None]
    across = left[:, :, None] * right[:, None] + right[:, :, None] * left[:, None]
    return np.asarray((gap * (same / 3 + across / 6)).sum(axis=0))


@dataclass(frozen=True)
class Cohort:
    """Mean ability of the population over time, for each of its groups.

    People's own curves vary about it with variance 1. Ability is in units of that spread, and 0 is
    the mean over all responses.
    """

    basis: SmoothBasis
    groups: tuple[Any, ...]  # labels; empty where the population is one
    shares: Array  # (n_groups,) of the responses; one group where the population is one
    contrasts: Array  # (n_groups, n_columns, n_coefficients): from coefficients to curves
    weak: Array  # (n_coefficients, n_coefficients) precision that coefficients always have
    penalties: Array  # (n_sizes, n_coefficients, n_coefficients) precisions for sizes of 1
    # (n_sizes,) learned: of the common curvature, of that of groups, and of each block of effects
    sizes: Array
    trend_precision: float  # learned: prior precision of the common line, 0 where it is clear
    coefficients: Array  # (n_coefficients,)
    # (n_groups, n_columns, n_lost) directions that could not be learned, of length 1 over responses
    lost: Array
    covariance: Array | None = None  # (n_coefficients, n_coefficients)
    effects: Effects | None = None
    # (n_effect_columns, n_coefficients): from coefficients to effects; None without effects
    effect_contrasts: Array | None = None

    @property
    def n_effects(self) -> int:
        """Number of columns of effects."""
        return 0 if self.effect_contrasts is None else int(self.effect_contrasts.shape[0])

    @property
    def n_blocks(self) -> int:
        """Number of blocks of exchangeable effects, whose sizes come last."""
        return 0 if self.effects is None else len(self.effects.blocks)

    @property
    def has_curve(self) -> bool:
        """Whether the mean changes over time, or between groups: else there are only effects."""
        return bool(self.contrasts.any())

    @cached_property
    def effect_values(self) -> Array:
        """Effects of all columns, (n_effect_columns,); 0 of those that are not learned."""
        if self.effect_contrasts is None:
            return np.zeros(0)
        return np.asarray(self.effect_contrasts @ self.coefficients)

    @cached_property
    def loadings(self) -> Array:
        """From coefficients to the curves of all groups, then to the effects.

        The shape is (n_groups · n_columns + n_effects, n_coefficients).
        """
        curves = self.contrasts.reshape(-1, self.coefficients.size)
        if self.effect_contrasts is None:
            return curves
        return np.concatenate([curves, self.effect_contrasts])

    @property
    def n_groups(self) -> int:
        """Number of groups, 1 where the population is one."""
        return int(self.shares.size)

    @cached_property
    def curves(self) -> Array:
        """Coefficients of each group's curve in the basis; those of the average come last."""
        own = self.contrasts @ self.coefficients
        return np.concatenate([own, (self.shares @ own)[None]])

    @cached_property
    def _contrasts_and_average(self) -> Array:
        average = np.tensordot(self.shares, self.contrasts, axes=1)
        return np.concatenate([self.contrasts, average[None]])

    @property
    def precision(self) -> Array:
        """Prior precision of the coefficients, (n_coefficients, n_coefficients)."""
        return precision_for(self, self.sizes, self.trend_precision)

    @property
    def effective_parameters(self) -> float:
        """How many coefficients the data decide, rather than the prior.

        tr((A + P)⁻¹ A), with the data's information A and the prior's precision P; all of them
        before the errors are known.
        """
        if self.covariance is None:
            return float(self.coefficients.size)
        # the covariance is without the learned prior of the trend
        information = np.linalg.inv(self.covariance) - precision_for(self, self.sizes, 0.0)
        decided = np.linalg.solve(information + self.precision, information)
        return float(np.clip(np.trace(decided), 0.0, self.coefficients.size))

    @property
    def trend(self) -> Array:
        """The common line as a function of the coefficients, (n_coefficients,)."""
        return np.asarray(self._contrasts_and_average[-1, LINE])

    @cached_property
    def unshrunk(self) -> Cohort:
        """The cohort as its data alone have it: no learned prior draws the common line to none.

        It is a Newton step away, by the covariance, which is without that prior.
        """
        if self.covariance is None or self.trend_precision == 0:
            return self
        along = self.trend / float(self.trend @ self.trend)
        drawn = self.trend_precision * float(along @ self.coefficients)
        coefficients = self.coefficients + drawn * (self.covariance @ along)
        return replace(self, trend_precision=0.0, coefficients=coefficients)

    def mean(self, times: Array, group: Ints, x: csr_array | None = None) -> Array:
        """Mean ability of people of some groups at times; group −1 is the average of all.

        With columns of effects x (n_times, n_effects), it is the mean of those whom they describe.
        """
        out = np.asarray((self.basis.columns(times) * self.curves[group]).sum(axis=1))
        return out if x is None else np.asarray(out + x @ self.effect_values)

    def design(self, times: Array, group: Ints, x: csr_array | None = None) -> Array:
        """Derivatives of `mean` by the coefficients: (n_times, n_coefficients)."""
        columns = self.basis.columns(times)
        out = np.empty((times.size, self.coefficients.size))
        for g in np.unique(group):
            mine = group == g
            out[mine] = columns[mine] @ self._contrasts_and_average[g]
        if x is None or self.effect_contrasts is None:
            return out
        return np.asarray(out + x @ self.effect_contrasts)

    def variance_of(self, times: Array, group: Ints, signs: Array) -> float:
        """Variance of a sum of means at times, with signs: of the estimate, and of how it goes on.

        Groups go on independently of each other.
        """
        direction = signs @ self.design(times, group)
        total = 0.0 if self.covariance is None else float(direction @ self.covariance @ direction)
        one, other = np.meshgrid(np.arange(times.size), np.arange(times.size))
        drift = self.drift_covariance(times[one.ravel()], times[other.ravel()], group[one.ravel()])
        together = (group[one] == group[other]).ravel()
        weights = (signs[one] * signs[other]).ravel()
        return max(total + float((weights * drift)[together].sum()), 0.0)

    def loses(self, times: Array, group: Ints, signs: Array) -> bool:
        """Whether a sum of means, with signs, depends on directions that were not learned."""
        moved = np.einsum("tb,tbl->tl", self.basis.columns(times), self.lost[group])
        return bool(np.linalg.norm(signs @ moved) > LOST)

    def covariance_of(self, group: int) -> Array:
        """Covariance of the coefficients of one group's curve in the basis."""
        if self.covariance is None:
            return np.zeros((self.basis.n_columns, self.basis.n_columns))
        contrast = self._contrasts_and_average[group]
        return np.asarray(contrast @ self.covariance @ contrast.T)

    def variance(self, times: Array, group: Ints, x: csr_array | None = None) -> Array:
        """Variance of `mean`: of its estimate, and beyond the data of how it goes on."""
        if x is not None and self.covariance is not None:
            design = self.design(times, group, x)
            own = np.einsum("tp,pq,tq->t", design, self.covariance, design, optimize=True)
            return np.asarray(own + self.drift_variance(times, group))
        out = np.zeros(times.size)
        columns = self.basis.columns(times)
        for g in np.unique(group):
            mine = group == g
            out[mine] = np.einsum(
                "tb,bc,tc->t", columns[mine], self.covariance_of(int(g)), columns[mine]
            )
        return out + self.drift_variance(times, group)

    def drift_variance(self, times: Array, group: Ints) -> Array:
        """Variance beyond the data because slopes change: 0 within."""
        return self.drift_covariance(times, times, group)

    def drift_covariance(self, t0: Array, t1: Array, group: Ints) -> Array:
        """Covariance of how the cohort goes on at two times; 0 within the data, or at two ends.

        The slope is a random process there, which forgets as it fades. Its variance is that of the
        learned curvature, plus half the squared slope at the end of the data: nothing is known of
        whether that goes on, stops, or doubles.
        """
        first, last = self.basis.knots[[0, -1]]
        same_end = ((t0 > last) & (t1 > last)) | ((t0 < first) & (t1 < first))
        ahead = np.sort(np.stack([self.basis.beyond(t0), self.basis.beyond(t1)]), axis=0)
        near, far = ahead / (FADING * self.basis.span)
        # of the integral of a process that starts at 0 and forgets at the rate 1 / length
        shared = near + np.expm1(-near) + np.exp(-far)
        shared -= 0.5 * (np.exp(near - far) + np.exp(-near - far))
        return np.where(same_end, self.drift_spread(t0, group) * shared, 0.0)

    def drift_spread(self, times: Array, group: Ints) -> Array:
        """How large the drift is beyond the end nearest to each time: (n_times,)."""
        length = FADING * self.basis.span
        slope = (self.basis.end_slopes(times) * self.curves[group]).sum(axis=1)
        # of a white second derivative of the learned size, with the span as the unit of time
        sizes = self.sizes[: self.sizes.size - self.n_blocks]
        curvature = float((sizes**2).sum()) / self.basis.span**3
        spread = 0.5 * slope**2 + 0.5 * curvature * length
        return np.asarray(2 * spread * length**2)

    def mean_function(
        self,
        group: int,
        axis: TimeAxis,
        shift: float,
        gain: float,
        columns: tuple[csr_array, csr_array] | None = None,
    ) -> CohortMean:
        """The mean of one group as a function of users' times, times a gain plus a shift.

        `columns` (1, n_effects) are level and slope over time of a person's columns of ability.
        """
        values = shift + gain * (self.basis.values @ self.curves[group])
        line = (0.0, 0.0)
        if columns is not None:
            line = (
                gain * float((columns[0] @ self.effect_values)[0]),
                gain * float((columns[1] @ self.effect_values)[0]),
            )
        spline = SmoothBasis(self.basis.knots, values[:, None], np.zeros(1))
        return CohortMean(spline, axis, line)

    def scaled(self, gain: float) -> Cohort:
        """The cohort in another unit of ability, 1 / gain of this one, before its errors are known.

        Its sizes are counted in that unit too, so that all that is assumed of it stays.
        """
        return replace(
            self,
            coefficients=gain * self.coefficients,
            sizes=gain * self.sizes,
            trend_precision=self.trend_precision / gain**2,
        )

    def reflected(self) -> Cohort:
        """The cohort on the reflected scale, θ → −θ."""
        return replace(self, coefficients=-self.coefficients)


@dataclass(frozen=True)
class CohortMean:
    """The mean of a cohort as a function of users' times: the prior mean of a person's curve."""

    spline: SmoothBasis  # of one function
    axis: TimeAxis
    line: tuple[float, float] = (0.0, 0.0)  # level and slope that effects of a person add

    def __call__(self, times: Any) -> Array:
        offsets = np.atleast_1d(self.axis.offsets(times))
        level, slope = self.line
        return np.asarray(self.spline.columns(offsets)[:, 0] + level + slope * offsets)


def precision_for(cohort: Cohort, sizes: Array, trend_precision: float) -> Array:
    """Prior precision of a cohort's coefficients, for given sizes of curvature."""
    curvature = np.tensordot(sizes**-2.0, cohort.penalties, axes=1)
    length = float(cohort.trend @ cohort.trend)
    if not length > 0:  # only deviations of groups are learned
        return np.asarray(cohort.weak + curvature)
    along = cohort.trend / length
    return np.asarray(cohort.weak + curvature + trend_precision * np.outer(along, along))


ARRAYS = ("shares", "contrasts", "weak", "penalties", "sizes", "coefficients", "lost")


def cohort_header(cohort: Cohort | None, arrays: dict[str, Any]) -> dict[str, Any] | None:
    """What a file says of a cohort; its arrays are added to `arrays`."""
    if cohort is None:
        return None
    arrays |= {f"cohort.{name}": getattr(cohort, name) for name in ARRAYS}
    arrays |= {f"cohort.{name}": getattr(cohort.basis, name) for name in BASIS_ARRAYS}
    if cohort.covariance is not None:
        arrays["cohort.covariance"] = cohort.covariance
    if cohort.effect_contrasts is not None:
        arrays["cohort.effect_contrasts"] = cohort.effect_contrasts
    return {
        "groups": list(cohort.groups),
        "trend_precision": cohort.trend_precision,
        "effects": effects_header(cohort.effects, arrays),
    }


def read_cohort(header: Any, arrays: dict[str, Any]) -> Cohort | None:
    """The cohort that `cohort_header` wrote, checked; None where there is none."""
    if header is None:
        return None
    basis = SmoothBasis(*(arrays[f"cohort.{name}"] for name in BASIS_ARRAYS))
    cohort = Cohort(
        basis,
        tuple(header["groups"]),
        **{name: arrays[f"cohort.{name}"] for name in ARRAYS},
        trend_precision=float(header["trend_precision"]),
        covariance=arrays.get("cohort.covariance"),
        effects=read_effects(header.get("effects"), arrays),  # absent in files of older versions
        effect_contrasts=arrays.get("cohort.effect_contrasts"),
    )
    n_groups = max(len(cohort.groups), 1)
    n_columns = basis.n_columns
    size = cohort.coefficients.size
    check_array(basis.knots, (basis.knots.size,), "the cohort's knots", "f")
    check_array(basis.values, (basis.knots.size, n_columns), "the cohort's basis", "f")
    check_array(basis.roughness, (n_columns,), "the cohort's basis", "f")
    require(bool((np.diff(basis.knots) > 0).all()) and basis.knots.size > 1, "the cohort's knots")
    require(0 <= cohort.trend_precision < np.inf, "the cohort's trend")
    check_array(cohort.sizes, (cohort.sizes.size,), "the cohort's sizes", "f")
    require(bool((cohort.sizes > 0).all()), "the cohort's sizes")
    check_array(cohort.shares, (n_groups,), "the cohort's groups", "f")
    check_array(cohort.contrasts, (n_groups, n_columns, size), "the cohort's curves", "f")
    check_array(cohort.weak, (size, size), "the cohort's prior", "f")
    check_array(cohort.penalties, (cohort.sizes.size, size, size), "the cohort's prior", "f")
    check_array(cohort.coefficients, (size,), "the cohort's coefficients", "f")
    n_lost = cohort.lost.shape[-1] if cohort.lost.ndim else 0
    check_array(cohort.lost, (n_groups, n_columns, n_lost), "the cohort's curves", "f")
    if cohort.covariance is not None:
        check_array(cohort.covariance, (size, size), "the cohort's covariance", "f")
    require((cohort.effects is None) == (cohort.effect_contrasts is None), "the effects")
    if cohort.effects is not None and cohort.effect_contrasts is not None:
        shape = (cohort.effects.n_columns, size)
        check_array(cohort.effect_contrasts, shape, "the effects", "f")
    require(cohort.n_blocks <= cohort.sizes.size, "the cohort's sizes")
    return cohort
