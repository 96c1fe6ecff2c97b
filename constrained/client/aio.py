"""`AsyncClient`: the client for asyncio, a thin shell of httpx around `wire`, `run` and `session`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

import httpx

from constrained.client import wire
from constrained.client.aio_channels import AsyncChannel, AsyncHttpChannel, AsyncSocketChannel
from constrained.client.aio_stream import AsyncStream
from constrained.client.answer import Answer, answer_of
from constrained.client.errors import ApiError, ProtocolError, TransportError
from constrained.client.run import Run
from constrained.client.session import Session
from constrained.client.target import Target
from constrained.client.timeouts import Resume, Timeouts
from constrained.client.websocket import Handshake
from constrained.client.wire import CheckOptions, JoinOptions, Messages, Opening, Options, StreamOptions, Timeout, Via
from schemas.openai import ModelCard, ModelList
from schemas.requests import CancelResponse, CheckResponse, SteerResponse, StructuredResponse

SWITCHING_PROTOCOLS = 101

T = TypeVar("T")


class AsyncClient:
    """A client of one service for asyncio. Usable as an async context manager; belongs to one event loop.

    `transport` replaces httpx's own (proxies, tests). `timeout` is seconds, httpx's or `Timeouts`. `via` is how streams travel:
    server-sent events ("sse"), JSON Lines ("lines") or a "websocket". `resume` says how a broken stream of a resumable run is
    made good, and how long a request that only reads waits before it is sent again; nothing else is ever sent twice.
    """

    def __init__(
        self,
        base_url: str = wire.DEFAULT_BASE_URL,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout = wire.DEFAULT_TIMEOUTS,
        transport: httpx.AsyncBaseTransport | None = None,
        via: Via = wire.DEFAULT_VIA,
        resume: Resume | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(base_url=base_url, headers=wire.headers(api_key, headers), transport=transport)
        self._timeouts = Timeouts.of(timeout)
        self._via: Via = via
        self._resume = resume or Resume()

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
        self, schema: type[T], *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[StreamOptions]
    ) -> AbstractAsyncContextManager[AsyncStream[T]]: ...
    @overload
    def stream(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[StreamOptions]
    ) -> AbstractAsyncContextManager[AsyncStream[Any]]: ...
    @asynccontextmanager
    async def stream(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[StreamOptions]
    ) -> AsyncIterator[AsyncStream[Any]]:
        """As `structured`, as a stream. Entering sends the request; leaving stops the run where it still goes on."""
        target = Target[Any](schema)
        body = wire.run_body(target, messages, prompt, options)
        timeouts, via = self._timeouts_of(options), options.get("via") or self._via
        channel = await self._connect(wire.start_opening(via, body), timeouts)
        outlives = bool(options.get("resumable"))
        session = Session(Run(target), timeouts, self._resume, outlives=outlives)
        stream = AsyncStream(session, channel, self._calls(via, timeouts), owns=outlives)
        async with leaving(stream):
            await stream.wait_for_start()
            yield stream

    @overload
    def join(
        self, run: str, model: type[T], *, after: str | int | None = None, **options: Unpack[JoinOptions]
    ) -> AbstractAsyncContextManager[AsyncStream[T]]: ...
    @overload
    def join(
        self, run: str, model: Any = True, *, after: str | int | None = None, **options: Unpack[JoinOptions]
    ) -> AbstractAsyncContextManager[AsyncStream[Any]]: ...
    @asynccontextmanager
    async def join(
        self, run: str, model: Any = True, *, after: str | int | None = None, **options: Unpack[JoinOptions]
    ) -> AsyncIterator[AsyncStream[Any]]:
        """Read a run that someone started: the document so far at once, then the rest. Leaving lets the run go on.

        `model` is what its document is read as. `after`, an event's id or number, asks for the events behind it alone: then the
        document is not known, and only `events` can be read, unless `after` is 0.
        """
        timeouts, via = self._timeouts_of(options), options.get("via") or self._via
        channel = await self._connect(wire.join_opening(via, run, after), timeouts)
        place = None if after is None else int(str(after).rpartition(":")[2])
        session = Session(Run(Target[Any](model), run, place), timeouts, self._resume, outlives=True, replays=True)
        stream = AsyncStream(session, channel, self._calls(via, timeouts), owns=False)
        async with leaving(stream):
            await stream.wait_for_start()
            yield stream

    async def cancel(self, run: str) -> CancelResponse:
        """Stop a run; "finished" where it had ended already."""
        return await self._call(CancelResponse, "POST", wire.run_path(run, "cancel"), None, wire.CANCEL_TIMEOUTS)

    async def steer(self, run: str, text: str, *, choice: int | None = None) -> int:
        """Say something more to a run; the number of the last op before its new course."""
        body = wire.steer_body(text, choice)
        return (await self._call(SteerResponse, "POST", wire.run_path(run, "steer"), body, None)).seq

    async def edit(self, run: str, path: str, value: Any, *, choice: int = 0) -> int:
        """Correct the finished value at `path` of a run; the number of the op that says so. Raises an `EditRefusedError`."""
        body = wire.edit_body(path, value, choice)
        return (await self._call(SteerResponse, "POST", wire.run_path(run, "edit"), body, None)).seq

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
        timeouts = self._timeouts if timeout is None else Timeouts.of(timeout)
        for num_failures in count(1):
            try:
                with wire.transport_errors():
                    response = await self._http.request(method, path, json=body, timeout=timeouts.for_answer())
                return wire.read_answer(response, answer)
            except (TransportError, ApiError) as error:
                if not wire.may_try_again(method, num_failures, error):
                    raise
                await asyncio.sleep(self._resume.delay_after(num_failures))
        raise AssertionError("the loop ends by itself")

    def _timeouts_of(self, options: Mapping[str, Any]) -> Timeouts:
        timeout = options.get("timeout")
        return self._timeouts if timeout is None else Timeouts.of(timeout)

    async def _connect(self, opening: Opening, timeouts: Timeouts) -> AsyncChannel:
        """The channel of a stream that the service has agreed to; raises what it answers instead."""
        handshake = Handshake() if opening.via == "websocket" else None
        request = self._http.build_request(
            opening.method,
            opening.path,
            json=opening.body,
            params=opening.params,
            headers={**opening.headers, **(handshake.headers if handshake else {})},
            timeout=timeouts.for_answer(),
        )
        with wire.transport_errors():
            response = await self._http.send(request, stream=True)
        try:
            if handshake is not None:
                return await self._talk(response, handshake, opening, timeouts)
            await self._expect_success(response)
            wire.expect_events(response, opening.via)
            return AsyncHttpChannel(response, wire.FORMATS[opening.via]())
        except BaseException:
            await response.aclose()
            raise

    async def _talk(
        self, response: httpx.Response, handshake: Handshake, opening: Opening, timeouts: Timeouts
    ) -> AsyncSocketChannel:
        if response.status_code != SWITCHING_PROTOCOLS:
            await self._expect_success(response)
            raise ProtocolError(f"the service answered {response.status_code} and opened no WebSocket")
        handshake.check(response.headers.get("sec-websocket-accept"))
        channel = AsyncSocketChannel(response)
        with wire.transport_errors():
            await channel.ask(opening.message or {}, timeouts.first_event_s)
        return channel

    async def _expect_success(self, response: httpx.Response) -> None:
        if not response.is_success:
            with wire.transport_errors():
                await response.aread()
        wire.expect_success(response)

    def _calls(self, via: Via, timeouts: Timeouts) -> _Calls:
        return _Calls(self, via, timeouts)


class _Calls:
    """What one stream may ask of its client."""

    def __init__(self, client: AsyncClient, via: Via, timeouts: Timeouts) -> None:
        self._client = client
        self._via: Via = via
        self._timeouts = timeouts
        self.cancel = client.cancel
        self.steer = client.steer
        self.edit = client.edit

    async def rejoin(self, run: str, after: int | None) -> AsyncChannel:
        return await self._client._connect(wire.join_opening(self._via, run, after), self._timeouts)

    async def ask(self, channel: AsyncSocketChannel, message: dict[str, Any]) -> int:
        with wire.transport_errors():
            reply = await channel.ask(message, self._timeouts.first_event_s)
        return reply.seq or 0


@asynccontextmanager
async def leaving(stream: AsyncStream[Any]) -> AsyncIterator[None]:
    """Leaves the stream at the end of the block, however that comes."""
    try:
        yield
    finally:
        await stream.leave()
