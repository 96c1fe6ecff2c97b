"""Writes the feeds of this process to Redis, behind them: a run never waits for Redis.

What is not written yet waits in its feed, within the feed's bounds. While Redis is away the writer tries again; when it is
back it writes everything anew that the feeds still hold, since it may have lost what was there. Entries carry their own ids,
so writing one twice changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from math import ceil
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from api.feed import Feed
from api.futures import stop
from api.redis_keys import Checkpoint, Keys, entry_fields, entry_id, head_fields
from api.run_settings import RunSettings

logger = logging.getLogger(__name__)

RETRY_S = 0.5
BATCH_S = 0.005
FLUSH_S = 2.0


@dataclass(slots=True, eq=False)
class Progress:
    """How much of a feed is in Redis: its head, its entries before `index`, and a checkpoint where it was trimmed."""

    feed: Feed
    has_head: bool = False
    index: int = 0
    trimmed_seq: int = 0

    def start_over(self) -> None:
        self.has_head, self.index, self.trimmed_seq = False, 0, 0


class RedisWriter:
    """One task for all runs of this process; `owner` is its name."""

    def __init__(self, redis: Redis, keys: Keys, owner: str, settings: RunSettings) -> None:
        self._redis = redis
        self._keys = keys
        self._owner = owner
        self._settings = settings
        self._progress: dict[str, Progress] = {}
        self._dirty = asyncio.Event()
        self._tasks = [asyncio.create_task(self._write_for_ever()), asyncio.create_task(self._live_for_ever())]

    def add(self, feed: Feed) -> None:
        self._progress[feed.run] = Progress(feed)
        feed.on_change = self._dirty.set
        self._dirty.set()

    async def close(self) -> None:
        """Write what is left, if Redis takes it soon, and stop."""
        try:
            async with asyncio.timeout(FLUSH_S):
                while self._progress:
                    await self._write()
                    await asyncio.sleep(BATCH_S)
        except (TimeoutError, RedisError, OSError):
            logger.warning("%d runs are not wholly in Redis", len(self._progress))
        await stop(self._tasks)

    async def _write_for_ever(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            try:
                await self._write()
                await asyncio.sleep(BATCH_S)
            except (RedisError, OSError) as error:
                logger.warning("Redis takes no events: %s", error)
                for progress in self._progress.values():
                    progress.start_over()
                self._dirty.set()
                await asyncio.sleep(RETRY_S)
            except Exception:
                logger.exception("writing events to Redis failed")
                self._dirty.set()
                await asyncio.sleep(RETRY_S)

    async def _live_for_ever(self) -> None:
        """Keep this process's sign of life from expiring."""
        ttl_s = self._settings.owner_ttl_s
        while True:
            try:
                await self._redis.set(self._keys.owner(self._owner), 1, px=ceil(1000 * ttl_s))
                await asyncio.sleep(ttl_s / 3)
            except (RedisError, OSError):
                await asyncio.sleep(min(RETRY_S, ttl_s / 3))

    async def _write(self) -> None:
        """Everything that is new in any feed."""
        for progress in list(self._progress.values()):
            if progress.has_head and progress.index == progress.feed.end:
                continue
            pipe = self._redis.pipeline(transaction=True)
            end = self._put(pipe, progress)
            trimmed_seq = progress.feed.trimmed_seq  # what is written now; the feed goes on meanwhile
            for answer in await pipe.execute(raise_on_error=False):
                if isinstance(answer, Exception) and not _was_written_before(answer):
                    raise answer
            progress.has_head, progress.index, progress.trimmed_seq = True, end, trimmed_seq
            if progress.feed.terminal is not None and end == progress.feed.end:
                self._progress.pop(progress.feed.run, None)

    def _put(self, pipe: Any, progress: Progress) -> int:
        """Queue the commands that bring Redis up to the feed; the index that it is then at."""
        feed, keys, limits = progress.feed, self._keys, self._settings
        feed.settle()  # a checkpoint must say what the entries say
        run, end = feed.run, feed.end
        live_s = ceil(limits.time_limit_s + limits.retention_s)
        if not progress.has_head:
            pipe.hset(keys.run(run), mapping=head_fields(feed.head, self._owner))
            pipe.expire(keys.run(run), live_s)
            pipe.set(keys.known(run), 1, ex=2 * live_s)
        for index in range(max(progress.index, feed.first), end):
            entry = feed.entry(index)
            pipe.xadd(keys.events(run), entry_fields(entry, feed.seq_before(index)), id=entry_id(entry))
        if feed.trimmed_seq > progress.trimmed_seq:
            pipe.set(keys.snapshot(run), Checkpoint.of(feed).to_json())
            pipe.xtrim(keys.events(run), minid=f"{feed.trimmed_seq + 1}-0", approximate=False)
        kept_s = live_s if feed.terminal is None else max(1, ceil(limits.retention_s))
        for key in (keys.run(run), keys.events(run), keys.snapshot(run)):
            pipe.expire(key, kept_s)
        return end


def _was_written_before(error: Exception) -> bool:
    return isinstance(error, ResponseError) and "equal or smaller" in str(error)
