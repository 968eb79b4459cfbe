"""Abilities of a fit's people at any times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, Ints, check_size, starts_of_runs
from dynaesti.data import TimeAxis, as_list, index_of
from dynaesti.errors import InputError
from dynaesti.inference import (
    Marginals,
    MeanFunction,
    Observations,
    graft_kernels,
)
from dynaesti.model import BUILT_IN, BankResponses, Cohort, EffectRows, ItemBank
from dynaesti.results.cohort import changes_between
from dynaesti.results.curve import Curve, from_components
from dynaesti.results.frames import IDENTITY
from dynaesti.results.latent import latent_abilities

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
    cohort, own : float
        Parts of the mean: how far the person's cohort moved, and how far the person beyond it.

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
    cohort: float = 0.0
    own: float = 0.0


def ability_marginals(
    fit: Fit,
    person: Ints,
    offsets: Array,
    group_if_new: Ints | None = None,
    rows: EffectRows | None = None,
) -> Marginals:
    """Reported ability of each (person, time) pair; person −1 is someone never seen.

    `group_if_new` are the groups of those, and `rows` columns of effects: see `latent_abilities`.
    """
    weights, means, variances = latent_abilities(fit, person, offsets, group_if_new, rows)
    sds = np.sqrt(np.maximum(variances, 1e-300))
    return Marginals(weights, fit.shift + fit.gain * means, fit.gain * sds)


def people_and_times(fit: Fit, at: Any, ids: Any) -> tuple[Ints, Array]:
    """(person, offset) pairs of people and times.

    People at every time, or (at=None) at the instants of their own responses.
    """
    fit.require_people()
    people = np.arange(fit.responses.people.size)
    if ids is not None:
        people = index_of(fit.responses.people, as_list(ids), "ids")
    if at is not None:
        offsets = fit.to_clock(at)
        check_size(people.size * offsets.size, "at")
        return np.repeat(people, offsets.size), np.tile(offsets, people.size)
    layout = fit.sites.layout
    person = np.repeat(people, np.diff(layout.site_start)[people])
    times = layout.times[layout.sites_of(people)]
    instants = starts_of_runs(person, times)  # answers with different effects may share one
    return person[instants], times[instants]


def person_curve(
    fit: Fit,
    who: Ints,
    until: float | None,
    bank: ItemBank | None = None,
    cohort: Cohort | None = None,
) -> Curve:
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
    cohort : Cohort, optional
        Another cohort than the fit's.
    """
    one = fit.responses.select_people(who)
    rows = np.arange(len(one)) if until is None else np.flatnonzero(one.clock_times <= until)
    if not rows.size:
        raise InputError("until: no answers up to then; the curve would be the prior")
    weight = np.ones(len(one)) if one.weight is None else one.weight
    code = fit.coding.code(one, one.item)
    cohort = cohort or fit.priors.cohort
    beside = seen_beside_ability(fit, who, cohort)
    emissions = BankResponses(
        bank or fit.bank,
        one.item[rows],
        code[rows],
        weight[rows],
        fit.gain,
        fit.shift,
        beside[rows],
    )
    on_calendar = fit.responses.clock == "calendar"
    axis = fit.responses.axis if on_calendar else TimeAxis(0.0, 0, stamps=False, zoned=False)
    observations = Observations(
        axis,
        one.clock_times[rows],
        emissions,
        BUILT_IN["identity"],
        _mean_of_person(fit, who, cohort, axis),
        (TABLE_SDS + _farthest_mean(fit)) * fit.gain,
        fit.shift,
        separate=fit.sites.effects is not None,
    )
    kernels = [(fit.gain**2 * kernel).anchored(*observations.span) for kernel in fit.kernels]
    made = graft_kernels(observations, kernels)
    with np.errstate(divide="ignore"):
        log_prior = np.log(fit.population).tolist()
    return from_components(observations, made, log_prior, "learn", fit.frame, None)


def _mean_of_person(fit: Fit, who: Ints, cohort: Cohort | None, axis: TimeAxis) -> MeanFunction:
    """Prior mean of a person's curve: the cohort's, with the effects that are ability."""
    if cohort is None:
        return fit.shift
    effects = fit.sites.effects
    columns = None if effects is None else (effects.level[who], effects.slope[who])
    group = int(fit.sites.group[who[0]])
    return cohort.mean_function(group, axis, fit.shift, fit.gain, columns)


def seen_beside_ability(fit: Fit, who: Ints, cohort: Cohort | None) -> Array:
    """What each response of a person sees beside their ability, by effects: (n_responses,)."""
    layout = fit.sites.layout.select(who)
    first = np.flatnonzero(np.diff(layout.factor_response, prepend=-1))
    effects = fit.sites.effects
    if effects is None or cohort is None:
        return np.zeros(first.size)
    sites = fit.sites.layout.sites_of(who)
    of_ability = effects.of_ability(np.repeat(who, sites.size), layout.times)
    beside = (effects.at_sites[sites] - of_ability) @ cohort.effect_values
    site = np.repeat(np.arange(sites.size), np.diff(layout.factor_start))[first]
    return np.asarray(beside[site])


def _farthest_mean(fit: Fit) -> float:
    """Largest distance of the cohort's means from 0, at everyone's instants."""
    return 0.0 if fit.prior_mean is None else float(np.abs(fit.prior_mean).max())


def ability_change(fit: Fit, label: Any, t0: Any, t1: Any) -> Change:
    """How a person's ability changed from t0 to t1."""
    fit.require_people()
    found = changes_between(fit, index_of(fit.responses.people, [label], "id"), t0, t1)
    mean = float(found.mean[0])
    sd = float(found.marginals.sd(IDENTITY)[0])
    part = float(found.cohort[0])
    return Change(label, t0, t1, mean, sd, float(found.rose[0]), part, mean - part)
