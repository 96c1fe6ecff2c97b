"""The protocol for those who read no Python: one JSON Schema of every message, and the same as TypeScript.

`python -m schemas.export` writes both files beside this one; a test keeps them, the models and the service's OpenAPI document
the same. The types come from pydantic's JSON Schema of the models, so that nothing is said twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from schemas import events, requests, socket

FOLDER = Path(__file__).parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLE = f"Typed deltas, protocol version {events.PROTOCOL_VERSION}"
REF = "#/$defs/{model}"

UNIONS: dict[str, tuple[str, Any]] = {
    "Op": ("One operation inside a delta.", events.Op),
    "Event": ("The data of an event; its name is the event's in SSE, and `event` in a line.", events.Event),
    "Line": ("One event as a line of JSON Lines, and as a message of the WebSocket.", socket.Line),
    "ClientMessage": ("What a client sends over the WebSocket.", socket.ClientMessage),
    "ServerMessage": ("What the service sends over the WebSocket.", socket.Line | socket.Reply),
}
BODIES: tuple[type[BaseModel], ...] = (
    requests.StructuredRequest,
    requests.StructuredResponse,
    requests.SteerRequest,
    requests.EditRequest,
    requests.SteerResponse,
    requests.CancelResponse,
    requests.CheckRequest,
    requests.CheckResponse,
    requests.ErrorBody,
)


def json_schema() -> dict[str, Any]:
    """Every message of the protocol under `$defs`; the whole accepts one line of JSON Lines."""
    return {"$schema": DIALECT, "title": TITLE, "$ref": REF.format(model="Line"), "$defs": definitions(REF)}


def definitions(ref_template: str) -> dict[str, Any]:
    """Every message by its name, and the unions of them behind; references are spelled by the template."""
    models = list(dict.fromkeys([*BODIES, *(model for _, union in UNIONS.values() for model in members(union))]))
    schemas = models_json_schema([(model, "validation") for model in models], ref_template=ref_template)[1]["$defs"]
    unions = {
        name: {"description": what, "oneOf": [{"$ref": ref_template.format(model=model.__name__)} for model in members(union)]}
        for name, (what, union) in UNIONS.items()
    }
    references = {name: {"$ref": ref_template.format(model=name)} for name in unions}
    return {**{name: _tagged(_named(schema, unions, references)) for name, schema in sorted(schemas.items())}, **unions}


def members(union: Any) -> list[type[BaseModel]]:
    """The models of a union, flat."""
    if get_origin(union) is Annotated:
        return members(get_args(union)[0])
    if isinstance(union, UnionType) or get_args(union):
        return [model for arm in get_args(union) for model in members(arm)]
    return [union]


def _named(schema: Any, unions: dict[str, Any], references: dict[str, Any]) -> Any:
    """`schema` with every union that has a name called by it, and without defaults of null, which say nothing."""
    if isinstance(schema, list):
        return [_named(item, unions, references) for item in schema]
    if not isinstance(schema, dict):
        return schema
    arms = schema.get("oneOf") or schema.get("anyOf")
    for name, union in unions.items():
        if arms == union["oneOf"]:
            return references[name]
    return {key: _named(value, unions, references) for key, value in schema.items() if (key, value) != ("default", None)}


def _tagged(schema: dict[str, Any]) -> dict[str, Any]:
    """A constant, by which the members of a union are told apart, is always there, also where the model has it by default."""
    tags = [key for key, value in schema["properties"].items() if "const" in value]
    required = [key for key in schema["properties"] if key in tags or key in schema.get("required", ())]
    return {**schema, "required": required} if required else schema


def typescript() -> str:
    """The same as a module of type declarations."""
    declarations = [_declaration(name, schema) for name, schema in json_schema()["$defs"].items()]
    return "\n".join([f"// {TITLE}. Written by `python -m schemas.export`; do not edit.", "", *declarations])


def _declaration(name: str, schema: dict[str, Any]) -> str:
    if "properties" not in schema:
        return "\n".join([*_comment(schema, ""), f"export type {name} = {type_of(schema)};", ""])
    required = set(schema.get("required", ()))
    lines = [*_comment(schema, ""), f"export interface {name} {{"]
    for key, value in schema["properties"].items():
        lines += [*_comment(value, "  "), f"  {_key(key)}{'' if key in required else '?'}: {type_of(value)};"]
    return "\n".join([*lines, "}", ""])


def type_of(schema: Any) -> str:
    """The TypeScript type of one schema of pydantic's; `unknown` where it says nothing."""
    if not isinstance(schema, dict):
        return "unknown"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return _union(json.dumps(value) for value in schema["enum"])
    if arms := schema.get("anyOf") or schema.get("oneOf"):
        return _union(type_of(arm) for arm in arms)
    return _by_type(schema)


def _by_type(schema: dict[str, Any]) -> str:
    match schema.get("type"):
        case "array":
            item = type_of(schema.get("items"))
            return f"({item})[]" if " " in item else f"{item}[]"
        case "object":
            return f"Record<string, {type_of(schema.get('additionalProperties'))}>"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null" as name:
            return str(name)
        case _:
            return "unknown"


def _union(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types))


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _comment(schema: dict[str, Any], margin: str) -> Iterator[str]:
    if text := schema.get("description"):
        yield f"{margin}/**"
        yield from (f"{margin} * {line}".rstrip() for line in text.splitlines())
        yield f"{margin} */"


def files() -> dict[Path, str]:
    """What is exported, by file."""
    return {
        FOLDER / "protocol.schema.json": json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n",
        FOLDER / "protocol.d.ts": typescript(),
    }


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
