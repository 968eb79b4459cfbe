"""What can be asked: people, curves, moves, next items, predictions, everyone, events."""

import json
import threading

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.tables import as_frame
from support.service import answer, post, replayed, service
from support.simulated import EVIL, ODD

HOSTILE = [
    EVIL,
    ODD,
    "'; DROP TABLE dynaesti_answers; --",
    "../../etc/passwd",
    "a/b",
    "100%_x",
    "{id}",
    "\u202eevil",
    "नमस्ते 🎈",
    "x" * 200,
]


@pytest.fixture(scope="module")
def sent():
    rng = np.random.default_rng(3)
    return [
        answer("ada", f"i{rng.integers(8)}", int(rng.integers(2)), 60.0 + k, f"k{k:02d}")
        for k in range(12)
    ]


@pytest.fixture(scope="module")
def client(tmp_path_factory, scorer, sent):
    run = scorer.save(tmp_path_factory.mktemp("run") / "run.dynscore")
    with service(run) as found:
        post(found, *sent)
        post(found, answer("ben", "i1", 0, 65.0, "1"))
        yield found


def test_the_curve_and_what_moved_it(client, scorer, sent):
    found = client.get("/people/ada", params={"points": 5, "moves": 3}).json()
    assert [point["time"] for point in found["curve"]] == [67.0, 68.0, 69.0, 70.0, 71.0]
    assert [move["key"] for move in found["moved"]] == ["k11", "k10", "k09"]
    state = replayed(scorer, sent[:11])
    last = found["moved"][0]
    chance = as_frame(scorer.predict(state, [sent[11]["item"]], 71.0)).to_dict()
    assert last["expected"] == pytest.approx(chance["expected"][0], abs=1e-10)
    assert last["before"] == pytest.approx(scorer.ability(state, 71.0).mean, abs=1e-10)
    assert last["after"] == pytest.approx(found["mean"], abs=1e-10)
    assert last["change"] == pytest.approx(last["after"] - last["before"])
    early = replayed(scorer, sent[:8])
    assert found["curve"][0]["mean"] == pytest.approx(scorer.ability(early).mean, abs=1e-10)
    bare = client.get("/people/ada", params={"points": 0, "moves": 0}).json()
    assert (bare["curve"], bare["moved"]) == ([], [])


def test_later_without_answers(client, scorer, sent):
    later = client.get("/people/ada", params={"at": 90}).json()
    assert later["sd"] == pytest.approx(scorer.ability(replayed(scorer, sent), 90.0).sd, abs=1e-10)
    before = client.get("/people/ada", params={"at": 10})
    assert before.status_code == 422
    assert "before the state's last answer" in before.json()["detail"]


def test_next_items_for_known_people_and_newcomers(client, scorer, sent):
    state = replayed(scorer, sent)
    best = as_frame(scorer.next_item(state, 72.0, count=3)).to_dict()["item"]
    found = client.get("/people/ada/next", params={"at": 72.0, "count": 3}).json()
    assert [one["item"] for one in found["items"]] == list(best)
    new = client.get("/people/newcomer/next", params={"at": 72.0}).json()
    first = as_frame(scorer.next_item(scorer.start(), 72.0)).to_dict()["item"]
    assert [one["item"] for one in new["items"]] == list(first)
    met = {one["item"] for one in sent}
    fresh = client.get("/people/ada/next", params={"count": 8, "unseen": True}).json()["items"]
    assert {one["item"] for one in fresh} == {f"i{k}" for k in range(8)} - met
    rest = client.get("/people/ada/next", params={"count": 8, "exclude": ["i1", "i2"]}).json()
    assert not {"i1", "i2"} & {one["item"] for one in rest["items"]}
    assert client.get("/people/ada/next", params={"stop": 5}).json()["items"] == []
    assert client.get("/people/ada/next", params={"exclude": "nope"}).status_code == 422


def test_predictions(client, scorer, sent):
    found = client.post("/predict", json={"id": "ada", "items": ["i1", "i3"], "time": 75}).json()
    wanted = as_frame(scorer.predict(replayed(scorer, sent), ["i1", "i3"], 75.0)).to_dict()
    for k, one in enumerate(found["items"]):
        assert one["expected"] == pytest.approx(wanted["expected"][k], abs=1e-10)
        assert one["probabilities"][1] == pytest.approx(wanted["p1"][k], abs=1e-10)
    for wrong, word in (
        ({"id": "ada", "items": ["nope"]}, "nope"),
        ({"id": "nobody", "items": ["i1"]}, "time"),
        ({"id": "ada", "items": []}, "items"),
        ({"id": "ada", "items": ["i1"], "time": 5}, "before"),
    ):
        told = client.post("/predict", json=wrong)
        assert told.status_code == 422
        assert word in told.json()["detail"]


def test_items_and_everyone(client, scorer, fit):
    found = client.get("/items").json()
    assert found["total"] == 8
    table = as_frame(fit.items).to_dict()
    one = found["items"][2]
    assert (one["item"], one["model"], one["drift"]) == ("i2", "2PL", None)
    assert one["parameters"]["b"] == pytest.approx(table["b"][2])
    assert client.get("/items", params={"search": "I3", "limit": 1}).json()["total"] == 1
    everyone = client.get("/cohort").json()
    assert (everyone["people"], everyone["answers"], everyone["time"]) == (2, 13, 71.0)
    assert sum(one["people"] for one in everyone["bins"]) == 2
    last = scorer.ability(scorer.start(), 71.0)
    assert everyone["curve"][-1]["mean"] == pytest.approx(last.mean, abs=1e-10)


def test_names_are_text_whatever_they_look_like(small_run):
    with service(small_run) as client:
        post(client, *(answer(name, "i1", 1, 60.0, "k") for name in HOSTILE))
        assert client.get("/people").json()["total"] == len(HOSTILE)
        for name in HOSTILE:
            path = "/people/" + "".join(f"%{byte:02X}" for byte in name.encode())
            assert client.get(path).json()["id"] == name
            found = client.get("/people", params={"search": name[:20]}).json()["people"]
            assert [one["id"] for one in found] == [name]
        assert client.get("/people", params={"search": "\0"}).json()["total"] == 0
        one = answer("zero\0", "i1", 1, 60.0)
        assert client.post("/answers", json={"answers": [one]}).status_code == 422
        lone = b'{"answers": [{"id": "\\ud800", "item": "i1", "resp": 1, "time": 60}]}'
        sent = client.post("/answers", content=lone, headers={"Content-Type": "application/json"})
        assert sent.status_code == 422


def test_lists_are_sorted_and_cut(client):
    names = [one["id"] for one in client.get("/people", params={"sort": "-id"}).json()["people"]]
    assert names == ["ben", "ada"]
    part = client.get("/people", params={"limit": 1, "offset": 1, "points": 3}).json()
    assert part["total"] == 2
    assert [len(one["curve"]) for one in part["people"]] == [1]
    by_mean = client.get("/people", params={"sort": "mean"}).json()["people"]
    assert by_mean[0]["mean"] <= by_mean[1]["mean"]
    assert client.get("/people", params={"sort": "state"}).status_code == 422


def test_events_tell_what_became_durable(small_run):
    with service(small_run) as client:
        heard = []
        ready, done = threading.Event(), threading.Event()

        def listen():
            with client.stream("GET", "/events", params={"id": "ada"}) as stream:
                for line in stream.iter_lines():
                    ready.set()
                    heard.append(line)
                    if sum(one.startswith("data:") for one in heard) == 2:
                        break
            done.set()

        thread = threading.Thread(target=listen)
        thread.start()
        assert ready.wait(10)
        one = answer("ada", "i1", 1, 60.0, "a")
        post(client, one, answer("ben", "i1", 1, 60.0, "a"))
        post(client, one)  # a repeat makes no event
        post(client, answer("ada", "i2", 0, 61.0, "b"))
        assert done.wait(10)
        thread.join()
        told = [json.loads(line[5:]) for line in heard if line.startswith("data:")]
        assert [(t["id"], t["item"], t["answers"]) for t in told] == [
            ("ada", "i1", 1),
            ("ada", "i2", 2),
        ]
        assert told[0]["before"] is None
        assert told[1]["change"] == pytest.approx(told[1]["mean"] - told[0]["mean"])
        now = client.get("/people/ada").json()
        assert told[1]["mean"] == pytest.approx(now["mean"], abs=1e-12)


def test_health_figures_and_the_page(client):
    assert client.get("/health").json()["status"] == "ok"
    figures = client.get("/metrics").text
    assert 'dynaesti_answers_total{result="new"} 13.0' in figures
    assert "ada" not in figures
    page = client.get("/")
    assert "<html" in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/nothing").status_code == 404
    assert set(client.get("/openapi.json").json()["paths"]) >= {"/answers", "/people/{id}"}


def test_a_run_that_cannot_be_served_is_refused(tmp_path):
    curve = dy.CurvFiFE(bandwidth=2.0).fit([0, 1, 2], dy.Bernoulli([0, 1, 1]))
    with pytest.raises(dy.StorageError, match="curve"), service(curve.save(tmp_path / "c.dyn")):
        pass
