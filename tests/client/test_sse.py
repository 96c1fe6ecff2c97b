"""The SSE decoder against the WHATWG standard's examples and rules, and against itself over any chunking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.client.sse import ServerSentEvent, SSEDecoder


def decode(*chunks: bytes) -> list[tuple[str, str, str]]:
    decoder = SSEDecoder()
    return [(event.event, event.data, event.id) for chunk in chunks for event in decoder.feed(chunk)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        # The examples of the standard, section 9.2.6.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("message", "YHOO\n+2\n10", "")]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [("message", "first event", "1"), ("message", "second event", ""), ("message", " third event", "")],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [("message", "", ""), ("message", "\n", "")]),
        (b"data:test\n\ndata: test\n\n", [("message", "test", ""), ("message", "test", "")]),
        # Line ends.
        (b"event: a\rdata: x\r\r", [("a", "x", "")]),
        (b"event: a\r\ndata: x\r\n\r\n", [("a", "x", "")]),
        (b"event: a\ndata: x\r\n\revent: b\rdata: y\n\r", [("a", "x", ""), ("b", "y", "")]),
        ("data: a\u2028b\x0bc\x85d\n\n".encode(), [("message", "a\u2028b\x0bc\x85d", "")]),
        # Fields.
        (b"\xef\xbb\xbfdata: x\n\n", [("message", "x", "")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: x\ndata: y\n\n", [("message", "y", "")]),
        (b"data: \xef\xbb\xbfx\n\n", [("message", "\ufeffx", "")]),
        (b"id: 7\ndata: x\n\ndata: y\n\n", [("message", "x", "7"), ("message", "y", "7")]),
        (b"id: 7\n\ndata: y\n\n", [("message", "y", "7")]),
        (b"id: 7\nid: a\0b\ndata: x\n\n", [("message", "x", "7")]),
        (b"event: a\n\ndata: x\n\n", [("message", "x", "")]),
        (b"event: a\nevent:\ndata: x\n\n", [("message", "x", "")]),
        (b"Data: x\n data: y\nfoo: z\ndata: ok\n\n", [("message", "ok", "")]),
        (b"data: a:b: c\n\n", [("message", "a:b: c", "")]),
        # A heartbeat stands on a line of its own, in or between events.
        (b": ping\ndata: x\n: ping\n\n: ping\n", [("message", "x", "")]),
        # Bytes that are no UTF-8.
        (b"data: \xff\xc3\n\n", [("message", "\ufffd\ufffd", "")]),
        # What the end of the stream cuts off is no event.
        (b"data: x\n\ndata: y\n", [("message", "x", "")]),
        (b"", []),
    ],
)
def test_decodes(stream: bytes, events: list[tuple[str, str, str]]) -> None:
    assert decode(stream) == events
    assert decode(*(bytes([byte]) for byte in stream)) == events


def test_gives_an_event_as_soon_as_its_blank_line_has_come() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: x\r") == []
    assert decoder.feed(b"\n\r") == [ServerSentEvent("message", "x", "")]
    assert decoder.feed(b"\ndata: y\n") == []
    assert decoder.feed(b"\n") == [ServerSentEvent("message", "y", "")]


@pytest.mark.parametrize(
    ("line", "expected"), [(b"retry: 250", 250), (b"retry: 2s", None), (b"retry:", None), ("retry: ٣".encode(), None)]
)
def test_reads_the_reconnection_time(line: bytes, expected: int | None) -> None:
    decoder = SSEDecoder()
    decoder.feed(line + b"\n")
    assert decoder.retry_ms == expected


LINES = st.lists(
    st.one_of(
        st.just(b""),
        st.sampled_from(
            [b"data", b"data: a", b"data:\xc3\xa9\xf0\x9f\x98\x80", b"event: e", b"id: 1", b"id", b": c", b"x: y", b"retry: 5"]
        ),
        st.binary(max_size=8).filter(lambda line: b"\r" not in line and b"\n" not in line),
    ),
    max_size=20,
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(st.data())
def test_any_chunking_gives_the_same_events(data: st.DataObject) -> None:
    lines = data.draw(LINES)
    stream = b"".join(line + data.draw(ENDS) for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*chunks) == decode(stream)


@given(st.lists(st.tuples(st.sampled_from(["", "a"]), st.text(), st.sampled_from(["", "9"])), max_size=6), ENDS)
def test_what_was_encoded_comes_back(events: list[tuple[str, str, str]], end: bytes) -> None:
    events = [(name, data.replace("\r", "\n").encode("utf-8", "replace").decode(), id_) for name, data, id_ in events]
    stream = b""
    for name, data, id_ in events:
        lines = [f"event: {name}", f"id: {id_}", *(f"data: {line}" for line in data.split("\n")), "", ""]
        stream += end.join(line.encode() for line in lines)
    assert decode(stream) == [(name or "message", data, id_) for name, data, id_ in events]
