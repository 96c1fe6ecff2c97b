"""Terminals: the texts that `re.match` takes whole, and what is refused."""

from __future__ import annotations

import random
import re

import pytest

from constrained.grammar.language import PatternError
from constrained.grammar.lark.first_choice import FirstChoice, first_choice

PATTERNS = [
    r"[^\W\d]\w*",
    r'"(?:.*?)(?<!\\)(\\\\)*?"',
    r"a(?i:bé[k-m]ß)c",
    r"(?i:0|[1-9][\d_]*)",
    r"(?s:/\*(?:(?!\*/).)*\*/)",
    r"/\*.*?\*/",
    r"(a|ab)(c|bcd)(d*)",
    r"(a|ab)(c|bcd)*",
    r"x(?=ab)a.(?<=b)z?",
    r"a\b-\Bb?-a",
    r"(?x: a b) # c",
    r"(?i:[^a]{1,2})",
    r"(?m:(?s:.)+\n^b)",
    r"(?m:a$\nb)",
    r"a{,2}b{2,}?",
    r"(?i:[k-s])",
    r"\s+",
    r"(?a:\w)\d",
    r"(?i:ſ|K)",
    r"(?!a).b",
    r"",
    r"[\]\-a]+",
    r"(a*)(ab)?",
    r"(?:a?){3}a",
    r"(?:a|b)*?(?:ab|b)",
    r"(a{1,2}?){2}b?",
    r"x*?",
    r"a+?b*",
]
ALPHABET = 'aAbBcéÉkKKsſßẞ01_ \n\t"\\/*-xyz.d٣\u00a0²'


def after(state: FirstChoice, text: str) -> FirstChoice | None:
    here: FirstChoice | None = state
    for character in text:
        assert here is not None
        here = next((to for low, high, to in here.steps() if low <= ord(character) <= high), None)
        if here is None:
            break
    return here


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_text_is_in_it_where_a_match_takes_all_of_it(pattern: str) -> None:
    pick, start, python = random.Random(pattern), first_choice(pattern), re.compile(pattern)
    near = [char for char in pattern if char in ALPHABET] or ["a"]
    for turn in range(1500):
        text = "".join(pick.choices(near if turn % 2 else ALPHABET, k=pick.randrange(8)))
        match, state = python.match(text), after(start, text)
        assert (state is not None and state.accepts_empty) == (match is not None and match[0] == text), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_step_leads_nowhere(pattern: str) -> None:
    pick, state = random.Random(pattern), first_choice(pattern)
    for _ in range(30):
        steps = state.steps()
        assert steps or state.accepts_empty
        assert all(high < steps[i + 1][0] for i, (_, high, _) in enumerate(steps[:-1]))
        if not steps:
            break
        state = pick.choice(steps)[2]


def test_states_are_shared() -> None:
    start = first_choice(r"(?:ab)*c")
    assert after(start, "abab") is start
    assert first_choice(r"(?:ab)*c") is start


def test_without_the_empty_text() -> None:
    assert not first_choice("a*").without_empty().accepts_empty
    assert first_choice("a*?").without_empty().is_empty


def test_within_some_characters() -> None:
    start = first_choice(r"[a-z]é?").within(((0x61, 0x63),))
    assert [(low, high) for low, high, _ in start.steps()] == [(0x61, 0x63)]
    assert first_choice("é").within(((0x61, 0x63),)).is_empty


REFUSED = {
    r"(a)\1": "backreference",
    r"a(?!b)": "beyond the end",
    r"a(?=bc)b": "beyond the end",
    r"\ba": "beyond the start",
    r"(?<!x)a": "beyond the start",
    r"(?:a\b)*b?": "beyond the start or the end",
    r"a$": "beyond the end",
    r"^a": "beyond the start",
    r"(?>a)b": "atomic",
    r"a*+b": "possessive",
    r"(a)?(?(1)b|c)": "conditional",
    r"x(?=(?=a)a)aa": "inside a lookaround",
    r"(": "unterminated",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=REFUSED[pattern]):
        first_choice(pattern)
