"""Schemas as outlines: what each keyword says there, and which schemas are told as they are."""

from __future__ import annotations

from typing import Any

import pytest

from constrained.decode.outline import outline

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (True, "any value"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema"}, "any value"),
        ({"type": "boolean"}, "true | false"),
        ({"type": ["string", "null"], "maxLength": 9}, "string | null (at most 9 characters)"),
        ({"type": "string", "format": "date"}, "string (date)"),
        ({"type": "string", "pattern": '^"'}, 'string (matches "^\\"")'),
        ({"type": "integer", "minimum": 1, "maximum": 6}, "integer (1 to 6)"),
        ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}, "number (more than 0; a multiple of 0.5)"),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1}, "number (at least 0; less than 1)"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": {"é": []}}, '{"é": []}'),
        ({"anyOf": [TEXT, {"type": "null"}]}, "string | null"),
        ({"oneOf": [{"type": "integer", "minimum": 3}, TEXT]}, "integer (at least 3) | string"),
        (
            {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True},
            "[string, ...] (at least 1 items; all different)",
        ),
        ({"type": "array"}, "[any value, ...]"),
        ({"type": "array", "prefixItems": [TEXT, {"type": "null"}], "items": False}, "[string, null]"),
        ({"type": "object"}, "object"),
        ({"type": "object", "additionalProperties": False}, "{}"),
        ({"type": "object", "additionalProperties": TEXT, "maxProperties": 3}, "{any name: string} (at most 3 members)"),
        (
            {
                "type": "object",
                "properties": {"b": TEXT, 'a"': True},
                "required": ["b"],
                "additionalProperties": {"type": "null"},
            },
            '{"b": string, "a\\""?: any value, any other name: null}',
        ),
    ],
)
def test_an_outline_says_what_the_schema_says(schema: Any, text: str) -> None:
    assert outline(schema) == text


def test_what_people_say_of_a_value_stands_behind_it() -> None:
    size = {"type": "integer", "title": "size", "description": "in\n  metres", "default": 2, "examples": [1, 3], "minimum": 0}
    schema = {"title": "Box", "type": "object", "properties": {"Size_": size}}
    assert outline(schema) == '{"Size_"?: integer (in metres; by default 2; e.g. 1, 3; at least 0)} (Box)'


def test_definitions_stand_below_once_each_even_where_they_lead_to_themselves() -> None:
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}, "leaf": {"$ref": "#/$defs/Leaf"}},
    }
    schema = {"$ref": "#/$defs/Tree", "$defs": {"Leaf": TEXT, "Tree": tree, "Never": {"not": {}}}}
    assert outline(schema) == 'Tree\nTree: {"kids"?: [Tree, ...], "leaf"?: Leaf}\nLeaf: string'


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"properties": {"a": TEXT}},  # of an object alone; anything else is allowed too
        {"type": "object", "patternProperties": {"^a": TEXT}},
        {"type": "object", "required": ["a"]},
        {"type": "string", "minimum": 3},
        {"type": "array", "contains": TEXT},
        {"type": "array", "items": [TEXT]},
        {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        {"type": "object", "properties": {"a": {"allOf": [TEXT]}}},
        {"anyOf": [TEXT, TEXT], "type": "string"},
        {"enum": ["a"], "minLength": 1},
        {"$ref": "#/$defs/missing"},
        {"$ref": "other.json"},
        {"const": "\ud83d"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$id": "x", "type": "null"}}},
        {"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": TEXT}},
        {
            "type": "array",
            "prefixItems": [{"$ref": "#/$defs/a"}, {"$ref": "#/definitions/a"}],
            "$defs": {"a": TEXT},
            "definitions": {"a": {"type": "null"}},
        },
    ],
)
def test_a_schema_that_says_more_has_no_outline(schema: Any) -> None:
    assert outline(schema) is None


def test_a_schema_that_is_nested_too_deeply_has_no_outline() -> None:
    schema: Any = TEXT
    for _ in range(2000):
        schema = {"type": "array", "items": schema}
    assert outline(schema) is None
