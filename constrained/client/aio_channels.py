"""One connection of a stream for asyncio, as `channels` has them for code that blocks."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import httpx

from constrained.client.channels import (
    GOODBYE_S,
    READ_BYTES,
    WRITE_S,
    accepted,
    broke_before_reply,
    limit_reads,
    stream_of,
    translated,
)
from constrained.client.errors import TransportError
from constrained.client.formats import EventStreamFormat, Item, LinesFormat
from constrained.client.websocket import Conversation
from schemas.socket import Reply


class AsyncChannel(Protocol):
    """As `Channel`; one read at a time."""

    @property
    def retry_ms(self) -> int | None: ...

    async def read(self, timeout_s: float | None) -> list[Item] | None: ...

    async def aclose(self) -> None: ...


class AsyncHttpChannel:
    """The body of a response."""

    def __init__(self, response: httpx.Response, events: EventStreamFormat | LinesFormat) -> None:
        self._response = response
        self._format = events
        self._chunks = response.aiter_bytes()

    @property
    def retry_ms(self) -> int | None:
        return self._format.retry_ms

    async def read(self, timeout_s: float | None) -> list[Item] | None:
        limit_reads(self._response.request, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                chunk = await anext(self._chunks, None)
        except TimeoutError as error:  # a transport that knows no time limits
            raise httpx.ReadTimeout("nothing came in time") from error
        return None if chunk is None else self._format.feed(chunk)

    async def aclose(self) -> None:
        await self._response.aclose()


class AsyncSocketChannel:
    """A WebSocket. Whoever waits, for events or for a reply, reads for the others too."""

    retry_ms = None

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._stream = stream_of(response)
        self._talk = Conversation()
        self._ready: list[Item] = []
        self._is_over = False
        self._reading = asyncio.Lock()
        self._writing = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether a message can still be sent, as far as is known."""
        return not self._is_over

    async def ask(self, message: dict[str, Any], timeout_s: float | None) -> Reply:
        """Send a message; its reply, or what it was refused with."""
        id_ = self._talk.say(message)
        await self._flush()
        async with asyncio.timeout(timeout_s):
            while id_ not in self._talk.replies:
                if self._is_over:
                    raise TransportError(broke_before_reply(self._talk.close_reason))
                async with self._reading:
                    if id_ not in self._talk.replies and not self._is_over:
                        await self._receive(timeout_s)
        return accepted(self._talk.replies.pop(id_))

    async def read(self, timeout_s: float | None) -> list[Item] | None:
        async with self._reading:
            if not self._ready and not self._is_over:
                await self._receive(timeout_s)
            items, self._ready = self._ready, []
        return None if self._is_over and not items else items

    async def aclose(self) -> None:
        self._talk.say_goodbye()
        try:
            async with asyncio.timeout(GOODBYE_S):
                await self._flush()
        except Exception:  # the other side may have gone already
            pass
        finally:
            await self._response.aclose()

    async def _receive(self, timeout_s: float | None) -> None:
        try:
            data = await self._stream.read(READ_BYTES, timeout=timeout_s)
        except Exception as error:
            self._is_over = True
            raise translated(error) from error
        self._ready += self._talk.feed(data)
        self._is_over = not data or self._talk.close_reason is not None
        await self._flush()

    async def _flush(self) -> None:
        async with self._writing:
            data = self._talk.outgoing()
            try:
                if data:
                    await self._stream.write(data, timeout=WRITE_S)
            except Exception as error:
                self._is_over = True
                raise translated(error) from error
