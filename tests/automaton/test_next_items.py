"""Tokens that end an item of an array whose items must differ: masks against every token tried by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from constrained.automaton.next_items import NextItems, Opening
from constrained.tokens.vocabulary import Vocabulary
from tests.grammars import grammar_of
from tests.oracles import allowed_by_mask, allowed_by_trying

TOKENS = [
    b'",',
    b'", ',
    b'","',
    b'", "',
    b'","a',
    b'", "a\\',
    b'","a"',
    b'","a",',
    b'","",',
    b'a"',
    b'a",',
    b'a", "b',
    b'a\\",',
    b'\\",',
    b',"',
    b', "a',
    b',"a",',
    b"1,",
    b'1, "',
    b"],",
    b'"],["',
    b'"]',
    b'"},{"',
    b", -",
    b",1",
    b'","\xc3',
    b"\\u00",
    b'61",',
    b'"},',
    b"},",
    b"1},",
    b"},{",
    b'}, {"',
    b'},{"a',
    b'"}, {',
    b'x"},',
]
VOCABULARY = Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), *TOKENS, b""], [256 + len(TOKENS)])
STRING = {"type": "string"}
DISTINCT: dict[str, Any] = {"type": "array", "uniqueItems": True}
OBJECT_OF_TWO = {"type": "object", "properties": {"a": {"enum": [0, 1]}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({**DISTINCT, "items": STRING}, ["a", "", "aa", 'a"', "é", "b,"]),
        ({**DISTINCT, "items": STRING, "maxItems": 2}, ["a", "b"]),
        ({**DISTINCT, "items": {**STRING, "minLength": 1}}, ["a", "b"]),
        ({**DISTINCT, "items": {**STRING, "maxLength": 1}}, ["a", ""]),
        ({**DISTINCT, "items": {**STRING, "pattern": "^a*$"}}, ["a", "aa", ""]),
        ({**DISTINCT, "items": {"enum": ["a", "b", ""]}}, ["a", "b"]),
        ({**DISTINCT, "items": {"type": ["string", "integer", "null"]}}, ["a", 1, None, "1"]),
        ({**DISTINCT, "items": {"type": "integer", "maximum": 1}}, [1, -1, 0]),
        ({**DISTINCT, "prefixItems": [STRING, {"enum": ["a", "b"]}]}, ["a", "b", "a,"]),
        ({**DISTINCT, "items": STRING, "contains": {"const": "a"}}, ["b", "a"]),
        ({**DISTINCT, "items": {"type": "array", "items": STRING}}, [["a", "a"], [], ["a"]]),
        ({**DISTINCT, "items": {**DISTINCT, "items": STRING}}, [["a", "b"], ["b", "a"]]),
        ({**DISTINCT, "items": {"type": "integer"}}, [1, 12, -1, 0, 2]),
        ({**DISTINCT, "items": {"type": "object", "properties": {"a": STRING}}}, [{"a": "x"}, {}, {"a": ""}, {"b": 1}]),
        ({**DISTINCT, "items": {"type": "object", "properties": {"a": STRING}, "maxProperties": 1}}, [{"a": "x"}, {"a": "a"}]),
        ({**DISTINCT, "items": OBJECT_OF_TWO}, [{"a": 0}, {"a": 1}, {}]),
        ({**DISTINCT, "items": {"anyOf": [OBJECT_OF_TWO, {"type": "null"}]}}, [{"a": 0}, None, {}, {"a": 1}]),
        ({**DISTINCT, "items": {"anyOf": [OBJECT_OF_TWO, STRING]}}, [{"a": 0}, "a", {}, "b"]),
        ({"type": "array", "items": {**DISTINCT, "items": {"type": "object"}}}, [[{"a": 1}, {"a": 2}], [{"a": 1}]]),
        ({"not": DISTINCT, "type": "array", "items": STRING}, ["a", "b", "a"]),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_masks_are_what_trying_says(schema: Any, document: Any, separators: tuple[str, str]) -> None:
    grammar = grammar_of(schema, VOCABULARY)
    for text in (json.dumps(document, separators=separators), json.dumps(document, separators=separators, ensure_ascii=False)):
        matcher = grammar.matcher()
        for byte in text.encode():
            assert allowed_by_mask(matcher, VOCABULARY) == allowed_by_trying(matcher, VOCABULARY), matcher.text
            if not matcher.accept_token(byte):
                break


def test_which_tokens_they_are() -> None:
    items = NextItems(TOKENS)
    inside = {TOKENS[i] for i, found in enumerate(items.of(Opening.STRING, in_string=True)) if found}
    behind = {TOKENS[i] for i, found in enumerate(items.of(Opening.STRING, in_string=False)) if found}
    assert {b'",', b'","a', b'", "a\\', b'a",', b'a", "b', b'61",', b'","\xc3'} <= inside
    assert inside.isdisjoint({b'","a"', b'","a",', b'a"', b'a\\",', b'"]', b'"],["', b"1,", b',"a'})
    assert {b',"', b', "a', b"1,", b'1, "'} <= behind
    assert behind.isdisjoint({b',"a",', b"],", b", -", b",1", b'",'})
    bare = {TOKENS[i] for i, found in enumerate(items.of(Opening.NOTHING, in_string=False)) if found}
    assert b"1," in bare
    assert bare.isdisjoint({b',"', b"},"})
    braced = {TOKENS[i] for i, found in enumerate(items.of(Opening.OBJECT, in_string=False, in_object=True)) if found}
    assert {b"},", b"1},", b"},{", b'}, {"'} <= braced
    assert braced.isdisjoint({b'"},', b'},{"a', b"1,"})
    quoted = {TOKENS[i] for i, found in enumerate(items.of(Opening.OBJECT, in_string=True, in_object=True)) if found}
    assert {b'"},', b'"}, {', b'x"},', b'"},{"'} <= quoted
