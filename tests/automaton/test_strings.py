"""Strings are judged decoded: any spelling of a character is that character, and nothing that is no character passes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained import CompiledGrammar
from tests.grammars import Raw, accepts, check, grammar_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@pytest.fixture(scope="module")
def any_string() -> CompiledGrammar:
    return grammar_of({"type": "string"})


@given(TEXT, st.booleans())
def test_what_encoders_print_is_accepted(any_string: CompiledGrammar, text: str, ascii_only: bool) -> None:
    assert accepts(any_string, json.dumps(text, ensure_ascii=ascii_only))
    assert accepts(any_string, json.dumps(text, ensure_ascii=ascii_only).replace("/", "\\/"))
    assert accepts(any_string, json.dumps(text).replace("\\u00e9", "\\u00E9"))


@given(st.binary(max_size=6))
def test_bytes_are_accepted_just_where_json_takes_them(any_string: CompiledGrammar, inside: bytes) -> None:
    data = b'"' + inside + b'"'
    try:
        value = json.loads(data.decode())
        plain = isinstance(value, str) and not any(0xD800 <= ord(character) <= 0xDFFF for character in value)
    except ValueError:
        plain = False
    if plain and b"\\u" not in data:
        assert accepts(any_string, data)
    if not plain:
        assert not accepts(any_string, data)


@pytest.mark.parametrize(
    "raw",
    [
        '"\\ud83d"',
        '"\\ud83d\\n"', '"\\ude00"', '"\\ud83d\\ud83d"', '"\\ud83dx"', '"\\u12"', '"\\x41"', '"\t"', '"\n"', '"\x00"',
        '"\\ud83d\\u0041"', '"\\uD83D\\uDBFF"', '"a', "'a'",
    ],
)  # fmt: skip
def test_what_is_no_string_is_refused(any_string: CompiledGrammar, raw: str) -> None:
    assert not accepts(any_string, raw)


@pytest.mark.parametrize(
    "data",
    [b'"\xc3"', b'"\x80"', b'"\xed\xa0\x80"', b'"\xc0\xaf"', b'"\xf5\x80\x80\x80"', b'"\xf0\x80\x80\x80"', b'"\xe2\x82"'],
)
def test_bad_utf8_is_refused(any_string: CompiledGrammar, data: bytes) -> None:
    assert not accepts(any_string, data)


def test_pairs_and_escapes(any_string: CompiledGrammar) -> None:
    for raw in (
        '"\\ud83d\\ude00"',
        '"\\uD83D\\uDE00x"',
        '"\\u00e9"',
        '"\\u001f"',
        '"\\b\\f\\n\\r\\t\\/\\\\\\""',
        '"\\u003c"',
        '"\U0010ffff"',
    ):
        assert accepts(any_string, raw)


def test_lengths_count_code_points() -> None:
    check(
        {"type": "string", "minLength": 2, "maxLength": 3},
        accepts=["ab", "abc", "😀é", Raw('"\\ud83d\\ude00\\u00e9"'), Raw('"\\n\\"x"')],
        rejects=["", "a", "abcd", "😀", Raw('"\\ud83d\\ude00"'), Raw('"\\n\\"xy"')],
    )


def test_enums_are_matched_decoded() -> None:
    check(
        {"enum": ["é\n", "a/b", 'q"', "\u2028", ""]},
        accepts=["é\n", Raw('"\\u00e9\\n"'), Raw('"\\u00E9\\u000a"'), Raw('"a\\/b"'), Raw('"q\\""'), Raw('"\\u2028"'), ""],
        rejects=["é", "e\n", Raw('"\\u00e8\\n"'), Raw('"q\\\\"'), "a", Raw('"\\u2029"')],
    )


@given(st.lists(TEXT, min_size=1, max_size=4), TEXT, st.booleans())
def test_enums_accept_their_values_only(values: list[str], other: str, ascii_only: bool) -> None:
    grammar = grammar_of({"enum": values})
    for value in values:
        assert accepts(grammar, json.dumps(value, ensure_ascii=ascii_only))
    assert accepts(grammar, json.dumps(other, ensure_ascii=ascii_only)) == (other in values)


def test_a_key_is_the_same_key_however_it_is_spelled() -> None:
    schema = {"type": "object", "properties": {"é": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    check(
        schema,
        accepts=[{"é": 1}, Raw('{"\\u00e9": 1}'), {"e": "x"}],
        rejects=[{"é": "x"}, Raw('{"\\u00e9": "x"}'), Raw('{"\\u00E9": "x"}'), {"e": 1}],
    )


UNIT = [chr(0x410 + i) for i in range(16)]  # all that may follow \u041
LEAD = [chr(0x400 + i) for i in range(64)]  # all that may follow the byte 0xD0


@pytest.mark.parametrize("spelling", ["default", "permissive"])
@pytest.mark.parametrize(("excluded", "begun"), [(UNIT, b'"\\u041'), (LEAD, b'"\xd0'), (["a"], b'"'), (["\u00e9", "ab"], b'"')])
def test_no_half_character_leads_to_nothing(spelling: str, excluded: list[str], begun: bytes) -> None:
    """With no room for another character, masks and steps agree, and something may always follow."""
    grammar = grammar_of({"type": "string", "maxLength": 1, "not": {"enum": excluded}}, spelling=spelling)
    matcher = grammar.matcher()
    for byte in (*begun, None):
        allowed = [i for i in range(256) if matcher.mask_row().words[i >> 5] >> (i & 31) & 1]
        assert allowed
        assert allowed == [i for i in range(256) if matcher.fork().accept_token(i)]
        if byte is None or not matcher.accept_token(byte):
            break
    check({"type": "string", "maxLength": 1, "not": {"enum": excluded}}, ["b", "z"], [*excluded[:1], "bb"], spelling=spelling)
