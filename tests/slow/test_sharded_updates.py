"""Shards that grow, and items learned again."""

import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.sharded.shards import Shards
from support.oracles import in_pandas
from support.simulated import shuffled_classroom

ITERATIONS = 40


def test_an_update_is_a_refit_of_those_it_touches(tmp_path):
    table = shuffled_classroom(80).sort_values("date")
    first, more = table.iloc[:-120], table.iloc[-120:]
    new = more.head(10).assign(id="newcomer")
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    shards = dy.prepare(first, tmp_path / "shards", shards=5)
    yesterday = estimator.fit(shards, out=tmp_path / "run")
    whole = estimator.fit(first).update(pd.concat([more, new]))
    grown = yesterday.update(pd.concat([more, new]))
    assert grown.shards.people == shards.people + 1
    assert grown.shards.rows == len(table) + 10
    assert_allclose(grown.log_evidence, whole.log_evidence, atol=1e-5)
    assert_allclose(grown.responses_per_item, whole.responses_per_item)
    for person in ("p003", "newcomer"):
        assert_allclose(
            grown.ability([0.5, 1.0], [person])["mean"],
            whole.ability([0.5, 1.0], [person])["mean"],
            atol=1e-6,
        )
    assert_allclose(
        dy.load(tmp_path / "run").ability([0.5], ["newcomer"])["mean"],
        grown.ability([0.5], ["newcomer"])["mean"],
        atol=1e-9,
    )
    assert Shards.open(str(tmp_path / "shards")).rows == len(
        first
    )  # the first shards stay as they are
    with pytest.raises(dy.InputError, match="never seen"):
        grown.update(more.assign(item="another"))


def test_a_run_keeps_its_people_whatever_is_moved_or_made_anew(tmp_path):
    table = shuffled_classroom(60).sort_values("date")
    shards = dy.prepare(table.iloc[:-60], tmp_path / "shards", shards=3)
    fit = dy.DynAEsti("2PL", iterations=8).fit(shards, out=tmp_path / "run")
    grown = fit.update(table.iloc[-60:])
    with pytest.raises(dy.StorageError, match="was changed since"):
        fit.update(table.iloc[-60:])
    with pytest.warns(dy.HealthWarning, match="30 of 30 answers are in the fit already"):
        assert grown.update(table.iloc[-30:]).shards.rows == len(table)
    before = grown.ability([0.5], ["p003"])["mean"].to_numpy()
    (tmp_path / "run").rename(tmp_path / "moved")
    assert_allclose(dy.load(tmp_path / "moved").ability([0.5], ["p003"])["mean"], before, atol=1e-9)
    dy.prepare(table.assign(resp=1 - table["resp"]), tmp_path / "shards", shards=3, force=True)
    with pytest.raises(dy.StorageError, match="prepared anew"):
        dy.load(tmp_path / "moved")


def test_a_refresh_keeps_the_scale_upright(tmp_path):
    table = shuffled_classroom(60).sort_values("date")
    fit = dy.DynAEsti("2PL", direction="free", orient={"id": "p007"}, iterations=20).fit(
        dy.prepare(table.iloc[:-20], tmp_path / "shards", shards=2), out=tmp_path / "run"
    )
    again = dy.refit_items(fit.update(table.iloc[-20:]))
    for one in (fit, again):
        assert one.ability(None, ["p007"])["mean"].mean() >= 0


def test_a_refresh_is_a_fit_of_everything_in_few_passes(tmp_path):
    table = shuffled_classroom(120).sort_values("date")
    estimator = dy.DynAEsti(
        "2PL", tolerance=1e-4, kernel=dy.Level(amplitude=0.6) + dy.RBF(0.4, amplitude=0.8)
    )
    yesterday = estimator.fit(
        dy.prepare(table.iloc[:-100], tmp_path / "shards", shards=3), out=tmp_path / "run"
    )
    grown = dy.refit_items(yesterday.update(table.iloc[-100:]))
    whole = estimator.fit(table)
    assert grown.converged
    assert len(grown.trace) < len(whole.trace)
    assert_allclose(
        in_pandas(grown.items).sort_values("item")["b"].to_numpy(),
        in_pandas(whole.items).sort_values("item")["b"].to_numpy(),
        atol=2e-4,
    )
    assert dy.load(tmp_path / "run").log_evidence == pytest.approx(grown.log_evidence)


def test_tables_of_abilities_follow_updates(tmp_path):
    table = shuffled_classroom(60).sort_values("date")
    fit = dy.DynAEsti("2PL", iterations=ITERATIONS).fit(
        dy.prepare(table.iloc[:-30], tmp_path / "s", shards=2), out=tmp_path / "run"
    )
    folder = fit.write_abilities([0.2, 0.9], level=0.5)
    before = [
        (tmp_path / "run" / "abilities" / f"shard-{k:05d}.parquet").read_bytes() for k in range(2)
    ]
    one = table.iloc[-1:]
    held = int(fit.shards.shard_of([one["id"].iloc[0]])[0])
    grown = fit.update(one)
    after = [
        (tmp_path / "run" / "abilities" / f"shard-{k:05d}.parquet").read_bytes() for k in range(2)
    ]
    assert after[1 - held] == before[1 - held]
    told = pd.read_parquet(f"{folder}/shard-{held:05d}.parquet")
    asked = in_pandas(grown.ability([0.2, 0.9], told["id"].unique().tolist(), level=0.5))
    assert_allclose(told[["mean", "lower", "upper"]], asked[["mean", "lower", "upper"]], atol=1e-6)
    again = dy.refit_items(grown, iterations=3)
    told = pd.read_parquet(f"{folder}/shard-{1 - held:05d}.parquet")
    assert_allclose(
        told["mean"], again.ability([0.2, 0.9], told["id"].unique().tolist())["mean"], atol=1e-6
    )
