"""A PostgreSQL server on loopback, which tests start and end."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = 60  # to wait for the server


def program(name):
    """A program of the server, which Debian keeps off the path."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(beside[-1]) if beside else shutil.which(name)


def plain_user():
    """Arguments that let a process run as a plain user, which the server insists on."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    return None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def postgresql(durable=False):
    """The address of a database on a server of its own; durable as servers are by default."""
    psycopg = pytest.importorskip("psycopg")
    initdb, postgres = program("initdb"), program("postgres")
    if not initdb or not postgres:
        pytest.skip("PostgreSQL is not installed (make packages installs it where it may)")
    user = plain_user()
    if user is None:
        pytest.skip("PostgreSQL does not run as root, and there is no plain user")
    folder = tempfile.mkdtemp(prefix="dynaesti-pg-")
    if user:
        os.chown(folder, user["user"], user["group"])
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": folder}
    run = {"cwd": folder, "env": env, **user}
    data = f"{folder}/data"
    made = subprocess.run(
        [initdb, "-D", data, "-A", "trust", "-U", "ada", "--no-sync", "-E", "UTF8"],
        capture_output=True,
        text=True,
        **run,
    )
    if made.returncode:
        shutil.rmtree(folder)
        pytest.skip(f"initdb failed: {made.stderr.strip().splitlines()[-1:]}")
    port = free_port()
    fast = [] if durable else ["-F"]  # which does not wait for the disk
    with open(f"{folder}/log", "wb") as log:
        process = subprocess.Popen(
            [postgres, "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", folder, *fast],
            stdout=log,
            stderr=log,
            **run,
        )
    try:
        for _ in range(10 * SECONDS):
            try:
                psycopg.connect(host="127.0.0.1", port=port, user="ada", dbname="postgres").close()
                break
            except psycopg.OperationalError:
                if process.poll() is not None:
                    pytest.skip(f"the server did not start: {Path(folder, 'log').read_text()}")
                time.sleep(0.1)
        yield f"postgresql://ada:secret@127.0.0.1:{port}/postgres"
    finally:
        process.send_signal(signal.SIGINT)  # by which it does not wait for connections
        process.wait(SECONDS)
        shutil.rmtree(folder)
