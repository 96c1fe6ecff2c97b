"""The official `openai` client, unmodified, against the live service."""

from __future__ import annotations

import json
from collections.abc import Iterator

import openai
import pytest
from pydantic import BaseModel

from api.settings import Settings
from tests.api.server import served
from tests.api.synthetic import FREE_TEXT, SyntheticBackend

MESSAGES: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


PERSON_FORMAT: openai.types.shared_params.ResponseFormatJSONSchema = {
    "type": "json_schema",
    "json_schema": {"name": "person", "schema": Person.model_json_schema(), "strict": True},
}


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    # Heartbeats between nearly all chunks, for they once broke this client.
    with (
        served(SyntheticBackend(delay_s=0.003), Settings(heartbeat_s=0.001)) as service,
        openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["synthetic"]
    assert client.models.retrieve("synthetic").owned_by == "constrained"


def test_whole(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(model="synthetic", messages=MESSAGES, response_format=PERSON_FORMAT, n=2)
    assert [choice.finish_reason for choice in completion.choices] == ["stop", "stop"]
    for choice in completion.choices:
        Person.model_validate_json(choice.message.content or "")
    assert completion.usage
    assert completion.usage.completion_tokens > 0


def test_parse_into_a_model(client: openai.OpenAI) -> None:
    completion = client.chat.completions.parse(model="synthetic", messages=MESSAGES, response_format=Person)
    assert isinstance(completion.choices[0].message.parsed, Person)


def test_stream(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="synthetic",
        messages=MESSAGES,
        response_format=PERSON_FORMAT,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert chunks[-1].usage
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert Person.model_validate_json(text)
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"


def test_stream_helper(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(model="synthetic", messages=MESSAGES, response_format=Person) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert kinds.count("content.done") == 1
    assert isinstance(final.choices[0].message.parsed, Person)


def test_free_text(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(model="synthetic", messages=MESSAGES)
    assert completion.choices[0].message.content == FREE_TEXT


def test_json_object(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(model="synthetic", messages=MESSAGES, response_format={"type": "json_object"})
    assert json.loads(completion.choices[0].message.content or "") == {}


def test_an_extension_by_extra_body(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(
        model="synthetic", messages=MESSAGES, extra_body={"structured_outputs": {"json": {"type": "integer"}}, "top_k": 5}
    )
    assert isinstance(json.loads(completion.choices[0].message.content or ""), int)


def test_a_refusal_names_the_field(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model="synthetic", messages=MESSAGES, store=True)
    assert (refusal.value.param, refusal.value.code) == ("store", "unsupported_field")


def test_an_unknown_model(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as refusal:
        client.chat.completions.create(model="other", messages=MESSAGES)
    assert refusal.value.code == "model_not_found"


def test_a_failure_midway_raises(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="synthetic", messages=[{"role": "user", "content": "fail"}], stream=True)
    with pytest.raises(openai.APIError, match="the fault is ours"):
        list(stream)


# -- tools


class Weather(BaseModel):
    city: str
    days: int


def test_a_tool_is_parsed(client: openai.OpenAI) -> None:
    completion = client.chat.completions.parse(
        model="synthetic", messages=MESSAGES, tools=[openai.pydantic_function_tool(Weather)], tool_choice="required"
    )
    calls = completion.choices[0].message.tool_calls
    assert calls
    assert isinstance(calls[0].function.parsed_arguments, Weather)


def test_tools_are_streamed(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model="synthetic", messages=MESSAGES, tools=[openai.pydantic_function_tool(Weather)]
    ) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert done[0].name == "Weather"
    assert isinstance(done[0].parsed_arguments, Weather)
    assert final.choices[0].finish_reason == "tool_calls"


def test_a_round_of_tools(client: openai.OpenAI) -> None:
    tools = [openai.pydantic_function_tool(Weather)]
    first = client.chat.completions.create(model="synthetic", messages=MESSAGES, tools=tools)
    message = first.choices[0].message
    assert message.tool_calls
    results: list[openai.types.chat.ChatCompletionMessageParam] = [
        {"role": "tool", "tool_call_id": call.id, "content": "rain"} for call in message.tool_calls
    ]
    history = [*MESSAGES, message.to_dict(), *results]
    second = client.chat.completions.create(model="synthetic", messages=history, tools=tools, tool_choice="none")  # type: ignore[arg-type]
    assert second.choices[0].message.content == FREE_TEXT


def test_logprobs(client: openai.OpenAI) -> None:
    completion = client.chat.completions.create(model="synthetic", messages=MESSAGES, logprobs=True, top_logprobs=2)
    logprobs = completion.choices[0].logprobs
    assert logprobs
    assert logprobs.content
    assert len(logprobs.content[0].top_logprobs) == 2


# -- responses


def test_a_response(client: openai.OpenAI) -> None:
    response = client.responses.create(model="synthetic", input="hello")
    assert (response.status, response.output_text) == ("completed", FREE_TEXT)
    again = client.responses.create(model="synthetic", input="more", previous_response_id=response.id)
    assert client.responses.retrieve(again.id).previous_response_id == response.id
    client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_a_response_is_parsed(client: openai.OpenAI) -> None:
    response = client.responses.parse(model="synthetic", input="hello", text_format=Person)
    assert isinstance(response.output_parsed, Person)


def test_a_response_is_streamed(client: openai.OpenAI) -> None:
    with client.responses.stream(model="synthetic", input="hello", text_format=Person) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds.count("response.output_text.done") == 1
    assert isinstance(final.output_parsed, Person)


def test_a_response_is_streamed_with_typed_deltas(client: openai.OpenAI) -> None:
    with client.responses.stream(
        model="synthetic", input="hello", text_format=Person, extra_body={"typed_deltas": True}
    ) as stream:
        kinds = {str(event.type) for event in stream}
    assert {"constrained.start", "constrained.delta", "response.completed"} <= kinds


def test_a_response_calls_a_tool(client: openai.OpenAI) -> None:
    tools = [openai.pydantic_function_tool(Weather)["function"]]
    tool: openai.types.responses.FunctionToolParam = {
        "type": "function",
        "name": "Weather",
        "parameters": tools[0]["parameters"],
        "strict": True,
    }
    with client.responses.stream(model="synthetic", input="hello", tools=[tool], tool_choice="required") as stream:
        for _ in stream:
            pass
        call = stream.get_final_response().output[0]
    assert isinstance(call, openai.types.responses.ParsedResponseFunctionToolCall)
    Weather.model_validate_json(call.arguments)


def test_a_response_in_the_background(client: openai.OpenAI) -> None:
    stream = client.responses.create(model="synthetic", input="hello", background=True, stream=True)
    events = list(stream)
    response_id = events[0].response.id  # type: ignore[union-attr]
    rest = list(client.responses.retrieve(response_id, stream=True, starting_after=4))
    assert [event.sequence_number for event in rest] == list(range(5, len(events)))
    hanging = client.responses.create(model="synthetic", input="hang", background=True)
    assert client.responses.cancel(hanging.id).status == "cancelled"


def test_a_refused_response_names_the_field(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.responses.create(model="synthetic", input="hello", truncation="auto")
    assert (refusal.value.param, refusal.value.code) == ("truncation", "unsupported_field")
