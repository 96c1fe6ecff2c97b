"""Both clients against a running service over real connections; the model alone is synthetic."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import httpx
import pytest
from pydantic import BaseModel

from constrained.client import (
    UNSET,
    BadRequestError,
    Choice,
    DisconnectedError,
    Grammar,
    IncompleteError,
    NotFoundError,
    Regex,
    RunFailedError,
    SchemaRefusedError,
    TransportError,
    replay,
)
from schemas.events import DeltaEvent
from tests.api.server import DEADLINE_S, Served, served, wait_until
from tests.api.synthetic import SyntheticBackend
from tests.client.builders import CLIENTS, collect, deltas, start
from tests.client.time_limits import play_with_growing_limits
from tests.ports import free_port


class Hobby(BaseModel):
    name: str
    level: Literal["high", "low"]


class Person(BaseModel):
    name: str
    age: int
    hobbies: list[Hobby]
    nick: str | None = None


HOBBIES = [Hobby(name="Go – 囲碁 🙂", level="high"), Hobby(name='"tea"', level="low")]
ADA = Person(name="Ada\nLovelace", age=36, hobbies=HOBBIES, nick=None)


@pytest.fixture(params=CLIENTS)
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a client of either kind."""
    return CLIENTS[request.param]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SyntheticBackend(ADA.model_dump_json(), token_bytes=1)) as running:
        yield running


def play(make: Callable[..., Any], url: str, scenario: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    async def scene() -> None:
        async with make(url, **options) as client:
            await scenario(client)

    asyncio.run(scene())


@pytest.mark.parametrize("coalesce_ms", [0, 16])
def test_a_person_comes_piece_by_piece(make: Callable[..., Any], service: Served, coalesce_ms: int) -> None:
    async def scenario(client: Any) -> None:
        messages = [{"role": "user", "content": "who was it?"}]
        async with client.stream(Person, messages=messages, coalesce_ms=coalesce_ms) as stream:
            assert stream.start.model == "synthetic"
            assert stream.partial is UNSET
            events = stream.events()
            assert "".join(await collect(stream.text("/name"))) == ADA.name
            assert await stream.field("/age") == 36
            assert await collect(stream.elements("/hobbies", Hobby)) == HOBBIES
            assert await stream.final() == ADA
            assert stream.partial.hobbies[1].level == "low"
            assert any(isinstance(event, DeltaEvent) for event in await collect(events))
            assert stream.done.valid
            assert stream.done.usage.completion_tokens > 0

    play(make, service.url, scenario)


def test_a_person_comes_at_once(make: Callable[..., Any], service: Served) -> None:
    async def scenario(client: Any) -> None:
        answer = await client.structured(Person, prompt="who was it?", n=2)
        assert answer.values == (ADA, ADA)
        assert answer.response.model == "synthetic"

    play(make, service.url, scenario)


def test_check_and_models(make: Callable[..., Any], service: Served) -> None:
    async def scenario(client: Any) -> None:
        checked = await client.check(Person)
        assert checked.supported
        assert checked.order[:2] == ["/name", "/age"]
        assert [model.id for model in await client.models()] == ["synthetic"]

    play(make, service.url, scenario)


def test_refusals_name_what_is_wrong(make: Callable[..., Any], service: Served) -> None:
    async def scenario(client: Any) -> None:
        for kind, param, options in (
            (NotFoundError, "model", {"prompt": "hello", "model": "other"}),
            (BadRequestError, None, {"messages": []}),
            (BadRequestError, None, {"messages": [{"role": "user", "content": "x"}], "prompt": "x"}),
            (BadRequestError, "top_p", {"prompt": "hello", "top_p": 2.0}),
            (BadRequestError, "tempratur", {"prompt": "hello", "tempratur": 1.0}),
            (BadRequestError, "max_tokens", {"prompt": "hello", "max_tokens": 1}),
        ):
            with pytest.raises(kind) as caught:
                await client.structured(Person, **options)
            assert caught.value.param == param or param is None
            assert caught.value.request_id
            with pytest.raises(kind):
                async with client.stream(Person, **options):
                    pytest.fail("a refused stream was entered")

    play(make, service.url, scenario)


@pytest.mark.parametrize(
    ("refused", "code"),
    [({"type": "nonsense"}, "invalid_schema"), ({"type": "string", "minLength": 3, "maxLength": 2}, "unsatisfiable_schema")],
)
def test_a_schema_that_is_refused_is_told_by_its_place(
    make: Callable[..., Any], service: Served, refused: dict[str, Any], code: str
) -> None:
    schema = {"type": "object", "properties": {"born": refused}, "required": ["born"]}

    async def scenario(client: Any) -> None:
        with pytest.raises(SchemaRefusedError) as caught:
            await client.structured(schema, prompt="hello")
        assert caught.value.code == code
        checked = await client.check(schema)
        assert not checked.supported
        assert (checked.error.code, checked.error.param) == (code, caught.value.param)

    play(make, service.url, scenario)


def test_a_run_that_fails_midway_carries_what_there_is(make: Callable[..., Any], service: Served) -> None:
    async def scenario(client: Any) -> None:
        async with client.stream(Person, prompt="please fail") as stream:
            with pytest.raises(RunFailedError) as caught:
                await stream.final()
            assert caught.value.code == "internal_error"
            assert caught.value.partial.name == ADA.name

    play(make, service.url, scenario)


def test_a_run_that_is_cut_carries_what_there_is(make: Callable[..., Any], service: Served) -> None:
    async def scenario(client: Any) -> None:
        for wait in (client.structured(Person, prompt="hello", max_tokens=60), cut_stream(client)):
            with pytest.raises(IncompleteError) as caught:
                await wait
            assert caught.value.finish_reason == "length"
            assert caught.value.partial.name == ADA.name
            assert caught.value.partial.nick is UNSET

    async def cut_stream(client: Any) -> None:
        async with client.stream(Person, prompt="hello", max_tokens=60) as stream:
            await stream.final()

    play(make, service.url, scenario, timeout=DEADLINE_S)


@pytest.mark.parametrize("leave", ["leave", "cancel", "raise", "timeout"])
def test_leaving_in_whatever_way_frees_the_slot(make: Callable[..., Any], leave: str) -> None:
    async def scenario(client: Any, limit_s: float | None = None) -> None:
        options: dict[str, Any] = {} if limit_s is None else {"timeout": limit_s}
        async with client.stream(Person, prompt="please hang", **options) as stream:
            assert await stream.field("/name") == ADA.name
            if leave == "cancel":
                await stream.cancel()
            if leave == "raise":
                raise ZeroDivisionError
            if leave == "timeout":
                with pytest.raises(DisconnectedError) as caught:
                    await stream.final()
                assert isinstance(caught.value.__cause__, httpx.ReadTimeout)
                assert caught.value.partial.name == ADA.name

    with served(SyntheticBackend(ADA.model_dump_json())) as running:
        if leave == "raise":
            with pytest.raises(ZeroDivisionError):
                play(make, running.url, scenario)
        elif leave == "timeout":
            play_with_growing_limits(make, running.url, scenario)
        else:
            play(make, running.url, scenario)
        wait_until(lambda: all(generation.cancelled.is_set() for generation in running.backend.generations))


def read_request(connection: socket.socket) -> None:
    """Takes the whole request: hanging up on unread bytes would reset the connection, and lose what was sent on it."""
    with connection.makefile("rb") as lines:
        headers = {}
        while line := lines.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        lines.read(int(headers["content-length"]))


@contextmanager
def dropping(*frames: bytes) -> Iterator[str]:
    """A server that takes one connection, sends the frames and hangs up in the middle of its body."""

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for frame in frames:
                connection.sendall(f"{len(frame):x}\r\n".encode() + frame + b"\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            thread.join()


def test_a_connection_that_is_cut_midway(make: Callable[..., Any]) -> None:
    async def scenario(client: Any) -> None:
        async with client.stream(Person, prompt="hello") as stream:
            with pytest.raises(DisconnectedError) as caught:
                await stream.final()
            assert isinstance(caught.value.__cause__, httpx.TransportError)
            assert caught.value.partial.name == "Ad"

    with dropping(start(), *deltas('{"name":"Ad', finish=False)) as url:
        play(make, url, scenario)


def test_no_service_at_all(make: Callable[..., Any]) -> None:
    url = f"http://127.0.0.1:{free_port()}"

    async def scenario(client: Any) -> None:
        with pytest.raises(TransportError) as caught:
            await client.models()
        assert isinstance(caught.value.__cause__, httpx.ConnectError)

    play(make, url, scenario)


@pytest.mark.parametrize("via", ["sse", "lines", "websocket"])
@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (Regex("[a-c]{3}[0-9]"), lambda text: re.fullmatch("[a-c]{3}[0-9]", text)),
        (Choice(["yes", "no"]), lambda text: text in ("yes", "no")),
        (Grammar('start: "a" start "b" | "ab"'), lambda text: text.strip("a").strip("b") == ""),
    ],
)
def test_text_may_be_asked_for(
    make: Callable[..., Any], texts: Served, via: str, asked: Any, fits: Callable[[str], Any]
) -> None:
    async def scenario(client: Any) -> None:
        answer = await client.structured(asked, prompt="hello")
        assert fits(answer.value)
        async with client.stream(asked, prompt="hello", via=via) as stream:
            assert "".join(await collect(stream.text(""))) == await stream.final() == stream.partial == answer.value
        with pytest.raises(TypeError, match="only schemas"):
            await client.check(asked)

    play(make, texts.url, scenario)


@pytest.fixture(scope="module")
def texts() -> Iterator[Served]:
    with served(SyntheticBackend()) as running:
        yield running


def test_text_that_is_cut_is_what_there_is(make: Callable[..., Any]) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(IncompleteError) as caught:
            await client.structured(Regex("[ab]{1,99}"), prompt="hello", max_tokens=2)
        assert caught.value.partial == caught.value.value == "abaaba"

    with served(SyntheticBackend("abaabaabaaba")) as running:
        play(make, running.url, scenario)


@pytest.mark.parametrize("via", ["sse", "lines"])
def test_a_recorded_stream_is_read_again(service: Served, via: str) -> None:
    body = {"schema": Person.model_json_schema(), "prompt": "hello"}
    accept = {"sse": "text/event-stream", "lines": "application/x-ndjson"}[via]
    recorded = service.client.post("/v1/structured/stream", json=body, headers={"accept": accept}).content
    for size in (1, 7, len(recorded)):
        chunks = [recorded[at : at + size] for at in range(0, len(recorded), size)]
        assert replay(chunks, Person, via=via) == ADA
    with pytest.raises(DisconnectedError):
        replay([recorded[:-20]], Person, via=via)
