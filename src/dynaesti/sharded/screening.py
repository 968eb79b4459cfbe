"""Score tests and checks of items over people in shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dynaesti.core import Array, Ints
from dynaesti.estimation import EfficientScores, ItemTestSums, Periods, efficient_scores
from dynaesti.results import (
    MemoryScreener,
    ScreenedBy,
    cohort_precision,
    count_by_period,
)
from dynaesti.sharded.executors import Executor
from dynaesti.sharded.shard_model import ShardModel
from dynaesti.sharded.tasks import sum_results


@dataclass(frozen=True)
class ItemTestTask:
    """Sum up the score tests of all items over the people of a shard."""

    model: ShardModel
    by: ScreenedBy
    freed: Ints

    def __call__(self, shard: int, threads: int | None) -> ItemTestSums:
        return MemoryScreener(self.model.open(shard, threads)).sums(self.by, self.freed)


@dataclass(frozen=True)
class CheckItemsTask:
    """Sum up over the people of a shard what checks of items are made of."""

    model: ShardModel

    def __call__(self, shard: int, threads: int | None) -> Array:
        found = self.model.open(shard, threads).item_check_sums
        assert found is not None  # shards without answers are passed over
        return found


@dataclass(frozen=True)
class DatesTask:
    """First and last date of a shard's responses."""

    model: ShardModel

    def __call__(self, shard: int, threads: int | None) -> list[float]:  # noqa: ARG002
        times = self.model.shards.responses(shard).offsets
        return [float(times.min()), float(times.max())]


@dataclass(frozen=True)
class CountByPeriodTask:
    """Count a shard's responses to each item in each period."""

    model: ShardModel
    periods: Periods

    def __call__(self, shard: int, threads: int | None) -> Ints:  # noqa: ARG002
        return count_by_period(self.model.shards.responses(shard), self.periods)


@dataclass(frozen=True)
class ShardScreener:
    """A screener of people in shards: a pass over all of them for every sum."""

    model: ShardModel
    executor: Executor

    def sums(self, by: ScreenedBy, freed: Ints) -> ItemTestSums:
        found: ItemTestSums = self._run(ItemTestTask(self.model, by, freed))
        return found

    def ends(self) -> tuple[float, float]:
        found: list[float] = self._run(DatesTask(self.model))
        return min(found), max(found)

    def counts(self, periods: Periods) -> Ints:
        found: Ints = self._run(CountByPeriodTask(self.model, periods))
        return found

    def efficient_scores(self, by: ScreenedBy, freed: Ints) -> EfficientScores:
        """Efficient scores; effects of freed items are projected out, not learned."""
        held = cohort_precision(self.model.model.priors)
        return efficient_scores(self.sums(by, freed), by.n_tested, held, freed)

    def _run(self, task: Any) -> Any:
        return self.executor.run(task, self.model.shards.nonempty, sum_results)
