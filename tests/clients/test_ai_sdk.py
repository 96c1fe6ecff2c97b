"""The Vercel AI SDK, unmodified, under Node: its OpenAI-compatible provider, and its OpenAI provider by both APIs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from constrained.decode.request import SamplingParams
from tests.api.examples import example
from tests.api.server import served
from tests.api.synthetic import FREE_TEXT, SyntheticBackend, SyntheticGeneration
from tests.clients.programs import node_program

NAME = example({"type": "string"})
PERSON = {"name": NAME, "age": 37, "tags": [NAME] * 2}
APIS = ["compatible", "chat", "responses"]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, Any]]:
    with served(SyntheticBackend(delay_s=0.001)) as service:
        yield node_program("ai_sdk.mjs", service.url)


@pytest.mark.parametrize("api", APIS)
def test_objects(outcomes: dict[str, Any], api: str) -> None:
    whole = outcomes[f"{api}.generateObject"]
    assert (whole["object"], whole["finishReason"]) == (PERSON, "stop")
    assert whole["tokens"] > 0
    assert outcomes[f"{api}.outputObject"]["object"] == PERSON


@pytest.mark.parametrize("api", APIS)
def test_streamed_objects(outcomes: dict[str, Any], api: str) -> None:
    streamed = outcomes[f"{api}.streamObject"]
    assert streamed["object"] == PERSON
    assert streamed["partials"] > 1


@pytest.mark.parametrize("api", APIS)
def test_text(outcomes: dict[str, Any], api: str) -> None:
    assert outcomes[f"{api}.streamText"] == {"text": FREE_TEXT}


@pytest.mark.parametrize("api", APIS)
def test_tools(outcomes: dict[str, Any], api: str) -> None:
    called = outcomes[f"{api}.tools"]
    assert set(called["names"]) == {"weather"}
    assert called["inputs"] == [{"city": NAME}] * called["results"]
    streamed = outcomes[f"{api}.streamTools"]
    assert {"tool-input-start", "tool-input-delta", "tool-call", "tool-result"} <= set(streamed["kinds"])
    assert "text-start" not in streamed["kinds"]
    assert streamed["reason"] == "tool-calls"


@pytest.mark.parametrize("api", ["compatible", "chat"])
def test_a_refusal_names_the_field(outcomes: dict[str, Any], api: str) -> None:
    refusal = outcomes[f"{api}.refusal"]
    assert refusal["status"] == 400
    assert refusal["message"].startswith("seed: ")


class StepByStepBackend(SyntheticBackend):
    """Whatever is asked lets what waits write on."""

    def submit(
        self, prompt_token_ids: list[int], params: SamplingParams, grammar: Any, *, prefix: bytes = b""
    ) -> SyntheticGeneration:
        self.go_on()
        return super().submit(prompt_token_ids, params, grammar, prefix=prefix)


def test_use_object_shows_the_text_stream_while_it_comes() -> None:
    with served(StepByStepBackend()) as service:
        outcome = node_program("use_object.mjs", service.url)
    assert outcome.get("error") is None
    assert outcome["object"] == PERSON
    first, *_, last = outcome["partials"]
    assert first != PERSON == last
