"""Shards on a Dask cluster."""

import os
import signal

import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from support.simulated import shuffled_classroom

ITERATIONS = 40


def test_a_dask_cluster_gives_the_same_answer_though_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    shards = dy.prepare(shuffled_classroom(120), tmp_path / "shards", shards=6)
    local = dy.DynAEsti("2PL", iterations=ITERATIONS).fit(shards, out=tmp_path / "local")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victims = []

        def kill(step):
            if step.stage == "everyone" and not victims:
                victims.append(
                    next(iter(cluster.workers.values())).pid
                    if hasattr(next(iter(cluster.workers.values())), "pid")
                    else None
                )
                os.kill(victims[0], signal.SIGKILL)

        found = dy.DynAEsti(
            "2PL", iterations=ITERATIONS, executor=dy.DaskExecutor(client), progress=kill
        ).fit(shards, out=tmp_path / "run")
    assert victims
    assert_allclose(found.bank.blocks[0].u, local.bank.blocks[0].u, atol=1e-6)
    assert_allclose(found.covariance[0], local.covariance[0], atol=1e-6)
    with pytest.raises(dy.InputError, match="client"):
        dy.DaskExecutor("tcp://nowhere")


def test_a_cluster_without_workers_is_no_reason_to_wait_for_ever(small, tmp_path, monkeypatch):
    from distributed import Client, LocalCluster

    from dynaesti.sharded import executors as engines

    monkeypatch.setattr(engines, "WAITING", 1.0)
    shards = dy.prepare(small, tmp_path / "shards", shards=2)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
        pytest.raises(dy.StorageError, match="no workers"),
    ):
        dy.DynAEsti(executor=dy.DaskExecutor(client)).fit(shards, out=tmp_path / "run")
