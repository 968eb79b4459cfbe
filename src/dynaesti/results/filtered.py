"""Filtered abilities: what was known at each time, by the responses up to it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dynaesti.core import Array, Ints, starts_of, take_rows
from dynaesti.inference import Marginals, SiteLayout
from dynaesti.model import EffectRows
from dynaesti.results.abilities import ability_marginals
from dynaesti.results.updates import e_step_with_items_fixed

if TYPE_CHECKING:
    from dynaesti.estimation import PeopleSites
    from dynaesti.results.fit import Fit

MOST_SITES = 2_000_000  # of the truncated curves that are fitted together


def filtered_marginals(
    fit: Fit,
    person: Ints,
    offsets: Array,
    *,
    rows: EffectRows | None = None,
    before: bool = False,
) -> Marginals:
    """Reported ability of (person, time) pairs by the responses up to each time.

    Every pair has a curve of its own: that of the person's responses up to then, or with `before`
    of those at earlier times only. `rows` are columns of effects, see `latent_abilities`.
    """
    if not person.size:
        return fit.marginals(person, offsets)
    layout = fit.sites.layout
    order = np.lexsort((offsets, person))
    known = _sites_until(layout, person[order], offsets[order], before)
    own = fit.sites.columns_of_ability(person, offsets)
    if rows is None and own is not None and fit.priors.effects is not None:
        rows = EffectRows(own, np.zeros((person.size, len(fit.priors.effects.blocks)), dtype=bool))
    parts = []
    cuts = np.searchsorted(np.cumsum(known), np.arange(0, known.sum() + 1, MOST_SITES)[1:])
    for some in np.split(np.arange(order.size), np.unique(cuts)):
        if some.size:
            mine = order[some]
            parts.append(
                _filtered(
                    fit,
                    person[mine],
                    offsets[mine],
                    known[some],
                    None if rows is None else rows.select(mine),
                )
            )
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return Marginals(
        *(
            np.concatenate([getattr(part, name) for part in parts], axis=1)[:, back]
            for name in ("weights", "means", "sds")
        )
    )


def _sites_until(layout: SiteLayout, person: Ints, offsets: Array, before: bool) -> Ints:
    """How many of the person's sites are not after each time, or before it.

    People are in rising order.
    """
    out = np.empty(person.size, dtype=np.int64)
    bounds = np.flatnonzero(np.diff(person, prepend=-1, append=-1))
    for a, b in pairwise(bounds):
        sites = layout.curve_slice(person[a : a + 1])
        out[a:b] = np.searchsorted(layout.times[sites], offsets[a:b], "left" if before else "right")
    return out


def _filtered(
    fit: Fit, person: Ints, offsets: Array, known: Ints, rows: EffectRows | None
) -> Marginals:
    """Abilities at pairs, each by the first `known` instants of its person."""
    # people of whom nothing is known yet are of their own group
    unseen = np.full(person.size, -1)
    mix = ability_marginals(fit, unseen, offsets, fit.group_of(person), rows)
    weights, means, sds = mix.weights.copy(), mix.means.copy(), mix.sds.copy()
    seen = np.flatnonzero(known)
    if seen.size:
        sites = truncated_sites(fit.sites, person[seen], known[seen])
        posterior, reach = e_step_with_items_fixed(fit, sites, [None] * len(fit.kernels))
        copies = replace(
            fit,
            ep=posterior.ep,
            weights=posterior.weights,
            max_abs_ability=reach,
            known_sites=sites,
        )
        found = ability_marginals(
            copies,
            np.arange(seen.size),
            offsets[seen],
            rows=None if rows is None else rows.select(seen),
        )
        weights[:, seen] = found.weights
        means[:, seen] = found.means
        sds[:, seen] = found.sds
    return Marginals(weights, means, sds)


def truncated_sites(sites: PeopleSites, person: Ints, known: Ints) -> PeopleSites:
    """Copies of people's sites, each with the first `known` of them only."""
    layout = sites.layout
    first = layout.site_start[person]
    start = starts_of(known)
    chosen = np.repeat(first - start[:-1], known) + np.arange(start[-1])
    factors = take_rows(layout.factor_start, chosen)
    response = layout.factor_response[factors]
    owner = np.repeat(np.arange(person.size), known)
    owner = np.repeat(owner, np.diff(layout.factor_start)[chosen])
    changed = (np.diff(response, prepend=-1) != 0) | (np.diff(owner, prepend=-1) != 0)
    copies = SiteLayout(
        layout.times[chosen],
        start,
        starts_of(np.diff(layout.factor_start)[chosen]),
        layout.factor_row[factors],
        layout.factor_weight[factors],
        np.cumsum(changed) - 1,
    )
    effects = sites.effects
    return replace(
        sites,
        layout=copies,
        constant=np.zeros(person.size),
        group=sites.group[person],
        effects=None if effects is None else effects.select(person, chosen),
    )
