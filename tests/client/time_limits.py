"""Time limits that must strike, but not before the run has begun, however busy the machine is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from constrained.client import DisconnectedError, Resume, TransportTimeoutError

QUICK = Resume(attempts=3, delay_s=0.01, max_delay_s=0.05)
LIMITS_S = (0.5, 2.0, 8.0, 32.0)


class TooEarlyError(Exception):
    """The limit struck before it was its turn."""


def play_with_growing_limits(make: Callable[..., Any], url: str, scenario: Callable[[Any, float], Awaitable[None]]) -> None:
    """Play the scenario with the shortest limit under which it comes as far as the limit that it waits for itself.

    A limit that strikes before is an error that the scenario does not catch, or it raises `TooEarlyError`.
    """

    async def scene(limit_s: float) -> None:
        async with make(url, resume=QUICK) as client:
            await scenario(client, limit_s)

    for limit_s in LIMITS_S:
        try:
            return asyncio.run(scene(limit_s))
        except (TooEarlyError, TransportTimeoutError, DisconnectedError) as error:
            last = error
    raise last
