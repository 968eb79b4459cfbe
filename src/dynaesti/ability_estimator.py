"""DynAEsti: dynamic ability estimation. Options checked, the parts put together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, overload

import numpy as np

from dynaesti.core import (
    CHECKPOINT,
    FIT_NAME,
    LOCK,
    LOCK_TIMEOUT,
    Array,
    Folder,
    exclusive_lock,
    finite_number,
    positive_number,
    whole_number,
)
from dynaesti.data import Labels, Responses
from dynaesti.errors import ConvergenceWarning, HealthWarning, InputError, option
from dynaesti.estimation import (
    Checkpoint,
    EMSchedule,
    OnIteration,
    PeopleInMemory,
    PriorMixture,
    ProgressLine,
    ResponseCoding,
    ResponseCounts,
    build_bank,
    build_coding,
    build_site_layout,
    count_responses,
    fingerprint,
    given_items,
    in_full,
    initial_signed_slopes,
    person_weights,
    resolve_item_models,
)
from dynaesti.model import (
    DEFAULT_KERNEL,
    RBF,
    BandwidthKernel,
    ItemBank,
    ItemModel,
    Kernel,
    named_kernel,
)
from dynaesti.results import Fit, is_positively_oriented, reflected
from dynaesti.sharded import (
    CountResponsesTask,
    Executor,
    PeopleInShards,
    ShardContext,
    ShardedFit,
    Shards,
    ThreadExecutor,
    is_shards,
    orient_shards,
    sum_results,
)

OPTIONS = (
    "kernel",
    "scale",
    "direction",
    "orient",
    "priors",
    "clock",
    "unit",
    "rare",
    "fixed",
    "start",
    "population",
    "iterations",
    "tolerance",
    "standard_errors",
    "threads",
    "progress",
    "checkpoint",
    "every",
    "executor",
)
ASIDE = (
    "threads",
    "progress",
    "checkpoint",
    "every",
    "executor",
)  # options that the answer does not depend on
SIGNED = 2_000_000  # sites of the people by whom it is judged which items run backwards
CLOCKS = ("calendar", "person")
SCALES = ("abilities", "items")
DIRECTIONS = ("positive", "free")
PRIORS = ("weak", "hierarchical", None)


class DynAEsti:
    """Item response theory in which each person's ability is a curve over time.

    `model`: 1PL, 2PL, 3PL, 4PL, GRM, PCM, GPCM, RSM, NRM, golf, poisson, gaussian, beta, a
    CustomItemModel, or a mapping from item to model. `kernel`: prior of the curves, of total
    variance 1, a kernel or its name (default: "level+matern32", a level of each person's own plus
    what moves, the bandwidth's and the shares' distribution over people learned; the paper's is
    "rbf"); `bandwidth` is shorthand for a lone RBF, inf for static abilities. `scale`: "abilities"
    (unit variance) or "items" (geometric-mean slope 1). `direction="free"` lets items run
    backwards; `orient={"item": label}` or `{"id": label}` then says what lies on the upper side.
    `priors` on items: "weak" (difficulties integrated out, with a spread in common; learned from
    each other, as "hierarchical" ones are, where items have few answers each), "hierarchical" or
    None. Items with few answers also keep options of the others' scale that nobody chose, unless
    `priors` is None. `clock`: "calendar" or "person" (time since each one's first answer). `rare`:
    categories with fewer answers join a neighbour. `fixed` and `start`: item → {parameter: value}
    (or a frame with an item column), held or only begun from; fixed parameters anchor the scale,
    and the population's mean and sd on it are learned, or stated as `population=(mean, sd)`.
    `tolerance`: stop when a step moves the parameters by less than this part of their standard
    errors (ten times that where priors are learned from items with few answers). `progress=True`
    shows a live line. `checkpoint` names a file written every so many seconds (`every`), from which
    an interrupted fit of the same data and options goes on to the same answer (a fit of shards
    keeps one by itself). `executor`: who works on shards, threads of this process by default, or
    `DaskExecutor(client)`.
    """

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
        if kernel is not None and bandwidth is not None:
            raise InputError("bandwidth: the kernel owns it; give one of both")
        if isinstance(kernel, str):
            kernel = named_kernel(kernel)
        if kernel is not None and not isinstance(kernel, Kernel):
            raise InputError(
                f"kernel: expected a kernel such as RBF() or its name, got {type(kernel).__name__}"
            )
        for name, value, allowed in (
            ("scale", scale, SCALES),
            ("direction", direction, DIRECTIONS),
            ("priors", priors, PRIORS),
        ):
            if value not in allowed:
                raise InputError(f"{name}: {value!r} is none of {', '.join(map(repr, allowed))}")
        if clock not in CLOCKS:
            raise InputError(f"clock: {clock!r} is none of {', '.join(map(repr, CLOCKS))}")
        if not isinstance(every, int | float) or every < 0:
            raise InputError(f"every: expected seconds between checkpoints, got {every!r}")
        if orient is not None and direction != "free" and model != "NRM":
            raise InputError(
                "orient: it says which way up a scale with direction='free' goes; other scales "
                "have no choice"
            )
        if orient is not None and (
            not isinstance(orient, Mapping) or set(orient) - {"item", "id"} or len(orient) != 1
        ):
            raise InputError(
                "orient: give {'item': label} or {'id': label}: what lies on the upper side of "
                "the scale"
            )
        self.model = model
        self.scale = scale
        self.direction = direction
        self.orient = orient
        self.priors = priors
        self.kernel = (
            kernel
            if kernel is not None
            else named_kernel(DEFAULT_KERNEL)
            if bandwidth is None
            else RBF(bandwidth)
        )
        words = [
            summand.bandwidth
            for summand in self.kernel.summands
            if isinstance(summand, BandwidthKernel) and isinstance(summand.bandwidth, str)
        ]
        if any(word != "learn" for word in words):
            raise InputError(
                f"bandwidth: {words[0]!r} picks for a single curve; for a population give a "
                f"number, inf or 'learn'"
            )
        self.clock = clock
        self.unit = unit
        self.fixed = fixed
        self.start = start
        if population is not None:
            if not isinstance(population, Sequence) or len(population) != 2:
                raise InputError(
                    f"population: expected (mean, sd) of the abilities, got {population!r}"
                )
            population = (
                finite_number(population[0], "population mean"),
                positive_number(population[1], "population sd"),
            )
        self.population = population
        self.rare = whole_number(rare, "rare", 1)
        self.iterations = whole_number(iterations, "iterations", 1)
        self.tolerance = positive_number(tolerance, "tolerance")
        self.standard_errors = bool(standard_errors)
        self.threads = None if threads is None else whole_number(threads, "threads", 1)
        if not isinstance(progress, bool) and not callable(progress):
            raise InputError(
                f"progress: expected True, False or a function of a step, got {progress!r}"
            )
        if executor is not None and not hasattr(executor, "run"):
            raise InputError(
                f"executor: expected an executor such as DaskExecutor(client), got "
                f"{type(executor).__name__}"
            )
        self.progress = progress
        self.checkpoint = checkpoint
        self.every = every
        self.executor = executor

    @overload
    def fit(self, data: Shards, *, out: str | PathLike[str] | None = None) -> ShardedFit: ...

    @overload
    def fit(
        self,
        data: str | PathLike[str],
        *,
        id: str | None = None,
        item: str | None = None,
        resp: str | None = None,
        time: str | None = None,
        weight: str | None = None,
        model: str | None = None,
        out: str | PathLike[str] | None = None,
    ) -> Any: ...

    @overload
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
    ) -> Fit: ...

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
    ) -> Any:
        """Fit to answers: a frame, a CSV or Parquet path, an iterable of dicts, or `Responses`.

        Columns by keyword. Returns a `Fit`.

        `weight` names a column of response weights, `model` one that names each item's model. Given
        a folder of shards (see `prepare`) it streams them and returns a `ShardedFit`, kept in the
        folder `out` (default: the shards' name with "-fit").
        """
        if is_shards(data):
            if any(name is not None for name in (id, item, resp, time, weight, model)):
                raise InputError("shards: their columns were named when they were prepared")
            return self._fit_shards(
                data if isinstance(data, Shards) else Shards.open(fspath(data)), out
            )
        if out is not None:
            raise InputError(
                "out: only a fit of shards has a folder; save others with fit.save(path)"
            )
        if self.executor is not None:
            raise InputError(
                "engine: it works on shards; make them with dynaesti.prepare(data, folder)"
            )
        responses = Responses.read(
            data,
            id=id,
            item=item,
            resp=resp,
            time=time,
            weight=weight,
            model=model,
            unit=self.unit,
            clock=self.clock,
            timeless=self.kernel.static,
        )
        models = self._models(responses.items, responses.models)
        response_counts = count_responses(responses, models)
        coding = build_coding(
            responses.items, models, response_counts, self.rare, self.priors is not None
        )
        bank = self._bank(responses.items, coding, response_counts)
        people = PeopleInMemory(build_site_layout(responses, coding, bank), self.threads)
        if any(m.signed for m in models):
            slopes = initial_signed_slopes(
                responses.take(people.person_summary.sample(SIGNED)), coding
            )
            bank = self._bank(responses.items, coding, response_counts, slopes)
        listen = self._listener()
        saved = (
            None
            if self.checkpoint is None
            else Checkpoint(self.checkpoint, fingerprint(responses, self._choices()), self.every)
        )
        fitted = EMSchedule(
            people,
            self.kernel,
            self.iterations,
            self.tolerance,
            self.threads,
            listen,
            saved,
            self.standard_errors,
        ).run(bank)
        if saved is not None:
            saved.done()
        made = Fit(
            **vars(fitted.common(coding, self._kept())),
            responses=responses,
            grafts=people.grafted,
            weights=person_weights(fitted.priors.share, people.grafted),
        )
        made = made if is_positively_oriented(made, self.orient, made) else reflected(made)
        self._tell(made, listen)
        return made

    def _fit_shards(
        self, shards: Shards, out: str | PathLike[str] | None, earlier: ShardedFit | None = None
    ) -> ShardedFit:
        """The same stages over shards.

        Everything about people stays in the folder. `earlier`: a fit of nearly the same answers.
        """
        run = Folder(f"{shards.folder.rstrip('/')}-fit" if out is None else fspath(out))
        with exclusive_lock(run.path(LOCK), run.root):
            return self._fit_into(run, shards, earlier)

    def _fit_into(self, run: Folder, shards: Shards, earlier: ShardedFit | None) -> ShardedFit:
        if earlier is None and run.exists(FIT_NAME) and not run.exists(CHECKPOINT):
            raise InputError(
                f"out: {run.root} holds a fit already; name another folder, or remove it"
            )
        if self.unit is not None or not (self.kernel.static or shards.columns.get("time")):
            raise InputError(
                "unit: it was stated when the shards were prepared"
                if self.unit is not None
                else "the shards have no times: fit one constant ability per person "
                f"({option('bandwidth', np.inf)})"
            )
        executor = self.executor or ThreadExecutor(self.threads)
        models = self._models(shards.items, shards.models)
        busy = [k for k, part in enumerate(shards.parts) if part.people]
        response_counts: ResponseCounts = executor.run(
            CountResponsesTask(shards, models), busy, sum_results
        )
        coding = build_coding(
            shards.items, models, response_counts, self.rare, self.priors is not None
        )
        bank = self._bank(shards.items, coding, response_counts)
        listen = self._listener()
        people = PeopleInShards(
            ShardContext(shards, coding, bank, self.clock, run),
            executor,
            listen.shard if isinstance(listen, ProgressLine) else None,
            None if earlier is None else earlier.versions,
        )
        known = None
        if earlier is not None:
            bank = bank.warm_started(
                earlier.bank.reflected() if earlier.is_reflected else earlier.bank
            )
            known = PriorMixture(
                earlier.kernels, np.log(np.maximum(earlier.population, 1e-12)), earlier.population
            )
        elif any(m.signed for m in models):
            bank = self._bank(
                shards.items,
                coding,
                response_counts,
                initial_signed_slopes(
                    people.responses(people.person_summary.sample(SIGNED)), coding
                ),
            )
        saved = Checkpoint(run.path(CHECKPOINT), shards.fingerprint(self._choices()), 0.0)
        if isinstance(listen, ProgressLine):
            listen.say(
                f"{shards.rows:,} answers of {shards.people:,} people to {shards.items.size:,} "
                f"items in {len(shards)} shards, on "
                f"{executor.describe()}; {people.needs(bank)}"
            )
        fitted = EMSchedule(
            people,
            self.kernel,
            self.iterations,
            self.tolerance,
            self.threads,
            listen,
            saved,
            self.standard_errors,
            known,
        ).run(bank)
        common = fitted.common(coding, self._kept())
        made = ShardedFit(
            **vars(common),
            shards=shards,
            run=run,
            versions=people.versions,
            is_reflected=False,
            clock=self.clock,
            span=(
                float(people.person_summary.first.min()),
                float(people.person_summary.last.max()),
            ),
            log_evidence=fitted.point.log_evidence,
            n_unconverged=fitted.point.n_unconverged,
            answered=response_counts.number,
        )
        if earlier is not None:
            made = replace(made, batches=earlier.batches)
        made = orient_shards(made, self.orient)
        made.save()
        saved.done()
        people.clean(made.versions)
        self._tell(made, listen)
        return made

    def _bank(
        self,
        items: Labels,
        coding: ResponseCoding,
        response_counts: ResponseCounts,
        slopes: Array | None = None,
    ) -> ItemBank:
        return build_bank(
            items,
            coding,
            response_counts,
            self.priors,
            given_items(self.fixed, "fixed"),
            given_items(self.start, "start"),
            slopes,
            self.population,
        )

    def _listener(self) -> OnIteration | None:
        return ProgressLine(self.tolerance) if self.progress is True else self.progress or None

    def _kept(self) -> dict[str, Any]:
        """The options that a fit remembers."""
        return {
            "scale": self.scale,
            "direction": self.direction,
            "orient": self.orient,
            "priors": self.priors,
            "threads": self.threads,
            "rare": self.rare,
            "tolerance": self.tolerance,
        }

    def _tell(self, made: Fit | ShardedFit, listen: OnIteration | None) -> None:
        """The verdict."""
        if isinstance(listen, ProgressLine):
            listen.close(
                f"{'came to rest' if made.converged else 'did not come to rest'} after "
                f"{len(made.trace)} steps, log evidence "
                f"{made.log_evidence:,.1f}"
            )
        if made.cautions:
            warnings.warn(" ".join(made.cautions), HealthWarning, stacklevel=3)
        if not made.converged:
            warnings.warn(
                f"the fit did not come to rest within {self.iterations} steps (last change "
                f"{made.trace[-1].change:.2g} standard "
                f"errors); raise {option('iterations')}, or look at fit.history",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _choices(self) -> dict[str, str]:
        """The options that the answer depends on, in words."""
        given = {name: given_items(getattr(self, name), name) for name in ("fixed", "start")}
        return {
            name: in_full(given.get(name, getattr(self, name)))
            for name in ("model", *OPTIONS)
            if name not in ASIDE
        }

    def _models(self, items: Labels, named: Labels | None) -> tuple[ItemModel, ...]:
        """One model an item."""
        models = resolve_item_models(self.model, items, named, self.direction == "free")
        stiff = {m.name for m in models if not m.is_reflectable}
        if self.direction == "free" and stiff:
            raise InputError(
                f"direction: {', '.join(sorted(stiff))} items have no signed slopes; use 2PL, "
                f"GRM, GPCM or NRM, or 'positive'"
            )
        return models

    def with_options(self, **changes: Any) -> DynAEsti:
        """The same estimator with some options changed.

        A bandwidth takes the place of the kernel.
        """
        kept = {name: getattr(self, name) for name in OPTIONS}
        if "bandwidth" in changes:
            kept.pop("kernel")
        return DynAEsti(self.model, **{**kept, **changes})


def refit_items(
    fit: ShardedFit,
    *,
    iterations: int = 200,
    progress: bool | OnIteration = False,
    executor: Executor | None = None,
) -> ShardedFit:
    """The items of a fit of shards learned again, after updates.

    From where they are, with the same options and priors.

    A few passes over the shards, in the same folder; an interrupted one goes on when called again.
    """
    if not isinstance(fit, ShardedFit):
        raise InputError(
            f"refresh: expected a fit of shards, got {type(fit).__name__}; fit the whole of other "
            f"data again"
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
        rare=kept["rare"],
        tolerance=kept["tolerance"],
        threads=kept["threads"],
        standard_errors=fit.covariance is not None,
        iterations=iterations,
        progress=progress,
        executor=executor,
    )
    with exclusive_lock(fit.run.path(LOCK), fit.run.root, wait=LOCK_TIMEOUT):
        fit._check_current()
        made = again._fit_shards(fit.shards, fit.run.root, fit)
        made.renew_abilities(executor=executor)
    return made
