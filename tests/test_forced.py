"""Forced tokens of a matcher: allowed one after another, and the tokens that the tokenizer gives the whole document."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from constrained import Matcher, Vocabulary
from tests.grammars import awkward_vocabulary, byte_vocabulary, grammar_of
from tests.test_matcher import DOCUMENTS, PERSON, allowed_by_mask

RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "identifier": {"type": "integer"},
        "status": {"enum": ["in progress", "in review", "done"]},
        "place": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "größe": {"type": "number"}},
            "required": ["street", "größe"],
            "additionalProperties": False,
        },
        "tags": {"type": "array", "items": {"const": "a long constant, 日本"}, "minItems": 2, "maxItems": 2},
    },
    "required": ["identifier", "status", "place", "tags"],
    "additionalProperties": False,
}
RECORD_VALUE = {
    "identifier": 31,
    "status": "in review",
    "place": {"street": "Hauptstraße 3, 'Hof'", "größe": 2.5},
    "tags": ["a long constant, 日本"] * 2,
}
LAYOUTS: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":")},
    "flexible": {},
    "indented": {"indent": 2},
}


def texts_of(matcher: Matcher, vocabulary: Vocabulary) -> list[bytes]:
    return [vocabulary.token_bytes[token] for token in matcher.forced_tokens()]


def test_all_that_is_forced_is_forced_in_tokens_when_nothing_may_follow() -> None:
    matcher = grammar_of({"const": {"name": True}}, awkward_vocabulary(), whitespace="compact").matcher()
    assert texts_of(matcher, awkward_vocabulary()) == [b'{"', b"name", b'":', b"true", b"}"]
    for token in matcher.forced_tokens():
        assert matcher.accept_token(token)
    assert matcher.is_complete
    assert matcher.forced_tokens() == []
    assert matcher.accept_token(awkward_vocabulary().size - 1)
    assert matcher.forced_tokens() == []


@pytest.mark.parametrize(("type_", "forced"), [("string", [b'{"', b"name"]), ("boolean", [b'{"', b"name", b'":'])])
def test_the_tail_that_may_merge_with_what_follows_is_held_back(type_: str, forced: list[bytes]) -> None:
    """`":` is a token, and so is `":"`; none is `":` and a letter."""
    shape = {"type": "object", "properties": {"name": {"type": type_}}, "required": ["name"], "additionalProperties": False}
    matcher = grammar_of(shape, awkward_vocabulary(), whitespace="compact").matcher()
    assert matcher.forced_bytes() == b'{"name":' + (b'"' if type_ == "string" else b"")
    assert texts_of(matcher, awkward_vocabulary()) == forced


def test_bytes_are_forced_one_by_one() -> None:
    matcher = grammar_of({"enum": ["circle", "city"]}, whitespace="compact").matcher()
    assert matcher.forced_tokens() == list(b'"ci')
    assert grammar_of({"type": ["string", "integer"]}).matcher().forced_tokens() == []
    assert byte_vocabulary().encode is None


def walk(text: str, tokens: list[int], matcher: Matcher, vocabulary: Vocabulary) -> int:
    """Go through a document in the tokenizer's tokens; how many of them were forced. What is forced must be what comes."""
    count = until = 0
    for i, token in enumerate(tokens):
        forced = matcher.forced_tokens()
        assert matcher.forced_tokens() == forced
        if i >= until:
            assert tokens[i : i + len(forced)] == forced, f"after {matcher.text!r}"
            count, until = count + len(forced), i + len(forced)
            ahead = matcher.fork()
            for each in forced:
                assert each in allowed_by_mask(ahead, vocabulary)
                assert ahead.accept_token(each)
        assert matcher.accept_token(token)
    assert matcher.text == text.encode()
    return count


def encoded(vocabulary: Vocabulary, text: str) -> list[int]:
    if vocabulary.encode is None:
        from constrained.tokens.greedy import greedy_tokens

        return greedy_tokens(vocabulary.trie, text.encode())
    return vocabulary.encode(text)


def check_documents(vocabulary: Vocabulary, layout: str, at_least: float) -> None:
    """`at_least`: the share of the record's tokens that must be forced."""
    record = json.dumps(RECORD_VALUE, ensure_ascii=False, **LAYOUTS[layout])
    tokens = encoded(vocabulary, record)
    forced = walk(record, tokens, grammar_of(RECORD, vocabulary, whitespace=layout).matcher(), vocabulary)
    assert forced >= at_least * len(tokens)
    for value in DOCUMENTS:
        text = json.dumps(value, ensure_ascii=False, **LAYOUTS[layout])
        walk(text, encoded(vocabulary, text), grammar_of(PERSON, vocabulary, whitespace=layout).matcher(), vocabulary)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("vocabulary", [byte_vocabulary, awkward_vocabulary])
def test_forced_tokens_are_those_of_the_document(vocabulary: Callable[[], Vocabulary], layout: str) -> None:
    check_documents(vocabulary(), layout, 0.15 if layout == "flexible" else 0.3)


@pytest.mark.model
@pytest.mark.parametrize("layout", LAYOUTS)
def test_forced_tokens_are_those_of_the_default_models_tokenizer(layout: str) -> None:
    from benchmarks import vocabularies

    check_documents(vocabularies.load("smollm2").vocabulary, layout, 0.15 if layout == "flexible" else 0.3)


def test_forced_tokens_are_those_of_a_large_tokenizer() -> None:
    from benchmarks import vocabularies

    if not vocabularies.is_at_hand("llama3"):
        pytest.skip("Llama 3's tokenizer was not fetched on this machine (benchmarks.vocabularies fetches it)")
    vocabulary = vocabularies.load("llama3").vocabulary
    for layout in LAYOUTS:
        check_documents(vocabulary, layout, 0.15 if layout == "flexible" else 0.3)
