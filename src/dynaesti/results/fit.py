"""Fit: what a user holds after DynAEsti.

Items, everyone's ability at any time, predictions, updates; nothing mutates.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from dynaesti.core import (
    Array,
    Arrays,
    Ints,
    as_rng,
    as_vector,
    check_size,
    finite_number,
    save_archive,
    whole_number,
    write_archive,
)
from dynaesti.data import (
    ALIKE,
    CONFOUNDED,
    MEANT,
    DataReport,
    Labels,
    Responses,
    TimeAxis,
    as_labels,
    as_list,
    check_responses,
    count_noun,
    frame_kind,
    index_of,
    label_text,
    make_frame,
    try_index_of,
    warn_already_added,
    warn_new_people,
)
from dynaesti.errors import HealthWarning, InputError
from dynaesti.estimation import (
    EP_TOLERANCE_FINAL,
    EStep,
    EStepPosterior,
    Grafts,
    NewItemFit,
    SiteLayout,
    ability_grid,
    build_site_layout,
    check_reach,
    extend_models,
    find_new_items,
    index_of_items,
    leave_one_out_abilities,
    max_abs_ability,
    new_items_hint,
    person_weights,
    sample_bank,
    tabulate_items,
    take_rows,
)
from dynaesti.inference import (
    Marginals,
    Observations,
    check_level,
    graft_components,
    predict_marginals,
    through_nugget,
)
from dynaesti.model import BUILT_IN, BankResponses, ItemBank, Kernel
from dynaesti.results.curve import Curve, from_components
from dynaesti.results.fitted_model import FitBase
from dynaesti.results.io.fit_file import FitParts, fit_header
from dynaesti.results.live_person import LivePerson, live_person
from dynaesti.results.plotting.fit_plots import FitPlots
from dynaesti.results.predictions import Predictions, predict_responses

LAST_UPDATE = "the last update brought"  # begins a note, of which there is one


@dataclass(frozen=True, eq=False)
class Fit(FitParts, FitBase):
    """A fitted DynAEsti. Abilities are on the reported scale (`scale`).

    Ability = shift + gain · z, z of unit variance a priori.
    """

    @property
    def like(self) -> Responses:
        return self.responses

    @cached_property
    def ends(self) -> tuple[float, float]:
        times = self.responses.clock_times
        return float(times.min()), float(times.max())

    @property
    def item_labels(self) -> Labels:
        return self.responses.items

    @property
    def item_answers(self) -> Ints:
        return np.bincount(self.responses.item, minlength=self.responses.items.size)

    @cached_property
    def answers(self) -> SiteLayout:
        """Everyone's answers as sites."""
        return build_site_layout(self.responses, self.coding, self.bank)

    @property
    def ids(self) -> list[Any]:
        """The people's labels."""
        return list(self.responses.people.tolist())

    @property
    def log_evidence(self) -> float:
        """Log probability of all answers, curves integrated out."""
        return float(self.person_evidence.sum())

    @cached_property
    def person_evidence(self) -> Array:
        """Log probability of each person's answers."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.population)[:, None] + np.array(
                [g.log_evidence for g in self.grafts]
            )
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    @property
    def frame(self) -> str | None:
        """The kind of frames that came in, and go out."""
        return self.responses.frame

    # --- abilities
    # ----------------------------------------------------------------------------------------

    def marginals(self, person: Ints, offsets: Array) -> Marginals:
        """Reported ability of each (person, time) pair; −1 is someone never seen."""
        order = np.argsort(person, kind="stable")
        who = person[order]
        when = offsets[order]
        known = np.unique(who[who >= 0])
        means = np.zeros((len(self.kernels), who.size))
        variances = np.ones((len(self.kernels), who.size))
        weights = np.repeat(self.population[:, None], who.size, axis=1)
        first = int(np.searchsorted(who, 0))
        if known.size:
            asked_start = np.append(np.searchsorted(who, known), who.size) - first
            for k, (kernel, g) in enumerate(zip(self.kernels, self.grafts, strict=True)):
                data = self.answers.for_kernel(kernel)
                sites = take_rows(data.site_start, known)
                starts = np.concatenate(
                    [[0], np.cumsum(data.site_start[known + 1] - data.site_start[known])]
                ).astype(np.int64)
                span = tuple(edge[known] for edge in self.answers.spans)
                precision, shift = through_nugget(
                    g.precision[sites], g.shift[sites], kernel.nugget_variance
                )
                means[k, first:], variances[k, first:] = predict_marginals(
                    kernel,
                    data.times[sites],
                    starts,
                    (span[0], span[1]),
                    precision,
                    shift,
                    when[first:],
                    asked_start,
                    None,
                    self.options["threads"],
                )
            weights[:, first:] = self.weights[:, who[first:]]
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        sds = np.sqrt(np.maximum(variances, 1e-300))
        return Marginals(
            weights[:, back], self.shift + self.gain * means[:, back], self.gain * sds[:, back]
        )

    def _asked(self, at: Any, ids: Any) -> tuple[Ints, Array]:
        """(person, offset) pairs.

        Everyone at every time, or everyone at the instants of their own answers.
        """
        people = (
            np.arange(self.responses.people.size)
            if ids is None
            else index_of(self.responses.people, as_list(ids), "ids")
        )
        if at is not None:
            offsets = self._offsets(at)
            check_size(people.size * offsets.size, "at")
            return np.repeat(people, offsets.size), np.tile(offsets, people.size)
        sites = take_rows(self.answers.site_start, people)
        return np.repeat(people, np.diff(self.answers.site_start)[people]), self.answers.times[
            sites
        ]

    def ability(
        self, at: Any = None, ids: Any = None, *, level: float = 0.7, quantiles: Any = None
    ) -> Any:
        """A frame: id, time, mean, sd, lower, upper (a band of probability `level`), and further
        quantiles on request.

        `at`: times, past, between or future (default: the instants of each person's own answers).
        `ids`: some people (default: all).
        """
        check_level(level)
        person, offsets = self._asked(at, ids)
        mix = self.marginals(person, offsets)
        link = BUILT_IN["identity"]
        extra = np.zeros(0) if quantiles is None else as_vector(quantiles, "quantiles")
        rows = mix.quantiles(np.concatenate([[0.5 - level / 2, 0.5 + level / 2], extra]), link)
        labels = self.responses.people.tolist()
        return make_frame(
            {
                "id": [labels[p] for p in person],
                "time": self._restored(offsets),
                "mean": mix.mean(link),
                "sd": mix.sd(link),
                "lower": rows[0],
                "upper": rows[1],
                **{f"q{q:g}": row for q, row in zip(extra, rows[2:], strict=True)},
            },
            frame_kind(at) or self.frame,
        )

    def above(self, cut: float, at: Any, ids: Any = None) -> Any:
        """Pr[ability > cut] of everyone (or some) at the times.

        A frame with id, time, probability.
        """
        cut = finite_number(cut, "cut")
        person, offsets = self._asked(at, ids)
        mix = self.marginals(person, offsets)
        probability = (mix.weights * ndtr((mix.means - cut) / mix.sds)).sum(axis=0)
        labels = self.responses.people.tolist()
        return make_frame(
            {
                "id": [labels[p] for p in person],
                "time": self._restored(offsets),
                "probability": probability,
            },
            frame_kind(at) or self.frame,
        )

    def curve(self, id: Any, *, until: Any = None) -> Curve:
        """One person's curve. `until` keeps the answers up to a time only.

        Filtered, what was known then.
        """
        who = index_of(self.responses.people, [id], "id")
        return self._curve(who, None if until is None else float(self._offsets([until])[0]))

    def _curve(self, who: Ints, until: float | None, bank: ItemBank | None = None) -> Curve:
        one = self.responses.take(who)
        rows = np.arange(len(one)) if until is None else np.flatnonzero(one.clock_times <= until)
        if not rows.size:
            raise InputError("until: no answers up to then; the curve would be the prior")
        weight = np.ones(len(one)) if one.weight is None else one.weight
        code = self.coding.code(one, one.item)
        emissions = BankResponses(
            bank or self.bank, one.item[rows], code[rows], weight[rows], self.gain, self.shift
        )
        axis = (
            self.responses.axis
            if self.responses.clock == "calendar"
            else TimeAxis(0.0, 0, stamps=False, zoned=False)
        )
        observations = Observations(
            axis,
            one.clock_times[rows],
            emissions,
            BUILT_IN["identity"],
            self.shift,
            8.0 * self.gain,
        )
        kernels = [(self.gain**2 * kernel).place(*observations.span) for kernel in self.kernels]
        made = graft_components(observations, kernels)
        with np.errstate(divide="ignore"):
            return from_components(
                observations, made, np.log(self.population).tolist(), "learn", self.frame, None
            )

    def change(self, id: Any, t0: Any, t1: Any) -> Change:
        """How a person's ability changed from t0 to t1: the difference, its sd, and Pr[it rose]."""
        curve = self.curve(id)
        offsets = self._offsets([t0, t1])
        weights, _, components = curve.weighted_components()
        difference = np.empty(weights.size)
        variance = np.empty(weights.size)
        for k, component in enumerate(components):
            mean = component.posterior.marginals(offsets)[0]
            cov = component.posterior.covariance(offsets)
            difference[k] = mean[1] - mean[0]
            variance[k] = max(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1], 1e-300)
        average = float(weights @ difference)
        sd = float(np.sqrt(weights @ (variance + (difference - average) ** 2)))
        return Change(
            id, t0, t1, average, sd, float(weights @ ndtr(difference / np.sqrt(variance)))
        )

    def plausible(self, id: Any, at: Any, size: int = 20, seed: int | None = 0) -> Array:
        """Whole curves drawn from a person's posterior, for analyses that need plausible values.

        (size, times).

        Everyone has a stream of random numbers of their own for a seed, so draws of two people are
        independent, and the k-th draws of all people are one plausible cohort.
        """
        return self.curve(id).sample(
            self._restored(self._offsets(at)), size, person_stream(seed, id)
        )

    def uncertain(
        self, id: Any, at: Any, *, draws: int = 30, level: float = 0.7, seed: int = 0
    ) -> Any:
        """One person's ability with the items' uncertainty in it.

        Curves averaged over items drawn from their own.
        """
        check_level(level)
        offsets = self._offsets(at)
        link = BUILT_IN["identity"]
        mix = self.uncertain_mixture(id, offsets, draws, seed)
        lower, upper = mix.quantiles(np.array([0.5 - level / 2, 0.5 + level / 2]), link)
        return make_frame(
            {
                "id": [id] * offsets.size,
                "time": self._restored(offsets),
                "mean": mix.mean(link),
                "sd": mix.sd(link),
                "lower": lower,
                "upper": upper,
            },
            self.frame,
        )

    def uncertain_mixture(
        self, id: Any, offsets: Array, draws: int = 30, seed: int = 0
    ) -> Marginals:
        """The same as a mixture of normals, at offsets on the fit's clock."""
        if self.covariance is None:
            raise InputError(
                "the items' standard errors were not computed; fit with standard_errors=True"
            )
        who = index_of(self.responses.people, [id], "id")
        rng = as_rng(seed)
        shared = (
            np.zeros((2, 2)) if self.shared is None else self.shared
        )  # fits saved before it was kept
        banks = [
            sample_bank(self.bank, self.covariance, shared, rng)
            for _ in range(whole_number(draws, "draws", 2))
        ]
        parts = [self._curve(who, None, bank).marginals(self._restored(offsets)) for bank in banks]
        return Marginals(
            np.concatenate([p.weights for p in parts]) / draws,
            np.concatenate([p.means for p in parts]),
            np.concatenate([p.sds for p in parts]),
        )

    # --- predictions
    # ------------------------------------------------------------------------------------

    def _read(
        self, data: Any, unanswered: bool = False, remedy: str = ""
    ) -> tuple[Responses, Ints, Ints]:
        """Further data on the fit's terms.

        Responses, their people (−1 if new) and items in the fit.
        """
        more = self.more(data, unanswered)
        people = try_index_of(self.responses.people, more.people.tolist())
        items = index_of_items(more, self.responses.items, remedy)
        known = self.responses.people.tolist()  # 17 and "17" are one person, called as in the fit
        names = as_labels(
            [
                label if k < 0 else known[k]
                for k, label in zip(people, more.people.tolist(), strict=True)
            ]
        )
        return replace(more, people=names, items=self.responses.items[items]), people, items

    def _clock(self, more: Responses, people: Ints) -> Array:
        """Times of further data on the fit's clock; known people keep their own start."""
        offsets = self._on_axis(more)
        if self.responses.clock == "calendar":
            return offsets
        start = np.full(more.people.size, np.inf)
        np.minimum.at(start, more.person, offsets)
        start = np.where(people >= 0, self.responses.origin[np.maximum(people, 0)], start)
        return np.asarray(offsets - start[more.person])

    def predict(self, data: Any) -> Any:
        """Chances of each response at its time, for known people (their curves) and new ones (the
        population's prior).

        A frame in the data's order: id, item, time, expected response, `p` (chance of the response
        given, where there is one), and p0, p1, … for the responses 0, 1, … (NaN where an item does
        not have them).
        """
        more = self.more(data, unanswered=True)
        warn_new_people(self.responses.people, more.people)
        return self.predicted(more)

    def predicted(self, data: Responses) -> Any:
        """The same for answers already read, strangers or not."""
        more, people, items = self._read(data, unanswered=True)
        found = self.predictions(more, people, items)
        back = np.argsort(more.row, kind="stable")
        return make_frame(
            found.columns(more, back, self.coding, items[more.item]), more.frame or self.frame
        )

    def predictions(self, more: Responses, people: Ints, items: Ints) -> Predictions:
        """Predictive chances of further answers, row by row."""
        mix = self.marginals(people[more.person], self._clock(more, people))
        inner = Marginals(mix.weights, (mix.means - self.shift) / self.gain, mix.sds / self.gain)
        return predict_responses(self.bank, self.coding, items[more.item], more, inner)

    def without_each(self) -> tuple[Predictions, Array]:
        """Every answer predicted without itself, and the (reported) ability it was predicted from."""
        return self._without_each

    @cached_property
    def _without_each(self) -> tuple[Predictions, Array]:
        r = self.responses
        pairs = [
            leave_one_out_abilities(self.answers, kernel, g, self.likelihood_table, len(r))
            for kernel, g in zip(self.kernels, self.grafts, strict=True)
        ]
        means = np.array([m for m, _ in pairs])
        sds = np.sqrt(np.array([v for _, v in pairs]))
        weights = self.weights[:, r.person]
        found = predict_responses(self.bank, self.coding, r.item, r, Marginals(weights, means, sds))
        return found, self.shift + self.gain * (weights * means).sum(axis=0)

    def score(self, data: Any, *, at: Any = None, level: float = 0.7) -> Any:
        """Abilities of new people, or of new answers, with the items frozen: an ability frame.

        `at`: times (default: the instants of the answers).
        """
        more, people, items = self._read(data)
        return self._scored(more, people, items).ability(at, level=level)

    def _scored(self, more: Responses, people: Ints, items: Ints) -> Fit:
        """A fit of other people with these items and priors."""
        offsets = self._on_axis(more)
        clock = self._clock(more, people)
        origin = np.zeros(more.people.size)
        origin[more.person] = offsets - clock
        moved = replace(
            more,
            items=self.responses.items,
            item=items[more.item],
            models=self.responses.models,
            axis=self.responses.axis,
            offsets=offsets,
            origin=origin,
            unit=self.responses.unit,
            clock=self.responses.clock,
        )
        expected, far = self._expect(
            build_site_layout(moved, self.coding, self.bank), [None] * len(self.kernels)
        )
        return replace(
            self,
            responses=moved,
            grafts=expected.grafted,
            weights=expected.weights,
            options={**self.options, "farthest": far},
        )

    def _on_axis(self, more: Responses) -> Array:
        """Times of further data on the fit's axis."""
        return (
            self.responses.axis.offsets(more.axis.restore(more.offsets))
            if more.columns.get("time")
            else more.offsets
        )

    def _expect(
        self, answers: SiteLayout, starts: list[tuple[Array, Array] | None]
    ) -> tuple[EStepPosterior, float]:
        """An E-step with items and priors frozen, and how far from 0 it found anybody.

        The rows reach that far.
        """
        e_step = EStep(answers, self.options["threads"])
        table = self.likelihood_table
        far = float(self.options["farthest"])
        while True:
            expected = e_step.run(
                table, list(self.kernels), self.population, starts, EP_TOLERANCE_FINAL
            )
            far, known = max(far, max_abs_ability(expected)), far
            grid = ability_grid(self.bank, far)
            check_reach(far)
            if grid.size == ability_grid(self.bank, known).size:
                return expected, far
            table = tabulate_items(self.bank, grid)

    def repeated(self, more: Responses) -> Ints:
        """Which of further answers repeat one of the fit exactly."""
        joined = self.responses.joined(self._read(more)[0])
        again = joined.row[np.flatnonzero(joined.repeats) + 1] - len(self.responses)
        return np.asarray(again[again >= 0])

    def update(self, data: Any, *, new_items: bool = False, again: bool = False) -> Fit:
        """The fit with more answers of known people (or of new ones).

        Their curves move, the items stay.

        `new_items` lets in items that were never seen, learned from the answers of those who met
        them. They take the model and the categories of the others, which stay as they are. A fit
        knows the answers of its updates again: the same ones once more leave it as it is, and a
        warning says so, unless `again` means it.
        """
        more = self.more(data)
        batch = more.fingerprint()
        if batch in self.batches and not again:
            warn_already_added(more)
            return self
        warn_new_people(self.responses.people, more.people)
        grown = (self._with_new_items(more) if new_items else self)._updated(more)
        r = grown.responses
        twice = (
            int((r.row[np.flatnonzero(r.repeats) + 1] >= len(self.responses)).sum())
            if r.columns.get("time")
            else 0
        )
        if twice and not again:
            warnings.warn(
                f"{twice:,} of {len(more):,} answers repeat one of the fit, or each other, "
                f"exactly (person, item, time and "
                "response), and count once more",
                HealthWarning,
                stacklevel=2,
            )
        return replace(grown, batches=(*self.batches, batch))

    def _updated(self, data: Responses) -> Fit:
        more, people, items = self._read(data, remedy=new_items_hint())
        moved = replace(
            more, items=self.responses.items, item=items[more.item], models=self.responses.models
        )
        joined = self.responses.joined(moved)
        touched = np.sort(index_of(joined.people, more.people.tolist(), "id"))
        known = index_of(joined.people, self.responses.people.tolist(), "id")
        part = build_site_layout(joined.take(touched), self.coding, self.bank)
        answers = build_site_layout(joined, self.coding, self.bank)
        before = np.full(joined.people.size, -1, dtype=np.int64)
        before[known] = np.arange(known.size)
        expected, expected_far = self._expect(
            part,
            [
                self._warm(kernel, g, part, before[touched])
                for kernel, g in zip(self.kernels, self.grafts, strict=True)
            ],
        )
        grafts = []
        for kernel, old, new in zip(self.kernels, self.grafts, expected.grafted, strict=True):
            grafts.append(
                _merged_grafts(
                    answers.for_kernel(kernel),
                    self.answers.for_kernel(kernel),
                    known,
                    old,
                    touched,
                    new,
                )
            )
        whole = tuple(grafts)
        note = f"{LAST_UPDATE} {count_noun(len(more), 'answers')} of {count_noun(more.people.size, 'people')}, {int((people < 0).sum()):,} of them new"
        joined = replace(
            joined, notes=(*(old for old in joined.notes if not old.startswith(LAST_UPDATE)), note)
        )
        return replace(
            self,
            responses=joined,
            grafts=whole,
            weights=person_weights(self.population, whole),
            options={**self.options, "farthest": max(self.options["farthest"], expected_far)},
        )

    def _with_new_items(self, more: Responses) -> Fit:
        labels, people = find_new_items(self.responses.items, more)
        if not people.size:
            return self
        new_item_fit = NewItemFit(self, labels, more)
        grown = replace(
            self,
            responses=replace(
                self.responses,
                items=labels,
                models=extend_models(self.responses.models, labels.size),
            ),
        )
        return replace(
            grown,
            **new_item_fit.learned(new_item_fit.answers(grown.with_answers(more.take(people)))),
        )

    def with_answers(self, more: Responses) -> Responses:
        """All answers of the people in further data, these included."""
        more, _, items = self._read(more)
        joined = self.responses.joined(
            replace(
                more,
                items=self.responses.items,
                item=items[more.item],
                models=self.responses.models,
            )
        )
        return joined.take(np.sort(index_of(joined.people, more.people.tolist(), "id")))

    def live(self, id: Any) -> LivePerson:
        """One known person, ready for further answers one by one.

        `live.add(time, item, resp)`, `live.mixture(times)`.
        """
        return live_person(self, int(index_of(self.responses.people, [id], "id")[0]))

    def _warm(
        self, kernel: Kernel, g: Grafts, part: SiteLayout, before: Ints
    ) -> tuple[Array, Array]:
        """Settled sites of people (their numbers in this fit, −1 if new) at the instants of their
        grown answers.
        """
        new = part.for_kernel(kernel)
        old = self.answers.for_kernel(kernel)
        precision = np.zeros(new.times.size)
        shift = np.zeros(new.times.size)
        for k, person in enumerate(before):
            if person < 0:
                continue
            had = slice(old.site_start[person], old.site_start[person + 1])
            has = slice(new.site_start[k], new.site_start[k + 1])
            at = new.site_start[k] + (
                np.zeros(1, dtype=np.int64)
                if kernel.static
                else np.searchsorted(new.times[has], old.times[had])
            )
            precision[at] = g.precision[had]
            shift[at] = g.shift[had]
        return precision, shift

    def save(self, path: str | PathLike[str]) -> Path:
        """Save as one file without pickles; `dynaesti.load` opens it without refitting."""
        arrays: Arrays = {}
        return save_archive(path, "fit", fit_header(self, arrays), arrays)

    def save_into(self, file: Path) -> None:
        """Write what `save` writes into a file that is there to be written to."""
        arrays: Arrays = {}
        with file.open("wb") as opened:
            write_archive(opened, "fit", fit_header(self, arrays), arrays)

    @property
    def plot(self) -> FitPlots:
        """Figures: `plot.curves(ids)`, `plot.item(label)`, `plot.information()`.

        Each returns its axes.
        """
        return FitPlots(self)

    @cached_property
    def health(self) -> DataReport:
        """What the data look like, in words."""
        return check_responses(self.responses)

    @cached_property
    def cautions(self) -> list[str]:
        """What these answers cannot tell, in words: the bands do not know of it."""
        settled = [MEANT] if self.options["direction"] == "free" else []
        settled += (
            [CONFOUNDED]
            if self.bank.ability_scale.free_location or self.bank.ability_scale.stated
            else []
        )  # anchors know how hard items are
        settled += [] if any(block.free.any() for block in self.bank.blocks) else [ALIKE]
        return [
            text for text in self.health.cautions if not any(words in text for words in settled)
        ] + self.item_cautions()

    # --- information
    # --------------------------------------------------------------------------------------

    def next_item(self, id: Any, at: Any, *, exclude: Any = (), count: int = 5) -> Any:
        """The most informative items for a person at a time, averaged over what is known of their
        ability: a frame.
        """
        who = index_of(self.responses.people, [id], "id")
        mix = self.marginals(who, self._offsets([at]))
        middle = float((mix.weights * mix.means).sum())
        ability = middle + 5 * float(mix.sd(BUILT_IN["identity"])[0]) * np.linspace(-1, 1, 81)
        density = (
            mix.weights
            / mix.sds
            * np.exp(-0.5 * ((ability[:, None, None] - mix.means) / mix.sds) ** 2)
        ).sum(axis=1)[:, 0]
        value = self.information_at(ability) @ (density / density.sum())
        barred = (
            index_of(self.responses.items, as_list(exclude), "exclude")
            if len(as_list(exclude))
            else np.zeros(0, dtype=np.int64)
        )
        value[barred] = -np.inf
        best = np.argsort(-value, kind="stable")[
            : min(whole_number(count, "count", 1), value.size - barred.size)
        ]
        labels = self.responses.items.tolist()
        return make_frame(
            {"item": [labels[k] for k in best], "information": value[best]}, self.frame
        )

    def reliability(self, at: Any = None) -> float:
        """Share of the variance of ability that the answers explain, averaged over people and
        times.
        """
        person, offsets = self._asked(at, None)
        mix = self.marginals(person, offsets)
        error = float((mix.sd(BUILT_IN["identity"]) ** 2).mean())
        return 1.0 - error / self.gain**2

    def summary(self) -> str:
        """The fit in a few sentences."""
        r = self.responses
        loose = int(
            sum(
                (~g.converged & (w > 1e-3)).sum()
                for g, w in zip(self.grafts, self.weights, strict=True)
            )
        )
        ends = self._restored(np.array(self.ends))
        first, last = (str(t)[:19] if ends.dtype.kind == "M" else f"{t:.6g}" for t in ends)
        size = (
            f"{count_noun(len(r), 'answers')} of {count_noun(r.people.size, 'people')} to "
            f"{count_noun(r.items.size, 'items')} ({self.told_models()}), "
            f"from {first} to {last} "
            f"({r.unit}{', counted from each start' if r.clock == 'person' else ''})."
        )
        return " ".join(
            [size, self.told_verdict(self.log_evidence, loose, r.dropped), *self.cautions]
        )

    def __repr__(self) -> str:
        return f"<Fit: {self.summary()}>"


def person_stream(seed: Any, label: Any) -> np.random.Generator:
    """Random numbers of one person's own, by the written form of their name; without a seed any."""
    if seed is None:
        return np.random.default_rng()
    own = int.from_bytes(blake2b(label_text(label).encode(), digest_size=8).digest())
    return np.random.default_rng([whole_number(seed, "seed", 0), own])


@dataclass(frozen=True)
class Change:
    """How an ability changed between two times."""

    id: Any
    t0: Any
    t1: Any
    mean: float
    sd: float
    rose: float  # Pr[ability rose]


def _merged_grafts(
    new_data: SiteLayout, old_data: SiteLayout, known: Ints, old: Grafts, touched: Ints, new: Grafts
) -> Grafts:
    """Everyone's sites after some people's were grafted anew."""
    sites = new_data.times.size
    untouched = ~np.isin(known, touched)
    place_old = take_rows(new_data.site_start, known[untouched])
    place_new = take_rows(new_data.site_start, touched)
    from_old = take_rows(old_data.site_start, np.flatnonzero(untouched))

    def site_wise(name: str) -> Array:
        out = np.zeros(sites)
        out[place_old] = getattr(old, name)[from_old]
        out[place_new] = getattr(new, name)
        return out

    evidence = np.zeros(new_data.people)
    converged = np.zeros(new_data.people, dtype=bool)
    evidence[known] = old.log_evidence
    converged[known] = old.converged
    evidence[touched] = new.log_evidence
    converged[touched] = new.converged
    return Grafts(
        log_evidence=evidence,
        converged=converged,
        **{
            name: site_wise(name)
            for name in ("precision", "shift", "cavity_mean", "cavity_var", "log_z")
        },
    )
