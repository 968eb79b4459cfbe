"""The scale of ability.

Its zero and unit while items are learned, and the scale that is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array
from dynaesti.model import FEW_LOCATION_SD, FEW_LOG_SCALE_SD, ItemBank


@dataclass(frozen=True)
class Scale:
    """Reported abilities: gain · θ + shift, with θ in the items' metric."""

    name: str
    gain: float
    shift: float


def reported_scale(bank: ItemBank, wanted: str) -> Scale:
    """The scale to report: of unit variance ("abilities") or of geometric-mean slope 1 ("items").

    Anchored items keep their own metric whatever is wanted.
    """
    ability_scale = bank.ability_scale
    anchored = ability_scale.free_scale and any(not block.free.all() for block in bank.blocks)
    if ability_scale.free_location or anchored or ability_scale.stated:
        return Scale("anchors", ability_scale.unit, ability_scale.zero)
    if wanted == "abilities":
        return Scale(
            "abilities", 1 / ability_scale.scale, -ability_scale.location / ability_scale.scale
        )
    tables = [block.reported(block.u) for block in bank.blocks]
    slopes = [table["a"] for table in tables if "a" in table]
    if not slopes:
        return Scale(
            "abilities", 1 / ability_scale.scale, -ability_scale.location / ability_scale.scale
        )
    size = np.abs(np.concatenate(slopes))
    return Scale("items", float(np.exp(np.log(np.maximum(size, 1e-6)).mean())), 0.0)


FARTHEST_UNIT = 0.3  # step of the abilities' zero, in their sd, and of the log of their unit


@dataclass(frozen=True)
class Point:
    """Items, and what a look at everyone with them tells."""

    bank: ItemBank
    objective: float
    log_evidence: float
    unit: Array  # how abilities ask to be shifted and stretched
    farthest: float
    n_unconverged: int
    grid: Array


def scale_step(point: Point, plain: ItemBank, weights: Array) -> ItemBank:
    """The bank after an M-step, with a Newton step of its own for the abilities' zero and unit.

    EM crawls along these two, which move all items together: what the M-step moved along them is
    taken back. The information that people hold about them and the one that the M-step goes by are
    both too large, so the smaller one serves.
    """
    bank = point.bank
    ability_scale = np.array(
        [point.bank.ability_scale.free_location, point.bank.ability_scale.free_scale]
    )
    # priors shrink thousands of thin slopes a little at every step and must not decide the
    # unit: the evidence does
    if bank.learns_hyperpriors:
        held = (
            ability_scale
            / np.array([FEW_LOCATION_SD, FEW_LOG_SCALE_SD]) ** 2
            * bank.ability_scale.few
        )
        pull = point.unit[0] - held * np.array(
            [bank.ability_scale.location, bank.ability_scale.log_scale]
        )
        location, log_scale = np.clip(
            pull / (point.unit[1] + held + 1e-9), -FARTHEST_UNIT, FARTHEST_UNIT
        )
        return plain.rescaled(
            float(location), float(log_scale) - (plain.log_slope() - bank.log_slope())
        )
    step = 1e-2
    moved = [
        [bank.rescaled(sign * step * move[0], sign * step * move[1]) for sign in (1, -1)]
        for move in ((1, 0), (0, 1))
    ]
    along = np.stack(
        [(ahead.to_vector() - behind.to_vector()) / (2 * step) for ahead, behind in moved], axis=1
    )
    gram = (weights[:, None] * along).T @ (weights[:, None] * along)
    free = np.flatnonzero(np.diagonal(gram) > 0)
    if not free.size:
        return plain  # nothing moves with the unit: it is anchored
    logs = np.array([[ahead.log_prior(), behind.log_prior()] for ahead, behind in moved])
    slope = point.unit[0] + (logs[:, 0] - logs[:, 1]) / (2 * step)
    size = point.unit[1] + np.maximum((2 * bank.log_prior() - logs.sum(axis=1)) / step**2, 0.0)
    size = np.where(ability_scale, size, np.minimum(size, np.diagonal(gram)))
    wanted = np.clip(slope / (size + 1e-9), -FARTHEST_UNIT, FARTHEST_UNIT)[free]
    went = np.linalg.solve(
        gram[np.ix_(free, free)],
        along[:, free].T @ (weights**2 * (plain.to_vector() - bank.to_vector())),
    )
    return plain.from_vector(plain.to_vector() + along[:, free] @ (wanted - went))
