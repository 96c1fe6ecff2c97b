"""One connection of a stream that blocks: an HTTP response or a WebSocket, read as events.

`aio_channels` has the same for asyncio. What a read raises is whatever the transport below raises; time limits are
`httpx.TimeoutException`s or `TimeoutError`s.
"""

from __future__ import annotations

from typing import Any, Protocol

import httpx

from constrained.client.errors import TransportError, refusal
from constrained.client.formats import EventStreamFormat, Item, LinesFormat
from constrained.client.websocket import Conversation
from schemas.socket import Reply

READ_BYTES = 64 * 1024
WRITE_S = 10.0
GOODBYE_S = 1.0


class Channel(Protocol):
    """`read` gives the events that have come, None at the end of the connection."""

    @property
    def retry_ms(self) -> int | None: ...

    def read(self, timeout_s: float | None) -> list[Item] | None: ...

    def close(self) -> None: ...


class HttpChannel:
    """The body of a response. A read is limited by the time limit that the connection's first read was given."""

    def __init__(self, response: httpx.Response, events: EventStreamFormat | LinesFormat) -> None:
        self._response = response
        self._format = events
        self._chunks = response.iter_bytes()

    @property
    def retry_ms(self) -> int | None:
        return self._format.retry_ms

    def read(self, timeout_s: float | None) -> list[Item] | None:
        limit_reads(self._response.request, timeout_s)
        chunk = next(self._chunks, None)
        return None if chunk is None else self._format.feed(chunk)

    def close(self) -> None:
        self._response.close()


class SocketChannel:
    """A WebSocket over the stream of an upgraded connection."""

    retry_ms = None

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._stream = stream_of(response)
        self._talk = Conversation()
        self._ready: list[Item] = []
        self._is_over = False

    @property
    def is_open(self) -> bool:
        """Whether a message can still be sent, as far as is known."""
        return not self._is_over

    def ask(self, message: dict[str, Any], timeout_s: float | None) -> Reply:
        """Send a message; its reply, or what it was refused with. Events that come before it wait for the next read."""
        id_ = self._talk.say(message)
        self._flush()
        while id_ not in self._talk.replies:
            if self._is_over:
                raise TransportError(broke_before_reply(self._talk.close_reason))
            self._receive(timeout_s)
        return accepted(self._talk.replies.pop(id_))

    def read(self, timeout_s: float | None) -> list[Item] | None:
        if not self._ready:
            if self._is_over:
                return None
            self._receive(timeout_s)
        items, self._ready = self._ready, []
        return None if self._is_over and not items else items

    def close(self) -> None:
        self._talk.say_goodbye()
        try:
            self._flush()
        except Exception:  # the other side may have gone already
            pass
        finally:
            self._response.close()

    def _receive(self, timeout_s: float | None) -> None:
        try:
            data = self._stream.read(READ_BYTES, timeout=timeout_s)
        except Exception as error:
            self._is_over = True
            raise translated(error) from error
        self._ready += self._talk.feed(data)
        self._flush()
        self._is_over = not data or self._talk.close_reason is not None

    def _flush(self) -> None:
        data = self._talk.outgoing()
        try:
            if data:
                self._stream.write(data, timeout=WRITE_S)
        except Exception as error:
            self._is_over = True
            raise translated(error) from error


def limit_reads(request: httpx.Request, timeout_s: float | None) -> None:
    """httpx takes the limit of all reads of a body from the request, when the first begins."""
    timeouts = request.extensions.get("timeout")
    if isinstance(timeouts, dict):
        timeouts["read"] = timeout_s


def stream_of(response: httpx.Response) -> Any:
    """The raw stream below an upgraded connection; `TransportError` where the transport has none."""
    stream = response.extensions.get("network_stream")
    if stream is None:
        raise TransportError("this httpx transport cannot carry a WebSocket: it gives no network_stream")
    return stream


def translated(error: Exception) -> Exception:
    """An error of a raw stream as httpx would raise it: such a stream raises those of the library below httpx."""
    if "Timeout" in type(error).__name__:
        return httpx.ReadTimeout(str(error))
    return error if isinstance(error, OSError | httpx.TransportError) else httpx.ReadError(str(error) or repr(error))


def accepted(reply: Reply) -> Reply:
    """The reply; the `ApiError` that it stands for where the message was refused."""
    if reply.error is not None:
        raise refusal(reply.error)
    return reply


def broke_before_reply(reason: str | None) -> str:
    why = f" ({reason})" if reason else ""
    return f"the WebSocket ended before the reply came{why}; whether the message was heeded is not known"
