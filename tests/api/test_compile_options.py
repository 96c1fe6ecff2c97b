"""The options of a compile, asked for natively and through the OpenAI-compatible endpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.settings import Settings
from constrained.options import CompileOptions
from schemas.requests import CompileFields
from tests.api.server import Served, ask, served
from tests.api.synthetic import SyntheticBackend

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
OPTIONS: dict[str, Any] = {
    "whitespace": "indented",
    "max_whitespace": 4,
    "property_order": "any",
    "spelling": "permissive",
    "formats": "annotate",
    "custom_formats": {"plate": "[A-Z]{3}"},
    "unknown_formats": "refuse",
    "nullable": True,
}


class Noting(SyntheticBackend):
    """Notes the options of each compile."""

    def __init__(self, *documents: str) -> None:
        super().__init__(*documents)
        self.asked: list[CompileOptions] = []
        compile_schema = self.compile

        def noting(schema: Any, options: CompileOptions) -> Any:
            self.asked.append(options)
            return compile_schema(schema, options)

        self.compile = noting


def chat(options: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    body = {"messages": [{"role": "user", "content": "hello"}], "response_format": wanted, **fields}
    return body if options is None else {**body, "structured_outputs": {"options": options}}


def test_requests_know_every_option_but_the_operators() -> None:
    assert set(CompileFields.model_fields) == set(OPTIONS) == {*CompileOptions.__slots__} - {"registry", "limits"}
    assert CompileOptions(**CompileFields().model_dump()) == CompileOptions()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/structured", ask(SCHEMA, **OPTIONS)),
        ("/v1/chat/completions", chat(OPTIONS)),
        ("/v1/completions", {"prompt": "x", "max_tokens": 50, "structured_outputs": {"json": SCHEMA, "options": OPTIONS}}),
        (
            "/v1/completions",
            {"prompt": "x", "max_tokens": 50, "guided_json": SCHEMA, "structured_outputs": {"options": OPTIONS}},
        ),
        ("/v1/responses", {"input": "x", "structured_outputs": {"json": SCHEMA, "options": OPTIONS}}),
    ],
)
def test_every_option_reaches_the_compiler(path: str, body: dict[str, Any]) -> None:
    backend = Noting('{"a":1}')
    with served(backend) as service:
        answer = service.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        assert service.client.post(path, json=body).status_code == 200
    (options,) = backend.asked
    assert {name: getattr(options, name) for name in OPTIONS} == OPTIONS


def test_limits_are_the_operators() -> None:
    backend = Noting('{"a":1}')
    settings = Settings(compile_limits={"max_digits": 7, "max_nodes": 3})  # type: ignore[arg-type]  # as a file gives them
    with served(backend, settings) as service:
        assert service.client.post("/v1/structured", json=ask(SCHEMA)).status_code == 200
        assert (backend.asked[0].limits.max_digits, backend.asked[0].limits.max_nodes) == (7, 3)
        deep = {"type": "object", "properties": {str(n): {"type": "object"} for n in range(9)}}
        for path, body in (("/v1/structured", ask(deep)), ("/v1/schemas/check", {"schema": deep})):
            told = service.client.post(path, json=body).json()["error"]
            assert told["code"] == "schema_too_complex", told
        refused = service.client.post("/v1/structured", json=ask(SCHEMA, limits={"max_nodes": 10**9}))
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "limits")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"spelling": "creative"}, "spelling"),
        ({"formats": None}, "formats"),
        ({"max_whitespace": -1}, "max_whitespace"),
        ({"custom_formats": {"plate": 3}}, "custom_formats.plate"),
        ({"nullable": "yes"}, "nullable"),
        ({"registry": {}}, "registry"),
    ],
)
def test_a_bad_option_is_named(service: Served, fields: dict[str, Any], param: str) -> None:
    for path, body, at in (
        ("/v1/structured", ask(SCHEMA, **fields), param),
        ("/v1/schemas/check", {"schema": SCHEMA, **fields}, param),
        ("/v1/chat/completions", chat(fields), f"structured_outputs.options.{param}"),
    ):
        answer = service.client.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, at)


def test_a_custom_format_that_is_no_pattern_is_the_callers_fault(service: Served) -> None:
    schema = {"type": "string", "format": "plate"}
    answer = service.client.post("/v1/structured", json=ask(schema, custom_formats={"plate": "(["}))
    assert answer.status_code == 400
    assert "plate" in json.dumps(answer.json()["error"])


@pytest.mark.parametrize("constraint", [{"regex": "a"}, {"choice": ["a"]}])
def test_an_option_without_use_is_refused(service: Served, constraint: dict[str, Any]) -> None:
    body = {"prompt": "x", "max_tokens": 20, **constraint}
    refused = service.client.post("/v1/structured", json={**body, "nullable": True})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "nullable")
    same_as_default = service.client.post("/v1/structured", json={**body, "nullable": False})
    assert same_as_default.status_code == 200
    structured = {**constraint, "options": {"spelling": "permissive"}}
    refused = service.client.post("/v1/completions", json={"prompt": "x", "structured_outputs": structured})
    assert refused.json()["error"]["param"] == "structured_outputs.options.spelling"


def test_options_need_a_constraint_and_no_tools(service: Served) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    for body in (chat({"nullable": True}, response_format={"type": "text"}), chat({"nullable": True}, tools=[tool])):
        answer = service.client.post("/v1/chat/completions", json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "structured_outputs.options")


def test_what_nullable_allows_counts_as_valid(dictated: Served) -> None:
    dictated.backend.reset('{"a":null}', 3)
    schema = {"type": "object", "properties": {"a": {"type": "integer", "nullable": True}}, "required": ["a"]}
    answer = dictated.client.post("/v1/structured", json=ask(schema, nullable=True)).json()
    assert answer["choices"][0]["valid"] is True
    assert dictated.client.post("/v1/structured", json=ask(schema)).json()["choices"][0]["valid"] is False


def test_options_decide_what_is_supported(service: Served) -> None:
    schema = {"type": "string", "format": "plate"}
    check = {"schema": schema, "unknown_formats": "refuse"}
    assert service.client.post("/v1/schemas/check", json=check).json()["supported"] is False
    known = service.client.post("/v1/schemas/check", json={**check, "custom_formats": {"plate": "[A-Z]{3}"}}).json()
    assert (known["supported"], known["min_bytes"]) == (True, 5)
