"""Prometheus metrics. Nothing from a conversation is recorded, only numbers by model and kind."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder in which worker processes share their counters."""

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
TOGETHER = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one server. It has its own registry, so several servers can run in one process."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"listenwell_{name}", about, labels, registry=self.registry)

        def gauge(name: str, about: str) -> Gauge:
            return Gauge(f"listenwell_{name}", about, ("model",), registry=self.registry, multiprocess_mode="livesum")

        def histogram(name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"listenwell_{name}", about, ("model",), registry=self.registry, buckets=buckets)

        self.requests = counter("requests", "Requests, by route and status.", "route", "status")
        self.replies = counter("replies", "Replies that were written to their end.", "model")
        self.care = counter("care", "Replies of care, which no model wrote.", "model", "kind")
        self.refused = counter("refused", "Requests that found no room.", "model")
        self.failed = counter("failed", "Replies that a system could not write.", "model")
        self.restarts = counter("worker_restarts", "Worker threads that died and were replaced.", "model")
        self.cancelled = counter("cancelled", "Replies whose client left before their end.", "model")
        self.late_steps = counter("cancelled_steps", "Decoding steps computed after the client had left.", "model")
        self.steps = counter("steps", "Decoding steps, each for all rows of a batch.", "model")
        self.tokens = counter("tokens", "Tokens, read and written.", "model", "kind")
        self.waiting = gauge("waiting", "Replies that wait for a worker.")
        self.writing = gauge("writing", "Replies that are being written.")
        self.first = histogram("first_text_seconds", "From a request to the first text of its reply.", SECONDS)
        self.whole = histogram("reply_seconds", "From a request to the end of its reply.", SECONDS)
        self.together = histogram("batch_size", "Replies that a worker began together.", TOGETHER)

    def page(self) -> bytes:
        """The metrics in Prometheus' text format, summed over all worker processes if there are several."""
        if not os.environ.get(MULTIPROCESS):
            return generate_latest(self.registry)
        from prometheus_client import multiprocess

        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)
        return generate_latest(registry)
