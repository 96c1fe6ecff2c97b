r"""`\p{..}` against `unicodedata`, code point by code point."""

from __future__ import annotations

import unicodedata

import pytest

from constrained.grammar.language import charsets, from_pattern, properties
from tests.grammar.language.test_patterns import check


def test_categories_part_the_alphabet_as_unicodedata_does() -> None:
    expected: dict[str, list[tuple[int, int]]] = {}
    for code_point in range(charsets.LAST_CODE_POINT + 1):
        spans = expected.setdefault(unicodedata.category(chr(code_point)), [])
        if spans and spans[-1][1] == code_point - 1:
            spans[-1] = (spans[-1][0], code_point)
        else:
            spans.append((code_point, code_point))
    for name, spans in expected.items():
        assert properties.known_property(f"gc={name}") == charsets.normalise(spans), name


def test_names_and_aliases() -> None:
    check(r"^\p{Lu}\p{Uppercase_Letter}\p{General_Category=Lu}\p{gc=Uppercase_Letter}$", ["ÀÉAÖ"], ["Àéaö"])
    check(r"^\p{L}+$", ["aÉ漢ǅ"], ["1", "_"])
    check(r"^\p{LC}+$", ["aÉǅ"], ["漢"])
    check(r"^\P{L}+$", ["1-_"], ["a"])
    check(r"^[\p{digit}\p{Sc}]+$", ["1৪€"], ["a"])
    check(r"^[^\P{Lu}]$", ["A"], ["a", "1"])
    assert from_pattern(r"^\p{Cs}$").is_empty


def test_binary_properties() -> None:
    check(r"^\p{ASCII_Hex_Digit}\p{Hex}\p{White_Space}\p{ASCII}$", ["fＡ\u0085~"], ["ＡA a"])
    check(r"^\p{Lowercase}\p{Upper}$", ["ªⅠ", "aA"], ["Aa"])
    check(r"^\p{XID_Start}\p{XIDC}*$", ["é1_", "名"], ["1", "_a"])
    check(r"^\p{Bidi_M}\p{Any}$", ["(\n", "≤x"], ["aa"])
    assert from_pattern(r"^\P{Any}$").is_empty
    assert from_pattern(r"^\P{Assigned}$") is from_pattern(r"^\p{Cn}$")


@pytest.mark.parametrize("name", ["Script=Greek", "sc=Grek", "Greek", "Alphabetic", "Emoji", "lu", "gc=Greek", "", "L=Lu"])
def test_other_names_are_not_known(name: str) -> None:
    assert properties.known_property(name) is None
