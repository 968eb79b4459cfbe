"""Who may ask, how much, and what is told of it."""

import json
import socket

import pytest

import dynaesti as dy
from dynaesti.cli.dispatch import main
from dynaesti.serve import Limits, Settings, make_key, open_database, revoke_key, run_server
from dynaesti.serve.run import is_loopback
from support.service import answer, post, service


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def test_keys_open_what_their_roles_say(small_run, tmp_path):
    address = f"sqlite:///{tmp_path}/keys.db"
    database = open_database(address)
    keys = {role: make_key(database, role, [role]) for role in ("read", "write", "admin")}
    with pytest.raises(dy.InputError, match="already"):
        make_key(database, "read", ["read"])
    assert keys["read"].encode() not in (tmp_path / "keys.db").read_bytes()
    body = {"answers": [answer("ada", "i1", 1, 60.0, "k")]}
    with service(small_run, address) as client:
        for role, codes in (
            ("write", (200, 403, 403)),
            ("read", (403, 200, 200)),
            ("admin", (200, 200, 200)),
        ):
            asked = (
                client.post("/answers", json=body, headers=bearer(keys[role])),
                client.get("/people/ada", headers=bearer(keys[role])),
                client.get("/metrics", headers=bearer(keys[role])),
            )
            assert tuple(one.status_code for one in asked) == codes
        for headers in ({}, bearer("dyn_wrong"), {"Authorization": "Basic eDp5"}):
            for path in ("/people", "/people/ada", "/events", "/items", "/cohort", "/metrics"):
                assert client.get(path, headers=headers).status_code == 401
            assert client.post("/answers", json=body, headers=headers).status_code == 401
            assert client.post("/predict", json={}, headers=headers).status_code == 401
        assert client.get("/health").status_code == 200
        revoke_key(database, "read")
        client.app.state.service._notice_changes()
        assert client.get("/people", headers=bearer(keys["read"])).status_code == 401
    with pytest.raises(dy.InputError, match="no key"):
        revoke_key(database, "read")
    database.close()


def test_without_keys_only_this_machine_may_ask(small_run):
    with service(small_run) as client:
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Host": ""}):
            assert client.get("/people", headers=headers).status_code in (400, 403)
        assert client.get("/people", headers={"Host": "localhost:1"}).status_code == 200
        assert client.get("/people", headers={"Origin": "http://localhost:1"}).status_code == 200
    with service(small_run, open_to_all=True) as client:  # an application that knows its users
        assert client.get("/people", headers={"Host": "school.example"}).status_code == 200
    with service(small_run, open_to_all=False) as client:
        assert client.get("/people").status_code == 401


def told(client, *pieces):
    """What a server says to raw bytes, which are sent as long as it takes them."""
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=10) as one:
        sent = 0
        try:
            for piece in pieces:
                one.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        try:
            found = one.recv(1000)
        except OSError:
            found = b""
    return found, sent


def test_large_bodies_are_refused_before_they_are_read(small_run):
    head = b"POST /answers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    piece = b"186A0\r\n" + b" " * 100_000 + b"\r\n"
    with service(small_run) as client:
        found, _ = told(client, head + b"Content-Length: 100000000\r\n\r\n")
        assert b" 413 " in found
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
        found, sent = told(client, chunked, *[piece] * 1000)
        assert b" 413 " in found or not found
        assert sent < 90_000_000
        assert client.get("/health").status_code == 200
        many = [answer("ada", "i1", 1, 60.0)] * 10_001
        assert client.post("/answers", json={"answers": many}).status_code == 422
        post(client, answer("ada", "i1", 1, 60.0))


def test_too_many_requests_are_refused(small_run):
    with service(small_run, limits=Limits(rate=5.0)) as client:
        codes = [client.get("/health").status_code for _ in range(30)]
        assert codes[0] == 200
        assert 429 in codes


def test_refusals_repeat_no_data(small_run, caplog):
    with service(small_run) as client:
        for body in (
            {"answers": [{"id": "secret-ada", "item": "i1", "resp": "secret", "time": 1}]},
            {"answers": [{"id": "secret-ada", "item": "i1", "resp": 9, "time": 60.0}]},
            {"answers": [{"id": "secret-ada", "item": "i1", "resp": 1, "time": "secret"}]},
            {"answers": [{"id": ["secret"], "item": {}, "resp": [], "time": None, "x": 1}]},
            {"answers": "secret"},
            ["secret"],
        ):
            found = client.post("/answers", json=body)
            assert found.status_code == 422
            assert "secret" not in found.text
        for raw in (b"", b"{", b"secret", b"\xff\xfe", b"[" * 100_000):
            found = client.post(
                "/answers", content=raw, headers={"Content-Type": "application/json"}
            )
            assert found.status_code in (400, 422)
            assert "secret" not in found.text
    assert "secret" not in caplog.text


def test_a_fault_is_told_without_data(small_run, caplog, monkeypatch):
    with service(small_run) as client:
        inner = client.app.state.service
        monkeypatch.setattr(inner, "_serving", (None, {}))
        found = client.get("/items")
        assert found.status_code == 500
        assert "fault" in found.json()["detail"]
    assert "AttributeError" in caplog.text
    assert "Traceback" not in caplog.text


def test_what_may_be_bound(small_run, tmp_path):
    def settings(**more):
        return Settings(str(small_run), f"sqlite:///{tmp_path}/a.db", **{"port": 0, **more})

    def never(url, database):
        raise AssertionError(url)

    with pytest.raises(dy.InputError, match="no keys were made"):
        run_server(settings(host="0.0.0.0"), never)
    with pytest.raises(dy.InputError, match="one writer"):
        run_server(settings(workers=2), never)
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("school.example")


def test_the_verb_makes_lists_and_revokes(small_run, capsys):
    def said(*words):
        assert main(["keys", str(small_run), *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    made = said("--make", "lms", "--role", "write", "read")
    assert made["key"].startswith("dyn_")
    assert said()["rows"][0] | {"made": ""} == {"name": "lms", "roles": "write read", "made": ""}
    assert said("--revoke", "lms") == {"revoked": "lms"}
    assert said()["rows"] == []
    assert main(["keys", str(small_run), "--revoke", "lms"]) == 3
    assert main(["keys", str(small_run), "--db", "mysql://x"]) == 3
    assert "--db" in capsys.readouterr().err


def test_a_service_that_had_keys_stays_closed(small_run, tmp_path):
    address = f"sqlite:///{tmp_path}/a.db"
    database = open_database(address)
    make_key(database, "solo", ["read"])
    revoke_key(database, "solo")
    database.close()
    with service(small_run, address) as client:
        assert client.get("/people").status_code == 401


def test_invented_keys_have_no_rate_of_their_own(small_run):
    with service(small_run, limits=Limits(rate=5)) as client:
        codes = [
            client.get("/items", headers={"Authorization": f"Bearer {k}"}).status_code
            for k in range(40)
        ]
    assert codes.count(429) > 10
