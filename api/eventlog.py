"""Where the events of runs are kept: the interface of an event log, and the log in this process's memory.

A log hands out feeds by run id, for as long as they are kept: a live run always, a finished one until it is too old or there
are too many. It knows neither the engine nor transports.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Protocol

from api.feed import Feed
from api.run_settings import RunSettings
from constrained.errors import ExpiredRunError, UnknownRunError


class EventLog(Protocol):
    """Feeds by run id. Belongs to one event loop."""

    def add(self, feed: Feed) -> None:
        """Keep the feed of a run that this process generates."""

    def finish(self, feed: Feed) -> None:
        """Such a run has told its end: from now on its feed may expire."""

    async def open(self, run: str) -> Feed:
        """The feed of a run, for a reader who releases it later.

        Raises `UnknownRunError`, `ExpiredRunError`, and `LogUnavailableError` where the log cannot be asked.
        """

    def release(self, feed: Feed) -> None:
        """A reader of an opened feed has gone."""

    async def forward(self, run: str, command: dict[str, Any]) -> dict[str, Any]:
        """Have the process that generates a run do `command`; its answer. Raises as `open` does."""

    async def close(self) -> None:
        """Let go of everything."""


class MemoryLog:
    """The feeds of this process."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self._live: dict[str, Feed] = {}
        self._finished: OrderedDict[str, tuple[Feed, float]] = OrderedDict()  # with the time when it expires, in that order
        self._num_bytes = 0
        self._expired: OrderedDict[str, None] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, feed: Feed) -> None:
        self._live[feed.run] = feed

    def finish(self, feed: Feed) -> None:
        if self._live.pop(feed.run, None) is None:
            return
        loop = asyncio.get_running_loop()
        self._finished[feed.run] = feed, loop.time() + self._settings.retention_s
        self._num_bytes += feed.num_bytes
        self._sweep()

    def get(self, run: str) -> Feed | None:
        """The feed of a run, where this log keeps it."""
        if run in self._live:
            return self._live[run]
        self._sweep()
        return self._finished[run][0] if run in self._finished else None

    def has_expired(self, run: str) -> bool:
        return run in self._expired

    async def open(self, run: str) -> Feed:
        feed = self.get(run)
        if feed is None:
            raise missing(run, expired=self.has_expired(run))
        feed.num_readers += 1
        return feed

    def release(self, feed: Feed) -> None:
        feed.num_readers -= 1

    async def forward(self, run: str, command: dict[str, Any]) -> dict[str, Any]:
        """Nobody else generates runs: what is not live here is not live."""
        raise missing(run, expired=self.has_expired(run))

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self) -> None:
        """Let the oldest go until every limit holds, and look again when the next one is due."""
        limits, now = self._settings, asyncio.get_running_loop().time()
        while self._finished:
            run, (feed, expires_at) = next(iter(self._finished.items()))
            is_crowded = len(self._finished) > limits.max_finished or self._num_bytes > limits.max_finished_bytes
            if now < expires_at and not is_crowded:
                self._look_again(expires_at)
                return
            del self._finished[run]
            self._num_bytes -= feed.num_bytes
            self._expired[run] = None
            while len(self._expired) > limits.max_expired:
                self._expired.popitem(last=False)

    def _look_again(self, at: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(at, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._sweep()


def missing(run: str, *, expired: bool) -> UnknownRunError | ExpiredRunError:
    """Why there is no feed."""
    if expired:
        return ExpiredRunError(f"The events of the run {run!r} are kept no longer", "run")
    return UnknownRunError(f"No run {run!r} is known here", "run")
