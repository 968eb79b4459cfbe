"""A service under test: in a thread of this process, or as a program that can be killed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import uvicorn

from dynaesti.serve import create_app
from dynaesti.serve.run import _bound

SECONDS = 60  # to wait for a server


@contextmanager
def service(run, db=None, **options):
    """A client of a service in a thread; `client.app` is the application."""
    app = create_app(run, db, **options)
    bound = _bound("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{bound.getsockname()[1]}", timeout=SECONDS
        ) as client:
            client.app = app
            wait_for(client)
            yield client
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def wait_for(client):
    """Wait until a service answers."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            return client.get("/health").raise_for_status()
        except httpx.TransportError:
            assert time.monotonic() < end, "the service did not start"
            time.sleep(0.05)


class Program:
    """`dynaesti serve` as a process of its own."""

    def __init__(self, run, *words, port=0):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dynaesti", "serve", str(run), "--json", "--port", str(port)]
            + [str(word) for word in words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.told = json.loads(line)
        self.url = self.told["url"]
        self.port = int(self.url.rpartition(":")[2])
        with httpx.Client(base_url=self.url, timeout=SECONDS) as client:
            wait_for(client)

    def kill(self):
        """End it as a power cut would: kill −9."""
        self.process.kill()
        self._close()

    def end(self):
        """End it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        self._close()

    def _close(self):
        self.process.wait(SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()

    @property
    def cpu(self):
        """CPU seconds of the process and its children."""
        family = [self.process.pid, *_children(self.process.pid)]
        return sum(map(_cpu, family))


def _children(pid):
    out = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with open(f"/proc/{name}/stat") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                    out.append(int(name))
    return out


def _cpu(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answer(id, item, resp, time, key=None, **columns):
    """An answer as it is posted."""
    out = {"id": id, "item": item, "resp": resp, "time": time}
    if key is not None:
        out["key"] = key
    return out | ({"columns": columns} if columns else {})


def post(client, *answers):
    """What posting answers gives, which must succeed."""
    found = client.post("/answers", json={"answers": list(answers)})
    assert found.status_code == 200, found.text
    return found.json()


def replayed(scorer, answers, state=None, **columns):
    """The oracle: a state after answers in the order of time and key, each key once."""
    state = scorer.start(**columns) if state is None else state
    seen = set()
    for one in sorted(answers, key=lambda one: (one["time"], one["key"])):
        if one["key"] not in seen:
            seen.add(one["key"])
            state = scorer.add(
                state, one["time"], one["item"], one["resp"], **one.get("columns", {})
            )
    return state


def assert_same_ability(found, scorer, state, tolerance=1e-10):
    """A person as the service tells, and a state."""
    now = scorer.ability(state)
    assert found["answers"] == state.answers
    for name in ("mean", "sd", "lower", "upper"):
        assert abs(found[name] - getattr(now, name)) <= tolerance, name
