"""`Client`: the blocking client, a thin shell of httpx around `wire`, `run` and `session`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

import httpx

from constrained.client import wire
from constrained.client.answer import Answer, answer_of
from constrained.client.channels import Channel, HttpChannel, SocketChannel
from constrained.client.errors import ApiError, ProtocolError, TransportError
from constrained.client.run import Run
from constrained.client.session import Session
from constrained.client.sync_stream import Stream
from constrained.client.target import Target
from constrained.client.timeouts import Resume, Timeouts
from constrained.client.websocket import Handshake
from constrained.client.wire import CheckOptions, JoinOptions, Messages, Opening, Options, StreamOptions, Timeout, Via
from schemas.openai import ModelCard, ModelList
from schemas.requests import CancelResponse, CheckResponse, SteerResponse, StructuredResponse

SWITCHING_PROTOCOLS = 101

T = TypeVar("T")


class Client:
    """A blocking client of one service. Usable as a context manager; safe to share between threads, its streams are not.

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
        transport: httpx.BaseTransport | None = None,
        via: Via = wire.DEFAULT_VIA,
        resume: Resume | None = None,
    ) -> None:
        self._http = httpx.Client(base_url=base_url, headers=wire.headers(api_key, headers), transport=transport)
        self._timeouts = Timeouts.of(timeout)
        self._via: Via = via
        self._resume = resume or Resume()

    @overload
    def structured(
        self, schema: type[T], *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> Answer[T]: ...
    @overload
    def structured(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> Answer[Any]: ...
    def structured(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[Options]
    ) -> Answer[Any]:
        """Generate a whole document for a pydantic model or a JSON Schema, from chat `messages` or a plain `prompt`."""
        target = Target[Any](schema)
        body = wire.run_body(target, messages, prompt, options)
        return answer_of(target, self._call(StructuredResponse, "POST", wire.STRUCTURED_PATH, body, options.get("timeout")))

    @overload
    def stream(
        self, schema: type[T], *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[StreamOptions]
    ) -> AbstractContextManager[Stream[T]]: ...
    @overload
    def stream(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[StreamOptions]
    ) -> AbstractContextManager[Stream[Any]]: ...
    @contextmanager
    def stream(
        self, schema: Any, *, messages: Messages | None = None, prompt: str | None = None, **options: Unpack[StreamOptions]
    ) -> Iterator[Stream[Any]]:
        """As `structured`, as a stream. Entering sends the request; leaving stops the run where it still goes on."""
        target = Target[Any](schema)
        body = wire.run_body(target, messages, prompt, options)
        timeouts, via = self._timeouts_of(options), options.get("via") or self._via
        channel = self._connect(wire.start_opening(via, body), timeouts)
        outlives = bool(options.get("resumable"))
        session = Session(Run(target), timeouts, self._resume, outlives=outlives)
        stream = Stream(session, channel, self._calls(via, timeouts), owns=outlives)
        with leaving(stream):
            stream.wait_for_start()
            yield stream

    @overload
    def join(
        self, run: str, model: type[T], *, after: str | int | None = None, **options: Unpack[JoinOptions]
    ) -> AbstractContextManager[Stream[T]]: ...
    @overload
    def join(
        self, run: str, model: Any = True, *, after: str | int | None = None, **options: Unpack[JoinOptions]
    ) -> AbstractContextManager[Stream[Any]]: ...
    @contextmanager
    def join(
        self, run: str, model: Any = True, *, after: str | int | None = None, **options: Unpack[JoinOptions]
    ) -> Iterator[Stream[Any]]:
        """Read a run that someone started: the document so far at once, then the rest. Leaving lets the run go on.

        `model` is what its document is read as. `after`, an event's id or number, asks for the events behind it alone: then the
        document is not known, and only `events` can be read, unless `after` is 0.
        """
        timeouts, via = self._timeouts_of(options), options.get("via") or self._via
        channel = self._connect(wire.join_opening(via, run, after), timeouts)
        place = None if after is None else int(str(after).rpartition(":")[2])
        session = Session(Run(Target[Any](model), run, place), timeouts, self._resume, outlives=True, replays=True)
        stream = Stream(session, channel, self._calls(via, timeouts), owns=False)
        with leaving(stream):
            stream.wait_for_start()
            yield stream

    def cancel(self, run: str) -> CancelResponse:
        """Stop a run; "finished" where it had ended already."""
        return self._call(CancelResponse, "POST", wire.run_path(run, "cancel"), None, wire.CANCEL_TIMEOUTS)

    def steer(self, run: str, text: str, *, choice: int | None = None) -> int:
        """Say something more to a run; the number of the last op before its new course."""
        body = wire.steer_body(text, choice)
        return (self._call(SteerResponse, "POST", wire.run_path(run, "steer"), body, None)).seq

    def edit(self, run: str, path: str, value: Any, *, choice: int = 0) -> int:
        """Correct the finished value at `path` of a run; the number of the op that says so. Raises an `EditRefusedError`."""
        body = wire.edit_body(path, value, choice)
        return (self._call(SteerResponse, "POST", wire.run_path(run, "edit"), body, None)).seq

    def check(self, schema: Any, **options: Unpack[CheckOptions]) -> CheckResponse:
        """Whether a pydantic model or a JSON Schema compiles: per keyword, with the order of generation. Generates nothing."""
        body = wire.check_body(Target[Any](schema), options)
        return self._call(CheckResponse, "POST", wire.CHECK_PATH, body, options.get("timeout"))

    def models(self, *, timeout: Timeout | None = None) -> list[ModelCard]:
        """The models that the service serves."""
        return self._call(ModelList, "GET", wire.MODELS_PATH, None, timeout).data

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _call(
        self, answer: type[wire.W], method: str, path: str, body: dict[str, Any] | None, timeout: Timeout | None
    ) -> wire.W:
        timeouts = self._timeouts if timeout is None else Timeouts.of(timeout)
        for num_failures in count(1):
            try:
                with wire.transport_errors():
                    response = self._http.request(method, path, json=body, timeout=timeouts.for_answer())
                return wire.read_answer(response, answer)
            except (TransportError, ApiError) as error:
                if not wire.may_try_again(method, num_failures, error):
                    raise
                time.sleep(self._resume.delay_after(num_failures))
        raise AssertionError("the loop ends by itself")

    def _timeouts_of(self, options: Mapping[str, Any]) -> Timeouts:
        timeout = options.get("timeout")
        return self._timeouts if timeout is None else Timeouts.of(timeout)

    def _connect(self, opening: Opening, timeouts: Timeouts) -> Channel:
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
            response = self._http.send(request, stream=True)
        try:
            if handshake is not None:
                return self._talk(response, handshake, opening, timeouts)
            self._expect_success(response)
            wire.expect_events(response, opening.via)
            return HttpChannel(response, wire.FORMATS[opening.via]())
        except BaseException:
            response.close()
            raise

    def _talk(self, response: httpx.Response, handshake: Handshake, opening: Opening, timeouts: Timeouts) -> SocketChannel:
        if response.status_code != SWITCHING_PROTOCOLS:
            self._expect_success(response)
            raise ProtocolError(f"the service answered {response.status_code} and opened no WebSocket")
        handshake.check(response.headers.get("sec-websocket-accept"))
        channel = SocketChannel(response)
        with wire.transport_errors():
            channel.ask(opening.message or {}, timeouts.first_event_s)
        return channel

    def _expect_success(self, response: httpx.Response) -> None:
        if not response.is_success:
            with wire.transport_errors():
                response.read()
        wire.expect_success(response)

    def _calls(self, via: Via, timeouts: Timeouts) -> _Calls:
        return _Calls(self, via, timeouts)


class _Calls:
    """What one stream may ask of its client."""

    def __init__(self, client: Client, via: Via, timeouts: Timeouts) -> None:
        self._client = client
        self._via: Via = via
        self._timeouts = timeouts
        self.cancel = client.cancel
        self.steer = client.steer
        self.edit = client.edit

    def rejoin(self, run: str, after: int | None) -> Channel:
        return self._client._connect(wire.join_opening(self._via, run, after), self._timeouts)

    def ask(self, channel: SocketChannel, message: dict[str, Any]) -> int:
        with wire.transport_errors():
            reply = channel.ask(message, self._timeouts.first_event_s)
        return reply.seq or 0


@contextmanager
def leaving(stream: Stream[Any]) -> Iterator[None]:
    """Leaves the stream at the end of the block, however that comes."""
    try:
        yield
    finally:
        stream.leave()
