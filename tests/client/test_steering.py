"""Steering, correcting, cancelling and leaving live runs, over every transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from pydantic import BaseModel

from api.keys import entry_text, new_key
from api.settings import Settings
from constrained.client import (
    AuthenticationError,
    BadRequestError,
    EditRefusedError,
    IncompleteError,
    InvalidValueError,
    NotFoundError,
    OpenPathError,
    RunEndedError,
    TransportError,
    UnknownPathError,
)
from schemas.events import SnapshotEvent
from tests.api.server import served, wait_until
from tests.api.synthetic import SyntheticBackend, compact
from tests.api.test_steering import DOCUMENT
from tests.client.builders import CLIENTS, collect
from tests.client.proxies import proxied
from tests.client.test_resume import QUICK, VIAS, Scenario, play


class Point(BaseModel):
    x: int
    y: int


class Thing(BaseModel):
    name: str
    size: Literal["small", "large"]
    point: Point
    text: str


HANG: dict[str, Any] = {"messages": [{"role": "user", "content": "please hang"}], "coalesce_ms": 0}


@pytest.fixture(params=CLIENTS)
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a client of either kind."""
    return CLIENTS[request.param]


@pytest.fixture(params=VIAS)
def via(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def scene(make: Callable[..., Any], scenario: Callable[[Any, SyntheticBackend], Awaitable[None]]) -> None:
    backend = SyntheticBackend(compact(DOCUMENT))

    async def play_it(client: Any) -> None:
        await scenario(client, backend)

    with served(backend) as service:
        play(make, service.url, play_it)


def test_a_correction_is_in_the_document_and_in_what_the_model_reads(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any, backend: SyntheticBackend) -> None:
        async with client.stream(Thing, **HANG, via=via) as stream:
            events, name = stream.events(), stream.text("/name")
            assert await stream.field("/point/x") == 1
            seq = await stream.edit("/name", "Grace")
            assert stream.partial.name == "Grace"
            assert await stream.field("/name") == "Grace"
            assert "".join(await collect(name)) == "Ada"
            await stream.steer("go on")
            thing = await stream.final()
            assert (thing.name, thing.size, thing.point.x) == ("Grace", "small", 1)
            (edited,) = [event for event in await collect(events) if isinstance(event, SnapshotEvent)]
            assert (edited.seq, edited.edited, edited.value["name"]) == (seq, "/name", "Grace")
            assert b'"name":"Grace"' in backend.prefixes[-1]

    scene(make, scenario)


def test_what_is_said_meanwhile_reaches_the_model(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any, backend: SyntheticBackend) -> None:
        async with client.stream(Thing, **HANG, via=via, n=2) as stream:
            assert await stream.field("/point/x") == await stream.field("/point/x", choice=1) == 1
            assert await stream.steer("one alone, and hang", choice=1) > 0
            assert await stream.steer("both") > 0
            assert (await stream.final()).name == (await stream.final(choice=1)).name == "Ada"
        assert ["one alone" in prompt for prompt in backend.prompts] == [False, False, True, True, True]
        assert ["both" in prompt for prompt in backend.prompts] == [False, False, False, True, True]

    scene(make, scenario)


def test_a_correction_that_cannot_be_is_refused_and_the_run_goes_on(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any, backend: SyntheticBackend) -> None:
        async with client.stream(Thing, **HANG, via=via) as stream:
            assert await stream.field("/point/x") == 1
            for path, value, kind in (
                ("", {}, OpenPathError),
                ("/point", {"x": 1, "y": 2}, OpenPathError),
                ("/nothing", 1, UnknownPathError),
                ("name", "x", UnknownPathError),
                ("/name", 5, InvalidValueError),
                ("/size", "huge", InvalidValueError),
            ):
                with pytest.raises(kind) as caught:
                    await stream.edit(path, value)
                assert isinstance(caught.value, EditRefusedError)
                assert caught.value.param == path
                assert (caught.value.status, caught.value.retriable) == (400, False)
            with pytest.raises(BadRequestError, match="choice"):
                await stream.steer("x", choice=7)
            with pytest.raises(BadRequestError, match="text"):
                await stream.steer("")
            assert not stream.ended
            assert stream.partial.name == "Ada"
            await stream.edit("/size", "large")
            await stream.steer("go on")
            assert (await stream.final()).size == "large"

    scene(make, scenario)


def test_a_run_that_has_ended_is_not_steered(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any, backend: SyntheticBackend) -> None:
        async with client.stream(Thing, prompt="hello", via=via) as stream:
            await stream.final()
            for call in (stream.steer("x"), stream.edit("/name", "Grace")):
                with pytest.raises(RunEndedError):
                    await call
        async with client.stream(Thing, **HANG, via=via) as stream:
            await stream.cancel()
            for call in (stream.steer("x"), stream.edit("/name", "Grace")):
                with pytest.raises(IncompleteError):
                    await call

    scene(make, scenario)


def test_a_run_is_steered_by_its_id(make: Callable[..., Any]) -> None:
    async def scenario(client: Any, backend: SyntheticBackend) -> None:
        async with client.stream(Thing, **HANG) as stream:
            await stream.field("/point/x")
            seq = await client.edit(stream.run_id, "/name", "Grace")
            assert await client.steer(stream.run_id, "be brief, and hang") >= seq
            assert (await client.cancel(stream.run_id)).status == "cancelled"
            with pytest.raises(IncompleteError) as caught:
                await stream.final()
            assert caught.value.finish_reason == "cancelled"
            assert caught.value.partial.name == "Grace"
            assert (await client.cancel(stream.run_id)).status == "finished"
        for call in (client.steer("run_of_nobody", "x"), client.edit("run_of_nobody", "", 1), client.cancel("run_of_nobody")):
            with pytest.raises(NotFoundError):
                await call

    scene(make, scenario)


@pytest.mark.parametrize("leave", ["leave", "raise", "cancel", "detach"])
@pytest.mark.parametrize("resumable", [False, True])
def test_leaving_stops_the_run_unless_one_detaches(make: Callable[..., Any], via: str, leave: str, resumable: bool) -> None:
    async def scenario(client: Any, backend: SyntheticBackend) -> None:
        async def enter() -> None:
            async with client.stream(Thing, **HANG, via=via, resumable=resumable) as stream:
                await stream.field("/name")
                if leave == "cancel":
                    await stream.cancel()
                elif leave == "raise":
                    raise ZeroDivisionError
                elif leave == "detach" and not resumable:
                    with pytest.raises(ValueError, match="resumable=True"):
                        await stream.detach()
                elif leave == "detach":
                    run = await stream.detach()
                    async with client.join(run) as joined:
                        assert await joined.field("/name") == "Ada"
                        assert not backend.generations[0].cancelled.is_set()
                        await joined.cancel()

        if leave == "raise":
            with pytest.raises(ZeroDivisionError):
                await enter()
        else:
            await enter()
        await asyncio.to_thread(wait_until, backend.generations[0].cancelled.is_set)

    scene(make, scenario)


def test_leaving_hides_no_error_where_the_service_is_gone(make: Callable[..., Any]) -> None:
    """The cancelling of a resumable run fails then; what the block raised counts."""
    servers: list[Any] = []

    async def scenario(client: Any) -> None:
        async def enter() -> None:
            async with client.stream(Thing, **HANG, resumable=True) as stream:
                await stream.field("/name")
                servers.pop().__exit__(None, None, None)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await enter()

    with served(SyntheticBackend(compact(DOCUMENT))) as service:
        proxy = proxied(service.url)
        _, url = proxy.__enter__()
        servers.append(proxy)
        play(make, url, scenario)


def test_a_socket_that_breaks_before_the_reply(make: Callable[..., Any]) -> None:
    """Whether the message was heeded is not known, and it is not sent again; the stream itself comes back."""

    async def steer_without_end(stream: Any) -> None:
        while True:
            await stream.steer("go on and hang")

    def steered(backend: SyntheticBackend) -> Scenario:
        async def scenario(client: Any) -> None:
            async with client.stream(Thing, **HANG, via="websocket", resumable=True) as stream:
                assert await stream.field("/name") == "Ada"
                with pytest.raises(TransportError):
                    await steer_without_end(stream)
                assert len(backend.prompts) < 12
                await stream.steer("go on")
                assert (await stream.final()).name == "Ada"

        return scenario

    backend = SyntheticBackend(compact(DOCUMENT))
    with served(backend) as service, proxied(service.url, 2500) as (_, url):
        play(make, url, steered(backend), resume=QUICK)


def test_a_caller_who_is_cancelled_stops_a_resumable_run_too(via: str) -> None:
    async def scenario(client: Any, backend: SyntheticBackend) -> None:
        has_begun = asyncio.Event()

        async def wait_in_vain() -> None:
            async with client.stream(Thing, **HANG, via=via, resumable=True) as stream:
                await stream.field("/name")
                has_begun.set()
                await stream.final()

        waiting = asyncio.create_task(wait_in_vain())
        await has_begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.to_thread(wait_until, backend.generations[0].cancelled.is_set)

    scene(CLIENTS["AsyncClient"], scenario)


class Counting(httpx.HTTPTransport):
    """A transport of the caller's own."""

    num_requests = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.num_requests += 1
        return super().handle_request(request)


class AsyncCounting(httpx.AsyncHTTPTransport):
    """The same for asyncio."""

    num_requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.num_requests += 1
        return await super().handle_async_request(request)


@pytest.mark.parametrize("name", CLIENTS)
def test_every_way_goes_over_the_transport_and_with_the_headers_of_the_caller(name: str, via: str, tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "keys.toml").write_text(entry_text("ada", key), "utf-8")
    transport: Any = Counting() if name == "Client" else AsyncCounting()

    async def scenario(client: Any) -> None:
        async with client.stream(Thing, prompt="hello", via=via) as stream:
            assert (await stream.final()).name == "Ada"
        assert transport.num_requests == 1

    async def refused(client: Any) -> None:
        with pytest.raises(AuthenticationError) as caught:
            async with client.stream(Thing, prompt="hello", via=via):
                pytest.fail("a stream without a key was entered")
        assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")

    with served(SyntheticBackend(compact(DOCUMENT)), Settings(api_keys=tmp_path / "keys.toml")) as service:
        play(CLIENTS[name], service.url, scenario, api_key=key, transport=transport)
        play(CLIENTS[name], service.url, refused, api_key="wrong")
