"""The constraint that a text request asks for, in whichever of its spellings: one is honoured, two are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from api.wire import read_json
from constrained.errors import CallerError, RequestError, UnsupportedFieldError
from schemas.openai import JsonObjectFormat, JsonSchemaFormat, ResponseFormat
from schemas.sampling import SamplingFields, StructuredOutputs

ANY_OBJECT = {"type": "object"}


def schema_of(body: SamplingFields, response_format: ResponseFormat | None = None) -> Any | None:
    """The schema that a body asks for, None where its text is free; `RequestError` where it asks for several."""
    constraints = list(_constraints(body, response_format))
    if len(constraints) > 1:
        names = " and ".join(name for name, _ in constraints)
        raise RequestError(f"Only one constraint can hold, found {names}", constraints[1][0])
    return constraints[0][1] if constraints else None


def _constraints(body: SamplingFields, response_format: ResponseFormat | None) -> Iterator[tuple[str, Any]]:
    """(the field, the schema) of each constraint in the body."""
    if isinstance(response_format, JsonSchemaFormat):
        yield "response_format", response_format.json_schema.schema_
    elif isinstance(response_format, JsonObjectFormat):
        yield "response_format", ANY_OBJECT
    if body.structured_outputs is not None:
        yield "structured_outputs", structured_schema(body.structured_outputs)
    if body.guided_json is not None:
        yield "guided_json", _schema(body.guided_json, "guided_json")
    for name in ("guided_regex", "guided_choice", "guided_grammar"):
        if getattr(body, name) is not None:
            raise UnsupportedFieldError(f"{name} is not supported by this version; send guided_json", name)


def structured_schema(asked: StructuredOutputs) -> Any:
    """The schema of a constraint as vLLM spells it."""
    for name in ("regex", "choice", "choices", "grammar"):
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
