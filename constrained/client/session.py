"""`Session`: what a stream does next over its connections, without I/O: go on, connect again, or give up.

Whoever drives it asks `wait_s` and `read_timeout_s` before an attempt and a read, and tells what became of them: `reopened`,
`received`, `failed`. A connection that broke is made good where the run outlives its readers; a run that ends with its reader
is lost with the connection. Times are those of a monotonic clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import httpx

from constrained.client.errors import ApiError, ProtocolError, TimeoutPhase
from constrained.client.formats import Item, Received
from constrained.client.gauge import BufferingGauge
from constrained.client.run import Disconnected, Run
from constrained.client.timeouts import Resume, Timeouts

T = TypeVar("T")
READER_CODES = frozenset({"slow_consumer"})
"""Error events that end the reader's connection, not the run."""


class ReaderClosedError(Exception):
    """The service closed this reader; the run goes on."""


class Session(Generic[T]):
    """The connections of one stream. `outlives` says whether the run goes on without a reader."""

    def __init__(
        self,
        run: Run[T],
        timeouts: Timeouts,
        resume: Resume,
        *,
        outlives: bool,
        replays: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.run = run
        self.outlives = outlives
        self.gauge = BufferingGauge()
        self._timeouts = timeouts
        self._resume = resume
        self._clock = clock
        self._began_at = clock()
        self._newest = -1
        self._num_failures = 0
        self._try_at = 0.0
        if replays:
            self.gauge.switch_off()

    @property
    def wait_s(self) -> float:
        """How long to wait before the next attempt to connect."""
        return max(0.0, min(self._try_at - self._clock(), self._left_s()))

    def read_timeout_s(self) -> float | None:
        """How long the next read may take; it begins now."""
        self.gauge.begin_read(self._clock())
        limits = [limit for limit in (self._timeouts.idle_s, self._left_s()) if limit is not None]
        timeout_s = max(0.0, min(limits))
        return None if timeout_s == float("inf") else timeout_s

    def check(self) -> None:
        """`TimeoutError` where there is no time left for another attempt."""
        if self._overdue() is not None:
            raise TimeoutError

    def reopened(self) -> None:
        """Another connection stands."""
        self.gauge.switch_off()
        self.run.reconnect()

    def received(self, items: list[Item] | None, retry_ms: int | None = None) -> bool:
        """What a read gave, None at the end of the connection; whether the connection is of further use."""
        if items is None:
            self.failed(None, retry_ms)
            return False
        self.gauge.end_read(self._clock(), items)
        if self.outlives and _closes_reader(items[-1:]):
            self._take(items[:-1])
            self.failed(ReaderClosedError("slow_consumer"))
            return False
        self._take(items)
        if (phase := self._overdue()) is not None and not _is_terminal(items[-1:]):
            self.run.end_after_all(Disconnected(TimeoutError(), phase))
            return False
        return True

    def _take(self, items: list[Item]) -> None:
        """Give events to the run; one that tells something new begins the count of failures anew."""
        self.run.feed(items)
        newest = max(map(_seq, items), default=-1)
        if newest > self._newest:
            self._newest = newest
            self._num_failures = 0

    def failed(self, cause: Exception | None, retry_ms: int | None = None) -> None:
        """A connection broke, or could not be opened again: the next attempt is planned, or the run is over for this reader."""
        if self.run.ended:
            return
        phase = self._overdue() or ("idle" if _is_timeout(cause) else None)
        if isinstance(cause, ProtocolError):
            self.run.end_after_all(cause)
        elif self._overdue() or not self._may_try_again(cause):
            self.run.end_after_all(Disconnected(cause, phase, self._num_failures))
        else:
            self._num_failures += 1
            delay_s = max(self._resume.delay_after(self._num_failures), (retry_ms or 0) / 1000, _asked_s(cause))
            self._try_at = self._clock() + delay_s

    def _may_try_again(self, cause: Exception | None) -> bool:
        if not self.outlives or self.run.id is None or self._num_failures >= self._resume.attempts:
            return False
        return not isinstance(cause, ApiError) or cause.retriable

    def _left_s(self) -> float:
        """Seconds to the next deadline."""
        deadlines = [limit for limit, _ in self._limits()]
        return self._began_at + min(deadlines, default=float("inf")) - self._clock()

    def _overdue(self) -> TimeoutPhase | None:
        """The deadline that has passed."""
        passed_s = self._clock() - self._began_at
        return next((phase for limit, phase in self._limits() if passed_s >= limit), None)

    def _limits(self) -> list[tuple[float, TimeoutPhase]]:
        limits: list[tuple[float, TimeoutPhase]] = []
        if self._timeouts.total_s is not None:
            limits.append((self._timeouts.total_s, "total"))
        if self._timeouts.first_event_s is not None and not self.run.started:
            limits.append((self._timeouts.first_event_s, "first event"))
        return limits


def _seq(item: Item) -> int:
    """The op that an event ends with; -1 where it has none."""
    seq = item.data.get("seq") if isinstance(item, Received) and isinstance(item.data, dict) else None
    return seq if type(seq) is int else -1


def _closes_reader(last: list[Item]) -> bool:
    return any(
        isinstance(item, Received)
        and item.name == "error"
        and isinstance(item.data, dict)
        and item.data.get("code") in READER_CODES
        for item in last
    )


def _is_terminal(last: list[Item]) -> bool:
    return any(isinstance(item, Received) and item.name in ("done", "error") for item in last)


def _is_timeout(cause: Any) -> bool:
    return isinstance(cause, httpx.TimeoutException | TimeoutError)


def _asked_s(cause: Any) -> float:
    """How long a refusal asks to wait."""
    asked: float | None = getattr(cause, "retry_after_s", None)
    return asked or 0.0
