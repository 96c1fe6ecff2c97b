"""Bad input: a clear error in the one body, before the first byte, and the service goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from api.settings import Settings
from schemas.requests import ErrorBody
from tests.api.server import Served, ask, served
from tests.api.synthetic import SyntheticBackend

STRING = {"type": "string"}
PATHS = ["/v1/structured", "/v1/structured/stream"]
SMALL = Settings(max_body_bytes=4096)


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    """A service with a small body limit and a small context."""
    with served(SyntheticBackend(context_len=300), SMALL) as running:
        yield running


def refused(answer: httpx.Response, status: int = 400) -> dict[str, Any]:
    """The error of an answer, which must have the one body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert (answer.headers.get("x-should-retry") == "false") == (status < 500)
    error = ErrorBody.model_validate(answer.json()).error
    assert error.message
    assert error.type == ("invalid_request_error" if status < 500 else "server_error")
    return error.model_dump()


def post(service: Served, body: Any, path: str = PATHS[1]) -> httpx.Response:
    answer = service.client.post(path, json=body)
    assert service.client.post(PATHS[0], json=ask(STRING)).status_code == 200
    return answer


@pytest.mark.parametrize("path", [*PATHS, "/v1/chat/completions", "/v1/schemas/check"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"schema": NaN}',
        b"\xff\xfe",
        b'{"schema": {"const": "\\ud800"}}',
        b"[" * 3000,
        b'{"a":' + b"1" * 3900,
    ],
)
def test_not_json(small: Served, path: str, body: bytes) -> None:
    error = refused(small.client.post(path, content=body, headers={"content-type": "application/json"}))
    assert error["code"] == ("invalid_json" if body else "invalid_request")


def test_json_that_is_not_an_object(service: Served) -> None:
    for body in (1, [], "text", None, True):
        assert "must be a JSON object" in refused(service.client.post(PATHS[1], json=body))["message"]


def test_a_body_that_is_not_declared_as_json(service: Served) -> None:
    answer = service.client.post(PATHS[1], content=b'{"schema": true, "prompt": "x"}', headers={"content-type": "text/plain"})
    assert "application/json" in refused(answer)["message"]


@pytest.mark.parametrize("schema", [7, "string", [], "true", 1])
def test_a_schema_of_a_wrong_type(service: Served, schema: Any) -> None:
    assert refused(post(service, ask(schema)))["param"] == "schema"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("schema", "param", "code"),
    [
        ({"type": "strong"}, "/type", "invalid_schema"),
        ({"properties": {"a": {"minLength": "x"}}}, "/properties/a/minLength", "invalid_schema"),
        ({"required": "a"}, "/required", "invalid_schema"),
        ({"properties": {"a": {"type": "string", "pattern": r"(a)\1"}}}, "/properties/a/pattern", "unsupported_keyword"),
        ({"type": "string", "pattern": r"(a)\1"}, "/pattern", "unsupported_keyword"),
        (False, "schema", "unsatisfiable_schema"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "schema", "unsatisfiable_schema"),
        ({"$ref": "#/$defs/missing"}, "/$ref", "unresolvable_reference"),
        ({"items": {"$ref": "https://example.com/person.json"}}, "/items/$ref", "unresolvable_reference"),
    ],
)
def test_a_schema_that_cannot_be_compiled(service: Served, path: str, schema: Any, param: str, code: str) -> None:
    error = refused(post(service, ask(schema), path))
    assert (error["param"], error["code"]) == (param, code)


def test_a_schema_with_a_number_beyond_doubles(service: Served) -> None:
    content = b'{"schema": {"minimum": 1e999}, "prompt": "x"}'
    answer = service.client.post(PATHS[1], content=content, headers={"content-type": "application/json"})
    assert refused(answer)["code"] == "invalid_schema"


def test_a_schema_nested_beyond_all_measure(service: Served) -> None:
    schema = b'{"items":' * 5000 + b"true" + b"}" * 5000
    content = b'{"schema": ' + schema + b', "prompt": "x"}'
    for path in (*PATHS, "/v1/schemas/check"):
        answer = service.client.post(path, content=content, headers={"content-type": "application/json"})
        assert refused(answer)["code"] in {"invalid_json", "invalid_schema", "schema_too_complex"}


def test_a_body_over_the_limit_by_its_declared_length(small: Served) -> None:
    assert refused(post(small, ask(STRING, "x" * 5000)), 413)["code"] == "body_too_large"


def test_a_body_over_the_limit_that_declares_no_length(small: Served) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"schema": true, "prompt": "'
        for _ in range(6):
            yield b"x" * 1000

    answer = small.client.post(PATHS[0], content=pieces(), headers={"content-type": "application/json"})
    assert refused(answer, 413)["code"] == "body_too_large"
    assert small.metric('constrained_refusals_total{code="body_too_large"}') >= 1


@pytest.mark.parametrize("path", [*PATHS, "/v1/chat/completions"])
def test_an_unknown_model(service: Served, path: str) -> None:
    body = ask(STRING) if path in PATHS else {"messages": [{"role": "user", "content": "hello"}]}
    error = refused(post(service, {**body, "model": "gpt-unknown"}, path), 404)
    assert (error["param"], error["code"]) == ("model", "model_not_found")
    assert "'synthetic'" in error["message"]


@pytest.mark.parametrize("path", PATHS)
def test_max_tokens_that_cannot_hold_the_smallest_document(service: Served, path: str) -> None:
    body = ask({"type": "string", "minLength": 50}, max_tokens=20)
    error = refused(post(service, body, path))
    assert (error["param"], error["code"]) == ("max_tokens", "max_tokens_too_small")


def test_a_prompt_longer_than_the_context(small: Served) -> None:
    error = refused(post(small, ask(STRING, "x" * 1000)))
    assert (error["param"], error["code"]) == ("messages", "context_length_exceeded")
    error = refused(post(small, {"schema": STRING, "prompt": "x" * 1000}))
    assert error["param"] == "prompt"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, None),
        ({"prompt": "x"}, None),
        ({"schema": None}, None),
        ({"regex": "a"}, None),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "judge", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x", "mood": "good"}]}, "messages[0].mood"),
        ({"messages": "hello"}, "messages"),
        ({"max_tokens": "10"}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 99}, "n"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"whitespace": "none"}, "whitespace"),
        ({"coalesce_ms": 1e9}, "coalesce_ms"),
        ({"max_token": 5}, "max_token"),
        ({"resumable": "yes"}, "resumable"),
        ({"property_order": "random"}, "property_order"),
    ],
)
def test_wrong_fields_are_named(service: Served, fields: dict[str, Any], param: str | None) -> None:
    assert refused(post(service, {**ask(STRING), **fields}))["param"] == param


def test_an_empty_prompt(service: Served) -> None:
    body = {"schema": STRING, "prompt": "", "schema_in_prompt": False}
    assert refused(service.client.post(PATHS[1], json=body))["param"] == "prompt"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("regex", "(", "invalid_grammar"),
        ("regex", "", "invalid_request"),
        ("regex", r"(a)\1", "invalid_grammar"),
        ("choice", [], "invalid_request"),
        ("choice", ["\u0000"] * 2 + [1], "invalid_request"),
        ("grammar", "start: [", "invalid_grammar"),
        ("grammar", "start: other", "invalid_grammar"),
    ],
)
def test_a_text_constraint_that_is_none(service: Served, name: str, value: Any, code: str) -> None:
    error = refused(post(service, {"messages": [{"role": "user", "content": "x"}], name: value}))
    assert (error["param"].partition("[")[0], error["code"]) == (name, code)


def test_an_unknown_path_and_an_unknown_method(service: Served) -> None:
    assert refused(service.client.post("/v1/nothing", json={}), 404)["code"] == "not_found"
    assert refused(service.client.get("/static/nothing.js"), 404)["code"] == "not_found"
    answer = service.client.get("/v1/structured")
    assert refused(answer, 405)["code"] == "method_not_allowed"
    assert answer.headers["allow"] == "POST"


def test_a_fault_of_ours_is_told_as_one_and_nothing_else_is_told() -> None:
    def broken(schema: Any, options: Any) -> Any:
        raise ZeroDivisionError("secret detail")

    with served(SyntheticBackend(compile_schema=broken)) as service:
        answer = service.client.post(PATHS[1], json=ask(STRING))
        error = refused(answer, 500)
        assert error["code"] == "internal_error"
        assert "secret" not in answer.text
        assert service.client.get("/healthz").status_code == 200


def test_refusals_are_counted_by_code(service: Served) -> None:
    series = 'constrained_refusals_total{code="model_not_found"}'
    before = service.metric(series)
    post(service, {**ask(STRING), "model": "other"})
    assert service.metric(series) == before + 1
