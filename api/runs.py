"""One run: the sequences of one request in the engine, translated while they are generated, read by one reader.

Knows neither HTTP nor what is sent; a translator per choice turns accepted bytes into the items of a stream.

The engine pushes, the reader pulls: what was generated since the last frame waits here, so a slow reader never holds the
engine back, and what waits is bounded by the run's `max_tokens`.

A choice may be taken over: its sequence ends before its next step, and another, which begins where it stopped, goes on as the
same choice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_urlsafe
from typing import Any, Generic, Literal, Protocol, TypeVar

from api.backend import Generation
from api.futures import resolve
from api.metrics import SequenceMeter
from constrained.decode.request import Chunk, FinishReason, Usage
from constrained.errors import (
    CallerError,
    ConstrainedError,
    EndedRunError,
    InternalError,
    OverloadedError,
    UnknownRunError,
)
from schemas.events import Timings, UsageInfo

logger = logging.getLogger(__name__)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
ID_BYTES = 12
"""Of chance in a run's id. The id stands in each of its events, and whoever knows it may join the run."""
REASONS_BY_WEIGHT: tuple[FinishReason, ...] = ("error", "cancelled", "length", "stop")


class Translator(Protocol[T_co]):
    """One choice's bytes to the items of a stream; `DeltaStream` is one."""

    def feed(self, data: bytes) -> Sequence[T_co]: ...

    def finish(self) -> Sequence[T_co]: ...


class ChunkTranslator(Translator[T_co], Protocol[T_co]):
    """A translator that wants to see what else a chunk says of its tokens."""

    def feed_chunk(self, chunk: Chunk) -> Sequence[T_co]: ...


@dataclass(slots=True)
class Outcome:
    """What one choice has given so far; `finish_reason` is None while it goes on.

    `revision` counts how often its text was changed before its end; `spent` is the usage of the sequences before the present.
    """

    text: bytearray = field(default_factory=bytearray)
    finish_reason: FinishReason | None = None
    usage: Usage = field(default_factory=Usage)
    revision: int = 0
    spent: Usage | None = None


@dataclass(frozen=True, slots=True)
class Frame(Generic[T]):
    """Items of one choice that go out together; `seq` numbers the last of them within the run."""

    choice: int
    items: Sequence[T]
    seq: int


@dataclass(frozen=True, slots=True)
class Successor(Generic[T]):
    """The generation that goes on as a choice; with `text` and `translator` where what was told before is changed."""

    generation: Generation
    text: bytes | None = None
    translator: Translator[T] | None = None


@dataclass(frozen=True, slots=True)
class _TakeOver(Generic[T]):
    succeed: Callable[[bytes], Awaitable[Successor[T]]]
    done: asyncio.Future[None]

    def fail(self, error: Exception) -> None:
        if not self.done.done():  # whoever asked may have gone
            self.done.set_exception(error)


class Run(Generic[T]):
    """The generations of one request. Belongs to one event loop; `cancel` is idempotent."""

    def __init__(
        self,
        run_id: str,
        generations: Sequence[Generation],
        translators: Sequence[Translator[T]],
        meters: Sequence[SequenceMeter],
    ) -> None:
        self.id = run_id
        self.outcomes = [Outcome() for _ in generations]
        self.error: Exception | None = None
        self.failed_choice = 0
        self.seq = 0
        self.translators = list(translators)
        self._generations = list(generations)
        self._meters = meters
        self.on_items: Callable[[int, Sequence[T]], None] | None = None
        self._chunk_feeds = [_chunk_feed(translator) for translator in translators]
        self._waiting: list[tuple[int, Sequence[T]]] = []
        self._take_overs: dict[int, _TakeOver[T]] = {}
        self._is_cancelled = False
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._window: asyncio.Future[None] | None = None  # of the reader, while it waits for more
        self._end_calls: list[Callable[[], None]] = []
        self._pumps = [asyncio.create_task(self._pump(choice)) for choice in range(len(generations))]

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    @property
    def has_waiting(self) -> bool:
        """Whether items wait for `frames` or `take_waiting`."""
        return bool(self._waiting)

    def cancel(self) -> None:
        """Stop every sequence before its next step."""
        self._is_cancelled = True
        for generation in self._generations:
            generation.cancel()

    def when_ended(self, call: Callable[[], None]) -> None:
        """Call this once, when every sequence has ended."""
        self._end_calls.append(call)

    def stop(self, error: ConstrainedError) -> None:
        """Stop every sequence as `cancel` does; whoever reads is told why."""
        if not self.ended and self.error is None:
            self.error = error
            self.cancel()

    async def take_over(self, choice: int, succeed: Callable[[bytes], Awaitable[Successor[T]]]) -> None:
        """End the sequence of a choice, and go on with what `succeed` makes of the text at that moment.

        Raises `EndedRunError` where the choice ends by itself first, and what `succeed` raises, which then fails the run.
        One at a time for each choice.
        """
        if self.outcomes[choice].finish_reason is not None or self._is_cancelled or choice in self._take_overs:
            raise EndedRunError(f"Choice {choice} has ended", "choice")
        asked = self._take_overs[choice] = _TakeOver(succeed, asyncio.get_running_loop().create_future())
        self._generations[choice].cancel()
        await asked.done

    async def frames(self, window_s: float) -> AsyncIterator[Frame[T]]:
        """What is generated, as it comes: at most one frame of a choice in `window_s`, or with 0 one for each chunk."""
        loop = asyncio.get_running_loop()
        next_at = 0.0
        while True:
            await self._changed.wait()
            if not self.ended and loop.time() < next_at:
                await self._pause(next_at)
            self._changed.clear()
            ended = self.ended
            for frame in self.take_waiting(merge=window_s > 0):
                yield frame
            if ended:
                return
            next_at = loop.time() + window_s

    async def wait(self) -> None:
        """Until every sequence has ended."""
        await self._ended.wait()

    async def _pause(self, until: float) -> None:
        """Until the window ends, or the run does. A bare future: a wait with a time limit costs as much as the frame."""
        loop = asyncio.get_running_loop()
        self._window = loop.create_future()
        timer = loop.call_at(until, resolve, self._window)
        try:
            await self._window
        finally:
            timer.cancel()

    def keep(self, choice: int, items: Sequence[T]) -> None:
        """Let items wait for `frames` or `take_waiting`."""
        self._waiting.append((choice, items))
        self._changed.set()

    def take_waiting(self, merge: bool) -> list[Frame[T]]:
        """What has come since the last frame, numbered; with `merge` as one frame for each choice."""
        waiting, self._waiting = self._waiting, []
        if merge:
            together: dict[int, list[T]] = {}
            for choice, items in waiting:
                together.setdefault(choice, []).extend(items)
            waiting = list(together.items())
        frames = []
        for choice, items in waiting:
            self.seq += len(items)
            frames.append(Frame(choice, items, self.seq))
        return frames

    async def _pump(self, choice: int) -> None:
        """Take one choice's chunks to their end; what is raised on the way fails the whole run."""
        outcome = self.outcomes[choice]
        try:
            while outcome.finish_reason is None:
                await self._follow(choice, self._generations[choice])
                if outcome.finish_reason is None:
                    await self._hand_over(choice)
        except Exception as error:
            self._fail(choice, error)
        finally:
            if (asked := self._take_overs.pop(choice, None)) is not None:
                asked.fail(EndedRunError(f"Choice {choice} has ended", "choice"))
            self._meters[choice].end(outcome.finish_reason or "cancelled", outcome.usage)
            if all(each.finish_reason for each in self.outcomes) or self.error is not None:
                self._ended.set()
                if self._window is not None:
                    resolve(self._window)
            self._changed.set()
            while self.ended and self._end_calls:
                self._end_calls.pop()()

    async def _follow(self, choice: int, generation: Generation) -> None:
        """Take one generation's chunks as they arrive: pushed, where it can, since a task for each of them costs most."""
        push = getattr(generation, "deliver_to", None)
        if push is None:
            async for chunk in generation:
                self._take(choice, chunk)
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def take(chunk: Chunk) -> None:
            if over.done():
                return
            try:
                self._take(choice, chunk)
            except Exception as error:
                over.set_exception(error)
            else:
                if chunk.finish_reason is not None:
                    over.set_result(None)

        push(take)
        await over

    async def _hand_over(self, choice: int) -> None:
        """The present sequence has ended without a reason of its own: its successor goes on."""
        asked = self._take_overs.pop(choice, None)
        if asked is None:
            raise InternalError("The engine ended a sequence without a reason")
        outcome = self.outcomes[choice]
        try:
            successor = await asked.succeed(bytes(outcome.text))
        except Exception as error:
            asked.fail(error)
            raise
        outcome.spent = outcome.usage
        if successor.text is not None and successor.translator is not None:
            outcome.text[:] = successor.text
            outcome.revision += 1
            self.translators[choice] = successor.translator
            self._chunk_feeds[choice] = _chunk_feed(successor.translator)
        self._generations[choice] = successor.generation
        if self._is_cancelled:
            successor.generation.cancel()
        if not asked.done.done():
            asked.done.set_result(None)

    def _take(self, choice: int, chunk: Chunk) -> None:
        outcome, reason = self.outcomes[choice], chunk.finish_reason
        outcome.text += chunk.data
        outcome.usage = chunk.usage if outcome.spent is None else _total(outcome.spent, chunk.usage)
        self._meters[choice].chunk(len(chunk.token_ids))
        if reason == "error":
            raise chunk.error or InternalError("The engine failed without an error")
        if (feed_chunk := self._chunk_feeds[choice]) is not None:
            items = feed_chunk(chunk)
        else:
            items = self.translators[choice].feed(chunk.data) if chunk.data else ()
        if reason is not None:
            if reason == "stop":
                items = [*items, *self.translators[choice].finish()]
            if reason != "cancelled" or choice not in self._take_overs or self._is_cancelled:
                outcome.finish_reason = reason
        if items and self.error is None:
            if self.on_items is not None:
                self.on_items(choice, items)
            else:
                self.keep(choice, items)

    def _fail(self, choice: int, error: Exception) -> None:
        self.outcomes[choice].finish_reason = "error"
        if self.error is None:
            self.error, self.failed_choice = error, choice
            self.cancel()
            if not isinstance(error, CallerError | OverloadedError):
                logger.error("%s failed in choice %d", self.id, choice, exc_info=error)


def _chunk_feed(translator: Translator[T]) -> Callable[[Chunk], Sequence[T]] | None:
    """What takes whole chunks, where a translator does; looked up once, for it is asked for at each chunk."""
    feed_chunk: Callable[[Chunk], Sequence[T]] | None = getattr(translator, "feed_chunk", None)
    return feed_chunk


def _total(before: Usage, now: Usage) -> Usage:
    """The usage of a choice over all its sequences: tokens and times add up, the queue and the first token count once."""
    return replace(
        now,
        prompt_tokens=before.prompt_tokens,
        cached_tokens=before.cached_tokens,
        completion_tokens=before.completion_tokens + now.completion_tokens,
        forced_tokens=before.forced_tokens + now.forced_tokens,
        queue_ms=before.queue_ms,
        ttft_ms=before.ttft_ms or now.ttft_ms,
        total_ms=before.total_ms + now.total_ms,
        closed_by_budget=before.closed_by_budget or now.closed_by_budget,
    )


def finish_reason_of(outcomes: Sequence[Outcome]) -> FinishReason:
    """The gravest reason among the choices."""
    return min((outcome.finish_reason or "cancelled" for outcome in outcomes), key=REASONS_BY_WEIGHT.index)


def usage_of(outcomes: Sequence[Outcome]) -> UsageInfo:
    """Token counts of a run; its prompt counts once."""
    usages = [outcome.usage for outcome in outcomes]
    prompt, completion = usages[0].prompt_tokens, sum(usage.completion_tokens for usage in usages)
    return UsageInfo(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        forced_tokens=sum(usage.forced_tokens for usage in usages),
        cached_tokens=usages[0].cached_tokens,
    )


def timings_of(outcomes: Sequence[Outcome]) -> Timings:
    """Times of a run: the first token of any choice, the end of the last; the rate counts from the end of the queue."""
    usages = [outcome.usage for outcome in outcomes]
    queue_ms, total_ms = min(usage.queue_ms for usage in usages), max(usage.total_ms for usage in usages)
    completion, busy_ms = sum(usage.completion_tokens for usage in usages), total_ms - queue_ms
    return Timings(
        queue_ms=round(queue_ms, 3),
        ttft_ms=round(min(usage.ttft_ms for usage in usages), 3),
        total_ms=round(total_ms, 3),
        tokens_per_s=round(1000 * completion / busy_ms, 2) if busy_ms > 0 else 0.0,
    )


class RunRegistry:
    """The runs that go on, and the ids of the `num_kept` that ended last."""

    def __init__(self, num_kept: int) -> None:
        self._num_kept = num_kept
        self._live: dict[str, Run[Any]] = {}
        self._finished: OrderedDict[str, None] = OrderedDict()

    @staticmethod
    def new_id() -> str:
        return f"run_{token_urlsafe(ID_BYTES)}"

    def add(self, run: Run[Any]) -> None:
        self._live[run.id] = run

    def remove(self, run: Run[Any]) -> None:
        """Forget a run but for its id; idempotent."""
        if self._live.pop(run.id, None) is not None:
            self._finished[run.id] = None
            while len(self._finished) > self._num_kept:
                self._finished.popitem(last=False)

    def knows(self, run_id: str) -> bool:
        return run_id in self._live or run_id in self._finished

    def cancel(self, run_id: str) -> Literal["cancelled", "finished"]:
        """Stop a run; `UnknownRunError` where none of this id is known."""
        run = self._live.get(run_id)
        if run is not None and not run.ended:
            run.cancel()
            return "cancelled"
        if run is None and run_id not in self._finished:
            raise UnknownRunError(f"No run {run_id!r} is known here", "run")
        return "finished"

    def cancel_all(self) -> None:
        for run in list(self._live.values()):
            run.cancel()

    def stop_all(self, error: ConstrainedError) -> None:
        """Stop every run, and tell its readers why."""
        for run in list(self._live.values()):
            run.stop(error)
