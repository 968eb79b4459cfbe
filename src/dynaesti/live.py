"""One person's ability as answers come in: each new answer is grafted onto the settled sites, items and priors frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.arrays import Array, Ints
from dynaesti.errors import InputError
from dynaesti.frames import make_frame
from dynaesti.grafting import Problem, graft, seen_by_curve
from dynaesti.items import OwnModel
from dynaesti.labels import find
from dynaesti.links import BUILT_IN
from dynaesti.mixtures import Mixture, check_level
from dynaesti.priors import needs_place
from dynaesti.priors.features import Basis, kernel_basis
from dynaesti.priors.kernels import Kernel
from dynaesti.priors.weights import WeightPosterior, lowrank_at, lowrank_weights, pack
from dynaesti.regrafting import Members, regraft
from dynaesti.rows import match_table

if TYPE_CHECKING:
    from dynaesti.results import Fit

TOLERANCE = 1e-6
EMPTY_SITE = np.array([0.0, 0.0, *9 * [np.nan]])  # says nothing yet; its moments are to be integrated
AHEAD = 0.25  # features reach so far beyond the data, in spans: until then a new answer needs one new column only


@dataclass(frozen=True, eq=False)
class Strand:
    """The curve under one prior: its features (rank, sites), its sites, and the posterior of its weights."""

    basis: Basis
    features: Array
    memory: Array  # of the sites, see regraft
    factor: Array  # L⁻¹ of the weights' precision
    weights: Array
    log_evidence: float = 0.0

    def grown(self, offset: float) -> Strand:
        """Room for one instant more."""
        rank, n = self.features.shape
        features, memory = np.empty((rank, n + 1)), np.empty((len(self.memory), n + 1))
        features[:, :n], features[:, n] = self.features, self.basis.features(np.array([offset]))[0]
        memory[:, :n], memory[:, n] = self.memory, EMPTY_SITE
        return Strand(self.basis, features, memory, self.factor, self.weights)

    def rebased(self, basis: Basis, times: Array) -> Strand:
        """The same sites in other features; a new instant's site is empty."""
        memory = np.repeat(EMPTY_SITE[:, None], times.size, axis=1)
        memory[:2, :self.memory.shape[1]] = self.memory[:2]
        return Strand(basis, np.ascontiguousarray(basis.features(times).T), memory, np.empty((basis.rank, basis.rank)),
                      np.empty(basis.rank))


@dataclass(frozen=True, eq=False)
class Live:
    """A person's settled sites under every prior. `add` returns the person with one answer more; `ability` asks at any times."""

    fit: Fit
    times: Array  # of the sites, in the order they came
    member_start: Ints  # of each site; a last group holds all members once more, for priors that are constant
    member_row: Ints
    member_coef: Array
    strands: tuple[Strand, ...]
    horizon: tuple[float, float]

    def add(self, time: Any, item: Any, resp: float, weight: float = 1.0) -> Live:
        """One answer more."""
        offset = float(self.fit._offsets([time])[0])
        if not isinstance(resp, int | float | np.number) or not isinstance(weight, int | float | np.number) or not weight >= 0:
            raise InputError(f"live: expected a number as response and a weight of at least 0, got {resp!r} and {weight!r}")
        rows, coefs = member_terms(self.fit, item, resp, weight)
        known = np.flatnonzero(self.times == offset)
        if known.size:  # joins the answers of that instant
            site = int(known[0])
            return self._joined(site, self.times, rows, coefs).settled(site, self.strands)
        grown = self._joined(self.times.size, np.append(self.times, offset), rows, coefs)
        if not self.horizon[0] <= offset <= self.horizon[1]:
            return refreshed(grown)
        strands = tuple(s if k.static else s.grown(offset) for s, k in zip(self.strands, self.fit.kernels, strict=True))
        return grown.settled(self.times.size, strands)

    def _joined(self, site: int, times: Array, rows: Ints, coefs: Array) -> Live:
        """The answers with further members at a site, old or new (then the last)."""
        start = self.member_start[:-1] if times.size == self.times.size else np.append(self.member_start[:-1], self.member_start[-2])
        place, half = int(start[site + 1]), int(start[-1])
        row = np.concatenate([self.member_row[:place], rows, self.member_row[place:half]])
        coef = np.concatenate([self.member_coef[:place], coefs, self.member_coef[place:half]])
        start = np.append(start, 2 * row.size)
        start[site + 1:-1] += rows.size
        return Live(self.fit, times, start, np.concatenate([row, row]), np.concatenate([coef, coef]), self.strands, self.horizon)

    def settled(self, changed: int | None, strands: tuple[Strand, ...]) -> Live:
        """Grafting from given sites, of which one has changed (None: any may have)."""
        found = tuple(self._settled(s, k, changed) for s, k in zip(strands, self.fit.kernels, strict=True))
        return Live(self.fit, self.times, self.member_start, self.member_row, self.member_coef, found, self.horizon)

    def _settled(self, strand: Strand, kernel: Kernel, changed: int | None) -> Strand:
        table, n = self.fit.row_table, self.times.size
        members = Members(np.array([n]) if kernel.static else np.arange(n), self.member_start, self.member_row, self.member_coef,
                          table.log_lik, table.lik, table.top, table.start, table.step)
        memory, factor, weights = strand.memory.copy(), strand.factor.copy(), strand.weights.copy()
        site = -1 if changed is None else 0 if kernel.static else changed
        memory[4:, site] = np.nan
        nugget = np.array([kernel.instant_var])
        settled, evidence = regraft(strand.features, nugget, site, members, memory, factor, weights, TOLERANCE)
        if not settled:
            evidence = self._grafted(strand, members, nugget, memory)
            lowrank_weights(strand.features, *seen_by_curve(memory[0], memory[1], kernel.instant_var), factor, weights)
            lowrank_at(strand.features, factor, weights, memory[2], memory[3])
        return Strand(strand.basis, strand.features, memory, factor, weights, evidence)

    @staticmethod
    def _grafted(strand: Strand, members: Members, nugget: Array, memory: Array) -> float:
        """The slow way, for curves that do not follow at once: fills the sites, returns the log evidence."""

        def match(sites: Ints, cav_mean: Array, cav_var: Array, log_z: Array, mean: Array, var: Array) -> None:
            if match_table(sites, *members, cav_mean, cav_var, log_z, mean, var) >= 0:
                raise InputError("the answers at one instant are impossible at every ability; check the responses")

        flat = np.zeros(memory.shape[1])
        found = graft(Problem(pack([strand.features.T]), match, flat, flat, nugget, np.ones(flat.size, dtype=bool)),
                      (strand.memory[0], strand.memory[1]), TOLERANCE)
        memory[0], memory[1], memory[4:] = found.precision, found.shift, np.nan
        return float(found.log_evidence[0])

    @property
    def weights(self) -> Array:
        """Weights of the priors for this person."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.fit.population) + np.array([strand.log_evidence for strand in self.strands])
        return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))

    def ability(self, at: Any, level: float = 0.7) -> Any:
        """A frame: time, mean, sd, lower, upper."""
        check_level(level)
        mix, link = self.mixture(at), BUILT_IN["identity"]
        lower, upper = mix.quantiles(np.array([0.5 - level / 2, 0.5 + level / 2]), link)
        return make_frame({"time": self.fit._restored(self.fit._offsets(at)), "mean": mix.mean(link), "sd": mix.sd(link), "lower": lower,
                           "upper": upper}, self.fit.frame)

    def mixture(self, at: Any) -> Mixture:
        """Reported ability at the times."""
        offsets, fit = self.fit._offsets(at), self.fit
        means, variances = [], []
        for strand, kernel in zip(self.strands, fit.kernels, strict=True):
            tau, nu = seen_by_curve(strand.memory[0], strand.memory[1], kernel.instant_var)
            mean, var = WeightPosterior(kernel, strand.basis, strand.features.T, tau, nu).marginals(offsets)
            means.append(mean)
            variances.append(var)
        return Mixture(self.weights[:, None], fit.shift + fit.gain * np.array(means), fit.gain * np.sqrt(np.array(variances)))


def member_terms(fit: Fit, item: Any, resp: float, weight: float) -> tuple[Ints, Array]:
    """Rows and coefficients of one answer."""
    number = fit.item_numbers.get(item)
    if number is None:  # unknown, or known by another name: 2.0 or numpy's 2
        number = int(find(fit.responses.items, [item], "item")[0])
    block_of, place = fit.item_places
    block = fit.bank.blocks[int(block_of[number])]
    first = block.first_row + int(place[number]) * block.depth
    code = float(fit.coding.code_one(number, float(resp)))
    if block.model.categorical or isinstance(block.model, OwnModel):
        return np.array([first + int(code)]), np.array([float(weight)])
    terms, _ = block.model.terms(np.array([code]))
    return first + np.arange(block.depth), weight * terms[0]


def refreshed(live: Live) -> Live:
    """Features anew, reaching beyond the data, and all sites settled."""
    first, last = float(live.times.min()), float(live.times.max())
    margin = AHEAD * (last - first) if last > first else 1.0
    horizon = (first, last + margin)
    middle = np.array([0.5 * (first + last)])
    strands = tuple(s.rebased(kernel_basis(k, *horizon), middle if k.static else live.times)
                    for s, k in zip(live.strands, live.fit.kernels, strict=True))
    return replace(live, horizon=horizon).settled(None, strands)


def live_person(fit: Fit, person: int) -> Live:
    """A person of a fit, ready for further answers."""
    odd = [kernel for kernel in fit.kernels if not kernel.low_rank or needs_place(kernel)]
    if odd:
        raise InputError(f"live: {odd[0].describe()} has no fixed features; use update(frame)")
    data = fit.answers
    sites = slice(int(data.site_start[person]), int(data.site_start[person + 1]))
    first, last = int(data.member_start[sites.start]), int(data.member_start[sites.stop])
    row, coef = data.member_row[first:last], data.member_coef[first:last]
    own = [slice(int(d.site_start[person]), int(d.site_start[person + 1])) for d in (data.for_kernel(k) for k in fit.kernels)]
    nothing = np.empty((0, 0)), np.empty(0)
    strands = tuple(Strand(kernel_basis(k, 0.0, 1.0), nothing[0], np.array([g.precision[w], g.shift[w]]), *nothing)
                    for k, g, w in zip(fit.kernels, fit.grafts, own, strict=True))
    start = np.append(data.member_start[sites.start:sites.stop + 1] - first, 2 * row.size)
    live = Live(fit, data.times[sites], start, np.concatenate([row, row]), np.concatenate([coef, coef]), strands, (0.0, 0.0))
    return refreshed(live)
