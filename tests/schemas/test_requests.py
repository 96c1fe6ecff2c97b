"""The request models: exactly one constraint and one prompt, no conversions, no unknown fields."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.openai import NEUTRAL, ChatCompletionRequest, ChatMessage
from schemas.requests import CheckRequest, StructuredRequest

MESSAGE: TypeAdapter[Any] = TypeAdapter(ChatMessage)
MESSAGES = [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("constraint", [{"schema": {}}, {"schema": True}, {"schema": False}, {"regex": "a"}, {"choice": ["a"]}])
@pytest.mark.parametrize("prompt", [{"messages": MESSAGES}, {"prompt": "hello"}])
def test_one_constraint_and_one_prompt(constraint: dict[str, Any], prompt: dict[str, Any]) -> None:
    request = StructuredRequest.model_validate({**constraint, **prompt})
    assert request.model_dump(by_alias=True, exclude_unset=True) == {**constraint, **prompt}


@pytest.mark.parametrize(
    "body",
    [
        {"messages": MESSAGES},
        {"schema": {}},
        {"schema": {}, "regex": "a", "messages": MESSAGES},
        {"schema": {}, "messages": MESSAGES, "prompt": "hello"},
        {"schema": {}, "messages": []},
    ],
)
def test_none_or_two_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StructuredRequest.model_validate(body)


@pytest.mark.parametrize(
    "fields",
    [{"max_tokens": "5"}, {"n": True}, {"seed": 1.0}, {"temperature": "1"}, {"resumable": 1}, {"schema": 1}, {"stop": "x"}],
)
def test_nothing_is_converted_and_nothing_unknown_is_taken(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refusal:
        StructuredRequest.model_validate({"schema": {}, "prompt": "hello", **fields})
    assert {error["loc"][0] for error in refusal.value.errors()} == set(fields)


def test_integers_stand_for_numbers() -> None:
    assert StructuredRequest.model_validate({"schema": {}, "prompt": "x", "temperature": 1}).temperature == 1.0


def test_a_check_takes_anything_for_a_schema() -> None:
    for schema in (None, 1, "x", [], {}, True):
        assert CheckRequest.model_validate({"schema": schema}).schema_ == schema


def test_every_neutral_field_is_a_field_of_the_request_and_neutral_by_default() -> None:
    request = ChatCompletionRequest.model_validate({"messages": MESSAGES})
    for name, values in NEUTRAL.items():
        assert getattr(request, name) in values


def test_an_answer_may_be_sent_back_as_a_message() -> None:
    message = MESSAGE.validate_python({"role": "assistant", "content": "x", "refusal": None, "annotations": [], "audio": None})
    assert message.content == "x"
    with pytest.raises(ValidationError):
        MESSAGE.validate_python({"role": "assistant", "content": "x", "refusal": "no"})
    with pytest.raises(ValidationError):
        MESSAGE.validate_python({"role": "assistant", "content": None})
