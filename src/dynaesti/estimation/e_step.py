"""The E-step: every person's curve grafted onto the items' rows, under each prior of the
population's list; and the counts that follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dynaesti.core import Array, Bools, Ints, Workspace, chunks, run_in_threads, single_blas_thread
from dynaesti.errors import InputError
from dynaesti.estimation.expected_counts import add_counts, add_scores, leave_each_out
from dynaesti.estimation.population import posterior_weights
from dynaesti.estimation.site_layout import SiteLayout
from dynaesti.estimation.static_abilities import STRIDES, StaticAbilityIntegrator, Tables
from dynaesti.inference import (
    EPProblem,
    LogLikelihoodTable,
    MomentMatcher,
    Solver,
    build_batched_solver,
    graft,
    match_sites_cached,
    through_nugget,
)
from dynaesti.model import Kernel

EP_TOLERANCE_FINAL = 1e-7  # tolerance of grafting where the result is to be kept
SLACK = 0.1  # error of matching by derivative, as part of the tolerance of grafting
MAX_BUFFERS = 8  # counts are added up in so many fixed parts, at most
MOST_COUNTS = 40_000_000  # numbers in all lanes together
MOST_FEATURES = 60_000_000  # numbers of features kept between E-steps


@dataclass(frozen=True)
class Grafts:
    """One prior's grafted sites for everyone, with the cavities that belong to them."""

    precision: Array
    shift: Array
    cavity_mean: Array
    cavity_var: Array
    log_evidence: Array  # (people,)
    converged: Bools
    log_z: Array


@dataclass(frozen=True)
class EStepPosterior:
    """An E-step: grafted curves under every prior, and each person's weights of the priors."""

    grafted: tuple[Grafts, ...]
    weights: Array  # (priors, people)

    @property
    def evidence(self) -> Array:
        """Log evidence of each person under each prior: (priors, people)."""
        return np.array([g.log_evidence for g in self.grafted])


def person_weights(share: Array, grafted: tuple[Grafts, ...]) -> Array:
    """Each person's weights of the priors, given the population's."""
    return posterior_weights(share, np.array([g.log_evidence for g in grafted]))


def scale_gradient(answers: SiteLayout, kernels: list[Kernel], expected: EStepPosterior) -> Array:
    """How the abilities ask to be shifted and stretched.

    Gradients of the evidence by both (first row), and information (second).

    By the sites' (τ, ν) and the posterior (m, v) at them, the evidence's gradient by the prior's
    mean is Σ ν − τm, by the log of its scale Σ νm − τ(m² + v); divided by the information that the
    answers hold, they are Newton steps.
    """
    slope = np.zeros(2)
    size = np.zeros(2)
    for k, kernel in enumerate(kernels):
        data = answers.for_kernel(kernel)
        g = expected.grafted[k]
        mean, var = tilted_moments(g)
        weight = np.repeat(expected.weights[k], np.diff(data.site_start))
        left = g.shift - g.precision * mean
        slope += (
            float((weight * left).sum()),
            float((weight * (left * mean - g.precision * var)).sum()),
        )
        held = float((weight * g.precision * var).sum())
        size += held, 2.0 * held
    return np.stack([slope, size])


def max_abs_ability(expected: EStepPosterior) -> float:
    """How far from 0 anybody's curve goes under a prior that counts for them, three standard
    deviations included.
    """
    far = 0.0
    for g, weight in zip(expected.grafted, expected.weights, strict=True):
        mean, var = tilted_moments(g)
        if weight.max(initial=0.0) > 1e-3:
            far = max(far, float((np.abs(mean) + 3 * np.sqrt(var)).max()))
    return far


@dataclass
class EStep:
    """E-steps over the same people again and again.

    Features are kept while they fit into memory.
    """

    answers: SiteLayout
    threads: int | None = None
    max_buffers: int = MAX_BUFFERS
    _features: dict[tuple[Kernel, int], Solver] = field(default_factory=dict)
    _kept: int = 0
    _rooms: list[tuple[Workspace, Workspace]] = field(default_factory=list)  # one pair a thread

    def __post_init__(self) -> None:
        # by answers, not by sites: a site may hold the four rounds of a tournament
        self._chunks = {
            False: chunks(self.answers.factor_start[self.answers.site_start]),
            True: chunks(self.answers.merged.factor_start),
        }

    def graft(
        self,
        kernel: Kernel,
        table: LogLikelihoodTable,
        start: tuple[Array, Array] | None,
        tolerance: float,
    ) -> Grafts:
        """Everyone's curve under one prior."""
        data = self.answers.for_kernel(kernel)
        everyone = np.arange(data.times.size)
        out = {
            name: np.zeros(everyone.size)
            for name in ("precision", "shift", "cavity_mean", "cavity_var", "log_z")
        }
        evidence = np.zeros(data.people)
        converged = np.zeros(data.people, dtype=bool)
        whole = _quadrature(kernel, data, table) if kernel.static else None

        def run(number: int) -> None:
            people = self._chunks[kernel.static][number]
            if whole is not None and _integrated(whole, people, start, out):
                evidence[people] = out["log_z"][people] + data.constant[people]
                converged[people] = True
                return
            a = int(data.site_start[people[0]])
            b = int(data.site_start[people[-1] + 1])
            where = slice(a, b)
            rooms = self._rooms.pop() if self._rooms else (Workspace(), Workspace())
            match = self._matcher(data, everyone[where], table, tolerance, rooms[1])
            flat = np.zeros(b - a)
            problem = EPProblem(
                self._solver(kernel, number),
                match,
                flat,
                flat,
                np.full(people.size, kernel.nugget_variance),
                np.ones(b - a, dtype=bool),
            )
            found = graft(
                problem,
                None if start is None else (start[0][where], start[1][where]),
                tolerance,
                room=rooms[0],
            )
            out["precision"][where] = found.precision
            out["shift"][where] = found.shift
            out["cavity_mean"][where] = found.cavity_mean
            out["cavity_var"][where] = found.cavity_var
            out["log_z"][where] = found.log_z
            self._rooms.append(rooms)
            evidence[people] = found.log_evidence + data.constant[people]
            converged[people] = found.converged

        run_in_threads(run, range(len(self._chunks[kernel.static])), self.threads)
        return Grafts(log_evidence=evidence, converged=converged, **out)

    def _matcher(
        self,
        data: SiteLayout,
        group: Ints,
        table: LogLikelihoodTable,
        tolerance: float,
        room: Workspace,
    ) -> MomentMatcher:
        """The way to tilted moments of a chunk's sites, which remembers where it last integrated."""
        known = room.arrays(group.size, 8)
        known[:, 7] = np.nan  # nothing yet

        def match(
            sites: Ints,
            cavity_mean: Array,
            cavity_var: Array,
            log_z: Array,
            mean: Array,
            var: Array,
        ) -> None:
            bad = match_sites_cached(
                sites,
                group,
                data.factor_start,
                data.factor_row,
                data.factor_weight,
                table.log_lik,
                table.lik,
                table.top,
                table.start,
                table.step,
                cavity_mean,
                cavity_var,
                known,
                SLACK * tolerance,
                log_z,
                mean,
                var,
            )
            if bad >= 0:
                raise InputError(
                    f"the answers at one instant (site {int(group[0]) + bad}) are impossible at "
                    f"every ability; "
                    "check the responses and the item parameters that were given"
                )

        return match

    def _solver(self, kernel: Kernel, number: int) -> Solver:
        found = self._features.get((kernel, number))
        if found is not None:
            return found
        data = self.answers.for_kernel(kernel)
        people = self._chunks[kernel.static][number]
        a = data.site_start[people[0]]
        b = data.site_start[people[-1] + 1]
        first, last = self.answers.spans
        made = build_batched_solver(
            kernel,
            data.times[a:b],
            data.site_start[people[0] : people[-1] + 2] - a,
            first[people],
            last[people],
        )
        size = getattr(made, "features", np.zeros(0))
        if isinstance(size, np.ndarray) and self._kept + size.size <= MOST_FEATURES:
            self._kept += size.size
            self._features[kernel, number] = made
        return made

    def drop_cached(self, kernels: list[Kernel]) -> None:
        """Drop the features of all but the given priors."""
        self._features = {key: value for key, value in self._features.items() if key[0] in kernels}
        self._kept = sum(
            getattr(value, "features", np.zeros(0)).size for value in self._features.values()
        )

    @single_blas_thread()
    def run(
        self,
        table: LogLikelihoodTable,
        kernels: list[Kernel],
        share: Array,
        starts: list[tuple[Array, Array] | None],
        tolerance: float,
    ) -> EStepPosterior:
        """Graft everyone under every prior.

        `share` is the population's distribution over the priors.
        """
        grafted: list[Grafts] = []
        for k, (kernel, start) in enumerate(zip(kernels, starts, strict=True)):
            if (
                start is None
                # sites hardly depend on the prior, so those found under another are a
                # good beginning
            ):
                near = next(
                    (j for j in range(k - 1, -1, -1) if kernels[j].static == kernel.static), None
                )
                start = None if near is None else (grafted[near].precision, grafted[near].shift)
            grafted.append(self.graft(kernel, table, start, tolerance))
        return EStepPosterior(tuple(grafted), person_weights(share, tuple(grafted)))

    def counts(
        self, kernels: list[Kernel], expected: EStepPosterior, table: LogLikelihoodTable
    ) -> Array:
        """Expected counts on the grid.

        (rows, points), added up in a fixed order, so that threads do not change a bit.
        """
        total = np.zeros(table.log_lik.shape)
        for kernel, g, weights in zip(kernels, expected.grafted, expected.weights, strict=True):
            data = self.answers.for_kernel(kernel)
            mean, var = tilted_moments(g)
            moments = np.stack(
                [
                    g.cavity_mean,
                    g.cavity_var,
                    mean,
                    var,
                    np.repeat(weights, np.diff(data.site_start)),
                ],
                axis=1,
            )

            def add(sites: Ints, into: Array) -> None:
                add_counts(
                    sites,
                    data.factor_start,
                    data.factor_row,
                    data.factor_weight,
                    table.log_lik,
                    table.lik,
                    table.start,
                    table.step,
                    moments,
                    into,
                )

            # a row's answers one after the other: it is fetched once, and nobody else
            # writes to it
            if data.one_factor_per_site:
                run_in_threads(lambda sites: add(sites, total), data.sites_by_row, self.threads)
            elif kernel.static:
                whole = _quadrature(kernel, data, table)
                self._accumulate_in_buffers(
                    lambda number, into: self._add_constant(
                        whole, number, (mean, var), weights, add, into
                    ),
                    True,
                    total,
                )
            else:
                self._accumulate_in_buffers(
                    lambda number, into: add(self._sites(number), into[1]), False, total
                )
        return total

    def _sites(self, number: int) -> Ints:
        people = self._chunks[False][number]
        return np.arange(
            self.answers.site_start[people[0]], self.answers.site_start[people[-1] + 1]
        )

    def _add_constant(
        self,
        whole: StaticAbilityIntegrator,
        number: int,
        moments: tuple[Array, Array],
        weights: Array,
        add: Callable[[Ints, Array], None],
        into: Tables,
    ) -> None:
        """Counts of a chunk of constant abilities.

        By quadrature, where it does, else as any site's.
        """
        people = self._chunks[True][number]
        if whole.strides(moments[1][people]).all():
            whole.count(people, *moments, weights, into)
        else:
            add(people, into[1])

    def _accumulate_in_buffers(
        self, add: Callable[[int, Tables], None], static: bool, total: Array
    ) -> None:
        """Sites of several answers write to several rows, so threads add to tables of their own.

        By stride, at every so many nodes.
        """
        size = len(self._chunks[static])
        lanes = max(1, min(self.max_buffers, size, max(2, MOST_COUNTS // total.size)))
        parts: list[Tables] = [{1: total}, *({1: np.zeros(total.shape)} for _ in range(lanes - 1))]

        def run(lane: int) -> None:
            for number in range(lane, size, lanes):
                add(number, parts[lane])

        run_in_threads(run, range(lanes), self.threads)
        for part in parts:
            for stride, found in sorted(part.items()):
                if found is not total:
                    total[:, ::stride] += found

    def mean_response_to_unit_shift(self, kernel: Kernel, tau: Array) -> Array:
        """How far everyone's curve moves at each site when all sites move by 1."""
        data = self.answers.for_kernel(kernel)
        mean = np.zeros(tau.size)
        var = np.zeros(tau.size)

        def run(number: int) -> None:
            people = self._chunks[kernel.static][number]
            where = slice(int(data.site_start[people[0]]), int(data.site_start[people[-1] + 1]))
            size = np.zeros(people.size)
            fine = np.ones(people.size, dtype=bool)
            self._solver(kernel, number).marginals(
                np.arange(people.size), tau[where], tau[where], mean[where], var[where], size, fine
            )

        run_in_threads(run, range(len(self._chunks[kernel.static])), self.threads)
        return mean

    def scores(
        self,
        kernels: list[Kernel],
        expected: EStepPosterior,
        table: LogLikelihoodTable,
        slopes: Array,
    ) -> Array:
        """Expected score of every member's term by its item's parameters: (members, parameters)."""
        out = np.zeros((self.answers.factor_row.size, slopes.shape[1]))
        for k, kernel in enumerate(kernels):
            data = self.answers.for_kernel(kernel)
            g = expected.grafted[k]
            mean, var = tilted_moments(g)
            whole = _quadrature(kernel, data, table) if kernel.static else None
            coarse = (
                {stride: np.ascontiguousarray(slopes[:, :, ::stride]) for stride in STRIDES}
                if kernel.static
                else {}
            )

            def run(number: int) -> None:
                people = self._chunks[kernel.static][number]
                if whole is not None and whole.strides(var[people]).all():
                    whole.score(people, mean, var, expected.weights[k], coarse, out)
                    return
                add_scores(
                    people,
                    expected.weights[k],
                    data.site_start,
                    data.factor_start,
                    data.factor_row,
                    data.factor_weight,
                    table.log_lik,
                    table.lik,
                    table.start,
                    table.step,
                    g.cavity_mean,
                    g.cavity_var,
                    mean,
                    var,
                    slopes,
                    out,
                )

            run_in_threads(run, range(len(self._chunks[kernel.static])), self.threads)
        return out


def _integrated(
    whole: StaticAbilityIntegrator,
    people: Ints,
    start: tuple[Array, Array] | None,
    out: dict[str, Array],
) -> bool:
    """Constant abilities by exact integration, as sites that match their moments.

    Whether that could be done for everyone.
    """
    around = None
    if start is not None:
        thin = 1.0 + whole.variance * start[0][people]
        around = (
            (whole.variance * start[1][people] / thin, whole.variance / thin)
            if (thin > 0).all()
            else None
        )
    # for now
    mean = out["shift"]
    var = out["precision"]
    if not whole.integrate(people, around, out["log_z"], mean, var).all():
        return False
    m = mean[people]
    v = var[people]
    out["precision"][people] = 1.0 / v - 1.0 / whole.variance
    out["shift"][people] = m / v
    out["cavity_mean"][people] = 0.0
    out["cavity_var"][people] = whole.variance
    return True


def _quadrature(
    kernel: Kernel, data: SiteLayout, table: LogLikelihoodTable
) -> StaticAbilityIntegrator:
    """Constant abilities under a static kernel."""
    return StaticAbilityIntegrator(
        table,
        float(kernel.cov(np.zeros(1), np.zeros(1))[0]),
        (data.factor_start, data.factor_row, data.factor_weight),
    )


def leave_one_out_abilities(
    answers: SiteLayout, kernel: Kernel, grafts: Grafts, table: LogLikelihoodTable, count: int
) -> tuple[Array, Array]:
    """Mean and variance of z at each of `count` answers' instants without that answer, under one
    prior.
    """
    data = answers.for_kernel(kernel)
    mean, var = tilted_moments(grafts)
    out_mean = np.zeros(count)
    out_var = np.ones(count)
    leave_each_out(
        0,
        data.times.size,
        data.factor_start,
        data.factor_row,
        data.factor_weight,
        data.factor_response,
        table.log_lik,
        table.lik,
        table.start,
        table.step,
        grafts.cavity_mean,
        grafts.cavity_var,
        mean,
        var,
        out_mean,
        out_var,
    )
    return out_mean, out_var


def scale_information(e_step: EStep, kernels: list[Kernel], expected: EStepPosterior) -> Array:
    """Information that the people hold about where the abilities' zero lies and how long their unit
    is (log): (2, 2).

    About the zero it is Σ over people of 1ᵀ(K + T⁻¹)⁻¹1 = Σ τ(1 − dm), where dm is how far the
    curve follows when all sites move by 1; about the unit twice the number of effective parameters,
    Σ τv.
    """
    out = np.zeros((2, 2))
    for k, kernel in enumerate(kernels):
        data = e_step.answers.for_kernel(kernel)
        g = expected.grafted[k]
        tau, _ = through_nugget(g.precision, g.shift, kernel.nugget_variance)
        moved = e_step.mean_response_to_unit_shift(kernel, tau)
        _, var = tilted_moments(g)
        weight = np.repeat(expected.weights[k], np.diff(data.site_start))
        out += np.diag(
            [
                float((weight * tau * (1.0 - moved)).sum()),
                float(2.0 * (weight * g.precision * var).sum()),
            ]
        )
    return out


def tilted_moments(g: Grafts) -> tuple[Array, Array]:
    """Mean and variance of the sites' tilted distributions: at rest those of cavity × site."""
    thin = 1.0 + g.precision * g.cavity_var
    return (g.cavity_mean + g.shift * g.cavity_var) / thin, g.cavity_var / thin
