"""DynAEsti, dynamic ability estimation: the estimator of items and abilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from os import PathLike, fspath
from typing import Any, TypedDict, Unpack, overload

import numpy as np

from dynaesti.core import (
    CHECKPOINT,
    FIT_NAME,
    LOCK,
    LOCK_TIMEOUT,
    Array,
    Folder,
    Parameters,
    exclusive_lock,
)
from dynaesti.data import (
    NO_GROUP,
    Labels,
    Responses,
    check_splits,
    columns_needed,
    of_all_parts,
    parse_formula,
    split_items,
)
from dynaesti.errors import ConvergenceWarning, HealthWarning, InputError, option, warn_user
from dynaesti.estimation import (
    RUNTIME_OPTIONS,
    AbilityOptions,
    EMSchedule,
    EMSettings,
    OnIteration,
    ProgressLine,
    ResponseCoding,
    ResponseCounts,
    build_bank,
    build_coding,
    in_full,
    initial_signed_slopes,
    read_given_items,
    resolve_item_models,
    resolve_kernel,
    with_densities,
)
from dynaesti.model import ItemBank, ItemModel, Kernel, default_model
from dynaesti.results import Fit, ResponsesInMemory, ResponseSource
from dynaesti.sharded import (
    Executor,
    ResponsesInShards,
    ShardedFit,
    Shards,
    ThreadExecutor,
    is_shards,
)

ORIENTATION_SITES = 2_000_000  # sites of the people by whom it is judged which items run backwards


class ColumnNames(TypedDict, total=False):
    """Columns of a table, by their roles; see `DynAEsti.fit`."""

    id: str | None
    item: str | None
    resp: str | None
    time: str | None
    weight: str | None
    model: str | None


class TableOptions(ColumnNames, total=False):
    """Columns of a table, and how it is laid out; see `Responses.read`."""

    wide: bool | None
    items: Any
    key: Any
    only: Any
    sheet: str | None
    query: str | None


class DynAEsti(Parameters, AbilityOptions):
    """Item response theory in which each person's ability is a curve over time.

    Items and abilities are learned together by EM. The E-step finds all curves by expectation
    propagation, the M-step improves the items. An estimator holds options only, and does not
    change; `with_options` makes another one.

    Parameters
    ----------
    model : str, CustomItemModel or mapping, default "2PL"
        Item model: "1PL", "2PL", "3PL", "4PL", "GRM", "PCM", "GPCM", "RSM", "NRM", "golf",
        "poisson", "gaussian", "beta", a model of your own, or a mapping from item to model. None:
        by the responses, 2PL for 0 and 1, GRM for a few whole numbers.
    kernel : Kernel or str, optional
        Prior of the ability curves, of total variance 1, or its name. Default: "level+smooth", a
        constant for each person plus a curve that moves; the distribution over people of its
        smoothness, its bandwidth and the two variances is learned. The paper's prior is "rbf".
    bandwidth : float or "learn", optional
        Instead of a kernel: the bandwidth of a lone RBF kernel, in the unit of the times; inf for
        abilities that are constant.
    scale : {"abilities", "items"}, default "abilities"
        What fixes the unit of ability: unit variance of the abilities, or a geometric mean of 1 of
        the items' slopes.
    direction : {"positive", "free"}, default "positive"
        Whether slopes are positive, or items may run backwards.
    orient : mapping, optional
        ``{"item": label}`` or ``{"id": label}``: the item or person that lies on the upper side of
        a scale with ``direction="free"``.
    priors : {"weak", "hierarchical", None}, default "weak"
        Priors of item parameters. "weak": wide normal priors; difficulties have a common spread,
        and are integrated out when it is learned. Where items have few responses each, the priors
        are learned from all items, as with "hierarchical". None: no priors. With priors, items
        with few responses also keep categories that other items have and nobody chose.
    clock : {"calendar", "person"}, default "calendar"
        Whether time is the same for all, or counts from each person's first response.
    cohort : {"auto", "learn", None}, default "auto"
        Whether the population's mean over time is learned: a smooth curve about which everyone's
        own varies. None: the mean is 0 at all times. "auto" learns it, unless abilities are
        constant (``bandwidth=inf``), `population` states their mean, or there are fewer than ten
        people. See `Fit.cohort`.
    groups : str, optional
        Column of the data with each person's group. Every group then has a mean of its own over
        time; see `Fit.compare_groups`.
    effects : str, optional
        Formula of columns of the data that move people or answers, such as
        ``"age + treat * time + C(lang) + practice(item) + random(rater)"``. Columns are numbers or
        categories as they come, C(column) are categories, log(column) is a logarithm, and time is
        the clock; practice(item), practice(column) is log(1 + n) of the person's n earlier answers
        to the same item, or with the same value; random(column) has an effect for each value, of a
        size that is learned. See `Fit.effects`.
    free : mapping, optional
        Items that are split into several, each with parameters of its own, by a column of the data
        or at a time: ``{"i3": "gender", "i7": 45.0}``, for items with DIF or drift. In memory only.
    unit : str, optional
        What one unit of numeric times is, for labels; see `Responses.read`.
    rare : int, default 1
        Categories with fewer responses than this are joined with a neighbour.
    fixed, start : mapping, frame or path, optional
        Item parameters that are held, or only started from: ``{item: {parameter: value}}``, or a
        frame or file with a column "item". Names of mirt (a1, d, g, u), ltm (Dscrmn, Dffclt) and
        words (discrimination, difficulty, guessing) are understood. Fixed parameters anchor the
        scale; mean and standard deviation of the abilities are then learned.
    population : (float, float), optional
        Mean and standard deviation of the abilities on the scale of `fixed`, where they are known.
    iterations : int, default 200
        Largest number of EM iterations.
    tolerance : float, default 0.01
        EM has converged when an iteration changes the parameters by less than this fraction of
        their standard errors (by less than ten times that where priors are learned from items with
        few responses).
    standard_errors : bool, default True
        Whether to compute standard errors of the items.
    threads : int, optional
        Threads to use. Default: one for each core.
    progress : bool or callable, default False
        True shows a live line; a function is called with the record of each iteration.
    checkpoint : path, optional
        File from which an interrupted fit of the same data and options continues, to the same
        result. A fit of shards keeps one in its own folder.
    every : float, default 20
        Seconds between writes of the checkpoint.
    executor : ThreadExecutor or DaskExecutor, optional
        What works on shards. Default: threads of this process.

    Raises
    ------
    InputError
        If an option cannot be used; the message names it.

    See Also
    --------
    CurvFiFE : a single curve, or many, from any emissions.
    prepare : shards for responses that do not fit into memory.

    Examples
    --------
    >>> import dynaesti as dy
    >>> drawn = dy.simulate.responses(people=12, items=3, per_person=8, seed=1)
    >>> fit = dy.DynAEsti("1PL", bandwidth=30.0, standard_errors=False).fit(drawn.table)
    >>> fit.converged
    True
    >>> fit.items["item"].tolist()
    ['i0', 'i1', 'i2']
    >>> fit.ability([10.0, 90.0], ["p01"]).columns
    ['id', 'time', 'mean', 'sd', 'lower', 'upper']
    """

    executor: Executor | None

    def __init__(
        self,
        model: Any = "2PL",
        *,
        kernel: Kernel | str | None = None,
        bandwidth: Any = None,
        scale: str = "abilities",
        direction: str = "positive",
        orient: Mapping[str, Any] | None = None,
        priors: str | None = "weak",
        clock: str = "calendar",
        cohort: str | None = "auto",
        groups: str | None = None,
        effects: str | None = None,
        free: Mapping[Any, Any] | None = None,
        unit: str | None = None,
        rare: int = 1,
        fixed: Any = None,
        start: Any = None,
        population: tuple[float, float] | None = None,
        iterations: int = 200,
        tolerance: float = 0.01,
        standard_errors: bool = True,
        threads: int | None = None,
        progress: bool | OnIteration = False,
        checkpoint: str | PathLike[str] | None = None,
        every: float = 20.0,
        executor: Executor | None = None,
    ) -> None:
        given = dict(locals())  # every option by its name
        options = {name: value for name, value in given.items() if name in AbilityOptions.names()}
        super().__init__(**{**options, "kernel": resolve_kernel(kernel, bandwidth)})
        self.keep_given(given)

    @overload
    def fit(self, data: Shards, *, out: str | PathLike[str] | None = None) -> ShardedFit: ...

    @overload
    def fit(
        self,
        data: str | PathLike[str],
        *,
        out: str | PathLike[str] | None = None,
        **options: Unpack[TableOptions],
    ) -> Any: ...

    @overload
    def fit(self, data: Any, **options: Unpack[TableOptions]) -> Fit: ...

    def fit(
        self,
        data: Any,
        *,
        id: str | None = None,
        item: str | None = None,
        resp: str | None = None,
        time: str | None = None,
        weight: str | None = None,
        model: str | None = None,
        out: str | PathLike[str] | None = None,
        wide: bool | None = None,
        items: Any = None,
        key: Any = None,
        only: Any = None,
        sheet: str | None = None,
        query: str | None = None,
    ) -> Any:
        """Fit items and abilities to responses.

        Parameters
        ----------
        data : frame, path, mapping of columns, matrix, iterable, Responses or Shards
            A table with one row a response or a person, as `Responses.read` takes it; or shards, or
            the folder that holds them, as `prepare` makes them.
        id, item, resp, time : str, optional
            Columns of the person, the item, the response and the time. Default: columns with usual
            names.
        weight : str, optional
            Column of numbers that say how many times each response counts. Default: once.
        model : str, optional
            Column of names of item models, one for each item.
        out : path, optional
            Folder of a fit of shards. Default: the name of the shards' folder with "-fit".
        wide, items, key, only, sheet, query : optional
            How the table is laid out, right answers, items to keep, and which part of a workbook or
            database is read, as in `Responses.read`.

        Returns
        -------
        Fit or ShardedFit
            A `ShardedFit` where the data are shards.

        Raises
        ------
        ResponseError
            If the table cannot be used as it is.
        InputError
            If options do not suit the data.

        Warns
        -----
        ConvergenceWarning
            If EM ran out of iterations.
        HealthWarning
            If the data leave something of the items undetermined.

        Examples
        --------
        >>> import dynaesti as dy
        >>> rows = [
        ...     {"student": s, "question": q, "correct": (s + q + t) % 2, "day": t}
        ...     for s in range(6)
        ...     for q in range(3)
        ...     for t in (0, 10, 20)
        ... ]
        >>> static = dy.DynAEsti("1PL", bandwidth=float("inf"), standard_errors=False)
        >>> fit = static.fit(rows, id="student", item="question", resp="correct", time="day")
        >>> len(fit.responses)
        54
        """
        options = {
            "id": id,
            "item": item,
            "resp": resp,
            "time": time,
            "weight": weight,
            "model": model,
            "wide": wide,
            "items": items,
            "key": key,
            "only": only,
            "sheet": sheet,
            "query": query,
        }
        if not is_shards(data):
            return self._estimate(self._memory_source(data, options, out))
        if any(name is not None for name in options.values()):
            raise InputError("shards: their columns were named when they were prepared")
        shards = data if isinstance(data, Shards) else Shards.open(fspath(data))
        return self.fit_shards(shards, out)

    def _memory_source(self, data: Any, options: Mapping[str, Any], out: Any) -> ResponsesInMemory:
        """Responses of a frame, file or list, in memory."""
        if out is not None:
            raise InputError(
                "out: only a fit of shards has a folder; save others with fit.save(path)"
            )
        if self.executor is not None:
            raise InputError(
                "executor: it works on shards; make them with dynaesti.prepare(data, folder)"
            )
        responses = Responses.read(
            data,
            **options,
            group=None if isinstance(data, Responses) else self.groups,
            covariates=columns_needed(self.effects, self.free),
            unit=self.unit,
            clock=self.clock,
            timeless=self.kernel.static,
        )
        responses = with_asked_groups(responses, self.groups)
        responses = with_asked_covariates(responses, columns_needed(self.effects, self.free))
        if self.free is not None:
            whole, responses = responses, split_items(responses, self.free)
            check_splits(whole, responses, self.free)
        return ResponsesInMemory(responses, self.threads, self.checkpoint, self.every)

    def fit_shards(
        self, shards: Shards, out: str | PathLike[str] | None, earlier: ShardedFit | None = None
    ) -> ShardedFit:
        """Fit shards, with the result in a folder of its own.

        Parameters
        ----------
        shards : Shards
            The responses.
        out : path or None
            Folder of the fit. None: the name of the shards' folder with "-fit".
        earlier : ShardedFit, optional
            A fit of nearly the same responses, from which to start; it is replaced.
        """
        run = Folder(f"{shards.folder.rstrip('/')}-fit" if out is None else fspath(out))
        with exclusive_lock(run.path(LOCK), run.root):
            if earlier is None and run.exists(FIT_NAME) and not run.exists(CHECKPOINT):
                raise InputError(
                    f"out: {run.root} holds a fit already; name another folder, or remove it"
                )
            if self.unit is not None:
                raise InputError("unit: it was stated when the shards were prepared")
            if self.free is not None:
                raise InputError("free: items of shards cannot be split; split them in the data")
            if self.groups is not None and shards.columns.get("group") != self.groups:
                raise InputError(
                    f"groups: the shards were prepared without the column {self.groups!r}; "
                    f"prepare them with {option('group', self.groups)}"
                )
            if not (self.kernel.static or shards.columns.get("time")):
                raise InputError(
                    "the shards have no times: fit one constant ability per person "
                    f"({option('bandwidth', np.inf)})"
                )
            executor = self.executor or ThreadExecutor(self.threads)
            needed = {} if self.effects is None else parse_formula(self.effects).columns
            shards = shards.with_covariates(needed)
            source = ResponsesInShards(
                shards if self.groups is not None else shards.without_groups(),
                run,
                self.clock,
                executor,
                self._reporter,
                earlier,
            )
            made: ShardedFit = self._estimate(source)
            return made

    def _estimate(self, source: ResponseSource) -> Any:
        """Build items and their start, run EM and make the result, wherever the responses are."""
        models = self._models(source)
        counts = source.response_counts(models)
        models = with_densities(models, counts)
        counts = counts.with_own_values(models)
        coding = build_coding(source.items, models, counts, self.rare, self.priors is not None)
        bank = self._bank(source.items, coding, counts)
        effects = None if self.effects is None else source.effects(parse_formula(self.effects))
        people = source.people(coding, bank, effects)
        if source.earlier_bank is not None:
            bank = bank.warm_started(source.earlier_bank)
        elif any(m.signed for m in models):
            chosen = people.person_summary.sample(ORIENTATION_SITES)
            slopes = initial_signed_slopes(source.responses_of(chosen), coding)
            bank = self._bank(source.items, coding, counts, slopes)
        checkpoint = source.checkpoint(self._fingerprint_options())
        report = self._reporter
        if isinstance(report, ProgressLine):
            source.announce(report, bank)
        schedule = EMSchedule(
            people,
            self.kernel,
            EMSettings(max_iterations=self.iterations, tolerance=self.tolerance),
            self.threads,
            report,
            checkpoint,
            self.standard_errors,
            source.earlier_priors,
            self.learns_cohort(people.person_summary.n_people),
            source.groups,
            effects,
        )
        if not schedule.learns_cohort:
            schedule.left_out = self.why_no_cohort(people.person_summary.n_people)
        estimate = schedule.run(bank)
        made = source.result(estimate, coding, self._stored_options(), self.orient)
        if checkpoint is not None:
            checkpoint.done()
        self._warn_about(made)
        return made

    def _bank(
        self,
        items: Labels,
        coding: ResponseCoding,
        response_counts: ResponseCounts,
        slopes: Array | None = None,
    ) -> ItemBank:
        """Items at their start; with `slopes` (n_items,), items may run backwards."""
        return build_bank(
            items,
            coding,
            response_counts,
            self.priors,
            read_given_items(self.fixed, "fixed"),
            read_given_items(self.start, "start"),
            slopes,
            self.population,
        )

    @cached_property
    def _reporter(self) -> OnIteration | None:
        """What is called after each iteration."""
        return ProgressLine(self.tolerance) if self.progress is True else self.progress or None

    def _stored_options(self) -> dict[str, Any]:
        """Options that are saved with a fit."""
        return {
            "scale": self.scale,
            "direction": self.direction,
            "orient": self.orient,
            "priors": self.priors,
            "threads": self.threads,
            "rare": self.rare,
            "tolerance": self.tolerance,
            "cohort": self.cohort,
            "groups": self.groups,
            "effects": self.effects,
            "free": self.free,
        }

    def _warn_about(self, made: Fit | ShardedFit) -> None:
        """Close the progress line, and warn about the data and about convergence."""
        if isinstance(self._reporter, ProgressLine):
            self._reporter.close(
                f"{'converged' if made.converged else 'did not converge'} after "
                f"{len(made.trace)} iterations, log evidence {made.log_evidence:,.1f}"
            )
        if made.cautions:
            warn_user(" ".join(made.cautions), HealthWarning)
        if not made.converged:
            warn_user(
                f"the fit did not converge within {self.iterations} iterations (last change "
                f"{made.trace[-1].change:.2g} standard errors); raise {option('iterations')}, or "
                f"look at fit.history",
                ConvergenceWarning,
            )

    def _fingerprint_options(self) -> dict[str, str]:
        """Options that the result depends on, as text, for the fingerprint of a checkpoint."""
        given = {name: read_given_items(getattr(self, name), name) for name in ("fixed", "start")}
        return {
            name: in_full(given.get(name, value))
            for name, value in self.as_dict().items()
            if name not in RUNTIME_OPTIONS
        }

    def _models(self, source: ResponseSource) -> tuple[ItemModel, ...]:
        """Item model of each item; ``direction="free"`` needs models with signed slopes."""
        items = source.items
        named = source.item_models
        model = of_all_parts(self.free, self.model, items)
        if model is None and named is None:
            model = default_model(source.values())
        models = resolve_item_models(model, items, named, self.direction == "free")
        unsigned = {m.name for m in models if not m.is_reflectable}
        if self.direction == "free" and unsigned:
            raise InputError(
                f"direction: {', '.join(sorted(unsigned))} items have no signed slopes; use 2PL, "
                f"GRM, GPCM or NRM, or 'positive'"
            )
        return models

    def with_options(self, **changes: Any) -> DynAEsti:
        """Make an estimator with some options changed; `set_params` changes this one.

        Parameters
        ----------
        **changes
            Options of `DynAEsti`. A bandwidth replaces the kernel.

        Returns
        -------
        DynAEsti
            A new estimator; this one stays as it is.

        Examples
        --------
        >>> import dynaesti as dy
        >>> quick = dy.DynAEsti("GRM", rare=5).with_options(iterations=20)
        >>> quick.model, quick.rare, quick.iterations
        ('GRM', 5, 20)
        """
        kept = self.as_dict()
        if "bandwidth" in changes:
            kept.pop("kernel")
        return DynAEsti(**{**kept, **changes})


def with_asked_groups(responses: Responses, column: str | None) -> Responses:
    """The responses with the groups of a column, or without any."""
    if column is None:
        return responses.without_groups()
    if responses.columns.get("group") != column:
        raise InputError(
            f"groups: the data are Responses already, without the column {column!r}; read them "
            f"with Responses.read(…, group={column!r})"
        )
    return responses


def with_asked_covariates(responses: Responses, wanted: Mapping[str, str]) -> Responses:
    """The responses with these columns, and no others."""
    absent = [name for name in wanted if name not in responses.covariates]
    if absent:
        raise InputError(
            f"effects: the data are Responses already, without the column {absent[0]!r}; read "
            f"them with Responses.read(…, covariates={list(wanted)!r})"
        )
    return replace(responses, covariates={name: responses.covariates[name] for name in wanted})


def with_all_groups(shards: Shards) -> Shards:
    """The shards with people of no known group, whom updates brought, as a group of their own."""
    if not shards.groups or NO_GROUP in shards.groups:
        return shards
    found = (shards.responses(k).group for k in shards.nonempty)
    if not any(group is not None and (group < 0).any() for group in found):
        return shards
    return replace(shards, groups=(*shards.groups, NO_GROUP))


def refit_items(
    fit: ShardedFit,
    *,
    iterations: int = 200,
    progress: bool | OnIteration = False,
    executor: Executor | None = None,
) -> ShardedFit:
    """Learn the items of a fit of shards again, after updates.

    EM starts from the present items and kernels and needs a few passes over the shards. The result
    replaces the fit in its folder. An interrupted call continues when it is made again.

    Parameters
    ----------
    fit : ShardedFit
        The fit, with its updates. Its options are used again.
    iterations : int, default 200
        Largest number of EM iterations.
    progress : bool or callable, default False
        True shows a live line; a function is called with the record of each iteration.
    executor : ThreadExecutor or DaskExecutor, optional
        What works on the shards. Default: threads of this process.

    Returns
    -------
    ShardedFit
        The new fit, in the same folder. Files of abilities are written anew where there were any.

    Raises
    ------
    InputError
        If the fit is not one of shards; fit other data as a whole instead.
    StorageError
        If the folder was changed since the fit was opened.

    Examples
    --------
    >>> import tempfile
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=3, per_person=8, seed=1).table
    >>> more = {"id": ["p01", "p01"], "item": ["i1", "i2"], "resp": [1, 0], "date": [90.0, 95.0]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = dy.prepare(table, f"{folder}/shards", shards=2)
    ...     static = dy.DynAEsti("1PL", bandwidth=float("inf"), standard_errors=False)
    ...     fit = static.fit(shards).update(more)
    ...     again = dy.refit_items(fit)
    >>> fit.stale, again.stale
    (True, False)
    """
    if not isinstance(fit, ShardedFit):
        raise InputError(
            f"refit_items: expected a fit of shards, got {type(fit).__name__}; fit the whole of "
            f"other data again"
        )
    kept = fit.options
    models = dict(zip(fit.item_labels.tolist(), fit.coding.models, strict=True))
    again = DynAEsti(
        models,
        scale=kept["scale"],
        direction=kept["direction"],
        orient=kept.get("orient"),
        bandwidth=np.inf if all(kernel.static for kernel in fit.kernels) else None,
        priors=kept["priors"],
        clock=fit.clock,
        cohort=kept.get("cohort"),  # absent in files of older versions
        groups=kept.get("groups"),
        effects=kept.get("effects"),
        rare=kept["rare"],
        tolerance=kept["tolerance"],
        threads=kept["threads"],
        standard_errors=fit.covariance is not None,
        iterations=iterations,
        progress=progress,
        executor=executor,
    )
    with exclusive_lock(fit.run.path(LOCK), fit.run.root, wait=LOCK_TIMEOUT):
        fit.check_current()
        made = again.fit_shards(with_all_groups(fit.shards), fit.run.root, fit)
        made.rewrite_abilities(executor=executor)
    return made
