"""Order between an engine's thread and those who ask it, where a test's outcome hangs on who is first.

Most tests need none: what they assert holds at any speed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from constrained.decode.async_engine import AsyncEngine


@contextmanager
def together(e: AsyncEngine) -> Iterator[None]:
    """The engine takes no step meanwhile: all that is submitted inside joins in the same one."""
    with e._engine._wake:
        yield


def in_step(e: AsyncEngine) -> AsyncEngine:
    """Before each step but the first the engine waits until the running loop has taken all that came of those before.

    So no sequence goes on, or ends, far ahead of who reads it, however late the loop's thread gets its turn.
    """
    await_work, loop = e._engine._await_work, asyncio.get_running_loop()

    def await_loop_and_work() -> bool:
        has_taken = threading.Event()
        loop.call_soon_threadsafe(has_taken.set)
        has_taken.wait()
        return await_work()

    e._engine._await_work = await_loop_and_work  # type: ignore[method-assign]
    return e
