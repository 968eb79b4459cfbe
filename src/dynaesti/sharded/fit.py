"""ShardedFit: a fit whose people stay in their shards.

Items and population are at hand; people are fetched shard by shard.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
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
    as_vector,
    check_array,
    exclusive_lock,
    is_address,
    read_archive,
    remove_partial_files,
    require,
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
from dynaesti.errors import DynaestiWarning, InputError, StorageError, option
from dynaesti.estimation import (
    EP_TOLERANCE_FINAL,
    EStep,
    FittedModel,
    NewItemFit,
    SiteLayout,
    build_site_layout,
    extend_models,
    find_new_items,
    new_items_hint,
)
from dynaesti.inference import check_level
from dynaesti.model import BUILT_IN, CustomItemModel, ItemModel
from dynaesti.results import (
    Change,
    Curve,
    Fit,
    FitBase,
    common_header,
    is_positively_oriented,
    read_common,
    reflect_covariance,
    reflect_scale_covariance,
)
from dynaesti.sharded.executors import Executor, Listen, ThreadExecutor
from dynaesti.sharded.shards import Shard, Shards, is_shards, write_part
from dynaesti.sharded.site_store import clean_sites, read_sites, write_sites
from dynaesti.sharded.tasks import ShardContext, sum_results

WITHIN = "run:"  # says that a shard's file lies in the run's own folder
ASKED = b"asked"  # in the metadata of a file of abilities: which times, and which band
INSTANTS = 12  # of each person's own answers in the table of abilities, unless times are asked for


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
    def ends(self) -> tuple[float, float]:
        return self.span

    @property
    def item_labels(self) -> Labels:
        return self.shards.items

    @property
    def item_answers(self) -> Ints:
        return self.answered

    @property
    def frame(self) -> str | None:
        return None

    @property
    def layout(self) -> ShardContext:
        """What work on a shard rests on."""
        return ShardContext(self.shards, self.coding, self.bank, self.clock, self.run)

    def __getstate__(self) -> dict[str, Any]:
        return {
            f.name: getattr(self, f.name) for f in fields(self)
        }  # what was opened on the way stays here

    # --- people
    # ---------------------------------------------------------------------------------------------

    def shard(self, k: int, threads: int | None = None) -> Fit:
        """The people of one shard, as a fit of their own."""
        if not isinstance(k, int | np.integer) or not 0 <= k < len(self.shards):
            raise InputError(f"shard: there are {len(self.shards)}, counted from 0; got {k!r}")
        if not self.shards.parts[k].people:
            raise InputError(f"shard: nobody is in shard {k}")
        responses = self.shards.responses(k, self.clock)
        e_step = EStep(build_site_layout(responses, self.coding, self.bank), threads)
        sites = read_sites(self.run, k, self.versions[k], self.kernels, e_step.answers)
        sign = -1.0 if self.is_reflected else 1.0
        starts = [
            (sites[kernel][0], sign * sites[kernel][1]) if kernel in sites else None
            for kernel in self.kernels
        ]
        expected = e_step.run(
            self.likelihood_table, list(self.kernels), self.population, starts, EP_TOLERANCE_FINAL
        )
        common = {name: getattr(self, name) for name in FittedModel.__dataclass_fields__}
        return Fit(**common, responses=responses, grafts=expected.grafted, weights=expected.weights)

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
        more = self.more(data, unanswered=True)
        back = []
        parts = []
        for k, people in self._people_by_shard(more).items():
            some = more.take(people)
            back.append(np.sort(some.row))  # the order in which `predict` answers
            parts.append(
                (self._open(k) if self.shards.parts[k].people else self._any()).predicted(some)
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
        holder = self._any()
        return holder._scored(*holder._read(more))

    @property
    def like(self) -> Responses:
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
        more = self.more(data)
        with exclusive_lock(self.run.path(LOCK), self.run.root, wait=LOCK_TIMEOUT):
            self._check_current()
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

    def _check_current(self) -> None:
        """Refuse to change a run that has changed since."""
        now = load_sharded(self.run, self._own_models(), connect=True)
        if (now.versions, now.batches) != (self.versions, self.batches):
            raise StorageError(
                f"{self.run.root}: the run was changed since this fit was opened; open it again, "
                f"and nothing is lost"
            )

    def _own_models(self) -> dict[str, ItemModel]:
        return {
            model.label: model
            for model in set(self.coding.models)
            if isinstance(model, CustomItemModel)
        }

    def finish_update(self, more: Responses, executor: Executor | None = None) -> None:
        """Write the tables of abilities of an update that was stopped when its answers were in, and
        clear what it left behind.
        """
        clean_sites(self.run, self.versions)
        self.clean_parts()
        if self.run.local:
            remove_partial_files(self.run.path(ABILITIES))
        self.renew_abilities(sorted(self._people_by_shard(more)), executor=executor)

    def _updated(
        self, more: Responses, distinct: bool, executor: Executor | None, listen: Listen | None
    ) -> ShardedFit:
        index_of(self.item_labels, more.items.tolist(), "item", new_items_hint())
        if more.weight is not None and not self.shards.weighted:
            raise InputError(
                "weight: the answers in the shards have no weights, so further ones cannot have any"
            )
        groups = {k: more.take(people) for k, people in self._people_by_shard(more).items()}
        task = UpdateTask(self, groups, max(self.versions) + 1, distinct)
        grown: list[UpdatedShard] = (executor or ThreadExecutor(self.options["threads"])).run(
            task, list(groups), sum_results, listen
        )
        if not grown:  # all are in already
            self.save()
            return self
        parts = {found.shard: found.part for found in grown}
        versions = tuple(
            task.version if k in parts else version for k, version in enumerate(self.versions)
        )
        first = min(found.span[0] for found in grown)
        last = max(found.span[1] for found in grown)
        far = max([self.options["farthest"], *(found.farthest for found in grown)])
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
        """The fit with room for new items, learned from those who met them.

        Their answers are gathered from the shards.
        """
        labels, people = find_new_items(self.shards.items, more)
        if not people.size:
            return self
        new_item_fit = NewItemFit(self, labels, more)
        parts = []
        shards = replace(
            self.shards, items=labels, models=extend_models(self.shards.models, labels.size)
        )
        for k, some in self._people_by_shard(more.take(people)).items():
            holder = self._open(k) if self.shards.parts[k].people else self._any()
            theirs = more.take(people[some])
            grown = replace(
                holder, responses=replace(holder.responses, items=labels, models=shards.models)
            )
            if distinct:
                theirs = theirs.pick(np.setdiff1d(np.arange(len(theirs)), grown.repeated(theirs)))
            parts.append(new_item_fit.answers(grown.with_answers(theirs)))
        answered = np.append(
            self.answered, np.zeros(labels.size - self.answered.size, dtype=np.int64)
        )
        return replace(
            self, shards=shards, answered=answered, **new_item_fit.learned(SiteLayout.joined(parts))
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
        busy = [k for k, part in enumerate(self.shards.parts) if part.people]
        offsets = None if at is None else self._any()._offsets(at).tolist()
        (executor or ThreadExecutor(self.options["threads"])).run(
            WriteAbilities(self, offsets, level), busy, sum_results, listen
        )
        return self.run.path(ABILITIES)

    def renew_abilities(
        self, shards: Sequence[int] | None = None, executor: Executor | None = None
    ) -> None:
        """Files of abilities that were written before, written anew as they were asked for then.

        Of some shards, or of all.
        """
        import pyarrow.parquet as pq

        place = self.run.child(ABILITIES)
        names = [name for name in place.names() if name.endswith(".parquet")]
        if not names:
            return
        offsets = None
        level = 0.7
        try:
            with place.reading(names[0]) as file:
                told = json.loads((pq.read_schema(file).metadata or {})[ASKED])
            check_level(told["level"])
            offsets = (
                None if told["offsets"] is None else as_vector(told["offsets"], "times").tolist()
            )
            level = told["level"]
        except Exception as error:  # whatever Parquet or JSON make of damage
            warnings.warn(
                f"{place.path(names[0])}: damaged ({error}); abilities are told at times of each "
                f"one's own",
                DynaestiWarning,
                stacklevel=2,
            )
        busy = [
            k
            for k in (range(len(self.shards)) if shards is None else shards)
            if self.shards.parts[k].people
        ]
        (executor or ThreadExecutor(self.options["threads"])).run(
            WriteAbilities(self, offsets, level), busy, sum_results
        )

    # --- in words, and on disk
    # --------------------------------------------------------------------------------

    def summary(self) -> str:
        """The fit in a few sentences."""
        size = (
            f"{count_noun(self.shards.rows, 'answers')} of "
            f"{count_noun(self.shards.people, 'people')} to "
            f"{count_noun(self.item_labels.size, 'items')} "
            f"({self.told_models()}) in {count_noun(len(self.shards), 'shards')}."
        )
        return " ".join(
            [
                size,
                self.told_verdict(self.log_evidence, self.n_unconverged, self.shards.dropped),
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
            if part["file"] == address(grown.path(name)):
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


def open_sharded(
    run: Folder,
    header: Header,
    arrays: Arrays,
    models: Mapping[str, ItemModel] | None,
    connect: bool = False,
) -> ShardedFit:
    """The fit in a run's folder.

    Hosts that only the file names are not called, unless `connect` says so.
    """
    common, items = read_common(header, arrays, models)
    for name in (header["folder"], *(part["file"] for part in header["shards"]["parts"])):
        if not connect and not run.may_reach(name):
            raise StorageError(
                f"{run.root}: its shards are told to be at {name}, elsewhere than the run itself; "
                f"if you trust that, open "
                f"it with {option('connect', True, python='load(path, connect=True)')}"
            )
    for part in header["shards"]["parts"]:
        if part["file"].startswith(WITHIN):
            part["file"] = address(
                run.child(PARTS).path(os.path.basename(part["file"].removeprefix(WITHIN)))
            )
    shards = Shards.from_header(run.resolved(header["folder"]), header["shards"])
    versions = header["versions"]
    require(shards.items.tolist() == items.tolist(), "the shards have other items than the fit")
    require(
        len(versions) == len(shards)
        and all(type(version) is int and version >= 0 for version in versions),
        "sites are misnamed",
    )
    check_array(arrays["answered"], (items.size,), "the items' answers", "i")
    require(
        header["clock"] in ("calendar", "person")
        and np.isfinite(np.array(header["span"], dtype=float).reshape(2)).all(),
        "no clock",
    )
    for place, name in (shards.place_of(k) for k in range(len(shards))):
        if not place.exists(name):
            raise StorageError(
                f"{run.root}: a shard of it is not at {place.path(name)} any more; move it back"
            )
    if is_shards(shards.folder) and Shards.open(shards.folder).print != shards.print:
        raise StorageError(
            f"{run.root}: the shards at {shards.folder} were prepared anew since this fit was "
            f"made; fit them again"
        )
    return ShardedFit(
        **vars(common),
        shards=shards,
        run=run,
        versions=tuple(versions),
        is_reflected=bool(header["turned"]),
        span=(float(header["span"][0]), float(header["span"][1])),
        clock=header["clock"],
        log_evidence=float(header["log_evidence"]),
        n_unconverged=int(header["unsettled"]),
        answered=arrays["answered"],
        stale=bool(header.get("stale", False)),
    )


def load_sharded(
    run: Folder, models: Mapping[str, ItemModel] | None = None, connect: bool = False
) -> ShardedFit:
    """Open a run's folder, here or elsewhere."""
    with run.reading(FIT_NAME) as file:
        kind, header, arrays = read_archive(file, run.path(FIT_NAME))
    if kind != "sharded fit":
        raise StorageError(f"{run.path(FIT_NAME)}: holds a {kind!r}, not a fit of shards")
    return open_sharded(run, header, arrays, models, connect)


@dataclass(frozen=True)
class WriteAbilities:
    """A shard's abilities to a Parquet file."""

    fit: ShardedFit
    offsets: list[float] | None  # on the fit's clock; none: instants of each person's own
    level: float

    def __call__(self, shard: int, threads: int | None) -> int:
        import pyarrow as pa
        import pyarrow.parquet as pq

        fit = self.fit.shard(shard, threads)
        people = fit.responses.people.size
        person, offsets = (
            _spread(fit)
            if self.offsets is None
            else (np.repeat(np.arange(people), len(self.offsets)), np.tile(self.offsets, people))
        )
        mix = fit.marginals(person, offsets)
        link = BUILT_IN["identity"]
        lower, upper = mix.quantiles(np.array([0.5 - self.level / 2, 0.5 + self.level / 2]), link)
        table = pa.table(
            {
                "id": pa.array(fit.responses.people).take(pa.array(person)),
                "time": fit._restored(offsets),
                "mean": mix.mean(link),
                "sd": mix.sd(link),
                "lower": lower,
                "upper": upper,
            }
        )
        table = table.replace_schema_metadata(
            {ASKED: json.dumps({"offsets": self.offsets, "level": self.level})}
        )
        with self.fit.run.writing(f"{ABILITIES}/shard-{shard:05d}.parquet") as file:
            pq.write_table(table, file)
        return 1


@dataclass(frozen=True)
class UpdatedShard:
    """A shard after an update."""

    shard: int
    part: Shard
    gain: float  # of log evidence
    answered: Ints
    span: tuple[float, float]
    farthest: float  # ability


@dataclass(frozen=True)
class UpdateTask:
    """More answers into a shard: written beside the old one, under a name of its own."""

    fit: ShardedFit
    more: dict[int, Responses]
    version: int
    distinct: bool

    def __call__(self, shard: int, threads: int | None) -> list[UpdatedShard]:
        fit = self.fit
        more = self.more[shard]
        if fit.shards.parts[shard].people:
            old: Fit | None = fit.shard(shard, threads)
            assert old is not None
            if self.distinct:
                more = more.pick(np.setdiff1d(np.arange(len(more)), old.repeated(more)))
            if not len(more):
                return []
            new = old._updated(more)
            before = old.log_evidence
        else:
            old = None
            new = fit.of_others(more)
            before = 0.0
        r = new.responses
        place = fit.run.child(PARTS)
        part = write_part(
            place,
            f"shard-{shard:05d}.{self.version}.parquet",
            r.people[r.person],
            r.item,
            r.resp,
            r.offsets,
            r.weight,
        )
        sign = -1.0 if fit.is_reflected else 1.0
        write_sites(
            fit.run,
            shard,
            self.version,
            {
                kernel: (g.precision, sign * g.shift)
                for kernel, g in zip(fit.kernels, new.grafts, strict=True)
            },
        )
        answered = new.item_answers - (0 if old is None else old.item_answers)
        return [
            UpdatedShard(
                shard,
                replace(part, file=address(place.path(part.file))),
                new.log_evidence - before,
                answered,
                new.ends,
                float(new.options["farthest"]),
            )
        ]


def address(path: str) -> str:
    """A path that holds from every folder."""
    return path if is_address(path) else os.path.abspath(path)


def _spread(fit: Fit) -> tuple[Ints, Array]:
    """At most INSTANTS sites of each person, evenly spread, the first and the last among them."""
    start = fit.answers.site_start
    counts = np.diff(start)
    wanted = np.minimum(counts, INSTANTS)
    person = np.repeat(np.arange(counts.size), wanted)
    place = np.arange(person.size) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    step = place * (counts[person] - 1) / np.maximum(wanted[person] - 1, 1)
    last = wanted[person] == 1
    at = start[person] + np.where(last, counts[person] - 1, np.rint(step)).astype(np.int64)
    return person, fit.answers.times[at]


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
