"""One person's ability as answers come in.

Each new answer is grafted onto the converged sites, items and priors frozen.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from dynaesti.core import Array, Ints, inserted
from dynaesti.data import (
    Covariate,
    Responses,
    freed_label,
    index_of,
    label_text,
    parse_iso,
)
from dynaesti.errors import InputError
from dynaesti.inference import (
    Marginals,
    OnlineCurve,
    OnlineSites,
    SiteFactors,
    depends_on_span,
    level_matern32_form,
    start_online,
)
from dynaesti.results.frames import band_frame
from dynaesti.results.latent import cohort_roots

if TYPE_CHECKING:
    from dynaesti.results.fit import Fit

# features reach so far beyond the data, in spans: until then a new answer needs only one new column
AHEAD = 0.25


@dataclass(frozen=True, eq=False)
class LivePerson:
    """One person whose ability is followed as answers come in, see `Fit.live`.

    Each new answer is grafted onto the person's converged sites; items and population stay as they
    are. A LivePerson never changes: `add` returns a new one.

    Parameters
    ----------
    fit : Fit
        Items and population.
    times : array (n_sites,)
        Times of the answers on the fit's clock, rising.
    factor_start : int array (n_sites + 2,)
        First factor of each site; a last group holds all factors once more, for constant kernels.
    factor_row : int array (n_factors,)
        Row of each factor in the fit's likelihood table.
    factor_weight : array (n_factors,)
        Weight of each factor.
    curves : tuple of OnlineCurve
        The person's curve under each kernel.
    horizon : (float, float)
        Times that the present features cover.
    group : int, default 0
        Number of the person's group.
    person : int, default 0
        Number of the person in the fit.
    x : csr_array (n_sites, n_columns), optional
        Columns of effects at the sites, where the fit has effects.
    known : Responses, optional
        All answers of the person so far, by which practice counts.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> person = dy.DynAEsti("2PL").fit(table).live("p00")
    >>> before = person.ability([101.0])["mean"][0]
    >>> after = person.add(101.0, "i3", 1).ability([101.0])["mean"][0]
    >>> bool(after > before)
    True
    """

    fit: Fit
    times: Array
    factor_start: Ints
    factor_row: Ints
    factor_weight: Array
    curves: tuple[OnlineCurve, ...]
    horizon: tuple[float, float]
    group: int = 0
    person: int = 0
    x: csr_array | None = None
    known: Responses | None = None

    def add(
        self, time: Any, item: Any, resp: float, weight: float = 1.0, **columns: Any
    ) -> LivePerson:
        """The person with one more answer.

        Parameters
        ----------
        time : time
            As in the fit's data.
        item : label
        resp : float
            The response.
        weight : float, default 1.0
            How often the answer counts, at least 0.
        **columns
            Columns that the fit's effects need, such as ``rater="B"``.

        Returns
        -------
        LivePerson

        Raises
        ------
        InputError
            If the item is unknown, the response is not one of its own, a column of the effects is
            absent, or the answers lead beyond the fit's likelihood tables.
        """
        offset = float(self.fit.to_clock([time])[0])
        numbers = isinstance(resp, int | float | np.number) and isinstance(
            weight, int | float | np.number
        )
        if not numbers or not weight >= 0:
            raise InputError(
                f"live: expected a number as response and a weight of at least 0, got {resp!r} and "
                f"{weight!r}"
            )
        item = self._freed(item, offset, columns)
        rows, weights = response_factors(self.fit, item, resp, weight)
        answer = one_answer(self, offset, item, resp, columns)
        site = int(np.searchsorted(self.times, offset))
        same = _site_of(self, offset, answer.x)
        seen: dict[str, Any] = {"known": answer.known}
        if same is not None:  # joins that instant
            joined = self._with_factors(same, self.factor_start[:-1], rows, weights, **seen)
            return joined.converged(same)
        times = inserted(self.times, site, offset)
        start = np.concatenate([self.factor_start[: site + 1], self.factor_start[site:-1]])
        there = prior_mean_at(self.fit, np.array([offset]), self.group, answer.x)
        mean = 0.0 if there is None else float(there[0])
        curves = tuple(curve.with_site(times, site, mean) for curve in self.curves)
        if self.x is not None and answer.x is not None:
            parts = [self.x[:site], answer.x, self.x[site:]]
            seen["x"] = csr_array(vstack(parts, format="csr"))
        grown = self._with_factors(site, start, rows, weights, times=times, curves=curves, **seen)
        within = self.horizon[0] <= offset <= self.horizon[1]
        return grown.converged(site) if within else with_new_features(grown)

    def _freed(self, item: Any, offset: float, columns: Mapping[str, Any]) -> Any:
        """The item's label, that of its part where it is split."""
        r = self.fit.responses
        date = offset + float(r.origin[self.person])

        def late(time: Any) -> bool:
            return date >= float(r.axis.offsets(parse_iso([time], "free"), "free")[0])

        return freed_label(self.fit.options.get("free"), item, late, columns)

    def _with_factors(
        self, site: int, start: Ints, rows: Ints, weights: Array, **changes: Any
    ) -> LivePerson:
        """The person with further factors at a site, and other fields changed at once."""
        index = int(start[site + 1])
        half = int(start[-1])
        row = np.concatenate([self.factor_row[:index], rows, self.factor_row[index:half]])
        weight = np.concatenate(
            [self.factor_weight[:index], weights, self.factor_weight[index:half]]
        )
        ends = np.append(start, 2 * row.size)
        ends[site + 1 : -1] += rows.size
        return replace(
            self,
            factor_start=ends,
            factor_row=np.concatenate([row, row]),
            factor_weight=np.concatenate([weight, weight]),
            **changes,
        )

    def converged(self, changed: int | None) -> LivePerson:
        """The person with EP converged from the present sites.

        Parameters
        ----------
        changed : int or None
            Number of the only site that has changed; None: any may have.

        Returns
        -------
        LivePerson

        Raises
        ------
        InputError
            If the answers lead beyond the fit's likelihood tables.
        """
        table = self.fit.likelihood_table
        factors = SiteFactors(
            np.arange(self.times.size), self.factor_start, self.factor_row, self.factor_weight
        )
        found = tuple(curve.converged(factors, table, changed) for curve in self.curves)
        reach = max(_reach(curve.online) for curve in found)
        if reach > -table.start:
            raise InputError(
                f"live: the answers lead {reach:.3g} standard deviations from the population's "
                "mean, beyond what this fit's tables cover; use update(frame)"
            )
        return replace(self, curves=found)

    @property
    def weights(self) -> Array:
        """Posterior weights of the kernels for this person, (n_kernels,)."""
        with np.errstate(divide="ignore"):
            log_population = np.log(self.fit.population)
        logs = log_population + np.array([curve.log_evidence for curve in self.curves])
        return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))

    def ability(self, at: Any, level: float = 0.7) -> Any:
        """Ability at times, given all answers so far.

        Parameters
        ----------
        at : times
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        frame
            Columns time, mean, sd, lower, upper.
        """
        keys = {"time": self.fit.from_clock(self.fit.to_clock(at))}
        return band_frame(self.marginals(at), keys, level, kind=self.fit.frame)

    def marginals(self, at: Any) -> Marginals:
        """Reported ability at times.

        Parameters
        ----------
        at : times (n_times,)

        Returns
        -------
        Marginals
            A mixture of normals at each time, (n_kernels, n_times).
        """
        fit = self.fit
        offsets = fit.to_clock(at)
        pairs = [curve.marginals(self.times, offsets) for curve in self.curves]
        means = np.array([mean for mean, _ in pairs])
        variances = np.array([variance for _, variance in pairs])
        x = fit.sites.columns_of_ability(np.full(offsets.size, self.person), offsets)
        mean = prior_mean_at(fit, offsets, self.group, x)
        if mean is not None:
            means = means + mean
            variances = variances + self._cohort_variances(offsets, x)
        sds = np.sqrt(variances)
        return Marginals(self.weights[:, None], fit.shift + fit.gain * means, fit.gain * sds)

    def _cohort_variances(self, offsets: Array, x: csr_array | None) -> Array:
        """Variances of abilities from the cohort's, under each kernel: see `latent_abilities`."""
        cohort = self.fit.priors.cohort
        assert cohort is not None
        roots = cohort_roots(self.fit)
        at_sites = cohort.design(self.times, np.full(self.times.size, self.group), self.x) @ roots
        at_points = cohort.design(offsets, np.full(offsets.size, self.group), x) @ roots
        drift = cohort.drift_variance(offsets, np.full(offsets.size, self.group))
        out = np.tile(drift, (len(self.curves), 1))
        for k, curve in enumerate(self.curves):
            for at_site, at_point in zip(at_sites.T, at_points.T, strict=True):
                out[k] += (at_point - curve.response(self.times, offsets, at_site)) ** 2
        return out


def _reach(online: OnlineSites) -> float:
    """How far from 0 an ability goes, three standard deviations included."""
    sd = np.sqrt(np.maximum(online.posterior.variance, 0.0))
    return float((np.abs(online.mean + online.posterior.mean) + 3 * sd).max(initial=0.0))


def prior_mean_at(fit: Fit, offsets: Array, group: int, x: csr_array | None = None) -> Array | None:
    """The cohort's mean at times, for a person of a group; None where it is 0.

    `x` (n_times, n_columns) are columns of effects.
    """
    cohort = fit.priors.cohort
    return None if cohort is None else cohort.mean(offsets, np.full(offsets.size, group), x)


class NewAnswer(NamedTuple):
    """What effects need of one more answer."""

    x: csr_array | None  # (1, n_columns) its columns
    known: Responses | None  # all answers of the person, this one included


def one_answer(
    live: LivePerson, offset: float, item: Any, resp: float, columns: Mapping[str, Any]
) -> NewAnswer:
    """One more answer, with the columns that the fit's effects need.

    Raises
    ------
    InputError
        If a column is absent, has no value that can be used, or nothing needs it.
    """
    fit = live.fit
    effects = fit.priors.effects
    kinds = fit.covariate_kinds
    surplus = [name for name in columns if name not in kinds]
    if surplus:
        raise InputError(f"live: no effect of the fit needs the column {surplus[0]!r}")
    if effects is None or live.known is None:
        return NewAnswer(None, None)
    absent = [name for name in kinds if name not in columns]
    if absent:
        raise InputError(
            f"live: the fit's effects need the column {absent[0]!r}; give it, as in "
            f"add(…, {absent[0]}=…)"
        )
    is_late = offset < live.times[-1]
    if is_late and any(f.function == "practice" for term in effects.formula.terms for f in term):
        raise InputError(
            "live: an answer before others changes how much practice those had; use update(frame)"
        )
    covariates = {name: _single(name, kind, columns[name]) for name, kind in kinds.items()}
    template = live.known.select_responses(np.zeros(1, dtype=np.int64))
    number = int(index_of(fit.responses.items, [item], "item")[0])
    new = replace(
        template,
        item=np.array([number]),
        resp=np.array([float(resp)]),
        offsets=np.array([offset + float(template.origin[0])]),
        covariates=covariates,
    )
    return NewAnswer(effects.rows(new, live.known).x, live.known.append(new))


def _single(name: str, kind: str, value: Any) -> Covariate:
    """One value of a column."""
    if kind == "category":
        return Covariate(np.zeros(1), (label_text(value).strip(),))
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise InputError(f"live: {name}: expected a number, got {value!r}")
    return Covariate(np.array([number]))


def _site_of(live: LivePerson, offset: float, x: csr_array | None) -> int | None:
    """The site at this time whose answers have the same columns of effects; None without one."""
    at = np.flatnonzero(live.times == offset)
    if x is None or live.x is None:
        return int(at[0]) if at.size else None
    same = [k for k in at if not (abs(live.x[[k]] - x).sum() > 0)]
    return int(same[0]) if same else None


def response_factors(fit: Fit, item: Any, resp: float, weight: float) -> tuple[Ints, Array]:
    """Likelihood rows and weights of one response."""
    number = fit.item_numbers.get(item) if isinstance(item, Hashable) else None
    if number is None:  # unknown, or known by another name: 2.0 or numpy's 2
        number = int(index_of(fit.responses.items, [item], "item")[0])
    block_of, index = fit.item_index
    block = fit.bank.blocks[int(block_of[number])]
    first = block.first_row + int(index[number]) * block.depth
    code = float(fit.coding.code_one(number, float(resp)))
    if block.model.has_value_rows:
        return np.array([first + int(code)]), np.array([float(weight)])
    amount = np.array([code])
    terms, _ = block.model.terms(amount, block.values[[int(index[number])]])
    return first + block.model.term_rows(amount, block.size)[0], weight * terms[0]


def with_new_features(live: LivePerson) -> LivePerson:
    """The person with features that reach beyond the data, and EP converged."""
    first = float(live.times[0])
    last = float(live.times[-1])
    horizon = (first, last + (AHEAD * (last - first) if last > first else 1.0))
    mean = prior_mean_at(live.fit, live.times, live.group, live.x)
    curves = tuple(
        start_online(kernel, live.times, horizon, curve.online.site, mean)
        for kernel, curve in zip(live.fit.kernels, live.curves, strict=True)
    )
    return replace(live, horizon=horizon, curves=curves).converged(None)


def _refuse_what_cannot_grow(fit: Fit) -> None:
    """Refuse fits whose curves cannot take an answer at a time."""
    unfit = [
        kernel
        for kernel in fit.kernels
        if depends_on_span(kernel)
        or not (kernel.low_rank or kernel.static or level_matern32_form(kernel))
    ]
    if unfit:
        raise InputError(
            f"live: {unfit[0].describe()} has no form that grows an answer at a time; use "
            "update(frame)"
        )


def live_person(fit: Fit, person: int) -> LivePerson:
    """A person of a fit, ready for further answers."""
    _refuse_what_cannot_grow(fit)
    who = np.array([person])
    layout = fit.sites.layout
    sites = layout.curve_slice(who)
    first = int(layout.factor_start[sites.start])
    last = int(layout.factor_start[sites.stop])
    row = layout.factor_row[first:last]
    weight = layout.factor_weight[first:last]
    times = layout.times[sites]
    group = int(fit.sites.group[person])
    at_sites = fit.sites.columns_of_effects
    x = None if at_sites is None else csr_array(at_sites[sites])
    mean = prior_mean_at(fit, times, group, x)
    found = [
        result.sites.select(fit.sites.for_kernel(kernel, fit.priors).curve_slice(who))
        for kernel, result in zip(fit.kernels, fit.ep, strict=True)
    ]
    curves = tuple(
        start_online(kernel, times, (0.0, 1.0), own if mean is None else own.about(mean), mean)
        for kernel, own in zip(fit.kernels, found, strict=True)
    )
    start = np.append(layout.factor_start[sites.start : sites.stop + 1] - first, 2 * row.size)
    return with_new_features(
        LivePerson(
            fit,
            times,
            start,
            np.concatenate([row, row]),
            np.concatenate([weight, weight]),
            curves,
            (0.0, 0.0),
            group,
            person,
            x,
            None if x is None else fit.responses.select_people(who),
        )
    )
