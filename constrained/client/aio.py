"""`AsyncClient` and `AsyncStream`: the client for asyncio, a thin shell of httpx around `run` and `cursors`.

A stream pulls: bytes are read from the network only while a consumer waits for something. Consumers may run in tasks of their
own; they share one read at a time, which goes on when the one that began it is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

import httpx

from constrained.client import wire
from constrained.client.answer import Answer, answer_of
from constrained.client.base import StreamBase
from constrained.client.cursors import Cursor, ElementCursor, EventCursor, FieldCursor, TextCursor, reader
from constrained.client.run import Cancelled, Disconnected, Run
from constrained.client.target import Target
from constrained.client.unset import Unset
from constrained.client.wire import CheckOptions, Messages, Options, Timeout
from schemas.events import Event
from schemas.openai import ModelCard, ModelList
from schemas.requests import CheckResponse, StructuredResponse

T = TypeVar("T")
M = TypeVar("M")


class AsyncStream(StreamBase[T]):
    """One run while it is generated.

    Consumers (`events`, `elements`, `text`, `field`, `final`) can be mixed and made at any time: each first gets what has
    arrived already, and each reads on from the network when it runs dry, which moves the others on too. A consumer ends when
    the thing that it follows is final; if the run ends before that, it raises (`IncompleteError` and its kin).
    """

    def __init__(self, run: Run[T], response: httpx.Response, tell_cancel: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(run)
        self._response = response
        self._chunks = response.aiter_bytes()
        self._reading: asyncio.Task[None] | None = None
        self._tell_cancel = tell_cancel

    def __aiter__(self) -> AsyncIterator[Event]:
        return self.events()

    def events(self) -> AsyncIterator[Event]:
        """Every event to the terminal one; made late, it begins with the start and a snapshot."""
        return self._follow(EventCursor(self._run))

    @overload
    def elements(self, path: str, model: type[M], *, choice: int = 0) -> AsyncIterator[M]: ...
    @overload
    def elements(self, path: str, model: Any = None, *, choice: int = 0) -> AsyncIterator[Any]: ...
    def elements(self, path: str, model: Any = None, *, choice: int = 0) -> AsyncIterator[Any]:
        """Each element of the array at `path` as soon as it closes, as an instance of `model` or as plain JSON values."""
        return self._follow(ElementCursor(self._run, path, reader(model), choice))

    def text(self, path: str, *, choice: int = 0) -> AsyncIterator[str]:
        """The additions to the string at `path` as they come."""
        return self._follow(TextCursor(self._run, path, choice))

    @overload
    async def field(self, path: str, model: type[M], *, choice: int = 0) -> M | Unset: ...
    @overload
    async def field(self, path: str, model: Any = None, *, choice: int = 0) -> Any: ...
    async def field(self, path: str, model: Any = None, *, choice: int = 0) -> Any:
        """Wait until the value at `path` is final; `UNSET` as soon as it is certain that there is none."""
        async with aclosing(self._follow(FieldCursor(self._run, path, reader(model), choice))) as values:
            return await anext(values)

    async def final(self, *, choice: int = 0) -> T:
        """Wait for the end; the model instance, or the plain value of a plain schema."""
        while not self._run.ended:
            await self._pump()
        return self._run.final(choice)

    async def cancel(self) -> None:
        """Stop the run, a resumable one too, and close the connection."""
        ended = self._run.ended
        await self.aclose()
        if self._tell_cancel is not None and not ended:
            await self._tell_cancel()

    async def aclose(self) -> None:
        """Close the connection, which stops the run unless it is resumable. What has arrived can still be read."""
        self._run.end(Cancelled())
        if (reading := self._reading) is not None:
            reading.cancel()
            await asyncio.wait([reading])
        await self._response.aclose()

    async def wait_for_start(self) -> None:
        """Until the first event has come, or none will."""
        while not self._run.started:
            await self._pump()

    async def _follow(self, cursor: Cursor[M]) -> AsyncGenerator[M, None]:
        while True:
            for item in cursor.take():
                yield item
            if cursor.finished:
                return
            if self._run.ended:
                raise self._run.failure(cursor.choice)
            await self._pump()

    async def _pump(self) -> None:
        """Take one event, or where none waits, wait for one read from the network, begun here or by another consumer.

        Being cancelled here does not end the read.
        """
        if self._run.step():
            return
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        reading = self._reading
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.result()

    async def _read(self) -> None:
        try:
            chunk = await anext(self._chunks, None)
        except asyncio.CancelledError:
            self._run.end(Cancelled())
            raise
        except Exception as error:  # a transport of any kind may stand below
            self._run.end(Disconnected(error))
        else:
            if chunk is None:
                self._run.end(Disconnected())
            else:
                self._run.feed(chunk)
        finally:
            self._reading = None


class AsyncClient:
    """A client of one service for asyncio. Usable as an async context manager; belongs to one event loop.

    `transport` replaces httpx's own (proxies, tests); `timeout` is httpx's: seconds for each of connect, read, write and pool.
    No request is ever sent twice.
    """

    def __init__(
        self,
        base_url: str = wire.DEFAULT_BASE_URL,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = wire.DEFAULT_TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url, headers=wire.headers(api_key, headers), timeout=timeout, transport=transport
        )

    @overload
    async def structured(
        self, schema: type[T], *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> Answer[T]: ...
    @overload
    async def structured(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> Answer[Any]: ...
    async def structured(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> Answer[Any]:
        """Generate a whole document for a pydantic model or a JSON Schema, from chat `messages` or a plain `prompt`."""
        target = Target[Any](schema)
        body = wire.run_body(target, messages, prompt, options)
        return answer_of(
            target, await self._call(StructuredResponse, "POST", wire.STRUCTURED_PATH, body, options.get("timeout"))
        )

    @overload
    def stream(
        self, schema: type[T], *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> AbstractAsyncContextManager[AsyncStream[T]]: ...
    @overload
    def stream(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> AbstractAsyncContextManager[AsyncStream[Any]]: ...
    @asynccontextmanager
    async def stream(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> AsyncIterator[AsyncStream[Any]]:
        """As `structured`, as a stream. Entering sends the request; leaving closes the connection, which stops the run."""
        target = Target[Any](schema)
        body = wire.run_body(target, messages, prompt, options)
        request = self._request("POST", wire.STREAM_PATH, body, options.get("timeout"), wire.STREAM_HEADERS)
        with wire.transport_errors():
            response = await self._http.send(request, stream=True)
        async with aclosing(response):
            if not response.is_success:
                with wire.transport_errors():
                    await response.aread()
            wire.expect_success(response)
            wire.expect_events(response)
            run = Run(target)
            async with aclosing(
                AsyncStream(run, response, (lambda: self._cancel(run)) if options.get("resumable") else None)
            ) as stream:
                await stream.wait_for_start()
                yield stream

    async def check(self, schema: Any, **options: Unpack[CheckOptions]) -> CheckResponse:
        """Whether a pydantic model or a JSON Schema compiles: per keyword, with the order of generation. Generates nothing."""
        body = wire.check_body(Target[Any](schema), options)
        return await self._call(CheckResponse, "POST", wire.CHECK_PATH, body, options.get("timeout"))

    async def models(self, *, timeout: Timeout | None = None) -> list[ModelCard]:
        """The models that the service serves."""
        answer = await self._call(ModelList, "GET", wire.MODELS_PATH, None, timeout)
        return answer.data

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _call(
        self, answer: type[wire.W], method: str, path: str, body: dict[str, Any] | None, timeout: Timeout | None
    ) -> wire.W:
        with wire.transport_errors():
            response = await self._http.send(self._request(method, path, body, timeout))
        return wire.read_answer(response, answer)

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        timeout: Timeout | None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Request:
        timeouts = httpx.USE_CLIENT_DEFAULT if timeout is None else timeout
        return self._http.build_request(method, path, json=body, headers=headers, timeout=timeouts)

    async def _cancel(self, run: Run[Any]) -> None:
        if run.start is not None:
            with wire.transport_errors():
                response = await self._http.post(wire.cancel_path(run.start.run))
            wire.expect_success(response)
