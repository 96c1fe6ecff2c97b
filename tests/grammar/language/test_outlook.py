"""What is seen of a language without a step holds of every step, told by a search of the tests' own."""

from __future__ import annotations

from itertools import product
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.grammar.language import ANYTHING, Language, charsets, derive, from_pattern, from_values, of_length
from constrained.grammar.language.charsets import ALPHABET, Ranges
from constrained.grammar.language.normal import NOTHING
from constrained.grammar.language.terms import Term
from tests.grammar.language.test_language import languages as known_languages

MANY = 4000
languages = known_languages.map(lambda known: known[0])


def shortest(term: Term) -> int | None:
    """The length of a shortest string, by breadth; None where `MANY` states hold none."""
    layer, seen, length = [term], {term}, 0
    while layer and len(seen) < MANY:
        if any(map(derive.accepts_empty, layer)):
            return length
        behind = dict.fromkeys(after for one in layer for _, _, after in derive.moves(one))
        layer = [after for after in behind if after is not NOTHING and after not in seen]
        seen.update(layer)
        length += 1
    return None


def after(language: Language, text: str) -> Term:
    term = language._term
    for character in text:
        term = derive.step(term, ord(character))
    return term


def samples(ranges: Ranges) -> list[str]:
    """The letters that patterns here ask for, as far as they are in a set, and its first and last character."""
    letters = [char for char in 'abx-\n"é' if charsets.intersect(ranges, charsets.of_chars(char))]
    return list(dict.fromkeys([*letters, chr(ranges[0][0]), chr(ranges[-1][1])])) if ranges else []


@given(languages)
@settings(max_examples=400, deadline=None)
def test_a_run_leads_on_whatever_its_characters(language: Language) -> None:
    ranges, count, most, _ = language.run
    most = most if language.most_missing is None else min(most, language.most_missing)
    for length in range(int(min(count, 3)) + 1 if count else 0):
        for text in map("".join, product(samples(ranges), repeat=length)):
            missing = shortest(after(language, text))
            assert missing is not None, text
            assert missing <= most, text


@given(languages)
@settings(max_examples=400, deadline=None)
def test_no_more_characters_follow_a_tight_run(language: Language) -> None:
    ranges, count, _, tight = language.run
    if tight and count < 4:
        for text in map("".join, product(samples(ranges), repeat=int(count) + 1)):
            assert shortest(after(language, text)) is None, text


@given(languages)
@settings(max_examples=200, deadline=None)
def test_no_other_characters_come(language: Language) -> None:
    others = charsets.complement(language.characters)
    pending, seen = [language._term], {language._term}
    while pending and len(seen) < 200:
        for low, high, behind in derive.moves(pending.pop()):
            if shortest(behind) is not None:
                assert not charsets.intersect(((low, high),), others)
                if behind not in seen:
                    seen.add(behind)
                    pending.append(behind)


@given(languages)
@settings(max_examples=200, deadline=None)
def test_no_more_characters_are_missing(language: Language) -> None:
    most, inside = language.most_missing, language.missing_inside
    assert (inside is None) == (most is None)
    for text in ("", *"ab-\n", *map("".join, product("ab-\n", repeat=2))) if most is not None else ():
        missing = shortest(after(language, text))
        assert missing is None or missing <= (inside if text else most), text


@given(languages, st.sets(st.text("ab-\n", max_size=3), min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_strings_that_are_left_out_begin_others_too(language: Language, out: set[str]) -> None:
    parts = (language & ~from_values(out)).apart_from_strings()
    if parts is not None:
        core, texts = parts
        assert core & ~from_values(texts) is language & ~from_values(out)
        for text in texts:
            if shortest(after(core, text)) is not None:
                longer = core & of_length(len(text) + 1, None) & from_values([text]) + ANYTHING
                assert not longer.is_empty


RUNS = [
    (from_pattern("^[a-z]{2,9}-"), ((0x61, 0x7A),), 9),
    (from_pattern("^[a-c][a-z]{1,62}$"), ((0x61, 0x63),), 63),
    (from_pattern("foo"), ALPHABET, inf),
    (from_pattern("^x") | from_pattern("y$"), ALPHABET, inf),
    (~from_values(["a", "bc"]), ALPHABET, inf),
    (~from_values(["a"]) & ~from_pattern("^/[a-z]*$"), ALPHABET, inf),
    (~from_pattern("[.]x+$"), charsets.complement(charsets.of_chars(".")), inf),
    (~from_pattern("[.]x+$") & ~from_pattern("^ *$"), charsets.complement(charsets.of_chars(".")), inf),
    (~from_pattern("x*$"), (), 0),
    (from_pattern("^[a-z]{1,9}$") & ~from_values(["ab"]), ((0x61, 0x7A),), 8),
    (from_pattern("^[a-z.]*x$") & ~from_pattern("\\.\\."), ((0x61, 0x7A),), inf),
    (from_pattern("^([a-z]+[.])*[a-z]$") & of_length(0, 50), ((0x61, 0x7A),), 48),
    (from_pattern("^([a-z]{4})*([a-z]{2}==)?$"), ((0x61, 0x7A),), inf),
    (from_pattern("^([0-9]?[a-z]-?[a-c]{2}){2,5}$"), ((0x61, 0x63),), 15),
    (from_pattern("^[a-z](-?[a-z])*$"), ((0x61, 0x7A),), inf),
    (from_pattern("^(x|[0-9]{0,3}|[a-c]{2}-)*$"), ((0x30, 0x39),), inf),
    (from_pattern("^(a|bc)$"), (), 0),
    (from_pattern("\\bfoo\\b"), (), 0),
]  # fmt: skip


@pytest.mark.parametrize(("language", "ranges", "count"), RUNS)
def test_runs(language: Language, ranges: Ranges, count: float) -> None:
    assert language.run[:2] == (ranges, count)


TIGHT = [
    ("^[a-z]{2,9}-", True),
    ("^[a-c][a-z]{1,6}$", True),
    ("^[a-z]{2,9}[a-c]?-", False),
    ("^[a-z]{2}([0-9]|[a-z]x)$", False),
    ("^(é|[a-z]){3}$", True),
]


@pytest.mark.parametrize(("pattern", "tight"), TIGHT)
def test_tight_runs(pattern: str, tight: bool) -> None:
    assert from_pattern(pattern).run.tight == tight


@pytest.mark.parametrize(
    ("pattern", "most"), [("^[a-z]+$", 1), ("^(ab|cde)*f{3}$", 5), ("^a{4}(b{2}|c)d?$", 5), ("^(a{3}){2,4}$", 6)]
)
def test_characters_that_are_missing_at_most(pattern: str, most: int) -> None:
    assert from_pattern(pattern).most_missing == most


def test_languages_without_strings() -> None:
    word = from_pattern("^[a-z]+$")
    assert (word & ~from_values(["ab", "c"])).apart_from_strings() == (word, ("ab", "c"))
    assert (~from_values(["ab"])).apart_from_strings() == (ANYTHING, ("ab",))
    assert (from_pattern("^[a-z]{1,3}$") & ~from_values(["ab"])).apart_from_strings() is None
    assert word.apart_from_strings() is None
