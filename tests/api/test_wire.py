"""JSON in and out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.wire import canonical_json, read_json, to_json
from constrained.errors import MalformedBodyError, SchemaError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(value=values)
def test_what_is_written_is_one_line_and_reads_back(value: Any) -> None:
    text = to_json(value)
    assert len(text.splitlines()) == 1
    assert json.loads(text) == value
    assert read_json(text.encode()) == value


@given(value=values, ascii_only=st.booleans())
def test_every_json_text_is_read(value: Any, ascii_only: bool) -> None:
    assert read_json(json.dumps(value, ensure_ascii=ascii_only, indent=1).encode()) == value


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"[1,]", "line 1, column 4"),
        (b"\xff", "utf-8"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b'["\\ud83d"]', "surrogate"),
        (b'{"\\udc00": 1}', "surrogate"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "4300"),
    ],
)
def test_everything_else_is_refused_with_its_reason(body: bytes, what: str) -> None:
    with pytest.raises(MalformedBodyError, match=what):
        read_json(body)


def test_a_surrogate_pair_is_a_character() -> None:
    assert read_json(b'"\\ud83d\\ude42"') == "🙂"


def test_canonical_json_tells_schemas_apart_as_the_grammar_does() -> None:
    assert canonical_json({"a": 1, "b": 2}) != canonical_json({"b": 2, "a": 1})
    assert canonical_json({"const": 1}) != canonical_json({"const": True})
    assert canonical_json({"a": [1, "é"]}) == '{"a":[1,"é"]}'
    with pytest.raises(SchemaError, match="doubles"):
        canonical_json({"minimum": float("inf")})
    deep: Any = True
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(SchemaError, match="deeply"):
        canonical_json(deep)
