"""The limiter by itself, on a clock of the test's own."""

from __future__ import annotations

import pytest

from api.limits import Limit, Limiter, Slot
from constrained.errors import RateLimitError


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_minutes_worth_at_once_and_then_evenly() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    limit = Limit(requests_per_minute=6)
    assert [limiter.enter("a", limit) for _ in range(6)] == [5, 4, 3, 2, 1, 0]
    with pytest.raises(RateLimitError) as refusal:
        limiter.enter("a", limit)
    assert refusal.value.retry_after_s == pytest.approx(10.0)
    clock.now_s = 10.0
    assert limiter.enter("a", limit) == 0
    with pytest.raises(RateLimitError):
        limiter.enter("a", limit)
    clock.now_s = 1e6
    assert limiter.enter("a", limit) == 5


def test_so_many_at_once() -> None:
    limiter = Limiter()
    limit = Limit(concurrent_requests=2)
    assert limiter.enter("a", limit) is None
    limiter.enter("a", limit)
    with pytest.raises(RateLimitError):
        limiter.enter("a", limit)
    limiter.leave("a")
    limiter.enter("a", limit)


def test_callers_do_not_share() -> None:
    limiter = Limiter()
    limit = Limit(1, 1)
    assert limiter.enter("a", limit) == limiter.enter("b", limit) == 0


def test_a_request_that_was_refused_costs_nothing() -> None:
    clock = Clock()
    limiter = Limiter(clock)
    limit = Limit(requests_per_minute=2, concurrent_requests=1)
    limiter.enter("a", limit)
    for _ in range(5):
        with pytest.raises(RateLimitError, match="go on"):
            limiter.enter("a", limit)
    limiter.leave("a")
    assert limiter.enter("a", limit) == 0


def test_callers_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.limits.MOST_CALLERS", 2)
    limiter = Limiter()
    limit = Limit(requests_per_minute=1)
    for name in "abc":
        limiter.enter(name, limit)
        limiter.leave(name)
    assert limiter.enter("a", limit) == 0
    with pytest.raises(RateLimitError):
        limiter.enter("c", limit)


def test_a_place_is_free_when_its_last_holder_has_ended() -> None:
    left: list[bool] = []
    slot = Slot(lambda: left.append(True))
    slot.hold()
    slot.release()
    assert not left
    slot.release()
    assert left == [True]
