"""Tasks that must end, whatever becomes of the first cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from api.futures import stop
from api.redis_commands import Commands
from api.redis_keys import Keys
from api.redis_writer import RedisWriter
from api.run_settings import RunSettings
from tests.api.server import DEADLINE_S

KEYS = Keys("test:")


class LosesACancellation:
    """A Redis client in whose calls a cancellation is lost, as in `wait_for` of Python 3.11 where it meets the end."""

    async def set(self, *_: Any, **__: Any) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def __aenter__(self) -> LosesACancellation:
        await self.set()
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def pubsub(self, **_: Any) -> LosesACancellation:
        return self

    async def subscribe(self, _: str) -> None:
        await asyncio.sleep(DEADLINE_S)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def within_the_deadline() -> None:
        async with asyncio.timeout(DEADLINE_S / 2):
            await scene()

    asyncio.run(within_the_deadline())


def test_a_task_that_misses_its_cancellation_is_cancelled_again() -> None:
    async def scene() -> None:
        tasks = [asyncio.create_task(LosesACancellation().set()), asyncio.create_task(asyncio.sleep(DEADLINE_S))]
        tasks.append(asyncio.create_task(LosesACancellation().pubsub().__aenter__()))
        await asyncio.sleep(0)
        await stop(tasks, 0.01)
        assert [task.cancelled() for task in tasks] == [False, True, False]
        await stop([])

    play(scene)


def test_the_writer_of_the_log_stops_though_a_cancellation_is_lost() -> None:
    async def scene() -> None:
        redis: Any = LosesACancellation()
        writer = RedisWriter(redis, KEYS, "me", RunSettings(owner_ttl_s=3 * DEADLINE_S))
        await asyncio.sleep(0)
        await writer.close()

    play(scene)


def test_the_listener_to_other_replicas_stops_though_a_cancellation_is_lost() -> None:
    async def obey(run: str, command: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("nothing was asked")

    async def scene() -> None:
        redis: Any = LosesACancellation()
        commands = Commands(redis, KEYS, "me", obey)
        await asyncio.sleep(0)
        await commands.close()

    play(scene)
