"""`regex` against the project's own parser of ECMA-262, which shares no code with the format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.grammar.formats import FORMATS
from constrained.grammar.language import PatternError, from_pattern
from tests.grammar.formats.languages import certain, possible

CERTAIN, POSSIBLE = certain(FORMATS["regex"]), possible(FORMATS["regex"])
PIECES = (
    *(*"ab019-,^$.|*+?(){}[]/\\é", "(?:", "(?=", "(?<!", "(?<n>", "[^", "{1}", "{2,}", "{1,3}", "{3,1}", "{12,15}", "{15,12}"),
    *(r"\d", r"\W", r"\b", r"\-", r"\]", r"\\", r"\/", r"\0", r"\1", r"\k<n>", r"\p{Lu}", r"\u0041", r"\u{1F600}", r"\x41"),
    *(r"\cA", r"\n", r"\a", "a-z", "z-a", "0-9", "--a", "+--", r"\x1f-\x00", r"\u0400-\u04ff"),
)


def parses(text: str) -> bool:
    try:
        from_pattern(text)
    except PatternError:
        return False
    return True


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_what_is_certain_is_a_pattern(text: str) -> None:
    for candidate in (text, f"[{text}]", f"({text})", f"a{text}"):
        assert not CERTAIN.contains(candidate) or (parses(candidate) and POSSIBLE.contains(candidate))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "|",
            "^",
            "a|b|",
            "^[a-zA-Z0-9]+$",
            "^[a-zA-Z0-9_]{3,16}$",
            "a{2}?",
            "a{2,}",
            "a{9,10}",
            "a{12,15}",
            "a{100,1000}",
        ),
        *("(a)", "(?:a|b)*", "(?<year>[0-9]{4})", "((((a))))", r"^(?=.*[A-Z])(?!.*(foo|bar))\S+$", "(?<=a+)b", "(?<!a)b"),
        *("[]", "[^]", "[^^]", "[a-]", "[-a]", "[a-c-e]", r"[\w-]", r"[\]\\\-^]", "[ -~]", "[!-/:-@]", "[А-Яа-яё]", "[一-龥]"),
        *(r"\p{L}+", r"\P{Script=Greek}", r"\u00e9\u{1F600}\x41\cA\0", r"[\x00-\x1F]", r"[\u4e00-\u9fff]", r"[\u0400-\u04FF]"),
        r"^(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*))*))?$",
        r"^(?:(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)\.){3}(?:25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)$",
    ],
)
def test_what_people_write_is_certain(text: str) -> None:
    assert CERTAIN.contains(text)
    assert POSSIBLE.contains(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "*",
            "a**",
            "?",
            "{1}",
            "a{",
            "}",
            "]",
            "[",
            "[a",
            "\\",
            r"\a",
            r"\-",
            r"\8x\_",
            "(?a)",
            "(?P<n>a)",
            "(?#a)",
            "(?>a)",
        ),
        *(r"\p", r"\p{}", r"\u", r"\u12", r"\u{110000}", r"\x1", r"\c1", r"[\d-a]", r"[a-\d]", r"[\k]", "^*", "a{1,2", "a{,2}"),
    ],
)
def test_what_is_no_pattern_is_not_possible(text: str) -> None:
    assert not CERTAIN.contains(text)
    assert not POSSIBLE.contains(text)


@pytest.mark.parametrize(
    "text",
    [
        *("(", ")", "(a))", "(((((a)))))", "(?<n>a)(?<n>b)", "(?<n>a)(?<m>b)", r"(a)\1", r"(?<n>a)\k<n>", r"\k<n>", r"\00"),
        *("[z-a]", "[b-a]", "[я-а]", "[a--]", "[^--+]", "[^-я-а]", "a{3,2}", "a{15,12}", r"[\x1f-\x00]", r"\p{Nonsense}"),
        *("(?=a)*", "(?i:a)"),
    ],
)
def test_what_takes_more_than_an_automaton_is_left_open(text: str) -> None:
    assert not CERTAIN.contains(text)


@pytest.mark.parametrize("low", range(0x20, 0x7F))
def test_ranges_are_in_order(low: int) -> None:
    """Every range that is certain rises; and of the rising ones all that start at a digit are certain."""
    for high in range(0x20, 0x7F):
        if chr(low) in "-\\]^" or chr(high) in "\\]":
            continue
        held = CERTAIN.contains(f"[{chr(low)}-{chr(high)}]")
        assert held <= (low <= high)
        assert held == (low <= high) or not chr(low).isdigit()


@pytest.mark.parametrize("low", [*range(120), 199, 999, 1000])
def test_counts_are_in_order(low: int) -> None:
    for high in (*range(0, 120, 7), low - 1, low, low + 1, 200, 1000, 10**5):
        held = CERTAIN.contains(f"a{{{low},{high}}}")
        assert held <= (0 <= low <= high)
        assert held == (0 <= low <= high) or low > 99
