"""Figures of one worker in Prometheus' text format."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)


class Metrics:
    """Counters of one worker since it started; none of them names a person or an item."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        self.requests = Counter(
            "dynaesti_requests", "Requests by path and status", ["path", "status"],
            registry=registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "dynaesti_request_seconds", "Seconds from request to response", ["path"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.answers = Counter(
            "dynaesti_answers", "Answers posted: new, repeated, queued or refused", ["result"],
            registry=registry,
        )  # fmt: skip
        self.groups = Histogram(
            "dynaesti_group_answers", "Answers that were made durable together", buckets=SIZES,
            registry=registry,
        )  # fmt: skip
        self.commits = Histogram(
            "dynaesti_group_seconds", "Seconds to take in a group and make it durable",
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self.replayed = Counter(
            "dynaesti_replayed_people", "Times that late answers were put in their place",
            registry=registry,
        )  # fmt: skip
        self.rebuilt = Counter(
            "dynaesti_rebuilt_states", "States that were made anew from the log",
            registry=registry,
        )  # fmt: skip
        self.failures = Counter(
            "dynaesti_failures", "Groups that the database did not take", registry=registry
        )
        self.scorer = Gauge("dynaesti_scorer", "Number of the scorer served", registry=registry)
        self.waiting = Gauge("dynaesti_waiting", "Answers not yet durable", registry=registry)
        self.listeners = Gauge("dynaesti_listeners", "Open event streams", registry=registry)

    def text(self) -> bytes:
        """All figures."""
        found: bytes = generate_latest(self.registry)
        return found
