"""The item bank: all items of a fit in blocks of one model each.

Their rows on the ability grid, and the M-step from counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, concatenate_rows, run_in_threads
from dynaesti.model.items.base import ItemModel
from dynaesti.model.items.continuous import GaussianItem
from dynaesti.model.items.custom import CustomItemModel
from dynaesti.model.items.priors import (
    ItemPrior,
    estimate_hyperprior,
    fixed_prior,
    has_location_and_slope,
    pooled_location_prior,
)

BOUND = 1e-3  # a parameter so near its bound stands there
NEWTON_STEPS = 10
SETTLED = (
    1e-3  # largest step of an item at rest: the next one, Newton's, would be about the square of it
)
BATCH = 1_000_000  # slopes at a time
HYPER_ITEMS = 20  # fewer items than this do not learn their priors from each other
# sds of the weak priors of a small population's mean and log sd, in the items' unit
FEW_LOCATION_SD = 2.0
FEW_LOG_SCALE_SD = 0.5
WIDEST = float(
    np.log(50.0)
)  # log spread of abilities, where it is free: the same for items of slope 1
# slope: the finest grid of abilities resolves no more, so what is not kept from running away
# stops there
STEEPEST = 50.0


@dataclass(frozen=True)
class AbilityScale:
    """Abilities in the items' metric: θ = location + scale · z, with z of unit variance.

    The location is free where some item's difficulty is anchored, the scale where some item's slope
    is (Rasch, anchors), unless the population is stated. Anchors on a reporting scale (500 ± 100)
    are counted anew to compute with: theirs is zero + unit · θ.
    """

    location: float = 0.0
    log_scale: float = 0.0
    free_location: bool = False
    free_scale: bool = False
    zero: float = 0.0
    unit: float = 1.0
    stated: bool = False  # whether the user told the population's mean and sd
    few: bool = False  # whether the people are too few to tell their spread by themselves

    def log_prior(self) -> float:
        """Of what is free, where people are few.

        Without it one person's spread would be learned as 0, and their band with it.
        """
        if not self.few:
            return 0.0
        return -0.5 * (
            self.free_location * (self.location / FEW_LOCATION_SD) ** 2
            + self.free_scale * (self.log_scale / FEW_LOG_SCALE_SD) ** 2
        )

    @property
    def scale(self) -> float:
        """Standard deviation of the abilities."""
        return float(np.exp(self.log_scale))

    @property
    def at_bound(self) -> bool:
        """Whether the spread of abilities would grow on if it could."""
        return self.free_scale and self.log_scale >= WIDEST - BOUND

    def theta(self, z: Array) -> Array:
        """Grid of abilities in the items' metric."""
        return self.location + self.scale * z


@dataclass(frozen=True)
class ItemBlock:
    """Items of one model with equally many categories, and where their rows begin."""

    model: ItemModel
    size: int
    items: Ints
    first_row: int
    u: Array  # (items, parameters), unconstrained
    free: Bools
    # (items, size): the responses that the categories stand for; of measurements their zero
    # and unit
    values: Array
    prior_mean: Array  # (parameters,)
    prior_sd: Array  # infinite where there is no prior
    weak: bool = False  # whether the priors are the weak ones, the items' places pooled
    given: ItemPrior | None = None  # the priors of other items, which these are to join

    @property
    def depth(self) -> int:
        """Rows an item has."""
        return self.model.row_count(self.size)

    @property
    def end_row(self) -> int:
        """One past the block's last row."""
        return self.first_row + self.depth * len(self.items)

    @cached_property
    def item_prior(self) -> ItemPrior:
        """The items' prior, as it is for items here."""
        priors = self.model.priors(self.size)
        if self.given is not None:
            return self.given
        if self.weak and has_location_and_slope(priors):
            return pooled_location_prior(self.u, self.free, priors)
        return fixed_prior(self.u, self.free, self.prior_mean, self.prior_sd)

    def laplace_log_volume(self, curvature: Array) -> float:
        """Log of the room that the answers leave the free parameters of what their priors gave them
        (by Laplace's method).
        """
        scaled = self.prior_sd[:, None] * curvature * self.prior_sd
        both = self.free[:, :, None] & self.free[:, None, :]
        return float(
            -0.5 * np.linalg.slogdet(np.where(both, scaled, np.eye(self.prior_sd.size)))[1].sum()
        )

    def reported(self, u: Array, gain: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        """Reported parameters of all items at u, with abilities counted as gain · θ + shift."""
        return self.model.to_response_unit(self.model.constrain(u, gain, shift), self.values)

    def log_likelihood(self, theta: Array) -> Array:
        """All rows of the block, flat: (rows, points)."""
        return concatenate_rows(
            [
                self.model.log_likelihood(self.u[part], theta).reshape(-1, theta.size)
                for part in self._batches(theta.size)
            ]
        )

    def log_likelihood_gradient(self, theta: Array) -> Array:
        """Derivatives of the rows by the item's own parameters: (rows, parameters, points)."""
        parts = [
            self.model.log_likelihood_gradient(self.u[part], theta).transpose(0, 2, 1, 3)
            for part in self._batches(theta.size)
        ]
        return np.concatenate([part.reshape(-1, self.u.shape[1], theta.size) for part in parts])

    def bounds(self, u: Array) -> tuple[Array, Array]:
        """How far parameters (items, parameters) may run away.

        Where slopes are flat, places may lie far off.
        """
        units = [prior.role for prior in self.model.priors(self.size)]
        if (
            isinstance(self.model, GaussianItem) and not self.values.shape[1]
        ):  # in a unit that is not known
            return np.full(u.shape, -np.inf), np.full(u.shape, np.inf)
        far = np.full(u.shape, self.model.parameter_bound)
        if "log slope" in units:
            flat = np.exp(-u[:, [unit == "log slope" for unit in units]].min(axis=1, initial=0.0))
            far[:, [unit == "location" for unit in units]] *= flat[:, None]
        high = far.copy()
        high[:, [unit == "log slope" for unit in units]] = np.log(STEEPEST)
        low = -far
        names = self.model.parameter_names(self.size)
        for name, floor in self.model.floors.items():
            low[:, names.index(name)] = floor
        return low, high

    def clipped(self, u: Array, which: Any = slice(None)) -> Array:
        """Parameters of some of the items kept from running away.

        Those that are given stay as they are.
        """
        return np.where(self.free[which], np.clip(u, *self.bounds(u)), u)

    @property
    def at_bound(self) -> Bools:
        """Items that would run on if they could.

        Their answers leave a parameter without a finite estimate.
        """
        low, high = self.bounds(self.u)
        return np.asarray(
            (self.free & ((self.u <= low + BOUND) | (self.u >= high - BOUND))).any(axis=1)
        )

    def _batches(self, points: int) -> list[slice]:
        size = max(1, BATCH // (self.u.shape[1] * self.depth * points))
        return [slice(a, a + size) for a in range(0, len(self.u), size)]

    def improved(
        self, counts: Array, theta: Array, threads: int | None = None
    ) -> tuple[ItemBlock, Array]:
        """The block at the maximum of expected log-likelihood + log prior, and each item's
        curvature there.
        """
        shaped = counts.reshape(len(self.u), self.depth, -1)
        if self.model.shared:
            return _improve_shared(self, shaped, theta)
        u = self.u.copy()
        curvature = np.empty((len(self.u), self.u.shape[1], self.u.shape[1]))

        def run(part: slice) -> None:
            u[part], curvature[part] = _newton(self, part, shaped[part], theta)

        run_in_threads(run, self._batches(theta.size), threads)
        return replace(self, u=u), curvature


def _evaluated(
    block: ItemBlock, which: Ints, u: Array, counts: Array, theta: Array
) -> tuple[Array, Array, Array]:
    """Expected log-likelihood + log prior of some of a block's items at u, its gradient and its
    curvature.
    """
    value, gradient, curvature = block.model.value_gradient_curvature(u, theta, counts)
    log_prior, pull, bend = block.item_prior.value_gradient_curvature(
        u, block.item_prior.slope[which]
    )
    return value + log_prior, gradient + pull, curvature + bend


def _newton(block: ItemBlock, part: slice, counts: Array, theta: Array) -> tuple[Array, Array]:
    """Damped Newton steps for a batch of items; those at rest drop out."""
    u = block.u[part].copy()
    free = block.free[part]
    which = np.arange(len(block.u))[part]
    value, gradient, curvature = _evaluated(block, which, u, counts, theta)
    active = np.arange(len(u))
    kept = curvature.copy()
    for _ in range(NEWTON_STEPS):
        step = _solve_free(curvature, gradient, free[active])
        largest = np.abs(step).max(axis=1, initial=0.0)
        small = largest < SETTLED
        if small.any():  # the last step needs no look at where it leads
            u[active[small]] = block.clipped(u[active[small]] + step[small], which[active[small]])
            active = active[~small]
            value = value[~small]
            gradient = gradient[~small]
            curvature = curvature[~small]
            step = step[~small]
            largest = largest[~small]
        if active.size == 0:
            break
        step *= np.minimum(1.0, block.model.max_newton_step / np.maximum(largest, 1e-300))[:, None]
        here = value, gradient, curvature
        trial, value, gradient, curvature = _halved(
            block, which[active], u[active], step, here, counts[active], theta
        )
        u[active] = trial
        kept[active] = curvature
    return u, kept


def _halved(
    block: ItemBlock,
    which: Ints,
    u: Array,
    step: Array,
    here: tuple[Array, Array, Array],
    counts: Array,
    theta: Array,
) -> tuple[Array, Array, Array, Array]:
    """Each item after its step, which is halved until it does not make things worse.

    Value, gradient and curvature there.
    """
    trial = block.clipped(u + step, which)
    todo = np.arange(len(u))
    value = here[0]
    best, slope, bend = (part.copy() for part in here)
    for _ in range(12):
        found, rise, bent = _evaluated(block, which[todo], trial[todo], counts[todo], theta)
        fine = found >= value[todo] - 1e-12 * np.abs(value[todo])
        best[todo[fine]] = found[fine]
        slope[todo[fine]] = rise[fine]
        bend[todo[fine]] = bent[fine]
        todo = todo[~fine]
        if todo.size == 0:
            return trial, best, slope, bend
        step[todo] *= 0.5
        trial[todo] = block.clipped(u[todo] + step[todo], which[todo])
    trial[todo] = u[todo]
    return trial, best, slope, bend


def _solve_free(curvature: Array, gradient: Array, free: Bools) -> Array:
    """Newton's step in the free parameters.

    Directions without positive curvature are taken by their size, so it climbs.
    """
    both = free[:, :, None] & free[:, None, :]
    inner = np.where(both, curvature, 0.0)
    values, vectors = np.linalg.eigh(inner)
    floor = 1e-8 * np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-8)
    along = np.einsum("ipq,ip->iq", vectors, np.where(free, gradient, 0.0)) / np.maximum(
        np.abs(values), floor
    )
    return np.where(free, np.einsum("ipq,iq->ip", vectors, along), 0.0)


def _improve_shared(block: ItemBlock, counts: Array, theta: Array) -> tuple[ItemBlock, Array]:
    """Rating scales: steps u = own difficulty + thresholds shared by all items, which sum to zero."""
    count, steps = block.u.shape
    every = np.arange(count)
    own = block.u.mean(axis=1)
    tau = (block.u - block.u.mean(axis=1, keepdims=True)).mean(axis=0)
    basis = np.linalg.svd(np.ones((1, steps)))[2][1:].T  # of thresholds that sum to zero
    value = -np.inf
    curvature = np.empty((count, steps, steps))
    for _ in range(NEWTON_STEPS):
        u = own[:, None] + tau
        _, gradient, curvature = _evaluated(block, every, u, counts, theta)
        h_own = curvature.sum(axis=(1, 2))
        cross = curvature.sum(axis=1) @ basis
        g_own = gradient.sum(axis=1)
        g_tau = basis.T @ gradient.sum(axis=0)
        schur = basis.T @ curvature.sum(axis=0) @ basis - (cross.T / h_own) @ cross
        d_tau = (
            np.linalg.solve(schur, g_tau - cross.T @ (g_own / h_own)) if steps > 1 else np.zeros(0)
        )
        d_own = (g_own - cross @ d_tau) / h_own
        length = min(
            1.0,
            block.model.max_newton_step
            / max(np.abs(d_own).max(), np.abs(d_tau).max(initial=0.0), 1e-300),
        )
        while True:
            trial_own = own + length * d_own
            trial_tau = tau + length * basis @ d_tau
            found = float(
                _evaluated(block, every, trial_own[:, None] + trial_tau, counts, theta)[0].sum()
            )
            if found >= value - 1e-10 * abs(value) or length < 1e-4:
                break
            length *= 0.5
        moved = max(np.abs(trial_own - own).max(), np.abs(trial_tau - tau).max())
        own = trial_own
        tau = trial_tau
        value = found
        if moved < SETTLED:
            break
    return replace(block, u=own[:, None] + tau), curvature


class MStepResult(NamedTuple):
    """What an M-step finds."""

    bank: ItemBank
    # root of the information about each free parameter: weighted moves are in standard errors
    weights: Array
    laplace_log_volume: (
        float  # of all items under priors that are learned from them, see `Block.log_room`; else 0
    )


@dataclass(frozen=True)
class ItemBank:
    """All items. Rows of a block's k-th item begin at first_row + k · depth."""

    blocks: tuple[ItemBlock, ...]
    ability_scale: AbilityScale
    priors: str | None = (
        # "weak", "sparse" (items have few answers: learned as hierarchical ones are),
        # "hierarchical" or None
        "weak"
    )

    @cached_property
    def row_count(self) -> int:
        """Rows of all items."""
        return self.blocks[-1].end_row

    @cached_property
    def item_count(self) -> int:
        """Number of items."""
        return sum(len(block.items) for block in self.blocks)

    @property
    def learns_hyperpriors(self) -> bool:
        """Whether priors bear on so many thin items that they must be kept from deciding the unit
        of ability.
        """
        return self.priors in ("sparse", "hierarchical")

    def log_likelihood(self, z: Array) -> Array:
        """Basis rows of all items at abilities z: (rows, points)."""
        theta = self.ability_scale.theta(z)
        return concatenate_rows([block.log_likelihood(theta) for block in self.blocks])

    def log_prior(self) -> float:
        """Log prior of all items, and of the population where it is a small one."""
        return (
            sum(block.item_prior.log_density for block in self.blocks)
            + self.ability_scale.log_prior()
        )

    def improved(self, counts: Array, z: Array, threads: int | None = None) -> MStepResult:
        """The M-step: every item, then the priors' own parameters, from expected counts.

        The metric is not for it: see `rescaled`.
        """
        seen = np.flatnonzero(np.abs(counts).max(axis=0) > 1e-14)  # nobody is at the grid's ends
        counts = np.ascontiguousarray(counts[:, seen[0] : seen[-1] + 1])
        z = z[seen[0] : seen[-1] + 1]
        theta = self.ability_scale.theta(z)
        moved = [
            block.improved(counts[block.first_row : block.end_row], theta, threads)
            for block in self.blocks
        ]
        blocks = [block for block, _ in moved]
        if self.learns_hyperpriors:
            blocks = [_with_learned_prior(block, curvature) for block, curvature in moved]
        room = (
            sum(
                block.laplace_log_volume(curvature)
                for block, (_, curvature) in zip(self.blocks, moved, strict=True)
            )
            if self.learns_hyperpriors
            else 0.0
        )
        improved = replace(self, blocks=tuple(blocks))
        return MStepResult(improved, improved._weights([curvature for _, curvature in moved]), room)

    # --- as one vector, for acceleration
    # --------------------------------------------------------------

    @property
    def free_count(self) -> int:
        """Free parameters of the items and the metric."""
        return (
            sum(int(block.free.sum()) for block in self.blocks)
            + self.ability_scale.free_location
            + self.ability_scale.free_scale
        )

    def to_vector(self) -> Array:
        """Everything that an EM step moves, as one vector.

        Free parameters, the metric, the priors' own where they are learned.
        """
        parts = [block.u[block.free] for block in self.blocks]
        if self.learns_hyperpriors:
            parts += [
                np.concatenate([block.prior_mean, np.log(block.prior_sd)]) for block in self.blocks
            ]
        ability_scale = self.ability_scale
        return np.concatenate(
            [
                *parts,
                [ability_scale.location] * ability_scale.free_location,
                [ability_scale.log_scale] * ability_scale.free_scale,
            ]
        )

    def _weights(self, curvatures: Sequence[Array]) -> Array:
        """Root of the information about each entry of the vector."""
        parts = [
            np.sqrt(np.maximum(np.diagonal(curvature, axis1=1, axis2=2), 0.0))[block.free]
            for block, curvature in zip(self.blocks, curvatures, strict=True)
        ]
        if self.learns_hyperpriors:
            parts += [
                np.sqrt(len(block.items))
                * np.concatenate([1 / block.prior_sd, np.full(block.prior_sd.size, np.sqrt(2.0))])
                for block in self.blocks
            ]
        world = [np.sqrt(self.row_count)] * (
            self.ability_scale.free_location + self.ability_scale.free_scale
        )
        return np.concatenate([*parts, world])

    def from_vector(self, vector: Array) -> ItemBank:
        """The bank with another vector."""
        blocks = []
        used = 0
        for block in self.blocks:
            u = block.u.copy()
            size = int(block.free.sum())
            u[block.free] = vector[used : used + size]
            blocks.append(replace(block, u=block.clipped(u)))
            used += size
        if self.learns_hyperpriors:
            for k, block in enumerate(blocks):
                width = block.prior_mean.size
                mean = vector[used : used + width]
                log_sd = vector[used + width : used + 2 * width]
                blocks[k] = replace(block, prior_mean=mean, prior_sd=np.exp(log_sd))
                used += 2 * width
        ability_scale = self.ability_scale
        if ability_scale.free_location:
            ability_scale = replace(ability_scale, location=float(vector[used]))
            used = used + 1
        if ability_scale.free_scale:
            ability_scale = replace(ability_scale, log_scale=min(float(vector[used]), WIDEST))
        return replace(self, blocks=tuple(blocks), ability_scale=ability_scale)

    def rescaled(self, location: float, log_scale: float) -> ItemBank:
        """The bank at abilities location + scale · z, told of z.

        By the metric where it is free, else by the items.

        Items whose own zero or unit is anchored stay. Priors that are learned from the items move
        with them.
        """
        ability_scale = self.ability_scale
        if ability_scale.stated:
            return self
        gain = (
            1.0
            if ability_scale.free_scale or ability_scale.free_location
            else float(np.exp(-log_scale))
        )
        shift = 0.0 if ability_scale.free_location else -gain * ability_scale.scale * location
        blocks = self.blocks
        if (gain, shift) != (1.0, 0.0) and not any(
            isinstance(block.model, CustomItemModel) for block in blocks
        ):
            blocks = tuple(
                _rescaled(block, gain, shift, self.learns_hyperpriors) for block in blocks
            )
        moved = replace(
            ability_scale,
            location=ability_scale.location
            + ability_scale.scale * location * ability_scale.free_location,
            log_scale=min(
                ability_scale.log_scale + log_scale * ability_scale.free_scale,
                max(WIDEST, ability_scale.log_scale),
            ),
        )
        return replace(self, blocks=blocks, ability_scale=moved)

    def warm_started(self, earlier: ItemBank) -> ItemBank:
        """The same items at an earlier bank's parameters, as far as it has them under the same
        model with equally many categories.
        """
        blocks = []
        for block in self.blocks:
            u = block.u.copy()
            free = block.free.copy()
            mean = block.prior_mean
            sd = block.prior_sd
            for old in earlier.blocks:
                if (old.model, old.size) != (block.model, block.size):
                    continue
                _, here, there = np.intersect1d(block.items, old.items, return_indices=True)
                u[here] = old.u[there]
                free[here] = old.free[there]
                mean = old.prior_mean
                sd = old.prior_sd
                if isinstance(
                    block.model, GaussianItem
                ):  # measurements are counted from the mean of all, which has moved
                    told = {name: column[there] for name, column in old.reported(old.u).items()}
                    u[here] = block.model.unconstrain(
                        block.model.from_response_unit(told, block.values[here]), block.size
                    )
            blocks.append(replace(block, u=u, free=free, prior_mean=mean, prior_sd=sd))
        return replace(self, blocks=tuple(blocks), ability_scale=earlier.ability_scale)

    def reflected(self) -> ItemBank:
        """The same items on the scale θ → −θ."""
        blocks = tuple(
            replace(
                block,
                u=block.model.reflected(block.u),
                prior_mean=block.model.reflected(block.prior_mean[None])[0],
            )
            for block in self.blocks
        )
        return replace(
            self,
            blocks=blocks,
            ability_scale=replace(self.ability_scale, location=-self.ability_scale.location),
        )

    def log_likelihood_gradient(self, z: Array) -> Array:
        """Derivatives of all rows by their item's parameters, padded to the widest item.

        (rows, parameters, points).
        """
        theta = self.ability_scale.theta(z)
        width = max(block.u.shape[1] for block in self.blocks)
        out = np.zeros((self.row_count, width, z.size))
        for block in self.blocks:
            out[block.first_row : block.end_row, : block.u.shape[1]] = (
                block.log_likelihood_gradient(theta)
            )
        return out

    def item_of_row(self) -> Ints:
        """The item that each row belongs to."""
        return np.concatenate([np.repeat(block.items, block.depth) for block in self.blocks])

    def index_in_blocks(self) -> tuple[Ints, Ints]:
        """Block and place within it, for every item."""
        block_of = np.empty(self.item_count, dtype=np.int64)
        place = np.empty(self.item_count, dtype=np.int64)
        for k, block in enumerate(self.blocks):
            block_of[block.items] = k
            place[block.items] = np.arange(len(block.items))
        return block_of, place

    def log_slope(self) -> float:
        """Log of the root mean square slope: what the items say of the unit of ability."""
        slopes = np.concatenate([block.model.slope_sign(block.u) for block in self.blocks])
        return float(0.5 * np.log(np.mean(slopes**2) + 1e-300))

    def steepness(self) -> float:
        """The steepest predictor per unit of z: how fine a grid the rows need."""
        z = np.array([-1e-4, 1e-4])
        steep = float(
            max(
                (
                    np.abs(np.diff(block.log_likelihood(self.ability_scale.theta(z)), axis=1)).max()
                    for block in self.blocks
                ),
                default=1.0,
            )
            / 2e-4
        )
        own = [
            block.model.steepness(block.u) * self.ability_scale.scale
            for block in self.blocks
            if isinstance(block.model, CustomItemModel)
        ]
        return max(
            [steep, *own]
        )  # of formulas that are not ours nothing is known but what they return

    def check_custom_rows(self, rows: Array, z: Array) -> None:
        """Refuse models of the user's own whose rows on a grid cannot be computed with."""
        for block in self.blocks:
            if isinstance(block.model, CustomItemModel):
                mine = rows[block.first_row : block.end_row].reshape(
                    len(block.items), block.depth, -1
                )
                block.model.check_rows(mine, self.ability_scale.theta(z))


def _rescaled(block: ItemBlock, gain: float, shift: float, learned: bool) -> ItemBlock:
    """A block's items for abilities counted anew, and its learned priors, whose spreads follow by
    the derivative at the centre.
    """

    def moved(u: Array) -> Array:
        return block.model.unconstrain(block.model.constrain(u, gain, shift), block.size)

    if not learned or len(block.items) < HYPER_ITEMS or not np.isfinite(block.prior_sd).all():
        return replace(block, u=moved(block.u))
    step = 1e-4 * np.eye(block.prior_mean.size)
    centre = moved(block.prior_mean[None])[0]
    stretch = (
        np.abs(np.diagonal(moved(block.prior_mean + step) - moved(block.prior_mean - step))) / 2e-4
    )
    unit = np.array([prior.role != "" for prior in block.model.priors(block.size)])
    return replace(
        block,
        u=moved(block.u),
        prior_mean=np.where(unit, centre, block.prior_mean),
        prior_sd=np.where(unit, block.prior_sd * stretch, block.prior_sd),
    )


def _with_learned_prior(block: ItemBlock, curvature: Array) -> ItemBlock:
    """Centres and spreads of the priors from the block's own items, where these are enough."""
    if len(block.items) < HYPER_ITEMS or not np.isfinite(block.prior_sd).all():
        return block
    own = np.diagonal(
        np.linalg.inv(curvature + 1e-9 * np.eye(curvature.shape[1])), axis1=1, axis2=2
    )
    mean, sd = estimate_hyperprior(block.u, own, block.model.priors(block.size))
    return replace(block, prior_mean=mean, prior_sd=sd)
