"""Closings: planned once, followed token by token, close to the shortest end that brute force finds."""

from __future__ import annotations

import json
import random
from collections import deque
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import CompiledGrammar, Matcher, Vocabulary
from tests.grammars import awkward_vocabulary, grammar_of, random_choice
from tests.test_matcher import SCHEMAS, allowed_by_mask, cached_grammar

EOS = awkward_vocabulary().size - 1


def walk(matcher: Matcher, num_tokens: int, pick: random.Random) -> None:
    for _ in range(num_tokens):
        if matcher.is_terminated:
            break
        assert matcher.accept_token(random_choice(matcher, awkward_vocabulary(), pick))


def closing_mask(matcher: Matcher, budget: int | None = None) -> list[int]:
    bitmask = np.zeros((1, awkward_vocabulary().num_words), np.int32)
    matcher.fill_closing_bitmask(bitmask, 0, budget)
    return [int(i) for i in np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))]


@settings(max_examples=60)
@given(st.sampled_from(sorted(SCHEMAS)), st.integers(0, 2**32), st.integers(0, 30), st.integers(0, 5))
def test_within_its_last_tokens_the_closing_mask_alone_ends_the_document(name: str, seed: int, length: int, more: int) -> None:
    """Whatever is picked of it, also where some tokens more than the least are left."""
    pick, matcher = random.Random(seed), cached_grammar(name).matcher()
    walk(matcher, length, pick)
    budget = matcher.min_tokens_to_end + more * (not matcher.is_terminated)
    while not matcher.is_terminated:
        allowed = closing_mask(matcher, budget)
        assert set(allowed) <= allowed_by_mask(matcher, awkward_vocabulary())
        assert more or matcher.closing_token() in closing_mask(matcher)
        assert matcher.accept_token(pick.choice(allowed))
        budget -= 1
        assert matcher.min_tokens_to_end <= budget
    jsonschema.validate(json.loads(matcher.text), SCHEMAS[name])


@settings(max_examples=60)
@given(st.sampled_from(sorted(SCHEMAS)), st.integers(0, 2**32), st.integers(0, 30))
def test_a_plan_is_kept_over_tokens_that_are_taken_back(name: str, seed: int, length: int) -> None:
    pick, matcher = random.Random(seed), cached_grammar(name).matcher()
    walk(matcher, length, pick)
    while not matcher.is_terminated:
        token, bound = matcher.closing_token(), matcher.min_tokens_to_end
        num_tries = pick.randrange(4)
        before = len(matcher.text)
        for _ in range(num_tries):
            if matcher.is_terminated or not matcher.accept_token(random_choice(matcher, awkward_vocabulary(), pick)):
                break
            assert matcher.min_tokens_to_end > 0 or matcher.is_terminated
        while len(matcher.text) > before or matcher.is_terminated:
            matcher.rollback(1)
        assert (matcher.closing_token(), matcher.min_tokens_to_end) == (token, bound)
        assert matcher.accept_token(token)
        assert matcher.min_tokens_to_end < bound


def test_a_plan_ends_where_the_matcher_goes_back_before_it() -> None:
    matcher = cached_grammar("person").matcher()
    assert matcher.accept_bytes(b'{"name":"bob"')
    assert matcher.closing_token() == 256 + 27 or matcher.closing_token() == ord("}")
    matcher.rollback(1)
    assert matcher.accept_bytes(b'{"name":"b')
    assert matcher.closing_token() != ord("}")
    rest = b""
    while not matcher.is_terminated:
        token = matcher.closing_token()
        rest += awkward_vocabulary().token_bytes[token]
        assert matcher.accept_token(token)
    assert json.loads(matcher.text)["name"].startswith("b")


def test_a_budget_that_is_too_small_is_refused() -> None:
    matcher = cached_grammar("person").matcher()
    with pytest.raises(ValueError, match=r"cannot be ended within 2 tokens: it takes \d+"):
        matcher.closing_row(2)


def test_at_the_end_only_the_end_is_left() -> None:
    matcher = cached_grammar("union").matcher()
    assert matcher.accept_bytes(b'["x"]')
    assert matcher.closing_token() == EOS
    assert closing_mask(matcher) == [EOS]
    assert closing_mask(matcher, 10) == [EOS]
    assert matcher.accept_token(EOS)
    assert closing_mask(matcher) == []


# -- against brute force


def fewest_to_end(start: Matcher, vocabulary: Vocabulary, tokens: list[int], limit: int) -> int:
    """The fewest tokens to the end, EOS included, by breadth-first search; `limit` + 1 where there are more."""
    layer, seen = deque([(start, 0)]), {start._state}
    while layer:
        matcher, depth = layer.popleft()
        if matcher.is_accepting:
            return depth + 1
        if depth + 1 > limit:
            continue
        words = matcher.mask_row().words
        for token in tokens:
            if words[token >> 5] >> (token & 31) & 1:
                after = matcher.fork()
                assert after.accept_token(token)
                if after._state not in seen:
                    seen.add(after._state)
                    layer.append((after, depth + 1))
    return limit + 1


SMALL: dict[str, Any] = {
    "person": SCHEMAS["person"],
    "union": SCHEMAS["union"],
    "patterns": SCHEMAS["patterns"],
    "array": {"type": "array", "minItems": 2, "items": {"enum": ["a", "", [1], {"a": 1}, 123]}},
    "string": {"type": "string", "minLength": 4, "maxLength": 7},
    "open": {"type": "object", "minProperties": 0, "required": ["name", "a"]},
}


@pytest.mark.parametrize("name", SMALL)
def test_the_bound_is_close_to_the_fewest_tokens_there_are(name: str) -> None:
    """The shortest end in bytes is rarely more tokens than the best: over many places at most a quarter more.

    A string that is too short is filled with the letter a, though some word of as many characters may be one token.
    """
    vocabulary, pick = awkward_vocabulary(), random.Random(name)
    grammar: CompiledGrammar = grammar_of(SMALL[name], vocabulary, whitespace="compact")
    tokens = [*b'{}[]":,abmn0123456789-tflrues', *range(256, vocabulary.size - 2)]
    bounds = least = 0
    for _ in range(12):
        matcher = grammar.matcher()
        walk(matcher, pick.randrange(12), pick)
        bound = matcher.min_tokens_to_end
        if matcher.is_terminated or bound > 6:
            continue
        fewest = fewest_to_end(matcher, vocabulary, tokens, bound - 1)
        assert fewest <= bound
        bounds, least = bounds + bound, least + fewest
    assert bounds <= (1.5 if name == "string" else 1.25) * least
