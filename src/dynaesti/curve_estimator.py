"""CurvFiFE: curve fitting from emissions. Options checked, the parts put together."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import Array, row_of_entries, single_blas_thread, softmax, whole_number
from dynaesti.data import frame_kind
from dynaesti.errors import BandwidthWarning, InputError
from dynaesti.estimation import HyperGrid, curve_grid, estimate_population_weights, refine_grid
from dynaesti.inference import (
    SOLVERS,
    CurveData,
    GraftedCurve,
    GraftedCurves,
    Observations,
    SolverName,
    cross_validate,
    graft_kernels,
    graft_many,
    group_by_curve,
    leave_one_out_densities,
    observe,
    rough_scale,
    unit_scale,
)
from dynaesti.model import METHODS, RBF, BandwidthKernel, Kernel, Level, Periodic, as_kernel
from dynaesti.results import Curve, Curves, from_components, told_many, warn_if_unconverged

LEVEL_REACH = 3.0  # a learned mean may lie so many spreads from the rough one
TABLE_REACH = 24.0  # spreads either side of it that tabulated rows cover


class CurvFiFE:
    """A Gaussian-process curve from arbitrary probabilistic emissions.

    `kernel` owns the hyper-parameters (default: the paper's RBF with the bandwidth learned);
    `bandwidth` is shorthand for a lone RBF: a number, inf (a constant), "learn" (average over a
    grid), "evidence", "loo" or "cv" (pick the best, k-fold as in the paper). `link`: identity,
    probit, logit, log or a pair of functions (latent → scale, scale → latent); by default the
    emissions' own. `mean`: prior mean of the latent curve: a number, a function of time, or
    "learn". `solver`: dense, lowrank or statespace; by default the cheapest that is exact. `folds`
    and `seed` belong to "cv". `refine` corrects latent sds and evidence of a single curve to second
    order where its prior has a form in few weights (see `Curve.refined`); False leaves what
    grafting gives.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        bandwidth: Any = None,
        link: Any = None,
        mean: float | str | Callable[[Any], Any] | None = None,
        solver: SolverName | None = None,
        folds: int = 10,
        seed: int = 0,
        refine: bool = True,
    ) -> None:
        if kernel is not None and bandwidth is not None:
            raise InputError(
                "bandwidth: the kernel owns it; write CurvFiFE(RBF(bandwidth=…)) or "
                "CurvFiFE(bandwidth=…), not both"
            )
        if kernel is not None and not isinstance(kernel, Kernel):
            raise InputError(
                f"kernel: expected a kernel such as RBF(), got {type(kernel).__name__}"
            )
        if solver is not None and solver not in SOLVERS:
            raise InputError(f"solver: {solver!r} is none of {', '.join(SOLVERS)}")
        learned = isinstance(mean, str) and mean == "learn"
        if (
            mean is not None
            and not learned
            and not callable(mean)
            and not np.isfinite(_number(mean, "mean"))
        ):
            raise InputError(
                f"mean: {mean!r} is not a finite number, a function of time, or 'learn'"
            )
        self.kernel: Kernel = (
            RBF("learn" if bandwidth is None else bandwidth) if kernel is None else kernel
        )
        self.link = link
        self.mean = mean
        self.solver = solver
        self.folds = whole_number(folds, "folds", 2)
        self.seed = whole_number(seed, "seed", 0)
        if not isinstance(refine, bool):
            raise InputError(f"refine: {refine!r} is neither True nor False")
        self.method = _method(self.kernel)
        self.refine = refine

    @single_blas_thread()
    def fit(self, times: Any, emissions: Any) -> Curve:
        """The curve behind emissions at the given times."""
        return self._fit(observe(times, emissions, self.link), frame_kind(times))

    @single_blas_thread()
    def fit_many(
        self,
        groups: Any,
        times: Any,
        emissions: Any,
        *,
        pool: bool = True,
        threads: int | None = None,
    ) -> Curves:
        """Thousands of curves in one call: one label an emission says which curve it belongs to.

        A bandwidth to be learned is averaged over one grid for all curves, its scale set by their
        typical span; with `pool` the population's distribution over the grid is learned too.
        Picking methods ("evidence", "loo", "cv") belong to single fits.
        """
        observations, kernel, spread, unit = self._resolve_scale(
            observe(times, emissions, self.link)
        )
        data = group_by_curve(groups, observations)
        space = curve_grid(kernel, *_typical(data), unit, spread)
        if space.axes and self.method != "learn":
            raise InputError(
                f"bandwidth: {self.method!r} picks for a single curve; for many give a number or "
                f"'learn'"
            )
        workers = None if threads is None else whole_number(threads, "threads", 1)

        def weigh(fits: list[GraftedCurves], log_mass: Array) -> Array:
            return np.asarray(
                estimate_population_weights(
                    np.array([fit.ep.log_evidence for fit in fits]), log_mass, pool
                )[0].mean(axis=1)
            )

        found = refine_grid(
            space,
            lambda kernels: [graft_many(data, k, self.solver, workers) for k in kernels],
            weigh,
        )
        fits = tuple(e.result for e in found)
        masses = np.array([e.log_mass for e in found])
        weights, population = estimate_population_weights(
            np.array([fit.ep.log_evidence for fit in fits]), masses, pool
        )
        warn_at_edge(space, [fit.kernel for fit in fits], population)
        method = "learn" if space.axes else "given"
        return told_many(
            Curves(data, fits, weights, population, method, frame_kind(groups, times), self.solver)
        )

    def _fit(self, observations: Observations, frame: str | None) -> Curve:
        observations, kernel, spread, unit = self._resolve_scale(observations)
        first, last = observations.span
        kernel = kernel.anchored(first, last)
        space = curve_grid(kernel, last - first, observations.typical_gap(), unit, spread)
        if not space.axes:
            component = graft_kernels(observations, [kernel], self.solver)
            curve = from_components(observations, component, [0.0], "given", frame, self.solver)
        elif self.method == "learn":
            curve = self._average(observations, space, frame)
        else:
            curve = self._pick(observations, space, frame)
        return warn_if_unconverged(curve.refined_if_possible() if self.refine else curve)

    def _resolve_scale(
        self, observations: Observations
    ) -> tuple[Observations, Kernel, float, bool]:
        """Mean and amplitude: 0 and 1 where the paper's argument holds, else a wide level around a
        rough location.
        """
        unit = unit_scale(observations)
        wanted = ("learn" if not unit else 0.0) if self.mean is None else self.mean
        learned = isinstance(wanted, str)
        location, spread = rough_scale(observations) if learned or not unit else (0.0, 1.0)
        if not learned:
            mean = wanted if callable(wanted) else _number(wanted, "mean")
            return replace(observations, mean=mean), self.kernel, spread, unit
        level = Level(amplitude=LEVEL_REACH * max(spread, 1e-6 * abs(location), 1e-12))
        return (
            replace(observations, mean=location, reach=TABLE_REACH * spread),
            as_kernel((*self.kernel.summands, level)),
            spread,
            unit,
        )

    def _average(self, observations: Observations, space: HyperGrid, frame: str | None) -> Curve:
        def weigh(components: list[GraftedCurve], log_mass: Array) -> Array:
            return softmax(log_mass + np.array([c.log_evidence for c in components]))

        found = refine_grid(
            space, lambda kernels: graft_kernels(observations, kernels, self.solver), weigh
        )
        curve = from_components(
            observations,
            [e.result for e in found],
            [e.log_mass for e in found],
            "learn",
            frame,
            self.solver,
        )
        warn_at_edge(
            space, [p.kernel for p in curve.priors], np.array([p.weight for p in curve.priors])
        )
        return curve

    def _pick(self, observations: Observations, space: HyperGrid, frame: str | None) -> Curve:
        def weigh(scored: list[tuple[GraftedCurve, float]], _: Array) -> Array:
            return softmax(np.array([score for _, score in scored]))

        found = refine_grid(
            space, lambda kernels: self._scored(observations, kernels), weigh, pick=True
        )
        weights = weigh([e.result for e in found], np.zeros(0))
        warn_at_edge(space, [e.kernel for e in found], weights)
        return from_components(
            observations,
            [found[int(weights.argmax())].result[0]],
            [0.0],
            self.method,
            frame,
            self.solver,
        )

    def _scored(
        self, observations: Observations, kernels: list[Kernel]
    ) -> list[tuple[GraftedCurve, float]]:
        """Each kernel grafted, with the criterion that picks among them."""
        made = graft_kernels(observations, kernels, self.solver)
        if self.method == "evidence":
            return [(c, c.log_evidence) for c in made]
        if self.method == "loo":
            return [
                (c, float(leave_one_out_densities(observations.likelihood, c).log_density.sum()))
                for c in made
            ]
        return list(
            zip(
                made,
                cross_validate(observations, kernels, self.solver, self.folds, self.seed),
                strict=True,
            )
        )


def _typical(data: CurveData) -> tuple[float, float]:
    """Median span and gap of the curves that have any."""
    layout = data.layout
    first, last = layout.spans
    spans = (last - first)[last > first]
    within = np.diff(row_of_entries(layout.site_start)) == 0
    gaps = np.diff(layout.times)[within]
    if not spans.size:
        return 0.0, 1.0
    return float(np.median(spans)), float(min(np.median(gaps), np.median(spans) / 20))


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected a number, got {value!r}") from None


def _method(kernel: Kernel) -> str:
    """How the kernel's open bandwidths are to be chosen; they must agree."""
    words = {
        summand.bandwidth
        for summand in kernel.summands
        if isinstance(summand, BandwidthKernel) and isinstance(summand.bandwidth, str)
    }
    if len(words) > 1:
        raise InputError(
            f"bandwidth: the kernels ask for different methods ({', '.join(sorted(words))}); "
            f"choose one of {', '.join(METHODS)}"
        )
    return words.pop() if words else "learn"


def warn_at_edge(space: HyperGrid, kernels: Sequence[Kernel], weights: Array) -> None:
    """Tell when the weight piles up at the shortest bandwidth that was tried."""
    for axis in space.axes:
        if axis.field != "bandwidth" or isinstance(
            space.kernel.summands[axis.summands[0]], Periodic
        ):  # the latter counts within its period
            continue
        bandwidths = np.array(
            [kernel.summands[axis.summands[0]].value_of("bandwidth") for kernel in kernels]
        )
        shortest = bandwidths.min()
        at_edge = float(weights[bandwidths <= 1.0001 * shortest].sum())
        if at_edge > 0.5:
            warnings.warn(
                f"bandwidth: {at_edge:.0%} of the weight lies at {shortest:.3g}, the shortest "
                f"that these times can show; "
                "the curve changes faster than that, or emissions nearby depend on each other",
                BandwidthWarning,
                stacklevel=5,
            )
