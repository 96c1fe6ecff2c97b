"""A valid value for a schema, for the keywords of the first issue: what the synthetic engine "generates"."""

from __future__ import annotations

from typing import Any

ARRAY_LEN = 2
MAX_DEPTH = 4


def example(schema: Any) -> Any:
    """Some value that meets `schema`; optional members are left out where a recursion would not end otherwise."""
    return _example(schema, schema, 0)


def _example(schema: Any, root: Any, depth: int) -> Any:
    if isinstance(schema, bool):
        return "anything"
    if "$id" in schema:
        root = schema
    if "$ref" in schema:
        return _example(_resolve(schema["$ref"], root), root, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _example(schema["anyOf"][-1 if depth > MAX_DEPTH else 0], root, depth)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return _OF_TYPE[kind if isinstance(kind, str) else kind[0]](schema, root, depth)


def _resolve(ref: str, root: Any) -> Any:
    target = root
    for part in ref.removeprefix("#").split("/")[1:]:
        target = target[part.replace("~1", "/").replace("~0", "~")]
    return target


def _object(schema: Any, root: Any, depth: int) -> dict[str, Any]:
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    names = [name for name in properties if depth < MAX_DEPTH or name in required]
    return {name: _example(properties[name], root, depth + 1) for name in names}


def _array(schema: Any, root: Any, depth: int) -> list[Any]:
    prefix = schema.get("prefixItems", [])
    wanted = 0 if depth >= MAX_DEPTH else max(ARRAY_LEN, len(prefix))
    num_items = max(schema.get("minItems", 0), min(wanted, schema.get("maxItems", wanted)))
    if schema.get("items") is False:
        num_items = min(num_items, len(prefix))
    schemas = [*prefix, *[schema.get("items", True)] * num_items][:num_items]
    return [_example(item, root, depth + 1) for item in schemas]


def _string(schema: Any, root: Any, depth: int) -> str:
    text = 'Ada "Lovelace" – 日本 🙂\n'
    num_chars = min(max(len(text), schema.get("minLength", 0)), schema.get("maxLength", 1000))
    return (text * (1 + num_chars // len(text)))[:num_chars]


def _integer(schema: Any, root: Any, depth: int) -> int:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    return int(max(low, min(37, schema.get("maximum", 37))))


def _number(schema: Any, root: Any, depth: int) -> float:
    return _integer(schema, root, depth) + (0.5 if "maximum" not in schema else 0)


_OF_TYPE = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": lambda schema, root, depth: True,
    "null": lambda schema, root, depth: None,
}
