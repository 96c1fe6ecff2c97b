"""What only the asyncio client can do: consumers in tasks of their own, and waits that are given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from constrained.client import AsyncClient, AsyncStream, IncompleteError
from tests.client.builders import collect, deltas, done, start


class Item(BaseModel):
    id: int


class Order(BaseModel):
    note: str
    items: list[Item]


class Held(httpx.AsyncByteStream):
    """A response body that a test lets go on, chunk by chunk."""

    def __init__(self) -> None:
        self.chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self.num_readers = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            self.num_readers += 1
            assert self.num_readers == 1, "two reads at once"
            try:
                chunk = await self.chunks.get()
            finally:
                self.num_readers -= 1
            yield chunk

    async def aclose(self) -> None:
        self.closed = True


FRAMES = deltas('{"note":"a', 'b","items":[{"id":1}', ',{"id":2}', "]}")


def play(scenario: Any) -> Held:
    async def scene() -> Held:
        body = Held()
        headers = {"content-type": "text/event-stream"}
        transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, stream=body))
        body.chunks.put_nowait(start())
        async with AsyncClient(transport=transport) as client, client.stream(Order, prompt="hello") as stream:
            await scenario(stream, body)
        return body

    return asyncio.run(scene())


def test_consumers_in_their_own_tasks_each_get_everything() -> None:
    async def scenario(stream: AsyncStream[Order], body: Held) -> None:
        for frame in [*FRAMES, done()]:
            body.chunks.put_nowait(frame)
        note, items, first, events, order = await asyncio.gather(
            collect(stream.text("/note")),
            collect(stream.elements("/items", Item)),
            stream.field("/items/0", Item),
            collect(stream.events()),
            stream.final(),
        )
        assert "".join(note) == "ab"
        assert items == [Item(id=1), Item(id=2)]
        assert first == Item(id=1)
        assert len(events) == len(FRAMES) + 2
        assert order == Order(note="ab", items=items)

    assert play(scenario).closed


def test_a_wait_that_is_given_up_does_not_break_the_stream() -> None:
    async def scenario(stream: AsyncStream[Order], body: Held) -> None:
        for frame in FRAMES:
            waiting = asyncio.create_task(stream.field("/items/1/id"))
            beside = asyncio.create_task(stream.final())
            while not body.num_readers:
                await asyncio.sleep(0)
            for task in (waiting, beside):
                task.cancel()
            await asyncio.wait([waiting, beside])
            assert waiting.cancelled()
            assert beside.cancelled()
            body.chunks.put_nowait(frame)
        body.chunks.put_nowait(done())
        assert await stream.final() == Order(note="ab", items=[Item(id=1), Item(id=2)])

    play(scenario)


def test_closing_wakes_those_who_wait() -> None:
    async def scenario(stream: AsyncStream[Order], body: Held) -> None:
        waiting = [asyncio.create_task(collect(stream.text("/note"))), asyncio.create_task(stream.final())]
        while not body.num_readers:
            await asyncio.sleep(0)
        await stream.cancel()
        for task in waiting:
            with pytest.raises(IncompleteError) as caught:
                await task
            assert caught.value.finish_reason == "cancelled"
        assert body.closed

    play(scenario)


def test_leaving_by_cancellation_closes_the_connection() -> None:
    bodies: list[Held] = []

    async def scenario(stream: AsyncStream[Order], body: Held) -> None:
        bodies.append(body)
        async with asyncio.timeout(0):
            await stream.final()

    with pytest.raises(TimeoutError):
        play(scenario)
    assert bodies[0].closed


def test_an_app_in_the_same_process_can_be_the_service() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for frame in [start(), *FRAMES, done()]:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def scene() -> None:
        async with AsyncClient(transport=httpx.ASGITransport(app)) as client, client.stream(Order, prompt="hello") as stream:
            assert await collect(stream.text("/note")) == ["a", "b"]
            assert await stream.final() == Order(note="ab", items=[Item(id=1), Item(id=2)])

    asyncio.run(scene())
