"""Who computes what: decode first, prefill in chunks, admission by memory, preemption of the youngest."""

from __future__ import annotations

from itertools import count, pairwise
from typing import Any

import pytest

from constrained.decode.blocks import BlockManager
from constrained.decode.request import SamplingParams
from constrained.decode.scheduler import Scheduler, SchedulerLimits
from constrained.decode.seeds import SeededStream
from constrained.decode.sequence import Sequence
from constrained.errors import OptionError


def make(num_blocks: int = 100, **limits: int) -> tuple[Scheduler, BlockManager]:
    blocks = BlockManager(num_blocks, 4)
    return Scheduler(blocks, SchedulerLimits(**limits)), blocks


NUMBERS = count()


def sequence(prompt_len: int, max_tokens: int = 50, **params: Any) -> Sequence:
    """Each has a prompt of its own."""
    prompt = [next(NUMBERS) for _ in range(prompt_len)]
    return Sequence(prompt, SamplingParams(**params), max_tokens, None, SeededStream(0))


def run(scheduler: Scheduler) -> list[tuple[int, int]]:
    """One step as the engine does it: compute, and append a token where one is sampled; (start, end) of each."""
    done = []
    for w in scheduler.schedule().work:
        done.append((w.sequence.num_computed, w.end))
        samples = w.samples
        scheduler.computed(w.sequence, w.end)
        if samples:
            w.sequence.append(next(NUMBERS))
    return done


def test_a_long_prompt_goes_in_chunks_beside_a_running_stream() -> None:
    scheduler, _ = make(prefill_busy=8, prefill_idle=20)
    first, second = sequence(5), sequence(30)
    scheduler.add(first)
    assert run(scheduler) == [(0, 5)]
    scheduler.add(second)
    assert [run(scheduler) for _ in range(5)] == [
        [(5, 6), (0, 8)],
        [(6, 7), (8, 16)],
        [(7, 8), (16, 24)],
        [(8, 9), (24, 30)],
        [(9, 10), (30, 31)],
    ]


def test_an_idle_engine_prefills_several_prompts_in_order_of_arrival() -> None:
    scheduler, _ = make(prefill_idle=20)
    for prompt_len in (8, 8, 8):
        scheduler.add(sequence(prompt_len))
    assert run(scheduler) == [(0, 8), (0, 8), (0, 4)]


def test_those_who_wait_go_first_where_they_gain_more_than_the_others_lose() -> None:
    scheduler, _ = make(prefill_busy=8, prefill_idle=40)
    for _ in range(2):
        scheduler.add(sequence(5))
    run(scheduler)
    for _ in range(3):
        scheduler.add(sequence(20))
    assert run(scheduler)[2:] == [(0, 20), (0, 20)]  # three wait for two
    scheduler.add(sequence(20))
    assert run(scheduler)[4:] == [(0, 20), (0, 20)]  # two for four: those who came with the others are not left behind
    scheduler.add(sequence(20))
    assert run(scheduler)[6:] == [(0, 8)]  # one for six


def test_admission_waits_for_slots_and_memory_in_order() -> None:
    scheduler, blocks = make(num_blocks=6, max_running=2)
    large, small, third = sequence(12), sequence(12), sequence(1)
    for each in (large, small, third):
        scheduler.add(each)
    run(scheduler)
    assert scheduler.running == [large]  # the second needs 3 blocks and a spare one for the first
    assert scheduler.waiting == [small, third]  # nobody overtakes
    scheduler.remove(large)
    assert blocks.num_free == 6
    run(scheduler)
    assert scheduler.running == [small, third]


def test_the_youngest_gives_way_and_is_computed_anew() -> None:
    scheduler, blocks = make(num_blocks=5)
    old, young = sequence(7), sequence(7)
    scheduler.add(old)
    scheduler.add(young)
    run(scheduler)
    while not scheduler.num_preemptions:
        run(scheduler)
    assert scheduler.running == [old]
    assert scheduler.waiting == [young]
    assert (young.num_computed, young.table.blocks) == (0, [])
    kept = list(young.tokens)
    scheduler.remove(old)
    assert run(scheduler) == [(8, len(kept))]  # its whole blocks were still known
    assert young.tokens[: len(kept)] == kept
    scheduler.remove(young)
    assert blocks.num_free == 5


def test_removal_frees_a_waiting_sequence_too() -> None:
    scheduler, blocks = make(max_running=1)
    first, second = sequence(3), sequence(3)
    scheduler.add(first)
    scheduler.add(second)
    run(scheduler)
    scheduler.remove(second)
    scheduler.remove(first)
    assert not scheduler.has_work
    assert blocks.num_free == blocks.num_blocks


@pytest.mark.parametrize("name", ["max_running", "prefill_busy", "prefill_idle"])
def test_limits_under_which_nothing_would_move_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match=name):
        SchedulerLimits(**{name: 0})


def test_chunks_behind_a_long_context_are_smaller() -> None:
    scheduler, _ = make(num_blocks=1000, prefill_busy=64, prefill_idle=64)
    scheduler.add(sequence(2500))
    sizes = [end - start for start, end in (run(scheduler)[0] for _ in range(40))]
    assert sizes[:8] == [64] * 8
    assert sizes[8] == 42
    assert all(a >= b for a, b in pairwise(sizes))
    assert min(sizes) >= 16
