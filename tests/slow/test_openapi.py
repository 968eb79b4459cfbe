"""Requests drawn from the OpenAPI page: no fault of the service, and what the page promises."""

import pytest

import dynaesti as dy
from dynaesti.serve import Limits
from support.service import answer, post, service

pytest.importorskip("schemathesis")

from support.openapi import draw_requests

EXAMPLES = 25  # of each route, valid ones and as many others
# nobody draws the name of an item by chance
KNOWN = {"POST /predict": {"items": ["i1", "i4"], "time": 60.0, "id": "eve"}}


def test_drawn_requests_meet_no_fault(tmp_path):
    table = dy.simulate.responses(people=25, items=8, per_person=12, span=50.0, seed=5).table
    run = dy.DynAEsti("2PL").fit(table).save(tmp_path / "run.dyn")
    with service(run, unknown_items="queue", limits=Limits(rate=1e6)) as client:
        told = draw_requests(str(client.base_url).rstrip("/"), EXAMPLES, KNOWN)
        assert len(told) == 9
        assert all(any(code == 200 for code in counts) for counts in told.values())
        assert not any(code >= 500 for counts in told.values() for code in counts)
        # and it still works
        assert post(client, answer("ada", "i1", 1, 60.0, "k"))["new"] == 1
