"""`unevaluatedProperties` and `unevaluatedItems`, against a validator that is the specification's text."""

from __future__ import annotations

import json
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constrained.errors import FuelError, UnsatisfiableSchemaError
from tests.grammar.evaluation import evaluate
from tests.grammars import accepts as accepts_text
from tests.grammars import check, grammar_of

FOO = {"properties": {"foo": {"type": "string"}}, "unevaluatedProperties": False}


@pytest.mark.parametrize(
    ("schema", "accepts", "rejects"),
    [
        (FOO, [{}, {"foo": "a"}, 1, []], [{"foo": 1}, {"bar": 1}]),
        ({"allOf": [{"properties": {"bar": True}}], **FOO}, [{"foo": "a", "bar": 1}], [{"baz": 1}]),
        # Cousins are not seen, whatever their order.
        ({"allOf": [{"properties": {"bar": True}}, FOO]}, [{"foo": "a"}], [{"bar": 1}]),
        # What holds of several members at once is evaluated by all of them.
        (
            {
                "anyOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 1}}}],
                "unevaluatedProperties": False,
            },
            [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {}],
            [{"a": 2}, {"a": 1, "b": 2}, {"a": 2, "b": 1}, {"c": 1}],
        ),
        # What was negated has evaluated nothing; a condition has where it holds.
        ({"not": {"not": {"properties": {"a": True}}}, "unevaluatedProperties": False}, [{}], [{"a": 1}]),
        ({"if": {"patternProperties": {"^a": {"const": 1}}}, "unevaluatedProperties": False}, [{}, {"ab": 1}], [{"b": 1}]),
        (
            {"if": {"required": ["a"], "properties": {"a": True}}, "then": {"properties": {"b": True}}, **FOO},
            [{"a": 1, "b": 1}, {"foo": ""}],
            [{"b": 1}, {"a": 1, "c": 1}],
        ),
        ({"dependentSchemas": {"foo": {"properties": {"a": True}}}, **FOO}, [{"foo": "", "a": 1}], [{"a": 1}]),
        # A schema for the rest, and names that are only required.
        (
            {"properties": {"a": True}, "required": ["b"], "unevaluatedProperties": {"type": "integer"}},
            [{"a": "", "b": 1, "c": 2}],
            [{"a": "", "b": ""}, {"a": ""}, {"b": 1, "c": ""}],
        ),
        # Recursion, each level with its own account.
        (
            {"properties": {"x": {"$ref": "#"}}, "unevaluatedProperties": False},
            [{"x": {"x": {}}}],
            [{"x": {"y": {}}}, {"y": {}}],
        ),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": True}}}, **FOO},
            [{"foo": "", "a": 1}, {"a": 1}],
            [{"b": 1}],
        ),
        # Items.
        ({"prefixItems": [True], "unevaluatedItems": False}, [[], [1]], [[1, 2]]),
        ({"items": True, "unevaluatedItems": False}, [[1, 2]], []),
        (
            {
                "anyOf": [{"prefixItems": [True, {"const": 1}]}, {"prefixItems": [True, True, {"const": 2}]}],
                "unevaluatedItems": False,
            },
            [[0, 1], [0, 1, 2], [0, 5, 2]],
            [[0, 1, 3], [0, 1, 2, 3]],
        ),
        (
            {"unevaluatedItems": {"type": "string"}, "anyOf": [{"items": {"type": "integer"}}, True]},
            [[1, 2], ["a"]],
            [[1, "a"]],
        ),
        # 2019-09 has tuples in `items`.
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "allOf": [{"items": [True]}, {"additionalItems": True}],
                "unevaluatedItems": False,
            },
            [[1]],
            [[1, 2]],
        ),
        # Complements: some member or item that was not evaluated fails.
        ({"type": "object", "not": FOO}, [{"bar": 1}, {"foo": 1}], [{}, {"foo": "a"}]),
        (
            {
                "type": "object",
                "not": {
                    "anyOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 1}}}],
                    "unevaluatedProperties": False,
                },
            },
            [{"a": 2}, {"a": 2, "b": 2}, {"a": 1, "b": 2}, {"c": 1}],
            [{}, {"a": 1, "b": 1}, {"a": 1}],
        ),
        (
            {"type": "array", "not": {"prefixItems": [True], "contains": {"const": 2}, "unevaluatedItems": {"type": "string"}}},
            [[1], [1, 2, 3], []],
            [[1, 2], [2, ""], [1, 2, ""]],
        ),
        # Earlier drafts know neither.
        ({"$schema": "http://json-schema.org/draft-07/schema#", "unevaluatedProperties": False}, [{"a": 1}], []),
    ],
)
def test_what_is_left(schema: Any, accepts: list[Any], rejects: list[Any]) -> None:
    check(schema, accepts, rejects)


_leaves = st.sampled_from([True, False, {"type": "integer"}, {"type": "string"}, {"const": 1}])
_keys = st.sampled_from(["a", "b", "ab"])


def _schemas(keywords: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(inner, min_size=1, max_size=3)
        applied = st.fixed_dictionaries(
            {},
            optional={
                "allOf": several,
                "anyOf": several,
                "oneOf": several,
                "not": inner,
                "dependentSchemas": st.dictionaries(_keys, inner, max_size=1),
                "if": inner,
                "then": inner,
                "else": inner,
                "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
            },
        )
        return st.builds(lambda some, others: {**some, **others}, keywords, applied)

    return st.recursive(keywords, grow, max_leaves=6)


_object_schemas = _schemas(
    st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(_keys, _leaves, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), _leaves, max_size=1),
            "additionalProperties": _leaves,
            "required": st.lists(_keys, max_size=1),
            "unevaluatedProperties": _leaves,
        },
    )
)
_array_schemas = _schemas(
    st.fixed_dictionaries(
        {},
        optional={
            "prefixItems": st.lists(_leaves, min_size=1, max_size=2),
            "items": _leaves,
            "contains": _leaves,
            "unevaluatedItems": _leaves,
        },
    )
)
_OBJECTS = [
    dict(zip(names, values, strict=True))
    for size in range(4)
    for names in combinations(("a", "b", "ab"), size)
    for values in product((1, 2, "x"), repeat=size)
]
_ARRAYS = [list(items) for size in range(4) for items in product((1, 2, "x"), repeat=size)]


def agrees(schema: Any, values: list[Any]) -> None:
    """Every value is judged as the specification has it."""
    try:
        grammar = grammar_of(schema, property_order="any")
    except UnsatisfiableSchemaError:
        assert [value for value in [*values, None, 0] if evaluate(schema, value, schema) is not None] == []
        return
    except FuelError:
        assume(False)
    for value in values:
        verdict = accepts_text(grammar, json.dumps(value))
        assert verdict == (evaluate(schema, value, schema) is not None), value


@settings(max_examples=100)
@given(_object_schemas, _object_schemas, _object_schemas, _leaves, st.booleans())
def test_unevaluated_members_of_any_schema(schema: Any, x: Any, y: Any, rest: Any, meets: bool) -> None:
    judged = {**schema, "unevaluatedProperties": rest}
    agrees({**(judged if meets else {"not": judged}), "type": "object", "$defs": _definitions(x, y)}, _OBJECTS)


@settings(max_examples=100)
@given(_array_schemas, _array_schemas, _array_schemas, _leaves, st.booleans())
def test_unevaluated_items_of_any_schema(schema: Any, x: Any, y: Any, rest: Any, meets: bool) -> None:
    judged = {**schema, "unevaluatedItems": rest}
    agrees({**(judged if meets else {"not": judged}), "type": "array", "$defs": _definitions(x, y)}, _ARRAYS)


def _definitions(x: Any, y: Any) -> dict[str, Any]:
    return {"x": _without_references(x), "y": _without_references(y)}


def _without_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_references(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _without_references(member) for name, member in schema.items() if name != "$ref"}
