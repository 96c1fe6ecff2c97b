"""What the service counts, in Prometheus terms; each app has a registry of its own."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import accumulate
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from api.tracing import end_span
from constrained.decode.request import Usage

if TYPE_CHECKING:
    from opentelemetry.trace import Span

ENGINE_GAUGES = frozenset({"running", "waiting", "paused", "free_blocks", "total_blocks"})
TTFT_BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
COUNTED_S = 0.25
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
        self.prompt_tokens = self._counter("prompt_tokens", "Tokens of prompts.")
        self.cached_tokens = self._counter("cached_tokens", "Tokens of prompts that were in the KV memory already.")
        self.forced_tokens = self._counter("forced_tokens", "Generated tokens that left the model no choice.")
        self.grammars = self._counter("grammar_lookups", "Grammars that were asked for.", "result")
        self.queue_time = self._histogram("queue_time_seconds", "From submission to the first step.", TTFT_BUCKETS_S)
        self.itl = QuickHistogram("constrained_inter_token_latency_seconds", "Time between chunks, per token.", ITL_BUCKETS_S)
        self.registry.register(self.itl)

    def grammar_lookup(self, hit: bool) -> None:
        """A grammar was asked for; `hit` where no compile began for it."""
        self.grammars.labels(result="hit" if hit else "miss").inc()

    def watch_engine(self, stats: Callable[[], Any]) -> None:
        """Show the engine's own counts whenever the metrics are read; `stats` gives a dataclass of numbers."""
        self.registry.register(EngineCollector(stats))

    def render(self) -> bytes:
        """The text format that Prometheus scrapes."""
        return generate_latest(self.registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"constrained_{name}", what, labels, registry=self.registry)

    def _gauge(self, name: str, what: str) -> Gauge:
        return Gauge(f"constrained_{name}", what, registry=self.registry)

    def _histogram(self, name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"constrained_{name}", what, registry=self.registry, buckets=buckets)


class QuickHistogram(Collector):
    """A histogram for what is observed at each token, on one thread: no locks, no labels."""

    def __init__(self, name: str, what: str, buckets: tuple[float, ...]) -> None:
        self._name = name
        self._what = what
        self._bounds = [*buckets, inf]
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def collect(self) -> Iterator[Metric]:
        names = [*(str(float(bound)) for bound in self._bounds[:-1]), "+Inf"]
        buckets = list(zip(names, map(float, accumulate(self._counts)), strict=True))
        yield HistogramMetricFamily(self._name, self._what, buckets=buckets, sum_value=self._sum)


class EngineCollector(Collector):
    """The engine's counts as series: `running` is a gauge, `tokens` a counter, `mask_ms` a counter of seconds."""

    def __init__(self, stats: Callable[[], Any]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        stats = self._stats()
        for field in fields(stats):
            value = getattr(stats, field.name)
            what = f"The engine's {field.name.removesuffix('_ms').replace('_', ' ')}."
            if field.name in ENGINE_GAUGES:
                yield GaugeMetricFamily(f"constrained_engine_{field.name}", what, value)
            elif field.name.endswith("_ms"):
                yield CounterMetricFamily(f"constrained_engine_{field.name.removesuffix('_ms')}_seconds", what, value / 1e3)
            else:
                yield CounterMetricFamily(f"constrained_engine_{field.name}", what, value)


class SequenceMeter:
    """Follows one sequence from its submission to its end."""

    def __init__(self, metrics: Metrics, span: Span | None = None) -> None:
        self._metrics = metrics
        self._span = span
        self._last = self._counted_at = perf_counter()
        self._num_tokens = 0
        self._started = False
        metrics.waiting.inc()

    def chunk(self, num_tokens: int) -> None:
        """A chunk of `num_tokens` tokens has come."""
        now = perf_counter()
        if not self._started:
            self._start()
            self._metrics.ttft.observe(now - self._last)
            if self._span is not None:
                self._span.add_event("first_token")
        elif num_tokens:
            self._metrics.itl.observe((now - self._last) / num_tokens)
        self._last = now
        self._num_tokens += num_tokens
        if now - self._counted_at > COUNTED_S:
            self._count(now)

    def _count(self, now: float) -> None:
        """Tokens are counted together, since the counter takes a lock."""
        self._metrics.tokens.inc(self._num_tokens)
        self._num_tokens, self._counted_at = 0, now

    def end(self, finish_reason: str, usage: Usage) -> None:
        """The sequence has ended."""
        if not self._started:
            self._start()
        self._count(perf_counter())
        self._metrics.running.dec()
        self._metrics.finished.labels(finish_reason=finish_reason).inc()
        self._metrics.queue_time.observe(usage.queue_ms / 1e3)
        self._metrics.prompt_tokens.inc(usage.prompt_tokens)
        self._metrics.cached_tokens.inc(usage.cached_tokens)
        self._metrics.forced_tokens.inc(usage.forced_tokens)
        end_span(
            self._span,
            gen_ai__response__finish_reasons=[finish_reason],
            gen_ai__usage__input_tokens=usage.prompt_tokens,
            gen_ai__usage__output_tokens=usage.completion_tokens,
            constrained__cached_tokens=usage.cached_tokens,
            constrained__forced_tokens=usage.forced_tokens,
            constrained__queue_ms=usage.queue_ms,
        )

    def _start(self) -> None:
        self._started = True
        self._metrics.waiting.dec()
        self._metrics.running.inc()
