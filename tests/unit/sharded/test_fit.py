"""Fits of shards against fits in memory.

The same answer, whoever does the work and whatever happens on the way.
"""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.core.folder import Folder
from dynaesti.estimation.site_layout import SiteLayout
from dynaesti.estimation.subsample import PersonSummary
from dynaesti.sharded.executors import ThreadExecutor
from dynaesti.sharded.shards import Shards
from dynaesti.sharded.simulate import simulate_shards
from support.oracles import assert_same_fit
from support.simulated import parts, shuffled_classroom

ITERATIONS = 40


@pytest.mark.parametrize(("model", "options"), [
    ("2PL", {}), ("2PL", {"kernel": "rbf"}), ("3PL", {"bandwidth": np.inf}), ("GRM", {"rare": 3}), ("1PL", {"scale": "items"}),
    ("poisson", {"bandwidth": 0.4}), ("2PL", {"direction": "free", "orient": {"id": "p007"}}), ("2PL", {"clock": "person"}),
    ("2PL", {"priors": "hierarchical", "iterations": 12}),
])  # fmt: skip
def test_a_fit_of_shards_is_the_fit_in_memory(tmp_path, model, options):
    table = shuffled_classroom(model=model if model in ("GRM", "poisson") else "2PL")
    estimator = dy.DynAEsti(model, **{"iterations": ITERATIONS, **options})
    whole = estimator.fit(table)
    shards = dy.prepare(table, tmp_path / "shards", shards=4)
    assert shards.rows == len(table)
    assert shards.people == table["id"].nunique()
    found = estimator.fit(shards, out=tmp_path / "run")
    assert_same_fit(found, whole)
    again = dy.load(tmp_path / "run")
    assert_same_fit(again, whole)
    assert "4 shards" in again.summary()


def test_sample_and_stage_for_stage_with_many_people(tmp_path, monkeypatch):
    """Where first passes are made on some people, the same ones are taken from shards as from
    memory.
    """
    from dynaesti.estimation import schedule as fitting

    monkeypatch.setattr(fitting, "SOME", 600)
    monkeypatch.setattr(fitting, "ANSWERS", 10)
    monkeypatch.setattr(fitting, "FEW", 400)
    table = shuffled_classroom(200)
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    whole = estimator.fit(table)
    assert {"first look", "some people", "everyone"} <= {step.stage for step in whole.trace}
    assert_same_fit(
        estimator.fit(dy.prepare(table, tmp_path / "shards", shards=7), out=tmp_path / "run"), whole
    )


def test_labels_times_weights_and_models_come_through(tmp_path):
    table = shuffled_classroom(60).rename(columns={"id": "student", "date": "when"})
    table["when"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(
        (table["when"] * 40 * 86_400).round(), unit="s"
    )
    table["w"] = 0.5 + (np.arange(len(table)) % 3)
    table["kind"] = np.where(table["item"] == "i03", "1PL", "2PL")
    table.to_csv(tmp_path / "a.csv", index=False)
    names = {
        "id": "student",
        "item": "item",
        "resp": "resp",
        "time": "when",
        "weight": "w",
        "model": "kind",
    }
    estimator = dy.DynAEsti(iterations=ITERATIONS)
    whole = estimator.fit(table, **names)
    found = estimator.fit(
        dy.prepare(tmp_path / "a.csv", tmp_path / "shards", shards=3, **names), out=tmp_path / "run"
    )
    assert_allclose(
        found.items.sort_values("item")["b"].to_numpy(),
        whole.items.sort_values("item")["b"].to_numpy(),
        atol=1e-6,
    )
    at = ["2024-03-10", "2024-04-01"]
    assert_allclose(
        found.ability(at, ["p011"])["mean"], whole.ability(at, ["p011"])["mean"], atol=1e-6
    )
    asked = table[["student", "item", "when"]].head(40)
    assert_allclose(found.predict(asked)["p1"], whole.predict(asked)["p1"], atol=1e-6)
    assert found.change("p011", *at).mean == pytest.approx(whole.change("p011", *at).mean, abs=1e-6)
    assert_allclose(
        found.curve("p011").mean(pd.to_datetime(at)),
        whole.curve("p011").mean(pd.to_datetime(at)),
        atol=1e-6,
    )
    assert_allclose(
        found.score(table.head(30).replace({"student": {"p011": "new"}}))["mean"],
        whole.score(table.head(30).replace({"student": {"p011": "new"}}))["mean"],
        atol=1e-6,
    )


def test_pieces_and_memory_do_not_change_the_shards(tmp_path, monkeypatch):
    from dynaesti.sharded import prepare_shards as preparing

    table = shuffled_classroom(40)
    table.to_parquet(tmp_path / "a.parquet")
    once = dy.prepare(tmp_path / "a.parquet", tmp_path / "one", shards=3)
    monkeypatch.setattr(preparing, "PIECE", 64)
    pieces = dy.prepare(tmp_path / "a.parquet", tmp_path / "many", shards=3, memory="100MB")
    for k in range(3):
        a, b = once.responses(k), pieces.responses(k)
        for name in ("person", "item", "resp", "offsets"):
            assert_allclose(getattr(a, name), getattr(b, name))
        assert a.people.tolist() == b.people.tolist()
    double = pd.concat([table, table.head(17)])
    assert dy.prepare(double, tmp_path / "twice", shards=2, distinct=True).rows == len(table)


def test_what_cannot_be_prepared_is_refused_and_leaves_nothing(tmp_path, capsys):
    bad = shuffled_classroom(20).astype({"resp": object})
    bad.iloc[5, bad.columns.get_loc("resp")] = "oops"
    bad.to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(dy.ResponseError, match=r"'oops' in bad\.csv, line 7"):
        dy.prepare(tmp_path / "bad.csv", tmp_path / "shards")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]
    made = dy.prepare(tmp_path / "bad.csv", tmp_path / "shards", unreadable="drop", shards=2)
    assert made.rows == len(bad) - 1
    assert any("left out" in note for note in made.notes)
    with pytest.raises(dy.InputError, match="holds shards already"):
        dy.prepare(tmp_path / "bad.csv", tmp_path / "shards", unreadable="drop")
    with pytest.raises(dy.InputError, match="not empty"):  # other people's files are never removed
        dy.prepare(tmp_path / "bad.csv", tmp_path, unreadable="drop", force=True)
    with pytest.raises(dy.StorageError, match=r"shards\.json"):
        Shards.open(str(tmp_path))
    (tmp_path / "shards" / "shards.json").write_text("{}")
    with pytest.raises(dy.StorageError, match="damaged"):
        Shards.open(str(tmp_path / "shards"))
    assert main(["prepare", str(tmp_path / "nothing.csv"), "--out", str(tmp_path / "x")]) == 4
    assert "no such file" in capsys.readouterr().err


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
    assert_allclose(grown.item_answers, whole.item_answers)
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
    assert grown.update(table.iloc[-60:], distinct=True).shards.rows == len(table)
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
        grown.items.sort_values("item")["b"].to_numpy(),
        whole.items.sort_values("item")["b"].to_numpy(),
        atol=2e-4,
    )
    assert dy.load(tmp_path / "run").log_evidence == pytest.approx(grown.log_evidence)


KILLED = """
import sys
import dynaesti as dy
dy.DynAEsti("2PL", iterations=40, threads=1).fit(sys.argv[1], out=sys.argv[2])
"""


def test_a_killed_fit_goes_on_to_the_same_answer(tmp_path):
    table = shuffled_classroom(150)
    shards = dy.prepare(table, tmp_path / "shards", shards=4)
    undisturbed = dy.DynAEsti("2PL", iterations=40, threads=1).fit(shards, out=tmp_path / "calm")
    rng = np.random.default_rng(0)
    kills = 0
    while not (tmp_path / "run" / "fit.dyn").exists() or (tmp_path / "run" / "fit.ckpt").exists():
        run = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / "shards"), str(tmp_path / "run")],
            start_new_session=True,
        )
        if kills < 4:
            begun = time.monotonic()
            while (
                run.poll() is None
                and not (tmp_path / "run" / "sites").exists()
                and time.monotonic() - begun < 30
            ):
                time.sleep(0.02)
            time.sleep(rng.uniform(0.0, 0.5))
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                kills += 1
        assert run.wait() in (0, -signal.SIGKILL)
    assert kills >= 1
    found = dy.load(tmp_path / "run")
    assert_allclose(found.bank.blocks[0].u, undisturbed.bank.blocks[0].u, atol=1e-9)
    assert found.log_evidence == pytest.approx(undisturbed.log_evidence, abs=1e-6)
    assert {path.name.split(".")[1] for path in (tmp_path / "run" / "sites").iterdir()} == {
        str(found.versions[0])
    }


def test_a_full_disk_is_told_and_loses_nothing(tmp_path, monkeypatch):
    shards = dy.prepare(shuffled_classroom(60), tmp_path / "shards", shards=2)
    estimator = dy.DynAEsti("2PL", iterations=ITERATIONS)
    undisturbed = estimator.fit(shards, out=tmp_path / "calm")
    writing, left = Folder.writing, [9]

    def full(self, name):
        left[0] -= name.startswith("sites")
        if left[0] < 0:
            raise dy.StorageError(
                f"{name}: could not be written (No space left on device); nothing was changed"
            )
        return writing(self, name)

    monkeypatch.setattr(Folder, "writing", full)
    with pytest.raises(dy.StorageError, match="No space left"):
        estimator.fit(shards, out=tmp_path / "run")
    monkeypatch.undo()
    assert (tmp_path / "run" / "fit.ckpt").exists()
    found = estimator.fit(shards, out=tmp_path / "run")
    assert_allclose(found.bank.blocks[0].u, undisturbed.bank.blocks[0].u, atol=1e-9)
    with pytest.raises(dy.InputError, match="holds a fit already"):
        estimator.fit(shards, out=tmp_path / "run")


def test_lost_sites_cost_a_cold_look_only(tmp_path):
    """Sites are a cache: without them a shard begins cold and settles to what it was."""
    shards = dy.prepare(shuffled_classroom(60), tmp_path / "shards", shards=2)
    fit = dy.DynAEsti("2PL", iterations=ITERATIONS).fit(shards, out=tmp_path / "run")
    warm = fit.shard(0)
    for path in (tmp_path / "run" / "sites").iterdir():
        path.unlink()
    cold = dy.load(tmp_path / "run").shard(0)
    assert_allclose(cold.ability([0.5])["mean"], warm.ability([0.5])["mean"], atol=1e-6)
    assert_allclose(cold.person_evidence, warm.person_evidence, atol=1e-6)


def test_a_dask_cluster_gives_the_same_answer_though_a_worker_dies(tmp_path):
    distributed = pytest.importorskip("distributed")
    shards = dy.prepare(shuffled_classroom(120), tmp_path / "shards", shards=6)
    local = dy.DynAEsti("2PL", iterations=ITERATIONS).fit(shards, out=tmp_path / "local")
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
          distributed.Client(cluster) as client):  # fmt: skip
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


def test_simulated_shards_recover_their_truth(tmp_path):
    shards, items = simulate_shards(tmp_path / "s", 400, 30, (5, 120), shards=3, seed=2)
    again, _ = simulate_shards(tmp_path / "t", 400, 30, (5, 120), shards=3, seed=2)
    assert shards.rows == again.rows
    counts = np.concatenate([np.bincount(shards.responses(k).person) for k in range(3)])
    assert counts.min() >= 5
    assert counts.max() <= 120
    fit = dy.DynAEsti("2PL").fit(shards, out=tmp_path / "run")
    b = fit.items.set_index("item").loc[list(items["item"]), "b"].to_numpy()
    assert np.corrcoef(b, items["b"])[0, 1] > 0.98
    folder = fit.write_abilities()
    told = pd.concat([pd.read_parquet(f"{folder}/shard-{k:05d}.parquet") for k in range(3)])
    truth = pd.concat(
        [pd.read_parquet(tmp_path / "s" / "truth" / f"shard-{k:05d}.parquet") for k in range(3)]
    )
    both = told.merge(truth, on=["id", "time"])
    assert len(both) == len(told)
    assert told.groupby("id").size().max() <= 12
    assert np.corrcoef(both["mean"], both["ability"])[0, 1] > 0.75
    assert 0.6 < both.eval("lower < ability and ability < upper").mean() < 0.8


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
    asked = grown.ability([0.2, 0.9], told["id"].unique().tolist(), level=0.5)
    assert_allclose(told[["mean", "lower", "upper"]], asked[["mean", "lower", "upper"]], atol=1e-6)
    again = dy.refit_items(grown, iterations=3)
    told = pd.read_parquet(f"{folder}/shard-{1 - held:05d}.parquet")
    assert_allclose(
        told["mean"], again.ability([0.2, 0.9], told["id"].unique().tolist())["mean"], atol=1e-6
    )


def test_empty_files_among_others_are_passed_over(tmp_path):
    table = shuffled_classroom(20)
    for k, part in enumerate((table.iloc[:100], table.iloc[100:])):
        part.to_csv(tmp_path / f"{k}.csv", index=False)
    (tmp_path / "2.csv").touch()
    shards = dy.prepare(str(tmp_path / "*.csv"), tmp_path / "s", shards=2)
    assert shards.rows == len(table)
    assert "1 of 3 files are empty" in " ".join(shards.notes)
    assert "1 of 3 files are empty" in " ".join(dy.Responses.read(str(tmp_path / "*.csv")).notes)
    table.drop(columns="date").assign(extra=1).to_csv(tmp_path / "3.csv", index=False)
    with pytest.raises(dy.ResponseError, match="it lacks date; it has also extra"):
        dy.prepare(str(tmp_path / "*.csv"), tmp_path / "t")


def test_shards_on_the_command_line(tmp_path, capsys):
    table = shuffled_classroom(80).sort_values("date")
    table.iloc[:-50].to_csv(tmp_path / "a.csv", index=False)
    table.iloc[-50:].to_csv(tmp_path / "b.csv", index=False)
    run, shards = str(tmp_path / "run"), str(tmp_path / "shards")
    assert (
        main(["prepare", str(tmp_path / "a.csv"), "--out", shards, "--shards", "3", "--json"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["answers"] == len(table) - 50
    assert main(["fit", shards, "--out", run, "--quiet", "--json", "--iterations", "30"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["people"] == 80
    for command in (
        ["items", run],
        ["ability", run, "--id", "p003", "--grid", "3"],
        ["predict", run, str(tmp_path / "b.csv")],
        ["score", run, str(tmp_path / "b.csv")],
        ["ability", run, "--now"],
    ):
        assert main([*command, "--json"]) == 0, command
    assert main(["evaluate", shards, "--json"]) == 0
    assert "shard 1 of 3 stands for all" in capsys.readouterr().err
    assert main(["validate", shards]) in (0, 1)
    assert main(["ability", run, "--id", "nobody"]) == 3
    assert "there are 80 people in 3 shards" in capsys.readouterr().err
    assert main(["items", run, "--fit"]) == 3
    assert "fit of shards" in capsys.readouterr().err
    assert main(["update", run, str(tmp_path / "b.csv"), "--refit-items", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["refitted"] is True
    assert main(["report", run]) == 0
    assert "f 3 shards with" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert main(["fit", shards, "--out", run]) == 3
    assert (
        main(
            [
                "simulate",
                "--people",
                "60",
                "--items",
                "10",
                "--answers-per-person",
                "5:30",
                "--shards",
                "2",
                "--out",
                str(tmp_path / "sim"),
                "--json",
            ]
        )
        == 0
    )
    assert (
        main(["fit", str(tmp_path / "a.csv"), "--dask", "local:2", "--out", str(tmp_path / "x")])
        == 3
    )


def test_census_and_answers_of_parts_join_to_the_whole():
    _, _, _, answers = parts(shuffled_classroom(30))
    cut = [answers.take(np.arange(a, b)) for a, b in ((0, 7), (7, 8), (8, 30))]
    joined = SiteLayout.joined(cut)
    for name in (
        "times",
        "site_start",
        "factor_start",
        "factor_row",
        "factor_weight",
        "factor_response",
        "constant",
    ):
        assert_allclose(getattr(joined, name), getattr(answers, name), err_msg=name)
    person_summary = PersonSummary.joined([part.person_summary for part in cut])
    assert_allclose(person_summary.sample(60), answers.person_summary.sample(60))
    back = PersonSummary.joined([part.person_summary for part in cut[::-1]])
    order = np.concatenate([np.arange(8, 30), [7], np.arange(7)])
    assert set(order[back.sample(60)]) == set(answers.person_summary.sample(60))


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
