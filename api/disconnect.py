"""Watching for a client that goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.types import Receive

CLIENT_GONE = 499
"""The status of an answer that nobody reads."""


async def until_disconnect(receive: Receive) -> None:
    """Returns when the client has gone; the request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(receive: Receive, work: Coroutine[Any, Any, None]) -> bool:
    """Await `work`; False, and `work` is cancelled, where the client goes first."""
    watching = asyncio.create_task(until_disconnect(receive))
    working = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({watching, working}, return_when=asyncio.FIRST_COMPLETED)
        if working not in done:
            return False
        working.result()
        return True
    finally:
        watching.cancel()
        working.cancel()
