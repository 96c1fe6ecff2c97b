"""What goes wrong below the protocol: broken frames, connections lost at any moment, readers that freeze, a killed server."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.feed import FeedLimits
from api.reader import ReaderLimits
from api.run_settings import RunSettings
from api.settings import Settings
from constrained.client import Client
from constrained.client.errors import DisconnectedError
from tests.api.redis_server import RedisServer, needs_redis
from tests.api.server import DEADLINE_S, Sent, Served, ask, read_events, served, stream_events, wait_until
from tests.api.synthetic import SyntheticBackend, compact
from tests.api.test_resume import document, events_of, join
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
TEXT, CONTINUATION, CLOSE, PING = 1, 0, 8, 9
FIN, RSV = 0x80, 0x40
PROTOCOL_ERROR, INVALID_DATA = 1002, 1007


@contextmanager
def connected(url: str, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """A bare connection to a service."""
    address = httpx.URL(url)
    with socket.socket() as connection:
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(DEADLINE_S)
        connection.connect((address.host, address.port or 0))
        yield connection


def until(connection: socket.socket, end: bytes) -> bytes:
    """What comes up to `end`."""
    data = b""
    while end not in data:
        piece = connection.recv(4096)
        assert piece, data
        data += piece
    return data


def post(path: str, body: dict[str, Any]) -> tuple[bytes, bytes]:
    """The head and the body of a request."""
    data = compact(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode(), data


def all_is_free(service: Served) -> None:
    """No run goes on, and the next one is served."""
    wait_until(lambda: all(g.cancelled.is_set() or g.num_given for g in service.backend.generations))
    wait_until(lambda: service.metric("constrained_running_sequences") == 0)
    wait_until(lambda: service.metric("constrained_waiting_sequences") == 0)
    assert stream_events(service.client, ask({"type": "string"}))[-1].name == "done"


# -- broken frames


def frame(opcode: int, payload: bytes, *, masked: bool = True, length: int | None = None) -> bytes:
    """One WebSocket frame, well formed or not (RFC 6455 section 5.2); a mask of zeros changes nothing."""
    size = len(payload) if length is None else length
    size_bytes = (
        bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 1 << 16 else b"\x7f" + size.to_bytes(8)
    )
    first = size_bytes[0] | (0x80 if masked else 0)
    return bytes([opcode, first]) + size_bytes[1:] + (bytes(4) if masked else b"") + payload


@contextmanager
def upgraded(service: Served) -> Iterator[socket.socket]:
    """A connection that speaks WebSocket, with a run that hangs."""
    with connected(service.url) as connection:
        key = b64encode(bytes(16)).decode()
        fields = (
            f"host: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: {key}\r\nsec-websocket-version: 13"
        )
        connection.sendall(f"GET /v1/structured/ws HTTP/1.1\r\n{fields}\r\n\r\n".encode())
        assert until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 101")
        start = json.dumps({"op": "start", "request": ask({"type": "string"}, "hang")}).encode()
        connection.sendall(frame(FIN | TEXT, start))
        until(connection, b'"delta"')
        yield connection


def close_code(connection: socket.socket) -> int:
    """The code of the close frame that ends what comes; 0 where the connection ends without one."""
    data = b""
    try:
        while piece := connection.recv(4096):
            data += piece
    except ConnectionResetError:
        pass
    at = data.rfind(bytes([FIN | CLOSE]))
    return 0 if at < 0 else int.from_bytes(data[at + 2 : at + 4])


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(FIN | 3, b"x"), PROTOCOL_ERROR),
        (frame(FIN | 0xB, b"x"), PROTOCOL_ERROR),
        (frame(FIN | RSV | 0x20 | TEXT, b"{}"), PROTOCOL_ERROR),
        (frame(FIN | TEXT, b"{}", masked=False), PROTOCOL_ERROR),
        (frame(FIN | CONTINUATION, b"{}"), PROTOCOL_ERROR),
        (frame(TEXT, b"{") + frame(FIN | TEXT, b"}"), PROTOCOL_ERROR),
        (frame(PING, b"x"), PROTOCOL_ERROR),
        (frame(FIN | PING, b"x" * 126), PROTOCOL_ERROR),
        (frame(FIN | CLOSE, b"\x01"), PROTOCOL_ERROR),
        (frame(FIN | TEXT, b'{"op":"\xff"}'), INVALID_DATA),
        (frame(FIN | TEXT, b'{"op":"\xed\xa0\x80"}'), INVALID_DATA),
        (frame(FIN | TEXT, b"{}", length=1 << 62), 0),
        (b"GET / HTTP/1.1\r\n\r\n", 0),
    ],
)
def test_a_malformed_frame_ends_its_connection_and_its_runs_alone(sent: bytes, code: int) -> None:
    with served(SyntheticBackend()) as service:
        with upgraded(service) as connection:
            connection.sendall(sent)
            if code:
                assert close_code(connection) == code
        (generation,) = service.backend.generations
        wait_until(generation.cancelled.is_set)
        all_is_free(service)


def test_a_message_in_many_frames_with_a_ping_between_is_one() -> None:
    with served(SyntheticBackend()) as service, upgraded(service) as connection:
        message = b'{"op":"cancel","id":"mine"}'
        for at, byte in enumerate(message):
            opcode = TEXT if at == 0 else CONTINUATION
            connection.sendall(frame(opcode | (FIN if at == len(message) - 1 else 0), bytes([byte])))
            connection.sendall(frame(FIN | PING, b"?"))
        assert b'"reply":"cancel"' in until(connection, b'"id":"mine"')


# -- lost connections


def nothing(connection: socket.socket) -> None:
    """The client connects, and that is all."""


def half_a_head(connection: socket.socket) -> None:
    connection.sendall(post("/v1/structured/stream", ask(True))[0][:40])


def a_head(connection: socket.socket) -> None:
    connection.sendall(post("/v1/structured/stream", ask(True))[0])


def half_a_body(connection: socket.socket) -> None:
    head, body = post("/v1/structured/stream", ask(True))
    connection.sendall(head + body[: len(body) // 2])


def a_request(connection: socket.socket) -> None:
    connection.sendall(b"".join(post("/v1/structured/stream", ask({"type": "string"}, "slow"))))


def the_start(connection: socket.socket) -> None:
    a_request(connection)
    until(connection, b"event: start")


def some_deltas(connection: socket.socket) -> None:
    a_request(connection)
    until(connection, b'"op":"text"')


def a_hanging_step(connection: socket.socket) -> None:
    connection.sendall(b"".join(post("/v1/structured/stream", ask({"type": "string"}, "hang"))))
    until(connection, b'"op":"text"')


def the_end(connection: socket.socket) -> None:
    connection.sendall(b"".join(post("/v1/structured/stream", ask({"type": "string"}))))
    until(connection, b"event: done")


def a_chat(connection: socket.socket) -> None:
    body = {"messages": [{"role": "user", "content": "hang"}], "stream": True, "n": 2}
    connection.sendall(b"".join(post("/v1/chat/completions", body)))
    until(connection, b'"content"')


def a_response(connection: socket.socket) -> None:
    connection.sendall(b"".join(post("/v1/responses", {"input": "hang", "stream": True})))
    until(connection, b"response.output_text.delta")


PHASES = [
    nothing,
    half_a_head,
    a_head,
    half_a_body,
    a_request,
    the_start,
    some_deltas,
    a_hanging_step,
    the_end,
    a_chat,
    a_response,
]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("phase", PHASES)
def test_a_client_may_go_in_any_phase(phase: Callable[[socket.socket], None], reset: bool) -> None:
    with served(SyntheticBackend()) as service:
        with connected(service.url) as connection:
            phase(connection)
            if reset:  # no farewell, as of a machine that was switched off and on again
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        all_is_free(service)
        hanging = [g for g in service.backend.generations if g.directive == "hang"]
        wait_until(lambda: all(generation.cancelled.is_set() for generation in hanging))


def test_a_reader_who_joined_may_go_and_the_run_goes_on() -> None:
    body = ask({"type": "string"})
    with (
        served(SyntheticBackend(compact("x" * 300), delay_s=0.01)) as service,
        service.client.stream("POST", "/v1/structured/stream", json=body) as answer,
    ):
        events = read_events(answer.iter_lines())
        run = next(events).data["run"]
        for _ in range(3):
            with connected(service.url) as joined:
                joined.sendall(f"GET /v1/structured/{run}/events HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                until(joined, b"event: ")
        assert list(events)[-1].data["status"] == "complete"


# -- a frozen reader


def test_of_two_readers_a_frozen_one_neither_slows_nor_ends_the_other() -> None:
    """On a busy machine the other may be held for frozen too, unless the service has more patience."""
    for stall_timeout_s in (0.5, 4.0, 32.0):
        got = read_beside_a_frozen_one(stall_timeout_s)
        if got[-1].data.get("code") != "slow_consumer":
            break
    assert got[-1].data["status"] == "complete"
    assert [event.name for event in got if event.name == "snapshot"] == []
    assert document(got) == "x" * 12_000_000


def read_beside_a_frozen_one(stall_timeout_s: float) -> list[Sent]:
    """What a reader gets of a run of which another one, who is closed in the end, takes nothing."""
    text = compact("x" * 12_000_000)
    wide = RunSettings(reader=ReaderLimits(max_bytes=1 << 30), feed=FeedLimits(max_bytes=1 << 30))
    settings = Settings(stall_timeout_s=stall_timeout_s, runs=wide)
    with served(SyntheticBackend(text, token_bytes=40_000, delay_s=0.005), settings) as service:
        body = ask({"type": "string"}, max_tokens=4000, coalesce_ms=0)
        with service.client.stream("POST", "/v1/structured/stream", json=body) as answer:
            events = read_events(answer.iter_lines())
            got = [next(events)]
            run = got[0].data["run"]
            with connected(service.url, receive_buffer=4096) as frozen:
                frozen.sendall(f"GET /v1/structured/{run}/events HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                got.extend(events)
                num_slow = 1 + (got[-1].name == "error")
                wait_until(lambda: service.metric("constrained_slow_readers_total") == num_slow)
    return got


# -- a server that is killed


@contextmanager
def process(delay_ms: float = 20, **environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A service in a process that can be killed."""
    port = free_port()
    command = [sys.executable, "-m", "tests.api.synthetic", "--port", str(port), "--delay-ms", str(delay_ms)]
    running = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}", running
    finally:
        running.kill()
        running.wait()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").is_success
    except httpx.TransportError:
        return False


def killing_after(events: Iterator[Any], num_events: int, kill: Callable[[list[Any]], None]) -> list[Any]:
    """Reads on after the server is killed; what came, where the stream then breaks off as it must."""
    got: list[Any] = []
    try:
        for event in events:
            got.append(event)
            if len(got) == num_events:
                kill(got)
    except (DisconnectedError, httpx.NetworkError, httpx.RemoteProtocolError):
        return got
    raise AssertionError("the stream of a killed server came to an end")


def test_a_reader_of_a_killed_server_sees_a_torn_stream_and_keeps_what_came() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "minLength": 400}}, "required": ["name"]}
    with process() as (url, running), Client(url) as client, client.stream(schema, prompt="x", max_tokens=900) as events:
        killing_after(iter(events), 10, lambda _: running.kill())
        with pytest.raises(DisconnectedError) as broken:
            events.final()
    assert broken.value.finish_reason is None
    assert 0 < len(broken.value.value["name"]) < 400


def is_told_by(service: Served, run: str) -> bool:
    with service.client.stream("GET", f"/v1/structured/{run}/events") as answer:
        return answer.status_code == 200


@needs_redis
def test_a_run_of_a_killed_server_is_told_as_lost_by_another(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path)
    environment = {"CONSTRAINED_RUNS__REDIS_URL": redis.url, "CONSTRAINED_RUNS__OWNER_TTL_S": "0.5"}
    settings = Settings(runs=RunSettings(redis_url=redis.url, owner_ttl_s=0.5))
    body = ask({"type": "string", "minLength": 400, "maxLength": 500}, resumable=True, coalesce_ms=0)
    try:
        with process(**environment) as (url, running), served(SyntheticBackend(), settings) as other:

            def kill(got: list[Any]) -> None:
                wait_until(lambda: is_told_by(other, got[0].data["run"]))
                running.kill()

            with httpx.stream("POST", f"{url}/v1/structured/stream", json=body, timeout=DEADLINE_S) as answer:
                got = killing_after(read_events(answer.iter_lines()), 12, kill)
            run, seq = got[0].data["run"], got[5].data["seq"]
            rest = events_of(join(other, run, headers={"last-event-id": f"{run}:{seq}"}))
            assert (rest[-1].name, rest[-1].data["code"], rest[-1].data["retriable"]) == ("error", "run_lost", True)
            assert document(got[:6], rest).startswith(document(got[:6]))
    finally:
        redis.stop()
