"""Mask rows inside strings of patterns are what brute force finds, however far ahead a scan looks."""

from __future__ import annotations

import json
import random
from functools import cache

import pytest
from jsonschema import Draft202012Validator

from constrained import CompileOptions, Vocabulary, compile_json_schema
from constrained.automaton.language_rows import LanguageRows
from constrained.options import Spelling
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
    "^[a-m]*[n-z]*$", "^(é|中)*$", "^\\w+[^\\w]\\w+$", "^[a-z ]{40,}$", "^([a-z]{2}[ -~])*$", "^(?!.*--)[a-z-]+$", "x$|-",
    "^[a-z0-9]{8}-[a-z0-9]{4}$", "^\\s*(\\S+\\s+){0,3}\\S+$", "^(?!foo$|a$|\\\\$).*$", "^(?!(foo)+$)[a-z]*$",
    "^[^é]*(ß|中)[^é]+$", "^[ -~]{0,5}([a-z0-9ß-]{1,9}[.])*x$", "^(?!(a|b|foo)$)[a-z]{1,4}$",
]  # fmt: skip


@cache
def wordy_vocabulary() -> Vocabulary:
    """Bytes, awkward tokens, and random texts of one to seven pieces, some cut inside a character."""
    pick = random.Random(3)
    texts = {"".join(pick.choices(PIECES, k=pick.randrange(1, 8))).encode() for _ in range(700)}
    cut = {text[pick.randrange(len(text)) :][: pick.randrange(1, 12)] for text in sorted(texts)}
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
    schema = {"type": "object", "patternProperties": {"^[a-z]+$": {}, "^x.*y$": {}, "-": {}}, "additionalProperties": False}
    for begun in (
        b'{"',
        b'{"a',
        b'{"a":1,"',
        b'{"a":1,"b":1,"a',
        b'{"foo":1,"fo',
        b'{"-foo":1,"x-":1,"a":1,"',
        b'{"-foo":1,"-fo',
    ):
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


COUNTED = [
    ("^[a-z]+$", 9), ("^[^:]+:[^:]+$", 12), ("^foo.*bar$", 9), ("^(ab)*c$", 11), ("^[a-z0-9é]*$", 40), ("^(é|中x|😀yz)*$", 10),
    ("^[ -~]{3}é", 15), ("^\\S(.*\\S)?$", 13), ("^[\\u0080-\\uffff]*foo$", 10), ("^([^\\n]{2}|[0-9]{3})+$", 10),
    ("^[a-z ]{2,14}$", 99), ("^(?!.*--)[a-z0-9-]+$", 25), ("^(?!foo$)[a-z]+$", 6), ("^(?!x|.*\\u00e9)\\S{1,30}$", 99),
    ("^(?!a)", 11), ("^$|^[a-z ]+x$", 9), ("^(?!.*00)[a-z0-9]{3}(-[a-z0-9]{3})*$", 27), ("^(?!(ab|foo)*$)(ab|foo|x0)*$", 16),
]  # fmt: skip


BETWEEN = [
    ("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", 3, 20), ("[a-z]+", 4, 9), ("^(ab)*$", 3, 8), ("^(?!foo)[^:]*:?$", 5, 12),
    ("^\\S+@\\S+$", 6, 25), ("^[a-z]([a-z0-9-]{0,21}[a-z0-9])?$", 0, 99),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "least", "most"), [*((pattern, 0, most) for pattern, most in COUNTED), *BETWEEN])
@pytest.mark.parametrize("spelling", ["default", "permissive"])
def test_lengths_that_are_counted_beside_a_language(pattern: str, least: int, most: int, spelling: Spelling) -> None:
    """Each row is what brute force finds, and what is walked at random is a valid string in the end: no step is a dead end."""
    vocabulary, pick = wordy_vocabulary(), random.Random(pattern)
    schema = {"type": "string", "pattern": pattern, "minLength": least, "maxLength": most}
    grammar = compile_json_schema(schema, vocabulary, CompileOptions(spelling=spelling))
    lengths = set()
    for _ in range(25):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(b'"')
        while not matcher.is_terminated:
            allowed = sorted(allowed_by_mask(matcher, vocabulary))
            if pick.random() < 0.4:
                assert set(allowed) == allowed_by_trying(matcher, vocabulary), matcher.text
            longest = [token for token in allowed if len(vocabulary.token_bytes[token]) > 2]
            assert matcher.accept_token(pick.choice(longest if longest and pick.random() < 0.5 else allowed)), matcher.text
        value = json.loads(matcher.text)
        # Python's regular expressions take these for whitespace, ECMA-262's do not, or the other way round.
        assert set(value) & set("\x1c\x1d\x1e\x1f\x85\ufeff") or Draft202012Validator(schema).is_valid(value), value
        lengths.add(len(value))
    assert max(lengths) > min(most, 14) - 4, lengths


def test_a_counted_length_is_no_state_for_each_character() -> None:
    """The automaton of the rest serves every length, and every length far from the end has the same row."""
    grammar = grammar_of({"type": "string", "pattern": "^[a-z]+$", "maxLength": 5000}, wordy_vocabulary())
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b'"a')
    row = matcher.mask_row()
    assert matcher.accept_bytes(b"b" * 4000)
    assert matcher.mask_row() is row
    assert matcher.accept_bytes(b"b" * 999)
    allowed = allowed_by_mask(matcher, wordy_vocabulary())
    assert {wordy_vocabulary().token_bytes[token] for token in allowed} == {b'"'}


def test_closings_leave_room_for_the_rest() -> None:
    for pattern, most in COUNTED:
        matcher = grammar_of({"type": "string", "pattern": pattern, "maxLength": most}, wordy_vocabulary()).matcher()
        pick = random.Random(most)
        assert matcher.accept_bytes(b'"')
        for _ in range(6):
            ending = matcher.fork()
            while not ending.is_terminated:
                assert ending.accept_token(ending.closing_token()), (pattern, ending.text)
            assert len(json.loads(ending.text)) <= most
            allowed = sorted(allowed_by_mask(matcher, wordy_vocabulary()))
            matcher.accept_token(pick.choice(allowed))
            if matcher.is_terminated:
                break
