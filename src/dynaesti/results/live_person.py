"""One person's ability as answers come in.

Each new answer is grafted onto the settled sites, items and priors frozen.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaesti.core import Array, Ints
from dynaesti.data import index_of, make_frame
from dynaesti.errors import InputError
from dynaesti.inference import (
    Marginals,
    Members,
    OnlineCurve,
    check_level,
    depends_on_span,
    level_matern32_form,
    start_online,
)
from dynaesti.model import BUILT_IN, CustomItemModel

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

# features reach so far beyond the data, in spans: until then a new answer needs one new column
# only
AHEAD = 0.25


@dataclass(frozen=True, eq=False)
class LivePerson:
    """A person's settled sites under every prior.

    `add` returns the person with one answer more; `ability` asks at any times.
    """

    fit: Fit
    times: Array  # of the sites, rising
    factor_start: (
        Ints  # of each site; a last group holds all members once more, for priors that are constant
    )
    factor_row: Ints
    factor_weight: Array
    online_curves: tuple[OnlineCurve, ...]
    horizon: tuple[float, float]

    def add(self, time: Any, item: Any, resp: float, weight: float = 1.0) -> LivePerson:
        """One answer more."""
        offset = float(self.fit._offsets([time])[0])
        if (
            not isinstance(resp, int | float | np.number)
            or not isinstance(weight, int | float | np.number)
            or not weight >= 0
        ):
            raise InputError(
                f"live: expected a number as response and a weight of at least 0, got {resp!r} "
                f"and {weight!r}"
            )
        rows, coefs = member_terms(self.fit, item, resp, weight)
        site = int(np.searchsorted(self.times, offset))
        if (
            site < self.times.size and self.times[site] == offset
        ):  # joins the answers of that instant
            return self._joined(site, self.factor_start[:-1], self.times, rows, coefs).settled(site)
        times = np.concatenate([self.times[:site], [offset], self.times[site:]])
        start = np.concatenate([self.factor_start[: site + 1], self.factor_start[site:-1]])
        grown = self._joined(site, start, times, rows, coefs)
        if not self.horizon[0] <= offset <= self.horizon[1]:
            return refreshed(
                replace(
                    grown, online_curves=tuple(s.grown(times, site) for s in self.online_curves)
                )
            )
        return replace(
            grown, online_curves=tuple(s.grown(times, site) for s in self.online_curves)
        ).settled(site)

    def _joined(self, site: int, start: Ints, times: Array, rows: Ints, coefs: Array) -> LivePerson:
        """The answers with further members at a site."""
        place = int(start[site + 1])
        half = int(start[-1])
        row = np.concatenate([self.factor_row[:place], rows, self.factor_row[place:half]])
        coef = np.concatenate([self.factor_weight[:place], coefs, self.factor_weight[place:half]])
        ends = np.append(start, 2 * row.size)
        ends[site + 1 : -1] += rows.size
        return LivePerson(
            self.fit,
            times,
            ends,
            np.concatenate([row, row]),
            np.concatenate([coef, coef]),
            self.online_curves,
            self.horizon,
        )

    def settled(self, changed: int | None) -> LivePerson:
        """Grafting from the present sites, of which one has changed (None: any may have)."""
        members = Members(
            np.arange(self.times.size),
            self.factor_start,
            self.factor_row,
            self.factor_weight,
            *_table(self.fit),
        )
        found = tuple(s.settled(members, changed) for s in self.online_curves)
        far = max(
            float(
                (np.abs(s.memory[2]) + 3 * np.sqrt(np.maximum(s.memory[3], 0.0))).max(initial=0.0)
            )
            for s in found
        )
        if far > -self.fit.likelihood_table.start:
            raise InputError(
                f"live: the answers lead {far:.3g} standard deviations from the population's "
                f"mean, beyond what this fit's "
                "tables hold; use update(frame)"
            )
        return LivePerson(
            self.fit,
            self.times,
            self.factor_start,
            self.factor_row,
            self.factor_weight,
            found,
            self.horizon,
        )

    @property
    def weights(self) -> Array:
        """Weights of the priors for this person."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.fit.population) + np.array(
                [strand.log_evidence for strand in self.online_curves]
            )
        return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))

    def ability(self, at: Any, level: float = 0.7) -> Any:
        """A frame: time, mean, sd, lower, upper."""
        check_level(level)
        mix = self.marginals(at)
        link = BUILT_IN["identity"]
        lower, upper = mix.quantiles(np.array([0.5 - level / 2, 0.5 + level / 2]), link)
        return make_frame(
            {
                "time": self.fit._restored(self.fit._offsets(at)),
                "mean": mix.mean(link),
                "sd": mix.sd(link),
                "lower": lower,
                "upper": upper,
            },
            self.fit.frame,
        )

    def marginals(self, at: Any) -> Marginals:
        """Reported ability at the times."""
        offsets = self.fit._offsets(at)
        fit = self.fit
        means = []
        variances = []
        for one in self.online_curves:
            mean, var = one.marginals(self.times, offsets)
            means.append(mean)
            variances.append(var)
        return Marginals(
            self.weights[:, None],
            fit.shift + fit.gain * np.array(means),
            fit.gain * np.sqrt(np.array(variances)),
        )


def member_terms(fit: Fit, item: Any, resp: float, weight: float) -> tuple[Ints, Array]:
    """Rows and coefficients of one answer."""
    number = fit.item_numbers.get(item) if isinstance(item, Hashable) else None
    if number is None:  # unknown, or known by another name: 2.0 or numpy's 2
        number = int(index_of(fit.responses.items, [item], "item")[0])
    block_of, place = fit.item_places
    block = fit.bank.blocks[int(block_of[number])]
    first = block.first_row + int(place[number]) * block.depth
    code = float(fit.coding.code_one(number, float(resp)))
    if block.model.categorical or isinstance(block.model, CustomItemModel):
        return np.array([first + int(code)]), np.array([float(weight)])
    terms, _ = block.model.terms(np.array([code]), block.values[[int(place[number])]])
    return first + np.arange(block.depth), weight * terms[0]


def _table(fit: Fit) -> tuple[Array, Array, Array, float, float]:
    table = fit.likelihood_table
    return table.log_lik, table.lik, table.top, table.start, table.step


def refreshed(live: LivePerson) -> LivePerson:
    """Features anew, reaching beyond the data, and all sites settled."""
    first = float(live.times[0])
    last = float(live.times[-1])
    horizon = (first, last + (AHEAD * (last - first) if last > first else 1.0))
    online_curves = tuple(
        start_online(k, live.times, horizon, s.memory[0], s.memory[1])
        for k, s in zip(live.fit.kernels, live.online_curves, strict=True)
    )
    return replace(live, horizon=horizon, online_curves=online_curves).settled(None)


def live_person(fit: Fit, person: int) -> LivePerson:
    """A person of a fit, ready for further answers."""
    odd = [
        kernel
        for kernel in fit.kernels
        if depends_on_span(kernel)
        or not (kernel.low_rank or kernel.static or level_matern32_form(kernel))
    ]
    if odd:
        raise InputError(
            f"live: {odd[0].describe()} has no form that grows an answer at a time; use "
            f"update(frame)"
        )
    data = fit.answers
    sites = slice(int(data.site_start[person]), int(data.site_start[person + 1]))
    first = int(data.factor_start[sites.start])
    last = int(data.factor_start[sites.stop])
    row = data.factor_row[first:last]
    coef = data.factor_weight[first:last]
    own = [
        slice(int(d.site_start[person]), int(d.site_start[person + 1]))
        for d in (data.for_kernel(k) for k in fit.kernels)
    ]
    times = data.times[sites]
    online_curves = tuple(
        start_online(k, times, (0.0, 1.0), g.precision[w], g.shift[w])
        for k, g, w in zip(fit.kernels, fit.grafts, own, strict=True)
    )
    start = np.append(data.factor_start[sites.start : sites.stop + 1] - first, 2 * row.size)
    return refreshed(
        LivePerson(
            fit,
            times,
            start,
            np.concatenate([row, row]),
            np.concatenate([coef, coef]),
            online_curves,
            (0.0, 0.0),
        )
    )
