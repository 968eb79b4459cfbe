"""Scorer: items and population of a fit, by which learners are followed answer by answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dynaesti.core import Array, Arrays, Ints, save_archive
from dynaesti.data import (
    Labels,
    Responses,
    as_list,
    index_of,
    make_frame,
)
from dynaesti.errors import InputError
from dynaesti.estimation import FittedModel, Scale, reported_scale
from dynaesti.inference import (
    FOLLOWS_NOW,
    MEAN_NOW,
    VARIANCE_NOW,
    Marginals,
    MarkovForm,
    add_answers,
    check_level,
    curves_at,
    filter_size,
    markov_form,
    start_filter,
)
from dynaesti.results.clock import from_clock, to_clock
from dynaesti.results.predictions import Predictions, predict_responses, with_drift
from dynaesti.results.scoring.ability import Ability, probabilities_above, summarised
from dynaesti.results.scoring.answers import AnswerCoder, counted, is_number
from dynaesti.results.scoring.choice import Content, ItemTables, choose_items, item_tables
from dynaesti.results.scoring.columns import ability_column, follow_column
from dynaesti.results.scoring.engines import PolarsScorer, register
from dynaesti.results.scoring.planning import first_time
from dynaesti.results.scoring.scorer_file import fingerprint_of, scorer_header
from dynaesti.results.scoring.state import State, read_state


@dataclass(frozen=True, eq=False)
class Scorer:
    """Items and population of a fit, without its people: small, and quick to open.

    `Fit.scorer` makes one, `save` writes it, `load` opens it. What is known of a learner is a
    `State`, a value of less than a kilobyte: `start` makes one, `add` another one with an answer
    more. All cost the same after ten answers and after ten thousand.

    Parameters
    ----------
    model : FittedModel
        Items, population and options.
    item_labels : array (n_items,)
    template : Responses
        No responses, with the columns, clock and groups of the fit's.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=5, per_person=12, seed=1).table
    >>> scorer = dy.DynAEsti("2PL").fit(table).scorer()
    >>> state = scorer.start()
    >>> for time, item, resp in [(50.0, "i1", 1), (50.0, "i3", 1), (52.0, "i2", 0)]:
    ...     state = scorer.add(state, time, item, resp)
    >>> state.answers
    3
    >>> scorer.ability(state, 60.0).sd > scorer.ability(state, 52.0).sd
    True
    >>> len(scorer.next_item(state, 60.0, count=2))
    2
    """

    model: FittedModel
    item_labels: Labels
    template: Responses

    # --- what is computed once

    @cached_property
    def form(self) -> MarkovForm:
        """The kernels as Markov processes."""
        return markov_form(self.model.kernels)

    @cached_property
    def fingerprint(self) -> bytes:
        """What tells states of this scorer from others', 8 bytes."""
        return fingerprint_of(self.model, self.item_labels, self.template)

    @cached_property
    def scale(self) -> Scale:
        """Scale that abilities are reported on."""
        return reported_scale(self.model.bank, self.model.options["scale"])

    @cached_property
    def _gain_and_shift(self) -> tuple[float, float]:
        """Reported ability is shift + gain · z."""
        scale = self.model.bank.ability_scale
        gain = self.scale.gain * scale.scale
        return gain, self.scale.gain * scale.location + self.scale.shift

    @cached_property
    def _coder(self) -> AnswerCoder:
        return AnswerCoder(self.model, self.item_labels, self.template)

    @property
    def column_kinds(self) -> dict[str, str]:
        """Columns that effects and freed items need, with their kinds."""
        return self._coder.column_kinds

    @property
    def personal_columns(self) -> tuple[str, ...]:
        """Columns of the effects that belong to a person, which `start` asks for."""
        return () if self._coder.effects is None else self._coder.effects.personal

    @cached_property
    def _tables(self) -> ItemTables:
        return item_tables(self.model.bank)

    @cached_property
    def _start(self) -> Array:
        return start_filter(self.form, self.model.population)

    # --- states

    def start(self, **columns: Any) -> State:
        """The state of someone of whom nothing is known.

        Parameters
        ----------
        **columns
            The group, under the name of its column in the fit's data (default: average), and the
            columns of the effects that belong to a person, such as ``age=12``.

        Returns
        -------
        State

        Raises
        ------
        InputError
            If a column of the effects is absent, unknown, or has no value that can be used.
        """
        given = dict(columns)
        group_column = self.template.columns.get("group")
        group = 0
        if self.template.groups:
            group = self._group(given.pop(str(group_column), None))
        names = self.personal_columns
        personal = []
        for name in names:
            if name not in given:
                raise InputError(
                    f"start: the fit's effects need the column {name!r} of a person; give it, as "
                    f"in start({name}=…)"
                )
            assert self._coder.effects is not None
            personal.append(self._coder.effects.value(name, given.pop(name)))
        if given:
            raise InputError(
                f"start: nothing of the fit needs {next(iter(given))!r} of a person; it needs "
                f"{', '.join(map(repr, names)) or 'no column'}"
            )
        origin = np.nan if self.template.clock == "person" else 0.0
        state = State(self._start, self.fingerprint, 0, group, origin, tuple(personal))
        if self._coder.effects is not None:  # refuses levels that are unknown
            self._coder.effects.seen(0.0, dict(zip(names, personal, strict=True)), None)
        return state

    def _group(self, label: Any) -> int:
        if label is None:
            return -1
        groups = [str(group) for group in self.template.groups]
        if str(label) not in groups:
            raise InputError(
                f"group: {label!r} is not one of the fit's: {', '.join(map(repr, groups))}; leave "
                "it out for the average"
            )
        return groups.index(str(label))

    def state(self, data: bytes) -> State:
        """A state from what `State.to_bytes` wrote.

        Parameters
        ----------
        data : bytes

        Returns
        -------
        State

        Raises
        ------
        StorageError
            If the bytes are damaged, or of a later version.
        InputError
            If they are the state of another scorer.
        """
        n_personal = len(self.personal_columns)
        return read_state(data, self.fingerprint, filter_size(self.form), n_personal)

    def _check(self, state: State) -> None:
        """Refuse what is no state of this scorer."""
        if not isinstance(state, State) or state.fingerprint != self.fingerprint:
            raise InputError("state: not a state of this scorer; see start and state(bytes)")

    def add(
        self,
        state: State,
        time: Any,
        item: Any,
        resp: float,
        weight: float = 1.0,
        **columns: Any,
    ) -> State:
        """The state with one more answer.

        Parameters
        ----------
        state : State
        time : time
            As in the fit's data; not before the last answer's.
        item : label
        resp : float
        weight : float, default 1.0
            How often the answer counts, at least 0.
        **columns
            Columns of answers that the fit's effects need, such as ``rater="B"``.

        Returns
        -------
        State

        Raises
        ------
        LateAnswer
            If the answer is from before the last one.
        InputError
            If the item is unknown, the response is not one of its own, or a column is absent.
        """
        return self.add_each([state], [time], [item], [resp], [weight], [columns])[0]

    def add_each(
        self,
        states: Sequence[State],
        times: Sequence[Any],
        items: Sequence[Any],
        resps: Sequence[float],
        weights: Sequence[float] | None = None,
        columns: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[State]:
        """Many states, each with one answer more, in one call.

        Parameters
        ----------
        states : sequence of State
            Of different learners.
        times, items, resps, weights, columns : sequence
            Of the same length: see `add`.

        Returns
        -------
        list of State
        """
        for state in states:
            self._check(state)
        n = len(states)
        given = columns or [{}] * n
        named = {"times": times, "items": items, "resps": resps, "columns": given}
        for name, values in (named | {"weights": weights or [1.0] * n}).items():
            if len(values) != n:
                raise InputError(f"{name}: expected one for each of {n} states, got {len(values)}")
        found = [
            self._coder.answer(*one)
            for one in zip(states, times, items, resps, weights or [1.0] * n, given, strict=True)
        ]
        if not found:
            return []
        numbers = add_answers(
            self.form,
            np.array([state.numbers for state in states]),
            np.array([one.time for one in found]),
            np.array([one.offset for one in found]),
            np.array([one.beside for one in found]),
            self._coder.log_likelihood(found),
        )
        return [
            State(
                numbers[k],
                state.fingerprint,
                state.answers + 1,
                state.group,
                one.origin,
                state.personal,
                one.practice,
                one.open_practice,
            )
            for k, (state, one) in enumerate(zip(states, found, strict=True))
        ]

    # --- columns of states

    @property
    def beginning_columns(self) -> tuple[str, ...]:
        """Columns that `start` takes: those of the effects that belong to a person, the group."""
        group = (str(self.template.columns.get("group")),) if self.template.groups else ()
        return (*self.personal_columns, *group)

    def add_column(
        self,
        states: Any,
        times: Any,
        items: Any,
        resps: Any,
        weights: Any = None,
        **columns: Any,
    ) -> list[bytes]:
        """A column of states as bytes, each with one answer more, or with a list of them.

        Parameters
        ----------
        states : sequence of bytes or None
            None stands for someone of whom nothing is known.
        times, items, resps, weights : sequence
            A row a learner: one answer, or a list of answers in the order of their times.
        **columns : sequence
            Columns that the fit's effects need: those of people one value a row, which only
            newcomers need; those of answers as the answers.

        Returns
        -------
        list of bytes
        """
        answers = {"time": list(times), "item": as_list(items), "resp": as_list(resps)}
        if weights is not None:
            answers["weight"] = as_list(weights)
        beside = {name: as_list(column) for name, column in columns.items()}
        return follow_column(self, as_list(states), answers, beside)

    def ability_column(
        self, states: Any, at: Any = None, *, level: float = 0.7
    ) -> dict[str, list[float]]:
        """Abilities of a column of states as bytes.

        Parameters
        ----------
        states : sequence of bytes
        at : time or times, optional
            One for all, or one each. Default: the times of the last answers.
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        dict of list
            Columns mean, sd, lower, upper.
        """
        return ability_column(self, as_list(states), at, level)

    @property
    def polars(self) -> PolarsScorer:
        """Expressions of Polars that change and read columns of states."""
        return PolarsScorer(self)

    def register(self, connection: Any, prefix: str = "dynaesti") -> None:
        """Make functions of states in a DuckDB connection.

        ``dynaesti_add(state, time, item, resp)`` gives the state as a BLOB after one answer (NULL:
        of someone of whom nothing is known), ``dynaesti_follow`` after lists of answers in the
        order of their times, ``dynaesti_ability(state)`` a struct of mean, sd, lower and upper.
        Fits with effects need further columns: see `add_column`.

        Parameters
        ----------
        connection : duckdb.DuckDBPyConnection
        prefix : str, default "dynaesti"
            Of the functions' names.
        """
        register(self, connection, prefix)

    # --- questions

    def marginals(self, states: State | Sequence[State], at: Any) -> Marginals:
        """Reported ability of one state at times, or of several states at one time each.

        Parameters
        ----------
        states : State or sequence of State
        at : time or times
            Not before the last answers. Since the learner's own start, where the fit counts so.

        Returns
        -------
        Marginals
            A mixture of normals at each point.
        """
        gain, shift = self._gain_and_shift
        latent = self._latent(*self._points(states, at))
        return Marginals(latent.weights, shift + gain * latent.means, gain * latent.sds)

    def _points(self, states: State | Sequence[State], at: Any) -> tuple[list[State], list[float]]:
        """States and times on the clock, one of each for every point."""
        whole = [states] if isinstance(states, State) else list(states)
        numeric = self.template.clock == "person" or not self.template.axis.stamps
        if at is None:
            times = [state.clock_time for state in whole]
            times = [0.0 if time != time else time for time in times]
        elif numeric and type(at) in (int, float):
            origin = 0.0 if self.template.clock == "person" else self.template.axis.origin
            times = [float(at) - origin]
        else:
            times = to_clock(self.template, at if _has_length(at) else [at]).tolist()
        n = max(len(whole), len(times))
        whole = whole * n if len(whole) == 1 else whole
        times = times * n if len(times) == 1 else times
        if len(whole) != len(times):
            raise InputError(f"at: {len(times)} times for {len(whole)} states; give one each")
        for state, time in zip(whole, times, strict=True):
            self._check(state)
            if not abs(time) < np.inf:
                raise InputError("at: expected finite times")
            if time < state.clock_time:
                raise InputError(
                    "at: a time before the state's last answer; a state knows the present and "
                    "the future, and Fit.ability the past"
                )
        return whole, times

    def _latent(
        self,
        states: Sequence[State],
        times: Sequence[float],
        seen: Sequence[tuple[float, float]] | None = None,
    ) -> Marginals:
        """Ability, or what answers see of it, in standard deviations: (n_kernels, n_points)."""
        numbers = np.array([state.numbers for state in states])
        weights, points = curves_at(self.form, numbers, np.array(times))
        now = points.transpose(2, 1, 0)
        mean = now[MEAN_NOW]
        variance = now[VARIANCE_NOW]
        if self._coder.cohort is not None:
            at = self._coder.cohort.at
            found = [at(time, state.group) for state, time in zip(states, times, strict=True)]
            follows = now[FOLLOWS_NOW]
            offset, uncertain, drift = np.array(found).T
            variance = variance + follows * follows * uncertain + drift
            if seen is None:
                mean = mean + offset
                if self._coder.effects is not None:
                    lines = [self._line(s, t) for s, t in zip(states, times, strict=True)]
                    mean = mean + np.array(lines)
        if seen is not None:
            own, beside = np.array(seen).T
            mean = mean + own
            variance = variance + beside
        return Marginals(weights.T, mean, np.sqrt(np.maximum(variance, 1e-300)))

    def _line(self, state: State, time: float) -> float:
        """Effects that are part of a learner's ability."""
        if self._coder.effects is None:
            return 0.0
        values = dict(zip(self._coder.effects.personal, state.personal, strict=True))
        return self._coder.effects.seen(time, values, None).mean

    def ability(
        self, states: State | Sequence[State], at: Any = None, *, level: float = 0.7
    ) -> Ability:
        """Ability now, or later if no answer comes.

        Parameters
        ----------
        states : State or sequence of State
        at : time or times, optional
            Not before the last answer. Default: the time of the last answer.
        level : float, default 0.7
            Probability of the equal-tailed band.

        Returns
        -------
        Ability
            Numbers for one state at one time, else arrays: of one state at several times, or of
            several states at one time each.
        """
        check_level(level)
        whole, times = self._points(states, at)
        gain, shift = self._gain_and_shift
        z = self._latent(whole, times)
        found = Marginals(z.weights, shift + gain * z.means, gain * z.sds)
        single = isinstance(states, State) and not _has_length(at)
        when = from_clock(self.template, np.array(times))
        return summarised(found, when[0] if single else when, level, single)

    def predict(self, state: State, items: Any, at: Any, **columns: Any) -> Any:
        """Chances of answers to items at a time.

        Parameters
        ----------
        state : State
        items : label or sequence of labels
        at : time
            Not before the last answer.
        **columns
            Columns of answers that the fit's effects need.

        Returns
        -------
        frame
            A row for each item: item, expected (the mean response), and p0, p1, …, the
            probabilities of the responses 0, 1, ….
        """
        labels = as_list(items)
        if not labels:
            raise InputError("items: name at least one")
        (_,), (now,) = self._points([state], at)
        on_axis = now + (state.origin if state.origin == state.origin else 0.0)
        item = self._coder.item
        numbers = np.array([item(label, on_axis, columns) for label in labels], dtype=np.int64)
        found = self.predictions(state, now, numbers, columns)
        nothing = np.full(numbers.size, np.nan)
        order = np.arange(numbers.size)
        shown = found.response_columns(nothing, order, self.model.coding, numbers)
        return make_frame({"item": labels, **shown}, self.template.frame)

    def predictions(
        self,
        state: State,
        now: float,
        items: Ints,
        columns: Mapping[str, Any],
        resp: Array | None = None,
    ) -> Predictions:
        """Chances of answers to items, by their numbers, at a time on the clock.

        Parameters
        ----------
        state : State
        now : float
        items : int array (n_items,)
        columns : mapping of str to Any
            Columns of answers.
        resp : array (n_items,), optional
            Responses whose probability is asked for.
        """
        practice = state.practice
        if now > state.clock_time:
            practice = counted(practice, state.open_practice)
        seen = [self._coder.seen(state, now, k, columns, practice) for k in items.tolist()]
        n = len(seen)
        z = self._latent([state] * n, [now] * n, seen)
        z = with_drift(z, self.model.item_drift, items, np.full(n, now))
        given = np.full(n, np.nan) if resp is None else resp
        model = self.model
        return predict_responses(model.bank, model.coding, items, given, z, model.item_nodes)

    def next_item(
        self,
        state: State,
        at: Any = None,
        *,
        target: float | None = None,
        exclude: Any = (),
        content: Content | None = None,
        exposure: int | Mapping[Any, float] | None = None,
        stop: float | None = None,
        count: int = 1,
        seed: Any = None,
    ) -> Any:
        """What to ask next.

        Parameters
        ----------
        state : State
        at : time, optional
            Default: the time of the last answer.
        target : float, optional
            Choose items whose expected response, as a share of what is possible, is nearest to
            this: 0.8 keeps practice pleasant. Default: the most informative items.
        exclude : label or sequence of labels, optional
            Items to leave out, such as those of this session.
        content : Content, optional
            Areas and their shares: the one that lags behind most comes first.
        exposure : int or mapping of item to float, optional
            A number: draw among so many best items. A mapping: chance that an item is given when
            it is the best. Without it the same state always gets the same item.
        stop : float, optional
            Standard deviation of ability that is enough: then no item is returned.
        count : int, default 1
            Number of items.
        seed : int or numpy.random.Generator, optional
            For `exposure`.

        Returns
        -------
        frame
            Columns item, information (per squared unit of ability), expected (share of what is
            possible), best first; no row where `stop` is reached.
        """
        gain, _ = self._gain_and_shift
        (_,), (now,) = self._points([state], at)
        z = self._latent([state], [now])
        labels = as_list(exclude)
        barred = np.zeros(0, dtype=np.int64)
        if labels:
            barred = index_of(self.item_labels, labels, "exclude")
        enough = None if stop is None else stop / gain
        chosen = choose_items(
            self._tables, self.item_labels, z, target, barred, content,
            exposure, enough, count, seed,
        )  # fmt: skip
        names = self.item_labels.tolist()
        columns = {
            "item": [names[k] for k in chosen.item],
            "information": chosen.information / gain**2,
            "expected": chosen.expected,
        }
        return make_frame(columns, self.template.frame)

    def mastery(self, states: State | Sequence[State], cut: float, at: Any = None) -> Any:
        """Probability that ability exceeds a value.

        Parameters
        ----------
        states : State or sequence of State
        cut : float
            On the reported scale.
        at : time or times, optional
            Default: the time of the last answer.

        Returns
        -------
        float, or array (n_points,)
        """
        if not is_number(cut):
            raise InputError(f"cut: expected a number on the scale of abilities, got {cut!r}")
        found = probabilities_above(self.marginals(states, at), float(cut))
        single = isinstance(states, State) and not _has_length(at)
        return float(found[0]) if single else found

    def time_to_mastery(
        self, state: State, cut: float, *, probability: float = 0.8, until: Any = None
    ) -> Any:
        """When ability will probably exceed a value, if the learner goes on as the cohort does.

        Parameters
        ----------
        state : State
        cut : float
            On the reported scale.
        probability : float, default 0.8
            How sure it shall be, between 0 and 1.
        until : time, optional
            How far to look. Default: as long again as the fit's cohort was followed, or 365 units.

        Returns
        -------
        time or None
            None if not until then.
        """
        return self._first(state, cut, probability, until, above=True)

    def practise_by(self, state: State, cut: float, goal: Any, *, probability: float = 0.8) -> Any:
        """When to practise next, so that mastery does not become doubtful before a date.

        Without answers what is known fades: the probability of mastery falls. It is the last time
        at which it is still as high as asked for.

        Parameters
        ----------
        state : State
        cut : float
            On the reported scale.
        goal : time
            The date for which mastery counts.
        probability : float, default 0.8
            How sure it shall be, between 0 and 1.

        Returns
        -------
        time or None
            The time of the last answer if it is doubtful already; None if it stays sure until
            the date.
        """
        return self._first(state, cut, probability, goal, above=False)

    def _first(self, state: State, cut: float, probability: float, until: Any, above: bool) -> Any:
        """First time at which mastery is more, or less, probable than asked for."""
        if not is_number(probability) or not 0 < probability < 1:
            raise InputError(f"probability: {probability!r} is not between 0 and 1")
        if not is_number(cut):
            raise InputError(f"cut: expected a number on the scale of abilities, got {cut!r}")
        start = 0.0 if state.clock_time != state.clock_time else state.clock_time
        end = start + self._span
        if until is not None:
            (_,), (end,) = self._points([state], until)
        gain, shift = self._gain_and_shift
        latent_cut = (float(cut) - shift) / gain

        def probabilities(times: Array) -> Array:
            z = self._latent([state] * times.size, times.tolist())
            return probabilities_above(z, latent_cut)

        found = first_time(probabilities, start, end, probability, above)
        return None if found is None else from_clock(self.template, np.array([found]))[0]

    @property
    def _span(self) -> float:
        """How long the cohort was followed."""
        cohort = self.model.priors.cohort
        return 365.0 if cohort is None else cohort.basis.span

    # --- files

    def save(self, path: str | PathLike[str]) -> Path:
        """Save the scorer as one small file without pickles, which `dynaesti.load` opens.

        Parameters
        ----------
        path : str or path
            Where to; ``.dynscore`` is the usual ending.

        Returns
        -------
        pathlib.Path
        """
        arrays: Arrays = {}
        header = scorer_header(self.model, self.item_labels, self.template, arrays)
        return save_archive(path, "scorer", header, arrays)

    def __repr__(self) -> str:
        return f"<Scorer of {self.item_labels.size:,} items, {len(self.model.kernels)} kernels>"


def _has_length(at: Any) -> bool:
    return hasattr(at, "__len__") and not isinstance(at, str)
