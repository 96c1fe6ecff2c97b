"""The whole service over the real model: valid documents, a batch that outlives its members, the official client."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import jsonschema
import openai
import pytest
from pydantic import BaseModel

from api.backend import ModelBackend, load_backend
from api.settings import Settings
from tests.api.server import DEADLINE_S, ask, live, read_events, stream_events, wait_until
from tests.api.test_bad_input import refused
from tests.api.test_stream import PERSON, fold_of

if TYPE_CHECKING:
    from constrained.decode.async_engine import AsyncEngine
    from constrained.decode.model import LoadedModel

pytestmark = pytest.mark.model
PROMPT = "Invent a person who likes chess."


@pytest.fixture(scope="module")
def backend(real_model: LoadedModel) -> ModelBackend:
    """As the service loads it, but for the weights, which all tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.decode.model.load_model", lambda *_: real_model)
        return load_backend(Settings())


@pytest.fixture(scope="module")
def engine(backend: ModelBackend) -> AsyncEngine:
    return backend.engine


@pytest.fixture(scope="module")
def url(backend: ModelBackend) -> Iterator[str]:
    with live(backend) as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        yield client


def test_a_person_streams_and_is_valid(client: httpx.Client) -> None:
    events = stream_events(client, ask(PERSON, PROMPT, seed=1, max_tokens=200))
    done = events[-1].data
    assert (events[-1].name, done["status"], done["valid"]) == ("done", "complete", True)
    jsonschema.validate(fold_of(events), PERSON)
    assert len(events) > 5
    assert events[0].data["order"][:2] == ["/name", "/age"]
    assert 0 < done["timings"]["ttft_ms"] <= done["timings"]["total_ms"]
    fields = [op for event in events if event.name == "delta" for op in event.data["ops"] if op["op"] == "field"]
    assert {"/name", "/age", "/hobbies", "/address"} <= {op["path"] for op in fields}


def test_several_choices_are_valid_and_not_all_the_same(client: httpx.Client) -> None:
    answer = client.post("/v1/structured", json=ask(PERSON, PROMPT, seed=5, n=3, max_tokens=200)).json()
    assert [choice["valid"] for choice in answer["choices"]] == [True] * 3
    assert len({choice["text"] for choice in answer["choices"]}) > 1


def test_a_tight_budget_still_gives_a_whole_document(client: httpx.Client) -> None:
    done = stream_events(client, ask(PERSON, PROMPT, max_tokens=60))[-1].data
    assert (done["status"], done["valid"]) == ("complete", True)
    assert done["usage"]["completion_tokens"] <= 60


def test_what_cannot_fit_is_refused(client: httpx.Client) -> None:
    assert refused(client.post("/v1/structured/stream", json=ask(PERSON, max_tokens=3)))["param"] == "max_tokens"
    error = refused(client.post("/v1/structured/stream", json=ask(PERSON, "word " * 20_000)))
    assert (error["param"], error["code"]) == ("messages", "context_length_exceeded")


def test_a_reader_that_leaves_frees_the_engine(client: httpx.Client, engine: AsyncEngine) -> None:
    body = ask({"type": "array", "items": {"type": "string"}, "minItems": 100}, "List words.", max_tokens=1500)
    num_tokens = engine.stats().tokens
    with client.stream("POST", "/v1/structured/stream", json=body) as answer:
        events = read_events(answer.iter_lines())
        assert next(events).name == "start"
        assert next(events).name == "delta"
    wait_until(lambda: (engine.stats().running, engine.stats().waiting) == (0, 0))
    assert engine.stats().tokens < num_tokens + 1500
    assert stream_events(client, ask({"type": "boolean"}))[-1].data["valid"]


def test_a_step_that_fails_ends_its_own_request_alone(url: str, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from constrained import CompiledGrammar, Matcher

    victim = {"type": "string", "minLength": 40}
    bodies = {"victim": ask(victim, max_tokens=200), "other": ask(PERSON, PROMPT, max_tokens=200)}
    make = CompiledGrammar.matcher

    def make_breaking(grammar: CompiledGrammar) -> Matcher:
        matcher, num_accepted = make(grammar), count()

        def accept_token(token_id: int) -> bool:
            if next(num_accepted) == 3:
                raise RuntimeError("the step broke")
            return Matcher.accept_token(matcher, token_id)

        if grammar.schema == victim:
            monkeypatch.setattr(matcher, "accept_token", accept_token)
        return matcher

    monkeypatch.setattr(CompiledGrammar, "matcher", make_breaking)
    events: dict[str, list[Any]] = {}

    def run(name: str) -> None:
        with httpx.Client(base_url=url, timeout=DEADLINE_S) as own:
            events[name] = stream_events(own, bodies[name])

    threads = [threading.Thread(target=run, args=(name,)) for name in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert events["victim"][-1].name == "error"
    assert events["victim"][-1].data["code"] == "internal_error"
    assert (events["other"][-1].name, events["other"][-1].data["valid"]) == ("done", True)


class Person(BaseModel):
    name: str
    age: int


def test_the_official_client(url: str) -> None:
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": PROMPT}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=DEADLINE_S) as client:
        (model,) = [card.id for card in client.models.list()]
        whole = client.chat.completions.parse(model=model, messages=messages, response_format=Person, max_tokens=100)
        assert isinstance(whole.choices[0].message.parsed, Person)
        with client.chat.completions.stream(model=model, messages=messages, response_format=Person, max_tokens=100) as stream:
            final = stream.get_final_completion()
        assert isinstance(final.choices[0].message.parsed, Person)
        text = client.chat.completions.create(model=model, messages=messages, max_tokens=20)
        assert text.choices[0].message.content
        assert text.choices[0].finish_reason in {"stop", "length"}


CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "The weather of a city.", "parameters": CITY | {"additionalProperties": False}}


@pytest.mark.parametrize("choice", ["auto", "required", {"type": "function", "function": {"name": "get_weather"}}])
def test_the_model_calls_a_tool_or_answers(client: httpx.Client, choice: Any) -> None:
    body = {
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "tools": [{"type": "function", "function": WEATHER}],
        "tool_choice": choice,
        "max_tokens": 80,
        "seed": 5,
    }
    (answer,) = client.post("/v1/chat/completions", json=body).json()["choices"]
    calls = answer["message"]["tool_calls"] or []
    for call in calls:
        jsonschema.validate(json.loads(call["function"]["arguments"]), CITY)
    if choice != "auto":
        assert (len(calls) > 0, answer["message"]["content"]) == (True, None)


def test_the_model_responds_and_goes_on(client: httpx.Client) -> None:
    text = {"format": {"type": "json_schema", "name": "person", "schema": PERSON}}
    first = client.post("/v1/responses", json={"input": PROMPT, "text": text, "max_output_tokens": 200}).json()
    jsonschema.validate(json.loads(first["output"][0]["content"][0]["text"]), PERSON)
    assert first["status"] == "completed"
    more = {"input": "Another one.", "text": text, "max_output_tokens": 200, "previous_response_id": first["id"]}
    second = client.post("/v1/responses", json=more).json()
    jsonschema.validate(json.loads(second["output"][0]["content"][0]["text"]), PERSON)
    assert second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


def test_the_model_completes_a_text(client: httpx.Client) -> None:
    body = {"prompt": "One, two, three,", "max_tokens": 8, "temperature": 0, "echo": True}
    answer = client.post("/v1/completions", json=body).json()
    assert answer["choices"][0]["text"].startswith("One, two, three, four")


@pytest.mark.parametrize(
    ("constraint", "pattern"),
    [
        ({"regex": "[a-c]{3,5}-[0-9]"}, "[a-c]{3,5}-[0-9]"),
        ({"choice": ["red", "blue"]}, "red|blue"),
        ({"grammar": 'start: "one" (", " NAME)+\nNAME: /[a-z]{3,5}/'}, "one(, [a-z]{3,5})+"),
    ],
)
def test_the_model_keeps_to_a_text_constraint(client: httpx.Client, constraint: dict[str, Any], pattern: str) -> None:
    body = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": 20, "seed": 3}
    chat = client.post("/v1/chat/completions", json={**body, "structured_outputs": constraint}).json()
    native = client.post("/v1/structured", json={**body, **constraint}).json()
    assert re.fullmatch(pattern, chat["choices"][0]["message"]["content"])
    assert re.fullmatch(pattern, native["choices"][0]["value"])
    assert native["choices"][0]["valid"] is True


def test_the_model_gives_logprobs_and_heeds_stop_strings(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Count from one to ten."}], "max_tokens": 12, "temperature": 0}
    (whole,) = client.post("/v1/chat/completions", json={**body, "logprobs": True, "top_logprobs": 2}).json()["choices"]
    entries = whole["logprobs"]["content"]
    text = whole["message"]["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == text
    assert all(entry["logprob"] == max(top["logprob"] for top in entry["top_logprobs"]) for entry in entries)
    stop = entries[4]["token"]
    (cut,) = client.post("/v1/chat/completions", json={**body, "stop": [stop]}).json()["choices"]
    assert (cut["message"]["content"], cut["finish_reason"]) == (text.partition(stop)[0], "stop")
