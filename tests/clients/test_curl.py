"""`curl -N`: what a person sees who has nothing else."""

from __future__ import annotations

import json

from tests.api.conftest import service as service
from tests.api.server import Served
from tests.clients.programs import curl

SCHEMA = {"type": "object", "properties": {"color": {"enum": ["red"]}}, "required": ["color"]}
MESSAGES = [{"role": "user", "content": "hello"}]


def post(service: Served, path: str, body: object) -> str:
    header = "content-type: application/json"
    return curl(f"{service.url}{path}", "--header", header, "--data", json.dumps(body))


def test_native(service: Served) -> None:
    text = post(service, "/v1/structured/stream", {"schema": SCHEMA, "messages": MESSAGES})
    events = [line for line in text.splitlines() if line.startswith("event: ")]
    assert (events[0], events[-1]) == ("event: start", "event: done")


def test_chat(service: Served) -> None:
    response_format = {"type": "json_schema", "json_schema": {"name": "color", "schema": SCHEMA}}
    text = post(service, "/v1/chat/completions", {"messages": MESSAGES, "response_format": response_format, "stream": True})
    assert text.endswith("data: [DONE]\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]
    content = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    assert json.loads(content) == {"color": "red"}


def test_responses(service: Served) -> None:
    text = post(service, "/v1/responses", {"input": "hello", "stream": True})
    assert text.startswith("event: response.created\ndata: ")
    assert "event: response.completed\ndata: " in text
