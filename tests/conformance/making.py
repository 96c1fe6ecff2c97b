"""Schemas made at random, a few keywords beside each other at each depth; and where a keyword of a schema may be left out."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

NAMES = ["a", "b", "ab", "x"]
CONSTANTS: list[Any] = [None, True, 0, 1, 12, 0.5, "", "a", "ab", [], [1], {}, {"a": 1}, {"a": 1, "b": [0]}]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]
PATTERNS = ["^a", "b$", "^[a-c]{2,3}$", "^(?!ab)", "[0-9]"]


def made(pick: random.Random, depth: int = 3) -> Any:
    """A schema of 2020-12; some refer to a part, which may refer to itself from its members and items."""
    if pick.random() < 0.7:
        return _made(pick, depth, "")
    schema = _made(pick, depth, "#/$defs/part")
    if isinstance(schema, dict):
        schema["$defs"] = {"part": _made(pick, depth - 1, "#/$defs/part")}
    return schema


def _made(pick: random.Random, depth: int, part: str) -> Any:
    """`part` is a reference that what lies a member or item deeper may be, where it is not empty."""
    if pick.random() < 0.05:
        return pick.random() < 0.7
    schema: dict[str, Any] = {}
    for _ in range(pick.randint(1, 3)):
        schema |= _assertion(pick) if depth <= 0 or pick.random() < 0.55 else _applicator(pick, depth - 1, part)
    return schema


def _assertion(pick: random.Random) -> dict[str, Any]:
    low = pick.randint(0, 3)
    return pick.choice(
        [
            {"type": pick.choice([*TYPES, pick.sample(TYPES, 3)])},
            {"enum": pick.sample(CONSTANTS, 4)},
            {"const": pick.choice(CONSTANTS)},
            {pick.choice(["minimum", "exclusiveMinimum"]): pick.choice([-3, 0, 0.5, 11])},
            {pick.choice(["maximum", "exclusiveMaximum"]): pick.choice([0, 1.5, 12, 1000])},
            {"multipleOf": pick.choice([1, 2, 3, 0.5, 0.1])},
            {"minLength": low},
            {"maxLength": low},
            {"pattern": pick.choice(PATTERNS)},
            {"required": pick.sample(NAMES, pick.randint(1, 2))},
            {"minProperties": low},
            {"maxProperties": low},
            {"minItems": low},
            {"maxItems": low},
            {"uniqueItems": True},
            {"dependentRequired": {pick.choice(NAMES): [pick.choice(NAMES)]}},
        ]
    )


def _applicator(pick: random.Random, depth: int, part: str) -> dict[str, Any]:
    keyword = pick.choice([*_APPLICATORS, "contains", "if"])

    def one() -> Any:
        if part and keyword in _DEEPER and pick.random() < 0.4:
            return {"$ref": part}
        return _made(pick, depth, part)

    def several() -> list[Any]:
        return [one() for _ in range(pick.randint(1, 3))]

    def named() -> dict[str, Any]:
        return {name: one() for name in pick.sample(NAMES, 2)}

    if keyword == "contains":
        counts = pick.choice([{}, {"minContains": 0}, {"minContains": 2}, {"maxContains": 1}])
        return {"contains": one(), **counts}
    if keyword == "if":
        return {"if": one(), "then": one(), "else": one()}
    kind = _APPLICATORS[keyword]
    if kind == "patterns":
        return {keyword: {pattern: one() for pattern in pick.sample(PATTERNS, 1)}}
    return {keyword: {"one": one, "several": several, "named": named}[kind]()}


_APPLICATORS = {
    "properties": "named", "patternProperties": "patterns", "additionalProperties": "one", "propertyNames": "one",
    "items": "one", "prefixItems": "several", "allOf": "several", "anyOf": "several", "oneOf": "several", "not": "one",
    "dependentSchemas": "named", "unevaluatedProperties": "one", "unevaluatedItems": "one",
}  # fmt: skip

_DEEPER = ("properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains", "unevaluatedItems")

# Without one of these a schema takes all that it took with it.
ASSERTIONS = frozenset(
    {
        *("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "required", "minProperties", "maxProperties", "propertyNames"),
        *("minItems", "maxItems", "uniqueItems", "dependentRequired", "additionalProperties"),
    }
)
# What lies in these may take more, and the schema takes no less; by the shape of the keyword's value.
_ONE = ("additionalProperties", "items", "then", "else", "propertyNames", "additionalItems")
_LIST = ("allOf", "anyOf", "prefixItems", "items")
_MAP = ("properties", "patternProperties", "dependentSchemas")
# Beside these, what a part takes tells on other parts: they are left alone with all that they may refer to.
_TELLING = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"})
_TURNING = frozenset({"not", "oneOf", "if", "contains"})


def keywords_in(schema: Any) -> set[str]:
    """All names of members anywhere in a schema."""
    if isinstance(schema, dict):
        return set(schema).union(*map(keywords_in, schema.values()))
    return set().union(*map(keywords_in, schema)) if isinstance(schema, list) else set()


def removable(schema: Any) -> list[tuple[str | int, ...]]:
    """The places of assertions without which the schema takes no less."""
    names = keywords_in(schema)
    if names & _TELLING or ("$ref" in names and names & _TURNING):
        return []
    return [*_places(schema, ())]


def _places(schema: Any, at: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword in ASSERTIONS and not (keyword == "type" and schema.get("nullable")):
            yield (*at, keyword)
        if keyword in _ONE and isinstance(value, dict):
            yield from _places(value, (*at, keyword))
        if keyword in _LIST and isinstance(value, list):
            for index, member in enumerate(value):
                yield from _places(member, (*at, keyword, index))
        if keyword in _MAP and isinstance(value, dict):
            for name, member in value.items():
                yield from _places(member, (*at, keyword, name))


def without(schema: Any, place: tuple[str | int, ...]) -> Any:
    """The schema without the keyword at a place."""
    copied = copy.deepcopy(schema)
    inside = copied
    for step in place[:-1]:
        inside = inside[step]
    del inside[place[-1]]
    return copied
