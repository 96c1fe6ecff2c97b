"""Patterns mean what ECMA-262 says: against a plain matcher, against `re`, and case by case."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings

from constrained.grammar.language import ANYTHING, NOTHING, PatternError, from_pattern, from_values, of_length
from tests.grammar.language.reference import Node, all_texts, nodes, plain

TEXTS = all_texts(4)


@settings(max_examples=150)
@given(nodes)
def test_search_is_that_of_the_reference(node: Node) -> None:
    language = from_pattern(str(node))
    for text in TEXTS:
        assert language.contains(text) == node.matches_somewhere(text), (str(node), text)


@settings(max_examples=150)
@given(nodes)
def test_anchored_is_a_match_from_end_to_end(node: Node) -> None:
    language = from_pattern(str(node), anchored=True)
    for text in TEXTS:
        assert language.contains(text) == node.matches_whole(text), (str(node), text)


@settings(max_examples=100)
@given(plain)
def test_plain_patterns_agree_with_re(node: Node) -> None:
    language, compiled = from_pattern(str(node)), re.compile(str(node), re.ASCII)
    whole = from_pattern(str(node), anchored=True)
    for text in TEXTS:
        assert language.contains(text) == (compiled.search(text) is not None), (str(node), text)
        assert whole.contains(text) == (compiled.fullmatch(text) is not None), (str(node), text)


def check(pattern: str, accepts: list[str], rejects: list[str]) -> None:
    language = from_pattern(pattern)
    for text in accepts:
        assert language.contains(text), (pattern, text)
    for text in rejects:
        assert not language.contains(text), (pattern, text)


def test_characters_and_classes() -> None:
    check("^.$", ["a", "\u0085", "\U0001f600"], ["\n", "\r", "\u2028", "\u2029", "ab"])
    check("^[^a]$", ["\n", "b"], ["a", ""])
    check("^[]$", [], ["", "a"])
    check("^[^]$", ["a", "\n"], [""])
    check(r"^[a\-z]$", ["a", "-", "z"], ["b"])
    check(r"^[\w-.]$", ["a", "-", "."], [",", "/"])
    check(r"^[a-\d]$", ["a", "-", "7"], ["b"])
    check(r"^[-a]$", ["-", "a"], ["b"])
    check(r"^[a-]$", ["-", "a"], ["b"])
    check(r"^[\b]$", ["\b"], ["b"])
    check(r"^[\]^]$", ["]", "^"], ["\\"])
    check(r"^\s\S$", ["\ufeffa", "\u00a0\u0085"], ["\u0085a", "  "])
    check(r"^\d\D\w\W$", ["1aa-", "7١_é"], ["١aa-", "1aaa"])


def test_escapes() -> None:
    check(r"^\t\n\v\f\r\0$", ["\t\n\v\f\r\0"], ["tnvfr0"])
    check(r"^\cA\cz\x41\u0042$", ["\x01\x1aAB"], ["cAczAB"])
    check(r"^\u{1F600}\ud83d\ude00$", ["\U0001f600\U0001f600"], ["\U0001f600"])
    check(r"^[\ud83d\ude00-\ud83d\ude02]$", ["\U0001f601"], ["\U0001f603"])
    check(r"^\-\_\/\"\@\#\ \.\{\}\]$", ['-_/"@# .{}]'], [])
    check("^{a}]{,x{1$", ["{a}]{,x{1"], [])
    assert from_pattern(r"\ud83d") is NOTHING
    assert from_pattern(r"^[\udc00-\udfff]*$") is from_values([""])


def test_groups_and_quantifiers() -> None:
    check("^(a)(?:b)(?<name>c)$", ["abc"], ["ab"])
    check("^a??b+?c*?d{1,2}?$", ["abbccdd", "bd"], ["ac", "bddd"])
    check("^(?:a|)+$", ["", "aa"], ["b"])
    check("^a{0}b$", ["b"], ["ab"])
    check("^(?s:.)(?-s:.)$", ["\na"], ["a\n"])
    check("(?m:^a$)", ["b\na\rc", "a"], ["b a", "ab"])
    check("(?m:^)(?:^)a$", ["a"], ["\na"])


def test_anchors_stand_anywhere() -> None:
    check("^a|b$", ["ax", "xb"], ["xa", "bx", "bax"])
    check("(^|,)a(,|$)", ["a", "b,a", "a,b", "b,a,c"], ["ba", "ab"])
    check("a^", [], ["a", "", "aa"])
    check("$a", [], ["a", "", "aa"])
    check("(?:^a|b)*c", ["c", "abbc", "xbc"], ["x"])
    check("^(?:a$|b)*$", ["", "bba", "a", "bb"], ["ab", "aa"])
    assert from_pattern("^$") is from_values([""])
    assert from_pattern("$^|^^$$") is from_values([""])
    assert from_pattern("$") is ANYTHING


def test_word_boundaries() -> None:
    check(r"\bfoo\b", ["foo", "a foo.", "-foo"], ["food", "afoo", "_foo", "fo o"])
    check(r"^\B$", [""], ["a"])
    check(r"^(?:\w\b-?)*$", ["", "a", "a-b", "a-"], ["ab", "-"])
    check(r"\Boo\B", ["food"], ["foo", "oop"])
    assert from_pattern(r"\b") is not NOTHING
    assert from_pattern(r"a\bb").is_empty


def test_lookarounds() -> None:
    check("^(?!foo|bar)[a-z]+$", ["fo", "abc"], ["foo", "food", "bars"])
    check("^(?=.*[A-Z])(?=.*[0-9]).{4,}$", ["aA0a", "0Aaaaa"], ["aaaa", "A0", "AAAA"])
    check("^((?!--).)*$", ["a-b", ""], ["a--b"])
    check("^(?:(?!ab)[ab])+$", ["bba", "aa"], ["ab", "bab"])
    check(r"(?<=\$)\d+(?!\.)\b", ["$42", "x$1"], ["42", "$42."])
    check("(?<!a|bc)d", ["d", "cd", "bd"], ["ad", "bcd"])
    check("(?<=^|,)x", ["x", "a,x"], ["ax"])
    check("(?<=a+b*)c$", ["abc", "aac", "ac"], ["bc", "c"])
    check("^(?:a(?<!ba)|b)*$", ["aab", "bb"], ["ba", "aba"])
    check("^(?:[ab](?<=(?<!b)a|b))*$", ["a", "bb", "ab"], ["ba"])
    check("(?=(?!a)b)", ["b", "ab"], ["a", ""])
    check("(?=a)(?<!a|[^a])", ["a", "ab"], ["ba", "b", ""])


@pytest.mark.parametrize(
    ("pattern", "message", "position"),
    [
        ("a(b", "a group is not closed", 2),
        ("ab)", "unmatched ')'", 2),
        ("[a", "a character class is not closed", 0),
        ("*a", "nothing to repeat", 0),
        ("a**", "nothing to repeat", 2),
        ("a{2}{3}", "nothing to repeat", 4),
        ("a{3,2}", "the numbers of a quantifier are out of order", 1),
        ("a{,3}", "'{,m}' is not a quantifier of ECMA-262; write '{0,m}'", 1),
        ("[b-a]", "a range of characters is out of order", 1),
        ("a\\", "a backslash at the end", 1),
        (r"(a)\1", "backreferences are not supported", 3),
        (r"(?<n>a)\k<n>", "backreferences are not supported", 7),
        (r"a\Z", "the escape '\\Z' is not supported", 1),
        (r"\07", "the escape '\\0' is not supported", 0),
        (r"[\1]", "the escape '\\1' is not supported", 1),
        (r"\x4", "invalid hexadecimal escape", 0),
        (r"\u{110000}", "the escape is beyond the last code point", 0),
        (r"\u{}", "invalid hexadecimal escape", 0),
        (r"\u{41", "invalid hexadecimal escape", 0),
        (r"\c1", "'\\c' without a letter", 0),
        (r"\p{Script=Latin}", "the Unicode property 'Script=Latin' is not supported", 0),
        (r"\pL", "invalid property escape", 0),
        ("(?i)a", "invalid group", 0),
        ("(?i:a)", "the modifier 'i' is not supported", 0),
        ("(?P<n>a)", "invalid group", 0),
        ("(?<1>a)", "invalid name of a group", 0),
        ("(?=a)*", "a quantifier after an assertion is not allowed", 0),
        ("^+", "a quantifier after an assertion is not allowed", 0),
        (r"(?<=a\b)", "lookahead, '$' or a word boundary inside a lookbehind is not supported", 0),
        ("(" * 101 + ")" * 101, "groups nested deeper than 100", 101),
    ],
)
def test_what_is_refused_is_named_with_its_position(pattern: str, message: str, position: int) -> None:
    with pytest.raises(PatternError) as caught:
        from_pattern(pattern)
    assert (caught.value.message, caught.value.position) == (message, position)


def test_real_formats() -> None:
    uuid = "^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$"
    check(uuid, ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-42661417400"])
    date = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"
    check(date, ["2024-02-29"], ["2024-13-01", "2024-1-01"])
    mail = r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9]+)*$"
    check(mail, ["a.b+c@example.org"], ["a@", "@b", "a@-b"])
    words = [f"{a}{b}{c}" for a, b, c in product("abcdef", "ghijkl", "mnopqr")]
    assert from_pattern(f"^(?:{'|'.join(words)})$") is from_values(words)


def test_counted_repetition_keeps_its_count() -> None:
    assert from_pattern("^[a-z]{3,5000}$") & of_length(0, 4000) is from_pattern("^[a-z]{3,4000}$")
    language = from_pattern("[ab]{200}")
    assert language.contains("c" + "ab" * 100)
    assert not language.contains("c" + "ab" * 99 + "a")
    assert language.shortest_len() == 200


def test_long_chains_do_not_recurse() -> None:
    optional = "".join(f"[{chr(97 + number % 26)}{chr(65 + number % 26)}]?" for number in range(500))
    assert from_pattern(f"^{optional}$").contains("abcXYZ")
    assert from_pattern(f"^{optional}\\b!$").contains("abcXYZ!")
    assert not from_pattern(f"^{optional}\\b!$").contains("!")


def test_nested_optional_lookaheads_stay_small() -> None:
    nested = from_pattern(f"^{'(?:a(?!c)' * 40}{')?' * 40}c?$")
    assert nested.contains("a" * 40)
    assert not nested.contains("a" * 41)
    assert not nested.contains("ac")
