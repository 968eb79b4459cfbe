"""Requests drawn from a service's OpenAPI page, valid ones and others."""

from collections import Counter
from contextlib import suppress
from functools import partial

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.openapi import from_url
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ENDLESS = "/events"  # a stream, which ends when the listener goes


def draw_requests(url, examples, known, number=1):
    """Send drawn requests to every route, and hold the responses against the page.

    Parameters
    ----------
    url : str
    examples : int
        Of each route and kind.
    known : dict
        By route, fields of bodies that only who knows the service fills rightly: these routes are
        drawn with them too.
    number : int

    Returns
    -------
    dict
        Number of responses by route and status.
    """
    schema = from_url(f"{url}/openapi.json").exclude(path=ENDLESS)
    told = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        codes = told.setdefault(operation.label, Counter())
        valid = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        _send_all(valid, examples, number, codes)
        if fields := known.get(operation.label):
            _send_all(valid.map(partial(_with_fields, fields)), examples, number, codes)
        with suppress(Unsatisfiable):  # routes without parameters have no wrong ones
            wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
            _send_all(wrong, examples, number, codes)
    return told


def _with_fields(fields, case):
    """The request with some fields of its body given."""
    case.body = {**case.body, **fields}
    return case


def _send_all(cases, examples, number, codes):
    """Send drawn requests of one route, and count what came back."""

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def send(case):
        response = case.call()
        case.validate_response(response, checks=CHECKS)
        codes[response.status_code] += 1

    send()
