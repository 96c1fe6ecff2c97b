"""Tokens that end an item of an array whose items must differ: masks against every token tried by itself."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import pytest

from constrained.automaton.masks import Masks
from constrained.automaton.next_items import Ending, NextItems, Opening
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
    b'"a",',
    b' "a", "',
    b'"a","',
    b'","b","',
    b'","a","a',
    b'","b","b","',
    b"[],",
    b" {},",
    b"1,1,",
    b"1,2,-",
    b",[",
    b",]",
    b'",:]',
    b'",null,',
    b'",\n  ',
    b'",\n    "',
    b",\n  ",
    b"  ,",
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
        (DISTINCT, ["a", 1, {}, [], None, -1]),
        ({**DISTINCT, "items": STRING, "maxItems": 3}, ["a", "b", "c"]),
        ({**DISTINCT, "items": {"type": "number"}, "minItems": 3}, [1, 1.5, -2, 2]),
        ({**DISTINCT, "items": {**STRING, "pattern": "^[ab]+$"}}, ["a", "b", "ab"]),
        (
            {"anyOf": [{**DISTINCT, "items": STRING}, {**DISTINCT, "items": {**STRING, "minLength": 1}, "minItems": 2}]},
            ["a", "b", ""],
        ),
        ({"anyOf": [{**DISTINCT, "items": STRING}, {"type": "array", "items": {"maxLength": 1}}]}, ["a", "a", "b"]),
        ({"oneOf": [{**DISTINCT, "items": STRING}, {**DISTINCT, "items": {"type": "integer"}, "minItems": 1}]}, ["a", ""]),
    ],
)
@pytest.mark.parametrize(
    ("whitespace", "layout"),
    [
        ("flexible", {"separators": (",", ":")}),
        ("flexible", {"separators": (", ", ": ")}),
        ("compact", {"separators": (",", ":")}),
        ("indented", {"indent": 2}),
    ],
)
def test_masks_are_what_trying_says(schema: Any, document: Any, whitespace: Any, layout: Any) -> None:
    grammar = grammar_of(schema, VOCABULARY, whitespace=whitespace)
    for text in (json.dumps(document, **layout), json.dumps(document, **layout, ensure_ascii=False)):
        matcher = grammar.matcher()
        for byte in text.encode():
            assert allowed_by_mask(matcher, VOCABULARY) == allowed_by_trying(matcher, VOCABULARY), matcher.text
            if not matcher.accept_token(byte):
                break


@pytest.mark.parametrize(
    ("schema", "document", "begun"),
    [
        ({**DISTINCT, "items": STRING}, ["a", "", "aa", "b"], b""),
        ({"anyOf": [{**DISTINCT, "items": STRING}, {**DISTINCT, "items": {**STRING, "minLength": 1}}]}, ["a", "b", ""], b""),
        ({**DISTINCT, "items": {**STRING, "pattern": "^[ab]+$"}}, ["a", "b", "ab"], b'"[ab]+'),
        ({**DISTINCT, "items": {"enum": ["".join(pair) for pair in product("abcdefgh", repeat=2)]}}, ["aa", "ab"], b'"[ab]+'),
        ({**DISTINCT, "items": {"type": "integer"}}, [1, -1, 12], b"1"),
    ],
)
def test_where_values_abound_few_tokens_are_asked(
    monkeypatch: pytest.MonkeyPatch, schema: Any, document: Any, begun: bytes
) -> None:
    """None but those that begin what not every item begins with."""
    asked: list[int] = []
    monkeypatch.setattr(Masks, "_settle", lambda self, state, words, tokens, history: asked.extend(tokens.tolist()))
    matcher = grammar_of(schema, VOCABULARY).matcher()
    for byte in json.dumps(document).encode()[:-1]:
        matcher.mask_row()
        assert matcher.accept_token(byte)
    assert [token for token in asked if not re.fullmatch(rb".*, ?" + begun, TOKENS[token - 256])] == []
    assert bool(asked) == bool(begun)


def test_which_tokens_they_are() -> None:
    items = NextItems(TOKENS)

    def found(opening: Opening, ending: Ending, **where: bool) -> set[bytes]:
        return {TOKENS[i] for i, is_one in enumerate(items.of(opening, ending, **where)) if is_one}

    inside, behind = found(Opening.STRING, Ending.IN_STRING), found(Opening.STRING, Ending.ELSEWHERE)
    assert {b'",', b'","a', b'", "a\\', b'a",', b'a", "b', b'61",', b'","\xc3'} <= inside
    assert inside.isdisjoint({b'","a"', b'","a",', b'a"', b'a\\",', b'"]', b'"],["', b"1,", b',"a'})
    assert {b',"', b', "a', b"1,", b'1, "'} <= behind
    assert behind.isdisjoint({b',"a",', b"],", b", -", b",1", b'",'})
    assert {b',"', b"1,", b", -"} <= found(Opening.NUMBER, Ending.ELSEWHERE) | found(Opening.QUOTE, Ending.ELSEWHERE)
    assert {b"1,", b'1, "', b'"a",', b'"a","'} <= found(Opening.STRING, Ending.BEFORE)
    assert {b", -", b'1, "', b",["} <= found(Opening.ANYTHING, Ending.ELSEWHERE)
    bare = found(Opening.NOTHING, Ending.ELSEWHERE)
    assert b"1," in bare
    assert bare.isdisjoint({b',"', b"},", b", -"})
    braced = found(Opening.OBJECT, Ending.ELSEWHERE, in_object=True)
    assert {b"},", b"1},", b"},{", b'}, {"'} <= braced
    assert braced.isdisjoint({b'"},', b'},{"a', b"1,"})
    assert {b'"},', b'"}, {', b'x"},', b'"},{"'} <= found(Opening.OBJECT, Ending.IN_STRING, in_object=True)


def test_the_first_mask_of_all_may_be_one_behind_a_comma() -> None:
    matcher = grammar_of({**DISTINCT, "items": {"enum": ["a", "b"]}}, VOCABULARY).matcher()
    for token in (ord("["), ord('"'), ord("a")):
        assert matcher.accept_token(token)
    assert TOKENS.index(b'",') + 256 in allowed_by_mask(matcher, VOCABULARY)


def test_what_is_behind_a_comma() -> None:
    items = NextItems([b'a", "b", 1.0,-', b'",,', b'"', b'"x","\xff",'])
    assert items.split(0, Ending.IN_STRING) == (b'a",', b' "b", 1.0,-')
    assert items.split(2, Ending.IN_STRING) is None
    assert items.split(3, Ending.BEFORE) == (b'"x",', b'"\xff",')
    assert items.further(b' "b", 1.0,-') == (('"b"', "1"), b"-")
    assert items.further(b",") == ((), b",")
    assert items.further(b'"\xff",') == ((), b'"\xff",')
