"""How much each caller may ask: requests a minute, and requests at once. Belongs to one event loop; knows no HTTP."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from constrained.errors import RateLimitError

MINUTE_S = 60.0
MOST_CALLERS = 10_000


@dataclass(frozen=True, slots=True)
class Limit:
    """0 is no limit."""

    requests_per_minute: int = 0
    concurrent_requests: int = 0


@dataclass(slots=True)
class _Caller:
    """A bucket that fills evenly; a full one holds a minute's worth."""

    tokens: float
    filled_at: float
    num_running: int = 0


class Slot:
    """One request's place among those of its caller. It is free again when the request and all that it started have ended."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._num_holders = 1

    def hold(self) -> None:
        """One more holds it."""
        self._num_holders += 1

    def release(self) -> None:
        """One of the holders has ended."""
        self._num_holders -= 1
        if self._num_holders == 0:
            self._leave()


SLOT: ContextVar[Slot | None] = ContextVar("slot", default=None)
"""The place of the request that is being answered."""


class Limiter:
    """Counts callers by name. Of callers that ask nothing at present the `MOST_CALLERS` last are remembered."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._callers: OrderedDict[str, _Caller] = OrderedDict()

    def enter(self, name: str, limit: Limit) -> int | None:
        """Let one request in; how many more may follow at once, None without a limit. Raises `RateLimitError`."""
        caller = self._caller(name, limit)
        if limit.concurrent_requests and caller.num_running >= limit.concurrent_requests:
            raise RateLimitError(f"{caller.num_running} requests go on, and no more may at once", 1.0)
        if limit.requests_per_minute:
            self._fill(caller, limit.requests_per_minute)
            if caller.tokens < 1:
                wait_s = (1 - caller.tokens) * MINUTE_S / limit.requests_per_minute
                raise RateLimitError(f"More than {limit.requests_per_minute} requests a minute", wait_s)
            caller.tokens -= 1
        caller.num_running += 1
        return int(caller.tokens) if limit.requests_per_minute else None

    def leave(self, name: str) -> None:
        """One request that was let in has ended."""
        self._callers[name].num_running -= 1

    def _caller(self, name: str, limit: Limit) -> _Caller:
        caller = self._callers.setdefault(name, _Caller(limit.requests_per_minute, self._clock()))
        self._callers.move_to_end(name)
        while len(self._callers) > MOST_CALLERS and next(iter(self._callers.values())).num_running == 0:
            self._callers.popitem(last=False)
        return caller

    def _fill(self, caller: _Caller, per_minute: int) -> None:
        now = self._clock()
        caller.tokens = min(per_minute, caller.tokens + (now - caller.filled_at) * per_minute / MINUTE_S)
        caller.filled_at = now
