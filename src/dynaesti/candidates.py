"""The finite list of priors that learning averages over, grown and refined where the evidence lies.

Each hyper-parameter to be learned is an axis of log values with a weak normal prior; the list is their product. Rounds of evaluation add
nodes beyond an end that still carries weight and between nodes where the weight is, so that the best value never sits at an
edge unnoticed. A constant curve (bandwidth ∞) stands beside the grid with a small prior probability of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Generic, TypeVar

import numpy as np

from dynaesti.arrays import Array
from dynaesti.errors import InputError
from dynaesti.priors.kernels import Banded, Kernel, Leaf, Periodic, as_kernel

R = TypeVar("R")

BANDWIDTH_CENTRE, BANDWIDTH_SD = 0.3, 0.7  # of log h, in spans
AMPLITUDE_SD = 1.0
STATIC_PRIOR = 0.05
NEGLIGIBLE = 1e-2  # weight at an end of an axis that may be ignored
HOPELESS = 12.0  # a neighbour's log evidence this far behind the best excuses a grid point from evaluation
ROUNDS = 8


@dataclass(frozen=True)
class Axis:
    """One hyper-parameter: log values, their normal prior, how fine and how far the grid may go."""

    leaves: tuple[int, ...]
    field: str
    centre: float
    sd: float
    lowest: float
    finest: float = 0.05

    def log_prior(self, value: float) -> float:
        """Log density of the normal prior."""
        return float(-0.5 * ((value - self.centre) / self.sd) ** 2 - np.log(self.sd * np.sqrt(2 * np.pi)))


@dataclass(frozen=True)
class Evaluated(Generic[R]):
    """A prior, its result, and its log weight in the average (prior mass + criterion)."""

    kernel: Kernel
    result: R
    log_weight: float


@dataclass(frozen=True)
class Space:
    """All priors that a kernel with open hyper-parameters stands for."""

    kernel: Kernel
    axes: tuple[Axis, ...]
    static: bool  # a constant curve is one of them

    def at(self, point: tuple[float, ...]) -> Kernel:
        """The kernel with numbers in place of its open hyper-parameters."""
        leaves = list(self.kernel.leaves)
        for axis, value in zip(self.axes, point, strict=True):
            for k in axis.leaves:
                leaves[k] = replace(leaves[k], **{axis.field: float(np.exp(value))})
        return as_kernel(tuple(leaves))

    def constant(self, point: tuple[float, ...]) -> Kernel:
        """The same with every open bandwidth infinite."""
        leaves = list(self.at(point).leaves)
        for axis in self.axes:
            if axis.field == "bandwidth":
                for k in axis.leaves:
                    leaves[k] = replace(leaves[k], **{axis.field: np.inf})
        return as_kernel(tuple(leaves))


def open_space(kernel: Kernel, span: float, gap: float, unit_prior: bool, spread: float) -> Space:
    """The axes of a kernel: each open bandwidth, and one common amplitude where amplitudes are open.

    `gap` is the typical distance of neighbouring instants: no data can show a shorter bandwidth. `spread` centres the amplitude.
    """
    leaves = kernel.leaves
    axes = [_bandwidth_axis(k, leaf, span, gap) for k, leaf in enumerate(leaves)
            if isinstance(leaf, Banded) and isinstance(leaf.bandwidth, str)]
    scaled = tuple(k for k, leaf in enumerate(leaves) if leaf.amplitude == "learn" or (leaf.amplitude is None and not unit_prior))
    if scaled:
        axes.append(Axis(scaled, "amplitude", float(np.log(spread)), AMPLITUDE_SD, -np.inf, finest=0.2))
    open_bands = [leaves[k] for axis in axes if axis.field == "bandwidth" for k in axis.leaves]
    return Space(kernel, tuple(axes), bool(open_bands) and all(hasattr(leaf, "constant") and _may_be_constant(leaf) for leaf in open_bands))


def _may_be_constant(leaf: Leaf) -> bool:
    return isinstance(leaf, Banded) and replace(leaf, bandwidth=np.inf).constant and not isinstance(leaf, Periodic)


def _bandwidth_axis(k: int, leaf: Banded, span: float, gap: float) -> Axis:
    if isinstance(leaf, Periodic):  # counted within the period
        return Axis((k,), "bandwidth", 0.0, BANDWIDTH_SD, float(np.log(0.1)))
    if span <= 0:
        raise InputError("bandwidth: all times are equal, so there is no time scale to learn; give a number, or inf for a constant")
    return Axis((k,), "bandwidth", float(np.log(BANDWIDTH_CENTRE * span)), BANDWIDTH_SD, float(np.log(gap)))


def first_nodes(space: Space) -> list[Array]:
    """The grid before the data have spoken: two and a half prior sds either side of the centre."""
    steps = np.arange(-2.5, 2.6, 0.5) if len(space.axes) == 1 else np.arange(-3.0, 2.1, 1.0)
    nodes = [steps * axis.sd + axis.centre for axis in space.axes]
    return [np.unique(np.maximum(values, axis.lowest)) for values, axis in zip(nodes, space.axes, strict=True)]


def grid(space: Space) -> tuple[list[Kernel], Array]:
    """The first grid as it stands, with log prior masses: for many curves, which share it."""
    nodes = first_nodes(space)
    keep = STATIC_PRIOR if space.static else 0.0
    points, others = list(product(*nodes)), _constant_points(space, nodes)
    masses = [np.log1p(-keep) + _log_mass(space, nodes, p) for p in points]
    masses += [np.log(keep) + _log_mass(space, nodes, p, skip="bandwidth") for p in others]
    return [space.at(p) for p in points] + [space.constant(p) for p in others], np.array(masses)


def _constant_points(space: Space, nodes: list[Array]) -> list[tuple[float, ...]]:
    """Grid points of the constant curves: the bandwidths do not count, so one of each serves."""
    if not space.static:
        return []
    return list(product(*[values[:1] if axis.field == "bandwidth" else values for values, axis in zip(nodes, space.axes, strict=True)]))


def explore(space: Space, evaluate: Callable[[list[Kernel]], list[R]], score: Callable[[R], float],
            use_prior: bool) -> list[Evaluated[R]]:
    """Evaluate the space's priors, growing and refining the grid.

    With `use_prior` the log weights are prior mass × score; without it they are scores alone, for picking the best.
    """
    nodes = first_nodes(space)
    results: dict[tuple[float, ...], R] = {}
    constants: dict[tuple[float, ...], R] = {}
    for _ in range(ROUNDS):
        points, others = _promising(space, nodes, results, score), _constant_points(space, nodes)
        missing, missing_others = [p for p in points if p not in results], [p for p in others if p not in constants]
        fresh = evaluate([space.at(p) for p in missing] + [space.constant(p) for p in missing_others])
        results.update(zip(missing, fresh, strict=False))
        constants.update(zip(missing_others, fresh[len(missing):], strict=True))
        weights = np.array([score(results[p]) + (_log_mass(space, nodes, p) if use_prior else 0.0) for p in points])
        shares = np.exp(weights - np.logaddexp.reduce(weights))
        grown = [_grow(axis, values, _marginal(points, shares, d, values), use_prior)
                 for d, (axis, values) in enumerate(zip(space.axes, nodes, strict=True))]
        if all(new.size == old.size for new, old in zip(grown, nodes, strict=True)):
            break
        nodes = grown
    keep = STATIC_PRIOR if space.static else 0.0
    found = [Evaluated(space.at(p), results[p], float(w) + (np.log1p(-keep) if use_prior else 0.0))
             for p, w in zip(points, weights, strict=True)]
    found += [Evaluated(space.constant(p), constants[p], score(constants[p]) +
                        (np.log(keep) + _log_mass(space, nodes, p, skip="bandwidth") if use_prior else 0.0)) for p in others]
    return found


def _log_mass(space: Space, nodes: list[Array], point: tuple[float, ...], skip: str = "") -> float:
    """Log prior mass of a grid point's cell."""
    total = 0.0
    for axis, values, value in zip(space.axes, nodes, point, strict=True):
        if axis.field != skip:
            total += axis.log_prior(value) + float(np.log(_cells(values)[np.searchsorted(values, value)]))
    return total


def _cells(values: Array) -> Array:
    """Widths of the cells around the nodes of an axis."""
    if values.size == 1:
        return np.ones(1)
    gaps = np.diff(values)
    return 0.5 * (np.append(gaps, gaps[-1]) + np.insert(gaps, 0, gaps[0]))


def _marginal(points: list[tuple[float, ...]], shares: Array, axis: int, values: Array) -> Array:
    """Weight of each node of one axis."""
    at = np.searchsorted(values, [p[axis] for p in points])
    return np.bincount(at, weights=shares, minlength=values.size).astype(np.float64)


def _promising(space: Space, nodes: list[Array], results: dict[tuple[float, ...], R],
               score: Callable[[R], float]) -> list[tuple[float, ...]]:
    """Grid points whose nearest evaluated point is not hopelessly behind the best."""
    points = list(product(*nodes))
    if not results or len(space.axes) == 1:
        return points
    known = np.array(list(results)) / [axis.sd for axis in space.axes]
    scores = np.array([score(result) for result in results.values()])
    near = [scores[((known - np.array(p) / [axis.sd for axis in space.axes]) ** 2).sum(axis=1).argmin()] for p in points]
    return [p for p, s in zip(points, near, strict=True) if p in results or s > scores.max() - HOPELESS]


def _grow(axis: Axis, values: Array, share: Array, use_prior: bool) -> Array:
    """New nodes: one beyond an end that carries weight, and midpoints while few nodes carry nearly all of it."""
    if values.size == 1:
        return values
    gap = float(np.diff(values).min())
    best = int(share.argmax())
    new = list(values)
    if share[0] > NEGLIGIBLE and values[0] > axis.lowest:
        new.append(max(axis.lowest, values[0] - gap))
    if share[-1] > (NEGLIGIBLE if use_prior and axis.field == "amplitude" else 0.3):
        new.append(values[-1] + gap)
    wanted = 0.5 if use_prior else 0.999  # averaging needs a few nodes within the bulk; picking needs the top itself
    if share[best] > wanted or gap > 0.6 * axis.sd or (not use_prior and gap > axis.finest):
        for left, right, weight in zip(values[:-1], values[1:], np.maximum(share[:-1], share[1:]), strict=True):
            near = best in (int(np.searchsorted(values, left)), int(np.searchsorted(values, right)))
            if right - left > axis.finest * 1.5 and (near or (use_prior and weight > 0.01)):
                new.append(0.5 * (left + right))
    return np.unique(np.array(new))
