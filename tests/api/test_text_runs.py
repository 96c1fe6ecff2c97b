"""Constraints on raw text by the native protocol: one string at the root, opened, written and closed."""

from __future__ import annotations

from typing import Any

import pytest

from api.settings import Settings
from schemas.requests import StructuredResponse
from tests.api.server import Served, served, stream_events
from tests.api.synthetic import SyntheticBackend
from tests.api.test_bad_input import refused
from tests.api.test_stream import fold_of

CONSTRAINTS: list[tuple[dict[str, Any], str]] = [
    ({"regex": r"[0-9]{3}-[a-zü]+"}, "123-grün"),
    ({"choice": ["red", 'blue "🙂"\n']}, 'blue "🙂"\n'),
    ({"grammar": 'start: WORD (" " WORD)*\nWORD: /[a-z]+/'}, "one two"),
]
MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(("constraint", "text"), CONSTRAINTS)
@pytest.mark.parametrize("token_bytes", [1, 3, 100])
def test_a_text_is_told_as_one_string(dictated: Served, constraint: dict[str, Any], text: str, token_bytes: int) -> None:
    dictated.backend.reset(text, token_bytes)
    events = stream_events(dictated.client, {**constraint, "messages": MESSAGES, "coalesce_ms": 0})
    start, *deltas, done = events
    assert start.data["schema"]["type"] == "string"
    ops = [op for delta in deltas for op in delta.data["ops"]]
    assert (ops[0], ops[-1]) == ({"op": "open", "path": "", "type": "string"}, {"op": "close", "path": ""})
    assert fold_of(events) == text
    assert (done.data["status"], done.data["valid"]) == ("complete", True)


@pytest.mark.parametrize(("constraint", "text"), CONSTRAINTS)
def test_a_text_as_one_answer(dictated: Served, constraint: dict[str, Any], text: str) -> None:
    dictated.backend.reset(text, 2)
    answer = dictated.client.post("/v1/structured", json={**constraint, "messages": MESSAGES, "n": 2})
    for choice in StructuredResponse.model_validate_json(answer.content).choices:
        assert (choice.text, choice.value, choice.valid) == (text, text, True)


def test_a_cut_text_has_no_value(dictated: Served) -> None:
    dictated.backend.reset("aaaaaa", 1)
    answer = dictated.client.post("/v1/structured", json={"regex": "a+", "messages": MESSAGES, "max_tokens": 3}).json()
    (choice,) = answer["choices"]
    assert (choice["text"], choice["value"], choice["finish_reason"], choice["valid"]) == ("aaa", None, "length", False)


def test_the_bare_text(dictated: Served) -> None:
    dictated.backend.reset("blue", 2)
    body = {"choice": ["blue"], "messages": MESSAGES}
    answer = dictated.client.post("/v1/structured/stream", json=body, headers={"accept": "text/plain"})
    assert answer.text == "blue"


def test_the_model_is_told_its_constraint_unless_it_is_not_to_be(service: Served) -> None:
    for told in (True, False):
        service.client.post("/v1/structured", json={"choice": ["a", "b"], "messages": MESSAGES, "schema_in_prompt": told})
        assert ('["a","b"]' in service.backend.prompts[-1]) == told


def test_a_text_is_steered_and_cannot_be_edited() -> None:
    with served(SyntheticBackend("abcdefgh", token_bytes=1), Settings(heartbeat_s=0.05)) as service:
        body = {"regex": "[a-h]+", "prompt": "hang", "coalesce_ms": 0}
        with service.client.stream("POST", "/v1/structured/stream", json=body) as stream:
            lines = stream.iter_lines()
            run = next(line for line in lines if line.startswith("id: ")).removeprefix("id: ").partition(":")[0]
            next(line for line in lines if '"add":"d"' in line)
            refusal = service.client.post(f"/v1/structured/{run}/edit", json={"path": "", "value": "x"})
            assert refused(refusal)["code"] == "path_open"
            answer = service.client.post(f"/v1/structured/{run}/steer", json={"text": "go on"})
            assert answer.status_code == 200, answer.text
            text = "\n".join(lines)
        assert "event: done" in text
        assert service.backend.prefixes[-1] == b"abcd"
