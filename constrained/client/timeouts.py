"""How long the client waits, and how it comes back after a connection broke."""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

MAX_EXPONENT = 16


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds; None is no limit.

    `connect_s`: until a connection stands. `first_event_s`: until the first event of a stream, or an answer that is not
    streamed. `idle_s`: the longest silence of a stream, which the service's heartbeats break. `total_s`: a stream from the
    request to its end, every attempt to resume it included. The blocking client looks at `total_s` whenever something comes,
    heartbeats included; in between it waits no longer than `idle_s` or `total_s`.
    """

    connect_s: float | None = 10.0
    first_event_s: float | None = 600.0
    idle_s: float | None = 60.0
    total_s: float | None = None

    @classmethod
    def of(cls, timeout: float | httpx.Timeout | Timeouts) -> Timeouts:
        """A number of seconds is each limit but the total; of httpx's limits the one for reads is for the first event, too."""
        if isinstance(timeout, Timeouts):
            return timeout
        limits = httpx.Timeout(timeout)
        return cls(limits.connect, limits.read, limits.read)

    def for_answer(self) -> httpx.Timeout:
        """httpx's limits up to the first byte of an answer."""
        limits = [limit for limit in (self.first_event_s, self.total_s) if limit is not None]
        return httpx.Timeout(self.connect_s, read=min(limits, default=None))


@dataclass(frozen=True, slots=True)
class Resume:
    """How a broken connection is made good, where that is safe: reading a resumable run, and requests that only read.

    After a failure the client waits about `delay_s`, then twice that, and so on up to `max_delay_s`. A stream that has not come
    back after `attempts` attempts is given up (0: at once); an event that comes begins the count anew.
    """

    attempts: int = 5
    delay_s: float = 0.25
    max_delay_s: float = 8.0

    def delay_after(self, num_failures: int) -> float:
        """Seconds to wait after so many failures in a row; drawn, so that many clients do not come back at once."""
        whole_s: float = min(self.max_delay_s, self.delay_s * 2 ** min(num_failures - 1, MAX_EXPONENT))
        return whole_s * random.uniform(0.5, 1.0)
