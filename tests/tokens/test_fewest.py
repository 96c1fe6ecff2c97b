"""The fewest tokens of some bytes, against all the ways to spell them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.errors import VocabularyError
from constrained.tokens.fewest import spell, tokens_along
from constrained.tokens.greedy import greedy_tokens
from constrained.tokens.trie import Trie

TEXTS = st.binary(max_size=12).map(lambda data: bytes(97 + byte % 3 for byte in data))
VOCABULARIES = st.lists(TEXTS, max_size=12).map(lambda more: [b"a", b"b", b"c", *(text[:5] for text in more)])


def spellings(tokens: list[bytes], data: bytes) -> list[list[int]]:
    if not data:
        return [[]]
    first = [i for i, token in enumerate(tokens) if token and data.startswith(token)]
    return [[i, *rest] for i in first for rest in spellings(tokens, data[len(tokens[i]) :])]


@given(VOCABULARIES, TEXTS)
def test_no_spelling_is_shorter(tokens: list[bytes], data: bytes) -> None:
    spelling = spell(Trie.build(tokens), data)
    for position in range(len(data) + 1):
        assert spelling.counts[position] == min(map(len, spellings(tokens, data[position:])))
    position, steps = 0, 0
    while position < len(data):
        token = tokens[spelling.best[position]]
        assert data.startswith(token, position)
        position += len(token)
        steps += 1
    assert steps == spelling.num_tokens


@given(VOCABULARIES, TEXTS, st.integers(0, 12), st.integers(0, 13))
def test_tokens_along_keep_to_the_budget(tokens: list[bytes], data: bytes, position: int, budget: int) -> None:
    trie = Trie.build(tokens)
    spelling, position = spell(trie, data), min(position, len(data))
    found = tokens_along(trie, spelling, position, budget).tolist()
    fitting = {
        i
        for i, token in enumerate(tokens)
        if token and data.startswith(token, position) and spelling.counts[position + len(token)] < budget
    }
    assert set(found) == fitting
    assert len(found) == len(fitting)


def test_the_longest_match_is_not_always_the_fewest_tokens() -> None:
    trie = Trie.build([b"a", b"b", b"ab", b"bbb"])
    assert len(greedy_tokens(trie, b"abbb")) == 3
    assert spell(trie, b"abbb").num_tokens == 2


def test_a_byte_without_a_token_is_named() -> None:
    with pytest.raises(VocabularyError, match=r"no token spells the byte 0x7a of b'abz'"):
        spell(Trie.build([b"a", b"b"]), b"abz")
