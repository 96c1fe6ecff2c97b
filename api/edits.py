"""A correction of a document that is still being written: from a path and a value to the text as it then stands.

Knows neither runs nor the engine. A value may be corrected once it is final; the schema has the last word, and it is asked by
the grammar itself, with the corrected text, so that what follows can still be valid.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from referencing.jsonschema import EMPTY_REGISTRY

from constrained.errors import InvalidValueError, OpenPathError, UnknownPathError
from constrained.stream import Fold
from constrained.stream.pointer import join, split
from constrained.stream.spans import value_span

if TYPE_CHECKING:
    from constrained.compiled import CompiledGrammar
    from constrained.guide import Location

INDENT = 2


def check_path(fold: Fold, path: str) -> None:
    """Raises `UnknownPathError` or `OpenPathError` unless the value at `path` is final."""
    try:
        split(path)
    except ValueError as error:
        raise UnknownPathError(str(error), path) from error
    status = fold.status.get(path)
    if status is None:
        raise UnknownPathError(f"The document has no value at {path!r}", path)
    if status != "complete":
        raise OpenPathError(f"The value at {path!r} is {status}; it can be corrected once it is closed", path)


def edited_text(grammar: CompiledGrammar, text: bytes, path: str, value: Any) -> bytes:
    """`text` with `value` at `path`; `InvalidValueError` where the schema does not allow it there."""
    try:
        start, end = value_span(text, path)
    except KeyError as error:
        raise OpenPathError(f"The value at {path!r} is still being written", path) from error
    spelled = _spelled(grammar, path, value)
    edited = text[:start] + spelled + text[end:]
    if not grammar.matcher().accept_bytes(edited):
        raise InvalidValueError(_why(grammar, path, value), path)
    return edited


def _spelled(grammar: CompiledGrammar, path: str, value: Any) -> bytes:
    """The value as the grammar's layout has it at this place, members in the order of the schema."""
    places = {pointer: place for place, pointer in enumerate(grammar.property_order)}
    ordered = _ordered(value, ["*" if token.isdecimal() else token for token in split(path)], places)
    if grammar.options.whitespace != "indented":
        return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode()
    margin = " " * (INDENT * len(split(path)))
    return json.dumps(ordered, ensure_ascii=False, indent=INDENT).replace("\n", f"\n{margin}").encode()


def _ordered(value: Any, tokens: list[str], places: dict[str, int]) -> Any:
    """The value with the members of its objects in generation order: known ones as they are listed, others after them."""
    if isinstance(value, list):
        return [_ordered(item, [*tokens, "*"], places) for item in value]
    if not isinstance(value, dict):
        return value
    keys = sorted(value, key=lambda key: places.get(_pointer([*tokens, key]), len(places)))
    return {key: _ordered(value[key], [*tokens, key], places) for key in keys}


def _pointer(tokens: list[str]) -> str:
    pointer = ""
    for token in tokens:
        pointer = join(pointer, token)
    return pointer


def _location(grammar: CompiledGrammar, path: str) -> Location | None:
    location: Location | None = grammar.root
    for token in split(path):
        if location is None:
            return None
        member = location.property(token)
        location = member if member is not None or not token.isdecimal() else location.item(int(token))
    return location


def _why(grammar: CompiledGrammar, path: str, value: Any) -> str:
    """What a validator says of the value alone, where it finds a fault; else it is the document around that forbids it."""
    location = _location(grammar, path)
    pointer = location.schema_pointer if location is not None else None
    if pointer is not None:
        validator = validator_for(grammar.schema, default=Draft202012Validator)(grammar.schema, registry=EMPTY_REGISTRY)
        fault = next(iter(validator.descend(value, _subschema(grammar.schema, pointer))), None)
        if fault is not None:
            return f"The value for {path!r} is not allowed by the schema at {pointer or '/'}: {fault.message}"
    return f"The schema does not allow this value at {path!r} in this document"


def _subschema(schema: Any, pointer: str) -> Any:
    for token in split(pointer):
        schema = schema[int(token)] if isinstance(schema, list) else schema[token]
    return schema
