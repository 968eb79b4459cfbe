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
from dynaesti.priors.weights import WeightPosterior, pack
from dynaesti.rows import match_table

if TYPE_CHECKING:
    from dynaesti.results import Fit

TOLERANCE = 1e-6
AHEAD = 0.25  # features reach so far beyond the data, in spans: until then a new answer needs one new column only


@dataclass(frozen=True, eq=False)
class Live:
    """A person's settled sites under every prior. `add` returns the person with one answer more; `ability` asks at any times."""

    fit: Fit
    times: Array  # of the sites, in the order they came
    rows: tuple[Ints, ...]  # members of each site
    coefs: tuple[Array, ...]
    bases: tuple[Basis, ...]
    features: tuple[Array, ...]  # (sites, rank) of each prior; a constant one has a single site
    precision: tuple[Array, ...]
    shift: tuple[Array, ...]
    log_evidence: Array  # (priors,)
    horizon: tuple[float, float]

    def add(self, time: Any, item: Any, resp: float, weight: float = 1.0) -> Live:
        """One answer more."""
        offset = float(self.fit._offsets([time])[0])
        if not isinstance(resp, int | float | np.number) or not isinstance(weight, int | float | np.number) or not weight >= 0:
            raise InputError(f"live: expected a number as response and a weight of at least 0, got {resp!r} and {weight!r}")
        rows, coefs = member_terms(self.fit, item, resp, weight)
        known = np.flatnonzero(self.times == offset)
        if known.size:  # joins the answers of that instant
            k = int(known[0])
            joined = (*self.rows[:k], np.concatenate([self.rows[k], rows]), *self.rows[k + 1:])
            scaled = (*self.coefs[:k], np.concatenate([self.coefs[k], coefs]), *self.coefs[k + 1:])
            return replace(self, rows=joined, coefs=scaled).settled()
        kernels = self.fit.kernels
        grown = replace(self, times=np.append(self.times, offset), rows=(*self.rows, rows), coefs=(*self.coefs, coefs),
                        precision=tuple(p if k.static else np.append(p, 0.0) for p, k in zip(self.precision, kernels, strict=True)),
                        shift=tuple(s if k.static else np.append(s, 0.0) for s, k in zip(self.shift, kernels, strict=True)))
        if not self.horizon[0] <= offset <= self.horizon[1]:
            return with_features(grown).settled()
        here = np.array([offset])
        columns = tuple(f if k.static else np.vstack([f, b.features(here)])
                        for f, b, k in zip(self.features, self.bases, self.fit.kernels, strict=True))
        return replace(grown, features=columns).settled()

    def settled(self) -> Live:
        """Grafting from the present sites, all priors in one call."""
        fit, table = self.fit, self.fit.row_table
        sizes = np.array([r.size for r in self.rows])
        flat_rows, flat_coefs = np.concatenate(self.rows), np.concatenate(self.coefs)
        start = np.concatenate([[0], np.cumsum(sizes), [2 * flat_rows.size]]).astype(np.int64)  # the last group holds everything
        group = np.concatenate([np.array([sizes.size]) if k.static else np.arange(sizes.size) for k in fit.kernels])
        rows, coefs = np.concatenate([flat_rows, flat_rows]), np.concatenate([flat_coefs, flat_coefs])

        def match(sites: Ints, cav_mean: Array, cav_var: Array, log_z: Array, mean: Array, var: Array) -> None:
            if match_table(sites, group, start, rows, coefs, table.log_lik, table.lik, table.top, table.start, table.step, cav_mean,
                           cav_var, log_z, mean, var) >= 0:
                raise InputError("the answers at one instant are impossible at every ability; check the responses")

        solver = pack(list(self.features))
        flat = np.zeros(group.size)
        nugget = np.array([k.instant_var for k in fit.kernels])
        found = graft(Problem(solver, match, flat, flat, nugget, np.ones(group.size, dtype=bool)),
                      (np.concatenate(self.precision), np.concatenate(self.shift)), TOLERANCE)
        cuts = solver.site_start[1:-1]
        return replace(self, precision=tuple(np.split(found.precision, cuts)), shift=tuple(np.split(found.shift, cuts)),
                       log_evidence=found.log_evidence)

    @property
    def weights(self) -> Array:
        """Weights of the priors for this person."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.fit.population) + self.log_evidence
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
        for k, kernel in enumerate(fit.kernels):
            tau, nu = seen_by_curve(self.precision[k], self.shift[k], kernel.instant_var)
            mean, var = WeightPosterior(kernel, self.bases[k], self.features[k], tau, nu).marginals(offsets)
            means.append(mean)
            variances.append(var)
        return Mixture(self.weights[:, None], fit.shift + fit.gain * np.array(means), fit.gain * np.sqrt(np.array(variances)))


def member_terms(fit: Fit, item: Any, resp: float, weight: float) -> tuple[Ints, Array]:
    """Rows and coefficients of one answer."""
    number = int(find(fit.responses.items, [item], "item")[0])
    block_of, place = fit.item_places
    block = fit.bank.blocks[int(block_of[number])]
    first = block.first_row + int(place[number]) * block.depth
    code = float(fit.coding.code_one(number, float(resp)))
    if block.model.categorical or isinstance(block.model, OwnModel):
        return np.array([first + int(code)]), np.array([float(weight)])
    terms, _ = block.model.terms(np.array([code]))
    return first + np.arange(block.depth), weight * terms[0]


def with_features(live: Live) -> Live:
    """Features anew, reaching beyond the data."""
    first, last = float(live.times.min()), float(live.times.max())
    margin = AHEAD * (last - first) if last > first else 1.0
    horizon = (first, last + margin)
    bases = tuple(kernel_basis(kernel, *horizon) for kernel in live.fit.kernels)
    middle = np.array([0.5 * (first + last)])
    features = tuple(b.features(middle if k.static else live.times) for b, k in zip(bases, live.fit.kernels, strict=True))
    return replace(live, bases=bases, features=features, horizon=horizon)


def live_person(fit: Fit, person: int) -> Live:
    """A person of a fit, ready for further answers."""
    odd = [kernel for kernel in fit.kernels if not kernel.low_rank or needs_place(kernel)]
    if odd:
        raise InputError(f"live: {odd[0].describe()} has no fixed features; use update(frame)")
    data = fit.answers
    sites = range(int(data.site_start[person]), int(data.site_start[person + 1]))
    members = [slice(int(data.member_start[s]), int(data.member_start[s + 1])) for s in sites]
    own = [slice(int(d.site_start[person]), int(d.site_start[person + 1])) for d in (data.for_kernel(k) for k in fit.kernels)]
    live = Live(fit, data.times[sites.start:sites.stop], tuple(data.member_row[m] for m in members),
                tuple(data.member_coef[m] for m in members), (), (),
                tuple(g.precision[w] for g, w in zip(fit.grafts, own, strict=True)),
                tuple(g.shift[w] for g, w in zip(fit.grafts, own, strict=True)), np.zeros(len(fit.kernels)), (0.0, 0.0))
    return with_features(live).settled()
