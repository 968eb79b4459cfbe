"""The scale of ability: its zero and unit while items are learned, and the reported scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array
from dynaesti.estimation.e_step import EStep, EStepPosterior
from dynaesti.estimation.population import PriorMixture
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.model import ItemBank


@dataclass(frozen=True)
class Scale:
    """The reported scale: abilities are gain · θ + shift, with θ on the items' scale."""

    name: str
    gain: float
    shift: float


def reported_scale(bank: ItemBank, wanted: str) -> Scale:
    """The scale to report: of unit variance ("abilities") or of geometric-mean slope 1 ("items").

    Anchored items keep their own scale in either case.
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


MAX_SCALE_STEP = 0.3  # largest step of the abilities' zero, in sds, and of their log unit


def scale_gradient(sites: PeopleSites, priors: PriorMixture, posterior: EStepPosterior) -> Array:
    """Gradient of the log evidence by the mean and log sd of abilities, and information on both.

    With sites (τ, ν) and posterior moments (m, v), the gradient by the prior's mean is Σ ν − τm,
    and by the log of its scale Σ νm − τ(m² + v). Divided by the information that the responses
    hold, they are Newton steps.

    Returns
    -------
    array (2, 2)
        The gradient in the first row, the information in the second.
    """
    gradient = np.zeros(2)
    information = np.zeros(2)
    for kernel, result, weights in posterior.by_kernel(priors):
        layout = sites.for_kernel(kernel, priors)
        mean, variance = result.tilted
        precision, shift = result.sites
        weight = np.repeat(weights, np.diff(layout.site_start))
        left = shift - precision * mean
        by_log_sd = weight * (left * mean - precision * variance)
        gradient += float((weight * left).sum()), float(by_log_sd.sum())
        held = float((weight * precision * variance).sum())
        information += held, 2.0 * held
    return np.stack([gradient, information])


def scale_information(e_step: EStep, priors: PriorMixture, posterior: EStepPosterior) -> Array:
    """Information that the people hold on the zero of ability and on the log of its unit: (2, 2).

    On the zero it is Σ over people of 1ᵀ(K + T⁻¹)⁻¹1 = Σ τ(1 − dm), where dm is how far the curve
    moves when all sites move by 1; on the unit it is twice the number of effective parameters, Σ
    τv.
    """
    out = np.zeros((2, 2))
    for kernel, result, weights in posterior.by_kernel(priors):
        layout = e_step.sites.for_kernel(kernel, priors)
        latent = result.sites.through_nugget(kernel.nugget_variance)
        merges = priors.merges_instants(kernel)
        one = np.ones((1, latent.precision.size))
        moved = e_step.mean_response(kernel, merges, latent.precision, one)[0]
        variance = result.tilted.variance
        weight = np.repeat(weights, np.diff(layout.site_start))
        about_zero = float((weight * latent.precision * (1.0 - moved)).sum())
        about_unit = float(2.0 * (weight * result.sites.precision * variance).sum())
        out += np.diag([about_zero, about_unit])
    return out


def scale_step(
    bank: ItemBank, scale: Array, updated: ItemBank, weights: Array
) -> tuple[ItemBank, Array]:
    """Items after an M-step, with a separate Newton step for the zero and unit of ability.

    EM is slow along these two directions, which move all items together. So the part of the M-step
    along them is removed, and the Newton step added. Two estimates of the information are known, by
    the people and by the M-step; both are too large, so the smaller one is used.

    Parameters
    ----------
    bank, updated : ItemBank
        Before and after the M-step.
    scale : array (2, 2)
        `scale_gradient` of the E-step.
    weights : array (n_free,)
        Root of the information about each entry of ``bank.to_vector()``.

    Returns
    -------
    bank : ItemBank
    move : array (2,)
        How far the zero and the log unit moved.
    """
    if bank.learns_hyperpriors:
        return _scale_step_by_evidence(bank, scale, updated)
    free_scale = np.array([bank.ability_scale.free_location, bank.ability_scale.free_scale])
    step = 1e-2
    moved = [
        [bank.rescaled(sign * step * move[0], sign * step * move[1]) for sign in (1, -1)]
        for move in ((1, 0), (0, 1))
    ]
    differences = [(ahead.to_vector() - behind.to_vector()) / (2 * step) for ahead, behind in moved]
    along = np.stack(differences, axis=1)
    gram = (weights[:, None] * along).T @ (weights[:, None] * along)
    free = np.flatnonzero(np.diagonal(gram) > 0)
    if not free.size:
        return updated, np.zeros(2)  # no parameter depends on zero or unit: they are anchored
    log_prior = np.array([[ahead.log_prior(), behind.log_prior()] for ahead, behind in moved])
    gradient = scale[0] + (log_prior[:, 0] - log_prior[:, 1]) / (2 * step)
    curvature = (2 * bank.log_prior() - log_prior.sum(axis=1)) / step**2
    information = scale[1] + np.maximum(curvature, 0.0)
    information = np.where(free_scale, information, np.minimum(information, np.diagonal(gram)))
    newton = gradient / (information + 1e-9)
    move = np.zeros(2)
    by_newton = move[free] = np.clip(newton, -MAX_SCALE_STEP, MAX_SCALE_STEP)[free]
    m_step = updated.to_vector() - bank.to_vector()
    by_m_step = np.linalg.solve(gram[np.ix_(free, free)], along[:, free].T @ (weights**2 * m_step))
    moved = updated.to_vector() + along[:, free] @ (by_newton - by_m_step)
    return updated.from_vector(moved), move


def _scale_step_by_evidence(
    bank: ItemBank, scale: Array, updated: ItemBank
) -> tuple[ItemBank, Array]:
    """Items after an M-step and a Newton step for the scale, where priors are learned.

    Learned priors shrink thousands of slopes with few responses a little at every step. That must
    not decide the unit.
    """
    ability_scale = bank.ability_scale
    held = ability_scale.prior_precision
    gradient = scale[0] - held * np.array([ability_scale.location, ability_scale.log_scale])
    newton = gradient / (scale[1] + held + 1e-9)
    move = np.clip(newton, -MAX_SCALE_STEP, MAX_SCALE_STEP)
    by_m_step = updated.log_slope() - bank.log_slope()
    return updated.rescaled(float(move[0]), float(move[1]) - by_m_step), move
