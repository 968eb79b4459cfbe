"""The scale of ability.

Its zero and unit while items are learned, and the scale that is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array
from dynaesti.estimation.e_step import EStep, EStepPosterior
from dynaesti.estimation.site_layout import PeopleSites
from dynaesti.model import FEW_LOCATION_SD, FEW_LOG_SCALE_SD, ItemBank, Kernel


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


MAX_SCALE_STEP = 0.3  # of the abilities' zero, in their sd, and of the log of their unit


def scale_gradient(sites: PeopleSites, kernels: list[Kernel], posterior: EStepPosterior) -> Array:
    """Gradients of the log evidence by the abilities' mean and log sd (first row), and information
    (second): (2, 2).

    By the sites' (τ, ν) and the posterior (m, v) at them, the gradient by the prior's mean is Σ ν −
    τm, by the log of its scale Σ νm − τ(m² + v); divided by the information that the responses
    hold, they are Newton steps.
    """
    gradient = np.zeros(2)
    information = np.zeros(2)
    for kernel, result, weights in zip(kernels, posterior.ep, posterior.weights, strict=True):
        layout = sites.for_kernel(kernel)
        mean, variance = result.tilted
        precision, shift = result.sites
        weight = np.repeat(weights, np.diff(layout.site_start))
        left = shift - precision * mean
        by_log_sd = weight * (left * mean - precision * variance)
        gradient += float((weight * left).sum()), float(by_log_sd.sum())
        held = float((weight * precision * variance).sum())
        information += held, 2.0 * held
    return np.stack([gradient, information])


def scale_information(e_step: EStep, kernels: list[Kernel], posterior: EStepPosterior) -> Array:
    """Information that the people hold about where the abilities' zero lies and about the log of
    their unit: (2, 2).

    About the zero it is Σ over people of 1ᵀ(K + T⁻¹)⁻¹1 = Σ τ(1 − dm), where dm is how far the
    curve follows when all sites move by 1; about the unit twice the number of effective parameters,
    Σ τv.
    """
    out = np.zeros((2, 2))
    for kernel, result, weights in zip(kernels, posterior.ep, posterior.weights, strict=True):
        layout = e_step.sites.for_kernel(kernel)
        latent = result.sites.through_nugget(kernel.nugget_variance)
        moved = e_step.mean_response_to_unit_shift(kernel, latent.precision)
        variance = result.tilted.variance
        weight = np.repeat(weights, np.diff(layout.site_start))
        about_zero = float((weight * latent.precision * (1.0 - moved)).sum())
        about_unit = float(2.0 * (weight * result.sites.precision * variance).sum())
        out += np.diag([about_zero, about_unit])
    return out


def scale_step(bank: ItemBank, scale: Array, updated: ItemBank, weights: Array) -> ItemBank:
    """Items after an M-step, with a Newton step of its own for the abilities' zero and unit.

    EM crawls along these two, which move all items together: what the M-step moved along them is
    taken back. The information that people hold about them and the one that the M-step goes by are
    both too large, so the smaller one serves.

    Parameters
    ----------
    bank, updated : ItemBank
        Before and after the M-step.
    scale : array (2, 2)
        Of the E-step: `scale_gradient`.
    weights : array (n_free,)
        Root of the information about each entry of ``bank.to_vector()``.
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
        return updated  # nothing moves with the unit: it is anchored
    log_prior = np.array([[ahead.log_prior(), behind.log_prior()] for ahead, behind in moved])
    gradient = scale[0] + (log_prior[:, 0] - log_prior[:, 1]) / (2 * step)
    curvature = (2 * bank.log_prior() - log_prior.sum(axis=1)) / step**2
    information = scale[1] + np.maximum(curvature, 0.0)
    information = np.where(free_scale, information, np.minimum(information, np.diagonal(gram)))
    newton = gradient / (information + 1e-9)
    wanted = np.clip(newton, -MAX_SCALE_STEP, MAX_SCALE_STEP)[free]
    m_step = updated.to_vector() - bank.to_vector()
    went = np.linalg.solve(gram[np.ix_(free, free)], along[:, free].T @ (weights**2 * m_step))
    return updated.from_vector(updated.to_vector() + along[:, free] @ (wanted - went))


def _scale_step_by_evidence(bank: ItemBank, scale: Array, updated: ItemBank) -> ItemBank:
    """The step where priors are learned.

    They shrink thousands of thin slopes a little at every step and must not decide the unit.
    """
    ability_scale = bank.ability_scale
    free = np.array([ability_scale.free_location, ability_scale.free_scale])
    held = free / np.array([FEW_LOCATION_SD, FEW_LOG_SCALE_SD]) ** 2 * ability_scale.few
    gradient = scale[0] - held * np.array([ability_scale.location, ability_scale.log_scale])
    newton = gradient / (scale[1] + held + 1e-9)
    location, log_scale = np.clip(newton, -MAX_SCALE_STEP, MAX_SCALE_STEP)
    by_m_step = updated.log_slope() - bank.log_slope()
    return updated.rescaled(float(location), float(log_scale) - by_m_step)
