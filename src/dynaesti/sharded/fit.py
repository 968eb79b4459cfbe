"""ShardedFit: a fit whose people stay in their shards.

Items and population are at hand; people are fetched shard by shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    Arrays,
    Folder,
    Ints,
    exclusive_lock,
    read_archive,
    remove_partial_files,
    write_archive,
)
from dynaesti.data import (
    KINDS,
    Labels,
    Responses,
    as_list,
    count_noun,
    index_of,
    make_frame,
    try_index_of,
    warn_already_added,
)
from dynaesti.errors import InputError, StorageError
from dynaesti.estimation import (
    FittedModel,
    NewItemFit,
    PeopleSites,
    extend_models,
    find_new_items,
    new_items_hint,
)
from dynaesti.inference import check_level
from dynaesti.results import (
    Change,
    Curve,
    Fit,
    FitBase,
    common_header,
    fit_new_people,
    is_positively_oriented,
    read_new_responses,
    reflect_covariance,
    reflect_scale_covariance,
    responses_of_people,
)
from dynaesti.sharded.abilities import WriteAbilitiesTask, asked_before
from dynaesti.sharded.executors import Executor, Listen, ThreadExecutor
from dynaesti.sharded.shard_model import ShardModel, absolute_address
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.site_store import clean_sites
from dynaesti.sharded.tasks import sum_results
from dynaesti.sharded.updates import UpdatedShard, UpdateTask, without_repeats

WITHIN = "run:"  # says that a shard's file lies in the run's own folder


@dataclass(frozen=True, eq=False)
class ShardedFit(FittedModel, FitBase):
    """A fit of answers in shards.

    What concerns single people opens their shard; `shard(k)` is an ordinary Fit of one.
    """

    shards: Shards
    run: Folder  # the folder of the fit
    versions: tuple[int, ...]  # of each shard's settled sites in it
    is_reflected: bool  # whether the scale was turned round after those were found
    clock: str
    log_evidence: float
    n_unconverged: int
    answered: Ints  # answers of each item
    span: tuple[float, float]  # first and last instant
    stale: bool = False  # whether answers came in since the items were learned

    @property
    def time_range(self) -> tuple[float, float]:
        return self.span

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
        """What tasks on shards carry."""
        return ShardModel.of(
            self, self.shards, self.run, self.versions, self.is_reflected, self.clock
        )

    @property
    def busy(self) -> list[int]:
        """Numbers of the shards that have people."""
        return [k for k, part in enumerate(self.shards.parts) if part.people]

    # --- people ---------------------------------------------------------------------------------

    def shard(self, k: int, threads: int | None = None) -> Fit:
        """The people of one shard, as a fit of their own."""
        fit = self.shard_model.open(k, threads)
        return replace(fit, covariance=self.covariance, trace=self.trace)

    @cached_property
    def _opened(self) -> dict[int, Fit]:
        return {}

    def _open(self, k: int) -> Fit:
        """A shard, the last few of which are kept."""
        if k not in self._opened:
            while len(self._opened) >= 2:
                self._opened.pop(next(iter(self._opened)))
            self._opened[k] = self.shard(k)
        return self._opened[k]

    def _by_shard(self, ids: Any) -> dict[int, list[Any]]:
        """Ids by the shard they belong to."""
        wanted = as_list(ids)
        out: dict[int, list[Any]] = {}
        for label, k in zip(wanted, self.shards.shard_of(wanted).tolist(), strict=True):
            out.setdefault(k, []).append(label)
        return out

    def holder(self, id: Any) -> Fit:
        """The fit of the shard that holds a person."""
        return self._holding(int(self.shards.shard_of([id])[0]), [id])

    def _holding(self, k: int, ids: list[Any]) -> Fit:
        """A shard, opened; people whom it does not have are nowhere."""
        unknown = [
            label
            for label in ids
            if not self.shards.parts[k].people
            or try_index_of(self._open(k).responses.people, [label])[0] < 0
        ]
        if unknown:
            raise InputError(
                f"id: {unknown[0]!r} was never seen; there are "
                f"{count_noun(self.shards.people, 'people')} in "
                f"{count_noun(len(self.shards), 'shards')}"
            )
        return self._open(k)

    def ability(
        self, at: Any = None, ids: Any = None, *, level: float = 0.7, quantiles: Any = None
    ) -> Any:
        """A frame as `Fit.ability` gives.

        Without `ids` that of everyone, gathered in memory: `write_abilities` does not gather.
        """
        asked = None if ids is None else as_list(ids)
        if asked == []:
            return self._any().ability(at, [], level=level, quantiles=quantiles)
        groups = (
            {k: None for k, part in enumerate(self.shards.parts) if part.people}
            if asked is None
            else self._by_shard(list(dict.fromkeys(asked)))
        )
        fits = ((self._holding(k, some or []), some) for k, some in groups.items())
        frames = [fit.ability(at, some, level=level, quantiles=quantiles) for fit, some in fits]
        return _stacked(frames) if asked is None else _stacked(frames, _as_asked(frames, asked))

    def curve(self, id: Any, *, until: Any = None) -> Curve:
        """One person's curve, as `Fit.curve`."""
        return self.holder(id).curve(id, until=until)

    def change(self, id: Any, t0: Any, t1: Any) -> Change:
        """How a person's ability changed, as `Fit.change`."""
        return self.holder(id).change(id, t0, t1)

    def predict(self, data: Any) -> Any:
        """Chances of each response at its time, as `Fit.predict`.

        The shards of the people asked for are opened one by one.
        """
        more = self.read_new_data(data, unanswered=True)
        back = []
        parts = []
        for k, people in self._people_by_shard(more).items():
            some = more.select_people(people)
            back.append(np.sort(some.row))  # the order in which `predict` answers
            parts.append(
                (self._open(k) if self.shards.parts[k].people else self._any()).predict_read(some)
            )
        order = np.argsort(np.concatenate(back), kind="stable")
        return _stacked(parts, order, more.frame)

    def score(self, data: Any, *, at: Any = None, level: float = 0.7) -> Any:
        """Abilities of new people, or of new answers, with the items frozen, as `Fit.score`."""
        return self._any().score(data, at=at, level=level)

    def _any(self) -> Fit:
        """Some shard with people in it."""
        return self._open(next(k for k, part in enumerate(self.shards.parts) if part.people))

    def of_others(self, more: Responses) -> Fit:
        """A fit of people who are in no shard, with these items and priors."""
        other = self._any()
        return fit_new_people(other, read_new_responses(other, more))

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

    def _people_by_shard(self, more: Responses) -> dict[int, Ints]:
        """People of other data by the shard that holds them, or would."""
        shard = self.shards.shard_of(more.people.tolist())
        return {int(k): np.flatnonzero(shard == k) for k in np.unique(shard)}

    def update(
        self,
        data: Any,
        *,
        distinct: bool = False,
        new_items: bool = False,
        again: bool = False,
        executor: Executor | None = None,
        listen: Listen | None = None,
    ) -> ShardedFit:
        """The fit with more answers of known people, or of new ones.

        Their curves move, the items stay.

        Only shards with such people are opened, and only those people's curves are grafted anew.
        The grown shards lie in the run's folder, which from now on holds the new fit; the shards
        that were fitted first stay as they are. `dynaesti.refit_items` then moves the items as
        well. `distinct` leaves out answers that are in already, exactly; `new_items` lets in items
        that were never seen, as in `Fit.update`, and `again` adds what an earlier update has added,
        as there. One at a time: others wait.
        """
        more = self.read_new_data(data)
        with exclusive_lock(self.run.path(LOCK), self.run.root, wait=LOCK_TIMEOUT):
            self.check_current()
            batch = more.fingerprint()
            if batch in self.batches and not again:
                warn_already_added(more)
                self.finish_update(more, executor)
                return self
            held = replace(
                self._with_new_items(more, distinct) if new_items else self,
                batches=(*self.batches, batch),
            )
            return held._updated(more, distinct, executor, listen)

    def check_current(self) -> None:
        """Refuse to change a run that has changed since."""
        with self.run.reading(FIT_NAME) as file:
            _, header, _ = read_archive(file, self.run.path(FIT_NAME))
        now = (tuple(header["versions"]), tuple(header.get("batches", ())))
        if now != (self.versions, self.batches):
            raise StorageError(
                f"{self.run.root}: the run was changed since this fit was opened; open it again, "
                f"and nothing is lost"
            )

    def finish_update(self, more: Responses, executor: Executor | None = None) -> None:
        """Write the tables of abilities of an update that was stopped when its answers were in, and
        clear what it left behind.
        """
        clean_sites(self.run, self.versions)
        self.clean_parts()
        if self.run.local:
            remove_partial_files(self.run.path(ABILITIES))
        self.rewrite_abilities(sorted(self._people_by_shard(more)), executor=executor)

    def _updated(
        self, more: Responses, distinct: bool, executor: Executor | None, listen: Listen | None
    ) -> ShardedFit:
        index_of(self.item_labels, more.items.tolist(), "item", new_items_hint())
        if more.weight is not None and not self.shards.weighted:
            raise InputError(
                "weight: the answers in the shards have no weights, so further ones cannot have any"
            )
        groups = {
            k: more.select_people(people) for k, people in self._people_by_shard(more).items()
        }
        task = UpdateTask(self.shard_model, groups, max(self.versions) + 1, distinct, self.busy[0])
        run = (executor or ThreadExecutor(self.options["threads"])).run
        grown: list[UpdatedShard] = run(task, list(groups), sum_results, listen)
        if not grown:  # all are in already
            self.save()
            return self
        parts = {found.shard: found.part for found in grown}
        versions = tuple(
            task.version if k in parts else version for k, version in enumerate(self.versions)
        )
        first = min(found.span[0] for found in grown)
        last = max(found.span[1] for found in grown)
        far = max([self.options["farthest"], *(found.max_abs_ability for found in grown)])
        made = replace(
            self,
            shards=self.shards.with_parts(parts),
            versions=versions,
            options={**self.options, "farthest": far},
            stale=True,
            log_evidence=self.log_evidence + sum(found.gain for found in grown),
            answered=self.answered + sum(found.answered for found in grown),
            span=(min(first, self.span[0]), max(last, self.span[1])),
        )
        made.save()  # the one moment at which all answers are in
        made.finish_update(more, executor)
        return made

    def _with_new_items(self, more: Responses, distinct: bool) -> ShardedFit:
        """The fit with items that it has never seen, learned from those who met them.

        Their responses are gathered from the shards.
        """
        labels, people = find_new_items(self.shards.items, more)
        if not people.size:
            return self
        items = NewItemFit(self, labels, more)
        models = extend_models(self.shards.models, labels.size)
        parts = []
        for k, some in self._people_by_shard(more.select_people(people)).items():
            holder = self._open(k) if self.shards.parts[k].people else self._any()
            theirs = more.select_people(people[some])
            named = replace(holder.responses, items=labels, models=models)
            grown = replace(holder, responses=named, known_sites=None)
            if distinct:
                theirs = without_repeats(grown, theirs)
            parts.append(items.sites(responses_of_people(grown, theirs)))
        found = items.fit(PeopleSites.concatenate(parts))
        missing = np.zeros(labels.size - self.answered.size, dtype=np.int64)
        return replace(
            self,
            shards=replace(self.shards, items=labels, models=models),
            answered=np.append(self.answered, missing),
            coding=found.coding,
            bank=found.bank,
            covariance=found.covariance,
        )

    def clean_parts(self) -> None:
        """Remove grown shards that later ones have taken the place of."""
        place = self.run.child(PARTS)
        kept = {part.file.rpartition("/")[2] for part in self.shards.parts}
        for name in place.names():
            if name not in kept:
                place.remove(name)

    def write_abilities(
        self,
        at: Any = None,
        *,
        level: float = 0.7,
        executor: Executor | None = None,
        listen: Listen | None = None,
    ) -> str:
        """Everyone's abilities as a Parquet file for each shard in the run's folder.

        Returns that folder.

        `at`: times (default: at most twelve instants of each person's own answers, the first and
        the last among them).
        """
        check_level(level)
        offsets = None if at is None else self._any().to_clock(at).tolist()
        task = WriteAbilitiesTask(self.shard_model, offsets, level)
        run = (executor or ThreadExecutor(self.options["threads"])).run
        run(task, self.busy, sum_results, listen)
        return self.run.path(ABILITIES)

    def rewrite_abilities(
        self, shards: Sequence[int] | None = None, executor: Executor | None = None
    ) -> None:
        """Write files of abilities that were written before anew, as they were asked for then; of some shards, or of all."""
        asked = asked_before(self.run.child(ABILITIES))
        if asked is None:
            return
        task = WriteAbilitiesTask(self.shard_model, *asked)
        chosen = self.busy if shards is None else [k for k in shards if k in self.busy]
        run = (executor or ThreadExecutor(self.options["threads"])).run
        run(task, chosen, sum_results)

    # --- words and files ------------------------------------------------------------------------

    def summary(self) -> str:
        """The fit in a few sentences."""
        size = (
            f"{count_noun(self.shards.rows, 'answers')} of "
            f"{count_noun(self.shards.people, 'people')} to "
            f"{count_noun(self.item_labels.size, 'items')} "
            f"({self.model_names()}) in {count_noun(len(self.shards), 'shards')}."
        )
        return " ".join(
            [
                size,
                self.convergence_text(self.log_evidence, self.n_unconverged, self.shards.dropped),
                *self.cautions,
            ]
        )

    @property
    def cautions(self) -> list[str]:
        """What the answers cannot tell of the items, in words; of the people, ask a shard."""
        return self.item_cautions()

    def __repr__(self) -> str:
        return f"<ShardedFit: {self.summary()}>"

    def save(self) -> str:
        """Write what is not in shards into the run's folder; whole or not at all."""
        arrays: Arrays = {"answered": self.answered}
        told = self.shards.header()
        grown = self.run.child(PARTS)
        for part in told["parts"]:  # grown shards lie within the run, and move with it
            name = part["file"].rpartition("/")[2]
            if part["file"] == absolute_address(grown.path(name)):
                part["file"] = f"{WITHIN}{name}"
        header = {
            **common_header(self, self.shards.items, arrays),
            "shards": told,
            "folder": self.run.relative(self.shards.folder),
            "versions": list(self.versions),
            "span": list(self.span),
            "turned": self.is_reflected,
            "clock": self.clock,
            "log_evidence": self.log_evidence,
            "unsettled": self.n_unconverged,
            "stale": self.stale,
        }
        with self.run.writing(FIT_NAME) as file:
            write_archive(file, "sharded fit", header, arrays)
        return self.run.path(FIT_NAME)


def _as_asked(frames: list[Any], ids: list[Any]) -> Ints:
    """The order in which rows of frames, one below the other, belong to the ids as they were asked
    for, some of them repeatedly.
    """
    found = np.concatenate([np.asarray(frame["id"], dtype=object) for frame in frames])
    return np.concatenate([np.flatnonzero(found == label) for label in ids])


def _stacked(frames: list[Any], order: Ints | None = None, kind: str | None = None) -> Any:
    """Frames one below the other, rows in another order if one is given."""
    import narwhals as nw

    whole = nw.concat([nw.from_native(frame, eager_only=True) for frame in frames], how="vertical")
    if order is None and kind is None:
        return whole.to_native()
    columns = {
        name: whole[name].to_numpy() if order is None else whole[name].to_numpy()[order]
        for name in whole.columns
    }
    return make_frame(columns, kind if kind in KINDS else None)


def orient_shards(fit: ShardedFit, orient: Mapping[str, Any] | None) -> ShardedFit:
    """A fit of shards the right way up; sites stay as they lie on disk."""
    if is_positively_oriented(
        fit, orient, fit.holder(orient["id"]) if orient and "id" in orient else None
    ):
        return fit
    return replace(
        fit,
        bank=fit.bank.reflected(),
        covariance=reflect_covariance(fit),
        shared=reflect_scale_covariance(fit),
        is_reflected=True,
    )
