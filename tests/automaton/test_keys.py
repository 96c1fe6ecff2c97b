"""Keys that end inside a token that began inside them, behind a backslash of the token before."""

from __future__ import annotations

import pytest

from constrained.automaton.automaton import item_value, key_content
from tests.grammars import awkward_vocabulary, grammar_of
from tests.oracles import allowed_by_mask, allowed_by_trying

SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("begun", "data", "is_taken"),
    [
        (b'{"":1,"a\\', b'""', True),
        (b'{"a\\"":1,"a\\', b'""', False),
        (b'{"a\\"":1,"a\\\\', b'":', True),
        (b'{"a\\\\":1,"a\\\\', b'":', False),
        (b'{"a\\\\\\"":1,"a\\\\\\', b'""', False),
    ],
)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_a_quote_behind_a_backslash_of_another_token_opens_no_key(
    begun: bytes, data: bytes, is_taken: bool, order: str
) -> None:
    matcher = grammar_of(SCHEMA, awkward_vocabulary(), property_order=order).matcher()
    assert matcher.accept_bytes(begun)
    assert allowed_by_mask(matcher, awkward_vocabulary()) == allowed_by_trying(matcher, awkward_vocabulary())
    assert matcher.fork().accept_bytes(data) == is_taken
    assert all(matcher.accept_bytes(bytes([byte])) for byte in data) == is_taken


def test_key_content_across_its_parts() -> None:
    text = b'{"k": "v", "\\\\\\"x\\\\"'
    for cut in range(len(text)):
        assert key_content(text[cut:], len(text) - cut - 1, text[:cut])[0] == b'\\"x\\'


def test_item_values_behind_long_runs_of_backslashes() -> None:
    for num in range(180, 260):
        value = b'"' + b"\\\\" * 60 + b'\\"' + b"x" * num + b'"'
        assert item_value(b"[" + value, b"") == (value.decode(), False)
