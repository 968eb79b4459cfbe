"""Fits of shards against fits in memory: the same answer."""

import dynaesti as dy
from dynaesti.core.folder import Folder
from support.oracles import assert_same_fit
from support.simulated import shuffled_classroom

ITERATIONS = 40


def test_sample_and_stage_for_stage_with_many_people(tmp_path, monkeypatch):
    """Where first passes are made on some people, the same ones are taken from shards as from
    memory.
    """
    from dynaesti.estimation import schedule

    small = schedule.ScheduleSettings(first_sites=600, responses_per_item=10, search_sites=400)
    monkeypatch.setattr(schedule, "DEFAULT", small)
    table = shuffled_classroom(200)
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    whole = estimator.fit(table)
    assert {"first pass", "subsample", "everyone"} <= {step.stage for step in whole.trace}
    assert_same_fit(
        estimator.fit(dy.prepare(table, tmp_path / "shards", shards=7), out=tmp_path / "run"), whole
    )


def test_elsewhere_through_fsspec(tmp_path):
    """Shards and run at an address that is no path."""
    import fsspec

    table = shuffled_classroom(60)
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    whole = estimator.fit(table)
    dy.prepare(table, tmp_path / "shards", shards=3)
    fsspec.filesystem("memory").put(str(tmp_path / "shards"), "/far/shards", recursive=True)
    found = estimator.fit("memory://far/shards", out="memory://far/run")
    assert_same_fit(found, whole)
    assert_same_fit(dy.load("memory://far/run"), whole)
    assert Folder("memory://far/run").exists("fit.dyn")
    assert not Folder("memory://far/run").exists("fit.ckpt")
