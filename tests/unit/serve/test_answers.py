"""Answers in, states out: what is kept, what counts once, and what equals a replay."""

import random
import sqlite3

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.serve import snapshots
from support.service import answer, assert_same_ability, post, replayed, service


def drawn(people, n, seed):
    """Answers of people in a shuffled order, some of one instant, some posted twice."""
    rng = random.Random(seed)
    out = [
        answer(
            f"s{rng.randrange(people)}",
            f"i{rng.randrange(8)}",
            rng.randrange(2),
            60.0 + rng.randrange(40) / 2,
            f"k{k}",
        )
        for k in range(n)
    ]
    return out + rng.sample(out, n // 5)


def test_any_order_and_any_batches_give_the_replayed_states(small_run, scorer):
    sent = drawn(6, 150, 1)
    with service(small_run) as client:
        new = 0
        rng = random.Random(2)
        left = list(sent)
        while left:
            size = rng.choice([1, 1, 2, 7, 30])
            new += post(client, *left[:size])["new"]
            left = left[size:]
        assert new == 150
        for k in range(6):
            mine = [one for one in sent if one["id"] == f"s{k}"]
            assert_same_ability(client.get(f"/people/s{k}").json(), scorer, replayed(scorer, mine))
            row = client.get(f"/people/s{k}", params={"points": 0, "moves": 0}).json()
            assert_same_ability(row, scorer, replayed(scorer, mine))


def test_late_answers_are_put_in_place_from_a_snapshot(small_run, scorer, monkeypatch):
    """Late ones, and later ones that make a snapshot worthless, among answers of unknown items."""
    monkeypatch.setattr(snapshots, "APART", 3)
    inner, used = snapshots.Snapshots.find, []

    def find(self, *arguments):
        used.append(inner(self, *arguments))
        return used[-1]

    monkeypatch.setattr(snapshots.Snapshots, "find", find)
    draw = random.Random(5)
    sent = []
    with service(small_run, unknown_items="queue") as client:
        for k in range(80):
            back = draw.choice([0, 0, 0, 2, 6, 30])
            item = "new" if k > 60 and draw.random() < 0.3 else f"i{draw.randrange(8)}"
            sent.append(answer("ada", item, draw.randrange(2), 60.0 + k - back, f"k{k:02d}"))
            post(client, sent[-1])
            known = [one for one in sent if one["item"] != "new"]
            row = client.get("/people/ada", params={"points": 0, "moves": 0}).json()
            if known:
                assert_same_ability(row, scorer, replayed(scorer, known))
    assert sum(one is not None for one in used) > 5
    assert sum(one is None for one in used) > 2


def test_a_key_counts_once_for_a_person(small_run):
    one = answer("ada", "i1", 1, 60.0, "k")
    with service(small_run) as client:
        assert post(client, one, one, one) == {"new": 1, "repeated": 2, "queued": 0}
        assert post(client, {**one, "resp": 0, "time": 61.0})["new"] == 0
        assert post(client, {**one, "id": "ben"})["new"] == 1
        assert client.get("/people/ada").json()["answers"] == 1
        two = [answer("eve", "i1", 1, 60.0) for _ in range(2)]  # no keys: both count
        assert post(client, *two)["new"] == 2
        assert client.get("/people/eve").json()["answers"] == 2


def test_answers_outlive_the_service_and_lost_states_are_rebuilt(small_run, scorer, tmp_path):
    sent = drawn(3, 40, 3)
    address = f"sqlite:///{tmp_path}/log.db"
    with service(small_run, address) as client:
        post(client, *sent)
    for spoil in ("state = NULL", "state = x'00ff'", "state = NULL, scorer = 0"):
        with sqlite3.connect(tmp_path / "log.db") as connection:
            connection.execute(f"UPDATE dynaesti_people SET {spoil}")
        connection.close()
        with service(small_run, address) as client:
            assert post(client, *sent)["new"] == 0
            last = answer("s0", "i2", 1, 90.0, f"after {spoil}")
            sent.append(last)
            post(client, last)
            for k in range(3):
                mine = [one for one in sent if one["id"] == f"s{k}"]
                found = client.get(f"/people/s{k}").json()
                assert_same_ability(found, scorer, replayed(scorer, mine))


def test_states_of_another_scorer_are_made_anew(small_run, tmp_path):
    sent = drawn(3, 40, 4)
    address = f"sqlite:///{tmp_path}/log.db"
    with service(small_run, address) as client:
        post(client, *sent)
    other = dy.DynAEsti("1PL").fit(
        dy.simulate.responses(people=20, items=8, per_person=9, seed=8).table
    )
    file = other.scorer().save(tmp_path / "other.dynscore")
    with service(file, address) as client:
        assert client.get("/health").json()["scorer"] == 2
        for k in range(3):
            mine = [one for one in sent if one["id"] == f"s{k}"]
            state = replayed(other.scorer(), mine)
            assert_same_ability(client.get(f"/people/s{k}").json(), other.scorer(), state)
    with service(small_run, address) as client:  # known: what came later stays
        assert client.get("/health").json()["scorer"] == 2


def test_people_of_the_fit_go_on_from_their_answers(whole_run, fit, scorer):
    who = fit.ids[3]
    state = fit.state(who)
    with service(whole_run) as client:
        assert_same_ability(client.get(f"/people/{who}").json(), scorer, state)
        assert client.get("/people").json()["total"] == 25
        post(client, answer(who, "i2", 1, 70.0, "a"))
        state = scorer.add(state, 70.0, "i2", 1)
        assert_same_ability(client.get(f"/people/{who}").json(), scorer, state)
    with service(whole_run) as client:  # the fit's answers are not added again
        assert_same_ability(client.get(f"/people/{who}").json(), scorer, state)


def test_a_late_answer_goes_among_those_of_the_fit(whole_run, fit, scorer):
    own = fit.responses.select_people(np.array([3]))
    labels = own.items.tolist()
    times = own.axis.restore(own.offsets).tolist()
    known = [
        answer("", labels[k], resp, time, f" {n:04d}")
        for n, (k, resp, time) in enumerate(
            zip(own.item.tolist(), own.resp.tolist(), times, strict=True)
        )
    ]
    late = answer(fit.ids[3], "i2", 1, 0.5 * (times[2] + times[3]), "a")
    with service(whole_run) as client:
        post(client, late)
        found = client.get(f"/people/{fit.ids[3]}").json()
    assert_same_ability(found, scorer, replayed(scorer, [*known, late]))


def test_a_request_is_kept_whole_or_not_at_all(small_run):
    good = answer("ada", "i1", 1, 60.0, "a")
    with service(small_run) as client:
        for bad, word in (
            (answer("ada", "nope", 1, 60.0), "does not know"),
            (answer("ada", "i1", 7, 60.0), "resp"),
            (answer("ada", "i1", 1, "soon"), "time"),
            (answer("ada", "i1", 1, "2024-01-01"), "time"),
        ):
            found = client.post("/answers", json={"answers": [good, bad]})
            assert found.status_code == 422
            assert found.json()["errors"][0]["answer"] == 1
            assert word in found.json()["detail"]
        assert client.get("/people/ada").status_code == 404


def test_unknown_items_can_be_queued(small_run, scorer):
    known = answer("ada", "i1", 1, 60.0, "a")
    with service(small_run, unknown_items="queue") as client:
        sent = post(client, known, answer("ada", "fresh", 1, 61.0, "b"))
        assert sent == {"new": 2, "repeated": 0, "queued": 1}
        assert client.get("/items").json()["queued"] == [{"item": "fresh", "answers": 1}]
        assert_same_ability(client.get("/people/ada").json(), scorer, replayed(scorer, [known]))
        post(client, answer("ben", "fresh", 1, 61.0, "b"))
        found = client.get("/people/ben").json()
        assert (found["answers"], found["curve"]) == (0, [])
    with (
        pytest.raises(dy.InputError, match="unknown_items"),
        service(small_run, unknown_items="drop"),
    ):
        pass


def test_timestamps_come_and_go_as_iso(tmp_path):
    table = dy.simulate.responses(people=20, items=6, per_person=10, seed=2).table
    start = [f"2024-03-{1 + int(t) % 28:02d}T{int(t * 7) % 24:02d}:30:00" for t in table["date"]]
    fit = dy.DynAEsti("2PL").fit({**table, "date": start})
    scorer = fit.scorer()
    run = fit.save(tmp_path / "run.dyn")
    sent = [
        answer("ada", "i1", 1, "2024-04-01T10:00:00.250000", "a"),
        answer("ada", "i2", 0, "2024-04-01", "b"),
    ]
    with service(run) as client:
        post(client, *sent)
        found = client.get("/people/ada", params={"at": "2024-04-02"}).json()
        state = replayed(scorer, [{**one, "time": one["time"]} for one in sent])
        assert abs(found["mean"] - scorer.ability(state, "2024-04-02").mean) < 1e-10
        assert found["time"] == "2024-04-01T10:00:00.250000"
        assert found["curve"][0]["time"] == "2024-04-01T00:00:00"
        assert client.get("/people/ada", params={"at": "x"}).status_code == 422
        for wrong in (5.0, "2024-13-01", "2024-04-01T10:00:00+02:00"):
            one = answer("ada", "i1", 1, wrong)
            assert client.post("/answers", json={"answers": [one]}).status_code == 422


def test_groups_and_effects_come_in_columns(tmp_path):
    table = dy.simulate.responses(people=60, items=6, per_person=10, seed=2).table
    table["school"] = ["east" if int(name[1:]) % 2 else "west" for name in table["id"]]
    table["hint"] = [float(k % 3 == 0) for k in range(len(table["id"]))]
    fit = dy.DynAEsti("2PL", groups="school", effects="hint + practice(item)").fit(table)
    scorer = fit.scorer()
    run = scorer.save(tmp_path / "run.dynscore")
    sent = [
        answer("ada", "i1", 1, 120.0, "a", school="east", hint=1.0),
        answer("ada", "i1", 0, 121.0, "b", hint=0.0, more="kept, and not used"),
    ]
    state = scorer.start(school="east")
    state = scorer.add(state, 120.0, "i1", 1, hint=1.0)
    state = scorer.add(state, 121.0, "i1", 0, hint=0.0)
    with service(run) as client:
        post(client, *sent)
        assert_same_ability(client.get("/people/ada").json(), scorer, state)
        bare = client.post("/answers", json={"answers": [answer("ada", "i1", 1, 122.0)]})
        assert bare.status_code == 422
        assert "'hint'" in bare.json()["detail"]
        question = {"id": "ada", "items": ["i2"], "columns": {"hint": 1.0}}
        told = client.post("/predict", json=question).json()["items"][0]
        expected = dy.tables.as_frame(scorer.predict(state, ["i2"], 121.0, hint=1.0))
        assert abs(told["expected"] - expected.to_dict()["expected"][0]) < 1e-10


def test_each_persons_own_clock(tmp_path):
    table = dy.simulate.responses(people=30, items=6, per_person=10, seed=2).table
    fit = dy.DynAEsti("2PL", clock="person").fit(table)
    scorer = fit.scorer()
    run = scorer.save(tmp_path / "run.dynscore")
    sent = [answer("ada", "i1", 1, 500.0, "a"), answer("ada", "i2", 0, 507.0, "b")]
    with service(run) as client:
        post(client, *sent)
        found = client.get("/people/ada", params={"at": 510.0}).json()
        state = replayed(scorer, sent)
        assert abs(found["mean"] - scorer.ability(state, 10.0).mean) < 1e-10
        assert found["time"] == 507.0
        assert len(found["moved"]) == 2


def test_misspelt_columns_are_refused_and_groups_may_come_later(tmp_path):
    table = dy.simulate.responses(people=60, items=6, per_person=10, seed=2).table
    table["school"] = ["east" if int(name[1:]) % 2 else "west" for name in table["id"]]
    scorer = dy.DynAEsti("2PL", groups="school").fit(table).scorer()
    run = scorer.save(tmp_path / "run.dynscore")
    state = scorer.start(school="west")
    state = scorer.add(state, 119.0, "i2", 1)
    state = scorer.add(state, 120.0, "i1", 1)
    with service(run) as client:
        wrong = client.post(
            "/answers", json={"answers": [answer("ada", "i1", 1, 120.0, "a", shcool="west")]}
        )
        assert wrong.status_code == 422
        assert "did you mean 'school'" in wrong.json()["detail"]
        post(client, answer("ada", "i1", 1, 120.0, "a"))  # of no known group yet
        post(client, answer("ada", "i2", 1, 119.0, "b", school="west"))  # and late
        assert_same_ability(client.get("/people/ada").json(), scorer, state)
        post(client, answer("bob", "i2", 1, 119.0, "b"))
        post(client, answer("bob", "i1", 1, 120.0, "a", school="west"))
        post(client, answer("eve", "i2", 1, 119.0, "b", school="west"))
        post(client, answer("eve", "i1", 1, 120.0, "a", school="east"))  # the earlier one decides
        for who in ("bob", "eve"):
            found = client.get(f"/people/{who}", params={"points": 0, "moves": 0}).json()
            assert_same_ability(found, scorer, state)


def test_only_new_answers_count_as_queued(small_run):
    unknown = answer("ada", "new", 1, 50.0, "a")
    with service(small_run, unknown_items="queue") as client:
        assert post(client, unknown) == {"new": 1, "repeated": 0, "queued": 1}
        both = post(client, unknown, answer("ada", "i1", 1, 51.0, "b"))
        assert both == {"new": 1, "repeated": 1, "queued": 0}


def test_answers_of_an_update_join_the_log(fit, tmp_path):
    run = tmp_path / "run.dyn"
    fit.save(run)
    with service(run) as client:
        before = client.get("/people/p03").json()["answers"]
    more = {"id": ["p03"] * 3, "item": ["i0", "i1", "i2"], "resp": [1, 1, 1]}
    updated = fit.update(more | {"date": [60.0, 61.0, 62.0]})
    updated.save(run)
    for _ in range(2):  # once, however often the service begins
        with service(run) as client:
            assert client.get("/people/p03").json()["answers"] == before + 3


def test_a_state_of_another_scorer_is_made_anew_not_taken_for_a_newcomers(small_run):
    with service(small_run) as client:
        post(client, answer("ada", "i1", 1, 50.0, "a"), answer("ada", "i2", 1, 51.0, "b"))
        question = {"id": "ada", "items": ["i3"], "time": 52.0}
        known = client.post("/predict", json=question).json()["items"]
        inner = client.app.state.service
        row = inner.database
        with row.transaction() as tx:
            tx.run("UPDATE dynaesti_people SET scorer = 77")  # as while a swap goes on
        with row.reading() as tx:
            from dynaesti.serve import questions

            stale = tx.people(["ada"])["ada"]
            state = questions.state_of(tx, inner.served, stale, {})
            again = questions.predictions(inner.served, state, ["i3"], 52.0, {})
        assert again == known
