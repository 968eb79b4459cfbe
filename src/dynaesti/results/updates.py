"""Further responses to a fit: read with its labels and clock, scored, or added to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, Ints, starts_of_runs
from dynaesti.data import (
    Responses,
    as_labels,
    count_noun,
    index_of,
    try_index_of,
    warn_already_added,
    warn_left_out,
    warn_new_people,
)
from dynaesti.errors import HealthWarning, warn_user
from dynaesti.estimation import (
    EP_TOLERANCE_FINAL,
    EStep,
    EStepPosterior,
    NewItemFit,
    PeopleSites,
    ability_grid,
    build_people_sites,
    check_reach,
    extend_models,
    find_new_items,
    index_of_items,
    kernel_weights,
    new_items_by_model,
    new_items_hint,
    tabulate_items,
)
from dynaesti.inference import EPResult, NaturalGaussian, SiteLayout
from dynaesti.model import Kernel
from dynaesti.results.bank_fit import as_first_data

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

LAST_UPDATE = "the last update brought"  # begins a note, of which there is one


@dataclass(frozen=True)
class NewResponses:
    """Further responses, with a fit's labels.

    Parameters
    ----------
    responses : Responses
        Known people and items are labelled as in the fit.
    people : int array (n_people,)
        Number of each person in the fit, −1 if new.
    items : int array (n_items,)
        Number of each item in the fit.
    """

    responses: Responses
    people: Ints
    items: Ints


def read_new_responses(
    fit: Fit, data: Any, *, unanswered: bool = False, remedy: str = ""
) -> NewResponses:
    """Read further data with the fit's labels; unknown items are refused, with a remedy."""
    new = fit.read_new_data(data, unanswered)
    people = try_index_of(fit.responses.people, new.people.tolist())
    items = index_of_items(new, fit.responses.items, remedy)
    known = fit.responses.people.tolist()  # 17 and "17" are one person, called as in the fit
    names = as_labels(
        [label if k < 0 else known[k] for k, label in zip(people, new.people.tolist(), strict=True)]
    )
    warn_other_groups(fit, new, people)
    return NewResponses(replace(new, people=names, items=fit.responses.items[items]), people, items)


def warn_other_groups(fit: Fit, new: Responses, people: Ints) -> None:
    """Warn about groups of further data that the fit does not know, or knows otherwise."""
    if fit.responses.group is None or not fit.responses.groups:
        return
    named = new.group_among(fit.responses.groups)
    unknown = int(((named < 0) & (people < 0)).sum())
    if unknown:
        warn_user(
            f"{count_noun(unknown, 'people')} of {people.size:,} are new and of no group that the "
            f"fit knows ({', '.join(map(repr, fit.responses.groups))}); they are taken as average",
            HealthWarning,
        )
    seen = (people >= 0) & (named >= 0)
    moved = int((named[seen] != fit.responses.group[people[seen]]).sum())
    if moved:
        warn_user(
            f"{count_noun(moved, 'people')} are in another group than in the fit; they stay in "
            "that of the fit",
            HealthWarning,
        )


def offsets_on_axis(fit: Fit, new: Responses) -> Array:
    """Times of further data on the fit's axis."""
    if not new.columns.get("time"):
        return new.offsets
    return fit.responses.axis.offsets(new.axis.restore(new.offsets))


def times_on_clock(fit: Fit, new: NewResponses) -> Array:
    """Times of further data on the fit's clock; known people keep their own start."""
    offsets = offsets_on_axis(fit, new.responses)
    if fit.responses.clock == "calendar":
        return offsets
    start = np.full(new.responses.people.size, np.inf)
    np.minimum.at(start, new.responses.person, offsets)
    known = fit.responses.origin[np.maximum(new.people, 0)]
    start = np.where(new.people >= 0, known, start)
    return np.asarray(offsets - start[new.responses.person])


def e_step_with_items_fixed(
    fit: Fit, sites: PeopleSites, starts: list[NaturalGaussian | None]
) -> tuple[EStepPosterior, float]:
    """Run an E-step with items and population held.

    Returns
    -------
    posterior : EStepPosterior
        Everyone's curves.
    reach : float
        Largest absolute ability found; likelihood tables are widened until they cover it.
    """
    e_step = EStep(sites, fit.options["threads"])
    table = fit.likelihood_table
    reach = fit.max_abs_ability
    while True:
        posterior = e_step.run(table, fit.priors, starts, EP_TOLERANCE_FINAL)
        before = reach
        reach = max(reach, posterior.max_abs_ability())
        grid = ability_grid(fit.bank, reach)
        check_reach(reach)
        if grid.size == ability_grid(fit.bank, before).size:
            return posterior, reach
        table = tabulate_items(fit.bank, grid)


def on_fits_axis(fit: Fit, new: NewResponses) -> Responses:
    """Further responses with the fit's items, groups, axis and clock, known people's start too."""
    offsets = offsets_on_axis(fit, new.responses)
    origin = np.zeros(new.responses.people.size)
    origin[new.responses.person] = offsets - times_on_clock(fit, new)
    return replace(
        new.responses,
        items=fit.responses.items,
        item=new.items[new.responses.item],
        models=fit.responses.models,
        axis=fit.responses.axis,
        offsets=offsets,
        origin=origin,
        unit=fit.responses.unit,
        clock=fit.responses.clock,
        groups=fit.responses.groups,
        group=None
        if fit.responses.group is None
        else new.responses.group_among(fit.responses.groups),
    )


def fit_new_people(fit: Fit, new: NewResponses) -> Fit:
    """A fit of other people with these items and this population."""
    responses = on_fits_axis(fit, new)
    sites = build_people_sites(responses, fit.coding, fit.bank, fit.priors.effects)
    posterior, reach = e_step_with_items_fixed(fit, sites, [None] * len(fit.kernels))
    return replace(
        fit,
        responses=responses,
        ep=posterior.ep,
        weights=posterior.weights,
        max_abs_ability=reach,
        known_sites=sites,
    )


def append_responses(fit: Fit, new: NewResponses) -> Responses:
    """All responses of the fit, and further ones."""
    return fit.responses.append(
        replace(
            new.responses,
            items=fit.responses.items,
            item=new.items[new.responses.item],
            models=fit.responses.models,
        )
    )


def without_repeats(fit: Fit, data: Responses) -> Responses:
    """Further responses without those that the fit has already, each as often as it has it.

    A response that the fit has once and the data twice stays once.
    """
    known = try_index_of(fit.item_labels, data.items.tolist())[data.item] >= 0
    rows = np.flatnonzero(known)
    if not rows.size:
        return data
    new = read_new_responses(fit, data.select_responses(rows, drop_unused=True))
    joined = fit.responses.append(new.responses)
    run = np.cumsum(np.append(0, ~joined.repeats))  # of equal responses, those of the fit first
    is_new = joined.row >= len(fit.responses)
    had = np.bincount(run[~is_new], minlength=int(run[-1]) + 1)
    new_run = run[is_new]
    first = starts_of_runs(new_run)
    rank = np.arange(new_run.size) - np.repeat(first, np.diff(np.append(first, new_run.size)))
    repeated = joined.row[is_new][rank < had[new_run]] - len(fit.responses)
    if not repeated.size:
        return data
    kept = np.setdiff1d(np.arange(len(data)), rows[repeated])
    return data.select_responses(kept, drop_unused=True)


def responses_of_people(fit: Fit, data: Responses) -> Responses:
    """All responses of the people in further data, these included."""
    new = read_new_responses(fit, data)
    joined = append_responses(fit, new)
    people = index_of(joined.people, new.responses.people.tolist(), "id")
    return joined.select_people(np.sort(people))


def update_fit(
    fit: Fit, data: Any, *, new_items: bool | str | Mapping[Any, str], again: bool
) -> Fit:
    """The fit with more responses of known or new people."""
    new = fit.read_new_data(data)
    fit = as_first_data(fit, new)
    batch = new.fingerprint()
    if batch in fit.batches and not again:
        warn_already_added(new)
        return fit
    warn_new_people(fit.responses.people, new.people)
    given = len(new)
    new = new if again else without_repeats(fit, new)
    warn_left_out(given, len(new))
    if not len(new):
        return replace(fit, batches=(*fit.batches, batch))
    grown = fit
    if new_items:
        for model, part in new_items_by_model(fit.coding, fit.responses.items, new, new_items):
            grown = with_new_items(grown, part, model)
    updated = add_people(grown, new)
    r = updated.responses
    repeats = 0
    if r.columns.get("time"):
        rows = r.row[np.flatnonzero(r.repeats) + 1]
        repeats = int((rows >= len(fit.responses)).sum())
    if repeats and not again:
        warn_user(
            f"{repeats:,} of {len(new):,} answers repeat each other exactly (person, item, time "
            "and response), and count once more",
            HealthWarning,
        )
    return replace(updated, batches=(*fit.batches, batch))


def with_new_items(fit: Fit, new: Responses, model: str | None) -> Fit:
    """The fit with items that it has never seen, of one model.

    They are learned from the responses of those who met them.
    """
    labels, people = find_new_items(fit.responses.items, new)
    if not people.size:
        return fit
    items = NewItemFit(fit, labels, new, model)
    models = extend_models(fit.responses.models, labels.size, model)
    grown = replace(
        fit, responses=replace(fit.responses, items=labels, models=models), known_sites=None
    )
    found = items.fit(items.sites(responses_of_people(grown, new.select_people(people))))
    return replace(
        grown,
        coding=found.coding,
        bank=found.bank,
        covariance=found.covariance,
        item_nodes=found.item_nodes,
        item_drift=found.item_drift,
    )


def add_people(fit: Fit, data: Responses) -> Fit:
    """The curves of people with further responses grafted anew, from their present sites."""
    new = read_new_responses(fit, data, remedy=new_items_hint())
    # refuses responses outside their item's categories, counted among the new ones
    fit.coding.code(new.responses, new.items[new.responses.item])
    joined = append_responses(fit, new)
    touched = np.sort(index_of(joined.people, new.responses.people.tolist(), "id"))
    known = index_of(joined.people, fit.responses.people.tolist(), "id")
    sites = build_people_sites(joined, fit.coding, fit.bank, fit.priors.effects)
    part = sites.select(touched)
    before = np.full(joined.people.size, -1, dtype=np.int64)
    before[known] = np.arange(known.size)
    starts = [
        _starting_sites(fit, kernel, result, part, before[touched])
        for kernel, result in zip(fit.kernels, fit.ep, strict=True)
    ]
    posterior, reach = e_step_with_items_fixed(fit, part, list(starts))
    ep = tuple(
        _merged(
            sites.for_kernel(kernel, fit.priors),
            fit.sites.for_kernel(kernel, fit.priors),
            known,
            old,
            touched,
            found,
        )
        for kernel, old, found in zip(fit.kernels, fit.ep, posterior.ep, strict=True)
    )
    note = (
        f"{LAST_UPDATE} {count_noun(len(data), 'answers')} of "
        f"{count_noun(data.people.size, 'people')}, {int((new.people < 0).sum()):,} of them new"
    )
    notes = (*(old for old in joined.notes if not old.startswith(LAST_UPDATE)), note)
    return replace(
        fit,
        responses=replace(joined, notes=notes),
        ep=ep,
        weights=kernel_weights(fit.population, ep),
        max_abs_ability=max(fit.max_abs_ability, reach),
        known_sites=sites,
    )


def _starting_sites(
    fit: Fit, kernel: Kernel, result: EPResult, part: PeopleSites, before: Ints
) -> NaturalGaussian:
    """Sites to start from at the instants of all responses of some people.

    Known instants have the fit's converged sites. `before` is the number of each person in the
    fit, −1 if new.
    """
    new = part.for_kernel(kernel, fit.priors)
    old = fit.sites.for_kernel(kernel, fit.priors)
    start = NaturalGaussian.empty(new.n_sites)
    for k, person in enumerate(before):
        if person < 0:
            continue
        had = old.curve_slice(np.array([person]))
        has = new.curve_slice(np.array([k]))
        within = np.zeros(1, dtype=np.int64)
        if not fit.priors.merges_instants(kernel):
            # answers of one instant with different effects are several sites, which may have
            # become more: the first of them start from the old ones
            rank = _rank_within_instants(old.times[had])
            within = np.searchsorted(new.times[has], old.times[had]) + rank
        start.precision[has.start + within] = result.sites.precision[had]
        start.shift[has.start + within] = result.sites.shift[had]
    return start


def _rank_within_instants(times: Array) -> Ints:
    """Number of each site among those at its instant: 0 where there is one."""
    first = starts_of_runs(times)
    number = np.arange(times.size)
    return np.asarray(number - first[np.searchsorted(first, number, side="right") - 1])


def _merged(
    layout: SiteLayout,
    old_layout: SiteLayout,
    known: Ints,
    old: EPResult,
    touched: Ints,
    new: EPResult,
) -> EPResult:
    """Everyone's result after some people's curves were grafted anew."""
    untouched = np.flatnonzero(~np.isin(known, touched))
    merged = EPResult.empty(layout.n_sites, layout.n_curves)
    kept = old.select(old_layout.sites_of(untouched), untouched)
    merged.write(layout.sites_of(known[untouched]), known[untouched], kept)
    merged.write(layout.sites_of(touched), touched, new)
    return merged
