"""The grid of priors that learning averages over, refined where the evidence is.

Each hyper-parameter to be learned is an axis of log values with a weak normal prior; the grid is
their product. Each round of evaluation adds nodes beyond an end that has weight, and between nodes
with much weight, so that the best value is never unnoticed at an edge. A constant curve (bandwidth
∞) is added to the grid with a small prior probability of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Generic, TypeVar

import numpy as np

from dynaesti.core import Array
from dynaesti.errors import BandwidthWarning, InputError, warn_user
from dynaesti.model import (
    AnswerKernel,
    BandwidthKernel,
    BaseKernel,
    Kernel,
    Periodic,
    as_kernel,
    smoothness_choices,
)

R = TypeVar("R")
# prior of the log bandwidth h, in spans of the data
BANDWIDTH_CENTRE = 0.3
BANDWIDTH_SD = 0.7
AMPLITUDE_SD = 1.0
# prior of the log size of noise and of effects, in spreads of the curve, and the smallest one tried
SIZE_CENTRE = 0.15
SIZE_SD = 1.2
LEAST_SIZE = 1e-3
POPULATION_FINEST = 0.3  # finest step of log h: a mixture covers bandwidths between nodes
# shortest bandwidth tried for a population, as the typical span divided by this number: the cost of
# features is quadratic in it
POPULATION_WAVES = 50
# features of a smoother kernel that cost about twice as much as a Matérn 3/2 chain (measured)
MOST_CHEAP_FEATURES = 16
SHARE_SD = 0.8  # prior sd of the log ratio of two summands' amplitudes
STATIC_PRIOR = 0.05  # prior probability of the constant curve
# shortest bandwidth tried for kernels with features, as the span divided by this number
MOST_WAVES = 400
NEGLIGIBLE = 1e-2  # weight at an end of an axis that may be ignored
# A grid point is not evaluated if its nearest evaluated neighbour has less than this fraction of
# the best point's weight. For a population, weights are fractions of people, and priors of so small
# a weight would be pruned anyway.
HOPELESS = 1e-6
POPULATION_HOPELESS = 3e-2
ROUNDS = 14
MOST_AXES = 4
MOST_POINTS = 2500  # largest number of points of a grid with more than two axes


@dataclass(frozen=True)
class Axis:
    """One hyper-parameter: log values, their normal prior, and limits of the grid.

    Parameters
    ----------
    summands : tuple of int
        Summands of the kernel that it belongs to.
    field : str
        "bandwidth" or "amplitude".
    centre, sd : float
        Normal prior of the log value.
    lowest : float
        Smallest log value.
    finest : float
        Smallest step between nodes.
    """

    summands: tuple[int, ...]
    field: str
    centre: float
    sd: float
    lowest: float
    finest: float = 0.05

    def log_prior(self, value: float) -> float:
        """Log density of the normal prior."""
        return float(
            -0.5 * ((value - self.centre) / self.sd) ** 2 - np.log(self.sd * np.sqrt(2 * np.pi))
        )


@dataclass(frozen=True)
class GridPoint(Generic[R]):
    """A prior on the grid, and what was computed for it.

    Parameters
    ----------
    kernel : Kernel
    result : object
        What `evaluate` returned for the kernel.
    log_mass : float
        Log prior mass in the grid.
    point : tuple of float, optional
        Log values on the axes; None for a constant curve.
    """

    kernel: Kernel
    result: R
    log_mass: float
    point: tuple[float, ...] | None


@dataclass(frozen=True)
class HyperGrid:
    """All priors that a kernel with open hyper-parameters can become."""

    kernel: Kernel
    axes: tuple[Axis, ...]
    static: bool  # whether a constant curve is one of them
    hopeless: float = HOPELESS
    bandwidth_ratio: float = 1.0  # typical bandwidths, relative to those of the roughest kernel

    def at(self, point: tuple[float, ...]) -> Kernel:
        """The kernel with the values of a grid point for its open hyper-parameters."""
        summands = list(self.kernel.summands)
        for axis, value in zip(self.axes, point, strict=True):
            for k in axis.summands:
                summands[k] = replace(summands[k], **{axis.field: float(np.exp(value))})
        return as_kernel(tuple(summands))

    def constant(self, point: tuple[float, ...]) -> Kernel:
        """The kernel at a grid point, with every open bandwidth infinite."""
        summands = list(self.at(point).summands)
        for axis in self.axes:
            if axis.field == "bandwidth":
                for k in axis.summands:
                    summands[k] = replace(summands[k], **{axis.field: np.inf})
        return as_kernel(tuple(summands))


@dataclass(frozen=True)
class UnitVarianceGrid(HyperGrid):
    """A grid whose kernels are scaled to total variance 1.

    Amplitudes then determine how the variance is divided between summands.
    """

    def at(self, point: tuple[float, ...]) -> Kernel:
        return _of_unit_variance(super().at(point))


def _of_unit_variance(kernel: Kernel) -> Kernel:
    """The kernel scaled to total variance 1."""
    total = sum(summand.variance for summand in kernel.summands)
    return as_kernel(
        tuple(_scaled(summand, summand.variance / total) for summand in kernel.summands)
    )


def _scaled(summand: BaseKernel, weight: float) -> BaseKernel:
    """The summand with unit amplitude and a weight.

    All summand classes have the field `amplitude`, but their base class has not.
    """
    changes = {"weight": weight, "amplitude": 1.0}
    return replace(summand, **changes)


def population_grids(
    kernel: Kernel, span: float, gap: float, site_span: float
) -> tuple[UnitVarianceGrid, ...]:
    """The grid of a kernel for each smoothness that it may have, from rough to smooth.

    Kernels with features are tried only at bandwidths at which these are about as cheap as chains:
    `site_span` is the span that the typical site's person covers.
    """
    choices = smoothness_choices(kernel)
    shortest = 2 * site_span / MOST_CHEAP_FEATURES
    return tuple(
        replace(
            _with_shortest(population_grid(one, span, gap), shortest if k else 0.0),
            bandwidth_ratio=ratio,
        )
        for k, (one, ratio) in enumerate(choices)
    )


def _with_shortest(grid: UnitVarianceGrid, shortest: float) -> UnitVarianceGrid:
    """The grid without shorter bandwidths of kernels with features."""
    limits = [
        shortest
        if axis.field == "bandwidth" and grid.kernel.summands[axis.summands[0]].has_finite_basis
        else 0.0
        for axis in grid.axes
    ]
    axes = tuple(
        replace(axis, lowest=max(axis.lowest, float(np.log(limit)))) if limit > 0.0 else axis
        for axis, limit in zip(grid.axes, limits, strict=True)
    )
    return replace(grid, axes=axes)


def population_grid(kernel: Kernel, span: float, gap: float) -> UnitVarianceGrid:
    """The grid of a kernel of total variance 1.

    Its axes are open bandwidths, and variance ratios of summands whose amplitude is learned. `span`
    and `gap` are the typical span of a person's instants and the typical gap between them.
    """
    summands = kernel.summands
    axes = [
        replace(
            _bandwidth_axis(k, summand, span, max(gap, span / POPULATION_WAVES)),
            finest=POPULATION_FINEST,
        )
        for k, summand in enumerate(summands)
        if isinstance(summand, BandwidthKernel) and isinstance(summand.bandwidth, str)
    ]
    shared = [k for k, summand in enumerate(summands) if summand.amplitude == "learn"]
    last = shared[-1] if shared else -1
    fixed = as_kernel(
        tuple(
            _scaled(summand, summand.weight) if k == last else summand
            for k, summand in enumerate(summands)
        )
    )
    axes += [Axis((k,), "amplitude", 0.0, SHARE_SD, -3.0, finest=0.3) for k in shared[:-1]]
    _bounded(axes)
    open_bands = [summands[k] for axis in axes if axis.field == "bandwidth" for k in axis.summands]
    others = [summand for summand in summands if not any(summand is band for band in open_bands)]
    static = (
        bool(open_bands)
        and all(_may_be_constant(summand) for summand in open_bands)
        and all(summand.constant for summand in others)
    )
    return UnitVarianceGrid(fixed, tuple(axes), static, POPULATION_HOPELESS)


def curve_grids(
    kernel: Kernel, span: float, gap: float, unit_prior: bool, spread: float
) -> tuple[HyperGrid, ...]:
    """The grid of a single curve's kernel for each smoothness that it may have: `curve_grid`."""
    return tuple(
        curve_grid(one, span, gap, unit_prior, spread) for one, _ in smoothness_choices(kernel)
    )


def curve_grid(
    kernel: Kernel, span: float, gap: float, unit_prior: bool, spread: float
) -> HyperGrid:
    """The grid of a kernel for a single curve.

    Parameters
    ----------
    kernel : Kernel
        Each open bandwidth is an axis; all learned amplitudes together are one.
    span : float
        Time from the first to the last instant.
    gap : float
        Typical distance of neighbouring instants: no data can show a shorter bandwidth.
    unit_prior : bool
        Whether amplitudes that are not given are 1; else they are learned.
    spread : float
        Centre of the amplitude's prior.
    """
    summands = kernel.summands
    axes = [
        _bandwidth_axis(k, summand, span, gap)
        for k, summand in enumerate(summands)
        if isinstance(summand, BandwidthKernel) and isinstance(summand.bandwidth, str)
    ]
    scaled = tuple(
        k
        for k, summand in enumerate(summands)
        if not isinstance(summand, AnswerKernel)
        and (summand.amplitude == "learn" or (summand.amplitude is None and not unit_prior))
    )
    if scaled:
        axes.append(
            Axis(scaled, "amplitude", float(np.log(spread)), AMPLITUDE_SD, -np.inf, finest=0.2)
        )
    axes += [
        _size_axis(k, spread)
        for k, summand in enumerate(summands)
        if isinstance(summand, AnswerKernel) and summand.amplitude == "learn"
    ]
    _bounded(axes)
    open_bands = [summands[k] for axis in axes if axis.field == "bandwidth" for k in axis.summands]
    return HyperGrid(
        kernel,
        tuple(axes),
        bool(open_bands) and all(_may_be_constant(summand) for summand in open_bands),
    )


def _size_axis(k: int, spread: float) -> Axis:
    """The axis of the size of noise, or of effects, relative to the spread of the curve."""
    return Axis(
        (k,),
        "amplitude",
        float(np.log(SIZE_CENTRE * spread)),
        SIZE_SD,
        float(np.log(LEAST_SIZE * spread)),
        finest=0.25,
    )


def _bounded(axes: list[Axis]) -> None:
    """Refuse more hyper-parameters to be learned than a grid can have axes."""
    if len(axes) > MOST_AXES:
        raise InputError(
            f"kernel: {len(axes)} bandwidths and amplitudes are to be learned, whose every "
            f"combination would be tried; "
            f"{MOST_AXES} at most, so give numbers for the others"
        )


def _may_be_constant(summand: BaseKernel) -> bool:
    """Whether a summand becomes constant with an infinite bandwidth."""
    return (
        isinstance(summand, BandwidthKernel)
        and replace(summand, bandwidth=np.inf).constant
        and not isinstance(summand, Periodic)
    )


def _bandwidth_axis(k: int, summand: BandwidthKernel, span: float, gap: float) -> Axis:
    """The axis of an open bandwidth."""
    if isinstance(summand, Periodic):  # its bandwidth is relative to the period
        return Axis((k,), "bandwidth", 0.0, BANDWIDTH_SD, float(np.log(0.1)))
    if span <= 0:
        raise InputError(
            "bandwidth: no time scale to learn, since all times (of every curve) are equal; "
            "give a number, or inf for a constant"
        )
    # the cost of features is quadratic in span / bandwidth
    shortest = max(gap, span / MOST_WAVES) if summand.has_finite_basis else gap
    return Axis(
        (k,),
        "bandwidth",
        float(np.log(BANDWIDTH_CENTRE * span)),
        BANDWIDTH_SD,
        float(np.log(shortest)),
    )


def first_nodes(space: HyperGrid) -> list[Array]:
    """The first nodes of every axis, before any evaluation.

    They are evenly spaced in prior sds around the centre, wider where there are several axes.
    """
    steps = np.arange(-2.5, 2.6, 0.5) if len(space.axes) == 1 else np.arange(-2.0, 1.1, 1.0)
    return [
        np.unique(np.maximum(steps * axis.sd + axis.centre, axis.lowest)) for axis in space.axes
    ]


def nodes_near(space: HyperGrid, points: Sequence[tuple[float, ...]]) -> list[Array]:
    """Nodes of every axis at some points, and one stride beyond them."""
    out = []
    for axis, values in zip(space.axes, zip(*points, strict=True), strict=True):
        stride = 0.5 * axis.sd
        ends = [min(values) - stride, *values, max(values) + stride]
        out.append(np.unique(np.maximum(ends, axis.lowest)))
    return out


def refine_grid(
    space: HyperGrid,
    evaluate: Callable[[list[Kernel]], list[R]],
    weigh: Callable[[list[R], Array], Array],
    pick: bool = False,
    nodes: list[Array] | None = None,
    rounds: int = ROUNDS,
) -> list[GridPoint[R]]:
    """Evaluate the priors of a grid, extending and refining it where the weight is.

    Axes are first extended at ends that have weight, farther in each round. Nodes are added between
    others only once the best point is inside.

    Parameters
    ----------
    space : HyperGrid
    evaluate : callable
        From a list of kernels to a list of results.
    weigh : callable
        From results and log prior masses to weights, which sum to 1.
    pick : bool
        Refine to the finest step around the best point, and nowhere else.
    nodes : list of array, optional
        First nodes of every axis. Default: spread over the prior.
    rounds : int
        Largest number of rounds.
    """
    nodes = first_nodes(space) if nodes is None else nodes
    known: dict[Kernel, R] = {}
    for growth in range(rounds):
        found = _evaluate_all(space, nodes, known, evaluate, weigh)
        shares = weigh([e.result for e in found], np.array([e.log_mass for e in found]))
        grown = [
            _grow(axis, values, _marginal(found, shares, d, values), pick, growth)
            for d, (axis, values) in enumerate(zip(space.axes, nodes, strict=True))
        ]
        if all(new.size == old.size for new, old in zip(grown, nodes, strict=True)):
            break
        if (
            len(space.axes) > 2
            and len(known) + len(_promising(space, grown, known, weigh)) > MOST_POINTS
        ):
            break  # a finer grid of so many axes would take hours
        nodes = grown
    return found


def refine_grids(
    spaces: Sequence[HyperGrid],
    evaluate: Callable[[list[Kernel]], list[R]],
    weigh: Callable[[list[R], Array], Array],
    pick: bool = False,
) -> list[GridPoint[R]]:
    """Evaluate the priors of several grids, as likely as each other before the data.

    Parameters are those of `refine_grid`.
    """
    share = -float(np.log(len(spaces)))
    return [
        replace(point, log_mass=point.log_mass + share)
        for space in spaces
        for point in refine_grid(space, evaluate, weigh, pick)
    ]


def _evaluate_all(
    space: HyperGrid,
    nodes: list[Array],
    known: dict[Kernel, R],
    evaluate: Callable[[list[Kernel]], list[R]],
    weigh: Callable[[list[R], Array], Array],
) -> list[GridPoint[R]]:
    """Evaluate every promising grid point and the constant curves, with their prior masses.

    Only those that are not in `known` are computed, and added to it.
    """
    keep = STATIC_PRIOR if space.static else 0.0
    masses = [_log_masses(axis, values) for axis, values in zip(space.axes, nodes, strict=True)]
    constants = [
        dict.fromkeys(mass, 0.0) if axis.field == "bandwidth" else mass
        for axis, mass in zip(space.axes, masses, strict=True)
    ]
    as_list: list[tuple[Kernel, float, tuple[float, ...] | None]] = [
        (space.at(p), float(np.log1p(-keep)) + _log_mass(masses, p), p)
        for p in _promising(space, nodes, known, weigh)
    ]
    as_list += [
        (space.constant(p), float(np.log(keep)) + _log_mass(constants, p), None)
        for p in _constant_points(space, nodes)
    ]
    missing = [kernel for kernel, _, _ in as_list if kernel not in known]
    known.update(zip(missing, evaluate(missing), strict=True))
    return [GridPoint(kernel, known[kernel], mass, point) for kernel, mass, point in as_list]


def _constant_points(space: HyperGrid, nodes: list[Array]) -> list[tuple[float, ...]]:
    """Grid points of the constant curves: one for each choice of the other hyper-parameters."""
    if not space.static:
        return []
    return list(
        product(
            *[
                values[:1] if axis.field == "bandwidth" else values
                for values, axis in zip(nodes, space.axes, strict=True)
            ]
        )
    )


def _promising(
    space: HyperGrid,
    nodes: list[Array],
    known: dict[Kernel, R],
    weigh: Callable[[list[R], Array], Array],
) -> list[tuple[float, ...]]:
    """Grid points whose nearest evaluated point has enough weight relative to the best.

    All points are promising on a grid with one axis.
    """
    points = list(product(*nodes))
    if not known or len(space.axes) == 1:
        return points
    seen = [p for p in points if space.at(p) in known]
    weights = weigh([known[space.at(p)] for p in seen], np.zeros(len(seen)))
    scale = np.array([axis.sd for axis in space.axes])
    evaluated = np.array(seen) / scale
    nearest = [
        weights[((evaluated - np.array(p) / scale) ** 2).sum(axis=1).argmin()] for p in points
    ]
    return [p for p, w in zip(points, nearest, strict=True) if w > space.hopeless * weights.max()]


def _log_masses(axis: Axis, values: Array) -> dict[float, float]:
    """Log prior mass of each cell of an axis, by its node."""
    logs = np.log(_cells(values))
    return {
        float(value): axis.log_prior(value) + float(log)
        for value, log in zip(values, logs, strict=True)
    }


def _log_mass(masses: list[dict[float, float]], point: tuple[float, ...]) -> float:
    """Log prior mass of a grid point's cell."""
    return sum(mass[value] for mass, value in zip(masses, point, strict=True))


def _cells(values: Array) -> Array:
    """Widths of the cells around the nodes of an axis."""
    if values.size == 1:
        return np.ones(1)
    gaps = np.diff(values)
    return 0.5 * (np.append(gaps, gaps[-1]) + np.insert(gaps, 0, gaps[0]))


def _marginal(found: list[GridPoint[R]], shares: Array, axis: int, values: Array) -> Array:
    """Weight of each node of one axis, without the constant curves."""
    on_grid = [
        (e.point[axis], share)
        for e, share in zip(found, shares, strict=True)
        if e.point is not None
    ]
    at = np.searchsorted(values, [value for value, _ in on_grid])
    weight = np.bincount(at, weights=[share for _, share in on_grid], minlength=values.size).astype(
        np.float64
    )
    return weight / max(float(weight.sum()), 1e-300)


def _grow(axis: Axis, values: Array, share: Array, pick: bool, growth: int) -> Array:
    """Nodes of one axis for the next round.

    New ones lie beyond an end that has weight, else between nodes that have nearly all of it.
    """
    if values.size == 1:
        return values
    best = int(share.argmax())
    stride = 0.5 * axis.sd
    out = [stride * k for k in range(1, 2 + growth)]
    new: list[float] = []
    if share[0] > NEGLIGIBLE and values[0] > axis.lowest:
        new += [max(axis.lowest, values[0] - away) for away in out]
    # long bandwidths have little prior mass, and the constant curve is their limit
    if (
        share[-1] > (NEGLIGIBLE if axis.field == "amplitude" else 0.3)
        and values[-1] < axis.centre + 8 * axis.sd
    ):
        new += [values[-1] + away for away in out]
    if new:
        return np.unique(np.append(values, new))
    gaps = np.diff(values)
    for k, gap in enumerate(gaps):
        at_best = best in (k, k + 1)
        if pick:
            is_split = at_best and gap > axis.finest
        else:
            is_coarse = share[best] > 0.5 or gap > 0.6 * axis.sd
            is_split = (
                is_coarse
                and (at_best or max(share[k], share[k + 1]) > NEGLIGIBLE)
                and gap > 1.5 * axis.finest
            )
        if is_split:
            new.append(float(0.5 * (values[k] + values[k + 1])))
    return np.unique(np.append(values, new))


# --- weight at the shortest bandwidth -----------------------------------------------------------


@dataclass(frozen=True)
class EdgeRule:
    """When to warn of weight at the shortest bandwidth, and what such weight means."""

    threshold: float  # fraction of the weight above which to warn
    whose: str
    meaning: str
    at_limit_only: bool = False  # only where the shortest bandwidth that times can show was tried


# One curve: weights are a posterior over bandwidths, and more than half of it is at the edge.
CURVE_EDGE = EdgeRule(
    0.5,
    "the weight",
    "the curve changes faster than that, or emissions nearby depend on each other",
)
# A population: weights are fractions of the people. Abilities of a part of them that change within
# the shortest gap are misfit or local dependence, so less weight is enough.
POPULATION_EDGE = EdgeRule(
    0.3,
    "the population's weight",
    "that is rather misfit or answers that depend on each other than change of ability",
    at_limit_only=True,
)


def warn_at_shortest_bandwidth(
    grid: HyperGrid, kernels: Sequence[Kernel], weights: Array, rule: EdgeRule
) -> None:
    """Warn if much weight lies at the shortest bandwidth that was tried.

    Parameters
    ----------
    grid : HyperGrid
        The hyper-parameters that are learned.
    kernels : sequence of Kernel
        The kernels that were tried, with numbers in place of open hyper-parameters.
    weights : array (n_kernels,)
        Their weights, which sum to 1.
    rule : EdgeRule
        `CURVE_EDGE` or `POPULATION_EDGE`.
    """
    for axis in grid.axes:
        summand = axis.summands[0]
        periodic = isinstance(grid.kernel.summands[summand], Periodic)
        if axis.field != "bandwidth" or periodic:  # a periodic kernel's is relative to its period
            continue
        bandwidths = np.array(
            [kernel.summands[summand].value_of("bandwidth") for kernel in kernels]
        )
        shortest = bandwidths.min()
        if rule.at_limit_only and np.log(shortest) > axis.lowest + 1e-9:
            continue
        at_edge = float(weights[bandwidths <= 1.0001 * shortest].sum())
        if at_edge > rule.threshold:
            warn_user(
                f"bandwidth: {at_edge:.0%} of {rule.whose} lies at {shortest:.3g}, the shortest "
                f"that these times can show; {rule.meaning}",
                BandwidthWarning,
            )
