"""Function tools of a chat: who may be called, what comes back, whole and as a stream, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.envelope import calls_envelope, content_envelope
from api.settings import Settings
from schemas.openai import ChatCompletion
from tests.api.server import Served, served
from tests.api.synthetic import SyntheticBackend
from tests.api.test_bad_input import refused
from tests.api.test_chat import PATH, chat, chunks_of

CITY = {
    "type": "object",
    "properties": {"city": {"$ref": "#/$defs/city"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
    "$defs": {"city": {"enum": ["Ulm", "Bonn"]}},
}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Forecast.", "parameters": CITY, "strict": True}}
CLOCK = {"type": "function", "function": {"name": "clock"}}
NAMED = {"type": "function", "function": {"name": "weather"}}
ARGUMENTS = {"city": "Ulm", "days": 37}


@pytest.fixture(scope="module")
def prompt_service() -> Iterator[Served]:
    """A service that gives one delta for each token."""
    with served(SyntheticBackend(), Settings(chat_coalesce_ms=0)) as running:
        yield running


def ask(service: Served, **fields: Any) -> Any:
    answer = service.client.post(PATH, json=chat(**fields))
    assert answer.status_code == 200, answer.text
    ChatCompletion.model_validate(answer.json())
    return answer.json()["choices"][0]


def calls_in(choice: Any) -> list[tuple[str, Any]]:
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in choice["message"]["tool_calls"]]


@pytest.mark.parametrize("choice", ["required", "auto", None, NAMED])
def test_a_call(service: Served, choice: Any) -> None:
    answer = ask(service, tools=[WEATHER, CLOCK], tool_choice=choice)
    assert calls_in(answer)[0] == ("weather", ARGUMENTS)
    assert answer["message"]["content"] is None
    assert answer["message"]["tool_calls"][0]["id"].startswith("call_")
    assert answer["finish_reason"] == ("stop" if choice is NAMED else "tool_calls")


def test_calls_are_streamed(prompt_service: Served) -> None:
    for choice in ("required", NAMED):
        chunks = chunks_of(prompt_service, chat(tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False))
        choices = [chunk["choices"][0] for chunk in chunks]
        assert choices[0]["delta"] == {"role": "assistant", "content": None}
        deltas = [call for part in choices for call in part["delta"].get("tool_calls", [])]
        assert deltas[0]["id"].startswith("call_")
        assert deltas[0]["type"] == "function"
        assert deltas[0]["function"]["name"] == "weather"
        assert all(set(delta) == {"index", "function"} and delta["index"] == 0 for delta in deltas[1:])
        assert len(deltas) > 3
        assert json.loads("".join(delta["function"]["arguments"] for delta in deltas)) == ARGUMENTS
        assert all(not part["delta"].get("content") for part in choices)
        assert choices[-1] == {"index": 0, "delta": {}, "finish_reason": "stop" if choice is NAMED else "tool_calls"}


def test_several_calls(dictated: Served) -> None:
    dictated.backend.reset(calls_envelope([("weather", ARGUMENTS), ("clock", {})]), 3)
    answer = ask(dictated, tools=[WEATHER, CLOCK])
    assert calls_in(answer) == [("weather", ARGUMENTS), ("clock", {})]
    chunks = chunks_of(dictated, chat(tools=[WEATHER, CLOCK]))
    deltas = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
    assert {delta["index"] for delta in deltas} == {0, 1}


def test_auto_may_answer_in_words(dictated: Served) -> None:
    dictated.backend.reset(content_envelope('Grüße,\n"Ada" 🙂'), 2)
    answer = ask(dictated, tools=[WEATHER])
    assert (answer["message"]["content"], answer["message"]["tool_calls"]) == ('Grüße,\n"Ada" 🙂', None)
    assert answer["finish_reason"] == "stop"
    chunks = chunks_of(dictated, chat(tools=[WEATHER]))
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == 'Grüße,\n"Ada" 🙂'


def test_auto_may_answer_by_the_response_format(dictated: Served) -> None:
    response_format = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "array"}}}
    dictated.backend.reset('{"content":[1,{"a":[]}]}', 2)
    answer = ask(dictated, tools=[WEATHER], response_format=response_format)
    assert answer["message"]["content"] == '[1,{"a":[]}]'
    assert "content_schema" in dictated.backend.prompts[-1]


def test_none_means_plain_text(service: Served) -> None:
    answer = ask(service, tools=[WEATHER], tool_choice="none")
    assert answer["message"]["content"]
    assert "weather" not in service.backend.prompts[-1]


def test_the_model_is_told_of_the_tools(service: Served) -> None:
    for choice in ("auto", "required", NAMED):
        ask(service, tools=[WEATHER], tool_choice=choice)
        prompt = service.backend.prompts[-1]
        assert '"name":"weather","description":"Forecast.","parameters":{' in prompt
        assert ('{"content":' in prompt.replace(" ", "")) == (choice == "auto")


def test_some_of_the_tools_are_allowed(service: Served) -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "clock"}}]}
    answer = ask(service, tools=[WEATHER, CLOCK], tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    assert {name for name, _ in calls_in(answer)} == {"clock"}


def test_a_conversation_with_calls_and_results(service: Served) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}
    messages = [
        {"role": "user", "content": "And the weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "c2"}], "refusal": None},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "sun"}]},
        {"role": "assistant", "content": "Mixed."},
        {"role": "user", "content": "Thanks"},
    ]
    assert service.client.post(PATH, json={"messages": messages}).status_code == 200
    assert service.backend.prompts[-1].split("\n") == [
        "And the weather?",
        calls_envelope([("weather", {"city": "Ulm"})] * 2),
        '{"result_of": "weather", "result": "rain"}',
        '{"result_of": "weather", "result": "sun"}',
        "Mixed.",
        "Thanks",
    ]
    assert service.client.post(PATH, json={"messages": messages, "tools": [WEATHER]}).status_code == 200
    assert content_envelope("Mixed.") in service.backend.prompts[-1]


def with_parameters(parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools[0].type"),
        ({"tools": [CLOCK, CLOCK]}, "tools[1].function.name"),
        ({"tools": [CLOCK] * 129}, "tools"),
        ({"tools": [with_parameters({"type": "string"})]}, "tools[0].function.parameters.type"),
        ({"tools": [CLOCK, with_parameters({"required": "a"})]}, "tools[1].function.parameters/required"),
        (
            {"tools": [with_parameters({"properties": {"a": {"$ref": "#/no"}}})]},
            "tools[0].function.parameters/properties/a/$ref",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [CLOCK], "tool_choice": NAMED}, "tool_choice.function.name"),
        ({"tools": [CLOCK], "tool_choice": "any"}, "tool_choice"),
        (
            {"tools": [CLOCK], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}},
            "tool_choice.allowed_tools.tools",
        ),
        ({"tools": [CLOCK], "logprobs": True}, "logprobs"),
        ({"tools": [CLOCK], "guided_regex": "a"}, "tools"),
        ({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}, "messages[0].tool_call_id"),
        (
            {
                "messages": [
                    {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]},
                ]
            },
            "messages[0].tool_calls[0].function.arguments",
        ),
    ],
)
def test_wrong_tools_are_named(service: Served, fields: dict[str, Any], param: str) -> None:
    assert refused(service.client.post(PATH, json=chat(**fields)))["param"] == param
