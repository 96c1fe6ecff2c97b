"""The envelope: its text taken apart in any chunking gives the same pieces, and arguments that mean the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.envelope import EnvelopeReader, calls_envelope, content_envelope, envelope_schema
from api.pieces import Answer, CallArguments, CallStart, Content
from constrained.options import CompileOptions
from tests.api.grammar import compile_with_bytes

COMPACT = CompileOptions(whitespace="compact")
ANY = {"type": "object"}
CALLS = [("look-up", ANY), ("stop", {"type": "object", "properties": {}, "additionalProperties": False})]
FREE = compile_with_bytes(envelope_schema(CALLS, 16, {"type": "string"}), COMPACT)
BOUND = compile_with_bytes(envelope_schema(CALLS, 1, ANY), COMPACT)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def read(grammar: Any, text: str, sizes: list[int], content_is_text: bool = True) -> Answer:
    """The answer in an envelope that comes in pieces of these sizes, again and again."""
    reader = EnvelopeReader(grammar.root, content_is_text)
    answer = Answer()
    data = text.encode()
    at = turn = 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        answer.add(reader.feed(data[at : at + size]))
        at, turn = at + size, turn + 1
    answer.add(reader.finish())
    return answer


@given(st.dictionaries(st.text(max_size=6), json_values, max_size=4), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_arguments_in_any_chunking(arguments: dict[str, Any], sizes: list[int]) -> None:
    answer = read(FREE, calls_envelope([("look-up", arguments), ("stop", {})]), sizes)
    assert answer.content is None
    assert [call.name for call in answer.calls] == ["look-up", "stop"]
    assert json.loads(answer.calls[0].arguments) == arguments
    assert answer.calls[1].arguments == "{}"
    assert answer.calls[0].id != answer.calls[1].id


@given(st.text(), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_free_text_comes_decoded(text: str, sizes: list[int]) -> None:
    answer = read(FREE, content_envelope(text), sizes)
    assert (answer.content or "", answer.calls) == (text, [])


@given(st.dictionaries(st.text(max_size=6), json_values, max_size=4), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_bound_content_comes_as_json(value: dict[str, Any], sizes: list[int]) -> None:
    text = json.dumps({"content": value}, ensure_ascii=False, separators=(",", ":"))
    answer = read(BOUND, text, sizes, content_is_text=False)
    assert json.loads(answer.content or "") == value


def test_numbers_keep_their_digits() -> None:
    text = '{"tool_calls":[{"name":"look-up","arguments":{"a":12345678901234567890.10,"b":1e400}}]}'
    assert read(FREE, text, [5]).calls[0].arguments == '{"a":12345678901234567890.10,"b":1e400}'


def test_the_pieces_come_as_soon_as_they_are_known() -> None:
    reader = EnvelopeReader(FREE.root, True)
    assert reader.feed(b'{"content":"a') == [Content("a")]
    reader = EnvelopeReader(FREE.root, True)
    (start,) = reader.feed(b'{"tool_calls":[{"name":"lo')
    assert isinstance(start, CallStart)
    assert start.name == "look-up"
    assert reader.feed(b'ok-up","arguments":{"a":"x') == [
        CallArguments(0, "{"),
        CallArguments(0, '"a":"'),
        CallArguments(0, "x"),
    ]


@pytest.mark.parametrize(
    ("grammar", "text", "accepted"),
    [
        (FREE, content_envelope("a"), True),
        (FREE, calls_envelope([("look-up", {"q": 1})]), True),
        (FREE, calls_envelope([("stop", {})] * 16), True),
        (FREE, calls_envelope([("stop", {})] * 17), False),
        (FREE, calls_envelope([("stop", {"q": 1})]), False),
        (FREE, calls_envelope([("other", {})]), False),
        (FREE, calls_envelope([]), False),
        (FREE, '{"content":1}', False),
        (FREE, '{"content":"a","tool_calls":[]}', False),
        (BOUND, '{"content":{}}', True),
        (BOUND, content_envelope("a"), False),
        (BOUND, calls_envelope([("stop", {})] * 2), False),
    ],
)
def test_the_grammar_of_an_envelope(grammar: Any, text: str, accepted: bool) -> None:
    matcher = grammar.matcher()
    assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting) == accepted
