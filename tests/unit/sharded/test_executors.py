"""Executors: threads."""

import time

import pytest

import dynaesti as dy
from dynaesti.sharded.executors import ThreadExecutor
from support.simulated import shuffled_classroom


def test_threads_add_up_in_the_shards_order():
    def task(shard, threads):
        time.sleep(0.002 * (7 - shard % 5))
        return [shard]

    with pytest.raises(dy.InputError, match="works on shards"):
        dy.DynAEsti(executor=ThreadExecutor(2)).fit(shuffled_classroom(20))
    heard = []
    found = ThreadExecutor(4).run(
        task,
        list(range(12)),
        lambda parts: [k for part in parts for k in part],
        lambda done, of: heard.append(done),
    )
    assert found == list(range(12))
    assert heard == list(range(1, 13))
