"""Responses that are kept: to be retrieved, gone on from, followed and cancelled. Belongs to one event loop.

Knows nothing of how a response comes about. What is kept is bounded by number and by age; what still goes on is always kept.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from api.conversation import Called, Event, Said
from constrained.errors import UnknownResponseError
from schemas.responses import OutputCall, OutputItem, ResponseObject


class FrameLog:
    """The events of one response as they were sent; the number of an event is its place."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._has_ended = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._frames)

    def append(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._wake()

    def end(self) -> None:
        self._has_ended = True
        self._wake()

    async def follow(self, index: int) -> AsyncIterator[bytes]:
        """The frames from `index` on, to the end."""
        while True:
            changed = self._changed
            while index < len(self._frames):
                yield self._frames[index]
                index += 1
            if self._has_ended:
                return
            await changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(slots=True)
class Kept:
    """One response with what it was asked. `stop` ends its run; `log` is there for a response in the background.

    `owner` is the name of the API key that it was made with.
    """

    response: ResponseObject
    asked: tuple[Event, ...]
    input_items: list[dict[str, Any]]
    stop: Callable[[], None]
    log: FrameLog | None = None
    owner: str | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    kept_since: float = field(default_factory=monotonic)

    def close(self) -> None:
        """The answer is over, whether or not it was finished."""
        self.stop()
        if self.response.status == "in_progress":
            self.response.status = "cancelled"
        self.ended.set()

    @property
    def conversation(self) -> tuple[Event, ...]:
        """What was said up to the end of this response."""
        return (*self.asked, *(event for item in self.response.output for event in events_of(item)))


def events_of(item: OutputItem) -> Iterator[Event]:
    """An item of a response as a part of the conversation that follows."""
    if isinstance(item, OutputCall):
        yield Called(item.call_id, item.name, item.arguments, "input")
    else:
        yield Said("assistant", "".join(part.text for part in item.content))


class ResponseStore:
    """The `max_kept` finished responses kept last, none for longer than `max_age_s`."""

    def __init__(self, max_kept: int, max_age_s: float) -> None:
        self._max_kept = max_kept
        self._max_age_s = max_age_s
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, kept: Kept) -> None:
        self._forget_old()
        self._kept[kept.response.id] = kept

    def find(self, response_id: str) -> Kept | None:
        """A response that is kept."""
        self._forget_old()
        return self._kept.get(response_id)

    def delete(self, response_id: str) -> None:
        """Forget a response; one that goes on is stopped."""
        self._kept.pop(response_id).stop()

    def __iter__(self) -> Iterator[Kept]:
        """All that are kept, the newest first."""
        self._forget_old()
        return iter(reversed(self._kept.values()))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Let the work of a response in the background go on by itself."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop what goes on in the background, and wait for it."""
        for kept in self._kept.values():
            kept.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _forget_old(self) -> None:
        oldest = monotonic() - self._max_age_s
        finished = [response_id for response_id, kept in self._kept.items() if kept.ended.is_set()]
        surplus = len(self._kept) - self._max_kept
        for place, response_id in enumerate(finished):
            if place < surplus or self._kept[response_id].kept_since < oldest:
                del self._kept[response_id]


@dataclass(frozen=True, slots=True)
class Responses:
    """What one API key sees of the store: its own responses, as if there were no others."""

    store: ResponseStore
    owner: str | None

    def add(self, kept: Kept) -> None:
        kept.owner = self.owner
        self.store.add(kept)

    def get(self, response_id: str, field: str = "response_id") -> Kept:
        """`UnknownResponseError` where it is not kept."""
        kept = self.store.find(response_id)
        if kept is None or kept.owner != self.owner:
            raise UnknownResponseError(f"No response {response_id!r} is kept here", field)
        return kept

    def delete(self, response_id: str) -> None:
        self.get(response_id)
        self.store.delete(response_id)

    def item(self, item_id: str, field: str) -> Sequence[Event]:
        """An item of any response, as a part of a conversation."""
        for kept in self.store:
            for item in kept.response.output:
                if item.id == item_id and kept.owner == self.owner:
                    return list(events_of(item))
        raise UnknownResponseError(f"No item {item_id!r} is kept here", field)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        self.store.run(work)
