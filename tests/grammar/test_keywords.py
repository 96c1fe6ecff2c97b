"""Each keyword: what it lets through, what it refuses, and what it says of schemas that are none."""

from __future__ import annotations

from typing import Any

import pytest

from constrained import CompileOptions
from constrained.errors import (
    FuelError,
    OptionError,
    SchemaError,
    UnsatisfiableSchemaError,
    UnsupportedKeywordError,
)
from constrained.options import Limits
from tests.grammars import Raw, check, grammar_of

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["v"],
            "additionalProperties": False,
        }
    },
}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


@pytest.mark.parametrize(
    ("schema", "accepts", "rejects"),
    [
        (True, [1, "a", None, [], {}, {"a": [True]}, -1.5e300], [Raw("tru"), Raw(""), Raw("[1,]"), Raw('{"a"}'), Raw("01")]),
        ({"type": "null"}, [None], [False, 0, "null"]),
        ({"type": "boolean"}, [True, False], [None, 0, 1]),
        ({"type": "integer"}, [0, -1, 10**30], [1.5, Raw("1e2"), Raw("1.0"), "1", Raw("-0"), Raw("01")]),
        ({"type": "number"}, [0, -1.5, 1e300, Raw("1E5")], ["1", None, Raw("+1"), Raw(".5"), Raw("NaN")]),
        ({"type": ["string", "null"]}, ["a", None], [1, False, []]),
        ({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}, [-3, 0, 11], [-4, 12, 100]),
        ({"minimum": 5}, [5, 6.5, "a", None], [4, 4.999, -7]),
        ({"multipleOf": 3}, [0, -6, 9, 9.0, "a"], [10, 1.5, -1]),
        ({"multipleOf": 0.01}, [0.07, 19.99, 5, 4.35, 1e300, -0.01], [0.075, 1e-7]),
        ({"multipleOf": 1e-8, "type": "integer"}, [12391239123, 0], [0.5]),
        ({"$schema": DRAFT_4, "multipleOf": 2.5, "type": "integer", "maximum": 12}, [10, -5], [2, 2.5, 15]),
        ({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "minimum": 1, "maximum": 30}, [12, 24], [4, 6, 18, 36, 0]),
        ({"multipleOf": 5, "enum": [3, 5, 7.5, 10, "a"]}, [5, 10, "a"], [3, 7.5]),
        ({"not": {"multipleOf": 3}}, [1, 4.5, -2], [0, 3, -6, 3.0, "a"]),
        ({"type": "integer", "not": {"anyOf": [{"multipleOf": 2}, {"multipleOf": 3}]}}, [1, 5, -7], [0, 2, 9, 15]),
        ({"oneOf": [{"multipleOf": 3}, {"multipleOf": 5}], "type": "integer"}, [3, 5, 9, 10], [15, 0, 7]),
        ({"if": {"multipleOf": 10}, "then": {"minimum": 100}}, [100, 7, 110.5], [10, 0, 90]),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, [0.5, 1, 1.0, 0.001], [0, 0.0, 1.01, -0.1, 2]),
        (
            {"enum": [1, 2.5, "x", None, True, [1, {"a": 2}]]},
            [1, 2.5, "x", None, True, [1, {"a": 2}]],
            [2, False, [1], [1, {}], "y"],
        ),
        ({"const": {"a": [1, "b"]}}, [{"a": [1, "b"]}], [{}, {"a": [1]}, {"a": [1, "b"], "c": 1}]),
        ({"enum": ["a", "bb", 3], "maxLength": 1}, ["a", 3], ["bb"]),
        ({"enum": [1, 5, 9], "minimum": 4}, [5, 9], [1]),
        ({"enum": [[1], [1, 2]], "minItems": 2}, [[1, 2]], [[1]]),
        ({"properties": {"a": {"type": "integer"}}}, [{}, {"a": 1}, {"b": "x"}, {"a": 1, "b": "x"}, 3], [{"a": "x"}]),
        ({"type": "object", "required": ["a"]}, [{"a": 1}, {"a": {}}], [{}, {"b": 1}, [], 1]),
        (
            {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"], "additionalProperties": False},
            [{"b": 1}, {"a": 1, "b": 1}],
            [{}, {"a": 1}, {"b": 1, "c": 1}, {"b": 1, "b ": 1}],
        ),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"x": 1, "y": 2}], [{"x": "y"}]),
        ({"type": "object", "properties": {"a": False}}, [{}, {"b": 1}], [{"a": 1}]),
        ({"type": "array", "items": {"type": "integer"}}, [[], [1], [1, 2, 3]], [["a"], [1, None], {}]),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
            [[], [1], [1, "a"], [1, "a", None]],
            [["a"], [1, 2]],
        ),
        ({"prefixItems": [{"const": 1}], "items": False}, [[], [1]], [[2], [1, 1]]),
        ({"type": "array", "minItems": 2, "maxItems": 3}, [[1, 2], [1, 2, 3]], [[], [1], [1, 2, 3, 4]]),
        ({"type": "array", "maxItems": 0}, [[]], [[1]]),
        ({"type": "array", "items": False}, [[]], [[1]]),
        ({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}, [1, "a", ""], ["ab", 1.5, None]),
        (
            {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            [{"a": 1}, {"b": 1}, {"b": 1, "c": 2}],
            [{}, {"c": 1}],
        ),
        (
            {
                "anyOf": [
                    {"properties": {"k": {"const": "x"}, "v": {"type": "integer"}}},
                    {"properties": {"k": {"const": "y"}}},
                ],
                "required": ["k"],
            },
            [{"k": "x", "v": 1}, {"k": "y", "v": "s"}],
            [{"k": "x", "v": "s"}, {"k": "z"}],
        ),
        ({"allOf": [{"minimum": 3}, {"maximum": 5}, {"type": "integer"}]}, [3, 5], [2, 6, "a"]),
        (
            {"allOf": [{"properties": {"a": {"minLength": 2}}}, {"properties": {"a": {"maxLength": 3}}}]},
            [{"a": "xy"}],
            [{"a": "x"}, {"a": "wxyz"}],
        ),
        (TREE, [{"v": 1}, {"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3}]}], [{}, {"v": 1, "kids": [{}]}, {"v": 1, "x": 1}]),
        ({"$ref": "#/$defs/a", "maximum": 3, "$defs": {"a": {"type": "integer"}}}, [3, -1], [4, "a"]),
        (
            {"$schema": DRAFT_7, "$ref": "#/definitions/a", "maximum": 3, "definitions": {"a": {"type": "integer"}}},
            [3, 4],
            ["a"],
        ),
        (
            {"$schema": DRAFT_7, "items": [{"const": 1}], "additionalItems": {"type": "null"}},
            [[], [1], [1, None]],
            [[2], [1, 2]],
        ),
        ({"$schema": DRAFT_4, "minimum": 3, "exclusiveMinimum": True}, [4, "a"], [3]),
        ({"$schema": DRAFT_4, "const": 3}, [3, 4], []),
        ({"prefixItems": [{"type": "string"}], "$schema": DRAFT_7}, [["a"], [1]], []),
        (
            {"title": "t", "description": "d", "default": 3, "examples": [1], "x-mine": {"type": "string"}, "$comment": "c"},
            [1, "a"],
            [],
        ),
        ({"minLength": 1.0, "type": "string"}, ["a"], [""]),
        ({"uniqueItems": False, "minProperties": 0, "patternProperties": {}}, [[1, 1], {}], []),
    ],
)
def test_values(schema: Any, accepts: list[Any], rejects: list[Any]) -> None:
    check(schema, accepts, rejects)


@pytest.mark.parametrize(
    ("schema", "accepts", "rejects"),
    [
        (
            {"not": {"type": ["string", "integer"]}},
            [None, 1.5, [], Raw("-0.5"), Raw("1.50")],
            ["a", 1, 0, Raw("1.0"), Raw("2e3")],
        ),
        (
            {"not": {"enum": ["a", "bb", 3, None]}},
            ["b", "", "aa", 4, 2.5, False, []],
            ["a", "bb", Raw('"\\u0062b"'), 3, Raw("3.0"), None],
        ),
        ({"not": {"const": [1, "x"]}}, [[], [1], [1, "y"], [2, "x"], [1, "x", 0], {}], [[1, "x"]]),
        ({"type": "string", "not": {"const": "ab"}, "maxLength": 2}, ["", "a", "ac", "é"], ["ab", "abc"]),
        ({"type": "string", "not": {"minLength": 3}}, ["", "ab"], ["abc"]),
        ({"type": "number", "not": {"minimum": 3, "maximum": 5}}, [2.9, 5.1, -7], [3, 4, 5]),
        ({"not": {"required": ["a", "b"]}}, [{}, {"a": 1}, {"b": 1}, {"c": 1}], [{"a": 1, "b": 1}, 3]),
        ({"not": {"properties": {"a": {"type": "string"}}}}, [{"a": 1}, {"a": None, "b": 1}], [{}, {"a": "x"}, 3]),
        ({"not": {"anyOf": [{"type": "object"}, {"minimum": 3}]}}, [2], [3, {}, "a"]),
        ({"not": {"not": {"type": "integer"}}}, [1], [1.5, "a"]),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [1.5, None]),
        ({"oneOf": [{"minimum": 2}, {"maximum": 4}]}, [1, 5], [2, 3, 4, "a"]),
        (
            {
                "oneOf": [
                    {"properties": {"k": {"const": "x"}}, "required": ["k"]},
                    {"properties": {"k": {"const": "y"}}, "required": ["k"]},
                ]
            },
            [{"k": "x"}, {"k": "y", "z": 1}],
            [{}, {"k": "z"}, 3],
        ),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]),
        ({"not": {"oneOf": [{"minimum": 2}, {"maximum": 4}]}, "type": "integer"}, [2, 3, 4], [1, 5]),
        (
            {
                "if": {"properties": {"k": {"const": 1}}, "required": ["k"]},
                "then": {"required": ["a"]},
                "else": {"required": ["b"]},
            },
            [{"k": 1, "a": 0}, {"k": 2, "b": 0}, {"b": 0}, 3],
            [{"k": 1}, {"k": 1, "b": 0}, {"k": 2}, {}],
        ),
        ({"if": {"minimum": 5}, "then": {"maximum": 7}}, [1, 5, 7, "a"], [8]),
        ({"if": {"minimum": 5}}, [1, 5, "a"], []),
        ({"not": {"if": {"minimum": 5}, "then": {"maximum": 7}, "else": {"minimum": 3}}, "type": "integer"}, [8, 2], [3, 5, 7]),
        (
            {"properties": {"a": {}, "b": {}, "c": {}}, "dependentRequired": {"a": ["b"], "b": ["c"]}},
            [{}, {"c": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}, 3],
            [{"a": 1}, {"a": 1, "b": 1}, {"b": 1}],
        ),
        (
            {
                "properties": {"a": {}, "b": {}},
                "dependentSchemas": {"a": {"required": ["b"], "properties": {"b": {"type": "null"}}}},
            },
            [{}, {"b": 1}, {"a": 1, "b": None}],
            [{"a": 1}, {"a": 1, "b": 1}],
        ),
        (
            {"$schema": DRAFT_7, "properties": {"a": {}, "b": {}}, "dependencies": {"a": ["b"], "c": False}},
            [{"a": 1, "b": 1}, {"d": 1}],
            [{"a": 1}, {"c": 1}],
        ),
    ],
)
def test_what_is_negated_or_chosen(schema: Any, accepts: list[Any], rejects: list[Any]) -> None:
    check(schema, accepts, rejects)


def test_keys_come_in_declared_order_then_the_others_and_never_twice() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    check(
        schema,
        accepts=[{"a": 1, "b": 2, "c": 3, "d": 4}, {"b": 1, "c": 1}],
        rejects=[
            {"b": 1, "a": 1}, {"c": 1, "a": 1}, Raw('{"a":1,"a":2}'), Raw('{"c":1,"c":2}'), Raw('{"c":1,"\\u0063":2}'),
            Raw('{"é":1,"\\u00e9":2}'), Raw('{"c":1,"d":2,"c":3}'),
        ],
    )  # fmt: skip


def test_the_same_key_may_come_again_in_another_object() -> None:
    check({"type": "object"}, accepts=[{"c": {"c": {"c": 1}}, "d": [{"c": 1}, {"c": 2}]}], rejects=[Raw('{"d":{"c":1,"c":2}}')])


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"pattern": "(a)\\1"}, "", "pattern"),
        ({"pattern": "("}, "", "pattern"),
        ({"properties": {"a": {"format": "idn-hostname"}}}, "/properties/a", "format"),
        ({"$defs": {"a~/b": {"pattern": "(a)\\1"}}, "$ref": "#/$defs/a~0~1b"}, "/$defs/a~0~1b", "pattern"),
        ({"patternProperties": {"(a)\\1": {}}}, "", "patternProperties"),
    ],
)
def test_what_is_not_built_is_refused_by_name(schema: Any, pointer: str, keyword: str) -> None:
    with pytest.raises(UnsupportedKeywordError) as caught:
        grammar_of(schema)
    assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)


@pytest.mark.parametrize(
    ("schema", "accepts", "rejects"),
    [
        ({"pattern": "^[a-c]+$"}, ["a", "abc", 1, None], ["", "abd", "A"]),
        ({"type": "string", "pattern": "b"}, ["b", "abc", '\n"b', "éb😀"], ["", "ac"]),
        (
            {"type": "string", "pattern": "^é😀?$"},
            ["é", "é😀", Raw('"\\u00e9\\ud83d\\ude00"')],
            ["e", "😀", Raw('"\\u00e9\\u00e9"')],
        ),
        ({"type": "string", "pattern": "^a*$", "minLength": 2, "maxLength": 3}, ["aa", "aaa"], ["a", "aaaa", "ab"]),
        ({"pattern": "^x", "enum": ["xa", "b", 3]}, ["xa", 3], ["b"]),
        ({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"}, ["az", "abcz"], ["a", "z", "ab"]),
        ({"type": "string", "not": {"pattern": "^a"}}, ["", "b", "ba"], ["a", "ab"]),
        ({"type": "string", "pattern": "^(?!foo)[a-z]+$"}, ["fo", "bar", "fox"], ["foo", "food", ""]),
        ({"type": "string", "format": "date"}, ["2024-02-29", "1999-12-31"], ["2023-02-29", "2024-2-1", "2024-04-31", ""]),
        ({"type": "string", "format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567", ""]),
        ({"format": "ipv4", "pattern": "^10"}, ["10.0.0.1", 3], ["11.0.0.1", "10.0.0.256"]),
        ({"type": "string", "not": {"format": "date"}}, ["x", "2023-02-30"], ["2023-02-28"]),
        ({"type": "string", "pattern": '^["\\\\]$'}, ['"', "\\"], ["", "a"]),
    ],
)
def test_patterns_and_formats(schema: Any, accepts: list[Any], rejects: list[Any]) -> None:
    check(schema, accepts, rejects)


@pytest.mark.parametrize(
    ("schema", "accepts", "rejects"),
    [
        (
            {"patternProperties": {"^x": {"type": "integer"}}},
            [{}, {"x": 1, "xy": 2, "b": "s"}, 3],
            [{"x": "s"}, {"b": 1, "x1": None}],
        ),
        (
            {
                "properties": {"xa": {"minimum": 3}, "b": {}},
                "patternProperties": {"^x": {"maximum": 5}},
                "additionalProperties": False,
            },
            [{"xa": 4, "b": 1, "xb": 2}, {"x": 1, "xx": 2}],
            [{"xa": 6}, {"xa": 2}, {"xb": 6}, {"c": 1}],
        ),
        (
            {"patternProperties": {"a": {"minimum": 1}, "b": {"maximum": 3}}, "additionalProperties": {"type": "string"}},
            [{"ab": 2, "a": 9, "b": -1, "c": "s"}],
            [{"ab": 4}, {"ba": 0}, {"c": 1}],
        ),
        (
            {"patternProperties": {"^[ab]$": {"type": "null"}}, "additionalProperties": False},
            [{}, {"a": None, "b": None}],
            [{"c": None}],
        ),
        (
            {"patternProperties": {"^v": True, "^w": False}, "additionalProperties": False},
            [{"v": 1, "v2": 1}],
            [{"w": 1}, {"x": 1}],
        ),
        ({"propertyNames": {"maxLength": 2}}, [{"ab": 1, "": 2, "é😀": 3}, 3], [{"abc": 1}]),
        (
            {"propertyNames": {"pattern": "^[a-z]+$"}, "properties": {"A": {}}, "required": ["b"]},
            [{"b": 1, "c": 2}],
            [{"A": 1, "b": 1}, {"c": 1}],
        ),
        ({"propertyNames": {"enum": ["a", "b"]}}, [{"a": 1, "b": 2}], [{"c": 1}]),
        ({"propertyNames": False}, [{}, 3], [{"a": 1}]),
        ({"propertyNames": {"not": {"const": "a"}}}, [{"b": 1, "aa": 1}], [{"a": 1}, {"b": 1, "a": 2}]),
        (
            {"allOf": [{"patternProperties": {"^a": {"type": "integer"}}}, {"additionalProperties": {"maximum": 3}}]},
            [{"a": 3, "b": "s"}],
            [{"a": 4}, {"a": "s"}, {"b": 5}],
        ),
        ({"required": ["x1"], "patternProperties": {"^x": {"const": 7}}}, [{"x1": 7}], [{}, {"x1": 8}]),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            [{"x": 1, "xa": 2, "xab": 3}],
            [Raw('{"x":1,"x":2}'), Raw('{"xa":1,"x\\u0061":2}'), Raw('{"xé":1,"x\\u00e9":2}'), Raw('{"x1":1,"x2":2,"x1":3}')],
        ),
    ],
)
def test_patterns_of_keys(schema: Any, accepts: list[Any], rejects: list[Any]) -> None:
    check(schema, accepts, rejects)


def test_formats_can_be_annotations_and_unknown_ones_are() -> None:
    check({"type": "string", "format": "date"}, accepts=["x"], rejects=[1], formats="annotate")
    check({"type": "string", "format": "x-mine"}, accepts=["x"], rejects=[1])


@pytest.mark.parametrize("protocol", ["http", "https"])
@pytest.mark.parametrize("fragment", ["", "#"])
@pytest.mark.parametrize("draft", ["draft-04/", "draft-06/", "draft-07/", "draft/2019-09/", "draft/2020-12/", ""])
def test_drafts_as_schemas_name_them(protocol: str, fragment: str, draft: str) -> None:
    """Only the latest draft knows `prefixItems`."""
    schema = {"$schema": f"{protocol}://json-schema.org/{draft}schema{fragment}", "prefixItems": [{"type": "null"}]}
    knows_prefixes = draft in ("draft/2020-12/", "")
    check({"items": schema, "type": "array"}, accepts=[[[None]], [[]]], rejects=[[[1]]] if knows_prefixes else [])
    check(schema, accepts=[[None], 3], rejects=[[1]] if knows_prefixes else [])


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (3, ""),
        (None, ""),
        ("string", ""),
        ([], ""),
        ({"properties": {"a": 3}}, "/properties/a"),
        ({"properties": []}, ""),
        ({"type": "strin"}, ""),
        ({"type": []}, ""),
        ({"type": 3}, ""),
        ({"enum": 3}, ""),
        ({"required": "a"}, ""),
        ({"required": [1]}, ""),
        ({"minLength": -1}, ""),
        ({"minLength": "a"}, ""),
        ({"minItems": 1.5}, ""),
        ({"minimum": "a"}, ""),
        ({"multipleOf": 0}, ""),
        ({"multipleOf": -2}, ""),
        ({"multipleOf": True}, ""),
        ({"minimum": True}, ""),
        ({"maximum": float("inf")}, ""),
        ({"anyOf": []}, ""),
        ({"anyOf": {}}, ""),
        ({"items": [{}]}, "/items"),
        ({"$schema": "http://example.com/mine"}, ""),
        ({"$schema": "ftp://json-schema.org/draft-07/schema"}, ""),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, ""),
        ({"$schema": 3}, ""),
        ({"$ref": 3}, ""),
        ({"const": "\ud800"}, ""),
        ({"items": {"anyOf": [{"$ref": "#/items"}]}}, "/items"),
    ],
)
def test_what_is_no_schema(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as caught:
        grammar_of(schema)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"enum": []},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "array", "minItems": 1, "items": False},
        {"type": "array", "minItems": 3, "maxItems": 2},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "string", "enum": [1]},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {
            "$ref": "#/$defs/n",
            "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
        },
        {"const": 1, "anyOf": [{"const": 2}, {"type": "null"}]},
        {"not": {}},
        {"not": True},
        {"type": "string", "maxLength": 0, "not": {"const": ""}},
        {"type": "boolean", "not": {"enum": [True, False]}},
        {"oneOf": [{"type": "string"}, {"type": "string"}]},
        {"type": "string", "pattern": "^a$", "minLength": 2},
        {"type": "object", "required": ["ab"], "propertyNames": {"maxLength": 1}},
        {"type": "object", "required": ["ab"], "patternProperties": {"^a": False}},
        {"allOf": [{"pattern": "^a"}, {"pattern": "^b"}], "type": "string"},
        {"type": "string", "format": "date", "maxLength": 9},
    ],
)
def test_what_nothing_satisfies(schema: Any) -> None:
    with pytest.raises(UnsatisfiableSchemaError):
        grammar_of(schema)


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"type": "object", "properties": {"\ud800": {}}}, "properties"),
        ({"type": "object", "required": ["\ud800"]}, "required"),
        ({"type": "object", "dependentRequired": {"a": ["\ud800"]}}, "dependentRequired"),
        ({"enum": ["\ud800"]}, "enum"),
        ({"const": {"\ud800": 1}}, "const"),
        ({"allOf": [{"type": "object", "properties": {"\udfff": {}}}, {"type": "object"}]}, "properties"),
    ],
)
def test_what_no_json_text_can_say_is_refused(schema: Any, keyword: str) -> None:
    with pytest.raises(SchemaError, match="lone surrogate") as caught:
        grammar_of(schema)
    assert caught.value.keyword == keyword


def test_integers_of_draft_4_are_written_without_a_point() -> None:
    old = {"$schema": DRAFT_4, "type": ["integer", "string"], "maximum": 300}
    check(old, accepts=[1, Raw("-5"), "a"], rejects=[Raw("1.0"), Raw("1e2")], spelling="permissive")
    check({"$schema": DRAFT_4, "type": "integer", "enum": [1, 2.5]}, [1], [Raw("1.0"), 2.5], spelling="permissive")
    either = {"$schema": DRAFT_4, "anyOf": [{"type": "integer", "enum": [1, 2]}, {"enum": [1]}]}
    check(either, accepts=[1, 2, Raw("1.0")], rejects=[Raw("2.0")], spelling="permissive")
    check({"$schema": DRAFT_7, "type": "integer"}, accepts=[1, Raw("1.0"), Raw("1e2")], rejects=[], spelling="permissive")


def test_options_with_unknown_values() -> None:
    with pytest.raises(OptionError, match="'flexible', 'compact', 'indented'"):
        CompileOptions(whitespace="loose")  # type: ignore[arg-type]


def test_fuel_names_the_place() -> None:
    pairs = [{"anyOf": [{"minItems": i + 1}, {"contains": {"const": i}}]} for i in range(12)]
    with pytest.raises(FuelError, match="max_alternatives") as caught:
        grammar_of({"properties": {"x": {"type": "array", "allOf": pairs}}})
    assert caught.value.pointer == "/properties/x"
    with pytest.raises(FuelError, match="max_nodes"):
        grammar_of({"properties": {f"p{i}": {"maxLength": i} for i in range(20)}}, limits=Limits(max_nodes=10))


@pytest.mark.parametrize("spelling", ["default", "permissive"])
def test_an_integer_of_draft_4_has_no_point_where_it_is_listed_either(spelling: str) -> None:
    for listed in ({"enum": [2, 2.5, 100]}, {"enum": [100, 2]}):
        schema = {"$schema": DRAFT_4, "type": "integer", **listed}
        check(schema, [2, 100], [Raw("2.0"), 2.5, Raw("1e2"), Raw("100.0")], spelling=spelling)
    nested = {"$schema": DRAFT_4, "enum": [[2], {"a": 3}], "items": {"type": "integer"}}
    check(nested, [[2], {"a": 3}], [Raw("[2.0]")], spelling=spelling)
    # Validators disagree about 1.0, so it is neither an integer nor none.
    check({"$schema": DRAFT_4, "not": {"type": "integer"}}, [1.5, "a"], [1, Raw("1.0")], spelling=spelling)
