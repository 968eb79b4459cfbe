"""CurvFiFE: curve fitting from emissions. Options checked, the parts put together."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynaesti.candidates import explore, grid, open_space
from dynaesti.components import Component, graft_components
from dynaesti.crossvalidation import cross_validated
from dynaesti.curves import Curve, from_components
from dynaesti.errors import BandwidthWarning, ConvergenceWarning, InputError
from dynaesti.frames import frame_kind
from dynaesti.leaveout import leave_out
from dynaesti.many import Curves, Ragged, graft_many, population_weights, ragged
from dynaesti.observations import Observations, observe, rough_scale, unit_scale
from dynaesti.priors import SOLVERS, SolverName
from dynaesti.priors.kernels import METHODS, RBF, Banded, Kernel, Level, as_kernel

LEVEL_REACH = 3.0  # a learned mean may lie so many spreads from the rough one
TABLE_REACH = 24.0  # spreads either side of it that tabulated rows cover


class CurvFiFE:
    """A Gaussian-process curve from arbitrary probabilistic emissions.

    `kernel` owns the hyper-parameters (default: the paper's RBF with the bandwidth learned); `bandwidth` is shorthand for a lone RBF:
    a number, inf (a constant), "learn" (average over a grid), "evidence", "loo" or "cv" (pick the best, k-fold as in the paper).
    `link`: identity, probit, logit, log or a pair of functions (latent → scale, scale → latent); by default the emissions' own.
    `mean`: prior mean of the latent curve: a number, a function of time, or "learn". `solver`: dense, lowrank or statespace; by
    default the cheapest that is exact. `folds` and `seed` belong to "cv".
    """

    def __init__(self, kernel: Kernel | None = None, *, bandwidth: Any = None, link: Any = None,
                 mean: float | str | Callable[[Any], Any] | None = None, solver: SolverName | None = None, folds: int = 10,
                 seed: int = 0) -> None:
        if kernel is not None and bandwidth is not None:
            raise InputError("bandwidth: the kernel owns it; write CurvFiFE(RBF(bandwidth=…)) or CurvFiFE(bandwidth=…), not both")
        if kernel is not None and not isinstance(kernel, Kernel):
            raise InputError(f"kernel: expected a kernel such as RBF(), got {type(kernel).__name__}")
        if solver is not None and solver not in SOLVERS:
            raise InputError(f"solver: {solver!r} is none of {', '.join(SOLVERS)}")
        if mean is not None and mean != "learn" and not callable(mean) and not np.isfinite(_number(mean, "mean")):
            raise InputError(f"mean: {mean!r} is not a finite number, a function of time, or 'learn'")
        if folds < 2:
            raise InputError(f"folds: cross-validation needs at least 2, got {folds}")
        self.kernel: Kernel = RBF("learn" if bandwidth is None else bandwidth) if kernel is None else kernel
        self.link, self.mean, self.solver, self.folds, self.seed = link, mean, solver, int(folds), seed
        self.method = _method(self.kernel)

    def fit(self, times: Any, emissions: Any) -> Curve:
        """The curve behind emissions at the given times."""
        return self._fit(observe(times, emissions, self.link), frame_kind(times))

    def fit_many(self, groups: Any, times: Any, emissions: Any, *, pool: bool = True, threads: int | None = None) -> Curves:
        """Thousands of curves in one call: one label an emission says which curve it belongs to.

        A bandwidth to be learned is averaged over one grid for all curves, its scale set by their typical span; with `pool` the
        population's distribution over the grid is learned too. Picking methods ("evidence", "loo", "cv") belong to single fits.
        """
        observations, kernel, spread, unit = self._settle_scale(observe(times, emissions, self.link))
        data = ragged(groups, observations)
        space = open_space(kernel, *_typical(data), unit, spread)
        if space.axes and self.method != "learn":
            raise InputError(f"bandwidth: {self.method!r} picks for a single curve; for many give a number or 'learn'")
        kernels, log_prior = grid(space)
        fits = tuple(graft_many(data, k, self.solver, threads) for k in kernels)
        weights, population = population_weights(np.array([fit.log_evidence for fit in fits]), log_prior, pool and len(fits) > 1)
        return Curves(data, fits, weights, population, "learn" if space.axes else "given", frame_kind(groups, times), self.solver)

    def _fit(self, observations: Observations, frame: str | None) -> Curve:
        observations, kernel, spread, unit = self._settle_scale(observations)
        first, last = observations.span
        kernel = kernel.place(first, last)
        space = open_space(kernel, last - first, observations.typical_gap(), unit, spread)
        if not space.axes:
            component = graft_components(observations, [kernel], self.solver)
            return _told(from_components(observations, component, [0.0], "given", frame, self.solver))
        if self.method == "learn":
            return _told(self._average(observations, space, frame))
        return _told(self._pick(observations, space, frame))

    def _settle_scale(self, observations: Observations) -> tuple[Observations, Kernel, float, bool]:
        """Mean and amplitude: 0 and 1 where the paper's argument holds, else a wide level around a rough location."""
        unit = unit_scale(observations)
        wanted = ("learn" if not unit else 0.0) if self.mean is None else self.mean
        location, spread = rough_scale(observations) if not unit or wanted == "learn" else (0.0, 1.0)
        if wanted != "learn":
            mean = wanted if callable(wanted) else _number(wanted, "mean")
            return replace(observations, mean=mean), self.kernel, spread, unit
        level = Level(amplitude=LEVEL_REACH * max(spread, 1e-6 * abs(location), 1e-12))
        return replace(observations, mean=location, reach=TABLE_REACH * spread), as_kernel((*self.kernel.leaves, level)), spread, unit

    def _average(self, observations: Observations, space: Any, frame: str | None) -> Curve:
        found = explore(space, lambda kernels: graft_components(observations, kernels, self.solver),
                               lambda component: component.log_evidence, use_prior=True)
        curve = from_components(observations, [e.result for e in found], [e.log_weight - e.result.log_evidence for e in found],
                                "learn", frame, self.solver)
        _warn_at_edge(space, curve)
        return curve

    def _pick(self, observations: Observations, space: Any, frame: str | None) -> Curve:
        found = explore(space, lambda kernels: self._scored(observations, kernels), lambda scored: scored[1], use_prior=False)
        best = max(found, key=lambda e: e.log_weight).result[0]
        return from_components(observations, [best], [0.0], self.method, frame, self.solver)

    def _scored(self, observations: Observations, kernels: list[Kernel]) -> list[tuple[Component, float]]:
        """Each kernel grafted, with the criterion that picks among them."""
        made = graft_components(observations, kernels, self.solver)
        if self.method == "evidence":
            return [(c, c.log_evidence) for c in made]
        if self.method == "loo":
            return [(c, float(leave_out(observations.likelihood, c).log_density.sum())) for c in made]
        return list(zip(made, cross_validated(observations, kernels, self.solver, self.folds, self.seed), strict=True))


def _typical(data: Ragged) -> tuple[float, float]:
    """Median span and gap of the curves that have any."""
    first, last = data.spans()
    spans = (last - first)[last > first]
    gaps = np.diff(data.times)[np.diff(np.searchsorted(data.site_start, np.arange(data.times.size), side="right")) == 0]
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
    words = {leaf.bandwidth for leaf in kernel.leaves if isinstance(leaf, Banded) and isinstance(leaf.bandwidth, str)}
    if len(words) > 1:
        raise InputError(f"bandwidth: the kernels ask for different methods ({', '.join(sorted(words))}); "
                         f"choose one of {', '.join(METHODS)}")
    return words.pop() if words else "learn"


def _told(curve: Curve) -> Curve:
    """Warn when a component that counts did not settle."""
    loose = [c for c in curve._kept[1] if not c.converged]
    if loose:
        worst = max(loose, key=lambda c: c.residual)
        warnings.warn(f"grafting did not settle for {len(loose)} of {len(curve._kept[1])} priors within {worst.sweeps} sweeps "
                      f"(largest residual {worst.residual:.1e} sd, {worst.kernel.describe()}); curve.audit() tells how far off the "
                      "bands are", ConvergenceWarning, stacklevel=4)
    return curve


def _warn_at_edge(space: Any, curve: Curve) -> None:
    """Tell when the weight piles up at the shortest bandwidth that the gaps between instants allow."""
    for axis in space.axes:
        if axis.field != "bandwidth" or not np.isfinite(axis.lowest):
            continue
        leaf = axis.leaves[0]
        at_edge = sum(p.weight for p in curve.priors
                      if p.kernel.leaves[leaf].number("bandwidth") <= np.exp(axis.lowest) * 1.0001)
        if at_edge > 0.5:
            warnings.warn(f"bandwidth: {at_edge:.0%} of the weight lies at {np.exp(axis.lowest):.3g}, the gap between neighbouring times; "
                          "the curve changes faster than these times can show, or emissions nearby depend on each other",
                          BandwidthWarning, stacklevel=5)
