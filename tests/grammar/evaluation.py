"""A validator that is the specification's text and nothing more: whether a value is valid, and what was evaluated of it."""

from __future__ import annotations

import re
from typing import Any

Evaluated = frozenset[str | int]
_NONE: Evaluated = frozenset()
_TYPES: dict[str, Any] = {"integer": int, "string": str, "null": type(None), "object": dict, "array": list}


def evaluate(schema: Any, value: Any, root: Any) -> Evaluated | None:
    """The keys or indices that a schema evaluates of a value (2020-12); None where it is invalid."""
    if isinstance(schema, bool):
        return _NONE if schema else None
    if not _asserts(schema, value):
        return None
    done = _NONE
    parts = [*_in_place(schema, value, root)]
    if isinstance(value, dict):
        parts += [_members(schema, value, root)]
    if isinstance(value, list):
        parts += [_items(schema, value, root)]
    for part in parts:
        if part is None:
            return None
        done |= part
    return _unevaluated(schema, value, root, done)


def _asserts(schema: dict[str, Any], value: Any) -> bool:
    if "type" in schema and not isinstance(value, _TYPES[schema["type"]]):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    return not isinstance(value, dict) or all(name in value for name in schema.get("required", ()))


def _in_place(schema: dict[str, Any], value: Any, root: Any) -> list[Evaluated | None]:
    found = [evaluate(member, value, root) for member in schema.get("allOf", ())]
    if "$ref" in schema:
        found.append(evaluate(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root))
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            held = [done for member in schema[keyword] if (done := evaluate(member, value, root)) is not None]
            wrong = not held or (keyword == "oneOf" and len(held) > 1)
            found.append(None if wrong else _NONE.union(*held))
    if "not" in schema:
        found.append(_NONE if evaluate(schema["not"], value, root) is None else None)
    if "if" in schema:
        condition = evaluate(schema["if"], value, root)
        found += [_NONE if condition is None else condition]
        found.append(evaluate(schema.get("else" if condition is None else "then", True), value, root))
    for name, member in schema.get("dependentSchemas", {}).items():
        if isinstance(value, dict) and name in value:
            found.append(evaluate(member, value, root))
    return found


def _members(schema: dict[str, Any], value: dict[str, Any], root: Any) -> Evaluated | None:
    done = set()
    for key, member in value.items():
        rules = [schema["properties"][key]] if key in schema.get("properties", {}) else []
        rules += [rule for pattern, rule in schema.get("patternProperties", {}).items() if re.search(pattern, key)]
        if not rules and "additionalProperties" in schema:
            rules = [schema["additionalProperties"]]
        if any(evaluate(rule, member, root) is None for rule in rules):
            return None
        done |= {key} if rules else set()
    return frozenset(done)


def _items(schema: dict[str, Any], value: list[Any], root: Any) -> Evaluated | None:
    done, prefix = set(), schema.get("prefixItems", [])
    for index, item in enumerate(value):
        rule = prefix[index] if index < len(prefix) else schema.get("items")
        if rule is not None:
            if evaluate(rule, item, root) is None:
                return None
            done.add(index)
    if "contains" in schema:
        matching = {index for index, item in enumerate(value) if evaluate(schema["contains"], item, root) is not None}
        if len(matching) < schema.get("minContains", 1):
            return None
        done |= matching
    return frozenset(done)


def _unevaluated(schema: dict[str, Any], value: Any, root: Any, done: Evaluated) -> Evaluated | None:
    for keyword, kind in (("unevaluatedProperties", dict), ("unevaluatedItems", list)):
        if keyword in schema and isinstance(value, kind):
            left = {place: value[place] for place in (value if kind is dict else range(len(value))) if place not in done}
            if any(evaluate(schema[keyword], member, root) is None for member in left.values()):
                return None
            done |= left.keys()
    return done
