"""Requests drawn from a service's OpenAPI page, valid ones and others."""

from collections import Counter
from contextlib import nullcontext, suppress

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


def draw_requests(url, examples, number=1):
    """Send drawn requests to every route, and hold the responses against the page.

    Returns
    -------
    dict
        Number of responses by route and status.
    """
    schema = from_url(f"{url}/openapi.json").exclude(path=ENDLESS)
    told = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            cases = operation.as_strategy(generation_mode=mode)
            codes = told.setdefault(operation.label, Counter())
            # routes without parameters have no wrong ones
            with suppress(Unsatisfiable) if mode == GenerationMode.NEGATIVE else nullcontext():
                _send_all(cases, examples, number, codes)
    return told


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
