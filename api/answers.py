"""What the answers of the OpenAI-compatible endpoints share: how a run has failed, and several streams as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from api.errors import as_ours
from api.runs import Run, finish_reason_of
from constrained.errors import ConstrainedError, InternalError

T = TypeVar("T")


def failure_of(run: Run[Any]) -> ConstrainedError | None:
    """Why a run has no answer: it failed, or the service itself stopped it."""
    if run.error is not None:
        return as_ours(run.error)
    if finish_reason_of(run.outcomes) == "cancelled":
        return InternalError("The run was cancelled")
    return None


async def merged(streams: Sequence[AsyncIterator[T]]) -> AsyncIterator[tuple[int, T]]:
    """(which stream, its item) as they come, to the end of the last stream."""
    pending = {asyncio.ensure_future(_next(stream)): place for place, stream in enumerate(streams)}
    try:
        while pending:
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                place = pending.pop(task)
                for item in task.result():
                    yield place, item
                    pending[asyncio.ensure_future(_next(streams[place]))] = place
    finally:
        for task in pending:
            task.cancel()


async def _next(stream: AsyncIterator[T]) -> tuple[T, ...]:
    """The next item, or nothing at the end."""
    try:
        return (await anext(stream),)
    except StopAsyncIteration:
        return ()
