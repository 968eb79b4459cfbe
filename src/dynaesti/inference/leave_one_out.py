"""Leave-one-out densities: each emission's predictive density and moments without it.

An emission that is alone at its instant has them already: they are those of the cavity. At an
instant with several emissions, and for a constant curve, where all emissions form one group, the
likelihoods of the others multiply with the cavity on quadrature nodes, which are shared between
emissions where that is accurate enough.
"""

from dataclasses import dataclass

import numpy as np

from dynaesti.core import Array, Ints, Ragged
from dynaesti.inference.moments.adaptive import (
    ATTEMPTS,
    DONE,
    Brackets,
    assess_brackets,
    spread_nodes,
)
from dynaesti.inference.moments.table import NODES, WIDTH
from dynaesti.inference.single_curve import GraftedCurve
from dynaesti.inference.site_likelihood import BLOCK, SiteLikelihood

ALONE = 24  # groups of up to so many emissions use separate nodes for each


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out results of every emission; all arrays have shape (n_emissions,).

    Log predictive density of the emission, and mean and variance of the latent curve at its
    instant, all given the other emissions.
    """

    log_density: Array
    mean: Array
    var: Array


def leave_one_out_densities(likelihood: SiteLikelihood, component: GraftedCurve) -> LeaveOneOut:
    """Leave each emission out of one component in turn."""
    groups = likelihood.groups
    count = len(likelihood.emissions)
    out = LeaveOneOut(np.empty(count), np.empty(count), np.empty(count))
    sizes = np.diff(groups.start)[component.groups]
    _single(likelihood, component, np.flatnonzero(sizes == 1), out)
    for site in np.flatnonzero(sizes > 1):
        _several(likelihood, component, int(site), out)
    return out


def _single(
    likelihood: SiteLikelihood, component: GraftedCurve, sites: Ints, out: LeaveOneOut
) -> None:
    """Fill in the sites with one emission, whose results are those of the cavity."""
    members = likelihood.groups.values[likelihood.groups.start[component.groups[sites]]]
    mean = component.ep.cavity.mean[sites]
    var = component.ep.cavity.variance[sites]
    log_z = component.ep.log_z[sites].copy()
    exact = likelihood.is_gaussian[members]
    log_z[exact] = likelihood.gaussian_log_density(members[exact], mean[exact], var[exact])
    out.log_density[members] = log_z
    out.mean[members] = mean
    out.var[members] = var


def _several(
    likelihood: SiteLikelihood, component: GraftedCurve, site: int, out: LeaveOneOut
) -> None:
    """Fill in a group of several emissions: log Z with all of them minus log Z without each."""
    members = likelihood.groups.row(int(component.groups[site]))
    cavity_mean = float(component.ep.cavity.mean[site])
    cavity_var = float(component.ep.cavity.variance[site])
    total_z, mean, var = _moments_without(likelihood, members, None, cavity_mean, cavity_var)
    if members.size <= ALONE:
        for member in members:
            log_z, out.mean[member], out.var[member] = _moments_without(
                likelihood, members, int(member), cavity_mean, cavity_var
            )
            out.log_density[member] = total_z - log_z
        return
    # many members: leaving one out hardly moves the distribution, so all share wide nodes
    reach = 1.5 * WIDTH * np.sqrt(var)
    x = np.linspace(mean - reach, mean + reach, 8 * NODES)
    log_w = -0.5 * (x - cavity_mean) ** 2 / cavity_var
    every = Ragged(np.array([0, members.size]), members)
    log_w = log_w + likelihood.group_values(np.array([0]), x[None], every)[0]
    for a in range(0, members.size, max(1, BLOCK // x.size)):
        rows = members[a : a + max(1, BLOCK // x.size)]
        own = likelihood.evaluate(rows, np.broadcast_to(x, (rows.size, x.size)))
        rest = log_w - np.where(np.isfinite(own), own, 0.0)
        top = rest.max(axis=1, keepdims=True)
        p = np.exp(rest - top)
        mass = p.sum(axis=1)
        out.mean[rows] = p @ x / mass
        out.var[rows] = np.einsum("ij,ij->i", p, (x - out.mean[rows, None]) ** 2) / mass
        log_z = top[:, 0] + np.log(mass * (x[1] - x[0])) - 0.5 * np.log(2 * np.pi * cavity_var)
        out.log_density[rows] = total_z - log_z
        # separate nodes for an emission that has zero likelihood at some of the shared ones, or
        # without which the distribution is wider than these
        for row in rows[(rest[:, [0, -1]] > top - 12).any(axis=1) | ~np.isfinite(own).all(axis=1)]:
            log_one, out.mean[row], out.var[row] = _moments_without(
                likelihood, members, int(row), cavity_mean, cavity_var
            )
            out.log_density[row] = total_z - log_one


def _moments_without(
    likelihood: SiteLikelihood, members: Ints, left_out: int | None, mean: float, var: float
) -> tuple[float, float, float]:
    """(log Z, mean, variance) of the cavity times all members but one (None: all members)."""
    kept = members if left_out is None else members[members != left_out]
    group = Ragged(np.array([0, kept.size]), kept)
    reach = WIDTH * np.sqrt(var)
    brackets = Brackets(np.array([mean - reach]), np.array([mean + reach]), np.array([NODES]))
    for _ in range(ATTEMPTS):
        x = spread_nodes(brackets.lo, brackets.hi, int(brackets.nodes[0]))
        log_w = likelihood.group_values(np.array([0]), x, group) - 0.5 * (x - mean) ** 2 / var
        found, verdict = assess_brackets(log_w, brackets)
        if verdict[0] == DONE:
            break
    log_z = found.log_z[0] - 0.5 * np.log(2 * np.pi * var)
    return float(log_z), float(found.mean[0]), float(found.variance[0])
