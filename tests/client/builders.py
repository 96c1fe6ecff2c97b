"""Builders for the client's tests: event streams as bytes, transports that serve them, and one face for both clients.

The ops of a stream come from `DeltaStream`, fed with the document's text in pieces, so that the client is read against what the
service writes.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from constrained.client import AsyncClient, Client
from constrained.stream import DeltaStream

RUN = "run_1"
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8, "forced_tokens": 1, "cached_tokens": 0}
TIMINGS = {"queue_ms": 0.0, "ttft_ms": 1.0, "total_ms": 2.0, "tokens_per_s": 5.0}


def sse(name: str, data: Any, seq: int = 0) -> bytes:
    return f"id: {RUN}:{seq}\nevent: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def start(schema: Any = True, **fields: Any) -> bytes:
    data = {"run": RUN, "protocol": 1, "model": "m", "schema": schema, "schema_hash": "h", "order": [], "choices": 1}
    return sse("start", data | fields)


def delta(seq: int, *ops: dict[str, Any], choice: int = 0) -> bytes:
    return sse("delta", {"seq": seq, "choice": choice, "ops": list(ops)}, seq)


def snapshot(seq: int, value: Any, open: list[str], status: dict[str, str], choice: int = 0) -> bytes:
    return sse("snapshot", {"seq": seq, "choice": choice, "value": value, "open": open, "status": status}, seq)


def done(seq: int = 10_000, *reasons: str, valid: bool | None = None) -> bytes:
    """The `done` event; by default of one choice that stopped."""
    reasons = reasons or ("stop",)
    complete = set(reasons) == {"stop"}
    data = {
        "seq": seq,
        "finish_reason": next((reason for reason in reasons if reason != "stop"), "stop"),
        "finish_reasons": list(reasons),
        "status": "complete" if complete else "incomplete",
        "valid": complete if valid is None else valid,
        "closed_by_budget": False,
        "usage": USAGE,
        "timings": TIMINGS,
    }
    return sse("done", data, seq)


def error(seq: int = 10_000, **fields: Any) -> bytes:
    return sse("error", {"seq": seq, "code": "internal_error", "message": "the step failed", **fields}, seq)


def deltas(*pieces: str, finish: bool = True, choice: int = 0, seq: int = 0) -> list[bytes]:
    """One frame for each piece of a document's text, where it causes ops."""
    stream = DeltaStream()
    batches = [stream.feed(piece.encode()) for piece in pieces]
    if finish:
        batches.append(stream.finish())
    frames = []
    for ops in filter(None, batches):
        seq += len(ops)
        frames.append(delta(seq, *(op.to_wire() for op in ops), choice=choice))
    return frames


def whole(*pieces: str) -> list[bytes]:
    """The frames of a whole run."""
    return [start(), *deltas(*pieces), done()]


class Frames(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A response body that counts what is taken, ends or breaks, and remembers that it was closed."""

    def __init__(self, chunks: Iterable[bytes], breaks: Exception | None = None) -> None:
        self.chunks = list(chunks)
        self.breaks = breaks
        self.num_taken = 0
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            self.num_taken += 1
            yield chunk
        if self.breaks is not None:
            raise self.breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


def events_response(frames: Frames) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/event-stream; charset=utf-8"}, stream=frames)


class Service:
    """A transport that answers from a list and keeps the requests; each answer is given once."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.transport = httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) if request.content else None for request in self.requests]


class BlockingStream:
    """A blocking `Stream` with the face of an `AsyncStream`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        if name in ("events", "elements", "text"):
            return lambda *args, **options: _slowly(found(*args, **options))
        return _later(found) if name in ("field", "final", "cancel", "steer", "edit", "detach") else found

    def __aiter__(self) -> AsyncIterator[Any]:
        return _slowly(iter(self._stream))


class BlockingClient:
    """A blocking `Client` with the face of an `AsyncClient`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._client = Client(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return _later(getattr(self._client, name))

    @asynccontextmanager
    async def stream(self, *args: Any, **options: Any) -> AsyncIterator[BlockingStream]:
        with self._client.stream(*args, **options) as stream:
            yield BlockingStream(stream)

    @asynccontextmanager
    async def join(self, *args: Any, **options: Any) -> AsyncIterator[BlockingStream]:
        with self._client.join(*args, **options) as stream:
            yield BlockingStream(stream)

    async def __aenter__(self) -> BlockingClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._client.close()


CLIENTS: dict[str, Callable[..., Any]] = {"Client": BlockingClient, "AsyncClient": AsyncClient}


async def collect(items: Any, found: list[Any] | None = None) -> list[Any]:
    """Everything, put into `found` as it comes."""
    found = [] if found is None else found
    async for item in items:
        found.append(item)
    return found


def _later(function: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **options: Any) -> Any:
        return function(*args, **options)

    return call


async def _slowly(items: Iterator[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
