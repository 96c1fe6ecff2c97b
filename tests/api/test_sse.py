"""The event-stream response at the level of ASGI: how it ends, and that it always cleans up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from api.sse import EventStreamResponse, sse_event

SCOPE = {"type": "http", "asgi": {"spec_version": "2.4"}}


async def stays() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError("nobody disconnects")


async def frames(*items: bytes, then: Callable[[], Awaitable[Any]] | None = None) -> AsyncIterator[bytes]:
    for item in items:
        yield item
    if then is not None:
        await then()


class Connection:
    """Records what is sent; `on_body` may stand in the way."""

    def __init__(self, on_body: Callable[[], Awaitable[Any]] | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self.num_closed = 0
        self._on_body = on_body

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.body" and self._on_body is not None:
            await self._on_body()
        self.sent.append(message)

    def close(self) -> None:
        self.num_closed += 1

    def run(self, stream: AsyncIterator[bytes], receive: Any = stays, stall_timeout_s: float = 20) -> None:
        async def main() -> None:
            await EventStreamResponse(stream, self.close, 20, stall_timeout_s)(SCOPE, receive, self.send)

        asyncio.run(main())


def test_frames_go_out_in_order_and_the_body_ends() -> None:
    connection = Connection()
    connection.run(frames(b"a", b"b"))
    assert [(m.get("body"), m.get("more_body")) for m in connection.sent[1:]] == [(b"a", True), (b"b", True), (b"", False)]
    assert connection.num_closed == 1


def test_a_client_that_goes_ends_the_stream() -> None:
    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    connection = Connection()
    connection.run(frames(b"a", then=asyncio.Event().wait), gone)
    assert connection.num_closed == 1
    assert all(message.get("more_body", True) for message in connection.sent)


def test_a_reader_that_takes_nothing_ends_the_stream() -> None:
    connection = Connection(on_body=asyncio.Event().wait)
    connection.run(frames(b"a"), stall_timeout_s=0.01)
    assert connection.num_closed == 1


def test_a_broken_connection_ends_the_stream() -> None:
    async def broken() -> None:
        raise ConnectionResetError

    connection = Connection(on_body=broken)
    connection.run(frames(b"a"))
    assert connection.num_closed == 1


def test_a_fault_in_the_frames_still_cleans_up() -> None:
    async def fault() -> None:
        raise ZeroDivisionError

    connection = Connection()
    with pytest.raises(ZeroDivisionError):
        connection.run(frames(b"a", then=fault))
    assert connection.num_closed == 1


def test_an_event_is_three_lines_and_a_blank_one() -> None:
    assert sse_event("run_1:5", "delta", "{}") == b"id: run_1:5\nevent: delta\ndata: {}\n\n"
