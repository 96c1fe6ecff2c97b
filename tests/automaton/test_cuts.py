"""Masks behind gaps where shortcuts through text are taken: keys and strings that may be any, against every token tried."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from constrained import Vocabulary
from constrained.automaton.lexemes import shared_lexemes
from constrained.automaton.vocabulary_rows import rows_of
from constrained.automaton.walk_items import LARGE
from tests.grammars import AWKWARD, grammar_of
from tests.oracles import allowed_by_mask, allowed_by_trying

WORDS = ["a", "b", "ab", "name", "namely", "x", "é", "日本", ""]


@cache
def vocabulary() -> Vocabulary:
    """So many tokens that begin with a quote that a shortcut is worth its while; some go through the end."""
    ends = ["", '"', '":', '": ', '":"', '","', '"}', '"]', '", "', "\\", '\\"', '\\n"', '\\u0061"', '":1,"a"', '":1,"q":']
    quoted = [f'{gap}"{word}{end}'.encode() for gap in ("", " ", "\n") for word in WORDS for end in ends]
    tokens = [*(bytes([byte]) for byte in range(256)), *dict.fromkeys([*quoted, *AWKWARD]), b'"\xe6', b"", b""]
    return Vocabulary.from_bytes(list(dict.fromkeys(tokens[:-2])) + tokens[-2:], [len(set(tokens[:-2])) + 1])


def test_there_is_a_shortcut() -> None:
    shared = rows_of(vocabulary())
    trie, quote = shared.gaps.stripped, shared.gaps.quote
    assert trie.end[quote] - quote > LARGE
    cuts = shared.cuts(shared_lexemes())
    assert cuts._index.cells[quote] >= 0


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"type": "object"}, b'{ "a" : 1 , "b": {"x": "y"}, "q":0, "ab": []}'),
        ({"properties": {"a": {"type": "string"}, "name": {"enum": [1]}}}, b'{"a" : "ab", "name": 1, "namely":null, "x" : {}}'),
        (
            {"type": "object", "properties": {"a": False, "b": {"type": "null"}}, "required": ["b"]},
            b'{ "b" : null , "x": "a" }',
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"q": {}}}, b'{ "q": 1 , "x" : "ab"}'),
        ({"type": "object", "additionalProperties": False, "properties": {"q": {"type": "string"}}}, b'{ "q": "ab"}'),
        ({"type": "array", "items": {"type": ["string", "null"]}}, b'[ "a", "b" , null, "" ]'),
        ({"type": "array", "items": {"type": "string", "minLength": 2}}, b'[ "ab", "name" ]'),
        *(
            ({"type": "array", "items": {"type": "string", "maxLength": length}}, b'[ "", "a\\n" , "\xc3\xa9" ]')
            for length in (2, 7, 8, 9, 10, 30)
        ),
        (
            {"properties": {"a": {"type": "string", "maxLength": 9}, "b": {"type": ["string", "integer"], "maxLength": 12}}},
            b'{"a" : "ab", "b" : "name", "c": "x" }',
        ),
        ({"type": "array", "items": {"type": "string", "not": {"enum": ["a", "ab"]}}}, b'[ "abc", "" ]'),
        ({"type": "object", "patternProperties": {"^n": {"type": "integer"}}}, b'{ "name": 1, "a": "x", "namely": 2 }'),
        ({"type": "object", "propertyNames": {"maxLength": 2}}, b'{ "a": 1, "ab": 2 }'),
        ({"type": "object", "maxProperties": 2}, b'{ "a": 1, "ab": 2 }'),
    ],
)
@pytest.mark.parametrize("options", [{}, {"property_order": "any"}, {"spelling": "permissive"}])
def test_masks_are_what_trying_says(schema: Any, document: bytes, options: dict[str, Any]) -> None:
    grammar = grammar_of(schema, vocabulary(), **options)
    matcher = grammar.matcher()
    for byte in document:
        assert allowed_by_mask(matcher, vocabulary()) == allowed_by_trying(matcher, vocabulary()), matcher.text
        assert matcher.accept_token(byte), matcher.text
    assert matcher.is_accepting


@cache
def numerals() -> Vocabulary:
    """All numbers of up to three digits, some with what may follow them: shortcuts through numbers are worth their while."""
    runs = [f"{number:0{length}}" for length in (1, 2, 3) for number in range(10**length)]
    some = [
        f"{gap}{run}{end}"
        for gap in ("", " ", "[", "\n")
        for run in runs[::37]
        for end in ("", ",", "}", "]", ".", "e", ".5,", "} ")
    ]
    tokens = [*(bytes([byte]) for byte in range(256)), *(text.encode() for text in (*runs, *some)), *AWKWARD]
    return Vocabulary.from_bytes([*dict.fromkeys(tokens), b""], [len(set(tokens))])


@pytest.mark.parametrize("whitespace", ["flexible", "compact"])
def test_masks_before_numbers_are_what_trying_says(whitespace: str) -> None:
    number, integer, some = {"type": "number"}, {"type": "integer"}, {"type": "integer", "minimum": 0, "maximum": 250}
    schema = {
        "type": "object",
        "properties": {
            "a": number,
            "b": integer,
            "c": {"type": ["string", "number"]},
            "d": {"type": "array", "items": integer},
            "e": {},
            "f": some,
            "g": {"anyOf": [some, {"type": "integer", "minimum": 900}, {"type": "null"}]},
            "h": {"type": "integer", "minimum": 1},
        },
    }
    document = b'{"a": 1.5, "b": 12, "c": 100, "d": [1, 20,300], "e": 7, "f": 25, "g": 901, "h": 3}'
    if whitespace == "compact":
        document = document.replace(b" ", b"")
    cuts = rows_of(numerals()).cuts(shared_lexemes())
    for _ in range(3):
        matcher = grammar_of(schema, numerals(), whitespace=whitespace).matcher()
        for byte in document:
            assert allowed_by_mask(matcher, numerals()) == allowed_by_trying(matcher, numerals()), matcher.text
            assert matcher.accept_token(byte), matcher.text
        assert matcher.is_accepting
    if whitespace == "flexible":
        assert len(cuts.numbers) >= 2
