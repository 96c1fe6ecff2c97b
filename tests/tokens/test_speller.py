"""Forced text in the tokenizer's own tokens: what is given out is what the tokenizer chooses, whatever follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

from constrained.tokens.greedy import greedy_tokens
from constrained.tokens.speller import Speller
from constrained.tokens.vocabulary import Vocabulary
from tests.grammars import awkward_vocabulary
from tests.tokens.test_tokenizer import CACHE, byte_level_bpe, dummy_prefix_bpe, sentencepiece_bpe, wrap

TEXTS = st.text("{}[]\":,'abtheé日😀 \n1", max_size=14)
ANY_BYTE = range(256)


def looking_ahead_bpe() -> Tokenizer:
    """As GPT-2 and Llama 3 split: a run of blanks leaves its last one to what stands behind it, digits go by threes."""
    tokenizer = byte_level_bpe()
    pattern = r"""'(?:s|t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return tokenizer


BUILDS = [byte_level_bpe, looking_ahead_bpe, sentencepiece_bpe, dummy_prefix_bpe]


@pytest.mark.parametrize("build", BUILDS)
@settings(max_examples=300)
@given(data=TEXTS, more=TEXTS)
def test_stable_tokens_are_the_tokenizers_choice_whatever_follows(build: Callable[[], Tokenizer], data: str, more: str) -> None:
    vocabulary = CACHE.get(build)[1]
    assert vocabulary.encode is not None
    following = [more.encode()[0]] if more else list(ANY_BYTE)
    stable = Speller(vocabulary).stable_tokens(data.encode(), following)
    assert vocabulary.encode(data + more)[: len(stable)] == stable


@given(data=TEXTS, more=TEXTS)
def test_without_an_encoder_the_longest_match_holds_whatever_follows(data: str, more: str) -> None:
    vocabulary = awkward_vocabulary()
    stable = Speller(vocabulary).stable_tokens(data.encode(), ANY_BYTE)
    assert greedy_tokens(vocabulary.trie, (data + more).encode())[: len(stable)] == stable


@pytest.mark.parametrize("build", BUILDS)
def test_only_the_end_is_held_back(build: Callable[[], Tokenizer]) -> None:
    vocabulary = CACHE.get(build)[1]
    data = b'{"name": "the cat", "name": "the cat"}'
    stable = Speller(vocabulary).stable_tokens(data, ANY_BYTE)
    text = b"".join(vocabulary.token_bytes[token] for token in stable)
    assert data.startswith(text)
    assert len(text) >= len(data) - 6
    assert b"".join(vocabulary.token_bytes[t] for t in Speller(vocabulary).stable_tokens(data, ())) == data


def test_what_may_follow_decides() -> None:
    """Tokens: every byte, `":`, `"`, ... A colon may come: the quote is held back; only `}` may: it stands."""
    vocabulary = Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b'":', b"na", b""], [258])
    speller = Speller(vocabulary)
    assert speller.stable_tokens(b'na"', b":") == [257]
    assert speller.stable_tokens(b'na"', b"}") == [257, ord('"')]
    assert speller.stable_tokens(b'na"', b"") == [257, ord('"')]


def test_a_character_that_is_cut_off_is_held_back() -> None:
    speller = Speller(CACHE.get(byte_level_bpe)[1])
    whole = speller.stable_tokens("é}".encode(), b"")
    assert speller.stable_tokens("é".encode()[:1], ANY_BYTE) == []
    assert speller.stable_tokens("aé".encode()[:2], ["é".encode()[1]]) == speller.tokens(b"a")
    assert speller.stable_tokens("é}".encode()[1:], b"") != whole, "begins inside a character: byte by byte"


def with_added() -> Tokenizer:
    tokenizer = byte_level_bpe()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return tokenizer


def normalizing() -> Tokenizer:
    tokenizer = byte_level_bpe()
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


@pytest.mark.parametrize(("build", "text"), [(with_added, "a<|end|>b"), (normalizing, "e\u0301")])
def test_what_the_tokenizer_would_spell_otherwise_is_spelled_all_the_same(build: Any, text: str) -> None:
    """A special token's name, or text that a normalizer changes: the document's bytes count."""
    vocabulary = Vocabulary.from_tokenizer(wrap(build()))
    tokens = Speller(vocabulary).stable_tokens(text.encode(), ())
    assert b"".join(vocabulary.token_bytes[token] for token in tokens) == text.encode()


def test_a_dummy_prefix_is_no_part_of_a_text_in_the_middle() -> None:
    vocabulary = CACHE.get(dummy_prefix_bpe)[1]
    assert vocabulary.encode is not None
    assert vocabulary.encode("the") == CACHE.get(sentencepiece_bpe)[1].encode("the")  # type: ignore[misc]
    assert vocabulary.encode(" the") == CACHE.get(sentencepiece_bpe)[1].encode(" the")  # type: ignore[misc]
    assert vocabulary.encode("") == []
