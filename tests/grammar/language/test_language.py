"""The algebra, the steps and the searches of languages, against brute force over a small alphabet."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.grammar.language import (
    ANYTHING,
    EMPTY,
    NOTHING,
    Language,
    LanguageFuelError,
    from_pattern,
    from_values,
    of_length,
    state_limit,
)
from tests.grammar.language.reference import ALPHABET, all_texts, nodes

TEXTS = all_texts(4)
SMALL = from_pattern(r"^[ab\-\n]*$")
Known = tuple[Language, frozenset[str]]


def _of(texts: set[str]) -> Known:
    return from_values(texts), frozenset(texts)


def _lengths(low: int, high: int | None) -> Known:
    top = 9 if high is None else high
    return of_length(low, high), frozenset(text for text in TEXTS if low <= len(text) <= top)


_leaves: st.SearchStrategy[Known] = st.one_of(
    nodes.map(lambda node: (from_pattern(str(node)), frozenset(filter(node.matches_somewhere, TEXTS)))),
    nodes.map(lambda node: (from_pattern(str(node), anchored=True), frozenset(filter(node.matches_whole, TEXTS)))),
    st.sets(st.text(ALPHABET, max_size=4), max_size=6).map(_of),
    st.builds(_lengths, st.integers(0, 4), st.one_of(st.none(), st.integers(0, 5))),
)


def _combined(children: st.SearchStrategy[Known]) -> st.SearchStrategy[Known]:
    return st.one_of(
        st.builds(lambda a, b: (a[0] & b[0], a[1] & b[1]), children, children),
        st.builds(lambda a, b: (a[0] | b[0], a[1] | b[1]), children, children),
        children.map(lambda a: (~a[0], frozenset(TEXTS) - a[1])),
    )


languages = st.recursive(_leaves, _combined, max_leaves=4)


def _states(language: Language, limit: int = 60) -> list[Language]:
    found = {language: None}
    for state in (queue := [language]):
        for _, _, after in state.steps():
            if after not in found and len(found) < limit:
                found[after] = None
                queue.append(after)
    return list(found)


@given(languages)
@settings(max_examples=150)
def test_the_algebra_is_that_of_sets(known: Known) -> None:
    language, texts = known
    assert {text for text in TEXTS if language.contains(text)} == texts


@given(languages)
@settings(max_examples=100)
def test_steps_are_ascending_disjoint_merged_and_lead_to_strings(known: Known) -> None:
    for state in _states(known[0]):
        steps = state.steps()
        for low, high, after in steps:
            assert low <= high
            assert high < 0xD800 or low > 0xDFFF
            assert not after.is_empty
            example = after.shortest()
            assert example is not None
            assert state.contains(chr(low) + example)
            assert state.contains(chr(high) + example)
        for (_, high, after), (low, _, following) in pairwise(steps):
            assert high < low
            assert high + 1 < low or after is not following
        assert state.is_empty == (not steps and not state.accepts_empty)


@given(languages)
@settings(max_examples=100)
def test_steps_decide_what_contains_decides(known: Known) -> None:
    language, texts = known
    for text in TEXTS:
        state: Language | None = language
        for char in text:
            state = next((after for low, high, after in state.steps() if low <= ord(char) <= high), None) if state else None
        assert (state is not None and state.accepts_empty) == (text in texts)


@given(languages)
@settings(max_examples=150)
def test_the_shortest_string_is_in_it_and_none_is_shorter(known: Known) -> None:
    language, texts = known
    small = language & SMALL
    expected = min(map(len, texts), default=None)
    example = small.shortest()
    assert small.is_empty == (example is None)
    if example is None:
        assert expected is None
        return
    assert small.contains(example)
    assert language.contains(example)
    assert set(example) <= set(ALPHABET)
    assert len(example) == small.shortest_len()
    assert len(example) == (expected if expected is not None else max(len(example), 5))


@given(languages, languages)
@settings(max_examples=100)
def test_a_language_and_its_complement_share_nothing_and_leave_nothing(one: Known, other: Known) -> None:
    language = one[0] | other[0]
    assert (language & ~language).is_empty
    assert (~(language | ~language)).is_empty
    difference = (one[0] & ~other[0]) | (other[0] & ~one[0])
    if one[1] != other[1]:
        assert not difference.is_empty
    elif difference.is_empty:
        assert one[1] == other[1]


@given(languages)
@settings(max_examples=100)
def test_finite_languages_are_enumerated(known: Known) -> None:
    language, texts = known
    small = language & SMALL & of_length(0, 4)
    assert small.is_finite
    assert small.values(len(TEXTS)) == tuple(sorted(texts))
    if texts:
        assert small.values(len(texts) - 1) is None


@given(languages)
@settings(max_examples=100)
def test_finite_means_no_string_beyond_some_length(known: Known) -> None:
    small = known[0] & SMALL
    if small.is_finite:
        every = small.values(100_000)
        assert every is not None
        assert {text for text in every if len(text) <= 4} == known[1]
    else:
        assert not (small & of_length(40, None)).is_empty


def test_constants() -> None:
    assert NOTHING.is_empty
    assert NOTHING.shortest() is None
    assert NOTHING.shortest_len() is None
    assert not NOTHING.steps()
    assert EMPTY.values(1) == ("",)
    assert not ANYTHING.is_finite
    assert ANYTHING.values(10) is None
    assert ~ANYTHING is NOTHING
    assert ANYTHING.steps() == ((0, 0xD7FF, ANYTHING), (0xE000, 0x10FFFF, ANYTHING))


def test_equal_normal_forms_are_one_object() -> None:
    assert from_values(["b", "a"]) is from_values(["a", "b", "a"])
    assert from_values(["b", "a"]) is from_pattern("^[ab]$")
    assert from_pattern("^(ab|cd)$") is from_values(["ab", "cd"])
    assert from_pattern("") is ANYTHING
    assert from_pattern("^.*", anchored=True) is not ANYTHING
    assert from_pattern(r"^[\s\S]*$") is ANYTHING
    assert from_pattern("a*") is ANYTHING
    assert from_pattern("x+") is from_pattern("x")
    assert ~of_length(2, 5) is of_length(0, 1) | of_length(6, None)
    assert of_length(2, 5) & of_length(4, None) is of_length(4, 5)
    assert ~~from_pattern("a|b") is from_pattern("a|b")


def test_lone_surrogates_are_in_no_language() -> None:
    assert from_values(["\ud800", "a"]) is from_values(["a"])
    assert not ANYTHING.contains("a\udc00")
    assert not ANYTHING.contains("\udc00a")
    assert not (~from_values(["a"])).contains("\ud83d")


def test_shortest_strings_are_plain_where_there_is_a_choice() -> None:
    assert from_pattern("^.{3}$").shortest() == "aaa"
    assert from_pattern("^[^a-z]$").shortest() == "0"
    assert from_pattern(r"^\W$").shortest() == "#"
    assert (of_length(2, 2) & ~from_pattern("a")).shortest() == "bb"


@pytest.mark.parametrize(
    "language",
    [
        of_length(3, 100_000),
        from_pattern("^[a-z]{1,100000}$") & of_length(500, None),
        from_pattern("^(?:[a-z]{1,63}\\.){1,127}$") & of_length(0, 255),
        from_values([f"value {number}" for number in range(10_000)]),
    ],
)
def test_large_counts_are_not_expanded(language: Language) -> None:
    with state_limit(600):
        assert not language.is_empty
        assert language.contains(language.shortest() or "")
        for state in _states(language, 20):
            assert len(state.steps()) < 60


def test_a_finite_set_is_filtered() -> None:
    texts = from_values(["foo", "bar", "food", ""])
    assert (texts & from_pattern("^foo")).values(9) == ("foo", "food")
    assert (from_pattern("^foo") & texts & ~from_values(["foo"])).values(9) == ("food",)
    assert texts & of_length(1, 3) is from_values(["foo", "bar"])


def test_fuel_names_its_limit() -> None:
    # The tenth character from the end: two to the tenth states, and a condition that only one of them meets.
    hard = from_pattern("^[ab]*a[ab]{9}$") & from_pattern("^[ab]*b[ab]{9}$")
    with state_limit(50), pytest.raises(LanguageFuelError) as caught:
        assert hard.is_empty
    assert caught.value.limit == 50
    assert hard.is_empty


def test_threads_share_one_object_per_normal_form() -> None:
    patterns = [f"^(?!x{number})[a-z]{{1,{number + 2}}}$" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: [(one := from_pattern(pattern), one.steps()) for pattern in patterns], range(8)))
    assert all(other == found[0] for other in found)


def test_states_are_let_go() -> None:
    state = weakref.ref(from_pattern("^(let go [a-z]+){3}$").steps()[0][2])
    gc.collect()
    assert state() is None
