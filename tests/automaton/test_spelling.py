"""The permissive spelling: every text that RFC 8259 reads as a valid value; a key is the same key however it is spelled."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained import CompileOptions
from constrained.errors import OptionError
from tests.grammars import Raw, accepts, check, grammar_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
PICK = st.randoms(use_true_random=False)
SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def spelled(text: str, pick: random.Random) -> str:
    """A random one of the JSON spellings of `text`."""
    return '"' + "".join(pick.choice(spellings(character, pick)) for character in text) + '"'


def spellings(character: str, pick: random.Random) -> list[str]:
    units = character.encode("utf-16-be")
    digits = [f"{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)]
    mixed = ["".join(pick.choice((digit, digit.upper())) for digit in unit) for unit in digits]
    direct = [character] if character >= " " and character not in '"\\' else []
    short = [SHORT[character]] if character in SHORT else []
    return ["".join("\\u" + unit for unit in mixed), *direct, *short]


@given(TEXT, PICK)
def test_every_spelling_of_a_string_is_accepted(text: str, pick: random.Random) -> None:
    raw = spelled(text, pick)
    assert json.loads(raw) == text
    assert accepts(_permissive({"type": "string", "minLength": len(text), "maxLength": len(text)}), raw)


@given(st.lists(TEXT, min_size=1, max_size=3), TEXT, PICK)
def test_enums_and_keys_are_judged_decoded(values: list[str], other: str, pick: random.Random) -> None:
    grammar = _permissive({"enum": values})
    assert all(accepts(grammar, spelled(value, pick)) for value in values)
    assert accepts(grammar, spelled(other, pick)) == (other in values)
    named = _permissive({"type": "object", "properties": dict.fromkeys(values, True), "additionalProperties": False})
    assert accepts(named, f"{{{spelled(other, pick)}: 1}}") == (other in values)


@given(TEXT, TEXT, PICK)
def test_no_key_comes_twice_however_it_is_spelled(one: str, other: str, pick: random.Random) -> None:
    text = f'{{{spelled(one, pick)}:1,"x":2,{spelled(other, pick)}:3}}'
    assert accepts(_permissive({"type": "object"}), text) == (len({one, other, "x"}) == 3)


_grammars: dict[str, Any] = {}


def _permissive(schema: Any) -> Any:
    name = json.dumps(schema)
    if name not in _grammars:
        _grammars[name] = grammar_of(schema, spelling="permissive")
    return _grammars[name]


def test_patterns_are_matched_decoded() -> None:
    check(
        {"type": "string", "pattern": "^[a-c]é?😀$"},
        accepts=["a😀", Raw('"\\u0061\\u00E9\\ud83D\\uDe00"'), Raw('"b\\uD83D\\uDE00"')],
        rejects=[Raw('"\\u0064😀"'), Raw('"a\\ud83d\\ude01"'), Raw('"a\\u00e8😀"')],
        spelling="permissive",
    )


@pytest.mark.parametrize("raw", ['"\\ud83d"', '"\\ude00"', '"\\ud83d\\u0041"', '"\\u00g0"', '"\\U0041"', '"\\a"', '"\n"'])
def test_what_rfc_8259_does_not_read_is_refused(raw: str) -> None:
    assert not accepts(_permissive({"type": "string"}), raw)


def test_the_default_profile_escapes_what_encoders_escape() -> None:
    check({"type": "string"}, accepts=[Raw('"\\u000a\\u003C"')], rejects=[Raw('"\\u0061"'), Raw('"\\u0030"'), Raw('"\\u0020"')])


@pytest.mark.parametrize("gap", ["\r", "\n\n", "\t \r\n\r\n ", " " * 256])
def test_any_whitespace_may_stand_at_a_gap(gap: str) -> None:
    for text in (f"[{gap}]", f"[1{gap}]", f"[1,{gap}2]", f"{gap}[]", f'{{{gap}"a"{gap}:{gap}1{gap}}}'):
        assert accepts(_permissive(True), text), text
        assert not accepts(grammar_of(True), text), text


def test_runs_of_whitespace_are_bounded() -> None:
    for spelling, most in (("default", 32), ("permissive", 256)):
        assert accepts(grammar_of(True, spelling=spelling), f"[{' ' * most}]")
        assert not accepts(grammar_of(True, spelling=spelling), f"[{' ' * (most + 1)}]")
        few = grammar_of(True, spelling=spelling, max_whitespace=2)
        assert accepts(few, "[  1  ,  2  ]")
        assert not accepts(few, "[   1]")
        assert not accepts(few, "[1   ]")
    assert accepts(grammar_of(True, max_whitespace=0), "[\n1]")
    assert not accepts(grammar_of(True, max_whitespace=0, spelling="permissive"), "[\n1]")


def test_layouts_keep_their_whitespace_in_the_permissive_spelling() -> None:
    assert not accepts(grammar_of(True, spelling="permissive", whitespace="compact"), "[ ]")
    indented = grammar_of(True, spelling="permissive", whitespace="indented")
    assert accepts(indented, '[\n  "\\u0061"\n]')
    assert not accepts(indented, "[1]")


def test_a_newline_may_be_written_with_a_carriage_return() -> None:
    for text, fits in (("[\r\n  1\r\n]", True), ("[\r]", False), ("[ \r\n ]", True), ("[\r\n\n]", False), ("[1\r2]", False)):
        assert accepts(grammar_of(True), text) is fits, text


@pytest.mark.parametrize("most", [-1, 10**9])
def test_a_bound_must_be_a_sensible_number(most: int) -> None:
    with pytest.raises(OptionError, match="max_whitespace"):
        CompileOptions(max_whitespace=most)
