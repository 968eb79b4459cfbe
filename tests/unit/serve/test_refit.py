"""Refits: the old items hold the scale, new ones join, and the scorer is swapped at once."""

import json
import threading
import time

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.serve import open_database, refit_log
from dynaesti.serve import refit as refit_module
from dynaesti.serve.scorers import current_number
from support.service import answer, assert_same_ability, post, service

FIRST, NEW = 40.0, "i7"  # what the first fit has seen: the days before, and not this item


@pytest.fixture(scope="module")
def drawn():
    return dy.simulate.responses(people=60, items=8, per_person=25, span=80.0, seed=4)


@pytest.fixture(scope="module")
def early(drawn):
    table = {name: np.array(values) for name, values in drawn.table.items()}
    kept = (table["date"] < FIRST) & (table["item"] != NEW)
    return dy.DynAEsti("2PL").fit({name: values[kept] for name, values in table.items()})


@pytest.fixture(scope="module")
def later(drawn):
    t = drawn.table
    rows = zip(t["id"], t["item"], t["resp"], t["date"], strict=True)
    return [
        answer(str(who), str(item), int(resp), float(date), f"k{k}")
        for k, (who, item, resp, date) in enumerate(rows)
        if date >= FIRST or item == NEW
    ]


def parameters(client):
    return {one["item"]: one["parameters"] for one in client.get("/items").json()["items"]}


def settled(client):
    """The list of people, once states of the fit's people are made."""
    end = time.monotonic() + 20
    while True:
        found = client.get("/people", params={"limit": 200}).json()
        if all(one["mean"] is not None for one in found["people"]):
            return found
        assert time.monotonic() < end
        time.sleep(0.05)


def until_scorer(client, number):
    end = time.monotonic() + 20
    while client.get("/health").json()["scorer"] != number:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_new_items_join_while_requests_go_on(early, later, drawn, tmp_path, capsys):
    run = early.save(tmp_path / "run.dyn")
    with service(run, unknown_items="queue") as client:
        half = len(later) // 2
        post(client, *later[:half])
        before = parameters(client)
        codes = []
        done = threading.Event()

        def go_on():
            for one in later[half:]:
                codes.append(client.post("/answers", json={"answers": [one]}).status_code)
                codes.append(client.get(f"/people/{one['id']}").status_code)
                if done.is_set():
                    time.sleep(0.002)

        thread = threading.Thread(target=go_on)
        thread.start()
        assert main(["refit", str(run), "--quiet", "--json"]) == 0
        done.set()
        report = json.loads(capsys.readouterr().out)
        thread.join()
        until_scorer(client, 2)
        assert set(codes) == {200}
        assert report["new_items"] == [NEW]
        assert report["scale_shift"] <= 1e-9
        after = parameters(client)
        assert after.keys() - before.keys() == {NEW}
        for item, values in before.items():
            assert after[item] == pytest.approx(values, abs=1e-9)
        truth = dict(zip(drawn.items["item"], drawn.items["b"], strict=True))[NEW]
        assert abs(after[NEW]["b"] - truth) < 0.6
        scorer = client.app.state.service.served.scorer
        for who in ("p01", "p33"):
            with client.app.state.service.database.reading() as tx:
                rows = tx.logs([who])[who]
            state = scorer.start()
            for row in rows:
                state = scorer.add(state, row.time, row.item, row.resp)
            assert_same_ability(client.get(f"/people/{who}").json(), scorer, state)
        drift = client.get("/items").json()["items"][0]["drift"]
        assert drift["flagged"] in (True, False)


def test_a_scorer_without_people_keeps_items_that_nobody_met(early, later, tmp_path):
    run = early.scorer().save(tmp_path / "run.dynscore")
    database = open_database(f"sqlite:///{tmp_path}/run.answers.db")
    with service(run, unknown_items="queue") as client:
        before = parameters(client)
        post(client, *(one for one in later if one["item"] not in ("i0", "i1")))
        report = refit_log(database, str(run))
        until_scorer(client, 2)
        assert report.new_items == [NEW]
        after = parameters(client)
        for item, values in before.items():
            assert after[item] == pytest.approx(values, abs=1e-9)
        assert refit_log(database, str(run)).scorer == 3  # and again, from the anchored scale
    database.close()


def test_items_with_few_answers_wait(early, later, tmp_path):
    run = early.save(tmp_path / "run.dyn")
    with service(run, unknown_items="queue") as client:
        post(client, *[one for one in later if one["item"] == NEW][:10])
        database = open_database(f"sqlite:///{tmp_path}/run.answers.db")
        report = refit_log(database, str(run))
        database.close()
        assert (report.new_items, report.waiting) == ([], [NEW])
        assert client.get("/items").json()["queued"] == [{"item": NEW, "answers": 10}]


def test_a_drifting_item_is_an_alarm(tmp_path, capsys):
    drawn = dy.simulate.responses(people=150, items=8, per_person=30, span=80.0, seed=6)
    table = {name: np.array(values) for name, values in drawn.table.items()}
    kept = table["date"] < 40.0
    fit = dy.DynAEsti("2PL").fit({name: values[kept] for name, values in table.items()})
    run = fit.save(tmp_path / "run.dyn")
    rows = zip(*(table[name] for name in ("id", "item", "resp", "date")), strict=True)
    sent = [
        answer(str(i), str(q), 1 if q == "i3" else int(y), float(t), f"k{k}")
        for k, (i, q, y, t) in enumerate(rows)
        if t >= 40.0
    ]
    with service(run) as client:
        post(client, *sent)
    assert main(["refit", str(run), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert "ALARM" in said
    assert "i3: it became easier" in said


@pytest.mark.parametrize("where", ["anchored_fit", "_prepare", "add_scorer"])
def test_a_failed_refit_changes_nothing(where, early, later, tmp_path, monkeypatch):
    run = early.save(tmp_path / "run.dyn")
    address = f"sqlite:///{tmp_path}/run.answers.db"
    with service(run, unknown_items="queue") as client:
        post(client, *later[:200])
        people = settled(client)
        items = parameters(client)
        whole = getattr(refit_module, where)

        def fails(*given, **more):
            if where == "_prepare":
                whole(*given, **more)
            raise dy.InputError("the disk is full")

        monkeypatch.setattr(refit_module, where, fails)
        database = open_database(address)
        with pytest.raises(dy.InputError, match="disk is full"):
            refit_log(database, str(run))
        with database.reading() as tx:
            assert current_number(tx) == 1
            assert tx.rows("SELECT COUNT(*) FROM dynaesti_prepared")[0][0] == 0
        database.close()
        client.app.state.service._notice_changes()
        assert client.get("/people", params={"limit": 200}).json() == people
        assert parameters(client) == items


def test_nothing_to_fit(early, tmp_path, capsys):
    run = early.scorer().save(tmp_path / "run.dynscore")
    assert main(["refit", str(run), "--quiet"]) == 3
    assert "no answers" in capsys.readouterr().err


def test_refits_side_by_side_leave_the_states_of_one(early, later, tmp_path, monkeypatch):
    """The one that swaps first is served, with its own states; the other one says so and goes."""
    run = early.save(tmp_path / "run.dyn")
    address = f"sqlite:///{tmp_path / 'answers.db'}"
    with service(run, address, unknown_items="queue") as client:
        post(client, *later[:60])
        database, other = open_database(address), open_database(address)
        prepare = refit_module._prepare

        def meanwhile(*given):
            found = prepare(*given)
            monkeypatch.setattr(refit_module, "_prepare", prepare)
            post(client, *later[60:120])
            refit_log(other, str(run))
            return found

        monkeypatch.setattr(refit_module, "_prepare", meanwhile)
        with pytest.raises(dy.InputError, match="another refit came first"):
            refit_log(database, str(run))
        until_scorer(client, 2)
        settled(client)
        for who in {one["id"] for one in later[:120]}:
            whole = client.get(f"/people/{who}", params={"points": 1}).json()
            kept = client.get(f"/people/{who}", params={"points": 0, "moves": 0}).json()
            assert abs(whole["mean"] - kept["mean"]) < 1e-10
        with database.reading() as tx:
            assert {row[0] for row in tx.rows("SELECT scorer FROM dynaesti_prepared")} <= {2}
        database.close()
        other.close()


def test_an_answer_of_a_wrong_clock_does_not_stop_refits(early, later, tmp_path, capsys):
    run = early.save(tmp_path / "run.dyn")
    address = f"sqlite:///{tmp_path / 'answers.db'}"
    with service(run, address, unknown_items="queue") as client:
        post(client, *later[:80], answer("p01", "i1", 1, -20000.0, "clock"))
    assert main(["refit", str(run), "--db", address, "--quiet"]) == 0
    assert "far in time from all others: 1 answer (first: p01, i1" in capsys.readouterr().out
    assert main(["refit", str(run), "--db", f"sqlite:///{tmp_path}/typo.db", "--quiet"]) == 4
    assert not (tmp_path / "typo.db").exists()
