"""`Reader`: one reader's way through a feed, as the events that it is to be sent.

The queue of a reader is the distance between its place and the end of the feed, so that a reader holds nothing. Where that
distance is over its limit, or the feed has dropped what comes next, one snapshot of each choice stands for all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeVar

from api.feed import Entry, Feed, delta_data, ops_text
from constrained.stream import coalesce
from schemas.events import EventName

T = TypeVar("T")
MAX_BATCH_BYTES = 64 * 1024


class Told(NamedTuple):
    """One event for one reader: the place from which it would go on, the event's name, the JSON of its data."""

    place: int
    name: EventName
    data: str


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """How far a reader may fall behind the end of its feed."""

    max_entries: int = 1024
    max_bytes: int = 1024 * 1024


class Reader:
    """Follows `feed` to its end. `after` is the last op that the reader has, None where it has nothing yet.

    `place` is the op behind which the reader would go on, if the connection ended now.

    Events of the same choice that wait together are merged where the run coalesces, or where `window_s` asks for it.
    `EventIdError` where the run has no op `after`.
    """

    def __init__(self, feed: Feed, limits: ReaderLimits, after: int | None = None, window_s: float | None = None) -> None:
        self._feed = feed
        self._limits = limits
        self._window_s = window_s or 0.0
        self._merges = feed.head.coalesce_ms > 0 if window_s is None else window_s > 0
        self.place = self._place = after or 0
        self._begins = after is None
        self._index = feed.index_after(after or 0)
        if self._begins and feed.seq > 0:
            self._index = None  # who joins late gets the document at once, not its history
        # What was there before the reader came is replayed, however long it is; only what comes later can pile up.
        self._joined_at = feed.end

    @property
    def is_over(self) -> bool:
        """Whether the reader has everything that will ever be told."""
        return self._feed.terminal is not None and self._index == self._feed.end

    async def batches(self, write: Callable[[list[Told]], T]) -> AsyncIterator[T]:
        """What there is to send, together, as it comes, by `write`; ends with the terminal event.

        Who asks for more has sent the last.
        """
        if self._begins:
            yield write([Told(0, "start", self._feed.head.start)])
        loop = asyncio.get_running_loop()
        feed, next_at = self._feed, 0.0
        while True:
            if self._index == feed.end:
                if feed.terminal is not None:
                    return
                await feed.changed()
            if self._window_s and self._index is not None and loop.time() < next_at:
                await self._pause(next_at)
            index = self._index
            if index is not None and index == feed.end - 1:  # first, for it is nearly always so
                entry = feed.entry(index)
                self._index, self._place = feed.end, entry.seq
                yield write([Told(entry.seq, entry.kind, entry.data)])
            elif index is None or self._is_behind(index):
                yield write(self._catch_up())
            else:
                yield write(self._take(index))
            self.place = self._place
            if self._window_s:
                next_at = loop.time() + self._window_s

    async def _pause(self, until: float) -> None:
        """Until the window ends, or the run does."""
        loop = asyncio.get_running_loop()
        while self._feed.terminal is None and loop.time() < until:
            await self._feed.wait(self._feed.end, until)

    def _is_behind(self, index: int) -> bool:
        feed = self._feed
        if index < feed.first:
            return True
        since = max(index, self._joined_at)
        return feed.end - since > self._limits.max_entries or feed.bytes_from(since) > self._limits.max_bytes

    def _catch_up(self) -> list[Told]:
        """A snapshot of every choice that has moved, the one that moved last at the end: only behind it all is known."""
        feed = self._feed
        feed.settle()
        moved = sorted((seq, choice) for choice, seq in enumerate(feed.seqs) if seq > self._place)
        events = [Told(self._place, "snapshot", feed.snapshot(choice)[1]) for _, choice in moved]
        if events:
            self._place = moved[-1][0]
            events[-1] = events[-1]._replace(place=self._place)
        self._index = feed.end
        if feed.terminal is not None:
            self._place = feed.terminal.seq
            events.append(Told(self._place, feed.terminal.kind, feed.terminal.data))
        return events

    def _take(self, index: int) -> list[Told]:
        """The entries from `index` on, as far as one batch goes."""
        entries = []
        num_bytes = 0
        while index < self._feed.end and num_bytes < MAX_BATCH_BYTES:
            entries.append(self._feed.entry(index))
            num_bytes += len(entries[-1].text)
            index += 1
        self._index = index
        self._place = entries[-1].seq
        return [told(group) for group in _groups(entries)] if self._merges else [told([entry]) for entry in entries]


def told(group: list[Entry]) -> Told:
    """Entries that can be one event, as one."""
    last = group[-1]
    if len(group) == 1:
        return Told(last.seq, last.kind, last.data)
    ops = coalesce(chain.from_iterable(entry.ops for entry in group))
    return Told(last.seq, "delta", delta_data(last.seq, last.choice, ops_text(ops)))


def _groups(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Runs of deltas of one choice, everything else by itself."""
    group: list[Entry] = []
    for entry in entries:
        if group and not (entry.kind == group[-1].kind == "delta" and entry.choice == group[-1].choice):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group
