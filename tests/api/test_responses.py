"""`/v1/responses`: the order of the events, what is kept, and what is refused by name."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openai.types.responses import Response as OfficialResponse
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from api.envelope import calls_envelope, content_envelope
from api.settings import Settings
from constrained.stream import Fold, from_wire
from schemas.responses import RESPONSES_NEUTRAL, ResponseObject, TypedDeltaEvent, TypedStartEvent
from tests.api.server import Served, served, wait_until
from tests.api.synthetic import FREE_TEXT, SyntheticBackend
from tests.api.test_bad_input import refused

PATH = "/v1/responses"
COLOR = {
    "type": "object",
    "properties": {"color": {"enum": ["red", "blue"]}, "why": {"type": "string"}},
    "required": ["color", "why"],
}
COLOR_TEXT = {"format": {"type": "json_schema", "name": "color", "schema": COLOR, "strict": True}}
CITY = {"type": "object", "properties": {"city": {"enum": ["Ulm"]}}, "required": ["city"], "additionalProperties": False}
WEATHER = {"type": "function", "name": "weather", "description": "Forecast.", "parameters": CITY, "strict": True}
OFFICIAL_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    """Gives an event for each token."""
    with served(SyntheticBackend(), Settings(chat_coalesce_ms=0)) as running:
        yield running


def create(service: Served, given: Any = "hello", **fields: Any) -> dict[str, Any]:
    answer = service.client.post(PATH, json={"model": "synthetic", "input": given, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store, no-transform"
    ResponseObject.model_validate(answer.json())
    OfficialResponse.model_validate(answer.json())
    return dict(answer.json())


def parsed(text: str) -> list[dict[str, Any]]:
    """The events of a stream, each one that the official client knows or an extension of ours."""
    events = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        check_event(event)
        events.append(event)
    return events


def check_event(event: dict[str, Any]) -> None:
    if event["type"] == "constrained.delta":
        TypedDeltaEvent.model_validate(event)
    elif event["type"] == "constrained.start":
        TypedStartEvent.model_validate(event)
    elif event["type"] != "response.cancelled":
        OFFICIAL_EVENT.validate_python(event)


def events_of(service: Served, given: Any = "hello", **fields: Any) -> list[dict[str, Any]]:
    with service.client.stream("POST", PATH, json={"input": given, "stream": True, **fields}) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["x-accel-buffering"] == "no"
        events = parsed(answer.read().decode())
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def id_of_stream(answer: httpx.Response) -> str:
    """The id of a response whose stream has just begun."""
    lines = answer.iter_lines()
    assert next(lines) == "event: response.created"
    return str(json.loads(next(lines).removeprefix("data: "))["response"]["id"])


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The types in order, repetitions once."""
    types = [event["type"].removeprefix("response.") for event in events]
    return [kind for place, kind in enumerate(types) if place == 0 or types[place - 1] != kind]


MESSAGE_KINDS = [
    "created",
    "in_progress",
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
    "completed",
]


def test_a_whole_response(service: Served) -> None:
    response = create(service, text=COLOR_TEXT, instructions="Be brief.", metadata={"a": "b"})
    (message,) = response["output"]
    (part,) = message["content"]
    assert json.loads(part["text"])["color"] == "red"
    assert (response["status"], message["status"], message["role"]) == ("completed", "completed", "assistant")
    assert response["text"]["format"]["schema"] == COLOR
    assert response["metadata"] == {"a": "b"}
    usage = response["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_tokens_details"]["cached_tokens"] == usage["input_tokens"] // 2
    assert usage["output_tokens_details"]["forced_tokens"] == usage["output_tokens"] // 2
    assert service.backend.prompts[-1].endswith("Be brief.\nhello")


def test_the_order_of_a_stream(service: Served) -> None:
    events = events_of(service, text=COLOR_TEXT)
    assert kinds(events) == MESSAGE_KINDS
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert sum(event["type"] == "response.output_text.delta" for event in events) > 3
    assert json.loads(text)["color"] == "red"
    assert [event["text"] for event in events if event["type"] == "response.output_text.done"] == [text]
    assert events[0]["response"]["output"] == []
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == text


def test_free_text_and_json_object(service: Served) -> None:
    assert create(service)["output"][0]["content"][0]["text"] == FREE_TEXT
    assert create(service, text={"format": {"type": "text"}})["output"][0]["content"][0]["text"] == FREE_TEXT
    assert create(service, text={"format": {"type": "json_object"}})["output"][0]["content"][0]["text"] == "{}"
    assert create(service, structured_outputs={"json": {"const": 1}})["output"][0]["content"][0]["text"] == "1"


def test_a_cut_response_is_incomplete(service: Served) -> None:
    events = events_of(service, max_output_tokens=2)
    assert kinds(events) == [*MESSAGE_KINDS[:5], "incomplete"]
    response = events[-1]["response"]
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"
    assert create(service, max_output_tokens=2)["status"] == "incomplete"


def test_a_failed_step(service: Served) -> None:
    events = events_of(service, "fail")
    assert kinds(events)[-1] == "failed"
    assert events[-1]["response"]["error"]["code"] == "server_error"
    assert "the step broke" not in json.dumps(events)
    answer = service.client.post(PATH, json={"input": "fail"})
    assert refused(answer, 500)["code"] == "internal_error"


def test_logprobs(service: Served) -> None:
    include = ["message.output_text.logprobs"]
    events = events_of(service, text=COLOR_TEXT, include=include, top_logprobs=1)
    deltas = [entry for event in events if event["type"] == "response.output_text.delta" for entry in event["logprobs"]]
    (part,) = events[-1]["response"]["output"][0]["content"]
    assert part["logprobs"] == deltas
    assert all(len(entry["top_logprobs"]) == 1 for entry in deltas)
    assert deltas


# -- tools


@pytest.mark.parametrize("choice", ["required", "auto", None, {"type": "function", "name": "weather"}])
def test_a_call(service: Served, choice: Any) -> None:
    call = create(service, tools=[WEATHER], tool_choice=choice)["output"][0]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "weather", {"city": "Ulm"})
    assert call["call_id"].startswith("call_")


def test_calls_are_streamed(dictated: Served) -> None:
    dictated.backend.reset(calls_envelope([("weather", {"city": "Ulm"})] * 2), 2)
    events = events_of(dictated, tools=[WEATHER])
    one = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
    assert [kind for kind in kinds(events) if "." in kind] == one * 2
    done = [event for event in events if event["type"] == "response.function_call_arguments.done"]
    assert [event["output_index"] for event in done] == [0, 1]
    assert [json.loads(event["arguments"]) for event in done] == [{"city": "Ulm"}] * 2


def test_auto_may_answer_in_words(dictated: Served) -> None:
    dictated.backend.reset(content_envelope("Grüße\n🙂"), 2)
    events = events_of(dictated, tools=[WEATHER])
    assert kinds(events) == MESSAGE_KINDS
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Grüße\n🙂"


def test_results_of_calls_go_back(service: Served) -> None:
    call = create(service, tools=[WEATHER])["output"][0]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    create(service, [{"role": "user", "content": "Weather?"}, call, result], tools=[WEATHER], tool_choice="none")
    lines = service.backend.prompts[-1].split("\n")
    assert lines == ["Weather?", calls_envelope([("weather", {"city": "Ulm"})]), '{"result_of": "weather", "result": "rain"}']


# -- typed deltas


def test_typed_deltas_fold_to_the_text(service: Served) -> None:
    events = events_of(service, text=COLOR_TEXT, typed_deltas=True)
    start = next(event for event in events if event["type"] == "constrained.start")
    assert (start["schema"], start["order"]) == (COLOR, ["/color", "/why"])
    fold = Fold()
    for event in events:
        for op in event["ops"] if event["type"] == "constrained.delta" else []:
            fold.apply(from_wire(op))
    assert fold.value == json.loads(events[-1]["response"]["output"][0]["content"][0]["text"])


def test_typed_deltas_are_merged_within_the_window() -> None:
    with served(SyntheticBackend(), Settings(chat_coalesce_ms=1000)) as service:
        began_at = time.monotonic()
        events = events_of(service, text=COLOR_TEXT, typed_deltas=True)
        num_windows = int(time.monotonic() - began_at)
    assert sum(event["type"] == "constrained.delta" for event in events) <= 2 + num_windows


# -- what is kept


def test_a_response_is_kept_unless_it_is_not_to_be(service: Served) -> None:
    response = create(service, text=COLOR_TEXT)
    assert service.client.get(f"{PATH}/{response['id']}").json() == response
    unkept = create(service, store=False)
    assert refused(service.client.get(f"{PATH}/{unkept['id']}"), 404)["code"] == "response_not_found"
    assert service.client.delete(f"{PATH}/{response['id']}").json()["deleted"] is True
    assert service.client.get(f"{PATH}/{response['id']}").status_code == 404


def test_a_conversation_goes_on(service: Served) -> None:
    first = create(service, "one", instructions="Be brief.")
    second = create(service, "two", previous_response_id=first["id"], instructions="Be long.")
    assert service.backend.prompts[-1] == f"Be long.\none\n{FREE_TEXT}\ntwo"
    create(service, "three", previous_response_id=second["id"])
    assert service.backend.prompts[-1] == f"one\n{FREE_TEXT}\ntwo\n{FREE_TEXT}\nthree"


def test_an_item_is_referred_to(service: Served) -> None:
    item = create(service, "one")["output"][0]
    create(service, [{"type": "item_reference", "id": item["id"]}, {"role": "user", "content": "two"}])
    assert service.backend.prompts[-1] == f"{FREE_TEXT}\ntwo"


def test_input_items(service: Served) -> None:
    given = [{"role": "user", "content": text} for text in "abc"]
    path = f"{PATH}/{create(service, given)['id']}/input_items"
    items = service.client.get(path).json()
    assert [item["content"] for item in items["data"]] == ["c", "b", "a"]
    page = service.client.get(path, params={"order": "asc", "limit": 2, "after": items["last_id"]}).json()
    assert ([item["content"] for item in page["data"]], page["has_more"]) == (["b", "c"], False)
    assert refused(service.client.get(path, params={"after": "msg_x"}))["param"] == "after"


def test_only_so_many_are_kept_and_for_so_long() -> None:
    with served(SyntheticBackend(), Settings(responses_kept=2)) as service:
        ids = [create(service)["id"] for _ in range(4)]
        found = [service.client.get(f"{PATH}/{response_id}").status_code for response_id in ids]
    assert found in ([404, 200, 200, 200], [404, 404, 200, 200])
    with served(SyntheticBackend(), Settings(responses_kept_s=0.0)) as service:
        assert service.client.get(f"{PATH}/{create(service)['id']}").status_code == 404


# -- in the background


def test_the_background_goes_on_by_itself(service: Served) -> None:
    response = create(service, background=True, text=COLOR_TEXT)
    path = f"{PATH}/{response['id']}"
    assert response["status"] in {"in_progress", "completed"}
    wait_until(lambda: service.client.get(path).json()["status"] == "completed")
    events = parsed(service.client.get(path, params={"stream": "true"}).text)
    assert kinds(events) == MESSAGE_KINDS
    later = parsed(service.client.get(path, params={"stream": "true", "starting_after": 3}).text)
    assert later == events[4:]
    assert service.client.post(f"{path}/cancel").json()["status"] == "completed"


def test_a_reader_that_goes_leaves_the_background_be(service: Served) -> None:
    with service.client.stream("POST", PATH, json={"input": "slow", "background": True, "stream": True}) as answer:
        response_id = id_of_stream(answer)
    wait_until(lambda: service.client.get(f"{PATH}/{response_id}").json()["status"] == "completed")


def test_the_background_is_cancelled(service: Served) -> None:
    path = f"{PATH}/{create(service, 'hang', background=True)['id']}"
    assert service.client.get(path).json()["status"] == "in_progress"
    for _ in range(2):
        assert service.client.post(f"{path}/cancel").json()["status"] == "cancelled"
    assert service.backend.generations[-1].cancelled.is_set()
    assert kinds(parsed(service.client.get(path, params={"stream": "true"}).text))[-1] == "cancelled"


def test_the_background_is_stopped_where_it_is_deleted(service: Served) -> None:
    response = create(service, "hang", background=True)
    service.client.delete(f"{PATH}/{response['id']}")
    wait_until(service.backend.generations[-1].cancelled.is_set)


def test_a_reader_that_goes_ends_what_is_not_in_the_background(service: Served) -> None:
    with service.client.stream("POST", PATH, json={"input": "hang", "stream": True}) as answer:
        response_id = id_of_stream(answer)
    wait_until(service.backend.generations[-1].cancelled.is_set)
    wait_until(lambda: service.client.get(f"{PATH}/{response_id}").json()["status"] == "cancelled")


def test_a_background_failure_is_told(service: Served) -> None:
    path = f"{PATH}/{create(service, 'fail', background=True)['id']}"
    wait_until(lambda: service.client.get(path).json()["status"] == "failed")


# -- bad input


def test_fields_that_ask_for_nothing_are_taken(service: Served) -> None:
    neutral = {name: values[-1] for name, values in RESPONSES_NEUTRAL.items()}
    quiet = {"user": "me", "service_tier": "auto", "include": ["reasoning.encrypted_content"], "tools": [], "temperature": None}
    create(service, **neutral, **quiet)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 7}, "input"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "reasoning", "id": "x", "summary": []}]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": ""}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call", "call_id": "x", "name": "f", "arguments": "{"}]}, "input[0].arguments"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].id"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"text": {"verbosity": "high"}}, "text.verbosity"),
        ({"text": COLOR_TEXT, "structured_outputs": {"json": COLOR}}, "structured_outputs"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [WEATHER, WEATHER]}, "tools[1].name"),
        ({"tools": [{**WEATHER, "parameters": {"required": "a"}}]}, "tools[0].parameters/required"),
        ({"tool_choice": {"type": "function", "name": "f"}, "tools": [WEATHER]}, "tool_choice.name"),
        ({"include": ["everything"]}, "include[0]"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"background": True, "store": False}, "store"),
        ({"typed_deltas": True}, "typed_deltas"),
        ({"typed_deltas": True, "structured_outputs": {"regex": "a"}}, "typed_deltas"),
        ({"typed_deltas": True, "text": COLOR_TEXT, "tools": [WEATHER]}, "typed_deltas"),
        ({"truncation": "auto"}, "truncation"),
        ({"reasoning": {"effort": "high"}}, "reasoning"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_tokens": 5}, "max_tokens"),
    ],
)
def test_wrong_fields_are_named(service: Served, fields: dict[str, Any], param: str) -> None:
    answer = service.client.post(PATH, json={"input": "hello", **fields})
    assert refused(answer, 404 if param.endswith(("_id", ".id")) and "call" not in param else 400)["param"] == param


def test_wrong_ways_to_follow(service: Served) -> None:
    path = f"{PATH}/{create(service)['id']}"
    assert refused(service.client.get(path, params={"stream": "true"}))["param"] == "stream"
    assert refused(service.client.get(path, params={"starting_after": 1}))["param"] == "starting_after"
    assert refused(service.client.post(f"{path}/cancel"))["param"] == "response_id"
    path = f"{PATH}/{create(service, background=True)['id']}"
    assert refused(service.client.get(path, params={"stream": "true", "starting_after": 9999}))["param"] == "starting_after"
    for method in ("GET", "DELETE"):
        assert refused(service.client.request(method, f"{PATH}/resp_x"), 404)["param"] == "response_id"
