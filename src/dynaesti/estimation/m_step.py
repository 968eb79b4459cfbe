"""The M-step: items at the maximum of expected log-likelihood plus log prior.

Newton steps for batches of items, given the expected counts of the E-step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dynaesti.core import Array, Bools, Ints, run_in_threads
from dynaesti.model import HYPER_ITEMS, ItemBank, ItemBlock, estimate_hyperprior

NEWTON_STEPS = 10
# largest step of an item that has converged: the next Newton step would be about its square
NEWTON_TOLERANCE = 1e-3
MIN_STEP_LENGTH = 1e-4  # of a step that is halved until the objective does not decrease


class MStepResult(NamedTuple):
    """What an M-step finds.

    Parameters
    ----------
    bank : ItemBank
        The bank with new parameters.
    weights : array, of the length of `ItemBank.to_vector`
        Square root of the information about each entry: weighted changes are in standard errors.
    laplace_log_volume : float
        Sum of `ItemBlock.laplace_log_volume` where priors are learned from the items, else 0.
    """

    bank: ItemBank
    weights: Array
    laplace_log_volume: float


def maximise_items(
    bank: ItemBank, counts: Array, grid: Array, threads: int | None = None
) -> MStepResult:
    """Every item at its maximum, then the parameters of learned priors, from expected counts.

    The ability scale stays as it is, see `estimation.scale`.

    Parameters
    ----------
    counts : array (n_rows, n_points)
        Expected counts.
    grid : array (n_points,)
        Standardised abilities.
    threads : int, optional
        Number of threads. Default: all.

    Returns
    -------
    MStepResult
        New bank, weights of its vector and Laplace log volume.
    """
    counts, grid = without_empty_ends(counts, grid)
    theta = bank.ability_scale.theta(grid)
    moved = [
        update_block(block, counts[block.first_row : block.end_row], theta, threads)
        for block in bank.blocks
    ]
    blocks = [block for block, _ in moved]
    if bank.learns_hyperpriors:
        blocks = [_with_learned_prior(block, curvature) for block, curvature in moved]
    log_volume = 0.0
    if bank.learns_hyperpriors:
        pairs = zip(bank.blocks, moved, strict=True)
        log_volume = sum(block.laplace_log_volume(curvature) for block, (_, curvature) in pairs)
    improved = replace(bank, blocks=tuple(blocks))
    return MStepResult(
        improved, improved.vector_weights([curvature for _, curvature in moved]), log_volume
    )


def without_empty_ends(counts: Array, grid: Array) -> tuple[Array, Array]:
    """Counts and grid without the ends of the grid that nobody reaches."""
    seen = np.flatnonzero(np.abs(counts).max(axis=0) > 1e-14)
    there = slice(seen[0], seen[-1] + 1)
    return np.ascontiguousarray(counts[:, there]), grid[there]


def update_block(
    block: ItemBlock, counts: Array, theta: Array, threads: int | None = None
) -> tuple[ItemBlock, Array]:
    """The block at the maximum of expected log-likelihood plus log prior.

    Parameters
    ----------
    counts : array (n_rows, n_points)
        Expected counts of the block's rows.
    theta : array (n_points,)
        Abilities.
    threads : int, optional
        Number of threads. Default: all.

    Returns
    -------
    block : ItemBlock
        The block with new parameters.
    curvature : array (n_items, n_parameters, n_parameters)
        Curvature of the objective at the last point that was evaluated.
    """
    shaped = counts.reshape(len(block.u), block.depth, -1)
    if block.model.shares_thresholds:
        return _update_shared(block, shaped, theta)
    u = block.u.copy()
    curvature = np.empty((len(block.u), block.u.shape[1], block.u.shape[1]))

    def run(part: slice) -> None:
        u[part], curvature[part] = _newton(block, part, shaped[part], theta)

    run_in_threads(run, block.batches(theta.size), threads)
    return replace(block, u=u), curvature


def _objective(
    block: ItemBlock, which: Ints, u: Array, counts: Array, theta: Array
) -> tuple[Array, Array, Array]:
    """Objective of the M-step for the items `which` of a block, with gradient and curvature.

    The objective is expected log-likelihood plus log prior: (n_items,), (n_items, n_parameters) and
    (n_items, n_parameters, n_parameters).
    """
    value, gradient, curvature = block.model.value_gradient_curvature(u, theta, counts)
    log_prior, prior_gradient, prior_curvature = block.item_prior.value_gradient_curvature(
        u, block.item_prior.slope[which]
    )
    return value + log_prior, gradient + prior_gradient, curvature + prior_curvature


def _newton(block: ItemBlock, part: slice, counts: Array, theta: Array) -> tuple[Array, Array]:
    """Damped Newton steps for a batch of items; items that have converged drop out.

    Returns the parameters (n_items, n_parameters) and the curvatures (n_items, n_parameters,
    n_parameters).
    """
    u = block.u[part].copy()
    free = block.free[part]
    which = np.arange(len(block.u))[part]
    value, gradient, curvature = _objective(block, which, u, counts, theta)
    active = np.arange(len(u))
    kept = curvature.copy()
    for _ in range(NEWTON_STEPS):
        step = _solve_free(curvature, gradient, free[active])
        largest = np.abs(step).max(axis=1, initial=0.0)
        small = largest < NEWTON_TOLERANCE
        if small.any():  # the last step is taken without evaluating the objective there
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
        trial, value, gradient, curvature = _backtrack(
            block, which[active], u[active], step, here, counts[active], theta
        )
        u[active] = trial
        kept[active] = curvature
    return u, kept


def _backtrack(
    block: ItemBlock,
    which: Ints,
    u: Array,
    step: Array,
    here: tuple[Array, Array, Array],
    counts: Array,
    theta: Array,
) -> tuple[Array, Array, Array, Array]:
    """Parameters of each item after its step, halved until the objective does not decrease.

    `here` holds value, gradient and curvature at u. Returns the new parameters and value, gradient
    and curvature there; an item for which 12 halvings do not help stays where it is.
    """
    trial = block.clipped(u + step, which)
    todo = np.arange(len(u))
    value = here[0]
    best, gradient, curvature = (part.copy() for part in here)
    for _ in range(12):
        new = _objective(block, which[todo], trial[todo], counts[todo], theta)
        fine = new[0] >= value[todo] - 1e-12 * np.abs(value[todo])
        best[todo[fine]] = new[0][fine]
        gradient[todo[fine]] = new[1][fine]
        curvature[todo[fine]] = new[2][fine]
        todo = todo[~fine]
        if todo.size == 0:
            return trial, best, gradient, curvature
        step[todo] *= 0.5
        trial[todo] = block.clipped(u[todo] + step[todo], which[todo])
    trial[todo] = u[todo]
    return trial, best, gradient, curvature


def _solve_free(curvature: Array, gradient: Array, free: Bools) -> Array:
    """Newton step (n_items, n_parameters) in the free parameters, 0 in the others.

    Eigenvalues of the curvature are taken by their absolute values, so that the step always climbs.
    """
    both = free[:, :, None] & free[:, None, :]
    inner = np.where(both, curvature, 0.0)
    values, vectors = np.linalg.eigh(inner)
    floor = 1e-8 * np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-8)
    along = np.einsum("ipq,ip->iq", vectors, np.where(free, gradient, 0.0)) / np.maximum(
        np.abs(values), floor
    )
    return np.where(free, np.einsum("ipq,iq->ip", vectors, along), 0.0)


def _update_shared(block: ItemBlock, counts: Array, theta: Array) -> tuple[ItemBlock, Array]:
    """M-step of rating scales: u = difficulty of the item + thresholds shared by all items.

    The thresholds sum to zero. Newton steps for both together: the difficulties are eliminated from
    the linear system (Schur complement), as each is coupled to the thresholds only.
    """
    count, steps = block.u.shape
    every = np.arange(count)
    own = block.u.mean(axis=1)
    tau = (block.u - block.u.mean(axis=1, keepdims=True)).mean(axis=0)
    basis = np.linalg.svd(np.ones((1, steps)))[2][1:].T  # of thresholds that sum to zero
    curvature = np.empty((count, steps, steps))
    for _ in range(NEWTON_STEPS):
        u = own[:, None] + tau
        values, gradient, curvature = _objective(block, every, u, counts, theta)
        value = float(values.sum())
        d_own, d_tau = _shared_step(gradient, curvature, basis)
        length = min(
            1.0,
            block.model.max_newton_step
            / max(np.abs(d_own).max(), np.abs(d_tau).max(initial=0.0), 1e-300),
        )
        while True:
            trial_own = own + length * d_own
            trial_tau = tau + length * basis @ d_tau
            trial = trial_own[:, None] + trial_tau
            found = float(_objective(block, every, trial, counts, theta)[0].sum())
            if found >= value - 1e-10 * abs(value):
                break
            length *= 0.5
            if length < MIN_STEP_LENGTH:  # no step climbs
                return replace(block, u=u), curvature
        moved = max(np.abs(trial_own - own).max(), np.abs(trial_tau - tau).max())
        own = trial_own
        tau = trial_tau
        if moved < NEWTON_TOLERANCE:
            break
    return replace(block, u=own[:, None] + tau), curvature


def _shared_step(gradient: Array, curvature: Array, basis: Array) -> tuple[Array, Array]:
    """Newton step of the difficulties (n_items,) and of the thresholds, in their basis."""
    h_own = curvature.sum(axis=(1, 2))
    cross = curvature.sum(axis=1) @ basis
    g_own = gradient.sum(axis=1)
    d_tau = np.zeros(basis.shape[1])
    if d_tau.size:
        g_tau = basis.T @ gradient.sum(axis=0)
        schur = basis.T @ curvature.sum(axis=0) @ basis - (cross.T / h_own) @ cross
        d_tau = np.linalg.solve(schur, g_tau - cross.T @ (g_own / h_own))
    return (g_own - cross @ d_tau) / h_own, d_tau


def _with_learned_prior(block: ItemBlock, curvature: Array) -> ItemBlock:
    """The block with priors learned from its own items, where these are enough."""
    if len(block.items) < HYPER_ITEMS or not np.isfinite(block.prior_sd).all():
        return block
    own = np.diagonal(
        np.linalg.inv(curvature + 1e-9 * np.eye(curvature.shape[1])), axis1=1, axis2=2
    )
    mean, sd = estimate_hyperprior(block.u, own, block.model.priors(block.size))
    return replace(block, prior_mean=mean, prior_sd=sd)
