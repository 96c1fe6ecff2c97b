"""Declared order, through references, unions and arrays."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.order import in_declared_order

AB = {"properties": {"a": {}, "b": {}}}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (AB, {"a": 1, "b": 2}, True),
        (AB, {"b": 2, "a": 1}, False),
        (AB, {"b": 1, "x": 2, "y": 3}, True),
        (AB, {"x": 2, "b": 1}, False),
        (AB, [{"b": 2, "a": 1}], True),
        (True, {"b": 2, "a": 1}, True),
        ({"properties": {"x": AB}}, {"x": {"b": 2, "a": 1}}, False),
        ({"patternProperties": {"^x": AB}}, {"xx": {"b": 2, "a": 1}}, False),
        ({"additionalProperties": AB}, {"x": {"b": 2, "a": 1}}, False),
        ({"properties": {"x": {}}, "additionalProperties": AB}, {"x": {"b": 2, "a": 1}}, True),
        ({"items": AB}, [{"a": 1}, {"b": 2, "a": 1}], False),
        ({"items": [{}, AB]}, [{"b": 2, "a": 1}, {"a": 1, "b": 2}], True),
        ({"items": [{}], "additionalItems": AB}, [1, {"b": 2, "a": 1}], False),
        ({"prefixItems": [{}, AB]}, [1, {"b": 2, "a": 1}], False),
        ({"prefixItems": [{}], "items": AB}, [1, {"b": 2, "a": 1}], False),
        ({"allOf": [{"properties": {"c": {}}}, AB]}, {"c": 0, "a": 1, "b": 2}, True),
        ({"allOf": [{"properties": {"c": {}}}, AB]}, {"a": 1, "b": 2, "c": 0}, False),
        ({"anyOf": [{"type": "null"}, AB]}, {"b": 2, "a": 1}, False),
        ({"if": {}, "then": AB}, {"b": 2, "a": 1}, False),
        ({"$ref": "#/$defs/x~1y", "$defs": {"x/y": AB}}, {"b": 2, "a": 1}, False),
        ({"$ref": "#/allOf/0", "allOf": [AB]}, {"b": 2, "a": 1}, False),
        ({"$ref": "#/$defs/none"}, {"b": 2, "a": 1}, True),
        ({"$ref": "other.json"}, {"b": 2, "a": 1}, True),
        ({"properties": {"a": {"$ref": "#"}, "b": {}}}, {"a": {"a": {"b": 2, "a": {}}}}, False),
    ],
)
def test_declared_order(schema: Any, value: Any, expected: bool) -> None:
    assert in_declared_order(schema, value, schema) is expected
