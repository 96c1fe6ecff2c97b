"""Bad luck on the way: connections cut in every phase, readers that freeze, services that die, proxies that buffer.

Whatever happens, a resumable run's reader ends with the whole document and with each op once, or with an error that tells how
far it came.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.feed import FeedLimits
from api.reader import ReaderLimits
from api.run_settings import RunSettings
from api.settings import Settings
from constrained.client import (
    BufferingWarning,
    DisconnectedError,
    EventIdError,
    GoneError,
    IncompleteError,
    NotFoundError,
    Resume,
    RunEndedError,
    StreamTimeoutError,
    Timeouts,
    TransportError,
    TransportTimeoutError,
)
from constrained.stream import Fold, Snapshot, from_wire
from schemas.events import DeltaEvent, DoneEvent, Event, SnapshotEvent, StartEvent
from tests.api.server import DEADLINE_S, Served, served, wait_until
from tests.api.synthetic import SyntheticBackend, compact
from tests.client.builders import CLIENTS, collect
from tests.client.proxies import proxied
from tests.client.time_limits import QUICK, TooEarlyError, play_with_growing_limits
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
VALUE = {"note": "Grüße – 你好 🙂, and so on", "rows": [{"id": i, "name": f"row {i}"} for i in range(12)], "end": None}
TEXT = compact(VALUE)
VIAS = ("sse", "lines", "websocket")
PROMPT: dict[str, Any] = {"prompt": "hello", "coalesce_ms": 0}
HANG: dict[str, Any] = {"prompt": "please hang", "coalesce_ms": 0}
Scenario = Callable[[Any], Awaitable[None]]


@pytest.fixture(params=CLIENTS)
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a client of either kind."""
    return CLIENTS[request.param]


@pytest.fixture(params=VIAS)
def via(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(SyntheticBackend(TEXT)) as running:
        yield running


def play(make: Callable[..., Any], url: str, scenario: Scenario, **options: Any) -> None:
    async def scene() -> None:
        async with make(url, **{"resume": QUICK, "timeout": Timeouts(total_s=DEADLINE_S), **options}) as client:
            await scenario(client)

    asyncio.run(scene())


def folded(events: list[Event]) -> Any:
    """The document that the events say, by another reader than the client's."""
    fold = Fold()
    for event in events:
        if isinstance(event, SnapshotEvent):
            fold = Fold.restore(Snapshot(event.value, tuple(event.open), event.status))
        elif isinstance(event, DeltaEvent):
            for op in event.ops:
                fold.apply(from_wire(op.model_dump(exclude_unset=True)))
    return fold.value


async def read_all(stream: Any) -> list[Event]:
    """Everything that a stream gives, by each kind of consumer."""
    texts, rows = stream.text("/note"), stream.elements("/rows")
    events = await collect(stream)
    assert "".join(await collect(texts)) == VALUE["note"]
    assert await collect(rows) == VALUE["rows"]
    assert await stream.final() == VALUE
    return events


# Connections that are cut.


@pytest.mark.parametrize("eighth", range(1, 8))
def test_a_connection_that_is_cut_anywhere_is_made_good(
    make: Callable[..., Any], service: Served, via: str, eighth: int
) -> None:
    async def whole(client: Any) -> None:
        async with client.stream(True, **PROMPT, via=via) as stream:
            await stream.final()

    with proxied(service.url) as (proxy, url):
        play(make, url, whole)
    num_bytes = proxy.passed[0] * eighth // 8

    async def cut(client: Any) -> None:
        async with client.stream(True, **PROMPT, via=via, resumable=True) as stream:
            events = await read_all(stream)
            numbers = [event.seq for event in events if isinstance(event, DeltaEvent)]
            assert numbers == sorted(set(numbers))
            assert [type(event) for event in events[:1] + events[-1:]] == [StartEvent, DoneEvent]
            assert sum(isinstance(event, StartEvent) for event in events) == 1
            assert folded(events) == VALUE

    with proxied(service.url, num_bytes) as (proxy, url):
        play(make, url, cut)
    assert proxy.num_connections == 2


@pytest.mark.parametrize("num_bytes", [1, 100])
def test_a_connection_that_is_cut_before_the_answer(
    make: Callable[..., Any], service: Served, via: str, num_bytes: int
) -> None:
    """Nobody knows then whether there is a run: a request that starts one is never sent twice."""

    async def scenario(client: Any) -> None:
        with pytest.raises(TransportError):
            async with client.stream(True, **PROMPT, via=via, resumable=True) as stream:
                pytest.fail(f"a stream without an answer was entered: {stream}")

    with proxied(service.url, num_bytes) as (proxy, url):
        play(make, url, scenario)
    assert proxy.num_connections == 1


def test_a_run_that_ends_with_its_reader_is_not_resumed(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT, via=via) as stream:
            with pytest.raises(DisconnectedError) as caught:
                await stream.final()
            assert caught.value.attempts == 0
            assert VALUE["note"].startswith(caught.value.partial["note"])
            assert caught.value.run == stream.run_id

    with served(SyntheticBackend(TEXT, delay_s=0.005)) as service, proxied(service.url, 1500) as (proxy, url):
        play(make, url, scenario)
        assert proxy.num_connections == 1
        wait_until(service.backend.generations[0].cancelled.is_set)


def test_who_gives_up_says_how_far_it_came(make: Callable[..., Any], service: Served, via: str) -> None:
    """Every further connection is cut before anything has come."""

    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT, via=via, resumable=True) as stream:
            with pytest.raises(DisconnectedError) as caught:
                await stream.final()
            assert caught.value.attempts == QUICK.attempts
            assert caught.value.run == stream.run_id
            assert caught.value.last_event_id.startswith(f"{stream.run_id}:")
            assert VALUE["note"].startswith(caught.value.value["note"])
            with pytest.raises(DisconnectedError):
                await stream.field("/end")

    with proxied(service.url, 2000, *[10] * 20) as (proxy, url):
        play(make, url, scenario)
    assert proxy.num_connections >= 1 + QUICK.attempts


def test_an_event_that_comes_begins_the_count_anew(make: Callable[..., Any], service: Served) -> None:
    """More cuts than attempts, with something new in between each time."""
    budgets = [3000, *[2500] * 6]

    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT, resumable=True) as stream:
            assert folded(await read_all(stream)) == VALUE

    with proxied(service.url, *budgets) as (proxy, url):
        play(make, url, scenario)
    assert proxy.num_connections > 1 + QUICK.attempts


@pytest.mark.parametrize("joins_with", ["snapshot", "replay"])
def test_where_the_log_was_trimmed_the_documents_come_whole(make: Callable[..., Any], via: str, joins_with: str) -> None:
    """Of two choices, cut anywhere: a part of their snapshots alone is no place to go on from."""
    settings = Settings(runs=RunSettings(feed=FeedLimits(max_entries=8)) if joins_with == "snapshot" else RunSettings())

    patient = Resume(attempts=6, delay_s=0.01)

    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT, via=via, resumable=True, n=2) as stream:
            await stream.field("/note", choice=1)
            wait_until(lambda: service.metric("constrained_running_sequences") == 0)
            assert await stream.final() == await stream.final(choice=1) == VALUE

    with served(SyntheticBackend(TEXT, delay_s=0.001), settings) as service:
        for budget in (2500, 3100, 3700):
            with proxied(service.url, budget, 900, 1100, 1600) as (proxy, url):
                play(make, url, scenario, resume=patient)
                assert proxy.num_connections > 1


# Runs that are joined.


def test_a_run_is_joined_by_its_id(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT, resumable=True) as stream:
            note = await stream.field("/note")
            run = await stream.detach()
        async with client.join(run, dict[str, Any], via=via) as joined:
            assert joined.start.run == run
            assert await joined.field("/note") == note
            assert await joined.final() == VALUE
        with pytest.raises(RunEndedError):
            async with client.join(run, via=via, after=joined.last_event_id) as over:
                pytest.fail(f"there is nothing after the end: {over}")

    with served(SyntheticBackend(TEXT, delay_s=0.001)) as service:
        play(make, service.url, scenario)


def test_a_reader_who_joined_comes_back_too_and_leaves_the_run_alone(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any) -> None:
        async with client.join(run, via=via) as joined:
            await joined.field("/note")
        assert service.client.post(f"/v1/structured/{run}/cancel").json()["status"] == "cancelled"

    with served(SyntheticBackend(TEXT)) as service:
        body = {"schema": True, "prompt": "please hang", "resumable": True, "coalesce_ms": 0}
        with service.client.stream("POST", "/v1/structured/stream", json=body) as response:
            run = json.loads(next(line for line in response.iter_lines() if line.startswith("data"))[6:])["run"]
        with proxied(service.url, 600) as (proxy, url):
            play(make, url, scenario)
            assert proxy.num_connections == 2


@pytest.mark.parametrize("form", ["id", "number"])
def test_behind_an_event_come_the_events_alone(make: Callable[..., Any], service: Served, via: str, form: str) -> None:
    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT) as stream:
            events = await collect(stream)
        run, place = stream.run_id, events[3].seq
        async with client.join(run, via=via, after=f"{run}:{place}" if form == "id" else place) as joined:
            assert await collect(joined) == events[4:]
            assert joined.done == events[-1]
            for wait in (joined.final(), joined.field("/note")):
                with pytest.raises(ValueError, match="does not know the document"):
                    await wait
            with pytest.raises(ValueError, match="start"):
                joined.start  # noqa: B018
        async with client.join(run, via=via, after=0) as joined:
            assert await joined.final() == VALUE

    play(make, service.url, scenario)


def test_a_foreign_or_future_place_is_refused(make: Callable[..., Any], service: Served, via: str) -> None:
    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT) as stream:
            await stream.final()
        for place in ("run_of_nobody:3", f"{stream.run_id}:99999", 99999, f"{stream.run_id}:x", "-1"):
            with pytest.raises(EventIdError):
                async with client.join(stream.run_id, via=via, after=place):
                    pytest.fail("a place that is none was joined")
        with pytest.raises(NotFoundError):
            async with client.join("run_of_nobody", via=via):
                pytest.fail("a run of nobody was joined")

    play(make, service.url, scenario)


def test_a_run_that_has_expired_is_gone(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT) as stream:
            await stream.final()
        with pytest.raises(GoneError):
            async with client.join(stream.run_id, via=via):
                pytest.fail("a run that has expired was joined")

    with served(SyntheticBackend(TEXT), Settings(runs=RunSettings(max_finished=0))) as service:
        play(make, service.url, scenario)


# Readers that freeze, services that die, proxies that buffer.


def test_a_frozen_reader_neither_slows_the_other_nor_loses_anything(make: Callable[..., Any], via: str) -> None:
    """The service closes who takes nothing for too long; who thaws comes back to the document as it is then."""
    big = {"text": "x" * 12_000_000, "end": True}
    settings = Settings(stall_timeout_s=0.3, runs=RunSettings(reader=ReaderLimits(max_bytes=100_000)))

    async def scenario(client: Any) -> None:
        async with client.stream(True, **PROMPT, max_tokens=4000, via=via, resumable=True) as frozen:
            async with client.join(frozen.run_id, via=via) as other:
                assert await other.final() == big
            wait_until(lambda: service.metric("constrained_slow_readers_total") >= 1)
            assert not frozen.ended
            assert await frozen.final() == big

    with served(SyntheticBackend(compact(big), token_bytes=16_384, delay_s=0.0005), settings) as service:
        play(make, service.url, scenario)


@pytest.fixture
def process() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A service in a process of its own, which can be killed; and its address."""
    port = free_port()
    command = [sys.executable, "-m", "tests.api.synthetic", "--port", str(port), "--delay-ms", "20"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(url))
        yield process, url
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_a_service_that_is_killed_midway_leaves_what_there_is(process: tuple[subprocess.Popen[bytes], str]) -> None:
    killed, url = process
    schema = {
        "type": "object",
        "properties": {"first": {"const": "whole"}, "rest": {"type": "string", "minLength": 200}},
        "required": ["first", "rest"],
    }

    async def reading(client_name: str, via: str, resumable: bool, begun: asyncio.Barrier) -> None:
        async with (
            CLIENTS[client_name](url, resume=QUICK) as client,
            client.stream(schema, **HANG, via=via, resumable=resumable) as stream,
        ):
            assert await stream.field("/first") == "whole"
            await begun.wait()
            with pytest.raises(DisconnectedError) as caught:
                await stream.final()
            assert caught.value.value["first"] == caught.value.partial["first"] == "whole"
            assert caught.value.attempts == (QUICK.attempts if resumable else 0)
            assert caught.value.run == stream.run_id

    async def scene() -> None:
        cases = [(via, resumable) for via in VIAS for resumable in (False, True)]
        begun = asyncio.Barrier(len(cases) + 1)
        reads = [asyncio.create_task(reading("AsyncClient", via, resumable, begun)) for via, resumable in cases]
        await begun.wait()
        killed.kill()
        killed.wait()
        await asyncio.gather(*reads)

    asyncio.run(scene())


def test_a_proxy_that_buffers_is_told_of_once(make: Callable[..., Any]) -> None:
    async def scenario(client: Any) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            async with client.stream(True, **PROMPT) as stream:
                assert await stream.final() == VALUE
                assert await collect(stream.elements("/rows")) == VALUE["rows"]
        assert [warning.category for warning in caught] == [BufferingWarning]
        assert "proxy" in str(caught[0].message)

    with served(SyntheticBackend(TEXT, made_s=3600.0)) as service, proxied(service.url, holds=True) as (_, url):
        play(make, url, scenario)


MADE_S = 1.0  # what the service says that the run took


@pytest.mark.parametrize("case", ["passed on", "resumed", "joined", "read late"])
def test_who_is_not_buffered_is_not_warned(make: Callable[..., Any], case: str) -> None:
    """Warnings are errors here. Who comes back, or reads late, gets a burst by right."""

    async def scenario(client: Any) -> None:
        async with client.stream(True, prompt="wait", coalesce_ms=0, resumable=True) as stream:
            if case == "passed on":
                await stream.field("/note")
                await asyncio.sleep(MADE_S / 2)
            service.backend.go_on()
            if case == "joined":
                await asyncio.sleep(MADE_S / 2)
                async with client.join(stream.run_id) as joined:
                    assert await joined.final() == VALUE
            if case == "read late":
                time.sleep(MADE_S / 2)
            assert await stream.final() == VALUE

    budget = 1500 if case == "resumed" else None
    with served(SyntheticBackend(TEXT, made_s=MADE_S)) as service, proxied(service.url, budget) as (_, url):
        play(make, url, scenario)


# Time limits.


def test_a_run_that_takes_too_long(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any, limit_s: float) -> None:
        limits = Timeouts(total_s=limit_s)
        async with client.stream(True, **HANG, via=via, resumable=True, timeout=limits) as stream:
            assert await stream.field("/note") == VALUE["note"]
            with pytest.raises(StreamTimeoutError) as caught:
                await stream.final()
            assert caught.value.phase == "total"
            assert caught.value.partial["note"] == VALUE["note"]
            assert isinstance(caught.value, IncompleteError)

    with served(SyntheticBackend(TEXT)) as service:
        play_with_growing_limits(make, service.url, scenario)


def test_silence_is_a_lost_connection(make: Callable[..., Any], via: str) -> None:
    """A heartbeat is no silence."""

    async def scenario(client: Any, limit_s: float) -> None:
        async with client.stream(True, **HANG, via=via, timeout=Timeouts(idle_s=limit_s)) as stream:
            note = await stream.field("/note")
            with pytest.raises(StreamTimeoutError) as caught:
                await stream.final()
            assert caught.value.phase == "idle"
            assert caught.value.partial["note"] == note

    with served(SyntheticBackend(TEXT)) as service:
        play_with_growing_limits(make, service.url, scenario)
        wait_until(lambda: all(generation.cancelled.is_set() for generation in service.backend.generations))
    if via != "websocket":
        with served(SyntheticBackend(TEXT), Settings(heartbeat_s=0.05)) as service:

            async def beating(client: Any, limit_s: float) -> None:
                limits = Timeouts(idle_s=limit_s, total_s=3 * limit_s)
                async with client.stream(True, **HANG, via=via, timeout=limits) as stream:
                    await stream.field("/note")
                    with pytest.raises(StreamTimeoutError) as caught:
                        await stream.final()
                    if caught.value.phase == "idle":
                        raise TooEarlyError("no heartbeat came in time")
                    assert caught.value.phase == "total"

            play_with_growing_limits(make, service.url, beating)


def test_a_service_that_says_nothing_at_all(make: Callable[..., Any], via: str) -> None:
    async def scenario(client: Any) -> None:
        with pytest.raises(TransportTimeoutError):
            async with client.stream(True, **PROMPT, via=via, timeout=Timeouts(first_event_s=0.2)):
                pytest.fail("a stream without an answer was entered")

    with socket.create_server(("127.0.0.1", 0)) as silent:
        play(make, f"http://127.0.0.1:{silent.getsockname()[1]}", scenario)
