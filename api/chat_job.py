"""From the body of a chat request to a job: what the client asks for is honoured or refused by name, never dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from api.service import Job
from api.wire import read_json
from constrained.decode.request import SamplingParams
from constrained.errors import CallerError, RequestError, UnsupportedFieldError
from constrained.options import CompileOptions
from schemas.openai import (
    NEUTRAL,
    ChatCompletionRequest,
    ChatMessage,
    JsonObjectFormat,
    JsonSchemaFormat,
    StructuredOutputs,
)

ANY_OBJECT = {"type": "object"}


def job_of(body: ChatCompletionRequest, default_max_tokens: int) -> Job:
    """The job that a body asks for; `UnsupportedFieldError` for what this version cannot honour."""
    for name, neutral in NEUTRAL.items():
        if getattr(body, name) not in neutral:
            raise UnsupportedFieldError(f"{name} is not supported by this version; leave it out", name)
    constraints = list(_constraints(body))
    if len(constraints) > 1:
        names = " and ".join(name for name, _ in constraints)
        raise RequestError(f"Only one constraint can hold, found {names}", constraints[1][0])
    return Job(
        prompt=[_message(message) for message in body.messages],
        params=_params(body, default_max_tokens),
        num_choices=body.n or 1,
        schema=constraints[0][1] if constraints else None,
        options=CompileOptions() if constraints else None,
        schema_in_prompt=body.schema_in_prompt,
    )


def _message(message: ChatMessage) -> dict[str, str]:
    role = "system" if message.role == "developer" else message.role
    return {"role": role, "content": message.text}


def _params(body: ChatCompletionRequest, default_max_tokens: int) -> SamplingParams:
    return SamplingParams(
        temperature=1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=max(body.top_k or 0, 0),
        min_p=body.min_p or 0.0,
        seed=body.seed,
        max_tokens=_max_tokens(body) or default_max_tokens,
    )


def _max_tokens(body: ChatCompletionRequest) -> int | None:
    old, new = body.max_tokens, body.max_completion_tokens
    if old is not None and new is not None and old != new:
        raise RequestError("max_tokens and max_completion_tokens differ; send one of them", "max_tokens")
    return old if new is None else new


def _constraints(body: ChatCompletionRequest) -> Iterator[tuple[str, Any]]:
    """(the field, the schema) of each constraint in the body."""
    if isinstance(body.response_format, JsonSchemaFormat):
        yield "response_format", body.response_format.json_schema.schema_
    elif isinstance(body.response_format, JsonObjectFormat):
        yield "response_format", ANY_OBJECT
    if body.structured_outputs is not None:
        yield "structured_outputs", _structured_outputs(body.structured_outputs)
    if body.guided_json is not None:
        yield "guided_json", _schema(body.guided_json, "guided_json")


def _structured_outputs(asked: StructuredOutputs) -> Any:
    for name in ("regex", "choice", "grammar"):
        if getattr(asked, name) is not None:
            raise UnsupportedFieldError(f"{name} is not supported by this version; send json", f"structured_outputs.{name}")
    if (asked.json_ is not None) == bool(asked.json_object):
        raise RequestError("Exactly one of json, json_object is needed", "structured_outputs")
    return ANY_OBJECT if asked.json_ is None else _schema(asked.json_, "structured_outputs.json")


def _schema(given: dict[str, Any] | bool | str, field: str) -> Any:
    """A schema that may have come as JSON text."""
    if not isinstance(given, str):
        return given
    try:
        return read_json(given.encode())
    except CallerError as error:
        raise RequestError(str(error).replace("The body", "The schema"), field) from error
