"""The event log in Redis Streams: any replica answers for any run.

The runs of this process are told from memory, as without Redis, and written behind. A run of another replica is mirrored while
someone here reads it: its entries are read back into a feed, and one task follows all mirrors. A replica that is not heard of
any more has lost its runs, and their readers are told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from redis.asyncio import Redis
from redis.exceptions import RedisError

from api.eventlog import MemoryLog, missing
from api.feed import Entry, Feed, folded
from api.futures import stop
from api.redis_commands import Commands
from api.redis_keys import Checkpoint, Keys, read_entry, read_head
from api.redis_writer import RETRY_S, RedisWriter
from api.run_settings import RunSettings
from api.telling import error_entry
from constrained.errors import ConstrainedError, LogUnavailableError, RunLostError
from constrained.stream import Fold, Snapshot

logger = logging.getLogger(__name__)

BLOCK_MS = 100
MAX_READ = 1000

Obey = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class GapError(LogUnavailableError):
    """Entries were dropped before they were read; a checkpoint says what they did."""


@dataclass(slots=True, eq=False)
class Mirror:
    """A run of another replica: its feed, its documents, and how far it was read."""

    feed: Feed
    owner: str
    folds: list[Fold]
    folded_to: list[int]
    last_seq: int = 0
    num_silent: int = 0

    @property
    def last_id(self) -> str:
        return f"{self.last_seq}-0"

    def take(self, identifier: str, fields: dict[str, Any]) -> None:
        """The next entry; `GapError` where others came before it."""
        if int(fields["after"]) != self.last_seq:
            raise GapError(f"The event log of {self.feed.run!r} has a gap; try again")
        entry = read_entry(identifier, fields)
        self.last_seq = entry.seq
        if not entry.is_terminal and entry.seq > self.folded_to[entry.choice]:
            self.folds[entry.choice] = folded(self.folds[entry.choice], entry)
        self.feed.append(entry)

    def skip(self, checkpoint: Checkpoint) -> None:
        """Go on behind what the stream has lost."""
        self.folded_to = checkpoint.seqs
        for choice, text in enumerate(checkpoint.snapshots):
            if text is not None:
                self.folds[choice] = Fold.restore(Snapshot.from_json(text))
        self.last_seq = checkpoint.trimmed_seq
        self.feed.skip_to(checkpoint.trimmed_seq, checkpoint.seqs)


class RedisLog:
    """An `EventLog`. `obey` carries out what another replica asks of a run of this one."""

    def __init__(self, settings: RunSettings, obey: Obey) -> None:
        assert settings.redis_url is not None, "there is no Redis without an address"
        self._settings = settings
        self._keys = Keys(settings.redis_prefix)
        self._owner = uuid4().hex
        self._redis: Redis = Redis.from_url(settings.redis_url, decode_responses=True)
        self._memory = MemoryLog(settings)
        self._writer = RedisWriter(self._redis, self._keys, self._owner, settings)
        self._commands = Commands(self._redis, self._keys, self._owner, obey)
        self._mirrors: dict[str, Mirror] = {}
        self._loading: dict[str, asyncio.Task[Mirror]] = {}
        self._has_mirrors = asyncio.Event()
        self._tasks = [asyncio.create_task(self._follow_for_ever()), asyncio.create_task(self._watch_owners())]

    def add(self, feed: Feed) -> None:
        self._memory.add(feed)
        self._writer.add(feed)

    def finish(self, feed: Feed) -> None:
        self._memory.finish(feed)

    async def open(self, run: str) -> Feed:
        feed = self._memory.get(run)
        if feed is None:
            feed = (await self._mirror(run)).feed
        feed.num_readers += 1
        return feed

    def release(self, feed: Feed) -> None:
        feed.num_readers -= 1
        if feed.num_readers <= 0 and feed.run in self._mirrors and self._mirrors[feed.run].feed is feed:
            del self._mirrors[feed.run]

    async def forward(self, run: str, command: dict[str, Any]) -> dict[str, Any]:
        return await self._commands.ask((await self._mirror(run)).owner, run, command)

    async def close(self) -> None:
        await self._writer.close()
        await self._commands.close()
        await stop(self._tasks)
        await self._memory.close()
        await self._redis.aclose()

    # -- runs of other replicas

    async def _mirror(self, run: str) -> Mirror:
        if run in self._mirrors:
            return self._mirrors[run]
        if run not in self._loading:
            self._loading[run] = asyncio.create_task(self._load(run))
            self._loading[run].add_done_callback(lambda _: self._loading.pop(run, None))
        # One reader that goes must not take the load from the others.
        return await asyncio.shield(self._loading[run])

    async def _load(self, run: str) -> Mirror:
        try:
            head, checkpoint, entries, known = await self._read(run)
        except (RedisError, OSError) as error:
            raise LogUnavailableError(f"The event log does not answer for the run {run!r}; try again") from error
        if not head:
            raise missing(run, expired=bool(known) or self._memory.has_expired(run))
        feed = Feed(read_head(run, head), self._settings.feed, lambda choice: mirror.folds[choice])
        num_choices = feed.head.num_choices
        mirror = Mirror(feed, head["owner"], [Fold() for _ in range(num_choices)], [0] * num_choices)
        if checkpoint is not None:
            mirror.skip(checkpoint)
        _take_all(mirror, entries)
        self._mirrors[run] = mirror
        self._has_mirrors.set()
        return mirror

    async def _read(self, run: str) -> tuple[dict[str, str], Checkpoint | None, list[tuple[str, dict[str, Any]]], int]:
        """The head of a run, its checkpoint, its entries, and whether it was ever there, all as of one moment."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.hgetall(self._keys.run(run))
        pipe.get(self._keys.snapshot(run))
        pipe.xrange(self._keys.events(run))
        pipe.exists(self._keys.known(run))
        head, snapshot, entries, known = await pipe.execute()
        return head, Checkpoint.from_json(snapshot) if snapshot else None, entries, known

    async def _follow_for_ever(self) -> None:
        while True:
            going_on = {self._keys.events(run): mirror for run, mirror in self._mirrors.items() if not mirror.feed.terminal}
            if not going_on:
                self._has_mirrors.clear()
                await self._has_mirrors.wait()
                continue
            try:
                await self._follow(going_on)
            except (RedisError, OSError, GapError) as error:
                logger.warning("Redis gives no events: %s", error)
                await asyncio.sleep(RETRY_S)

    async def _follow(self, mirrors: dict[str, Mirror]) -> None:
        """Read once what is new in some runs."""
        places: Any = {key: mirror.last_id for key, mirror in mirrors.items()}
        answer: Any = await self._redis.xread(places, count=MAX_READ, block=BLOCK_MS)
        for key, batches in answer.items() if isinstance(answer, dict) else answer or []:
            # The third version of Redis's protocol gives a list of batches, the second one batch.
            entries = batches[0] if isinstance(answer, dict) else batches
            mirrors[key].num_silent = 0
            try:
                _take_all(mirrors[key], entries)
            except GapError:
                await self._skip(mirrors[key])

    async def _skip(self, mirror: Mirror) -> None:
        """Go on from the checkpoint, since entries were dropped that this mirror has not read."""
        _, checkpoint, entries, _ = await self._read(mirror.feed.run)
        if checkpoint is not None:
            mirror.skip(checkpoint)
            _take_all(mirror, entries)

    async def _watch_owners(self) -> None:
        """A run is lost whose replica has been missing twice in a row."""
        while True:
            await asyncio.sleep(self._settings.owner_ttl_s / 2)
            for mirror in [each for each in self._mirrors.values() if each.feed.terminal is None]:
                try:
                    is_alive = await self._redis.exists(self._keys.owner(mirror.owner))
                except (RedisError, OSError):
                    break
                mirror.num_silent = 0 if is_alive else mirror.num_silent + 1
                if mirror.num_silent >= 2 and mirror.feed.terminal is None:
                    mirror.feed.append(_lost(mirror.feed))


def _take_all(mirror: Mirror, entries: list[tuple[str, dict[str, Any]]]) -> None:
    """Take new entries; what cannot be read ends this mirror, and no other."""
    try:
        for identifier, fields in entries:
            if mirror.feed.terminal is None:
                mirror.take(identifier, fields)
    except GapError:
        raise
    except (ConstrainedError, ValueError, KeyError) as error:
        logger.exception("the events of %s cannot be read", mirror.feed.run)
        mirror.feed.append(error_entry(mirror.feed.seq + 1, error))


def _lost(feed: Feed) -> Entry:
    error = RunLostError("The process that generated this run has gone; the document so far is all there will be")
    return error_entry(feed.seq + 1, error)
