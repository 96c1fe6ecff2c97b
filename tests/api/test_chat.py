"""`POST /v1/chat/completions`: the wire rules line by line, what is honoured and what is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.settings import Settings
from api.wire import to_json
from schemas.openai import NEUTRAL, ChatCompletion, ChatCompletionChunk
from tests.api.server import Served, served, wait_until
from tests.api.synthetic import FREE_TEXT, SyntheticBackend, compact
from tests.api.test_bad_input import refused

PATH = "/v1/chat/completions"
COLOR = {"type": "object", "properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}
COLOR_FORMAT = {"type": "json_schema", "json_schema": {"name": "color", "schema": COLOR, "strict": True}}


def chat(prompt: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"model": "synthetic", "messages": [{"role": "user", "content": prompt}], **fields}


def data_lines(service: Served, body: dict[str, Any]) -> list[str]:
    """The data of a stream, which must hold `data:` lines and blank lines alone."""
    with service.client.stream("POST", PATH, json={**body, "stream": True}) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        text = answer.read().decode()
    assert text.endswith("\n\n")
    events = text.removesuffix("\n\n").split("\n\n")
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [event.removeprefix("data: ") for event in events]


def chunks_of(service: Served, body: dict[str, Any]) -> list[dict[str, Any]]:
    *chunks, end = data_lines(service, body)
    assert end == "[DONE]"
    parsed = [json.loads(chunk) for chunk in chunks]
    for chunk in parsed:
        ChatCompletionChunk.model_validate(chunk)
    return parsed


def test_a_whole_answer(service: Served) -> None:
    answer = service.client.post(PATH, json=chat(response_format=COLOR_FORMAT))
    completion = ChatCompletion.model_validate_json(answer.content)
    (choice,) = completion.choices
    assert json.loads(choice.message.content) == {"color": "red"}
    assert choice.finish_reason == "stop"
    assert completion.model == "synthetic"
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens
    assert answer.headers["cache-control"] == "no-store, no-transform"


def test_the_order_of_a_stream(service: Served) -> None:
    chunks = chunks_of(service, chat(response_format=COLOR_FORMAT))
    choices = [chunk["choices"][0] for chunk in chunks]
    assert choices[0] == {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    assert all(set(choice["delta"]) == {"content"} and choice["finish_reason"] is None for choice in choices[1:-1])
    assert choices[-1] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert json.loads("".join(choice["delta"].get("content", "") for choice in choices)) == {"color": "red"}
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    assert all("usage" not in chunk for chunk in chunks)


def test_usage_comes_last_where_it_is_asked_for(service: Served) -> None:
    chunks = chunks_of(service, chat(response_format=COLOR_FORMAT, stream_options={"include_usage": True}))
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    assert chunks[-1]["choices"] == []
    usage = chunks[-1]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > usage["prompt_tokens"]


def test_choices_begin_in_index_order_and_end_each_with_a_reason() -> None:
    with served(SyntheticBackend('"a"', '"bb"', '"ccc"')) as service:
        chunks = chunks_of(service, chat(n=3, guided_json={"type": "string"}))
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["index"] for choice in choices[:3]] == [0, 1, 2]
    assert all(choice["delta"] == {"role": "assistant", "content": ""} for choice in choices[:3])
    assert [(choice["index"], choice["finish_reason"]) for choice in choices[-3:]] == [(0, "stop"), (1, "stop"), (2, "stop")]
    texts = ["".join(c["delta"].get("content", "") for c in choices if c["index"] == index) for index in range(3)]
    assert texts == ['"a"', '"bb"', '"ccc"']


def test_text_is_free_and_its_characters_are_whole() -> None:
    with served(SyntheticBackend(token_bytes=1), Settings(chat_coalesce_ms=0)) as service:
        chunks = chunks_of(service, chat(response_format={"type": "text"}))
        contents = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
        assert "".join(contents) == FREE_TEXT
        assert "🙂" in contents
        assert service.backend.prompts == ["hello"]


def test_a_cut_answer_has_the_reason_length(service: Served) -> None:
    answer = service.client.post(PATH, json=chat(max_completion_tokens=4)).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert chunks_of(service, chat(max_tokens=4))[-1]["choices"][0]["finish_reason"] == "length"


def test_json_object_admits_objects_alone(service: Served) -> None:
    answer = service.client.post(PATH, json=chat(response_format={"type": "json_object"})).json()
    assert json.loads(answer["choices"][0]["message"]["content"]) == {}
    assert service.backend.prompts[-1].startswith('{"type":"object"}')


@pytest.mark.parametrize(
    "fields",
    [
        {"guided_json": COLOR},
        {"guided_json": compact(COLOR)},
        {"structured_outputs": {"json": COLOR}},
        {"structured_outputs": {"json": compact(COLOR)}},
        {"response_format": {"type": "text"}, "guided_json": COLOR},
    ],
)
def test_the_spellings_of_a_schema(service: Served, fields: dict[str, Any]) -> None:
    answer = service.client.post(PATH, json=chat(**fields)).json()
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"color": "red"}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"guided_regex": r"\d{3}-[a-z]+"}, "123-abc"),
        ({"guided_choice": ["red", "blue – 日本"]}, "blue – 日本"),
        ({"guided_grammar": 'start: "a" NAME\nNAME: /[a-z]+/'}, "abc"),
        ({"structured_outputs": {"regex": "a+"}}, "aaa"),
        ({"structured_outputs": {"choice": ["x", "y"]}}, "y"),
        ({"structured_outputs": {"choices": ["x", "y"]}}, "x"),
        ({"structured_outputs": {"grammar": 'start: "x"+'}}, "xx"),
    ],
)
def test_constraints_on_raw_text(dictated: Served, fields: dict[str, Any], text: str) -> None:
    dictated.backend.reset(text, 2)
    invalid = dictated.metric("constrained_invalid_documents_total")
    answer = dictated.client.post(PATH, json=chat(**fields))
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == text
    assert dictated.backend.prompts[-1].startswith("Your whole answer must ")
    chunks = chunks_of(dictated, chat(**fields, schema_in_prompt=False))
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == text
    assert dictated.backend.prompts[-1] == "hello"
    assert dictated.metric("constrained_invalid_documents_total") == invalid


def test_a_text_that_breaks_its_constraint_is_counted(dictated: Served) -> None:
    dictated.backend.reset("green", 2)
    before = dictated.metric("constrained_invalid_documents_total")
    dictated.client.post(PATH, json=chat(guided_choice=["red", "blue"]))
    assert dictated.metric("constrained_invalid_documents_total") == before + 1


def test_structured_outputs_json_object(service: Served) -> None:
    answer = service.client.post(PATH, json=chat(structured_outputs={"json_object": True})).json()
    assert answer["choices"][0]["message"]["content"] == "{}"


def test_messages_as_the_official_api_allows_them(service: Served) -> None:
    messages = [
        {"role": "developer", "content": "be brief", "name": "me"},
        {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "three", "refusal": None, "tool_calls": [], "audio": None},
        {"role": "user", "content": "four"},
    ]
    assert service.client.post(PATH, json={"messages": messages}).status_code == 200
    assert service.backend.prompts[-1] == "be brief\none two\nthree\nfour"


def test_fields_that_ask_for_nothing_are_taken(service: Served) -> None:
    neutral = {name: values[-1] for name, values in NEUTRAL.items()}
    quiet = {"user": "me", "metadata": {"a": "b"}, "parallel_tool_calls": True, "service_tier": "auto"}
    assert service.client.post(PATH, json=chat(**neutral, **quiet)).status_code == 200


def test_sampling_fields_reach_the_engine(service: Served) -> None:
    fields = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "seed": 11, "max_tokens": 500, "min_tokens": 3}
    penalties = {"repetition_penalty": 1.1, "presence_penalty": -0.5, "frequency_penalty": 0.5, "priority": 2}
    assert service.client.post(PATH, json=chat(**fields, **penalties)).status_code == 200
    params = service.backend.params[-1]
    assert {name: getattr(params, name) for name in fields | penalties} == fields | penalties


def test_sampling_fields_of_other_shapes_reach_the_engine(service: Served) -> None:
    service.client.post(PATH, json=chat(stop="x", logit_bias={"5": 1, "7": -100}, stop_token_ids=[3], logprobs=True))
    params = service.backend.params[-1]
    assert (params.stop, params.logit_bias, params.stop_token_ids) == (("x",), {5: 1.0, 7: -100.0}, {3})
    assert params.logprobs == 0
    service.client.post(PATH, json=chat(stop=["a", "bc", ""], logprobs=True, top_logprobs=4, top_k=-1))
    params = service.backend.params[-1]
    assert (params.stop, params.logprobs, params.top_k) == (("a", "bc"), 4, 0)


def test_a_stop_string_ends_the_text(service: Served) -> None:
    answer = service.client.post(PATH, json=chat(stop=["你"])).json()
    assert answer["choices"][0]["message"]["content"] == FREE_TEXT.partition("你")[0]
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_logprobs_stand_beside_the_text() -> None:
    with served(SyntheticBackend('"aé"', token_bytes=1), Settings(chat_coalesce_ms=0)) as service:
        asked = chat(guided_json={"type": "string"}, logprobs=True, top_logprobs=2)
        (whole,) = service.client.post(PATH, json=asked).json()["choices"]
        streamed = [chunk["choices"][0] for chunk in chunks_of(service, asked)]
    entries = whole["logprobs"]["content"]
    assert bytes(entry["bytes"][0] for entry in entries).decode() == whole["message"]["content"] == '"aé"'
    assert entries[1]["token"] == "a"
    assert [(top["token"], top["logprob"]) for top in entries[1]["top_logprobs"]] == [("a", -0.25), ("@", -9999.0)]
    parts = [choice["logprobs"]["content"] for choice in streamed if choice.get("logprobs")]
    assert [entry for part in parts for entry in part] == entries


def test_logprobs_without_alternatives_and_where_none_are_asked_for(service: Served) -> None:
    (choice,) = service.client.post(PATH, json=chat(logprobs=True)).json()["choices"]
    assert choice["logprobs"]["content"]
    assert all(entry["top_logprobs"] == [] for entry in choice["logprobs"]["content"])
    (choice,) = service.client.post(PATH, json=chat()).json()["choices"]
    assert choice["logprobs"] is None


def test_usage_has_its_details(service: Served) -> None:
    usage = service.client.post(PATH, json=chat()).json()["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": usage["prompt_tokens"] // 2}
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 0, "forced_tokens": usage["completion_tokens"] // 2}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("functions", [{"name": "f"}]),
        ("modalities", ["text", "audio"]),
        ("reasoning_effort", "high"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(service: Served, name: str, value: Any) -> None:
    for stream in (False, True):
        error = refused(service.client.post(PATH, json=chat(**{name: value}, stream=stream)))
        assert (error["param"], error["code"]) == (name, "unsupported_field")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"structured_outputs": {"regex": "a+", "choice": ["a"]}}, "structured_outputs"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"structured_outputs": {"grammar": ""}}, "structured_outputs.grammar"),
        ({"structured_outputs": {"regex": "(", "json_object": None}}, "structured_outputs.regex"),
        ({"guided_regex": "a+", "guided_choice": ["a"]}, "guided_choice"),
        ({"guided_regex": "("}, "guided_regex"),
        ({"guided_grammar": "start: ["}, "guided_grammar"),
        ({"guided_choice": [1]}, "guided_choice[0]"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": {"json": COLOR, "json_object": True}}, "structured_outputs"),
        ({"structured_outputs": {"json": "{"}}, "structured_outputs.json"),
        ({"structured_outputs": {"structural_tag": "x"}}, "structured_outputs.structural_tag"),
        ({"guided_json": "nonsense"}, "guided_json"),
        ({"guided_json": COLOR, "response_format": COLOR_FORMAT}, "guided_json"),
        ({"response_format": {"type": "xml"}}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "response_format.json_schema.schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": True}}}, "response_format.json_schema.name"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0]"),
        ({"messages": [{"role": "user", "content": "x", "tool_calls": [{"id": "1"}]}]}, "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "content": None}]}, "messages[0]"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"logit_bias": {"a": 1}}, "logit_bias.a"),
        ({"logit_bias": {"5": 101}}, "logit_bias.5"),
        ({"frequency_penalty": 3}, "frequency_penalty"),
        ({"presence_penalty": -2.5}, "presence_penalty"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens"),
        ({"n": 17}, "n"),
        ({"stream_options": {"include_everything": True}}, "stream_options.include_everything"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]}, "messages[0].tool_calls[0].function"),
        ({"best_of": 2}, "best_of"),
    ],
)
def test_wrong_fields_are_named(service: Served, fields: dict[str, Any], param: str) -> None:
    assert refused(service.client.post(PATH, json=chat(**fields)))["param"] == param


def test_a_schema_that_is_refused_is_refused_before_the_stream(service: Served) -> None:
    response_format = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"pattern": r"(a)\1"}}}
    error = refused(service.client.post(PATH, json=chat(response_format=response_format, stream=True)))
    assert (error["param"], error["code"]) == ("/pattern", "unsupported_keyword")


def test_a_failed_step_ends_the_stream_with_one_error(service: Served) -> None:
    *chunks, last = data_lines(service, chat("fail"))
    assert json.loads(last)["error"]["code"] == "internal_error"
    assert "the step broke" not in last
    assert all("error" not in json.loads(chunk) for chunk in chunks)
    assert refused(service.client.post(PATH, json=chat("fail")), 500)["code"] == "internal_error"


def test_heartbeats_are_comments_with_one_newline() -> None:
    with served(SyntheticBackend(), Settings(heartbeat_s=0.02)) as service:
        with service.client.stream("POST", PATH, json=chat("hang", stream=True)) as answer:
            text = read_until(answer.iter_text(), ": ping\n: ping\n")
        assert ": ping\n\n" not in text
        (generation,) = service.backend.generations
        wait_until(generation.cancelled.is_set)


def read_until(pieces: Iterator[str], end: str) -> str:
    text = ""
    for piece in pieces:
        text += piece
        if end in text:
            break
    return text


@pytest.mark.parametrize("include_usage", [False, True])
@pytest.mark.parametrize("text", [FREE_TEXT, '\u2028\x85\u2029 \x00\x1f\x7f "\\/ \U0001f642', "x"])
def test_each_chunk_is_what_its_model_would_write(text: str, include_usage: bool) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "stream": True, "stream_options": {"include_usage": include_usage}}
    with served(SyntheticBackend(text, token_bytes=4), Settings(chat_coalesce_ms=0)) as service:
        sent = service.client.post("/v1/chat/completions", json=body).text
    chunks = [line.removeprefix("data: ") for line in sent.split("\n") if line.startswith("data: {")]
    models = [ChatCompletionChunk.model_validate_json(chunk) for chunk in chunks]
    assert [to_json(model.model_dump(exclude_unset=True)) for model in models] == chunks
    assert "".join(choice.delta.content or "" for model in models for choice in model.choices) == text
