"""What the service counts, in Prometheus terms; each app has a registry of its own."""

from __future__ import annotations

from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

TTFT_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
ITL_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 5)


class Metrics:
    """All series of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("requests", "Generation requests that were accepted.", "endpoint")
        self.refusals = self._counter("refusals", "Requests that were answered with an error.", "code")
        self.finished = self._counter("finished_sequences", "Sequences that ended.", "finish_reason")
        self.tokens = self._counter("tokens", "Tokens that were generated.")
        self.invalid_documents = self._counter("invalid_documents", "Finished documents that a JSON Schema validator refused.")
        self.slow_readers = self._counter("slow_readers", "Readers that took nothing for too long and were closed.")
        self.waiting = self._gauge("waiting_sequences", "Sequences that have given nothing yet.")
        self.running = self._gauge("running_sequences", "Sequences that are being generated.")
        self.ttft = self._histogram("time_to_first_token_seconds", "From submission to the first chunk.", TTFT_BUCKETS_S)
        self.itl = self._histogram("inter_token_latency_seconds", "Time between chunks, per token.", ITL_BUCKETS_S)

    def render(self) -> bytes:
        """The text format that Prometheus scrapes."""
        return generate_latest(self.registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"constrained_{name}", what, labels, registry=self.registry)

    def _gauge(self, name: str, what: str) -> Gauge:
        return Gauge(f"constrained_{name}", what, registry=self.registry)

    def _histogram(self, name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"constrained_{name}", what, registry=self.registry, buckets=buckets)


class SequenceMeter:
    """Follows one sequence from its submission to its end."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._last = perf_counter()
        self._started = False
        metrics.waiting.inc()

    def chunk(self, num_tokens: int) -> None:
        """A chunk of `num_tokens` tokens has come."""
        now = perf_counter()
        if not self._started:
            self._start()
            self._metrics.ttft.observe(now - self._last)
        elif num_tokens:
            self._metrics.itl.observe((now - self._last) / num_tokens)
        self._last = now
        self._metrics.tokens.inc(num_tokens)

    def end(self, finish_reason: str) -> None:
        """The sequence has ended."""
        if not self._started:
            self._start()
        self._metrics.running.dec()
        self._metrics.finished.labels(finish_reason=finish_reason).inc()

    def _start(self) -> None:
        self._started = True
        self._metrics.waiting.dec()
        self._metrics.running.inc()
