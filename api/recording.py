"""A run that is told: what its sequences give goes into a feed, which any number of readers follow.

Recording goes on without a reader, and so at the run's own pace; whether a run outlives its first reader is the request's
choice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.feed import Entry, Feed, FeedLimits, Head, delta_entry, snapshot_data
from api.runs import Run
from api.telling import done_entry, failed_entry
from constrained.stream import DeltaStream, Fold, Op

if TYPE_CHECKING:
    from api.service import Job
    from constrained.compiled import CompiledGrammar

logger = logging.getLogger(__name__)

Judge = Callable[[], Awaitable[list[bool]]]


class Recorder:
    """Writes one run into its feed, to the end; `judge` gives the verdicts on the finished documents."""

    def __init__(self, run: Run[Op], head: Head, limits: FeedLimits, judge: Judge) -> None:
        self.run = run
        self.feed = Feed(head, limits, self._fold, self.settle)
        self._window_s = head.coalesce_ms / 1000
        self._judge = judge
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._told_at = 0.0
        run.on_items = self._defer if head.coalesce_ms else self._tell_items

    async def record(self) -> None:
        """Tell how it ended, once everything else is told."""
        try:
            await self.run.wait()
            self.settle()
            self.feed.append(await self._last())
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logger.exception("the recording of %s failed", self.run.id)
            self.run.cancel()
            self.feed.append(failed_entry(self.run, self.feed.seq + 1, error))
        finally:
            self.run.on_items = None

    def _tell_items(self, choice: int, items: Sequence[Op]) -> None:
        """Without a window: what came before there was a recorder, then these."""
        if self.run.has_waiting:
            self.settle()
        self.run.seq += len(items)
        self.feed.append(delta_entry(self.run.seq, choice, items))

    def _defer(self, choice: int, items: Sequence[Op]) -> None:
        """Tell it with whatever else comes in this turn of the loop, or in the rest of the window."""
        self.run.keep(choice, items)
        if self._timer is None:
            self._timer = self._loop.call_at(self._told_at + self._window_s, self._tell)

    def _tell(self) -> None:
        self._told_at = self._loop.time()
        self.settle()

    def settle(self) -> None:
        """Tell at once what waits for the end of its window."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for frame in self.run.take_waiting(merge=self._window_s > 0):
            self.feed.append(delta_entry(frame.seq, frame.choice, frame.items))

    def tell_edit(self, choice: int, path: str, translator: DeltaStream) -> None:
        """The document of a choice was changed at `path`; it counts as one operation."""
        self.settle()
        self.run.seq += 1
        text = snapshot_data(self.run.seq, choice, translator.fold.snapshot(), path)
        self.feed.append(Entry(self.run.seq, "snapshot", choice, text))

    async def _last(self) -> Entry:
        if self.run.error is not None:
            return failed_entry(self.run, self.feed.seq + 1, self.run.error)
        verdicts = await self._judge()
        return done_entry(self.run, self.feed.seq + 1, verdicts)

    def _fold(self, choice: int) -> Fold:
        translator = self.run.translators[choice]
        assert isinstance(translator, DeltaStream), "a run that is told has ops"
        return translator.fold


@dataclass(slots=True, eq=False)
class LiveRun:
    """A run that this process generates and tells, with what is needed to go on with it in another way."""

    recorder: Recorder
    job: Job
    grammar: CompiledGrammar
    lock: asyncio.Lock

    @property
    def run(self) -> Run[Op]:
        return self.recorder.run

    @property
    def feed(self) -> Feed:
        return self.recorder.feed
