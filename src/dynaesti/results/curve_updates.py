"""A curve with further emissions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dynaesti.inference import GraftedCurve, NaturalGaussian, Observations, graft_kernels
from dynaesti.model import as_emissions
from dynaesti.results.curve_diagnostics import is_corrected
from dynaesti.results.curve_effects import columns_of_update
from dynaesti.results.curve_priors import weigh_priors

if TYPE_CHECKING:
    from dynaesti.results.curve import Curve


def update_curve(curve: Curve, times: Any, emissions: Any, covariates: Any = None) -> Curve:
    """The curve with further emissions, under the same priors and from its converged sites.

    It is corrected to second order if the curve was.
    """
    more = as_emissions(emissions)
    columns = columns_of_update(curve, times, covariates, len(more))
    grown = curve.observations.joined(times, more, columns)
    starts = [
        None if c is None else _sites_at_new_instants(c, curve.observations, grown)
        for c in curve.components
    ]
    made = graft_kernels(grown, [p.kernel for p in curve.priors], curve.solver, starts)
    priors, components = weigh_priors(grown, made, [p.log_prior for p in curve.priors])
    updated = replace(curve, observations=grown, priors=priors, components=components)
    if curve.refining:
        return updated.refined_if_possible()
    return updated.refined() if is_corrected(curve) else updated


def _sites_at_new_instants(
    component: GraftedCurve, old: Observations, new: Observations
) -> NaturalGaussian:
    """Converged sites at the instants of the joined data; new instants start from nothing."""
    sites = component.ep.sites
    if component.groups.size == 1 and component.groups[0] == old.instants.size:
        return sites
    groups = old.likelihood.groups
    first = groups.values[groups.start[: old.instants.size]]  # an emission of each site
    index = new.site_of_emission[first]
    moved = NaturalGaussian.empty(new.instants.size)
    moved.precision[index] = sites.precision
    moved.shift[index] = sites.shift
    return moved
