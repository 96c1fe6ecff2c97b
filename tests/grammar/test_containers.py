"""Objects and arrays: how many members, which of them, in which order; and what must differ or come again."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from constrained.errors import UnsatisfiableSchemaError
from tests.grammars import Raw, accepts, awkward_vocabulary, byte_vocabulary, check, grammar_of, random_choice

ANY_ORDER: dict[str, Any] = {"property_order": "any"}


def test_any_order_takes_every_order_and_no_key_twice() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["b"],
        "additionalProperties": False,
    }
    accepted = [{"a": 1, "b": "x"}, {"b": "x", "a": 1}, {"b": ""}]
    rejected = [{"a": 1}, Raw('{"b":"x","b":"y"}'), Raw('{"b":"x","\\u0062":"y"}'), {"b": "", "c": 1}]
    check(schema, accepted, rejected, **ANY_ORDER)


def test_a_required_key_may_come_behind_free_ones_in_any_order() -> None:
    check({"type": "object", "required": ["z"]}, [{"a": 1, "z": 1}, {"z": 1, "a": 1}], [{"a": 1}], **ANY_ORDER)


@pytest.mark.parametrize("order", ["schema", "any"])
def test_counts_of_members(order: Any) -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 2, "maxProperties": 3}
    accepted = [{"a": 1, "b": 1}, {"a": 1, "x": 1}, {"x": 1, "y": 1, "z": 1}]
    check(schema, accepted, [{}, {"a": 1}, {"a": 1, "b": 1, "x": 1, "y": 1}], property_order=order)
    with pytest.raises(UnsatisfiableSchemaError):
        grammar_of({"type": "object", "properties": {"a": {}}, "additionalProperties": False, "minProperties": 2})
    with pytest.raises(UnsatisfiableSchemaError):
        grammar_of({"type": "object", "required": ["a", "b"], "maxProperties": 1}, property_order=order)


def test_a_count_leaves_room_for_what_is_required() -> None:
    schema = {"type": "object", "required": ["b"], "maxProperties": 1}
    check(schema, [{"b": 1}], [{"a": 1}, {"a": 1, "b": 1}], **ANY_ORDER)


def test_complements_of_open_objects() -> None:
    strings = {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}
    check({"type": "object", "not": strings}, [{"a": 1, "b": 2}, {"b": 1}], [{}, {"a": 1}, {"b": "x"}])
    check({"type": "object", "not": {"patternProperties": {"^x": {"type": "string"}}}}, [{"x": 1}], [{"x": "1"}, {"y": 1}])
    check({"type": "object", "not": {"propertyNames": {"maxLength": 1}}}, [{"a": 1, "ab": 1}], [{}, {"a": 1}])
    check({"not": {"const": {"a": 1}}}, [{}, {"a": 2}, {"a": 1, "b": 1}, 1], [{"a": 1}])


def test_contains_counts_items() -> None:
    schema = {"type": "array", "contains": {"type": "string"}, "minContains": 2, "maxContains": 3}
    check(schema, [["a", 1, "b"], ["a", "b", "c", None]], [[], ["a", 1], ["a", "b", "c", "d"]])
    check({"type": "array", "not": {"contains": {"const": 1}}}, [[], [2]], [[1], [2, 1]])
    check({"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 2}, "maxItems": 2}, [[1, 2], [2]], [[1, 1], []])
    with pytest.raises(UnsatisfiableSchemaError):
        grammar_of({"type": "array", "items": {"const": 1}, "contains": {"const": 2}})


def test_items_that_must_differ() -> None:
    unique = {"type": "array", "uniqueItems": True}
    accepted = [[1, 2], [1, True], [0, False], [[1], [1, 1]], [{"a": 1, "b": 2}, {"a": 2, "b": 1}], ["a", "A"]]
    rejected = [[1, 1], ["a", "a"], [{"a": 1, "b": 2}, {"b": 2, "a": 1}], [[1, [2]], [1, [2]]], Raw('["a","\\u0061"]')]
    check(unique, accepted, rejected, **ANY_ORDER)
    check(unique, [], [Raw("[1,1.0]"), Raw("[1,10e-1]")], spelling="permissive")


def test_values_do_not_run_out_before_the_array_may_end() -> None:
    check({"items": {"enum": [1, 2]}, "uniqueItems": True, "type": "array"}, [[1, 2], [2, 1], []], [[1, 2, 1], [1, 2, 3]])
    narrow = {"prefixItems": [{"enum": [1, 2]}, {"const": 1}], "uniqueItems": True, "minItems": 2, "type": "array"}
    check(narrow, [[2, 1]], [[1, 1], [1], [2]])
    with pytest.raises(UnsatisfiableSchemaError):
        grammar_of({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3})


def test_some_value_twice() -> None:
    check({"type": "array", "not": {"uniqueItems": True}}, [[1, 1], [1, 2, 1], [[], 2, []]], [[], [1], [1, 2]])


def test_twelve_pairs_are_twelve_clauses() -> None:
    pairs = [{"anyOf": [{"required": [f"a{i}"]}, {"required": [f"b{i}"]}]} for i in range(12)]
    whole = {f"a{i}": 0 for i in range(12)}
    lacking = {name: 0 for name in whole if name != "a7"}
    check({"type": "object", "allOf": pairs}, [whole, lacking | {"b7": 0}], [lacking, {}], **ANY_ORDER)


VALUES: list[Any] = [
    None,
    True,
    1,
    2,
    "a",
    [],
    [1],
    [1, 1],
    [1, 2],
    [2, 1],
    [1, 1, 2],
    ["a", "a"],
    [[1], [1]],
    [{"a": 1}, {"a": 1}],
    [{"a": 1}, {"a": 2}],
    [{}, {}],
    {},
    {"a": 1},
    {"b": 1},
    {"a": 1, "b": 1},
    {"a": "x"},
    {"a": 1, "b": 2, "c": 3},
    {"c": "x"},
    {"x1": 1},
    {"x1": 1, "x2": 2},
    {"a": {"b": 1}},
    {"b": 2, "a": 1},
    [1, "a"],
    ["a", 1, 1],
    [3, 4, 5, 6],
    [True, 1],
    [{"a": [1]}, {"a": [1]}],
    [1, 2, 1],
]


def _assertion(pick: random.Random) -> dict[str, Any]:
    return pick.choice(
        [
            {"minProperties": pick.randint(0, 3)},
            {"maxProperties": pick.randint(0, 3)},
            {"minItems": pick.randint(0, 3)},
            {"maxItems": pick.randint(0, 3)},
            {"uniqueItems": True},
            {"contains": {"const": 1}},
            {"contains": {"type": "string"}, "minContains": pick.randint(0, 2), "maxContains": pick.randint(1, 2)},
            {"additionalProperties": pick.choice([False, {"type": "string"}, {"const": 1}])},
            {"required": ["b", "c"]},
            {"properties": {"a": {"const": 1}}},
            {"required": ["a"]},
            {"patternProperties": {"^x": {"const": 1}}},
            {"propertyNames": {"pattern": "^[ab]"}},
            {"const": {"a": 1}},
            {"enum": [[1], {"a": 1, "b": 1}, 2]},
            {"const": [1, 2]},
            {"items": {"enum": [1, 2]}, "uniqueItems": True},
            {"type": pick.choice(["object", "array", "integer"])},
            {"properties": {"a": {"type": "integer"}, "b": {"const": 1}}, "additionalProperties": False},
            {"items": {"uniqueItems": True}},
            {"dependentRequired": {"a": ["b"]}},
            {"items": {"properties": {"a": {"const": 1}}}},
            {"items": {"type": "integer"}},
            {"prefixItems": [{"const": 1}]},
        ]
    )


def _schema(pick: random.Random, depth: int) -> dict[str, Any]:
    if depth == 0 or pick.random() < 0.3:
        return _assertion(pick)
    keyword = pick.choice(["not", "allOf", "anyOf", "oneOf", ""])
    if keyword == "not":
        return {"not": _schema(pick, depth - 1)}
    if keyword:
        return {keyword: [_schema(pick, depth - 1), _schema(pick, depth - 1)]}
    return _assertion(pick) | _schema(pick, depth - 1)


@pytest.mark.parametrize("seed", range(60))
def test_any_schema_agrees_with_the_judge(seed: int) -> None:
    pick = random.Random(seed)
    schema = _schema(pick, 3)
    judge = jsonschema.Draft202012Validator(schema)
    vocabulary = pick.choice([byte_vocabulary(), awkward_vocabulary()])
    try:
        grammar = grammar_of(schema, vocabulary, property_order="any")
    except UnsatisfiableSchemaError:
        assert not any(judge.is_valid(value) for value in VALUES)
        return
    for value in VALUES:
        assert accepts(grammar, json.dumps(value)) == judge.is_valid(value), (schema, value)
    for steps in (3, 30):
        assert judge.is_valid(json.loads(_walk(grammar, vocabulary, pick, steps))), schema


def _walk(grammar: Any, vocabulary: Any, pick: random.Random, steps: int) -> bytes:
    """A document of some free tokens, then closed in no more tokens than foretold."""
    matcher = grammar.matcher()
    for _ in range(steps):
        if matcher.is_terminated:
            return bytes(matcher.text)
        assert matcher.accept_token(random_choice(matcher, vocabulary, pick))
    for left in range(matcher.min_tokens_to_end, 0, -1):
        assert matcher.min_tokens_to_end <= left
        assert matcher.accept_token(matcher.closing_token())
        if matcher.is_terminated:
            break
    assert matcher.is_terminated
    return bytes(matcher.text)


OPEN = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("items", "values"),
    [
        (OPEN, [{"a": i, "b": f"x{i}"} for i in range(40)]),
        (OPEN, [{"a": 1, "b": f"x{i}"} for i in range(40)]),
        ({**OPEN, "additionalProperties": False}, [{"a": i // 2, **({"b": "x"} if i % 2 else {})} for i in range(40)]),
        ({"type": "array", "items": {"type": "integer"}}, [[i, i + 1] for i in range(40)]),
        ({"type": "integer"}, list(range(40))),
    ],
)
def test_many_items_that_differ(items: Any, values: list[Any]) -> None:
    check({"type": "array", "uniqueItems": True, "items": items}, [values], [[*values, values[0]], [*values, values[-1]]])
