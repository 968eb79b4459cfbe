"""Abilities of a fit's people at any times."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from dynaesti.core import Array, Ints, as_rng, check_size, whole_number
from dynaesti.data import TimeAxis, as_list, index_of, label_text
from dynaesti.errors import InputError
from dynaesti.estimation import sample_bank
from dynaesti.inference import Marginals, Observations, graft_kernels, predict_marginals
from dynaesti.model import BUILT_IN, BankResponses, ItemBank
from dynaesti.results.curve import Curve, from_components

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

TABLE_SDS = 8.0  # standard deviations of ability that one person's table of likelihoods reaches


@dataclass(frozen=True)
class Change:
    """How an ability changed between two times, see `Fit.change`.

    Parameters
    ----------
    id : label
        The person.
    t0, t1 : time
        From when, and to when.
    mean, sd : float
        Mean and standard deviation of the difference ability(t1) − ability(t0).
    rose : float
        Probability that ability rose.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> change = dy.DynAEsti("2PL").fit(table).change("p00", 10, 90)
    >>> change.id, 0 < change.rose < 1
    ('p00', True)
    """

    id: Any
    t0: Any
    t1: Any
    mean: float
    sd: float
    rose: float


def ability_marginals(fit: Fit, person: Ints, offsets: Array) -> Marginals:
    """Reported ability of each (person, time) pair; person −1 is someone never seen."""
    order = np.argsort(person, kind="stable")
    who = person[order]
    when = offsets[order]
    known = np.unique(who[who >= 0])
    means = np.zeros((len(fit.kernels), who.size))
    variances = np.ones((len(fit.kernels), who.size))
    weights = np.repeat(fit.population[:, None], who.size, axis=1)
    first = int(np.searchsorted(who, 0))
    if known.size:
        first_instant, last_instant = fit.sites.layout.spans
        asked_start = np.append(np.searchsorted(who, known), who.size) - first
        for k, (kernel, result) in enumerate(zip(fit.kernels, fit.ep, strict=True)):
            layout = fit.sites.for_kernel(kernel)
            latent = result.sites.select(layout.sites_of(known)).through_nugget(
                kernel.nugget_variance
            )
            means[k, first:], variances[k, first:] = predict_marginals(
                kernel,
                layout.select(known),
                latent,
                when[first:],
                asked_start,
                spans=(first_instant[known], last_instant[known]),
                threads=fit.options["threads"],
            )
        weights[:, first:] = fit.weights[:, who[first:]]
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    sds = np.sqrt(np.maximum(variances, 1e-300))
    return Marginals(
        weights[:, back], fit.shift + fit.gain * means[:, back], fit.gain * sds[:, back]
    )


def people_and_times(fit: Fit, at: Any, ids: Any) -> tuple[Ints, Array]:
    """(person, offset) pairs of people and times.

    People at every time, or (at=None) at the instants of their own responses.
    """
    people = np.arange(fit.responses.people.size)
    if ids is not None:
        people = index_of(fit.responses.people, as_list(ids), "ids")
    if at is not None:
        offsets = fit.to_clock(at)
        check_size(people.size * offsets.size, "at")
        return np.repeat(people, offsets.size), np.tile(offsets, people.size)
    layout = fit.sites.layout
    return np.repeat(people, np.diff(layout.site_start)[people]), layout.times[
        layout.sites_of(people)
    ]


def person_curve(fit: Fit, who: Ints, until: float | None, bank: ItemBank | None = None) -> Curve:
    """One person's curve on the reported scale.

    Parameters
    ----------
    fit : Fit
    who : int array (1,)
        Number of the person.
    until : float or None
        Keep responses up to this time on the fit's clock; None: all.
    bank : ItemBank, optional
        Other items than the fit's.
    """
    one = fit.responses.select_people(who)
    rows = np.arange(len(one)) if until is None else np.flatnonzero(one.clock_times <= until)
    if not rows.size:
        raise InputError("until: no answers up to then; the curve would be the prior")
    weight = np.ones(len(one)) if one.weight is None else one.weight
    code = fit.coding.code(one, one.item)
    emissions = BankResponses(
        bank or fit.bank, one.item[rows], code[rows], weight[rows], fit.gain, fit.shift
    )
    on_calendar = fit.responses.clock == "calendar"
    axis = fit.responses.axis if on_calendar else TimeAxis(0.0, 0, stamps=False, zoned=False)
    observations = Observations(
        axis,
        one.clock_times[rows],
        emissions,
        BUILT_IN["identity"],
        fit.shift,
        TABLE_SDS * fit.gain,
    )
    kernels = [(fit.gain**2 * kernel).anchored(*observations.span) for kernel in fit.kernels]
    made = graft_kernels(observations, kernels)
    with np.errstate(divide="ignore"):
        log_prior = np.log(fit.population).tolist()
    return from_components(observations, made, log_prior, "learn", fit.frame, None)


def ability_change(fit: Fit, label: Any, t0: Any, t1: Any) -> Change:
    """How a person's ability changed from t0 to t1."""
    curve = fit.curve(label)
    offsets = fit.to_clock([t0, t1])
    weights, _, components = curve.weighted_components()
    difference = np.empty(weights.size)
    variance = np.empty(weights.size)
    for k, component in enumerate(components):
        mean = component.posterior.marginals(offsets)[0]
        cov = component.posterior.covariance(offsets)
        difference[k] = mean[1] - mean[0]
        variance[k] = max(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1], 1e-300)
    average = float(weights @ difference)
    sd = float(np.sqrt(weights @ (variance + (difference - average) ** 2)))
    rose = float(weights @ ndtr(difference / np.sqrt(variance)))
    return Change(label, t0, t1, average, sd, rose)


def marginals_with_item_uncertainty(
    fit: Fit, label: Any, offsets: Array, draws: int, seed: int
) -> Marginals:
    """One person's ability, averaged over items drawn from their uncertainty."""
    if fit.covariance is None:
        raise InputError(
            "the items' standard errors were not computed; fit with standard_errors=True"
        )
    who = index_of(fit.responses.people, [label], "id")
    rng = as_rng(seed)
    shared = (
        np.zeros((2, 2)) if fit.shared is None else fit.shared
    )  # absent in files of older versions
    banks = [
        sample_bank(fit.bank, fit.covariance, shared, rng)
        for _ in range(whole_number(draws, "draws", 2))
    ]
    times = fit.from_clock(offsets)
    parts = [person_curve(fit, who, None, bank).marginals(times) for bank in banks]
    return Marginals(
        np.concatenate([part.weights for part in parts]) / draws,
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.sds for part in parts]),
    )


def person_stream(seed: Any, label: Any) -> np.random.Generator:
    """Random numbers of one person's own for a seed, by the written form of their label.

    Without a seed they are different every time.
    """
    if seed is None:
        return np.random.default_rng()
    own = int.from_bytes(blake2b(label_text(label).encode(), digest_size=8).digest())
    return np.random.default_rng([whole_number(seed, "seed", 0), own])
