"""CurvFiFE, curve fitting from emissions: the estimator of single and of many curves."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import Array, row_of_entries, single_blas_thread, softmax, whole_number
from dynaesti.data import frame_kind
from dynaesti.errors import InputError
from dynaesti.estimation import (
    CURVE_EDGE,
    HyperGrid,
    curve_grid,
    estimate_population_weights,
    refine_grid,
    warn_at_shortest_bandwidth,
)
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
from dynaesti.model import METHODS, RBF, BandwidthKernel, Kernel, Level, as_kernel
from dynaesti.results import (
    Curve,
    Curves,
    from_components,
    warn_if_any_unconverged,
    warn_if_unconverged,
)

LEVEL_REACH = 3.0  # sd of a learned mean around the rough location, in spreads
TABLE_REACH = 24.0  # half-width of likelihood tables around it, in spreads


class CurvFiFE:
    """Gaussian-process curves from arbitrary probabilistic emissions.

    Parameters
    ----------
    kernel : Kernel, optional
        Prior covariance of the latent curve, with its hyper-parameters. Default: the paper's RBF
        with its bandwidth learned.
    bandwidth : float or {"learn", "evidence", "loo", "cv"}, optional
        Instead of a kernel: the bandwidth of a lone RBF kernel. A number in the unit of the times,
        or inf for a constant; "learn" averages over a grid of bandwidths; "evidence", "loo" and
        "cv" pick the best one by evidence, leave-one-out density or k-fold cross-validation (the
        paper's choice).
    link : {"identity", "probit", "logit", "log"} or pair of callables, optional
        Scale to report on. A pair maps latent values to the scale, and back. Default: the
        emissions' own.
    mean : float, callable or "learn", optional
        Prior mean of the latent curve: a number, a function of time, or learned. Default: 0 where
        amplitude 1 is a fair prior too (probabilities), else learned.
    solver : {"dense", "lowrank", "statespace"}, optional
        How the Gaussian process is computed. Default: the cheapest that is exact.
    folds : int, default 10
        Folds of "cv".
    seed : int, default 0
        Seed of the folds of "cv".
    refine : bool, default True
        Whether to correct standard deviations and evidence of a single curve to second order,
        where its prior has a form in few weights; see `Curve.refined`.

    Raises
    ------
    InputError
        If an option cannot be used; the message names it.

    See Also
    --------
    DynAEsti : ability curves of many people, with items that are learned.

    Examples
    --------
    >>> import dynaesti as dy
    >>> curve = dy.CurvFiFE(bandwidth=2.0).fit([0.0, 1.0, 2.0, 3.0], dy.Bernoulli([0, 0, 1, 1]))
    >>> curve.mean([0.0, 3.0]).round(1).tolist()
    [0.3, 0.7]
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
        """Fit one curve.

        Parameters
        ----------
        times : array (n,) of numbers or dates
            When each emission was made; several may share an instant.
        emissions : Emissions
            What was observed, one at each time.

        Returns
        -------
        Curve
            The posterior of the curve.

        Raises
        ------
        EmissionError
            If an emission is impossible for every value of the curve.

        Warns
        -----
        BandwidthWarning
            If most weight lies at the shortest bandwidth that the times can show.
        ConvergenceWarning
            If expectation propagation has not converged.

        Examples
        --------
        >>> import dynaesti as dy
        >>> emissions = dy.Gaussian([1.0, 2.0, 1.5], 0.3)
        >>> curve = dy.CurvFiFE(bandwidth=1.0).fit([0.0, 1.0, 2.0], emissions)
        >>> curve.sd([0.0, 10.0]).round(1).tolist()
        [0.3, 0.7]
        """
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
        """Fit thousands of curves in one call.

        A bandwidth to be learned is averaged over one grid for all curves, whose range follows
        from their typical span. Methods that pick ("evidence", "loo", "cv") are for single curves.

        Parameters
        ----------
        groups : array (n,)
            Label of the curve that each emission belongs to.
        times : array (n,) of numbers or dates
            When each emission was made.
        emissions : Emissions
            What was observed, one at each time.
        pool : bool, default True
            Whether the distribution of the curves over the grid is learned from all of them.
            Otherwise each curve uses the grid's prior.
        threads : int, optional
            Threads to use. Default: one for each core.

        Returns
        -------
        Curves
            All curves, by label.

        Raises
        ------
        InputError
            If the bandwidth is to be picked by a method for single curves.

        Examples
        --------
        >>> import dynaesti as dy
        >>> curves = dy.CurvFiFE(bandwidth=2.0).fit_many(
        ...     ["a", "a", "b", "b"], [0.0, 1.0, 0.0, 1.0], dy.Bernoulli([0, 1, 1, 1])
        ... )
        >>> len(curves)
        2
        """
        observations, kernel, spread, unit = self._resolve_scale(
            observe(times, emissions, self.link)
        )
        data = group_by_curve(groups, observations)
        grid = curve_grid(kernel, *_typical(data), unit, spread)
        if grid.axes and self.method != "learn":
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
            grid,
            lambda kernels: [graft_many(data, k, self.solver, workers) for k in kernels],
            weigh,
        )
        fits = tuple(point.result for point in found)
        masses = np.array([point.log_mass for point in found])
        weights, population = estimate_population_weights(
            np.array([fit.ep.log_evidence for fit in fits]), masses, pool
        )
        warn_at_shortest_bandwidth(grid, [fit.kernel for fit in fits], population, CURVE_EDGE)
        method = "learn" if grid.axes else "given"
        return warn_if_any_unconverged(
            Curves(data, fits, weights, population, method, frame_kind(groups, times), self.solver)
        )

    def _fit(self, observations: Observations, frame: str | None) -> Curve:
        """The curve, with hyper-parameters given, averaged or picked."""
        observations, kernel, spread, unit = self._resolve_scale(observations)
        first, last = observations.span
        kernel = kernel.anchored(first, last)
        grid = curve_grid(kernel, last - first, observations.typical_gap(), unit, spread)
        if not grid.axes:
            component = graft_kernels(observations, [kernel], self.solver)
            curve = from_components(observations, component, [0.0], "given", frame, self.solver)
        elif self.method == "learn":
            curve = self._average(observations, grid, frame)
        else:
            curve = self._pick(observations, grid, frame)
        return warn_if_unconverged(curve.refined_if_possible() if self.refine else curve)

    def _resolve_scale(
        self, observations: Observations
    ) -> tuple[Observations, Kernel, float, bool]:
        """Set mean and amplitude.

        They are 0 and 1 where the paper's argument holds; else the mean is a rough location, and a
        wide `Level` is added to the kernel.

        Returns
        -------
        observations : Observations
            With the mean.
        kernel : Kernel
            With the level, if there is one.
        spread : float
            Rough standard deviation of the latent curve.
        unit : bool
            Whether amplitude 1 is a fair prior.
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

    def _average(self, observations: Observations, grid: HyperGrid, frame: str | None) -> Curve:
        """The curve averaged over the grid."""

        def weigh(components: list[GraftedCurve], log_mass: Array) -> Array:
            return softmax(log_mass + np.array([c.log_evidence for c in components]))

        found = refine_grid(
            grid, lambda kernels: graft_kernels(observations, kernels, self.solver), weigh
        )
        curve = from_components(
            observations,
            [point.result for point in found],
            [point.log_mass for point in found],
            "learn",
            frame,
            self.solver,
        )
        kernels = [prior.kernel for prior in curve.priors]
        weights = np.array([prior.weight for prior in curve.priors])
        warn_at_shortest_bandwidth(grid, kernels, weights, CURVE_EDGE)
        return curve

    def _pick(self, observations: Observations, grid: HyperGrid, frame: str | None) -> Curve:
        """The curve of the grid's best kernel, by evidence, leave-one-out or cross-validation."""

        def weigh(scored: list[tuple[GraftedCurve, float]], _: Array) -> Array:
            return softmax(np.array([score for _, score in scored]))

        found = refine_grid(
            grid, lambda kernels: self._scored(observations, kernels), weigh, pick=True
        )
        weights = weigh([point.result for point in found], np.zeros(0))
        warn_at_shortest_bandwidth(grid, [point.kernel for point in found], weights, CURVE_EDGE)
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
    """Median span of the curves that have one, and typical gap between their instants."""
    layout = data.layout
    first, last = layout.spans
    spans = (last - first)[last > first]
    within = np.diff(row_of_entries(layout.site_start)) == 0
    gaps = np.diff(layout.times)[within]
    if not spans.size:
        return 0.0, 1.0
    return float(np.median(spans)), float(min(np.median(gaps), np.median(spans) / 20))


def _number(value: Any, name: str) -> float:
    """The value as float; inf and NaN pass."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected a number, got {value!r}") from None


def _method(kernel: Kernel) -> str:
    """Method by which the kernel's open bandwidths are chosen; one for all of them."""
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
