"""Mask rows inside strings of patterns are what brute force finds, however far ahead a scan looks."""

from __future__ import annotations

import random
from functools import cache

import pytest

from constrained import Vocabulary
from constrained.automaton.language_rows import LanguageRows
from tests.grammars import AWKWARD, grammar_of
from tests.test_matcher import allowed_by_mask, allowed_by_trying

PIECES = [
    "a",
    "b",
    "foo",
    "x",
    "0",
    "42",
    " ",
    "-",
    ":",
    "é",
    "ß",
    "中",
    "😀",
    "\u2028",
    "\ud7ff",
    '"',
    "\\",
    "\\n",
    "\\u00e9",
    "\n",
    '",',
    '"}',
]
PATTERNS = [
    "^[a-z]+$", "^[a-z0-9-]{1,63}$", "foo", "^.*$", "^[^:]+:[^:]+$", "^(?!x)\\S+$", "^.{1,20}$", "^(ab)*$",
    "^([a-z][0-9])*$", "^[^\\u2028]*$", "^[\\u0080-\\uffff]*$", "^[\\ud7ff-\\u{10ffff}a-z]*$", "^[ -~]{3}é",
    "^[a-m]*[n-z]*$", "^(é|中)*$", "^\\w+[^\\w]\\w+$", "^[a-z ]{40,}$", "^([a-z]{2}[ -~])*$",
]  # fmt: skip


@cache
def wordy_vocabulary() -> Vocabulary:
    """Bytes, awkward tokens, and random texts of one to seven pieces, some cut inside a character."""
    pick = random.Random(3)
    texts = {"".join(pick.choices(PIECES, k=pick.randrange(1, 8))).encode() for _ in range(700)}
    cut = {text[pick.randrange(len(text)) :][: pick.randrange(1, 12)] for text in texts}
    tokens = [bytes([byte]) for byte in range(256)] + AWKWARD + sorted(text for text in texts | cut if text)
    return Vocabulary.from_bytes([*tokens, b""], [len(tokens)])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows_are_what_brute_force_finds(pattern: str) -> None:
    vocabulary, pick = wordy_vocabulary(), random.Random(pattern)
    grammar = grammar_of({"type": "array", "items": {"type": "string", "pattern": pattern}}, vocabulary)
    for _ in range(3):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(b'["')
        for _ in range(6):
            allowed = allowed_by_mask(matcher, vocabulary)
            assert allowed == allowed_by_trying(matcher, vocabulary), matcher.text
            assert matcher.accept_token(pick.choice(sorted(allowed)))
            if matcher.is_terminated:
                break


def test_rows_inside_keys_of_a_pattern() -> None:
    vocabulary = wordy_vocabulary()
    schema = {"type": "object", "patternProperties": {"^[a-z]+$": {}, "^x.*y$": {}}, "additionalProperties": False}
    for begun in (b'{"', b'{"a', b'{"a":1,"', b'{"a":1,"b":1,"a', b'{"foo":1,"fo'):
        matcher = grammar_of(schema, vocabulary).matcher()
        assert matcher.accept_bytes(begun)
        assert allowed_by_mask(matcher, vocabulary) == allowed_by_trying(matcher, vocabulary), begun


def test_grammars_that_come_to_the_same_place_share_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    first = grammar_of({"type": "string", "pattern": "^[a-c]{9}$"}).matcher()
    assert first.accept_bytes(b'"')
    row = first.mask_row()
    monkeypatch.delattr(LanguageRows, "_scan")
    second = grammar_of({"type": "string", "pattern": "^z[a-c]{9}$"}).matcher()
    assert second.accept_bytes(b'"z')
    assert second.mask_row() is row
