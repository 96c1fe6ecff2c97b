"""What the service tells of itself: models, health, metrics, the API's document, the page."""

from __future__ import annotations

from typing import Any

from constrained.errors import InternalError
from schemas.openai import ModelList
from schemas.requests import CheckResponse
from tests.api.server import Served, ask, served, stream_events, wait_until
from tests.api.synthetic import SyntheticBackend
from tests.api.test_bad_input import refused


def test_models(service: Served) -> None:
    models = ModelList.model_validate(service.client.get("/v1/models").json())
    assert [(card.id, card.context_len) for card in models.data] == [("synthetic", 4096)]
    assert service.client.get("/v1/models/synthetic").json()["id"] == "synthetic"
    assert refused(service.client.get("/v1/models/some/other"), 404)["code"] == "model_not_found"


def test_health(service: Served) -> None:
    assert service.client.get("/healthz").json() == {"status": "ok"}
    assert service.client.get("/readyz").json() == {"status": "ready", "model": "synthetic"}


def test_a_broken_engine_is_not_ready() -> None:
    class Broken(SyntheticBackend):
        def submit(self, *_: Any) -> Any:
            raise InternalError("the engine's thread died")

    with served(Broken()) as service:
        assert service.client.get("/readyz").status_code == 200
        assert refused(service.client.post("/v1/structured", json=ask(True)), 500)["code"] == "internal_error"
        answer = service.client.get("/readyz")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
        assert service.client.get("/healthz").status_code == 200


def test_metrics_follow_a_run() -> None:
    with served(SyntheticBackend('"abcd"', token_bytes=1)) as service:
        stream_events(service.client, ask({"type": "string"}))
        assert service.metric('constrained_requests_total{endpoint="structured_stream"}') == 1
        assert service.metric('constrained_finished_sequences_total{finish_reason="stop"}') == 1
        assert service.metric("constrained_tokens_total") == 6
        assert service.metric("constrained_time_to_first_token_seconds_count") == 1
        assert service.metric("constrained_inter_token_latency_seconds_count") == 5
        assert service.metric("constrained_running_sequences") == 0
        assert service.metric("constrained_waiting_sequences") == 0
        assert service.metric("constrained_invalid_documents_total") == 0


def test_metrics_show_what_runs(service: Served) -> None:
    with service.client.stream("POST", "/v1/structured/stream", json=ask({"type": "string"}, "hang", n=2)) as answer:
        assert answer.status_code == 200
        wait_until(lambda: service.metric("constrained_running_sequences") == 2)
    wait_until(lambda: service.metric("constrained_running_sequences") == 0)


def test_the_document_of_the_api_shows_the_events(service: Served) -> None:
    document = service.client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    events = {"StartEvent", "DeltaEvent", "SnapshotEvent", "ErrorEvent", "DoneEvent", "SetOp", "ChatCompletionChunk"}
    assert events <= set(schemas)
    stream = document["paths"]["/v1/structured/stream"]["post"]["responses"]["200"]["content"]
    shown = {option["$ref"].rpartition("/")[2] for option in stream["text/event-stream"]["schema"]["anyOf"]}
    assert shown == {"StartEvent", "DeltaEvent", "SnapshotEvent", "ErrorEvent", "DoneEvent"}
    assert set(_references(document)) <= {f"#/components/schemas/{name}" for name in schemas}
    assert "HTTPValidationError" not in schemas


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [reference for item in value for reference in _references(item)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
    return own + [reference for item in value.values() for reference in _references(item)]


def test_the_page_and_its_files(service: Served) -> None:
    page = service.client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["cache-control"] == "no-cache"


def test_request_ids(service: Served) -> None:
    given = service.client.get("/healthz", headers={"x-request-id": "abc-1.2_3"})
    assert given.headers["x-request-id"] == "abc-1.2_3"
    for bad in ("a b", "x" * 200, "a;b"):
        made = service.client.get("/healthz", headers={"x-request-id": bad})
        assert made.headers["x-request-id"].startswith("req-")


def test_check_of_a_supported_schema(service: Served) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}, "required": ["b"]}
    report = CheckResponse.model_validate(service.client.post("/v1/schemas/check", json={"schema": schema}).json())
    assert report.supported
    assert report.error is None
    assert report.order == ["/b", "/a"]
    assert report.min_bytes == len('{"b":0}')
    statuses = {(keyword.pointer, keyword.status) for keyword in report.keywords}
    assert ("/properties/a/type", "enforced") in statuses


def test_check_of_a_schema_that_is_refused(service: Served) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": r"(a)\1", "title": "A"}}}
    report = CheckResponse.model_validate(service.client.post("/v1/schemas/check", json={"schema": schema}).json())
    assert not report.supported
    assert report.error
    assert (report.error.param, report.error.code) == ("/properties/a/pattern", "unsupported_keyword")
    statuses = {keyword.pointer: keyword.status for keyword in report.keywords}
    assert statuses["/properties/a/title"] == "annotation"


def test_check_of_what_is_no_schema(service: Served) -> None:
    report = CheckResponse.model_validate(service.client.post("/v1/schemas/check", json={"schema": 12}).json())
    assert not report.supported
    assert report.error
    assert report.error.code == "invalid_schema"


def test_the_model_is_loaded_at_start_where_no_backend_is_given(monkeypatch: Any) -> None:
    import api.app
    from api.settings import Settings
    from tests.api.server import live

    backend = SyntheticBackend()
    asked: list[Settings] = []

    def load(settings: Settings) -> SyntheticBackend:
        asked.append(settings)
        return backend

    monkeypatch.setattr(api.app, "load_backend", load)
    with live(None, Settings(model="some/model")) as url:
        assert url
    assert [settings.model for settings in asked] == ["some/model"]
    assert backend.closed
