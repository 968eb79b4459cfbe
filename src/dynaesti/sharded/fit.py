"""ShardedFit: a fit whose people stay in their shards.

Items and population are in memory; people are read shard by shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynaesti.core import (
    ABILITIES,
    FIT_NAME,
    LOCK,
    LOCK_TIMEOUT,
    PARTS,
    Array,
    Arrays,
    Folder,
    Header,
    Ints,
    exclusive_lock,
    read_archive,
    remove_partial_files,
    write_archive,
)
from dynaesti.data import (
    Labels,
    Responses,
    as_list,
    count_noun,
    index_of,
    try_index_of,
    warn_already_added,
    warn_left_out,
)
from dynaesti.errors import InputError, StorageError
from dynaesti.estimation import (
    FittedModel,
    new_items_by_model,
    new_items_hint,
)
from dynaesti.inference import check_level
from dynaesti.model import ItemModel
from dynaesti.results import (
    Change,
    Curve,
    Fit,
    FitBase,
    LivePerson,
    State,
    criteria,
    is_positively_oriented,
    reflect_covariance,
    reflect_item_nodes,
    reflect_scale_covariance,
    some_seed,
    state_of,
)
from dynaesti.sharded.abilities import WriteAbilitiesTask, asked_before
from dynaesti.sharded.executors import Executor, OnProgress, ThreadExecutor
from dynaesti.sharded.frames import concatenate_frames, rows_by_change, rows_of_ids
from dynaesti.sharded.new_items import with_new_items
from dynaesti.sharded.run_file import read_run, run_header
from dynaesti.sharded.screening import CheckItemsTask, ShardScreener
from dynaesti.sharded.shard_model import ShardModel
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.site_store import clean_sites
from dynaesti.sharded.tasks import sum_results
from dynaesti.sharded.updates import UpdatedShard, UpdateTask
from dynaesti.tables import as_frame, with_table


@dataclass(frozen=True, eq=False)
class ShardedFit(FittedModel, FitBase):
    """A fit of responses in shards, in a folder of its own.

    It is made by `DynAEsti.fit` and opened by `load`. Questions about single people open their
    shard; `shard(k)` is an ordinary `Fit` of the people of one shard.

    Parameters
    ----------
    shards : Shards
        The responses.
    run : Folder
        The folder of the fit.
    versions : tuple of int
        Version of each shard's converged sites in that folder.
    is_reflected : bool
        Whether the scale was reflected after the sites were found.
    clock : {"calendar", "person"}
        Whether time is the same for all, or counts from each person's first response.
    log_evidence : float
        Log probability of all responses, with the items at their estimates.
    n_unconverged : int
        People whose curve has not converged.
    answered : int array (n_items,)
        Number of responses to each item.
    span : (float, float)
        First and last time, on the fit's clock.
    stale : bool, default False
        Whether responses were added since the items were learned.
    item_check_sums : array (n_sums, n_items), optional
        Sums over everyone's answers, when the items were learned, by which items are checked.

    Notes
    -----
    Items, kernels, population and options are attributes too, as in `Fit`.

    Examples
    --------
    >>> import tempfile
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=12, items=3, per_person=8, seed=1).table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = dy.prepare(table, f"{folder}/shards", shards=2)
    ...     static = dy.DynAEsti("1PL", bandwidth=float("inf"), standard_errors=False)
    ...     fit = static.fit(shards, out=f"{folder}/fit")
    ...     ability = fit.ability([50.0], ["p01"])
    ...     again = dy.load(f"{folder}/fit")
    >>> fit.converged, len(fit.shards), ability["id"].tolist()
    (True, 2, ['p01'])
    >>> again.log_evidence == fit.log_evidence
    True
    """

    shards: Shards
    run: Folder
    versions: tuple[int, ...]
    is_reflected: bool
    clock: str
    log_evidence: float
    n_unconverged: int
    answered: Ints
    span: tuple[float, float]
    stale: bool = False
    item_check_sums: Array | None = None

    @property
    def time_range(self) -> tuple[float, float]:
        return self.span

    @cached_property
    def some_responses(self) -> Responses:
        """Responses of the people of one shard; people are in shards at random."""
        return self.shards.responses(self.shards.nonempty[0], self.clock)

    def parts(self) -> Iterator[Fit]:
        """The fit of each shard, opened one after the other."""
        for k in self.shards.nonempty:
            yield self.shard(k)

    def item_screener(self, executor: Executor | None = None) -> ShardScreener:
        """What sums up the score tests of all items over everyone."""
        chosen = executor or ThreadExecutor(self.options["threads"])
        return ShardScreener(self.shard_model, chosen)

    @property
    def item_labels(self) -> Labels:
        return self.shards.items

    @property
    def responses_per_item(self) -> Ints:
        return self.answered

    @property
    def frame(self) -> str | None:
        return None

    @property
    def shard_model(self) -> ShardModel:
        """What tasks on shards need of the fit."""
        return ShardModel.of(
            self, self.shards, self.run, self.versions, self.is_reflected, self.clock
        )

    # --- people ---------------------------------------------------------------------------------

    def shard(self, k: int, threads: int | None = None) -> Fit:
        """The people of one shard, as a fit of their own.

        Parameters
        ----------
        k : int
            Number of the shard, from 0.
        threads : int, optional
            Threads to use. Default: one for each core.

        Raises
        ------
        InputError
            If there is no such shard, or it has no people.
        """
        fit = self.shard_model.open(k, threads)
        return replace(
            fit,
            covariance=self.covariance,
            trace=self.trace,
            item_nodes=self.item_nodes,
            item_drift=self.item_drift,
        )

    @cached_property
    def _opened(self) -> dict[int, Fit]:
        """Shards that are open, by number."""
        return {}

    def open_shard(self, k: int) -> Fit:
        """The fit of shard k; the last two are kept."""
        if k not in self._opened:
            while len(self._opened) >= 2:
                self._opened.pop(next(iter(self._opened)))
            self._opened[k] = self.shard(k)
        return self._opened[k]

    def _by_shard(self, ids: Any) -> dict[int, list[Any]]:
        """Ids by the number of their shard."""
        wanted = as_list(ids)
        out: dict[int, list[Any]] = {}
        for label, k in zip(wanted, self.shards.shard_of(wanted).tolist(), strict=True):
            out.setdefault(k, []).append(label)
        return out

    def shard_of_person(self, id: Any) -> Fit:
        """The fit of the shard that has this person."""
        return self._checked_shard(int(self.shards.shard_of([id])[0]), [id])

    def _checked_shard(self, k: int, ids: list[Any]) -> Fit:
        """The fit of shard k; an error if it lacks one of the people, who is then in no shard."""
        unknown = [
            label
            for label in ids
            if not self.shards.parts[k].people
            or try_index_of(self.open_shard(k).responses.people, [label])[0] < 0
        ]
        if unknown:
            raise InputError(
                f"id: {unknown[0]!r} was never seen; there are "
                f"{count_noun(self.shards.people, 'people')} in "
                f"{count_noun(len(self.shards), 'shards')}"
            )
        return self.open_shard(k)

    def ability(self, at: Any = None, ids: Any = None, **options: Any) -> Any:
        """Abilities at times, as in `Fit.ability`.

        Parameters
        ----------
        at : times, optional
            Default: the times of each person's own responses.
        ids : label or list of labels, optional
            Default: everyone, collected in memory; `write_abilities` writes files instead.
        **options
            `level`, `quantiles` and `filtered`, as in `Fit.ability`.

        Returns
        -------
        frame
            A row for each person and time, in the order of `ids`.

        Raises
        ------
        InputError
            If a person was never seen.
        """
        asked = None if ids is None else as_list(ids)
        if asked == []:
            return self.any_shard().ability(at, [], **options)
        fits = (
            (self._checked_shard(k, some or []), some) for k, some in self._asked(asked).items()
        )
        frames = [fit.ability(at, some, **options) for fit, some in fits]
        return (
            concatenate_frames(frames)
            if asked is None
            else concatenate_frames(frames, rows_of_ids(frames, asked))
        )

    def plausible_values(self, at: Any, ids: Any = None, **options: Any) -> Any:
        """Abilities drawn from everyone's posterior, as `Fit.plausible_values` draws them.

        Parameters
        ----------
        at : times
        ids : label or list of labels, optional
            Default: everyone, shard by shard, collected in memory.
        **options
            `size`, `seed` and `item_uncertainty`, as in `Fit.plausible_values`.

        Returns
        -------
        frame
        """
        groups = self._asked(None if ids is None else as_list(ids))
        if options.get("seed", 0) is None:
            options["seed"] = some_seed()
        fits = ((self._checked_shard(k, some or []), some) for k, some in groups.items())
        frames = [fit.plausible_values(at, some, **options) for fit, some in fits]
        return concatenate_frames(
            frames, None if ids is None else rows_of_ids(frames, as_list(ids))
        )

    def _asked(self, ids: list[Any] | None) -> dict[int, Any]:
        """Ids by the number of their shard, each once; None for everyone of a shard."""
        everyone: dict[int, Any] = dict.fromkeys(self.shards.nonempty)
        return everyone if ids is None else self._by_shard(list(dict.fromkeys(ids)))

    def curve(self, id: Any, *, until: Any = None) -> Curve:
        """One person's curve, as `Fit.curve` gives it."""
        return self.shard_of_person(id).curve(id, until=until)

    def state(self, id: Any) -> State:
        """What is known of one known person, to be followed by `scorer`: see `Fit.state`."""
        fit = self.shard_of_person(id)
        who = index_of(fit.responses.people, [id], "id")
        return state_of(fit, self.scorer(), who)

    def live(self, id: Any) -> LivePerson:
        """One known person, ready for further answers one by one: see `Fit.live`."""
        return self.shard_of_person(id).live(id)

    def change(self, id: Any, t0: Any, t1: Any) -> Change:
        """How a person's ability changed from t0 to t1, as `Fit.change` gives it."""
        return self.shard_of_person(id).change(id, t0, t1)

    def changes(
        self, t0: Any, t1: Any, ids: Any = None, *, level: float = 0.7, sort: bool = False
    ) -> Any:
        """How everyone's ability changed from t0 to t1, as `Fit.changes` gives it.

        Parameters
        ----------
        t0, t1 : time
            From when, and to when.
        ids : label or sequence of labels, optional
            Some people. Default: everyone, shard by shard.
        level : float, default 0.7
            Probability of the band of the change.
        sort : bool, default False
            Whether those who rose most come first.

        Returns
        -------
        frame
        """
        groups = self._asked(None if ids is None else as_list(ids))
        fits = ((self._checked_shard(k, some or []), some) for k, some in groups.items())
        frames = [fit.changes(t0, t1, some, level=level) for fit, some in fits]
        return concatenate_frames(frames, rows_by_change(frames) if sort else None)

    def predict(self, data: Any) -> Any:
        """Predict each response at its time, as `Fit.predict` does.

        Parameters
        ----------
        data : frame, path, mapping of columns or iterable of dicts
            People, items and times. People may be new.

        Returns
        -------
        frame
            A row for each row of the data.
        """
        more = self.read_new_data(data, unanswered=True)
        back = []
        parts = []
        for k, people in self.people_by_shard(more).items():
            some = more.select_people(people)
            back.append(np.sort(some.row))  # the order of the rows that `predict_read` returns
            parts.append(self.shard_or_other(k).predict_read(some))
        order = np.argsort(np.concatenate(back), kind="stable")
        return concatenate_frames(parts, order, more.frame)

    def score(self, data: Any, *, at: Any = None, level: float = 0.7) -> Any:
        """Abilities from new responses with the items as they are, as `Fit.score` gives them."""
        return self.any_shard().score(data, at=at, level=level)

    def any_shard(self) -> Fit:
        """The fit of the first shard that has people."""
        return self.open_shard(self.shards.nonempty[0])

    def shard_or_other(self, k: int) -> Fit:
        """The fit of shard k, or where nobody is in it, that of another one."""
        return self.open_shard(k) if self.shards.parts[k].people else self.any_shard()

    @property
    def response_template(self) -> Responses:
        none = np.zeros(0)
        return Responses(
            none,
            self.shards.items,
            none.astype(np.int64),
            none.astype(np.int64),
            none,
            none,
            None,
            self.shards.axis,
            self.shards.unit,
            self.clock,
            none,
            0,
            None,
            (),
            self.shards.models,
            none.astype(np.int64),
            self.shards.columns,
        )

    def people_by_shard(self, more: Responses) -> dict[int, Ints]:
        """People of other data by the number of their shard, whether they are in it or not."""
        shard = self.shards.shard_of(more.people.tolist())
        return {int(k): np.flatnonzero(shard == k) for k in np.unique(shard)}

    def update(
        self,
        data: Any,
        *,
        new_items: bool | str | Mapping[Any, str] = False,
        again: bool = False,
        executor: Executor | None = None,
        on_progress: OnProgress | None = None,
    ) -> ShardedFit:
        """Add responses of known or new people; the items stay as they are.

        Only shards with such people are opened, and only the curves of these people are computed
        again. The new shards are written into the folder of the fit, which then holds the new fit;
        the original shards are not changed. `refit_items` learns the items again. Updates of one
        fit wait for each other.

        Parameters
        ----------
        data : frame, path, mapping of columns or iterable of dicts
            The new responses, as in `DynAEsti.fit`.
        new_items : bool, str or mapping of item to str, default False
            Whether to let in items that were never seen, and learn them; where the others have
            several models, with which.
        again : bool, default False
            Whether to add responses once more that the fit has already: those of an earlier
            update, and exact repeats (person, item, time and response). They are left out, with a
            warning.
        executor : ThreadExecutor or DaskExecutor, optional
            What works on the shards. Default: threads of this process.
        on_progress : callable, optional
            Called with the number of shards done, and of all shards.

        Returns
        -------
        ShardedFit
            The new fit, in the same folder.

        Raises
        ------
        StorageError
            If the folder was changed since this fit was opened.
        InputError
            If items are new and `new_items` is False.
        """
        more = self.read_new_data(data)
        with exclusive_lock(self.run.path(LOCK), self.run.root, wait=LOCK_TIMEOUT):
            self.check_current()
            batch = more.fingerprint()
            if batch in self.batches and not again:
                warn_already_added(more)
                self.finish_update(more, executor)
                return self
            fit = self
            if new_items:
                for model, part in new_items_by_model(
                    self.coding, self.item_labels, more, new_items
                ):
                    fit = with_new_items(fit, part, again, model)
            fit = replace(fit, batches=(*self.batches, batch))
            grown = fit.add_responses(more, again, executor, on_progress)
            warn_left_out(len(more), grown.shards.rows - self.shards.rows)
            return grown

    def check_current(self) -> None:
        """Raise StorageError if the folder was changed since this fit was opened."""
        with self.run.reading(FIT_NAME) as file:
            _, header, _ = read_archive(file, self.run.path(FIT_NAME))
        now = (tuple(header["versions"]), tuple(header.get("batches", ())))
        if now != (self.versions, self.batches):
            raise StorageError(
                f"{self.run.root}: the run was changed since this fit was opened; open it again, "
                f"and nothing is lost"
            )

    def finish_update(self, more: Responses, executor: Executor | None = None) -> None:
        """Do what follows an update's responses: remove stale files, rewrite files of abilities.

        Also called for an update that was interrupted after its responses were saved.
        """
        clean_sites(self.run, self.versions)
        self.clean_parts()
        if self.run.local:
            remove_partial_files(self.run.path(ABILITIES))
        self.rewrite_abilities(sorted(self.people_by_shard(more)), executor=executor)

    def _run(
        self,
        task: Any,
        shards: Sequence[int],
        executor: Executor | None,
        on_progress: OnProgress | None,
    ) -> Any:
        """Run a task on shards, by default on threads of this process."""
        chosen = executor or ThreadExecutor(self.options["threads"])
        return chosen.run(task, list(shards), sum_results, on_progress)

    def add_responses(
        self,
        more: Responses,
        again: bool,
        executor: Executor | None,
        on_progress: OnProgress | None,
    ) -> ShardedFit:
        """Add responses to their shards and save the new fit: `update` without lock and checks."""
        index_of(self.item_labels, more.items.tolist(), "item", new_items_hint())
        if more.weight is not None and not self.shards.weighted:
            raise InputError(
                "weight: the answers in the shards have no weights, so further ones cannot have any"
            )
        by_shard = self.people_by_shard(more).items()
        groups = {k: more.select_people(people) for k, people in by_shard}
        shards = self.shards.with_levels_of(more)
        model = replace(self, shards=shards).shard_model
        task = UpdateTask(model, groups, max(self.versions) + 1, again, shards.nonempty[0])
        updated: list[UpdatedShard] = self._run(task, list(groups), executor, on_progress)
        if not updated:  # all are repeats
            self.save()
            return self
        parts = {found.shard: found.part for found in updated}
        versions = tuple(
            task.version if k in parts else version for k, version in enumerate(self.versions)
        )
        first = min(found.span[0] for found in updated)
        last = max(found.span[1] for found in updated)
        far = max(found.max_abs_ability for found in updated)
        made = replace(
            self,
            shards=shards.with_parts(parts),
            versions=versions,
            max_abs_ability=max(self.max_abs_ability, far),
            stale=True,
            log_evidence=self.log_evidence + sum(found.gain for found in updated),
            n_unconverged=self.n_unconverged + sum(found.n_unconverged for found in updated),
            answered=self.answered + sum(found.answered for found in updated),
            span=(min(first, self.span[0]), max(last, self.span[1])),
        )
        made.save()  # the one moment at which all answers are in
        made.finish_update(more, executor)
        return made

    def with_item_checks(self, executor: Executor | None = None) -> ShardedFit:
        """The fit with its items checked beside everyone's abilities, in a pass over all shards."""
        sums = self._run(CheckItemsTask(self.shard_model), self.shards.nonempty, executor, None)
        return replace(self, item_check_sums=sums)

    def clean_parts(self) -> None:
        """Remove files of shards in the folder of the fit that later ones have replaced."""
        folder = self.run.child(PARTS)
        kept = {part.file.rpartition("/")[2] for part in self.shards.parts}
        for name in folder.names():
            if name not in kept:
                folder.remove(name)

    def write_abilities(
        self,
        at: Any = None,
        *,
        level: float = 0.7,
        executor: Executor | None = None,
        on_progress: OnProgress | None = None,
    ) -> str:
        """Write everyone's abilities, one Parquet file for each shard.

        Parameters
        ----------
        at : times, optional
            Default: at most twelve instants of each person's own responses, with the first and the
            last.
        level : float, default 0.7
            Probability of the band.
        executor : ThreadExecutor or DaskExecutor, optional
            What works on the shards. Default: threads of this process.
        on_progress : callable, optional
            Called with the number of shards done, and of all shards.

        Returns
        -------
        str
            The folder of the files, within that of the fit.
        """
        check_level(level)
        offsets = None if at is None else self.to_clock(at).tolist()
        task = WriteAbilitiesTask(self.shard_model, offsets, level)
        self._run(task, self.shards.nonempty, executor, on_progress)
        return self.run.path(ABILITIES)

    def rewrite_abilities(
        self, shards: Sequence[int] | None = None, executor: Executor | None = None
    ) -> None:
        """Write existing files of abilities again, for the same times and band.

        `shards` are numbers of shards; None: all. Nothing is written where there are no files.
        """
        asked = asked_before(self.run.child(ABILITIES))
        if asked is None:
            return
        task = WriteAbilitiesTask(self.shard_model, *asked)
        nonempty = self.shards.nonempty
        chosen = nonempty if shards is None else [k for k in shards if k in nonempty]
        self._run(task, chosen, executor, None)

    # --- summary and files ------------------------------------------------------------------------

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of answers, people and items."""
        sizes = {"answers": self.shards.rows, "people": self.shards.people}
        return {**sizes, "items": self.item_labels.size}

    def evidence_facts(self) -> dict[str, str]:
        """Evidence and criteria."""
        return criteria(self, self.log_evidence)

    def sentences(self) -> list[str]:
        """Data, convergence, priors and cautions in words."""
        size = (
            f"{count_noun(self.shards.rows, 'answers')} of "
            f"{count_noun(self.shards.people, 'people')} to "
            f"{count_noun(self.item_labels.size, 'items')} "
            f"({self.model_names()}) in {count_noun(len(self.shards), 'shards')}."
        )
        return [
            size,
            *self.convergence_sentences(self.log_evidence, self.n_unconverged, self.shards.dropped),
            *self.item_sentences(),
            *self.cautions,
        ]

    @property
    def cautions(self) -> list[str]:
        """What the responses leave undetermined of the items, in words; for people, see a shard."""
        return self.item_cautions()

    def __repr__(self) -> str:
        return f"<ShardedFit: {' '.join(self.sentences())}>"

    def _repr_html_(self) -> str:
        return with_table(" ".join(self.sentences()), as_frame(self.items))

    def save(self) -> str:
        """Write all but the shards into the folder of the fit, atomically; the path of the file."""
        arrays: Arrays = {"answered": self.answered}
        if self.item_check_sums is not None:
            arrays["item_checks"] = self.item_check_sums
        header = run_header(self, arrays)
        with self.run.writing(FIT_NAME) as file:
            write_archive(file, "sharded fit", header, arrays)
        return self.run.path(FIT_NAME)


def open_sharded(
    run: Folder,
    header: Header,
    arrays: Arrays,
    models: Mapping[str, ItemModel] | None,
    connect: bool = False,
) -> ShardedFit:
    """The fit in a run's folder, from its file as read (see `read_run` for `connect`)."""
    return ShardedFit(**read_run(run, header, arrays, models, connect))


def load_sharded(
    run: Folder, models: Mapping[str, ItemModel] | None = None, connect: bool = False
) -> ShardedFit:
    """Open a run's folder, here or elsewhere."""
    with run.reading(FIT_NAME) as file:
        kind, header, arrays = read_archive(file, run.path(FIT_NAME))
    if kind != "sharded fit":
        raise StorageError(f"{run.path(FIT_NAME)}: holds a {kind!r}, not a fit of shards")
    return open_sharded(run, header, arrays, models, connect)


def orient_shards(fit: ShardedFit, orient: Mapping[str, Any] | None) -> ShardedFit:
    """The fit with its scale the right way up; sites on disk stay as they are."""
    if is_positively_oriented(
        fit, orient, fit.shard_of_person(orient["id"]) if orient and "id" in orient else None
    ):
        return fit
    return replace(
        fit,
        bank=fit.bank.reflected(),
        priors=fit.priors.reflected(),
        covariance=reflect_covariance(fit),
        scale_covariance=reflect_scale_covariance(fit),
        item_nodes=reflect_item_nodes(fit),
        item_drift=None if fit.item_drift is None else fit.item_drift.reflected(),
        is_reflected=True,
    )
