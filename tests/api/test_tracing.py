"""Traces: the spans of a request, below the caller's, and their way to a collector."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from api.app import create_app
from api.settings import Settings
from api.tracing import Tracing, tracing_to
from tests.api.server import DEADLINE_S, ask, serving, wait_until
from tests.api.synthetic import SyntheticBackend

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def test_the_spans_of_a_request() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = create_app(Settings(), SyntheticBackend(), Tracing(provider))
    with serving(app) as url:
        body, headers = ask({"type": "string"}), {"traceparent": PARENT}
        httpx.post(f"{url}/v1/structured/stream", json=body, headers=headers, timeout=DEADLINE_S).raise_for_status()
        wait_until(lambda: len(exporter.get_finished_spans()) == 4)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    request = spans["POST /v1/structured/stream"]
    assert set(spans) == {request.name, "compile", "encode", "generate"}
    assert attributes(request)["http.response.status_code"] == 200
    for span in spans.values():
        assert span.context.trace_id == int(TRACE, 16)
    for name in ("compile", "encode", "generate"):
        assert spans[name].parent
        assert spans[name].parent.span_id == request.context.span_id
    generate = attributes(spans["generate"])
    assert generate["gen_ai.request.model"] == "synthetic"
    assert generate["gen_ai.response.finish_reasons"] == ("stop",)
    assert generate["gen_ai.usage.output_tokens"] > 0
    assert [event.name for event in spans["generate"].events] == ["first_token"]


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """An address that takes what an exporter sends, and what it took."""
    taken: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", taken
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_reach_a_collector(collector: tuple[str, list[tuple[str, bytes]]]) -> None:
    endpoint, taken = collector
    with serving(create_app(Settings(otlp_endpoint=endpoint), SyntheticBackend())) as url:
        httpx.post(f"{url}/v1/structured", json=ask({"type": "string"}), timeout=DEADLINE_S).raise_for_status()
    assert {path for path, _ in taken} == {"/v1/traces"}
    assert b"POST /v1/structured" in b"".join(body for _, body in taken)


def test_without_an_endpoint_there_is_nothing() -> None:
    tracing = tracing_to(None)
    assert not tracing.is_on
    assert tracing.begin("x") is None
    with tracing.span("x"):
        pass
    tracing.close()
