"""What is done to futures that several may resolve, and to tasks that must end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


def resolve(future: asyncio.Future[None]) -> None:
    """Wake whoever waits for it; nothing where that was done before."""
    if not future.done():
        future.set_result(None)


async def stop(tasks: Iterable[asyncio.Task[Any]], again_s: float = 1.0) -> None:
    """Cancel tasks until they have ended.

    Once is not enough: `wait_for` of Python 3.11, which the Redis client sends by, loses a cancellation that meets its end
    (cpython issue 86296).
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again_s)
