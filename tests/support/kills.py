"""A service that is killed under load: what was acknowledged must be there, once."""

import random
import threading
import time

import httpx

from dynaesti.serve import open_database
from support.service import SECONDS, Program, answer, assert_same_ability, replayed

SENDERS = 3
PEOPLE = 12
ITEMS = 8
BATCH = 5000  # answers posted once more in one request


class Sender(threading.Thread):
    """Posts answers one by one or in small batches, some late, some twice; notes what was said."""

    def __init__(self, number, urls, seed):
        super().__init__(daemon=True)
        self.number = number
        self.urls = urls  # where the service is now: a list of one
        self.random = random.Random(1000 * seed + number)
        self.tried = {}  # by person and key
        self.kept = set()  # of those acknowledged
        self.ending = False
        self.count = 0

    def run(self):
        with httpx.Client(timeout=SECONDS) as client:
            while not self.ending:
                sent = self.batch()
                try:
                    found = client.post(f"{self.urls[0]}/answers", json={"answers": sent})
                except httpx.TransportError:
                    time.sleep(0.05)
                    continue
                if found.status_code == 200:
                    self.kept |= {(one["id"], one["key"]) for one in sent}
                else:
                    assert found.status_code == 503, found.text

    def batch(self):
        draw = self.random
        out = []
        for _ in range(draw.choice([1, 1, 1, 4])):
            if self.tried and draw.random() < 0.15:  # once more, whatever became of it
                out.append(draw.choice(list(self.tried.values())))
                continue
            self.count += 1
            late = draw.random() < 0.2
            one = answer(
                f"s{draw.randrange(PEOPLE)}",
                f"i{draw.randrange(ITEMS)}",
                draw.randrange(2),
                60.0 + self.count * 0.01 - late * draw.random(),
                f"{self.number}-{self.count}",
            )
            self.tried[one["id"], one["key"]] = one
            out.append(one)
        return out


def kill_under_load(run, scorer, kills, address, *words, seed=1, seconds=(0.3, 1.2)):
    """Kill the service again and again while answers come in, then compare it with a replay.

    Returns
    -------
    int
        Number of acknowledged answers.
    """
    draw = random.Random(seed)
    words = ("--db", address, *words)
    program = Program(run, *words)
    urls = [program.url]
    senders = [Sender(k, urls, seed) for k in range(SENDERS)]
    for one in senders:
        one.start()
    for _ in range(kills):
        time.sleep(draw.uniform(*seconds))
        program.kill()
        program = Program(run, *words, port=program.port)
    time.sleep(seconds[0])
    for one in senders:
        one.ending = True
    for one in senders:
        one.join(SECONDS)
        assert not one.is_alive()
    try:
        return _compare(program, scorer, senders, address)
    finally:
        program.end()


def _compare(program, scorer, senders, address):
    """Hold the log and what the service tells against a replay of what was sent."""
    tried = {name: one for sender in senders for name, one in sender.tried.items()}
    kept = {name for sender in senders for name in sender.kept}
    database = open_database(address)
    with database.reading() as tx:
        logged = tx.rows("SELECT id, key FROM dynaesti_answers")
    database.close()
    there = set(map(tuple, logged))
    assert len(there) == len(logged), "an answer was counted twice"
    assert there <= set(tried), "an answer is there that nobody sent"
    assert not kept - there, f"{len(kept - there)} acknowledged answers are lost"
    # what was not acknowledged may be there: the reply was lost, not the answer
    with httpx.Client(base_url=program.url, timeout=SECONDS) as client:
        again = [tried[name] for name in sorted(there)]
        for first in range(0, len(again), BATCH):
            body = {"answers": again[first : first + BATCH]}
            assert client.post("/answers", json=body).json()["new"] == 0
        for person in sorted({name[0] for name in there}):
            mine = [tried[name] for name in there if name[0] == person]
            state = replayed(scorer, mine)
            row = {"points": 0, "moves": 0}
            assert_same_ability(client.get(f"/people/{person}", params=row).json(), scorer, state)
            assert_same_ability(client.get(f"/people/{person}").json(), scorer, state)
    return len(kept)
