"""Curve: the posterior a user holds.

A mixture of Gaussian processes behind a link, asked at any times.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from dynaesti.core import (
    Array,
    Arrays,
    as_rng,
    as_vector,
    check_size,
    is_number,
    raise_where,
    require,
    save_archive,
    single_blas_thread,
    softmax,
    whole_number,
)
from dynaesti.data import KINDS, frame_kind, make_frame
from dynaesti.errors import ConvergenceWarning, EmissionError, InputError
from dynaesti.inference import (
    HERMITE_WEIGHTS,
    HERMITE_X,
    SOLVERS,
    GraftedCurve,
    LeaveOneOut,
    Marginals,
    NaturalGaussian,
    Observations,
    SolverName,
    check_level,
    full_cavity_and_tilted,
    graft_kernels,
    leave_one_out_densities,
)
from dynaesti.model import (
    BUILT_IN,
    REAL,
    UNIT,
    BandwidthKernel,
    Kernel,
    Link,
    Table,
    check_evidence,
    emission_blocks,
    kernel_header,
    read_kernel,
)
from dynaesti.results.io.curve_file import (
    component_header,
    observations_header,
    read_component,
    read_observations,
)

if TYPE_CHECKING:
    from dynaesti.inference import Audit

MOST_AUDITED = 500  # instants of a curve whose exact posterior is asked for its moments
KEEP = 1e-4  # components below this weight are left out of what the curve says


@dataclass(frozen=True)
class WeightedPrior:
    """One entry of the stored list of priors, with what the data said of it."""

    kernel: Kernel
    log_prior: float  # log mass in the list
    log_evidence: float
    weight: float


@dataclass(frozen=True, eq=False)
class Curve:
    """A fitted curve. Values are on the link's scale.

    `curve.latent` is the same curve before the link.
    """

    observations: Observations
    priors: tuple[WeightedPrior, ...]
    components: tuple[GraftedCurve | None, ...]  # None where the weight is negligible
    method: str = "given"
    frame: str | None = None
    shown_link: Link | None = None
    solver: SolverName | None = None
    refining: bool = False  # whether it is refined wherever that can be done, now and after updates

    # --- what it is made of
    # -------------------------------------------------------------------------------

    @property
    def link(self) -> Link:
        """The link between the Gaussian process and the curve's values."""
        return self.shown_link or self.observations.link

    @property
    def latent(self) -> Curve:
        """The same curve before the link."""
        return replace(self, shown_link=BUILT_IN["identity"])

    @cached_property
    def _kept(self) -> tuple[Array, list[GraftedCurve]]:
        weights, _, components = self.weighted_components()
        return weights, components

    def weighted_components(self) -> tuple[Array, Array, list[GraftedCurve]]:
        """Weights, log prior masses and components that carry the curve."""
        kept = [
            (p.weight, p.log_prior, c)
            for p, c in zip(self.priors, self.components, strict=True)
            if c is not None and p.weight > KEEP
        ]
        weights = np.array([w for w, _, _ in kept])
        return weights / weights.sum(), np.array([p for _, p, _ in kept]), [c for _, _, c in kept]

    @property
    def converged(self) -> bool:
        """Whether grafting settled for every component that counts."""
        return all(c.converged for c in self._kept[1])

    @property
    def sweeps(self) -> int:
        """Sweeps of the slowest component that counts."""
        return max(c.sweeps for c in self._kept[1])

    @property
    def log_evidence(self) -> float:
        """Log probability of all emissions.

        Under the prior, averaged over the list when learned.
        """
        if len(self.priors) == 1 or self.method != "learn":
            return max(self.priors, key=lambda p: p.weight).log_evidence
        return float(np.logaddexp.reduce([p.log_prior + p.log_evidence for p in self.priors]))

    @property
    def bandwidths(self) -> Any:
        """The list of priors as a frame.

        Bandwidth of the first kernel that has one, kernel, log evidence, weight.
        """
        rows = sorted(self.priors, key=lambda p: _bandwidth(p.kernel))
        return make_frame(
            {
                "bandwidth": [_bandwidth(p.kernel) for p in rows],
                "kernel": [p.kernel.describe() for p in rows],
                "log_evidence": [p.log_evidence for p in rows],
                "weight": [p.weight for p in rows],
            },
            self.frame,
        )

    @property
    def bandwidth(self) -> float:
        """The median bandwidth under the weights (a number given is itself)."""
        rows = sorted(self.priors, key=lambda p: _bandwidth(p.kernel))
        return _bandwidth(
            rows[int(np.searchsorted(np.cumsum([p.weight for p in rows]), 0.5))].kernel
        )

    # --- values
    # ---------------------------------------------------------------------------------------------

    def _offsets(self, t: Any) -> Array:
        return self.observations.axis.offsets(t, "t")

    @single_blas_thread()
    def marginals(self, t: Any) -> Marginals:
        """Latent marginals of every component at the times."""
        offsets = self._offsets(t)
        weights, components = self._kept
        pairs = [c.posterior.marginals(offsets) for c in components]
        base = self.observations.mean_at(offsets)
        return Marginals(
            weights[:, None],
            base + np.array([m for m, _ in pairs]),
            np.sqrt(np.maximum([v for _, v in pairs], 1e-300)),
        )

    def mean(self, t: Any) -> Array:
        """Mean of the curve at each time.

        Under the log link few data leave a heavy tail above: the median is steadier there.
        """
        return self._moments(t)[0]

    def sd(self, t: Any) -> Array:
        """Standard deviation of the curve at each time."""
        return self._moments(t)[1]

    def _moments(self, t: Any) -> tuple[Array, Array]:
        """Mean and sd; where a Gaussian's far tail would decide them (see `Mixture.heavy`), those
        of the exact posterior.

        Beyond the data nothing cuts that tail off, and of long series the exact posterior would
        take minutes: there they are those of the central part of the distribution.
        """
        mix = self.marginals(t)
        offsets = self._offsets(t)
        heavy = mix.heavy(self.link)
        if not heavy.any():
            return mix.mean(self.link), mix.sd(self.link)
        first, last = self.observations.span
        inner = (
            heavy
            & (offsets >= first)
            & (offsets <= last)
            & (self.observations.instants.size <= MOST_AUDITED)
        )
        mean = np.empty(heavy.size)
        sd = np.empty(heavy.size)
        light = mix.take(~heavy)
        outer = mix.take(heavy & ~inner)
        mean[~heavy] = light.mean(self.link)
        sd[~heavy] = light.sd(self.link)
        mean[heavy & ~inner], sd[heavy & ~inner] = outer.trusted_moments(self.link)
        if inner.any():
            times = self.observations.axis.restore(offsets[inner])
            mean[inner] = self._exact.mean(times)
            sd[inner] = self._exact.sd(times)
        return mean, sd

    @cached_property
    def _exact(self) -> Audit:
        return self.audit()

    def quantile(self, t: Any, q: Any) -> Array:
        """Quantiles, exact under the link; for several q one row each."""
        rows = self.marginals(t).quantiles(as_vector(q, "q"), self.link)
        return rows[0] if np.ndim(q) == 0 else rows

    def median(self, t: Any) -> Array:
        """The median, which passes through every link."""
        return self.quantile(t, 0.5)

    def interval(self, t: Any, level: float = 0.7) -> tuple[Array, Array]:
        """Equal-tailed band of the given probability: (lower, upper)."""
        check_level(level)
        lower, upper = self.quantile(t, [0.5 - level / 2, 0.5 + level / 2])
        return lower, upper

    @single_blas_thread()
    def covariance(self, t: Any) -> Array:
        """Latent covariance between all pairs of times."""
        offsets = self._offsets(t)
        weights, components = self._kept
        means = self.marginals(t).means
        away = means - weights @ means
        within = sum(
            w * c.posterior.covariance(offsets) for w, c in zip(weights, components, strict=True)
        )
        return np.asarray(within + (weights[:, None] * away).T @ away)

    @single_blas_thread()
    def sample(self, t: Any, size: int = 1, seed: int | np.random.Generator | None = None) -> Array:
        """Whole curves drawn jointly: (size, times). Each draw picks its component."""
        size = whole_number(size, "size", 1)
        rng = as_rng(seed)
        offsets = self._offsets(t)
        check_size(size * max(offsets.size, 1), "size")
        weights, components = self._kept
        counts = rng.multinomial(size, weights)
        draws = [
            c.posterior.sample(offsets, int(k), rng)
            for k, c in zip(counts, components, strict=True)
            if k
        ]
        latent = np.concatenate(draws)[rng.permutation(size)] + self.observations.mean_at(offsets)
        return self.link.value(latent)

    @single_blas_thread()
    def log_density(self, t: Any, y: Any) -> float:
        """Joint log density of the curve passing through the points (t, y)."""
        offsets = self._offsets(t)
        values = as_vector(y, "y", offsets.size)
        if self.link.range != REAL:
            outside = (values <= 0) | ((values >= 1) & (self.link.range == UNIT))
            raise_where(outside, "y", f"not {self.link.range}", "give values on the link's scale")
        x = self.link.latent(values)
        raise_where(
            ~np.isfinite(x), "y", "outside the link's range", "give values that the curve can take"
        )
        weights, components = self._kept
        means = self.marginals(t).means
        logs = [
            np.log(w) + _log_normal(x - m, c.posterior.covariance(offsets))
            for w, m, c in zip(weights, means, components, strict=True)
        ]
        return float(np.logaddexp.reduce(logs) - np.log(np.abs(self.link.slope(x))).sum())

    @single_blas_thread()
    def derivative(self, t: Any) -> Derivative:
        """Slope of the curve at each time, on the link's scale: mean, sd and Pr[rising]."""
        offsets = self._offsets(t)
        weights, components = self._kept
        mix = self.marginals(t)
        first = np.zeros(offsets.size)
        second = np.zeros(offsets.size)
        rising = np.zeros(offsets.size)
        for w, m, sd, c in zip(weights, mix.means, mix.sds, components, strict=True):
            slope, var, cross = c.posterior.slopes(offsets)
            slope = slope + self._mean_slope(offsets)
            # dy/dt = g′(x)·x′ with (x, x′) jointly Gaussian: x′ given x is a line
            # plus noise, then integrate over x
            x = m[:, None] + sd[:, None] * HERMITE_X
            line = slope[:, None] + (cross / sd)[:, None] * HERMITE_X
            noise = np.maximum(var - (cross / sd) ** 2, 0.0)
            gain = self.link.slope(x)
            first += w * ((gain * line) @ HERMITE_WEIGHTS)
            second += w * ((gain**2 * (line**2 + noise[:, None])) @ HERMITE_WEIGHTS)
            with np.errstate(divide="ignore", invalid="ignore"):
                rising += w * np.where(
                    var > 0,
                    ndtr(self.link.sign * slope / np.sqrt(var)),
                    0.5 * (1 + self.link.sign * np.sign(slope)),
                )
        return Derivative(first, np.sqrt(np.maximum(second - first**2, 0.0)), rising)

    def _mean_slope(self, offsets: Array) -> Array:
        if not callable(self.observations.mean):
            return np.zeros(offsets.size)
        step = 1e-5 * max(1e-12, self.observations.span[1] - self.observations.span[0])
        return (
            self.observations.mean_at(offsets + step) - self.observations.mean_at(offsets - step)
        ) / (2 * step)

    # --- the emissions' view
    # ----------------------------------------------------------------------------

    @cached_property
    def _left_out(self) -> tuple[Array, list[LeaveOneOut]]:
        """Weights of the components without each emission (components, emissions), and what each
        then says.
        """
        weights, components = self._kept
        left = [leave_one_out_densities(self.observations.likelihood, c) for c in components]
        logs = np.log(weights)[:, None] - np.array([part.log_density for part in left])
        return np.exp(logs - np.logaddexp.reduce(logs, axis=0)), left

    @cached_property
    def loo(self) -> Array:
        """Leave-one-out log density of each emission, in the order given."""
        weights, _ = self._kept
        logs = np.array([part.log_density for part in self._left_out[1]])
        return np.asarray(-np.logaddexp.reduce(np.log(weights)[:, None] - logs, axis=0))

    def influence(self) -> Any:
        """How far each emission moves the latent curve at its own time.

        A frame with time, loo, shift and shift_in_sd.
        """
        shares, left = self._left_out
        without = np.einsum("ki,ki->i", shares, np.array([part.mean for part in left]))
        offsets = self.observations.offsets
        latent = self.latent
        stamps = self.observations.axis.restore(offsets)
        shift = latent.mean(stamps) - without
        return make_frame(
            {
                "time": stamps,
                "loo": self.loo,
                "shift": shift,
                "shift_in_sd": shift / latent.sd(stamps),
            },
            self.frame,
        )

    @single_blas_thread()
    def update(self, times: Any, emissions: Any) -> Curve:
        """The curve with further emissions, under the same list of priors.

        Equals a refit, but starts from the settled sites.
        """
        grown = self.observations.joined(times, emissions)
        starts = [
            None if c is None else _moved_sites(c, self.observations, grown)
            for c in self.components
        ]
        made = graft_kernels(grown, [p.kernel for p in self.priors], self.solver, starts)
        curve = from_components(
            grown, made, [p.log_prior for p in self.priors], self.method, self.frame, self.solver
        )
        if self.refining:
            curve = curve.refined_if_possible()
        elif self._corrected():
            curve = curve.refined()
        return warn_if_unconverged(replace(curve, shown_link=self.shown_link))

    def _corrected(self) -> bool:
        return any(c is not None and c.covariance_correction is not None for c in self.components)

    def refined(self) -> Curve:
        """The curve with sds, evidence and the weights of its priors corrected to second order, at
        the cost of a few sweeps.

        Grafting's own error in sds is a few tenths of a percent, a few percent where nearly all
        answers are alike; this takes most of it away. Priors without a form in few weights, and
        those whose correction would be no small one, stay as they are, told by a warning: `audit`
        is for these.
        """
        curve, left = self._with_refined_components()
        if left > 0:
            warnings.warn(
                f"refined: priors with {left:.0%} of the weight stay as they are, since their "
                f"correction would be larger than a "
                "second order can be trusted with, or they have no form in few weights (long "
                "bandwidths and RBF kernels have); "
                "see curve.audit() and curve.exact(t)",
                ConvergenceWarning,
                stacklevel=2,
            )
        return curve

    def refined_if_possible(self) -> Curve:
        """The same without a warning, and kept so by updates: what `CurvFiFE` does by default."""
        return replace(self._with_refined_components()[0], refining=True)

    @single_blas_thread()
    def _with_refined_components(self) -> tuple[Curve, float]:
        """The refined curve, and the weight of the priors that stay as they are."""
        from dynaesti.inference import second_order_corrected

        components: list[GraftedCurve | None] = [
            c if p.weight > KEEP else None
            for c, p in zip(self.components, self.priors, strict=True)
        ]
        left = 0.0
        for k, c in enumerate(components):
            if c is not None and c.covariance_correction is None:
                components[k] = (
                    second_order_corrected(c, self.observations) if c.converged else None
                ) or c
                left += self.priors[k].weight if components[k] is c else 0.0
        evidence = [
            p.log_evidence if c is None else c.log_evidence
            for p, c in zip(self.priors, components, strict=True)
        ]
        weights = softmax(
            np.array([e + p.log_prior for e, p in zip(evidence, self.priors, strict=True)])
        )
        priors = tuple(
            replace(p, log_evidence=e, weight=float(w))
            for p, e, w in zip(self.priors, evidence, weights, strict=True)
        )
        return replace(self, priors=priors, components=tuple(components)), left

    @single_blas_thread()
    def audit(self, draws: int = 20_000, seed: int = 0) -> Audit:
        """Importance sampling against the exact posterior.

        Is the Gaussian safe here, and what would be right?
        """
        from dynaesti.inference import audit_curve as audit

        return audit(self, draws, seed)

    def exact(self, t: Any, draws: int = 20_000, seed: int = 0) -> Any:
        """Corrected marginals at the times, from the audit's draws.

        A frame with time, mean, sd, lower, median, upper.
        """
        return self.audit(draws, seed).to_frame(t)

    # --- out
    # ----------------------------------------------------------------------------------------------

    def grid(self, points: int = 200) -> npt.NDArray[Any]:
        """Evenly spaced times over the data's span."""
        first, last = self.observations.span
        check_size(whole_number(points, "points", 1), "points")
        return self.observations.axis.restore(np.linspace(first, last, points))

    def to_frame(self, t: Any = None, level: float = 0.7, kind: str | None = None) -> Any:
        """A frame of time, mean, sd, lower, median, upper (default: 200 times over the span)."""
        times = self.grid() if t is None else t
        lower, upper = self.interval(times, level)
        return make_frame(
            {
                "time": np.asarray(times),
                "mean": self.mean(times),
                "sd": self.sd(times),
                "lower": lower,
                "median": self.median(times),
                "upper": upper,
            },
            kind or frame_kind(t) or self.frame,
        )

    def plot(self, ax: Any = None, t: Any = None, level: float = 0.7) -> Any:
        """Curve, band and emissions on matplotlib axes, which are returned."""
        from dynaesti.results.plotting.draw import plot_curve

        return plot_curve(self.plot_data(t, level), level, ax)

    def plot_data(self, t: Any = None, level: float = 0.7) -> dict[str, Any]:
        """What `plot` draws: arrays time, median, lower, upper, and the emissions' times and values
        where they have any.
        """
        times = self.grid() if t is None else t
        lower, upper = self.interval(times, level)
        seen = self.observations.emissions.plot_values() if self.shown_link is None else None
        return {
            "time": np.asarray(times),
            "median": self.median(times),
            "lower": lower,
            "upper": upper,
            "emission_time": self.observations.axis.restore(self.observations.offsets)
            if seen is not None
            else None,
            "emission": seen,
            "link": self.link.name,
        }

    def save(self, path: str | PathLike[str]) -> Path:
        """Save as one file without pickles; `dynaesti.load` opens it."""
        obs = self.observations
        arrays = Arrays()
        components = [
            None if c is None else component_header(c, f"component{k}", arrays)
            for k, c in enumerate(self.components)
        ]
        priors = [
            {
                "kernel": kernel_header(p.kernel),
                "log_prior": p.log_prior,
                "log_evidence": p.log_evidence,
                "weight": p.weight,
            }
            for p in self.priors
        ]
        header = {
            "observations": observations_header(obs, arrays, self._latent_reach()),
            "priors": priors,
            "components": components,
            "method": self.method,
            "frame": self.frame,
            "solver": self.solver,
            "latent": self.shown_link is not None,
            "refining": self.refining,
        }
        return save_archive(path, "curve", header, arrays)

    def _latent_reach(self) -> Array:
        """Latent values that the curve can take, for tabulating a user's functions."""
        means = self.marginals(self.grid(50)).means
        ends = np.array(self.observations.span)
        reach = 8 * max(float(np.sqrt(c.kernel.cov(ends, ends).max())) for c in self._kept[1])
        return np.linspace(float(means.min()) - reach, float(means.max()) + reach, 2001)

    def summary(self) -> str:
        """The fit in a few sentences."""
        obs = self.observations
        known = (
            ""
            if self.converged
            else " Grafting did NOT settle for every component; treat the bands with care."
        )
        return (
            f"{len(obs.emissions)} emissions at {obs.instants.size} instants, over "
            f"{obs.span[1] - obs.span[0]:.6g} "
            f"({obs.axis.unit}); {obs.link.name} link. Bandwidth {self.bandwidth:.4g} "
            f"({self.method}), "
            f"{len(self._kept[1])} of {len(self.priors)} priors carry the curve; log evidence "
            f"{self.log_evidence:.2f}; "
            f"settled in {self.sweeps} "
            f"sweeps{', sds to second order' if self._corrected() else ''}.{known}"
        )

    def __repr__(self) -> str:
        return f"<Curve: {self.summary()}>"


@dataclass(frozen=True)
class Derivative:
    """Slope of a curve at some times."""

    mean: Array
    sd: Array
    rising: Array  # Pr[rising]


def open_curve(header: dict[str, Any], arrays: Arrays, link: Any, mean: Any) -> Curve:
    """A curve from what `save` wrote; `link` and `mean` where they were functions."""
    observations = read_observations(header["observations"], arrays, link, mean)
    priors = tuple(
        WeightedPrior(read_kernel(p["kernel"]), p["log_prior"], p["log_evidence"], p["weight"])
        for p in header["priors"]
    )
    for p in priors:
        require(
            all(map(is_number, (p.log_prior, p.log_evidence, p.weight))) and 0 <= p.weight <= 1,
            "a prior is malformed",
        )
    components = tuple(
        None if c is None else read_component(p.kernel, c, f"component{k}", arrays, observations)
        for k, (c, p) in enumerate(zip(header["components"], priors, strict=True))
    )
    require(
        any(p.weight > KEEP and c is not None for p, c in zip(priors, components, strict=True)),
        "no prior carries the curve",
    )
    require(
        header["solver"] in (None, *SOLVERS)
        and isinstance(header["method"], str)
        and header["frame"] in (None, *KINDS),
        "no options",
    )
    shown = BUILT_IN["identity"] if header["latent"] else None
    refining = header.get("refining", False)  # files of before have none
    return Curve(
        observations,
        priors,
        components,
        header["method"],
        header["frame"],
        shown,
        header["solver"],
        refining,
    )


def from_components(
    observations: Observations,
    components: list[GraftedCurve],
    log_priors: list[float],
    method: str,
    frame: str | None,
    solver: SolverName | None,
) -> Curve:
    """A curve from grafted priors, weighted by evidence × prior mass."""
    if not all(np.isfinite(c.log_evidence) for c in components):
        odd = next(c for c in components if not np.isfinite(c.log_evidence))
        raise InputError(
            f"the evidence of {odd.kernel.describe()} is {odd.log_evidence}: values, sds or times "
            f"are too extreme for double "
            "precision; bring them to a common scale"
        )
    check_evidence(observations.emissions, np.array([c.log_evidence for c in components]))
    weights = softmax(
        np.array([c.log_evidence + p for c, p in zip(components, log_priors, strict=True)])
    )
    check_tables(observations, components[int(weights.argmax())])
    priors = tuple(
        WeightedPrior(c.kernel, p, c.log_evidence, float(w))
        for c, p, w in zip(components, log_priors, weights, strict=True)
    )
    return Curve(
        observations,
        priors,
        tuple(c if w > 0.01 * KEEP else None for c, w in zip(components, weights, strict=True)),
        method,
        frame,
        None,
        solver,
    )


def check_tables(observations: Observations, component: GraftedCurve) -> None:
    """Refuse a curve that lies where a table of the user's has nothing to say, and only goes on in
    a straight line.
    """
    tables = [
        (part, where)
        for part, where in emission_blocks(observations.emissions)
        if isinstance(part, Table)
    ]
    for part, where in tables:
        at = np.clip(
            np.searchsorted(component.instants, observations.offsets[where]),
            0,
            component.instants.size - 1,
        )
        low, high = part.latent_ends(observations.link)
        value = full_cavity_and_tilted(component, observations)[1].mean[at]
        out = np.flatnonzero((value < low) | (value > high))
        if out.size:
            y = observations.link.value(value[out[:1]])[0]
            raise EmissionError(
                f"Table: the curve lies beyond the table's grid at {out.size} of {value.size} "
                f"emissions (first: emission "
                f"{where.start + out[0]}, about {y:.4g}); tabulate log f over a wider grid"
            )


def warn_if_unconverged(curve: Curve) -> Curve:
    """The curve, after a warning when a component that counts did not settle."""
    components = curve.weighted_components()[2]
    loose = [c for c in components if not c.converged]
    if loose:
        worst = max(loose, key=lambda c: c.residual)
        warnings.warn(
            f"grafting did not settle for {len(loose)} of {len(components)} priors within "
            f"{worst.sweeps} sweeps "
            f"(largest residual {worst.residual:.1e} sd, {worst.kernel.describe()}); "
            f"curve.audit() tells how far off the "
            "bands are",
            ConvergenceWarning,
            stacklevel=4,
        )
    return curve


def _moved_sites(component: GraftedCurve, old: Observations, new: Observations) -> NaturalGaussian:
    """Converged sites carried over to the instants of grown data; new instants start from nothing."""
    sites = component.ep.sites
    if component.groups.size == 1 and component.groups[0] == old.instants.size:
        return sites
    index = np.searchsorted(new.instants, old.instants)
    moved = NaturalGaussian.empty(new.instants.size)
    moved.precision[index] = sites.precision
    moved.shift[index] = sites.shift
    return moved


def _bandwidth(kernel: Kernel) -> float:
    return next(
        (
            summand.value_of("bandwidth")
            for summand in kernel.summands
            if isinstance(summand, BandwidthKernel)
        ),
        np.inf,
    )


def _log_normal(away: Array, cov: Array) -> float:
    """Log N(away; 0, cov), for covariances that are singular to rounding (a jitter of 1e-10 keeps
    them invertible).
    """
    size = float(np.diag(cov).max())
    root = np.linalg.cholesky(cov + 1e-10 * size * np.eye(away.size))
    half = np.linalg.solve(root, away)
    return float(
        -0.5 * half @ half - np.log(np.diag(root)).sum() - 0.5 * away.size * np.log(2 * np.pi)
    )
