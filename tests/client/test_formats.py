"""What the three transports say is the same, in any chunking; what is no event is told as such, in its turn."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import SERVER, Protocol

from constrained.client import EventIdError, OpenPathError, ProtocolError, RateLimitError, ServerError, TransportError
from constrained.client.channels import accepted, stream_of
from constrained.client.errors import refusal
from constrained.client.formats import EventStreamFormat, Item, LinesFormat, Malformed, Received
from constrained.client.websocket import Conversation, Handshake
from schemas.requests import ErrorInfo
from schemas.socket import Reply
from tests.client.builders import deltas, done, snapshot, start

FRAMES = [start(), *deltas('{"a":["x', '\\ud83d\\ude42",1e400]}'), snapshot(9, {}, [""], {"": "streaming"}), done()]


def as_line(frame: bytes) -> bytes:
    id_, name, data = (line.partition(": ")[2] for line in frame.decode().strip().split("\n"))
    return f'{{"event":"{name}","id":"{id_}","data":{data}}}'.encode()


LINES = [as_line(frame) for frame in FRAMES]
EVENTS = [Received(**dict(zip(("name", "id", "data"), json.loads(line).values(), strict=True))) for line in LINES]


def chunks(data: st.DataObject, whole: bytes) -> list[bytes]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    return [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@given(st.data())
def test_every_transport_says_the_same(data: st.DataObject) -> None:
    beat = data.draw(st.sampled_from([b"", b" ", b"  "]))
    lines = beat + b"".join(line + b"\n" + beat for line in LINES)
    assert read(LinesFormat(), chunks(data, lines)) == EVENTS
    assert read(EventStreamFormat(), chunks(data, b": ping\n".join([b"", *FRAMES]))) == EVENTS
    service = Protocol(SERVER, max_size=None)
    for line in LINES:
        for part in range(2):
            cut = len(line) // 2
            service.send_frame(Frame(Opcode.CONT if part else Opcode.TEXT, line[cut:] if part else line[:cut], fin=bool(part)))
        service.send_ping(b"")
    assert read(Conversation(), chunks(data, b"".join(service.data_to_send()))) == EVENTS


def read(events: Any, parts: list[bytes]) -> list[Item]:
    return [item for part in parts if part for item in events.feed(part)]


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b'"x"', b"{}", b'{"event":"done"}', b"\xff", b"[" * 100_000])
def test_a_line_that_is_no_event_is_told_in_its_turn(line: bytes) -> None:
    first, broken, last = LinesFormat().feed(b"\n".join([LINES[0], line, LINES[1], b""]))
    assert (first, last) == (EVENTS[0], EVENTS[1])
    assert isinstance(broken, Malformed)


def test_a_line_that_is_cut_is_discarded() -> None:
    assert LinesFormat().feed(LINES[0] + b"\n" + LINES[1]) == [EVENTS[0]]


def test_deep_documents_are_read() -> None:
    deep = "[" * 400 + "]" * 400
    (event,) = LinesFormat().feed(f'{{"event":"snapshot","id":"r:1","data":{deep}}}\n'.encode())
    assert isinstance(event, Received)


# WebSockets.


def said(talk: Conversation, service: Protocol) -> list[dict[str, Any]]:
    """What the service gets."""
    service.receive_data(talk.outgoing())
    return [
        json.loads(frame.data)
        for frame in service.events_received()
        if isinstance(frame, Frame) and frame.opcode is Opcode.TEXT
    ]


def test_replies_are_kept_for_who_asked() -> None:
    talk, service = Conversation(), Protocol(SERVER)
    ids = [talk.say({"op": "cancel"}), talk.say({"op": "steer", "text": "x"})]
    assert said(talk, service) == [{"op": "cancel", "id": ids[0]}, {"op": "steer", "text": "x", "id": ids[1]}]
    for id_ in reversed(ids):
        service.send_text(json.dumps({"reply": "cancel", "id": id_, "run": "r"}).encode())
    service.send_text(LINES[0])
    assert talk.feed(b"".join(service.data_to_send())) == [EVENTS[0]]
    assert [talk.replies[id_].run for id_ in ids] == ["r", "r"]


def test_pings_are_answered_and_the_end_is_said() -> None:
    talk, service = Conversation(), Protocol(SERVER)
    service.send_ping(b"are you there")
    assert talk.feed(b"".join(service.data_to_send())) == []
    service.receive_data(talk.outgoing())
    (pong,) = service.events_received()
    assert isinstance(pong, Frame)
    assert (pong.opcode, bytes(pong.data)) == (Opcode.PONG, b"are you there")
    assert talk.close_reason is None
    service.send_close(1013, "slow_consumer")
    talk.feed(b"".join(service.data_to_send()))
    assert talk.close_reason == "1013 slow_consumer"
    talk.say_goodbye()


@pytest.mark.parametrize("message", [b"nonsense", b'{"reply":"dance"}', b'{"what":1}'])
def test_a_message_that_is_neither_event_nor_reply(message: bytes) -> None:
    talk, service = Conversation(), Protocol(SERVER)
    service.send_text(message)
    service.send_binary(b"x")
    found = talk.feed(b"".join(service.data_to_send()))
    assert [type(item) for item in found] == [Malformed, Malformed]


def test_the_proof_of_the_handshake() -> None:
    handshake = Handshake()
    assert handshake.headers["upgrade"] == "websocket"
    for accept in (None, "", handshake.headers["sec-websocket-key"], Handshake()._accept):
        with pytest.raises(ProtocolError, match="handshake"):
            handshake.check(accept)
    handshake.check(handshake._accept)


@pytest.mark.parametrize(
    ("code", "type_", "kind", "status"),
    [
        ("path_open", "invalid_request_error", OpenPathError, 400),
        ("invalid_event_id", "invalid_request_error", EventIdError, 400),
        ("rate_limit_exceeded", "rate_limit_error", RateLimitError, 429),
        ("internal_error", "server_error", ServerError, 500),
    ],
)
def test_a_refused_message_is_the_error_that_it_would_be_over_http(code: str, type_: str, kind: type, status: int) -> None:
    info = ErrorInfo(message="no", type=type_, code=code)
    with pytest.raises(kind) as caught:
        accepted(Reply(reply="edit", error=info))
    assert type(caught.value) is type(refusal(info)) is kind
    assert caught.value.status == status  # type: ignore[attr-defined]


def test_a_transport_that_cannot_be_upgraded_says_so() -> None:
    with pytest.raises(TransportError, match="network_stream"):
        stream_of(httpx.Response(101))
