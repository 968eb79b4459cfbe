"""The item bank: all items of a fit, in blocks of one model each.

It holds the items' parameters and the scale of ability, and gives log-likelihoods on a grid of
abilities. The M-step, which finds parameters from expected counts, is in `estimation.m_step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynaesti.core import Array, Bools, Ints, concatenate_rows
from dynaesti.model.items.base import ItemModel
from dynaesti.model.items.priors import (
    HELD_SPREAD_WEIGHT,
    SPREAD_WEIGHT,
    ItemPrior,
    fixed_prior,
    has_location_and_slope,
    pooled_location_prior,
)

BOUND_TOLERANCE = 1e-3  # a parameter so near its bound is at the bound
BATCH = 1_000_000  # entries of log-likelihood gradients computed at a time
CHUNK = 2000  # items at a time, where rows of all are computed
HYPER_ITEMS = 20  # fewer items than this do not learn their priors from each other
# sds of the weak priors of a small population's mean and log sd, in the items' unit
FEW_LOCATION_SD = 2.0
FEW_LOG_SCALE_SD = 0.5
# The same for any population's log sd: answers that have nothing to do with ability (coins) would
# have EM creep towards a spread of 0 for ever. Of 100 people it moves the log sd by 0.001.
LOG_SCALE_SD = 2.0
# largest log sd of abilities, where it is free: the same bound for items of slope 1
MAX_LOG_SCALE = float(np.log(50.0))
# slope: the finest grid of abilities resolves no more, so a slope that would run away stops there
STEEPEST = 50.0


@dataclass(frozen=True)
class AbilityScale:
    """Zero and unit of ability while items are learned: θ = location + scale · z.

    z has unit variance. The location is free where some item's difficulty is anchored, the scale
    where some item's slope is (Rasch models, anchors), unless the user states the population.
    Anchors on a reporting scale (500 ± 100) are transformed before computing: their scale is
    zero + unit · θ.

    Parameters
    ----------
    location : float
        Mean of abilities in the items' unit.
    log_scale : float
        Log standard deviation of abilities in the items' unit.
    free_location, free_scale : bool
        Whether each is estimated.
    zero, unit : float
        The anchors' scale is zero + unit · θ.
    stated : bool
        Whether the user has stated the population's mean and standard deviation.
    few : bool
        Whether the people are too few to show their spread by themselves.
    has_prior : bool
        Whether a free spread has a weak prior.
    """

    location: float = 0.0
    log_scale: float = 0.0
    free_location: bool = False
    free_scale: bool = False
    zero: float = 0.0
    unit: float = 1.0
    stated: bool = False
    few: bool = False
    has_prior: bool = False

    @property
    def prior_precision(self) -> Array:
        """Precision of the priors of a free location and log scale, (2,); 0 where there is none.

        Without them the spread of a single person, or of people who guess, would be learned as 0,
        and the band with it.
        """
        of_location = 1 / FEW_LOCATION_SD**2 if self.few else 0.0
        sd_of_scale = FEW_LOG_SCALE_SD if self.few else LOG_SCALE_SD
        of_scale = 1 / sd_of_scale**2 if self.few or self.has_prior else 0.0
        return np.array([of_location * self.free_location, of_scale * self.free_scale])

    def log_prior(self) -> float:
        """Log prior of the free location and scale."""
        place = np.array([self.location, self.log_scale])
        return float(-0.5 * self.prior_precision @ place**2)

    @property
    def scale(self) -> float:
        """Standard deviation of the abilities."""
        return float(np.exp(self.log_scale))

    @property
    def at_bound(self) -> bool:
        """Whether the spread of abilities is free and at its upper bound."""
        return self.free_scale and self.log_scale >= MAX_LOG_SCALE - BOUND_TOLERANCE

    def theta(self, z: Array) -> Array:
        """Abilities in the items' unit from standardised abilities z."""
        return self.location + self.scale * z


@dataclass(frozen=True)
class ItemBlock:
    """Items of one model with equally many categories.

    Parameters
    ----------
    model : ItemModel
        Their model.
    size : int
        Number of categories, 0 where there are none.
    items : int array (n_items,)
        Numbers of the items in the bank.
    first_row : int
        Row of the bank at which the block begins.
    u : array (n_items, n_parameters)
        Unconstrained parameters.
    free : bool array (n_items, n_parameters)
        Parameters that are estimated; the others are given.
    values : array (n_items, size)
        Responses that the categories stand for; for measurements the zero and the unit of each
        item's responses, (n_items, 2).
    prior_mean, prior_sd : array (n_parameters,)
        Normal prior of the parameters; the sd is infinite where there is no prior.
    weak : bool
        Whether the priors are the weak ones, with locations pooled.
    learns_spread : bool
        Whether the spread of pooled locations is learned, as their centre is.
    given : ItemPrior, optional
        Priors of other items, which these are to join.
    """

    model: ItemModel
    size: int
    items: Ints
    first_row: int
    u: Array
    free: Bools
    values: Array
    prior_mean: Array
    prior_sd: Array
    weak: bool = False
    learns_spread: bool = True
    given: ItemPrior | None = None

    @property
    def depth(self) -> int:
        """Number of log-likelihood rows of an item."""
        return self.model.row_count(self.size)

    @property
    def end_row(self) -> int:
        """One past the block's last row."""
        return self.first_row + self.depth * len(self.items)

    @cached_property
    def item_prior(self) -> ItemPrior:
        """Prior of the items at their present parameters."""
        priors = self.model.priors(self.size)
        if self.given is not None:
            return self.given
        if self.weak and has_location_and_slope(priors):
            weight = SPREAD_WEIGHT if self.learns_spread else HELD_SPREAD_WEIGHT
            return pooled_location_prior(self.u, self.free, priors, weight)
        return fixed_prior(self.u, self.free, self.prior_mean, self.prior_sd)

    def laplace_log_volume(self, curvature: Array) -> float:
        """Laplace log volume of the free parameters' posterior relative to their prior.

        −½ Σ log det(sd · curvature · sd), with `curvature` (n_items, n_parameters, n_parameters)
        that of the log posterior.
        """
        scaled = self.prior_sd[:, None] * curvature * self.prior_sd
        both = self.free[:, :, None] & self.free[:, None, :]
        return float(
            -0.5 * np.linalg.slogdet(np.where(both, scaled, np.eye(self.prior_sd.size)))[1].sum()
        )

    def reported(self, u: Array, gain: float = 1.0, shift: float = 0.0) -> dict[str, Array]:
        """Reported parameters of all items at u, with abilities expressed as gain · θ + shift."""
        return self.model.to_response_unit(self.model.constrain(u, gain, shift), self.values)

    def log_likelihood(self, theta: Array) -> Array:
        """Log-likelihoods of all items at abilities theta (n_points,): (n_rows, n_points)."""
        return concatenate_rows(
            [
                self.model.log_likelihood(self.u[part], theta).reshape(-1, theta.size)
                for part in self.batches(theta.size)
            ]
        )

    def log_likelihood_gradient(self, theta: Array) -> Array:
        """Derivatives of the rows by their own item's parameters.

        (n_rows, n_parameters, n_points).
        """
        parts = [
            self.model.log_likelihood_gradient(self.u[part], theta).transpose(0, 2, 1, 3)
            for part in self.batches(theta.size)
        ]
        return np.concatenate([part.reshape(-1, self.u.shape[1], theta.size) for part in parts])

    def bounds(self, u: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of parameters u, (n_items, n_parameters) each.

        Where slopes are flat, locations may lie far off: their bounds are divided by the slope.
        """
        if self.model.has_response_unit and not self.values.shape[1]:
            # an older file: the unit of the responses is not known
            return np.full(u.shape, -np.inf), np.full(u.shape, np.inf)
        roles = [prior.role for prior in self.model.priors(self.size)]
        is_slope = [role == "log slope" for role in roles]
        limit = np.full(u.shape, self.model.parameter_bound)
        if any(is_slope):
            flatness = np.exp(-u[:, is_slope].min(axis=1, initial=0.0))
            limit[:, [role == "location" for role in roles]] *= flatness[:, None]
        high = limit.copy()
        high[:, is_slope] = np.log(STEEPEST)
        low = -limit
        names = self.model.parameter_names(self.size)
        for name, floor in self.model.floors.items():
            low[:, names.index(name)] = floor
        return low, high

    def clipped(self, u: Array, which: Any = slice(None)) -> Array:
        """Parameters u of the items `which`, with the free ones clipped to their bounds."""
        return np.where(self.free[which], np.clip(u, *self.bounds(u)), u)

    @property
    def at_bound(self) -> Bools:
        """Items (n_items,) with a free parameter at its bound.

        Their responses leave that parameter without a finite estimate.
        """
        low, high = self.bounds(self.u)
        return np.asarray(
            (
                self.free & ((self.u <= low + BOUND_TOLERANCE) | (self.u >= high - BOUND_TOLERANCE))
            ).any(axis=1)
        )

    def batches(self, points: int) -> list[slice]:
        """Slices of items whose gradients on so many points fit into memory."""
        """Slices of items whose log-likelihood gradients at so many points fit into `BATCH`."""
        size = max(1, BATCH // (self.u.shape[1] * self.depth * points))
        return [slice(a, a + size) for a in range(0, len(self.u), size)]


@dataclass(frozen=True)
class ItemBank:
    """All items of a fit. The rows of a block's k-th item begin at first_row + k · depth.

    Parameters
    ----------
    blocks : tuple of ItemBlock
        The items.
    ability_scale : AbilityScale
        Zero and unit of ability.
    priors : {"weak", "held", "sparse", "hierarchical", None}
        The items' priors: weak ones; weak ones whose spread is not learned, because items have few
        responses and there are few people; learned from the items because these have few
        responses; learned because the user asked for it; none.
    """

    blocks: tuple[ItemBlock, ...]
    ability_scale: AbilityScale
    priors: str | None = "weak"

    @cached_property
    def row_count(self) -> int:
        """Number of log-likelihood rows of all items."""
        return self.blocks[-1].end_row

    @cached_property
    def item_count(self) -> int:
        """Number of items."""
        return sum(len(block.items) for block in self.blocks)

    @property
    def learns_hyperpriors(self) -> bool:
        """Whether the priors' means and spreads are learned from the items.

        With many items of few responses each, fixed priors would decide the unit of ability.
        """
        return self.priors in ("sparse", "hierarchical")

    def log_likelihood(self, z: Array) -> Array:
        """Log-likelihoods of all items at standardised abilities z: (n_rows, n_points)."""
        theta = self.ability_scale.theta(z)
        return concatenate_rows([block.log_likelihood(theta) for block in self.blocks])

    def log_prior(self) -> float:
        """Log prior of all items, plus that of the ability scale where people are few."""
        return (
            sum(block.item_prior.log_density for block in self.blocks)
            + self.ability_scale.log_prior()
        )

    # --- as one vector, for acceleration
    # --------------------------------------------------------------

    @property
    def free_count(self) -> int:
        """Number of free parameters of the items and the ability scale."""
        return (
            sum(int(block.free.sum()) for block in self.blocks)
            + self.ability_scale.free_location
            + self.ability_scale.free_scale
        )

    def to_vector(self) -> Array:
        """Everything that an EM iteration changes, as one vector.

        Free parameters of the items, means and log sds of priors where they are learned, and the
        free part of the ability scale.
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

    def vector_weights(self, curvatures: Sequence[Array]) -> Array:
        """Square root of the information about each entry of `to_vector`.

        `curvatures` are those of each block's items, (n_items, n_parameters, n_parameters).
        """
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
        scale_weights = [np.sqrt(self.row_count)] * (
            self.ability_scale.free_location + self.ability_scale.free_scale
        )
        return np.concatenate([*parts, scale_weights])

    def from_vector(self, vector: Array) -> ItemBank:
        """The bank with the parameters of `vector`, clipped to their bounds; see `to_vector`."""
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
            used += 1
        if ability_scale.free_scale:
            ability_scale = replace(
                ability_scale, log_scale=min(float(vector[used]), MAX_LOG_SCALE)
            )
        return replace(self, blocks=tuple(blocks), ability_scale=ability_scale)

    def rescaled(self, location: float, log_scale: float) -> ItemBank:
        """The bank after the change of variable z → location + scale · z of abilities.

        The ability scale takes the change up where it is free; elsewhere the items' parameters do.
        Items that are anchored stay. Priors that are learned from the items change with them.
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
        if (gain, shift) != (1.0, 0.0) and all(block.model.can_be_rescaled for block in blocks):
            blocks = tuple(
                _rescaled(block, gain, shift, self.learns_hyperpriors) for block in blocks
            )
        moved = replace(
            ability_scale,
            location=ability_scale.location
            + ability_scale.scale * location * ability_scale.free_location,
            log_scale=min(
                ability_scale.log_scale + log_scale * ability_scale.free_scale,
                max(MAX_LOG_SCALE, ability_scale.log_scale),
            ),
        )
        return replace(self, blocks=blocks, ability_scale=moved)

    def warm_started(self, earlier: ItemBank) -> ItemBank:
        """The bank at the parameters, priors and ability scale of an earlier bank.

        Items that the earlier bank lacks, or has under another model or with another number of
        categories, keep their parameters.
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
                if block.model.has_response_unit:
                    # measurements are standardised by the mean and sd of all, which have changed
                    table = {name: column[there] for name, column in old.reported(old.u).items()}
                    u[here] = block.model.unconstrain(
                        block.model.from_response_unit(table, block.values[here]), block.size
                    )
            blocks.append(replace(block, u=u, free=free, prior_mean=mean, prior_sd=sd))
        return replace(self, blocks=tuple(blocks), ability_scale=earlier.ability_scale)

    def reflected(self) -> ItemBank:
        """The bank on the scale θ → −θ; all models must be reflectable."""
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
        """Derivatives of all rows by their own item's parameters at standardised abilities z.

        (n_rows, n_parameters, n_points), padded with 0 to the item with most parameters.
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
        """Number of the item that each row belongs to: (n_rows,)."""
        return np.concatenate([np.repeat(block.items, block.depth) for block in self.blocks])

    def index_in_blocks(self) -> tuple[Ints, Ints]:
        """For every item the number of its block and its index in the block, (n_items,) each."""
        block_of = np.empty(self.item_count, dtype=np.int64)
        index = np.empty(self.item_count, dtype=np.int64)
        for k, block in enumerate(self.blocks):
            block_of[block.items] = k
            index[block.items] = np.arange(len(block.items))
        return block_of, index

    def log_slope(self) -> float:
        """Log of the root mean square slope, by which items show the unit of ability."""
        slopes = np.concatenate([block.model.slope_sign(block.u) for block in self.blocks])
        return float(0.5 * np.log(np.mean(slopes**2) + 1e-300))

    def steepness(self) -> float:
        """Fastest change of any log-likelihood per unit of z, which decides how fine a grid is.

        At z = 0 for built-in models, whose predictors are lines; everywhere for users' models, of
        which nothing is known but what they return.
        """
        z = np.array([-1e-4, 1e-4])
        theta = self.ability_scale.theta(z)
        at_zero = float(
            max(
                (
                    np.abs(np.diff(block.log_likelihood(theta), axis=1)).max()
                    for block in self.blocks
                ),
                default=1.0,
            )
            / 2e-4
        )
        everywhere = [
            float(block.model.steepness(block.u).max(initial=0.0)) * self.ability_scale.scale
            for block in self.blocks
            if block.model.needs_row_check
        ]
        return max([at_zero, *everywhere])

    @cached_property
    def item_steepness(self) -> Array:
        """Fastest change of each item's log-likelihoods per unit of z, (n_items,).

        0 for amounts, whose rows are no likelihoods by themselves.
        """
        out = np.zeros(self.item_count)
        for block in self.blocks:
            if block.model.has_value_rows:
                for part in np.array_split(np.arange(len(block.u)), len(block.u) // CHUNK + 1):
                    out[block.items[part]] = block.model.steepness(block.u[part])
        return out * self.ability_scale.scale

    def check_custom_rows(self, rows: Array, z: Array) -> None:
        """Refuse users' models whose rows (n_rows, n_points) at z cannot be computed with."""
        theta = self.ability_scale.theta(z)
        for block in self.blocks:
            if block.model.needs_row_check:
                own = rows[block.first_row : block.end_row]
                block.model.check_rows(own.reshape(len(block.items), block.depth, -1), theta)


def _rescaled(block: ItemBlock, gain: float, shift: float, learned: bool) -> ItemBlock:
    """The block for abilities expressed as gain · θ + shift.

    Learned priors change with the items, their spreads by the derivative at the centre.
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
    depends = np.array([prior.role != "" for prior in block.model.priors(block.size)])
    return replace(
        block,
        u=moved(block.u),
        prior_mean=np.where(depends, centre, block.prior_mean),
        prior_sd=np.where(depends, block.prior_sd * stretch, block.prior_sd),
    )
