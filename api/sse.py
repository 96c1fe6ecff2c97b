"""Server-sent events: frames, heartbeats, and a response that ends with its reader.

The response watches the connection itself: a client that goes away, or that takes nothing for too long, ends the stream,
and `on_close` runs however the stream ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import anyio
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.disconnect import until_disconnect

# One newline: a comment followed by a blank line is an event without data, which the official Python client refuses.
HEARTBEAT = b": ping\n"
NO_STORE = {"cache-control": "no-store, no-transform"}
STREAM_HEADERS = {**NO_STORE, "x-accel-buffering": "no"}


def sse_event(event_id: str, event: str, data: str) -> bytes:
    """One event; `data` is a single line."""
    return f"id: {event_id}\nevent: {event}\ndata: {data}\n\n".encode()


def sse_data(data: str) -> bytes:
    """One event of the OpenAI-compatible endpoints: data alone."""
    return f"data: {data}\n\n".encode()


def sse_named(event: str, data: str) -> bytes:
    """One event of `/v1/responses`, whose name its data repeat."""
    return f"event: {event}\ndata: {data}\n\n".encode()


async def with_heartbeats(frames: AsyncIterator[bytes], heartbeat_s: float) -> AsyncIterator[bytes]:
    """`frames`, with a comment wherever `heartbeat_s` pass without one."""
    while True:
        upcoming = asyncio.create_task(_next(frames))
        try:
            while not (await asyncio.wait({upcoming}, timeout=heartbeat_s))[0]:
                yield HEARTBEAT
        finally:
            upcoming.cancel()
        frame = upcoming.result()
        if frame is None:
            return
        yield frame


async def _next(frames: AsyncIterator[bytes]) -> bytes | None:
    return await anext(frames, None)


class EventStreamResponse(StreamingResponse):
    """Streams `frames` as server-sent events; never compressed, never cached."""

    media_type = "text/event-stream"

    def __init__(
        self, frames: AsyncIterator[bytes], on_close: Callable[[], None], heartbeat_s: float, stall_timeout_s: float
    ) -> None:
        super().__init__(with_heartbeats(frames, heartbeat_s), headers=STREAM_HEADERS)
        self._on_close = on_close
        self._stall_timeout_s = stall_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    await until_disconnect(receive)
                    tasks.cancel_scope.cancel()

                tasks.start_soon(watch)
                await self._send_all(send)
                tasks.cancel_scope.cancel()
        finally:
            self._on_close()

    async def _send_all(self, send: Send) -> None:
        # The server raises OSError where the client is gone; TimeoutError is a reader that stalled. Both just end the stream.
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for frame in self.body_iterator:
                async with asyncio.timeout(self._stall_timeout_s):
                    await send({"type": "http.response.body", "body": frame, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (OSError, TimeoutError):
            return
