"""CurvFiFE, curve fitting from emissions: the estimator of single and of many curves."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.core import (
    Array,
    Parameters,
    row_of_entries,
    single_blas_thread,
    softmax,
    whole_number,
)
from dynaesti.data import frame_kind, parse_formula, read_covariates
from dynaesti.errors import InputError
from dynaesti.estimation import (
    CURVE_EDGE,
    HyperGrid,
    curve_grids,
    estimate_population_weights,
    refine_grids,
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
from dynaesti.model import (
    METHODS,
    RBF,
    BandwidthKernel,
    EffectBlock,
    Effects,
    EmissionColumns,
    Kernel,
    Level,
    Noise,
    as_kernel,
    curve_effects,
)
from dynaesti.results import (
    Curve,
    Curves,
    from_components,
    warn_if_any_unconverged,
    warn_if_unconverged,
)

LEVEL_REACH = 3.0  # sd of a learned mean around the rough location, in spreads
FIXED_REACH = 3.0  # prior sd of effects of columns of unit spread, in spreads of the curve
TABLE_REACH = 24.0  # half-width of likelihood tables around it, in spreads
WIDE_REACH = 40.0  # the same where amplitudes are learned too


Grids = tuple[HyperGrid, ...]  # of kernels of the same form, from rough to smooth


class CurvFiFE(Parameters):
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
    effects : str, optional
        Formula of columns that move single emissions, beside the curve: ``"random(house)"`` for
        the houses of polls, ``"phone + C(weekday)"``. The curve is that at their average; see
        `Curve.effects`, and `DynAEsti` for what a formula may say. For single curves.
    noise : bool, default False
        Whether emissions have noise of their own beside the curve, as with ``kernel + Noise()``:
        for polls or counts that differ by more than their sizes explain. For single curves.
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
        effects: str | None = None,
        noise: bool = False,
        refine: bool = True,
    ) -> None:
        given = dict(locals())  # every option by its name
        if solver is not None and solver not in SOLVERS:
            raise InputError(f"solver: {solver!r} is none of {', '.join(SOLVERS)}")
        for name, value in (("noise", noise), ("refine", refine)):
            if not isinstance(value, bool):
                raise InputError(f"{name}: {value!r} is neither True nor False")
        _check_mean(mean)
        self.kernel = _resolve_kernel(kernel, bandwidth, noise)
        self.link = link
        self.mean = mean
        self.solver = solver
        self.folds = whole_number(folds, "folds", 2)
        self.seed = whole_number(seed, "seed", 0)
        self.formula = None if effects is None else parse_formula(effects)
        self.method = _method(self.kernel)
        self.refine = refine
        self.keep_given(given)

    @single_blas_thread()
    def fit(self, times: Any, emissions: Any, covariates: Any = None) -> Curve:
        """Fit one curve.

        Parameters
        ----------
        times : array (n,) of numbers or dates
            When each emission was made; several may share an instant.
        emissions : Emissions
            What was observed, one at each time.
        covariates : frame, mapping or path, optional
            Columns that the effects need, a row for each emission.

        Returns
        -------
        Curve
            The posterior of the curve.

        Raises
        ------
        EmissionError
            If an emission is impossible for every value of the curve.
        InputError
            If a column of the effects is absent.

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
        observations = observe(times, emissions, self.link)
        effects = None
        if self.formula is not None:
            found = read_covariates(covariates, self.formula.columns, len(observations.emissions))
            columns = EmissionColumns(observations.offsets, found)
            effects = curve_effects(self.formula, columns)
            x = effects.rows(columns).x.toarray()
            observations = replace(observations, columns=x)
        elif covariates is not None:
            raise InputError("covariates: nothing needs them; name them in effects=")
        observations = replace(observations, separate=self._sees_more)
        return self._fit(observations, effects, frame_kind(times))

    @property
    def _sees_more(self) -> bool:
        """Whether emissions see more than the curve: noise of their own, or effects."""
        noisy = any(isinstance(summand, Noise) for summand in self.kernel.summands)
        return noisy or self.formula is not None

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
        if self._sees_more:
            raise InputError("effects and noise: they are of single curves; fit these one by one")
        observations, kernel, spread, unit = self._resolve_scale(
            observe(times, emissions, self.link)
        )
        data = group_by_curve(groups, observations)
        grids = curve_grids(kernel, *_typical(data), unit, spread)
        if _is_open(grids) and self.method != "learn":
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

        found = refine_grids(
            grids,
            lambda kernels: [graft_many(data, k, self.solver, workers) for k in kernels],
            weigh,
        )
        fits = tuple(point.result for point in found)
        masses = np.array([point.log_mass for point in found])
        weights, population = estimate_population_weights(
            np.array([fit.ep.log_evidence for fit in fits]), masses, pool
        )
        warn_at_shortest_bandwidth(grids[0], [fit.kernel for fit in fits], population, CURVE_EDGE)
        method = "learn" if _is_open(grids) else "given"
        return warn_if_any_unconverged(
            Curves(data, fits, weights, population, method, frame_kind(groups, times), self.solver)
        )

    def _fit(self, observations: Observations, effects: Effects | None, frame: str | None) -> Curve:
        """The curve, with hyper-parameters given, averaged or picked."""
        observations, kernel, spread, unit = self._resolve_scale(observations)
        if effects is not None:
            kernel = as_kernel((*kernel.summands, *effect_blocks(effects, spread)))
        first, last = observations.span
        kernel = kernel.anchored(first, last)
        grids = curve_grids(kernel, last - first, observations.typical_gap(), unit, spread)
        if not _is_open(grids):
            component = graft_kernels(observations, [kernel], self.solver)
            curve = from_components(observations, component, [0.0], "given", frame, self.solver)
        elif self.method == "learn":
            curve = self._average(observations, grids, frame)
        else:
            curve = self._pick(observations, grids, frame)
        curve = replace(curve, column_effects=effects)
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
            observations = replace(observations, mean=mean)
            if any(summand.amplitude == "learn" for summand in self.kernel.summands):
                # else likelihoods under the larger amplitudes would be evaluated by formula
                observations = replace(observations, reach=WIDE_REACH * spread)
            return observations, self.kernel, spread, unit
        level = Level(amplitude=LEVEL_REACH * max(spread, 1e-6 * abs(location), 1e-12))
        return (
            replace(observations, mean=location, reach=TABLE_REACH * spread),
            as_kernel((*self.kernel.summands, level)),
            spread,
            unit,
        )

    def _average(self, observations: Observations, grids: Grids, frame: str | None) -> Curve:
        """The curve averaged over the grid."""

        def weigh(components: list[GraftedCurve], log_mass: Array) -> Array:
            return softmax(log_mass + np.array([c.log_evidence for c in components]))

        found = refine_grids(
            grids, lambda kernels: graft_kernels(observations, kernels, self.solver), weigh
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
        warn_at_shortest_bandwidth(grids[0], kernels, weights, CURVE_EDGE)
        return curve

    def _pick(self, observations: Observations, grids: Grids, frame: str | None) -> Curve:
        """The curve of the grid's best kernel, by evidence, leave-one-out or cross-validation."""

        def weigh(scored: list[tuple[GraftedCurve, float]], _: Array) -> Array:
            return softmax(np.array([score for _, score in scored]))

        found = refine_grids(
            grids, lambda kernels: self._scored(observations, kernels), weigh, pick=True
        )
        weights = weigh([point.result for point in found], np.zeros(0))
        kernels = [point.kernel for point in found]
        warn_at_shortest_bandwidth(grids[0], kernels, weights, CURVE_EDGE)
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


def _is_open(grids: Grids) -> bool:
    """Whether there are several kernels to average over, or to pick from."""
    return len(grids) > 1 or bool(grids[0].axes)


def _resolve_kernel(kernel: Kernel | None, bandwidth: Any, noise: bool) -> Kernel:
    """The kernel, or the RBF of a bandwidth; with noise of single emissions where asked for."""
    if kernel is not None and bandwidth is not None:
        raise InputError(
            "bandwidth: the kernel owns it; write CurvFiFE(RBF(bandwidth=…)) or "
            "CurvFiFE(bandwidth=…), not both"
        )
    if kernel is not None and not isinstance(kernel, Kernel):
        raise InputError(f"kernel: expected a kernel such as RBF(), got {type(kernel).__name__}")
    made = RBF("learn" if bandwidth is None else bandwidth) if kernel is None else kernel
    has_noise = any(isinstance(summand, Noise) for summand in made.summands)
    return made + Noise() if noise and not has_noise else made


def _check_mean(mean: Any) -> None:
    """Refuse what is no prior mean."""
    if mean is None or callable(mean) or (isinstance(mean, str) and mean == "learn"):
        return
    if not np.isfinite(_number(mean, "mean")):
        raise InputError(f"mean: {mean!r} is not a finite number, a function of time, or 'learn'")


def effect_blocks(effects: Effects, spread: float) -> list[EffectBlock]:
    """The prior of effects: wide for fixed ones, of a size that is learned for each block."""
    blocks = [EffectBlock(size=len(block.levels)) for block in effects.blocks]
    if effects.fixed:
        wide = EffectBlock(size=len(effects.fixed), amplitude=FIXED_REACH * spread)
        blocks.insert(0, wide)
    return blocks


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
