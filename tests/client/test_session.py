"""What a stream does next over its connections, by a clock that the test moves."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.client import DisconnectedError, RateLimitError, Resume, StreamTimeoutError, Timeouts
from constrained.client.formats import EventStreamFormat, Item
from constrained.client.gauge import BufferingGauge
from constrained.client.run import Run
from constrained.client.session import Session
from constrained.client.target import Target
from schemas.requests import ErrorInfo
from tests.client.builders import TIMINGS, delta, done, error, start

OPEN = delta(1, {"op": "open", "path": "", "type": "object"})


def items(*frames: bytes) -> list[Item]:
    return EventStreamFormat().feed(b"".join(frames))


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def session_of(clock: Clock, outlives: bool = True, timeouts: Timeouts | None = None, **resume: Any) -> Session[Any]:
    session = Session(Run(Target(True)), timeouts or Timeouts(), Resume(**resume), outlives=outlives, clock=clock)
    session.received(items(start(), OPEN))
    step(session)
    return session


def step(session: Session[Any]) -> None:
    while session.run.step():
        pass


@given(st.floats(0.001, 2.0), st.integers(1, 9))
def test_waits_grow_to_a_limit_and_begin_anew_with_an_event(delay_s: float, attempts: int) -> None:
    clock = Clock()
    session = session_of(clock, attempts=attempts, delay_s=delay_s, max_delay_s=4 * delay_s)
    for number in range(attempts):
        session.failed(httpx.ReadError("reset"))
        assert not session.run.ended
        whole_s = min(4, 2**number) * delay_s
        assert whole_s / 2 <= session.wait_s + 1e-9 <= whole_s + 2e-9
        clock.now += session.wait_s
    session.reopened()
    session.received(items(b": ping\n", start()))  # nothing new
    step(session)
    session.failed(None)
    assert session.run.ended
    with pytest.raises(DisconnectedError) as caught:
        session.run.final()
    assert caught.value.attempts == attempts

    session = session_of(clock, attempts=1, delay_s=delay_s)
    session.failed(None)
    session.received(items(delta(2, {"op": "close", "path": ""})))
    session.failed(None)
    assert not session.run.ended


def test_the_service_may_ask_for_more_time() -> None:
    clock = Clock()
    session = session_of(clock, delay_s=0.1)
    session.failed(None, retry_ms=3000)
    assert session.wait_s == pytest.approx(3.0)
    session.failed(RateLimitError(429, ErrorInfo(message="x", type="x"), retriable=True, retry_after_s=7.0))
    assert session.wait_s == pytest.approx(7.0)


def test_no_wait_goes_past_the_end_of_all_time() -> None:
    clock = Clock()
    session = session_of(clock, timeouts=Timeouts(total_s=5.0), delay_s=60.0, max_delay_s=60.0)
    clock.now += 1
    session.failed(None)
    assert session.wait_s == pytest.approx(4.0)
    clock.now += session.wait_s
    with pytest.raises(TimeoutError):
        session.check()
    session.failed(TimeoutError())
    with pytest.raises(StreamTimeoutError) as caught:
        session.run.final()
    assert (caught.value.phase, caught.value.value) == ("total", {})


def test_a_read_is_limited_by_what_comes_first() -> None:
    clock = Clock()
    session = session_of(clock, timeouts=Timeouts(idle_s=10.0, total_s=15.0))
    assert session.read_timeout_s() == pytest.approx(10.0)
    clock.now += 9
    assert session.read_timeout_s() == pytest.approx(6.0)
    clock.now += 9
    assert session.read_timeout_s() == 0.0
    unlimited = session_of(clock, timeouts=Timeouts(None, None, None, None))
    assert unlimited.read_timeout_s() is None


def test_the_end_counts_though_it_came_too_late() -> None:
    clock = Clock()
    session = session_of(clock, timeouts=Timeouts(total_s=1.0))
    clock.now += 5
    session.received(items(delta(2, {"op": "close", "path": ""}), done()))
    step(session)
    assert session.run.final() == {}


def test_a_slow_reader_that_is_closed_comes_back_where_the_run_outlives_it() -> None:
    clock = Clock()
    slow = error(code="slow_consumer", retriable=True)
    session = session_of(clock)
    assert session.received(items(slow)) is False
    step(session)
    assert not session.run.ended
    session = session_of(clock, outlives=False)
    session.received(items(slow))
    step(session)
    assert session.run.ended


# Bursts.


def watched(*moments: tuple[float, float, bytes], total_ms: float = 5000.0) -> str | None:
    """The verdict on reads that begin and end at these moments."""
    gauge = BufferingGauge()
    for begins, ends, frames in moments:
        gauge.begin_read(begins)
        gauge.end_read(ends, items(frames.replace(b'"total_ms": 2.0', b'"total_ms": %d' % total_ms)))
    return gauge.verdict


@pytest.mark.parametrize(
    ("moments", "is_burst"),
    [
        ([(0, 5, start() + OPEN), (5, 5.1, done())], True),
        ([(0, 0.1, start()), (0.1, 5, OPEN), (5, 5.1, done())], True),
        ([(0, 5, start() + OPEN + done())], True),
        ([(0, 0.1, start() + OPEN), (0.1, 5, done())], False),  # as it should be
        ([(0, 0.1, start()), (5, 5.1, OPEN), (5.1, 5.2, done())], False),  # the caller was away
        ([(0, 0.1, start()), (0.1, 3, OPEN), (3, 5.1, done())], False),  # half of it in one burst
    ],
)
def test_a_burst_is_told_from_a_caller_who_was_away(moments: list[tuple[float, float, bytes]], is_burst: bool) -> None:
    assert TIMINGS["total_ms"] == 2.0
    assert (watched(*moments) is not None) is is_burst
    assert watched(*moments, total_ms=300) is None
