"""Fit: a fitted DynAEsti as a user holds it.

Items, everyone's ability at any time, predictions and updates. The class is a face: what it
computes is in `abilities`, `predictions`, `updates`, `live_person` and `fit_base`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    time_text,
    warn_new_people,
)
from dynaesti.errors import InputError
from dynaesti.estimation import (
    EStepPosterior,
    FittedModel,
    PeopleSites,
    build_people_sites,
    leave_one_out_abilities,
)
from dynaesti.inference import EPResult, Marginals, check_level
from dynaesti.model import Kernel
from dynaesti.results.abilities import (
    Change,
    ability_change,
    ability_marginals,
    people_and_times,
    person_curve,
)
from dynaesti.results.bank_fit import as_first_data, bank_fit_fields, bank_sentence
from dynaesti.results.cohort import (
    change_columns,
    changes_between,
    person_columns,
    sorted_by_change,
)
from dynaesti.results.curve import Curve
from dynaesti.results.datatree import fit_datatree
from dynaesti.results.evaluation.screening.screen import MemoryScreener, Screener
from dynaesti.results.explained import (
    ItemsAlone,
    explained_sentences,
    items_alone,
    reliability,
    reliability_interval,
)
from dynaesti.results.filtered import filtered_marginals
from dynaesti.results.fit_base import FitBase
from dynaesti.results.fit_summary import criteria
from dynaesti.results.frames import IDENTITY, band_frame
from dynaesti.results.io.fit_file import fit_header
from dynaesti.results.item_checks import item_check_sums
from dynaesti.results.live_person import LivePerson, live_person
from dynaesti.results.plausible import (
    marginals_with_item_uncertainty,
    plausible_columns,
    plausible_curves,
)
from dynaesti.results.plotting.fit_plots import FitPlots
from dynaesti.results.predictions import Predictions, predict_responses, with_drift
from dynaesti.results.scoring.make import state_of
from dynaesti.results.scoring.state import State
from dynaesti.results.updates import (
    NewResponses,
    fit_new_people,
    on_fits_axis,
    read_new_responses,
    times_on_clock,
    update_fit,
)
from dynaesti.tables import as_frame, with_table


@dataclass(frozen=True, eq=False)
class Fit(FittedModel, FitBase):
    """A fitted DynAEsti: items, population and everyone's ability curve.

    `DynAEsti.fit` and `load` return fits. Abilities are on the reported scale, ability =
    shift + gain · z with z of unit variance in the prior. A fit never changes: `update` returns a
    new one. Times are given as in the data: numbers, dates or ISO text; any times can be asked for,
    also future ones. Tables come out as data frames of the library that came in (pandas, Polars,
    PyArrow); as `dynaesti.Frame` where the data were a mapping, rows or a path.

    Parameters
    ----------
    coding, bank, priors, covariance, scale_covariance, trace, converged, options, \
    max_abs_ability, item_nodes, item_drift
        Items and population, see `FittedModel`.
    responses : Responses
        All responses.
    ep : tuple of EPResult
        Everyone's curve under each kernel.
    weights : array (n_kernels, n_people)
        Posterior weight of each kernel for each person.
    known_sites : PeopleSites, optional
        The responses laid out as sites, where they are built already.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> fit = dy.DynAEsti("2PL").fit(table)
    >>> fit.converged
    True
    >>> list(fit.items.columns)[:5]
    ['item', 'model', 'n', 'a', 'b']
    >>> frame = fit.ability(at=[0, 50, 100], ids=["p00", "p01"], level=0.9)
    >>> list(frame.columns), len(frame)
    (['id', 'time', 'mean', 'sd', 'lower', 'upper'], 6)
    >>> chances = fit.predict({"id": ["p00"], "item": ["i3"], "date": [105.0]})
    >>> list(chances.columns)
    ['id', 'item', 'time', 'expected', 'p0', 'p1']
    >>> more = {"id": ["p00"], "item": ["i3"], "date": [105.0], "resp": [1]}
    >>> grown = fit.update(more)
    >>> len(grown.responses) - len(fit.responses)
    1
    >>> bool(grown.change("p00", 0, 105).rose > fit.change("p00", 0, 105).rose)
    True
    >>> len(fit.next_item("p00", at=105, count=2))
    2
    """

    responses: Responses
    ep: tuple[EPResult, ...]
    weights: Array
    known_sites: PeopleSites | None = field(default=None, repr=False)

    @classmethod
    def from_bank(
        cls,
        items: Any,
        *,
        model: Any = None,
        population: tuple[float, float] = (0.0, 1.0),
        kernel: Kernel | str | None = None,
        bandwidth: Any = None,
        clock: str = "calendar",
        unit: str | None = None,
        origin: Any = None,
        categories: Any = None,
    ) -> Fit:
        """A fit of items whose parameters are known, before anybody has answered.

        It scores and predicts people, follows them (`scorer`), plots items, plans tests and is
        saved, as any fit; `update` brings people. Nothing of items or population is learned.
        Questions that need people say so.

        Parameters
        ----------
        items : mapping, frame or path
            Parameters of all items: ``{item: {parameter: value}}``, or a frame, columns or a file
            with a column "item". Names of mirt, ltm and words are understood, as for
            ``DynAEsti(fixed=)``.
        model : str, ItemModel or mapping of item to these, optional
            Default: a column "model", else the model that each item's parameters can only mean (b;
            a and b; with c; with d).
        population : (float, float), default (0, 1)
            Mean and standard deviation of the abilities, on the scale of the items.
        kernel : Kernel or str, optional
            How abilities move, with all of its numbers. Default: they are constant.
        bandwidth : float, optional
            Instead of a kernel: the bandwidth of a lone RBF kernel, in the unit of the times.
        clock : {"calendar", "person"}, default "calendar"
            Whether time is the same for all, or counts from each person's first response.
        unit : str, optional
            What one unit of numeric times is, for labels.
        origin : date, optional
            Where times are dates: one of them, from which days are counted. Default: the first
            data decide; scorers take numbers.
        categories : sequence of float, optional
            Responses that categories stand for. Default: 0, 1, ….

        Returns
        -------
        Fit

        Raises
        ------
        InputError
            If parameters are missing or cannot be used, or it is open how abilities move.

        Examples
        --------
        >>> import dynaesti as dy
        >>> bank = {"q1": {"a": 1.0, "b": 0.0}, "q2": {"a": 1.5, "b": 1.0, "c": 0.2}}
        >>> fit = dy.Fit.from_bank(bank, population=(0.0, 1.0))
        >>> fit
        <Fit of a bank of 2 items (2PL, 3PL), without people>
        >>> found = fit.score({"id": ["ann", "ann"], "item": ["q1", "q2"], "resp": [1, 1]})
        >>> bool(found["mean"][0] > 0)
        True
        """
        return cls(
            **bank_fit_fields(
                items, model, population, kernel, bandwidth, clock, unit, origin, categories
            )
        )

    @property
    def response_template(self) -> Responses:
        """All responses of the fit: others are read with their columns and clock."""
        return self.responses

    @cached_property
    def time_range(self) -> tuple[float, float]:
        """First and last time of the responses, on the fit's clock."""
        self.require_people()
        times = self.responses.clock_times
        return float(times.min()), float(times.max())

    @property
    def item_labels(self) -> Labels:
        """Labels of the items, (n_items,)."""
        return self.responses.items

    @property
    def responses_per_item(self) -> Ints:
        """Number of responses to each item, (n_items,)."""
        return np.bincount(self.responses.item, minlength=self.responses.items.size)

    @cached_property
    def item_check_sums(self) -> Array | None:
        """Sums over all answers by which items are checked, (n_sums, n_items); None of none."""
        return item_check_sums(self) if len(self.responses) else None

    @property
    def some_responses(self) -> Responses:
        """All responses."""
        return self.responses

    def parts(self) -> Iterator[Fit]:
        """The fit itself."""
        self.require_people()
        yield self

    def item_screener(self, executor: Any = None) -> Screener:
        """What sums up the score tests of all items over everyone."""
        if executor is not None:
            raise InputError("executor: it works on shards, and this fit is in memory")
        self.require_people()
        return MemoryScreener(self)

    @cached_property
    def sites(self) -> PeopleSites:
        """Everyone's responses laid out as sites."""
        if self.known_sites is not None:
            return self.known_sites
        return build_people_sites(self.responses, self.coding, self.bank, self.priors.effects)

    @cached_property
    def prior_mean(self) -> Array | None:
        """The cohort's mean at everyone's instants, (n_sites,); None where it is 0."""
        cohort = self.priors.cohort
        if cohort is None:
            return None
        x = self.sites.columns_of_effects
        return cohort.mean(self.sites.layout.times, self.sites.group_of_site, x)

    def _number_of(self, label: Any) -> Ints:
        """Number of one person, (1,)."""
        self.require_people()
        return index_of(self.responses.people, [label], "id")

    def group_of(self, person: Ints) -> Ints:
        """Group of each of some people, by their numbers; −1 for people never seen."""
        return np.where(person >= 0, self.sites.group[np.maximum(person, 0)], -1)

    @property
    def ids(self) -> list[Any]:
        """Labels of the people."""
        return list(self.responses.people.tolist())

    @property
    def log_evidence(self) -> float:
        """Log probability of all responses, with curves integrated out."""
        return float(self.person_evidence.sum())

    @cached_property
    def person_evidence(self) -> Array:
        """Log probability of each person's responses, (n_people,)."""
        with np.errstate(divide="ignore"):
            log_population = np.log(self.population)[:, None]
        logs = log_population + np.array([result.log_evidence for result in self.ep])
        return np.asarray(np.logaddexp.reduce(logs, axis=0))

    @property
    def frame(self) -> str | None:
        """Kind of data frame that came in and goes out, such as "pandas"; None for `Frame`."""
        return self.responses.frame

    # --- abilities ------------------------------------------------------------------------------

    def marginals(self, person: Ints, offsets: Array) -> Marginals:
        """Reported ability of (person, time) pairs.

        Parameters
        ----------
        person : int array (n_pairs,)
            Number of each person; −1 is someone never seen.
        offsets : array (n_pairs,)
            Times on the fit's clock, see `to_clock`.

        Returns
        -------
        Marginals
            A mixture of normals for each pair, (n_kernels, n_pairs).
        """
        return ability_marginals(self, person, offsets)

    def ability(
        self,
        at: Any = None,
        ids: Any = None,
        *,
        level: float = 0.7,
        quantiles: Any = None,
        filtered: bool = False,
    ) -> Any:
        """Ability of people at times, with a credible band.

        Parameters
        ----------
        at : times, optional
            Past, between or future. Default: the instants of each person's own answers.
        ids : label or sequence of labels, optional
            Some people. Default: everyone.
        level : float, default 0.7
            Probability of the equal-tailed band, between 0 and 1.
        quantiles : sequence of float, optional
            Further quantiles, as columns ``q0.1``, …
        filtered : bool, default False
            Whether abilities are what was known at each time, by the responses up to it. Otherwise
            they are smoothed: given all responses of the person.

        Returns
        -------
        frame
            Columns id, time, mean, sd, lower, upper, and a row for each person and time.

        Raises
        ------
        InputError
            If a person is unknown, or a level or time cannot be read.
        """
        person, offsets = people_and_times(self, at, ids)
        labels = self.responses.people.tolist()
        keys = {"id": [labels[p] for p in person], "time": self.from_clock(offsets)}
        kind = frame_kind(at) or self.frame
        found = filtered_marginals if filtered else ability_marginals
        marginals = found(self, person, offsets)
        return band_frame(marginals, keys, level, kind=kind, quantiles=quantiles)

    def probability_above(self, cut: float, at: Any, ids: Any = None) -> Any:
        """Probability that abilities exceed a value.

        Parameters
        ----------
        cut : float
            On the reported scale.
        at : times
        ids : label or sequence of labels, optional
            Some people. Default: everyone.

        Returns
        -------
        frame
            Columns id, time, probability.
        """
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
        """Ability curve of one person.

        Parameters
        ----------
        id : label
        until : time, optional
            Keep the responses up to this time only: filtered, what was known then.

        Returns
        -------
        Curve
            On the reported scale.

        Raises
        ------
        InputError
            If the person is unknown, or has no responses up to then.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> fit = dy.DynAEsti("2PL").fit(table)
        >>> fit.curve("p00").sample([0, 50], size=3, seed=1).shape
        (3, 2)
        >>> bool(fit.curve("p00", until=30).sd([90])[0] > fit.curve("p00").sd([90])[0])
        True
        """
        who = self._number_of(id)
        return person_curve(self, who, None if until is None else float(self.to_clock([until])[0]))

    def change(self, id: Any, t0: Any, t1: Any) -> Change:
        """How a person's ability changed between two times.

        Parameters
        ----------
        id : label
        t0, t1 : time
            From when, and to when.

        Returns
        -------
        Change
            Mean and sd of the difference, and the probability that ability rose.
        """
        return ability_change(self, id, t0, t1)

    def changes(
        self,
        t0: Any,
        t1: Any,
        ids: Any = None,
        *,
        level: float = 0.7,
        sort: bool = False,
    ) -> Any:
        """How everyone's ability changed between two times: who rose, who fell.

        Parameters
        ----------
        t0, t1 : time
            From when, and to when.
        ids : label or sequence of labels, optional
            Some people, each of whom has one row. Default: everyone.
        level : float, default 0.7
            Probability of the band of the change.
        sort : bool, default False
            Whether those who rose most come first. Otherwise people are in the order of their
            labels.

        Returns
        -------
        frame
            Columns id, (group,) change, sd, lower, upper, rose (the probability that ability
            rose), cohort and own: how far the person's cohort moved, and how far the person beyond
            it.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> frame = dy.DynAEsti("2PL").fit(table).changes(10, 90)
        >>> list(frame.columns), len(frame)
        (['id', 'change', 'sd', 'lower', 'upper', 'rose', 'cohort', 'own'], 12)
        """
        self.require_people()
        people = np.arange(self.responses.people.size)
        if ids is not None:
            people = np.unique(index_of(self.responses.people, as_list(ids), "ids"))
        if not people.size:
            raise InputError("ids: nobody is asked for; leave it out for everyone")
        found = changes_between(self, people, t0, t1)
        columns = change_columns(self, people, found, level)
        return make_frame(sorted_by_change(columns) if sort else columns, self.frame)

    def people(self, *, level: float = 0.7) -> Any:
        """One row a person: how much they answered, where they are now, and how they changed.

        Parameters
        ----------
        level : float, default 0.7
            Probability of the band of the change.

        Returns
        -------
        frame
            Columns id, (group,) answers, first, last (times of answers), ability and ability_sd (at
            the last), change, sd, lower, upper, rose, cohort, own (from the first to the last: see
            `changes`).

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> frame = dy.DynAEsti("2PL").fit(table).people()
        >>> list(frame.columns)[:6]
        ['id', 'answers', 'first', 'last', 'ability', 'ability_sd']
        """
        self.require_people()
        return make_frame(person_columns(self, level), self.frame)

    def plausible(self, id: Any, at: Any, size: int = 20, seed: int | None = 0) -> Array:
        """Plausible values: whole curves drawn from a person's posterior.

        Everyone has a stream of random numbers of their own for a seed. So draws of two people are
        independent, and the k-th draws of all people are one plausible cohort.

        Parameters
        ----------
        id : label
        at : times (n_times,)
        size : int, default 20
            Number of curves.
        seed : int or None, default 0
            None draws anew at every call.

        Returns
        -------
        array (size, n_times)
        """
        return plausible_curves(self, id, at, size, seed)

    def plausible_values(
        self,
        at: Any,
        ids: Any = None,
        *,
        size: int = 10,
        seed: int | None = 0,
        item_uncertainty: bool = False,
    ) -> Any:
        """Plausible values of many people: abilities drawn from everyone's posterior.

        The values of a person at several times belong to one curve, and the k-th values of all
        people are one plausible population: analyse each column as if abilities were known, then
        combine the results by Rubin's rules.

        Parameters
        ----------
        at : times
        ids : label or sequence of labels, optional
            Some people. Default: everyone.
        size : int, default 10
            Number of values.
        seed : int or None, default 0
            None draws anew at every call.
        item_uncertainty : bool, default False
            Whether each value has items and a cohort of its own, drawn from their estimates; this
            takes `size` times as long.

        Returns
        -------
        frame
            Columns id, time, pv1, pv2, …; a row for each person and time.

        Raises
        ------
        InputError
            If a person is unknown, or items' uncertainty is asked of a fit without standard errors.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> frame = dy.DynAEsti("2PL").fit(table).plausible_values([0, 100], size=3)
        >>> list(frame.columns), len(frame)
        (['id', 'time', 'pv1', 'pv2', 'pv3'], 24)
        """
        columns = plausible_columns(self, at, ids, size, seed, item_uncertainty)
        return make_frame(columns, frame_kind(at) or self.frame)

    def uncertain(
        self, id: Any, at: Any, *, draws: int = 30, level: float = 0.7, seed: int = 0
    ) -> Any:
        """Ability of one person with the uncertainty of items and cohort included.

        Curves are averaged over items and cohorts drawn from the normal distributions of their
        estimates.

        Parameters
        ----------
        id : label
        at : times
        draws : int, default 30
            Number of draws of all items, at least 2.
        level : float, default 0.7
            Probability of the equal-tailed band.
        seed : int, default 0

        Returns
        -------
        frame
            Columns id, time, mean, sd, lower, upper.

        Raises
        ------
        InputError
            If the fit has no standard errors of its items.
        """
        offsets = self.to_clock(at)
        marginals = self.uncertain_marginals(id, offsets, draws, seed)
        keys = {"id": [id] * offsets.size, "time": self.from_clock(offsets)}
        return band_frame(marginals, keys, level, kind=self.frame)

    def uncertain_marginals(
        self, id: Any, offsets: Array, draws: int = 30, seed: int = 0
    ) -> Marginals:
        """Ability of one person with the items' uncertainty included, as marginals.

        Parameters
        ----------
        id : label
        offsets : array (n_times,)
            Times on the fit's clock, see `to_clock`.
        draws : int, default 30
            Number of draws of all items, at least 2.
        seed : int, default 0

        Returns
        -------
        Marginals
            A mixture of normals at each time.
        """
        return marginals_with_item_uncertainty(self, id, offsets, draws, seed)

    # --- predictions ----------------------------------------------------------------------------

    def predict(self, data: Any) -> Any:
        """Predict responses at their times.

        Known people are predicted from their curves, new ones from the population's prior, with a
        warning that says how many.
        Where items have few responses each, predictions are averaged over what is known of them.

        Parameters
        ----------
        data : frame, mapping or path
            People, items and times, with the column names of the fit's data. Responses may be
            missing.

        Returns
        -------
        frame
            A row for each of the data, in their order: id, item, time, expected (the mean
            response), resp and p (probability of the response given) where there are responses,
            and p0, p1, …, the probabilities of the responses 0, 1, … (NaN where an item does not
            have them).

        Raises
        ------
        InputError
            If an item is unknown, or the data cannot be read.
        """
        new = self.read_new_data(data, unanswered=True)
        warn_new_people(self.responses.people, new.people)
        return self.predict_read(new)

    def predict_read(self, data: Responses) -> Any:
        """Predict responses already read, as `predict` does, without a warning about new people.

        Parameters
        ----------
        data : Responses

        Returns
        -------
        frame
            See `predict`.
        """
        fit = as_first_data(self, data)
        new = read_new_responses(fit, data, unanswered=True)
        found = fit.predictions(new)
        r = new.responses
        back = np.argsort(r.row, kind="stable")
        columns = found.columns(r, back, self.coding, new.items[r.item])
        return make_frame(columns, r.frame or self.frame)

    def predictions(self, new: NewResponses) -> Predictions:
        """Predict further responses, row by row, as arrays.

        Parameters
        ----------
        new : NewResponses
            Responses with the fit's labels, see `read_new_responses`.

        Returns
        -------
        Predictions
        """
        r = new.responses
        group_if_new = r.group_among(self.responses.groups)[r.person]
        times = times_on_clock(self, new)
        effects = self.priors.effects
        rows = None if effects is None else effects.rows(on_fits_axis(self, new), self.responses)
        mix = ability_marginals(self, new.people[r.person], times, group_if_new, rows)
        latent = Marginals(mix.weights, (mix.means - self.shift) / self.gain, mix.sds / self.gain)
        item = new.items[r.item]
        return predict_responses(
            self.bank,
            self.coding,
            item,
            r.resp,
            with_drift(latent, self.item_drift, item, times),
            self.item_nodes,
        )

    @cached_property
    def leave_one_out(self) -> tuple[Predictions, Array]:
        """Every response predicted without itself.

        Returns
        -------
        predictions : Predictions
            Row by row.
        ability : array (n_responses,)
            Mean reported ability given the person's other responses.
        """
        self.require_people()
        r = self.responses
        pairs = [
            leave_one_out_abilities(
                self.sites,
                self.sites.for_kernel(kernel, self.priors),
                result,
                self.likelihood_table,
            )
            for kernel, result in zip(self.kernels, self.ep, strict=True)
        ]
        means = np.array([pair.mean for pair in pairs])
        sds = np.sqrt(np.array([pair.variance for pair in pairs]))
        weights = self.weights[:, r.person]
        z = Marginals(weights, means, sds)
        found = predict_responses(self.bank, self.coding, r.item, r.resp, z)
        return found, self.shift + self.gain * (weights * means).sum(axis=0)

    def score(self, data: Any, *, at: Any = None, level: float = 0.7) -> Any:
        """Abilities of new people, or from new answers only, with the items held.

        Parameters
        ----------
        data : frame, mapping or path
            Answers, with the column names of the fit's data.
        at : times, optional
            Default: the instants of the answers.
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        frame
            Columns id, time, mean, sd, lower, upper, as from `ability`.
        """
        new = self.read_new_data(data)
        fit = as_first_data(self, new)
        return fit_new_people(fit, read_new_responses(fit, new)).ability(at, level=level)

    def update(
        self, data: Any, *, new_items: bool | str | Mapping[Any, str] = False, again: bool = False
    ) -> Fit:
        """The fit with more answers of known or new people; items stay as they are.

        The curves of these people are fitted anew from their present sites. Answers that the fit
        has already (same person, item, time and response) are left out, with a warning, so that
        an export of all answers so far adds the new ones only.

        Parameters
        ----------
        data : frame, mapping or path
            Answers, with the column names of the fit's data.
        new_items : bool, str or mapping of item to str, default False
            Let in items that were never seen. They are learned from the answers of those who met
            them, with the model and the categories of the other items, which stay as they are.
            Where these have several models: the model of the new ones, or of each of them.
        again : bool, default False
            Add answers even if the fit has the very same.

        Returns
        -------
        Fit

        Raises
        ------
        InputError
            If an item is unknown and `new_items` is False.
        """
        return update_fit(self, data, new_items=new_items, again=again)

    def live(self, id: Any) -> LivePerson:
        """One known person, ready for further answers one by one.

        Parameters
        ----------
        id : label

        Returns
        -------
        LivePerson
            With `add(time, item, resp)` and `ability(times)`.

        Raises
        ------
        InputError
            If the person is unknown, or a kernel has no form that grows an answer at a time.
        """
        return live_person(self, int(self._number_of(id)[0]))

    def to_datatree(self, *, draws: int = 200, at: Any = None, seed: int | None = 0) -> Any:
        """The fit as a tree of arrays (`xarray.DataTree`), in the groups that ArviZ knows.

        Groups: ``posterior`` has abilities drawn from everyone's posterior, at their responses and,
        where times are asked for, at these; ``log_likelihood`` the log-likelihood of each response
        under each draw, with items and effects at their estimates; ``observed_data`` the
        responses; ``constant_data`` the item parameters with standard errors. Draws are
        independent: there is one chain.

        Parameters
        ----------
        draws : int, default 200
            Number of draws of everyone's curve.
        at : times, optional
            Times at which everyone's ability is drawn too, as ``posterior["ability"]``.
        seed : int or None, default 0
            None draws anew at every call.

        Returns
        -------
        xarray.DataTree

        Raises
        ------
        MissingExtraError
            If xarray is not installed.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> tree = dy.DynAEsti("2PL").fit(table).to_datatree(draws=50, at=[0.0, 50.0])
        >>> dict(tree["posterior"].sizes)
        {'chain': 1, 'draw': 50, 'response': 144, 'person': 12, 'at': 2}
        >>> tree["log_likelihood"]["resp"].shape
        (1, 50, 144)
        """
        return fit_datatree(self, draws, at, seed)

    def state(self, id: Any) -> State:
        """What is known of one known person, to be followed by `scorer`.

        Parameters
        ----------
        id : label

        Returns
        -------
        State
            After all answers of the person, one after the other. It goes with ``fit.scorer()``.

        Raises
        ------
        InputError
            If the person is unknown, or a kernel has no state of a few numbers.

        Examples
        --------
        >>> import dynaesti as dy
        >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
        >>> fit = dy.DynAEsti("2PL").fit(table)
        >>> state = fit.scorer().add(fit.state("p00"), 101.0, "i3", 1)
        >>> state.answers
        13
        """
        who = self._number_of(id)
        return state_of(self, self.scorer(), who)

    # --- files, figures, words ------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> Path:
        """Save the fit as one file without pickles, which `dynaesti.load` opens without refitting.

        Parameters
        ----------
        path : str or path
            Where to. `StorageError` is raised if that cannot be written.

        Returns
        -------
        pathlib.Path
        """
        arrays: Arrays = {}
        return save_archive(path, "fit", fit_header(self, arrays), arrays)

    def save_into(self, file: Path) -> None:
        """Write what `save` writes into an existing file.

        Parameters
        ----------
        file : pathlib.Path
        """
        arrays: Arrays = {}
        with file.open("wb") as opened:
            write_archive(opened, "fit", fit_header(self, arrays), arrays)

    @property
    def plot(self) -> FitPlots:
        """Figures, such as `plot.curves(ids)`, `plot.item(label)`, `plot.information()`.

        Each returns its matplotlib axes, and has a method ``…_data`` for what it draws.
        """
        return FitPlots(self)

    @cached_property
    def health(self) -> DataReport:
        """Checks of the data, in words."""
        self.require_people()
        return check_responses(self.responses)

    @cached_property
    def cautions(self) -> list[str]:
        """What these answers cannot determine, in words.

        Credible bands do not include it.
        """
        if not len(self.responses):
            return []
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
        """The most informative items for a person at a time.

        Fisher information is averaged over what is known of the person's ability.

        Parameters
        ----------
        id : label
        at : time
        exclude : label or sequence of labels, optional
            Items to leave out, such as those already answered.
        count : int, default 5
            Number of items.

        Returns
        -------
        frame
            Columns item, information; the most informative first.
        """
        who = self._number_of(id)
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
        """Share of the variance of ability that the answers explain.

        Averaged over people and times.

        Parameters
        ----------
        at : times, optional
            Default: the instants of each person's own answers.

        Returns
        -------
        float
            1 − (mean posterior variance) / (prior variance).
        """
        return reliability(self, at)

    def reliability_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval of the reliability at the answers.

        Parameters
        ----------
        level : float, default 0.95
            Probability that it holds.

        Returns
        -------
        lower, upper : float
            The lower end is 0 where it is possible that people do not differ at all.
        """
        check_level(level)
        return reliability_interval(self, level)

    def items_alone(self) -> ItemsAlone | None:
        """The fit beside its items alone: what knowing who answers adds.

        Returns
        -------
        ItemsAlone or None
            Log losses, each answer predicted without itself; None where no item has categories.
        """
        return items_alone(self)

    @property
    def n_unconverged(self) -> int:
        """Number of curves on which EP did not converge.

        Only kernels that have some weight for the person count.
        """
        return EStepPosterior(self.ep, self.weights).n_unconverged

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of answers, people and items."""
        r = self.responses
        return {"answers": len(r), "people": r.people.size, "items": r.items.size}

    def evidence_facts(self) -> dict[str, str]:
        """Evidence, criteria, and reliability at the answers with its interval."""
        lower, upper = self.reliability_interval()
        facts = criteria(self, self.log_evidence)
        return facts | {
            "reliability": f"{self.reliability():.2f} (95 %: {lower:.2f} to {upper:.2f})"
        }

    def sentences(self) -> list[str]:
        """Data, convergence, priors and cautions in words."""
        r = self.responses
        if not len(r):
            return [bank_sentence(self)]
        ends = self.from_clock(np.array(self.time_range))
        first, last = map(time_text, ends)
        clock = ", counted from each start" if r.clock == "person" else ""
        size = (
            f"{count_noun(len(r), 'answers')} of {count_noun(r.people.size, 'people')} to "
            f"{count_noun(r.items.size, 'items')} ({self.model_names()}), "
            f"from {first} to {last} ({r.unit}{clock})."
        )
        return [
            size,
            *self.convergence_sentences(self.log_evidence, self.n_unconverged, r.dropped),
            *explained_sentences(self),
            *self.item_sentences(),
            *self.cautions,
        ]

    def __repr__(self) -> str:
        if not len(self.responses):
            items = count_noun(self.responses.items.size, "items")
            return f"<Fit of a bank of {items} ({self.model_names()}), without people>"
        verdict = "converged" if self.converged else "not converged"
        return (
            f"<Fit of {count_noun(len(self.responses), 'answers')} of "
            f"{count_noun(self.responses.people.size, 'people')} to "
            f"{count_noun(self.responses.items.size, 'items')} ({self.model_names()}), {verdict}>"
        )

    def _repr_html_(self) -> str:
        return with_table(repr(self), as_frame(self.items))
