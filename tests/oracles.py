"""What tests of every kind of grammar ask of a matcher: the mask by brute force, and the way to the end."""

from __future__ import annotations

import random

import numpy as np

from constrained import CompiledGrammar, Matcher, Vocabulary
from constrained.tokens.rows import MaskRow
from tests.grammars import random_choice


def allowed_by_mask(matcher: Matcher, vocabulary: Vocabulary) -> set[int]:
    bitmask = np.full((2, vocabulary.num_words), -1, np.int32)
    matcher.fill_bitmask(bitmask, 1)
    assert (bitmask[0] == -1).all(), "another row was touched"
    return set(np.flatnonzero(np.unpackbits(bitmask[1].view(np.uint8), bitorder="little")).tolist())


def allowed_by_trying(matcher: Matcher, vocabulary: Vocabulary) -> set[int]:
    return {token for token in range(vocabulary.size) if matcher.fork().accept_token(token)}


def tokens_of(row: MaskRow) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.words.view(np.uint8), bitorder="little")).tolist()


def choice_of(row: MaskRow, pick: random.Random) -> int:
    return pick.choice(tokens_of(row))


def close(matcher: Matcher) -> None:
    """Follow the closing to the end; each of its tokens brings the end nearer by one at least."""
    while not matcher.is_terminated:
        left = matcher.min_tokens_to_end
        assert matcher.accept_token(matcher.closing_token()), matcher.text
        assert matcher.min_tokens_to_end < left, matcher.text


def walked(matcher: Matcher, pick: random.Random, more: int | None = None) -> bytes:
    """A text within the fewest tokens and `more`; without that, one of some free tokens that is then closed."""
    vocabulary = matcher.vocabulary
    if more is None:
        for _ in range(pick.randrange(80)):
            if not matcher.is_terminated:
                assert matcher.accept_token(random_choice(matcher, vocabulary, pick)), matcher.text
    for left in range(matcher.min_tokens_to_end + (more or 0), 0, -1):
        if matcher.is_terminated:
            break
        assert matcher.accept_token(random_choice(matcher, vocabulary, pick)), matcher.text
        if matcher.min_tokens_to_end > left - 1:
            matcher.rollback(1)
            assert matcher.accept_token(choice_of(matcher.closing_row(left), pick)), matcher.text
            assert matcher.min_tokens_to_end <= left - 1, matcher.text
    assert matcher.is_terminated, matcher.text
    return matcher.text


def walk(grammar: CompiledGrammar, vocabulary: Vocabulary, pick: random.Random, num_tokens: int) -> str:
    """A random text: each mask on the way is what brute force finds, and what is open at last is closed."""
    matcher = grammar.matcher()
    for _ in range(pick.randrange(num_tokens)):
        assert allowed_by_mask(matcher, vocabulary) == allowed_by_trying(matcher, vocabulary), matcher.text
        assert matcher.accept_token(random_choice(matcher, vocabulary, pick)), matcher.text
        if matcher.is_terminated:
            break
    close(matcher)
    return matcher.text.decode()
