"""The scale of ability: its zero and unit while items are learned, and the scale that is reported."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array
from dynaesti.model import FEW_PLACE, FEW_SPREAD, Bank


@dataclass(frozen=True)
class Scale:
    """Reported abilities: gain · θ + shift, with θ in the items' metric."""

    name: str
    gain: float
    shift: float


def reported_scale(bank: Bank, wanted: str) -> Scale:
    """The scale to report: of unit variance ("abilities") or of geometric-mean slope 1 ("items"). Anchored items keep their own metric whatever is wanted."""
    metric = bank.metric
    anchored = metric.free_scale and any(not block.free.all() for block in bank.blocks)
    if metric.free_location or anchored or metric.stated:
        return Scale("anchors", metric.unit, metric.zero)
    if wanted == "abilities":
        return Scale("abilities", 1 / metric.scale, -metric.location / metric.scale)
    tables = [block.told(block.u) for block in bank.blocks]
    slopes = [table["a"] for table in tables if "a" in table]
    if not slopes:
        return Scale("abilities", 1 / metric.scale, -metric.location / metric.scale)
    size = np.abs(np.concatenate(slopes))
    return Scale("items", float(np.exp(np.log(np.maximum(size, 1e-6)).mean())), 0.0)


FARTHEST_UNIT = 0.3  # step of the abilities' zero, in their sd, and of the log of their unit


@dataclass(frozen=True)
class Point:
    """Items, and what a look at everyone with them tells."""

    bank: Bank
    objective: float
    log_evidence: float
    unit: Array  # how abilities ask to be shifted and stretched
    farthest: float
    unsettled: int
    grid: Array


def unit_step(point: Point, plain: Bank, weights: Array) -> Bank:
    """The bank after an M-step, with a Newton step of its own for the abilities' zero and unit.

    EM crawls along these two, which move all items together: what the M-step moved along them is taken back. The information that people
    hold about them and the one that the M-step goes by are both too large, so the smaller one serves.
    """
    bank, metric = (
        point.bank,
        np.array([point.bank.metric.free_location, point.bank.metric.free_scale]),
    )
    if bank.needs_unit:  # priors shrink thousands of thin slopes a little at every step and must not decide the unit: the evidence does
        held = metric / np.array([FEW_PLACE, FEW_SPREAD]) ** 2 * bank.metric.few
        pull = point.unit[0] - held * np.array([bank.metric.location, bank.metric.log_scale])
        location, log_scale = np.clip(
            pull / (point.unit[1] + held + 1e-9), -FARTHEST_UNIT, FARTHEST_UNIT
        )
        return plain.remetred(
            float(location), float(log_scale) - (plain.log_slope() - bank.log_slope())
        )
    step = 1e-2
    moved = [
        [bank.remetred(sign * step * move[0], sign * step * move[1]) for sign in (1, -1)]
        for move in ((1, 0), (0, 1))
    ]
    along = np.stack(
        [(ahead.vector() - behind.vector()) / (2 * step) for ahead, behind in moved], axis=1
    )
    gram = (weights[:, None] * along).T @ (weights[:, None] * along)
    free = np.flatnonzero(np.diagonal(gram) > 0)
    if not free.size:
        return plain  # nothing moves with the unit: it is anchored
    logs = np.array([[ahead.log_prior(), behind.log_prior()] for ahead, behind in moved])
    slope = point.unit[0] + (logs[:, 0] - logs[:, 1]) / (2 * step)
    size = point.unit[1] + np.maximum((2 * bank.log_prior() - logs.sum(axis=1)) / step**2, 0.0)
    size = np.where(metric, size, np.minimum(size, np.diagonal(gram)))
    wanted = np.clip(slope / (size + 1e-9), -FARTHEST_UNIT, FARTHEST_UNIT)[free]
    went = np.linalg.solve(
        gram[np.ix_(free, free)], along[:, free].T @ (weights**2 * (plain.vector() - bank.vector()))
    )
    return plain.at(plain.vector() + along[:, free] @ (wanted - went))
