"""Whether an instance has its properties in the order in which its schema declares them, undeclared ones last.

Engines that generate properties in declared order write every valid value, but not in every order. An instance in another
order that they refuse tells nothing of their verdict on its value. Where subschemas declare different orders, the first to
name a property decides; that is a guess, and only decides which instances count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

IN_PLACE = ("allOf", "anyOf", "oneOf")
CONDITIONAL = ("if", "then", "else")


def in_declared_order(schema: Any, value: Any, root: Any) -> bool:
    """`root` is the document that local references lead into; others are not followed."""
    return _in_order([schema], value, root)


def _in_order(schemas: list[Any], value: Any, root: Any) -> bool:
    if not isinstance(value, dict | list):
        return True
    here = [found for schema in schemas for found in _in_place(schema, root, set())]
    if isinstance(value, list):
        return all(_in_order(list(_items(here, index)), item, root) for index, item in enumerate(value))
    return _sorted(here, value) and all(_in_order(list(_properties(here, key)), item, root) for key, item in value.items())


def _sorted(schemas: list[dict[str, Any]], value: dict[str, Any]) -> bool:
    declared: dict[str, int] = {}
    for schema in schemas:
        for key in schema.get("properties", ()):
            declared.setdefault(key, len(declared))
    places = [declared.get(key, len(declared)) for key in value]
    return places == sorted(places)


def _in_place(schema: Any, root: Any, seen: set[int]) -> Iterator[dict[str, Any]]:
    """The schema and all that it applies to the same value."""
    if not isinstance(schema, dict) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    further = [part for name in IN_PLACE for part in schema.get(name, ())]
    further += [schema[name] for name in CONDITIONAL if name in schema]
    if isinstance(schema.get("$ref"), str):
        further.append(_local(schema["$ref"], root))
    for part in further:
        yield from _in_place(part, root, seen)


def _local(reference: str, root: Any) -> Any:
    """What a JSON Pointer fragment leads to; None where it leads to nothing here."""
    if not reference.startswith("#"):
        return None
    found = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict):
            found = found.get(name)
        else:
            return None
    return found


def _properties(schemas: list[dict[str, Any]], key: str) -> Iterator[Any]:
    for schema in schemas:
        matching = [part for pattern, part in schema.get("patternProperties", {}).items() if re.search(pattern, key)]
        if key in schema.get("properties", ()):
            matching.append(schema["properties"][key])
        yield from matching or [schema.get("additionalProperties")]


def _items(schemas: list[dict[str, Any]], index: int) -> Iterator[Any]:
    for schema in schemas:
        items = schema.get("items")
        prefix = items if isinstance(items, list) else schema.get("prefixItems", [])
        rest = schema.get("additionalItems") if isinstance(items, list) else items
        yield prefix[index] if index < len(prefix) else rest
