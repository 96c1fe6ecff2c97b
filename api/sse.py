"""Server-sent events: frames, heartbeats, and a response that ends with its reader.

The response watches the connection itself: a client that goes away, or that takes nothing for too long, ends the stream,
and `on_close` runs however the stream ends. The same response carries JSON Lines and plain text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.disconnect import until_disconnect
from api.scopes import BODY_SEND

logger = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"
# One newline: a comment followed by a blank line is an event without data, which the official Python client refuses.
HEARTBEAT = b": ping\n"
NO_STORE = {"cache-control": "no-store, no-transform"}
STREAM_HEADERS = {**NO_STORE, "x-accel-buffering": "no"}
FAREWELL_S = 1.0
"""How long a reader that stalled is given to take its last event."""


def sse_event(event_id: str, event: str, data: str) -> bytes:
    """One event; `data` is a single line."""
    return f"id: {event_id}\nevent: {event}\ndata: {data}\n\n".encode()


def sse_data(data: str) -> bytes:
    """One event of the OpenAI-compatible endpoints: data alone."""
    return f"data: {data}\n\n".encode()


def sse_named(event: str, data: str) -> bytes:
    """One event of `/v1/responses`, whose name its data repeat."""
    return f"event: {event}\ndata: {data}\n\n".encode()


class TornStreamError(Exception):
    """Raised by frames that cannot be brought to their end and have no words for it: the connection is broken off."""


class EventStreamResponse(StreamingResponse):
    """Streams `frames`, by default as server-sent events; never compressed, never cached.

    Where `heartbeat_s` pass without a frame, `heartbeat` is sent. A reader that takes nothing for `stall_timeout_s` is told
    `farewell`, where it comes back at once, and the stream ends.
    """

    media_type = EVENT_STREAM

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        on_close: Callable[[], None],
        heartbeat_s: float,
        stall_timeout_s: float,
        *,
        media_type: str = EVENT_STREAM,
        heartbeat: bytes | None = HEARTBEAT,
        farewell: Callable[[], bytes] | None = None,
    ) -> None:
        super().__init__(frames, headers=STREAM_HEADERS, media_type=media_type)
        self._frames = frames
        self._on_close = on_close
        self._heartbeat = heartbeat
        self._heartbeat_s = heartbeat_s
        self._stall_timeout_s = stall_timeout_s
        self._farewell = farewell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A task of its own: a wake-up passes through every coroutine that awaits another, and all middleware lies above here.
        sending = asyncio.create_task(self._send_all(send, scope.get(BODY_SEND, send)))
        watching = asyncio.create_task(until_disconnect(receive))
        try:
            await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            try:
                await ended(watching)
                failure = await ended(sending)
            finally:
                self._on_close()
        # The server raises OSError where the client is gone.
        if failure is not None and not isinstance(failure, OSError | TornStreamError):
            raise failure

    async def _send_all(self, send: Send, send_body: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        sender = Sender(send_body, self._heartbeat)
        try:
            async with asyncio.timeout(None) as stall:
                await self._send_frames(sender, stall)
        except TimeoutError:
            if not stall.expired():
                raise
            await self._say_farewell(send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_frames(self, sender: Sender, stall: asyncio.Timeout) -> None:
        watching = asyncio.create_task(watch(sender, stall, self._heartbeat_s, self._stall_timeout_s))
        try:
            async for frame in self._frames:
                if frame:
                    await sender.send(frame)
        finally:
            watching.cancel()
            if (close := getattr(self._frames, "aclose", None)) is not None:
                await close()

    async def _say_farewell(self, send: Send) -> None:
        logger.info("a reader took nothing for %s s and is closed", self._stall_timeout_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(FAREWELL_S, self._stall_timeout_s)):
                if self._farewell is not None:
                    await send({"type": "http.response.body", "body": self._farewell(), "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})


async def ended(task: asyncio.Task[None]) -> BaseException | None:
    """End a task that may have ended already; what it failed with."""
    task.cancel()
    await asyncio.wait((task,))
    return None if task.cancelled() else task.exception()


class Sender:
    """Sends one thing at a time, and knows since when. A heartbeat only goes out where nothing else does."""

    def __init__(self, send: Send, heartbeat: bytes | None) -> None:
        self._send = send
        self._heartbeat = heartbeat
        self._clock = asyncio.get_running_loop().time
        self._free: asyncio.Future[None] | None = None  # where a frame waits for the end of a heartbeat
        self.is_sending = False
        self.since = self._clock()

    async def send(self, frame: bytes) -> None:
        while self.is_sending:
            self._free = asyncio.get_running_loop().create_future()
            await self._free
        self.is_sending, self.since = True, self._clock()
        try:
            await self._send({"type": "http.response.body", "body": frame, "more_body": True})
        finally:
            self.is_sending, self.since = False, self._clock()
            if self._free is not None and not self._free.done():
                self._free.set_result(None)

    async def send_heartbeat(self) -> None:
        if self.is_sending:
            return
        if self._heartbeat is None:
            self.since = self._clock()
        else:
            await self.send(self._heartbeat)


async def watch(sender: Sender, stall: asyncio.Timeout, heartbeat_s: float, stall_timeout_s: float) -> None:
    """Look at a sender now and then: send a heartbeat where it is silent, end the block of `stall` where it is stuck.

    One task for a whole stream, so that a frame needs no timer of its own.
    """
    loop = asyncio.get_running_loop()
    while True:
        patience_s = stall_timeout_s if sender.is_sending else heartbeat_s
        left_s = sender.since + patience_s - loop.time()
        if left_s > 0:
            await asyncio.sleep(min(left_s, stall_timeout_s))
        elif sender.is_sending or not await _beats(sender, stall_timeout_s):
            break
    stall.reschedule(loop.time())


async def _beats(sender: Sender, stall_timeout_s: float) -> bool:
    """Whether a heartbeat went out."""
    try:
        async with asyncio.timeout(stall_timeout_s):
            await sender.send_heartbeat()
    except (TimeoutError, OSError):
        return False
    return True
