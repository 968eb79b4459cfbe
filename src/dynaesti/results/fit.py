"""Fit: what a user holds after DynAEsti. Items, everyone's ability at any time, predictions, updates; nothing mutates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

from dynaesti.core import (
    Array,
    Arrays,
    Ints,
    finite_number,
    save_archive,
    whole_number,
    write_archive,
)
from dynaesti.data import (
    CautionKind,
    DataReport,
    Labels,
    Responses,
    as_list,
    check_responses,
    count_noun,
    frame_kind,
    index_of,
    make_frame,
    warn_new_people,
)
from dynaesti.estimation import (
    FittedModel,
    PeopleSites,
    build_people_sites,
    leave_one_out_abilities,
)
from dynaesti.inference import EPResult, Marginals
from dynaesti.results.abilities import (
    Change,
    ability_change,
    ability_marginals,
    marginals_with_item_uncertainty,
    people_and_times,
    person_curve,
    person_stream,
)
from dynaesti.results.curve import Curve
from dynaesti.results.fit_base import FitBase
from dynaesti.results.frames import IDENTITY, band_frame
from dynaesti.results.io.fit_file import fit_header
from dynaesti.results.live_person import LivePerson, live_person
from dynaesti.results.plotting.fit_plots import FitPlots
from dynaesti.results.predictions import Predictions, predict_responses
from dynaesti.results.updates import (
    NewResponses,
    fit_new_people,
    read_new_responses,
    times_on_clock,
    update_fit,
)


@dataclass(frozen=True, eq=False)
class Fit(FittedModel, FitBase):
    """A fitted DynAEsti. Abilities are on the reported scale: ability = shift + gain · z, z of unit variance a priori."""

    responses: Responses
    ep: tuple[EPResult, ...]  # everyone's curve under each kernel
    weights: Array  # (n_kernels, n_people)
    known_sites: PeopleSites | None = field(
        default=None, repr=False
    )  # where they are built already

    @property
    def response_template(self) -> Responses:
        return self.responses

    @cached_property
    def time_range(self) -> tuple[float, float]:
        times = self.responses.clock_times
        return float(times.min()), float(times.max())

    @property
    def item_labels(self) -> Labels:
        return self.responses.items

    @property
    def responses_per_item(self) -> Ints:
        return np.bincount(self.responses.item, minlength=self.responses.items.size)

    @cached_property
    def sites(self) -> PeopleSites:
        """Everyone's responses laid out as sites."""
        if self.known_sites is not None:
            return self.known_sites
        return build_people_sites(self.responses, self.coding, self.bank)

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
        """Log probability of each person's answers: (n_people,)."""
        with np.errstate(divide="ignore"):
            log_population = np.log(self.population)[:, None]
        logs = log_population + np.array([result.log_evidence for result in self.ep])
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    @property
    def frame(self) -> str | None:
        """The kind of frames that came in, and go out."""
        return self.responses.frame

    # --- abilities ------------------------------------------------------------------------------

    def marginals(self, person: Ints, offsets: Array) -> Marginals:
        """Reported ability of each (person, time) pair, by number and on the fit's clock; −1 is someone never seen."""
        return ability_marginals(self, person, offsets)

    def ability(
        self, at: Any = None, ids: Any = None, *, level: float = 0.7, quantiles: Any = None
    ) -> Any:
        """Ability of people at times, with a credible band.

        Parameters
        ----------
        at : times, optional
            Past, between or future. Default: the instants of each person's own answers.
        ids : labels, optional
            Some people. Default: everyone.
        level : float, default=0.7
            Probability of the equal-tailed band.
        quantiles : sequence of float, optional
            Further quantiles, as columns ``q0.1``, …

        Returns
        -------
        frame
            Columns ``id, time, mean, sd, lower, upper``, one row for each person and time.
        """
        person, offsets = people_and_times(self, at, ids)
        labels = self.responses.people.tolist()
        keys = {"id": [labels[p] for p in person], "time": self.from_clock(offsets)}
        kind = frame_kind(at) or self.frame
        marginals = self.marginals(person, offsets)
        return band_frame(marginals, keys, level, kind=kind, quantiles=quantiles)

    def probability_above(self, cut: float, at: Any, ids: Any = None) -> Any:
        """Pr[ability > cut] of everyone (or some) at the times: a frame with id, time, probability."""
        cut = finite_number(cut, "cut")
        person, offsets = people_and_times(self, at, ids)
        mix = self.marginals(person, offsets)
        probability = (mix.weights * ndtr((mix.means - cut) / mix.sds)).sum(axis=0)
        labels = self.responses.people.tolist()
        columns = {
            "id": [labels[p] for p in person],
            "time": self.from_clock(offsets),
            "probability": probability,
        }
        return make_frame(columns, frame_kind(at) or self.frame)

    def curve(self, id: Any, *, until: Any = None) -> Curve:
        """One person's curve. `until` keeps the answers up to a time only: filtered, what was known then."""
        who = index_of(self.responses.people, [id], "id")
        return person_curve(self, who, None if until is None else float(self.to_clock([until])[0]))

    def change(self, id: Any, t0: Any, t1: Any) -> Change:
        """How a person's ability changed from t0 to t1: the difference, its sd, and Pr[it rose]."""
        return ability_change(self, id, t0, t1)

    def plausible(self, id: Any, at: Any, size: int = 20, seed: int | None = 0) -> Array:
        """Whole curves drawn from a person's posterior, for analyses that need plausible values: (size, times).

        Everyone has a stream of random numbers of their own for a seed, so draws of two people are independent, and the k-th draws of
        all people are one plausible cohort.
        """
        times = self.from_clock(self.to_clock(at))
        return self.curve(id).sample(times, size, person_stream(seed, id))

    def uncertain(
        self, id: Any, at: Any, *, draws: int = 30, level: float = 0.7, seed: int = 0
    ) -> Any:
        """One person's ability with the items' uncertainty in it: curves averaged over items drawn from their own."""
        offsets = self.to_clock(at)
        marginals = self.uncertain_marginals(id, offsets, draws, seed)
        keys = {"id": [id] * offsets.size, "time": self.from_clock(offsets)}
        return band_frame(marginals, keys, level, kind=self.frame)

    def uncertain_marginals(
        self, id: Any, offsets: Array, draws: int = 30, seed: int = 0
    ) -> Marginals:
        """One person's ability with the items' uncertainty in it, as a mixture of normals at offsets on the fit's clock."""
        return marginals_with_item_uncertainty(self, id, offsets, draws, seed)

    # --- predictions ----------------------------------------------------------------------------

    def predict(self, data: Any) -> Any:
        """Chances of each response at its time, for known people (their curves) and new ones (the population's prior).

        A frame in the data's order: id, item, time, expected response, `p` (chance of the response given, where there is one),
        and p0, p1, … for the responses 0, 1, … (NaN where an item does not have them).
        """
        new = self.read_new_data(data, unanswered=True)
        warn_new_people(self.responses.people, new.people)
        return self.predict_read(new)

    def predict_read(self, data: Responses) -> Any:
        """The frame of `predict` for responses already read, without a word about new people."""
        new = read_new_responses(self, data, unanswered=True)
        found = self.predictions(new)
        r = new.responses
        back = np.argsort(r.row, kind="stable")
        columns = found.columns(r, back, self.coding, new.items[r.item])
        return make_frame(columns, r.frame or self.frame)

    def predictions(self, new: NewResponses) -> Predictions:
        """Predictive chances of further responses, row by row."""
        r = new.responses
        mix = self.marginals(new.people[r.person], times_on_clock(self, new))
        latent = Marginals(mix.weights, (mix.means - self.shift) / self.gain, mix.sds / self.gain)
        return predict_responses(self.bank, self.coding, new.items[r.item], r, latent)

    @cached_property
    def leave_one_out(self) -> tuple[Predictions, Array]:
        """Every response predicted without itself, and the (reported) ability it was predicted from."""
        r = self.responses
        pairs = [
            leave_one_out_abilities(self.sites, kernel, result, self.likelihood_table)
            for kernel, result in zip(self.kernels, self.ep, strict=True)
        ]
        means = np.array([pair.mean for pair in pairs])
        sds = np.sqrt(np.array([pair.variance for pair in pairs]))
        weights = self.weights[:, r.person]
        found = predict_responses(self.bank, self.coding, r.item, r, Marginals(weights, means, sds))
        return found, self.shift + self.gain * (weights * means).sum(axis=0)

    def score(self, data: Any, *, at: Any = None, level: float = 0.7) -> Any:
        """Abilities of new people, or of new answers, with the items frozen: an ability frame.

        `at`: times (default: the instants of the answers).
        """
        return fit_new_people(self, read_new_responses(self, data)).ability(at, level=level)

    def update(self, data: Any, *, new_items: bool = False, again: bool = False) -> Fit:
        """The fit with more answers of known people (or of new ones): their curves move, the items stay.

        `new_items` lets in items that were never seen, learned from the answers of those who met them. They take the model and the
        categories of the others, which stay as they are. A fit knows the answers of its updates again: the same ones once more leave
        it as it is, and a warning says so, unless `again` means it.
        """
        return update_fit(self, data, new_items=new_items, again=again)

    def live(self, id: Any) -> LivePerson:
        """One known person, ready for further answers one by one: `live.add(time, item, resp)`, `live.ability(times)`."""
        return live_person(self, int(index_of(self.responses.people, [id], "id")[0]))

    # --- files, figures, words ------------------------------------------------------------------

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
        """Figures: `plot.curves(ids)`, `plot.item(label)`, `plot.information()`; each returns its axes."""
        return FitPlots(self)

    @cached_property
    def health(self) -> DataReport:
        """What the data look like, in words."""
        return check_responses(self.responses)

    @cached_property
    def cautions(self) -> list[str]:
        """What these answers cannot say, in words: the bands do not know of it."""
        not_needed = set()  # kinds that this fit knows better
        if self.options["direction"] == "free":
            not_needed.add(CautionKind.BACKWARD_ITEMS)
        if self.bank.ability_scale.free_location or self.bank.ability_scale.stated:
            not_needed.add(CautionKind.OWN_TIMES)  # anchors know how hard items are
        if not any(block.free.any() for block in self.bank.blocks):
            not_needed.add(CautionKind.ONE_CATEGORY_ITEMS)
        about_data = [str(c) for c in self.health.cautions if c.kind not in not_needed]
        return about_data + self.item_cautions()

    def next_item(self, id: Any, at: Any, *, exclude: Any = (), count: int = 5) -> Any:
        """The most informative items for a person at a time, averaged over what is known of their ability: a frame."""
        who = index_of(self.responses.people, [id], "id")
        mix = self.marginals(who, self.to_clock([at]))
        centre = float((mix.weights * mix.means).sum())
        ability = centre + 5 * float(mix.sd(IDENTITY)[0]) * np.linspace(-1, 1, 81)
        density = mix.density(ability)
        value = self.information_at(ability) @ (density / density.sum())
        labels = as_list(exclude)
        barred = np.zeros(0, dtype=np.int64)
        if labels:
            barred = index_of(self.responses.items, labels, "exclude")
        value[barred] = -np.inf
        size = min(whole_number(count, "count", 1), value.size - barred.size)
        best = np.argsort(-value, kind="stable")[:size]
        names = self.responses.items.tolist()
        columns = {"item": [names[k] for k in best], "information": value[best]}
        return make_frame(columns, self.frame)

    def reliability(self, at: Any = None) -> float:
        """Share of the variance of ability that the answers explain, averaged over people and times."""
        person, offsets = people_and_times(self, at, None)
        error = float((self.marginals(person, offsets).sd(IDENTITY) ** 2).mean())
        return 1.0 - error / self.gain**2

    @property
    def n_unconverged(self) -> int:
        """Curves on which EP did not converge, under kernels that count for the person."""
        return sum(
            int((~result.converged & (weight > 1e-3)).sum())
            for result, weight in zip(self.ep, self.weights, strict=True)
        )

    def summary(self) -> str:
        """The fit in a few sentences."""
        r = self.responses
        ends = self.from_clock(np.array(self.time_range))
        first, last = (str(t)[:19] if ends.dtype.kind == "M" else f"{t:.6g}" for t in ends)
        clock = ", counted from each start" if r.clock == "person" else ""
        size = (
            f"{count_noun(len(r), 'answers')} of {count_noun(r.people.size, 'people')} to "
            f"{count_noun(r.items.size, 'items')} ({self.model_names()}), "
            f"from {first} to {last} ({r.unit}{clock})."
        )
        verdict = self.convergence_text(self.log_evidence, self.n_unconverged, r.dropped)
        return " ".join([size, verdict, *self.cautions])

    def __repr__(self) -> str:
        return f"<Fit: {self.summary()}>"
