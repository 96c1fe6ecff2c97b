"""The constraint that a text request asks for, in whichever of its spellings: one is honoured, two are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from api.sources import TextKind, TextSource
from api.wire import read_json
from constrained.errors import CallerError, RequestError
from schemas.openai import JsonObjectFormat, JsonSchemaFormat, ResponseFormat
from schemas.sampling import SamplingFields, StructuredOutputs

ANY_OBJECT = {"type": "object"}
GUIDED: dict[str, TextKind] = {"guided_regex": "regex", "guided_choice": "choice", "guided_grammar": "grammar"}
TEXT_KINDS: dict[str, TextKind] = {"regex": "regex", "choice": "choice", "choices": "choice", "grammar": "grammar"}


def schema_of(body: SamplingFields, response_format: ResponseFormat | None = None) -> Any | None:
    """The schema or `TextSource` that a body asks for, None for free text; `RequestError` where it asks for several."""
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
    if (structured := structured_schema(body.structured_outputs)) is not None:
        yield "structured_outputs", structured
    if body.guided_json is not None:
        yield "guided_json", _schema(body.guided_json, "guided_json")
    for field, kind in GUIDED.items():
        if (source := getattr(body, field)) is not None:
            yield field, text_source(kind, source, field)


def _has_options_alone(asked: StructuredOutputs) -> bool:
    """Whether the constraint itself stands elsewhere."""
    return asked.options is not None and not _given(asked)


def _given(asked: StructuredOutputs) -> list[tuple[str, Any]]:
    return [
        (name, value)
        for name, value in asked
        if name != "options" and (value not in (None, False) or (name, value) == ("json_", False))
    ]


def structured_schema(asked: StructuredOutputs | None) -> Any | None:
    """The schema or the text constraint as vLLM spells it; None where there are options alone, for one elsewhere."""
    if asked is None or _has_options_alone(asked):
        return None
    given = _given(asked)
    if len(given) != 1:
        names = "json, json_object, regex, choice, grammar"
        raise RequestError(f"Exactly one of {names} is needed", "structured_outputs")
    name, value = given[0]
    if name == "json_object":
        return ANY_OBJECT
    if name == "json_":
        return _schema(value, "structured_outputs.json")
    return text_source(TEXT_KINDS[name], value, f"structured_outputs.{name}")


def text_source(kind: TextKind, source: str | list[str], field: str) -> TextSource:
    """A text constraint; an empty one is refused."""
    if not source:
        raise RequestError("It is empty: no text could be an answer", field)
    return TextSource(kind, source if isinstance(source, str) else tuple(source), field)


def _schema(given: dict[str, Any] | bool | str, field: str) -> Any:
    """A schema that may have come as JSON text."""
    if not isinstance(given, str):
        return given
    try:
        return read_json(given.encode())
    except CallerError as error:
        raise RequestError(str(error).replace("The body", "The schema"), field) from error
