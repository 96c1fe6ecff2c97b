"""`POST /v1/completions`: several prompts, echo, log-probabilities, the stream, and what is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from api.settings import Settings
from schemas.completions import COMPLETIONS_NEUTRAL, Completion
from tests.api.server import Served, served
from tests.api.synthetic import FREE_TEXT, SyntheticBackend
from tests.api.test_bad_input import refused

PATH = "/v1/completions"


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SyntheticBackend(token_bytes=1), Settings(chat_coalesce_ms=0)) as running:
        yield running


def complete(service: Served, prompt: Any = "hello", **fields: Any) -> Completion:
    answer = service.client.post(PATH, json={"prompt": prompt, "max_tokens": 200, **fields})
    assert answer.status_code == 200, answer.text
    return Completion.model_validate_json(answer.content)


def chunks_of(service: Served, prompt: Any = "hello", **fields: Any) -> list[Completion]:
    with service.client.stream("POST", PATH, json={"prompt": prompt, "max_tokens": 200, "stream": True, **fields}) as answer:
        events = answer.read().decode().removesuffix("\n\n").split("\n\n")
    assert events.pop() == "data: [DONE]"
    return [Completion.model_validate(json.loads(event.removeprefix("data: "))) for event in events]


def texts_of(chunks: list[Completion], num_choices: int) -> list[str]:
    choices = [choice for chunk in chunks for choice in chunk.choices]
    return ["".join(choice.text for choice in choices if choice.index == index) for index in range(num_choices)]


def test_a_whole_completion(service: Served) -> None:
    completion = complete(service)
    (choice,) = completion.choices
    assert (choice.text, choice.finish_reason, choice.logprobs) == (FREE_TEXT, "stop", None)
    assert completion.usage
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


def test_the_stream(service: Served) -> None:
    chunks = chunks_of(service, stream_options={"include_usage": True})
    assert texts_of(chunks, 1) == [FREE_TEXT]
    assert chunks[-1].choices == []
    assert chunks[-1].usage
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["stop"]
    assert len(chunks) > 10


def test_several_prompts_and_choices(service: Served) -> None:
    completion = complete(service, ["one", "two!"], n=2, echo=True)
    wanted = [f"{prompt}{FREE_TEXT}" for prompt in ("one", "one", "two!", "two!")]
    assert [choice.text for choice in completion.choices] == wanted
    assert [choice.index for choice in completion.choices] == [0, 1, 2, 3]
    assert completion.usage
    assert completion.usage.prompt_tokens == len("one") + len("two!")
    assert texts_of(chunks_of(service, ["one", "two!"], n=2, echo=True), 4) == wanted


def test_sixteen_tokens_unless_more_are_asked_for(service: Served) -> None:
    (choice,) = complete(service, max_tokens=None).choices
    assert choice.finish_reason == "length"
    assert service.backend.params[-1].max_tokens == 16


def test_a_constraint(service: Served) -> None:
    assert complete(service, guided_json={"enum": ["a"]}).choices[0].text == '"a"'
    assert complete(service, structured_outputs={"json": {"const": 5}}).choices[0].text == "5"


def test_logprobs(service: Served) -> None:
    fields = {"guided_json": {"const": "abc"}, "logprobs": 2}
    (choice,) = complete(service, **fields).choices
    logprobs = choice.logprobs
    assert logprobs
    assert "".join(logprobs.tokens) == choice.text == '"abc"'
    assert logprobs.text_offset == [0, 1, 2, 3, 4]
    assert logprobs.top_logprobs[1] == {"a": -0.25, "@": -9999.0}
    parts = [part.logprobs for chunk in chunks_of(service, **fields) for part in chunk.choices if part.logprobs]
    assert [offset for part in parts for offset in part.text_offset] == logprobs.text_offset


def test_the_official_client(service: Served) -> None:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as client:
        whole = client.completions.create(model="synthetic", prompt="hello", max_tokens=200)
        parts = client.completions.create(model="synthetic", prompt="hello", max_tokens=200, stream=True)
        assert whole.choices[0].text == "".join(part.choices[0].text for part in parts) == FREE_TEXT


def test_a_failed_step(service: Served) -> None:
    assert refused(service.client.post(PATH, json={"prompt": ["hello", "fail"]}), 500)["code"] == "internal_error"
    with service.client.stream("POST", PATH, json={"prompt": "fail", "stream": True}) as answer:
        last = answer.read().decode().removesuffix("\n\n").split("\n\n")[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "internal_error"


def test_fields_that_ask_for_nothing_are_taken(service: Served) -> None:
    complete(service, **{name: values[-1] for name, values in COMPLETIONS_NEUTRAL.items()}, best_of=1, user="me")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": ["a", None]}, "prompt"),
        ({"prompt": ["a"] * 65}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": 7.5}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": ["a", ""]}, "prompt"),
        ({"best_of": 2}, "best_of"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"suffix": "x"}, "suffix"),
        ({"logprobs": True}, "logprobs"),
        ({"logprobs": 21}, "logprobs"),
        ({"messages": []}, "messages"),
        ({"model": "other"}, "model"),
        ({"guided_json": {"type": "strong"}}, "/type"),
        ({"guided_json": {"const": "x" * 20}, "max_tokens": 5}, "max_tokens"),
    ],
)
def test_wrong_fields_are_named(service: Served, fields: dict[str, Any], param: str) -> None:
    answer = service.client.post(PATH, json={"prompt": "hello", **fields})
    assert refused(answer, 404 if param == "model" else 400)["param"] == param
