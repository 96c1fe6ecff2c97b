"""The options of a compile that a body asks for. Limits are the operator's, and no body reaches them."""

from __future__ import annotations

from typing import Any

from api.sources import TextSource
from constrained.errors import RequestError
from constrained.options import CompileOptions
from schemas.requests import CompileFields
from schemas.sampling import StructuredOutputs

PLACE = "structured_outputs.options"


def compile_options(fields: CompileFields, source: Any, place: str = "") -> CompileOptions:
    """The options of `fields`, which stand at `place` in the body; `RequestError` where `source` has no use for them."""
    given = {name: getattr(fields, name) for name in CompileFields.model_fields}
    asked = [
        name
        for name, field in CompileFields.model_fields.items()
        if given[name] != field.get_default(call_default_factory=True)
    ]
    if asked and isinstance(source, TextSource) and source.kind != "grammar":
        raise RequestError(f"{asked[0]} is for JSON Schemas, and means nothing for a {source.kind}", f"{place}{asked[0]}")
    return CompileOptions(**given)


def options_of(asked: StructuredOutputs | None, source: Any | None, *, with_tools: bool) -> CompileOptions | None:
    """The options for the constraint of an OpenAI-compatible body, None for free text."""
    fields = None if asked is None else asked.options
    if fields is not None and source is None:
        raise RequestError("The options need a constraint that they could hold for", PLACE)
    if fields is not None and with_tools:
        raise RequestError("The options do not hold for tools; send tool_choice none", PLACE)
    return None if source is None else compile_options(fields or CompileFields(), source, f"{PLACE}.")
