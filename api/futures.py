"""What is done to futures that several may resolve."""

from __future__ import annotations

import asyncio


def resolve(future: asyncio.Future[None]) -> None:
    """Wake whoever waits for it; nothing where that was done before."""
    if not future.done():
        future.set_result(None)
