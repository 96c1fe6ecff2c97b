"""Traces by OpenTelemetry, where the extra `otel` is installed and an endpoint is given; else nothing, at no cost.

A request is a server span that lasts as long as its stream; compiling, encoding and generating are spans below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from constrained import __version__
from constrained.errors import OptionError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span


class Tracing:
    """Makes spans; without a provider it makes none."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._provider = provider
        self._tracer = None if provider is None else provider.get_tracer("constrained", __version__)

    @property
    def is_on(self) -> bool:
        return self._tracer is not None

    @contextmanager
    def span(self, name: str, **attributes: Any) -> Iterator[None]:
        """A span around a block."""
        if self._tracer is None:
            yield
            return
        with self._tracer.start_as_current_span(name, attributes=_dotted(attributes)):
            yield

    def begin(self, name: str, **attributes: Any) -> Span | None:
        """A span that whoever asked for it ends."""
        return None if self._tracer is None else self._tracer.start_span(name, attributes=_dotted(attributes))

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Span]:
        """The span of a request, below that of the caller where its headers name one. Only where tracing is on."""
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        assert self._tracer is not None, "asked only where tracing is on"
        caller = TraceContextTextMapPropagator().extract(dict(Headers(scope=scope)))
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        name = f"{scope['method']} {scope['path']}"
        with self._tracer.start_as_current_span(name, caller, SpanKind.SERVER, attributes) as span:
            yield span

    def close(self) -> None:
        """Send what has not been sent."""
        if self._provider is not None:
            self._provider.shutdown()


def _dotted(attributes: dict[str, Any]) -> dict[str, Any]:
    """Python names to those of OpenTelemetry: two underscores are a dot."""
    return {name.replace("__", "."): value for name, value in attributes.items() if value is not None}


def end_span(span: Span | None, **attributes: Any) -> None:
    """End a span with what is known of it then."""
    if span is not None:
        span.set_attributes(_dotted(attributes))
        span.end()


def tracing_to(endpoint: str | None) -> Tracing:
    """Traces that go to an OTLP endpoint over HTTP; `OptionError` where the extra is not installed."""
    if endpoint is None:
        return Tracing()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise OptionError("traces need the extra: pip install 'constrained[otel]'", "otlp_endpoint") from error
    provider = TracerProvider(resource=Resource.create({"service.name": "constrained", "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    return Tracing(provider)


class TraceRequests:
    """Puts each request into a span."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self.app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with self._tracing.request(scope) as span:

            async def send_seen(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            span.set_attribute("constrained.request_id", scope.get("request_id", ""))
            await self.app(scope, receive, send_seen)
