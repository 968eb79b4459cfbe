"""DynAEsti: dynamic ability estimation. Options checked, the parts put together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from os import PathLike, fspath
from typing import Any, overload

import numpy as np

from dynaesti.core import CHECKPOINT, FIT_NAME, LOCK, LOCK_TIMEOUT, Array, Folder, exclusive_lock
from dynaesti.data import Labels, Responses
from dynaesti.errors import ConvergenceWarning, HealthWarning, InputError, option
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
    given_items,
    in_full,
    initial_signed_slopes,
    resolve_item_models,
    resolve_kernel,
)
from dynaesti.model import ItemBank, ItemModel, Kernel
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


class DynAEsti(AbilityOptions):
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
        super().__init__(
            model=model,
            kernel=resolve_kernel(kernel, bandwidth),
            scale=scale,
            direction=direction,
            orient=orient,
            priors=priors,
            clock=clock,
            unit=unit,
            rare=rare,
            fixed=fixed,
            start=start,
            population=population,
            iterations=iterations,
            tolerance=tolerance,
            standard_errors=standard_errors,
            threads=threads,
            progress=progress,
            checkpoint=checkpoint,
            every=every,
            executor=executor,
        )

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
        columns = {
            "id": id,
            "item": item,
            "resp": resp,
            "time": time,
            "weight": weight,
            "model": model,
        }
        if not is_shards(data):
            return self._estimate(self._memory_source(data, columns, out))
        if any(name is not None for name in columns.values()):
            raise InputError("shards: their columns were named when they were prepared")
        shards = data if isinstance(data, Shards) else Shards.open(fspath(data))
        return self.fit_shards(shards, out)

    def _memory_source(
        self, data: Any, columns: Mapping[str, str | None], out: Any
    ) -> ResponsesInMemory:
        """Responses of a frame, file or list, in memory."""
        if out is not None:
            raise InputError(
                "out: only a fit of shards has a folder; save others with fit.save(path)"
            )
        if self.executor is not None:
            raise InputError(
                "executor: it works on shards; make them with dynaesti.prepare(data, folder)"
            )
        named: dict[str, Any] = dict(columns)
        responses = Responses.read(
            data, **named, unit=self.unit, clock=self.clock, timeless=self.kernel.static
        )
        return ResponsesInMemory(responses, self.threads, self.checkpoint, self.every)

    def fit_shards(
        self, shards: Shards, out: str | PathLike[str] | None, earlier: ShardedFit | None = None
    ) -> ShardedFit:
        """A fit of shards, in a folder of its own; `earlier`: a fit of nearly the same responses, to start from."""
        run = Folder(f"{shards.folder.rstrip('/')}-fit" if out is None else fspath(out))
        with exclusive_lock(run.path(LOCK), run.root):
            if earlier is None and run.exists(FIT_NAME) and not run.exists(CHECKPOINT):
                raise InputError(
                    f"out: {run.root} holds a fit already; name another folder, or remove it"
                )
            if self.unit is not None:
                raise InputError("unit: it was stated when the shards were prepared")
            if not (self.kernel.static or shards.columns.get("time")):
                raise InputError(
                    "the shards have no times: fit one constant ability per person "
                    f"({option('bandwidth', np.inf)})"
                )
            executor = self.executor or ThreadExecutor(self.threads)
            source = ResponsesInShards(shards, run, self.clock, executor, self._reporter, earlier)
            made: ShardedFit = self._estimate(source)
            return made

    def _estimate(self, source: ResponseSource) -> Any:
        """The one pipeline, wherever the responses are kept: items, their start, EM, the result."""
        models = self._models(source.items, source.item_models)
        counts = source.response_counts(models)
        coding = build_coding(source.items, models, counts, self.rare, self.priors is not None)
        bank = self._bank(source.items, coding, counts)
        people = source.people(coding, bank)
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
        )
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

    @cached_property
    def _reporter(self) -> OnIteration | None:
        return ProgressLine(self.tolerance) if self.progress is True else self.progress or None

    def _stored_options(self) -> dict[str, Any]:
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

    def _warn_about(self, made: Fit | ShardedFit) -> None:
        """The verdict, and warnings."""
        if isinstance(self._reporter, ProgressLine):
            self._reporter.close(
                f"{'converged' if made.converged else 'did not converge'} after "
                f"{len(made.trace)} iterations, log evidence {made.log_evidence:,.1f}"
            )
        if made.cautions:
            warnings.warn(" ".join(made.cautions), HealthWarning, stacklevel=3)
        if not made.converged:
            warnings.warn(
                f"the fit did not converge within {self.iterations} iterations (last change "
                f"{made.trace[-1].change:.2g} standard "
                f"errors); raise {option('iterations')}, or look at fit.history",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fingerprint_options(self) -> dict[str, str]:
        """The options that the answer depends on, in words."""
        given = {name: given_items(getattr(self, name), name) for name in ("fixed", "start")}
        return {
            name: in_full(given.get(name, value))
            for name, value in self.as_dict().items()
            if name not in RUNTIME_OPTIONS
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
        kept = self.as_dict()
        if "bandwidth" in changes:
            kept.pop("kernel")
        return DynAEsti(**{**kept, **changes})


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
            f"refit_items: expected a fit of shards, got {type(fit).__name__}; fit the whole of other "
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
        fit.check_current()
        made = again.fit_shards(fit.shards, fit.run.root, fit)
        made.rewrite_abilities(executor=executor)
    return made
