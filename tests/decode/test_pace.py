"""The pace of prefill beside decoding, on made-up step times."""

from __future__ import annotations

from math import inf

import pytest

from constrained.decode.pace import Pace
from constrained.decode.scheduler import SchedulerLimits
from constrained.errors import OptionError


def learn(pace: Pace, num_decoding: int, quiet_s: float, token_s: float, steps: int = 30) -> None:
    """Steps of a machine whose times are exact."""
    for _ in range(steps):
        pace.note(num_decoding, 0, quiet_s)
    for _ in range(4 * steps):
        num_prefill = pace.budget(num_decoding)
        pace.note(num_decoding, num_prefill, quiet_s + num_prefill * token_s)


@pytest.mark.parametrize(("quiet_ms", "token_ms"), [(35, 1.0), (90, 1.0), (20, 0.25), (35, 2.0)])
def test_steps_stretch_as_far_as_they_may(quiet_ms: float, token_ms: float) -> None:
    pace = Pace(512, 1.8)
    learn(pace, 4, quiet_ms / 1e3, token_ms / 1e3)
    step_ms = quiet_ms + pace.budget(4) * token_ms
    assert 1.8 * quiet_ms - token_ms <= step_ms <= 1.8 * quiet_ms


def test_the_bounds_hold_whatever_was_learned() -> None:
    slow, fast = Pace(128, 1.8), Pace(128, 1.8)
    learn(slow, 1, 0.01, 1.0)
    learn(fast, 1, 1.0, 0.0001)
    assert (slow.budget(1), fast.budget(1)) == (8, 128)
    assert Pace(5, 1.8).budget(1) == 5


def test_without_a_stretch_no_clock_counts() -> None:
    pace = Pace(128, inf)
    learn(pace, 1, 0.01, 1.0)
    assert pace.budget(1) == 128


def test_the_nearest_batch_that_was_seen_counts() -> None:
    pace = Pace(512, 2.0)
    learn(pace, 1, 0.030, 0.001)
    pace.note(32, 0, 0.090)
    assert pace.budget(1) < pace.budget(20) == pace.budget(32)


def test_one_slow_step_is_no_rule() -> None:
    pace = Pace(512, 1.8)
    learn(pace, 8, 0.050, 0.001)
    before = pace.budget(8)
    pace.note(8, 0, 30.0)
    assert before <= pace.budget(8) < 2 * before


def test_a_stretch_that_leaves_no_time_is_refused() -> None:
    with pytest.raises(OptionError, match="stretch"):
        SchedulerLimits(stretch=1.0)


def test_a_prefill_of_its_own_tells_what_a_token_costs() -> None:
    pace = Pace(512, 1.5)
    pace.note(0, 1000, 0.300)
    pace.note(16, 0, 0.012)
    assert pace.budget(16) == 20


def test_a_small_chunk_in_a_slow_step_does_not_make_chunks_small() -> None:
    """What a step took longer, with more sequences or another process beside it, counted as its few tokens' cost."""
    pace = Pace(512, 1.5)
    pace.note(0, 1000, 0.300)
    pace.note(16, 0, 0.012)
    for _ in range(10):
        pace.note(30, 8, 0.018)
    assert pace.budget(30) >= 14


@pytest.mark.parametrize(("token_ms", "tokens"), [(0.1, 2048), (0.5, 1000), (10, 50), (1000, 8)])
def test_prefill_alone_takes_half_a_second_at_most(token_ms: float, tokens: int) -> None:
    pace = Pace(128, 1.5)
    assert (pace.idle_budget(2048), pace.idle_budget(100)) == (512, 100)
    pace.note(0, 512, 512 * token_ms / 1e3)
    assert pace.idle_budget(2048) == tokens
    assert Pace(128, inf).idle_budget(2048) == 2048


@pytest.mark.parametrize(("token_ms", "tokens"), [(0.01, 2048), (0.5, 200), (10, 10), (1000, 8)])
def test_a_burst_takes_a_tenth_of_a_second_at_most(token_ms: float, tokens: int) -> None:
    pace = Pace(128, 1.5)
    assert (pace.burst_budget(2048), pace.burst_budget(100)) == (512, 100)
    pace.note(0, 512, 512 * token_ms / 1e3)
    assert pace.burst_budget(2048) == tokens
    assert Pace(128, inf).burst_budget(2048) == 128
