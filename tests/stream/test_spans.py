"""Where a value stands in its document's text: every place of random documents, whole and cut, in any layout."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.stream import DeltaStream
from constrained.stream.pointer import join
from constrained.stream.spans import value_span

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
LAYOUTS: list[dict[str, Any]] = [{"separators": (",", ":")}, {}, {"indent": 2}, {"ensure_ascii": False}]


def places(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, join(path, str(key)))


@given(value=VALUES, layout=st.sampled_from(LAYOUTS))
def test_every_value_is_found(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout).encode()
    for path, found in places(value):
        start, end = value_span(text, path)
        assert json.loads(text[start:end]) == found


@given(value=VALUES, layout=st.sampled_from(LAYOUTS), data=st.data())
def test_of_a_cut_document_every_final_value_is_found(value: Any, layout: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, **layout).encode()
    text = text[: data.draw(st.integers(0, len(text)))]
    stream = DeltaStream()
    stream.feed(text)
    for path, status in stream.fold.status.items():
        if status == "complete":
            start, end = value_span(text, path)
            assert json.loads(text[start:end]) == stream.fold.at(path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b'{"a":1}', "/b"),
        (b"[1,2]", "/2"),
        (b"[1,2]", "/x"),
        (b'{"a":"b', "/a"),
        (b'{"a":{"b":1', "/a"),
        (b'{"a":', "/a"),
        (b"", ""),
        (b"12", "/0"),
    ],
)
def test_what_is_not_there_is_not_found(text: bytes, path: str) -> None:
    with pytest.raises(KeyError):
        value_span(text, path)
