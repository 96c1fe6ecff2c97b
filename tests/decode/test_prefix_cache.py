"""Prefixes are found again: the blocks that are handed out hold the tokens they stand for, and outputs stay what they were."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from constrained.decode.blocks import BlockManager, BlockTable
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.scheduler import SchedulerLimits
from tests.decode.mocks import ArrayGrammar, TinyModel
from tests.decode.test_engine import BLOCK_BYTES, engine, read, read_all

LEN = 4
GREEDY = SamplingParams(temperature=0, max_tokens=12)


class Memory:
    """A pool with its contents written out: what a reused block holds is what its tokens say."""

    def __init__(self, num_blocks: int) -> None:
        self.manager = BlockManager(num_blocks, LEN)
        self.contents: list[list[int | None]] = [[None] * LEN for _ in range(num_blocks)]

    def start(self, tokens: list[int]) -> tuple[BlockTable, int] | None:
        table, num_cached, copies = self.manager.reuse(tokens)
        for source, target in copies:
            self.contents[target] = list(self.contents[source])
        assert num_cached < len(tokens)
        assert self.read(table, num_cached) == tokens[:num_cached]
        if not self.manager.grow(table, len(tokens)):
            self.manager.release(table)
            return None
        return table, num_cached

    def compute(self, table: BlockTable, tokens: list[int], start: int, end: int) -> None:
        for i in range(start, end):
            self.contents[table.blocks[i // LEN]][i % LEN] = tokens[i]
        self.manager.register(table, tokens, end)

    def read(self, table: BlockTable, num_tokens: int) -> list[int | None]:
        return [self.contents[table.blocks[i // LEN]][i % LEN] for i in range(num_tokens)]


@pytest.mark.parametrize("seed", range(30))
def test_reused_blocks_hold_what_they_stand_for(seed: int) -> None:
    """Sequences over two letters share prefixes all the time; memory is short; some grow, some tails are made known early."""
    random, memory = Random(seed), Memory(12)
    live: list[tuple[BlockTable, list[int]]] = []
    for _ in range(300):
        action = random.random()
        if action < 0.45 or not live:
            tokens = [random.randrange(2) for _ in range(random.randrange(1, 18))]
            started = memory.start(tokens)
            if started is not None:
                table, num_cached = started
                memory.compute(table, tokens, num_cached, len(tokens))
                if random.random() < 0.5:
                    memory.manager.register_tail(table, tokens, len(tokens))
                live.append((table, tokens))
        elif action < 0.75:
            table, tokens = random.choice(live)
            if memory.manager.grow(table, len(tokens) + 1):
                tokens.append(random.randrange(2))
                memory.compute(table, tokens, len(tokens) - 1, len(tokens))
        else:
            table, tokens = live.pop(random.randrange(len(live)))
            memory.manager.release(table, tokens, random.choice([0, len(tokens), max(1, len(tokens) - 2)]))
        for table, tokens in live:
            assert memory.read(table, len(tokens)) == tokens
    for table, tokens in live:
        memory.manager.release(table, tokens, len(tokens))
    assert memory.manager.num_free == 12


def test_whole_blocks_are_shared_and_a_part_is_copied() -> None:
    manager = BlockManager(8, LEN)
    first = list(range(10))
    table, num_cached, copies = manager.reuse(first)
    assert (len(table), num_cached, copies) == (0, 0, [])
    manager.grow(table, 10)
    manager.register_tail(table, first, 10)
    other, num_cached, copies = manager.reuse([*first[:9], 99, 98])
    assert num_cached == 9
    assert other.blocks[:2] == table.blocks[:2]
    assert copies == [(table.blocks[2], other.blocks[2])]
    assert other.blocks[2] != table.blocks[2]


def test_the_same_tokens_after_another_prefix_are_other_contents() -> None:
    manager = BlockManager(8, LEN)
    table, _, _ = manager.reuse([1, 2, 3, 4, 5, 6, 7, 8, 9])
    manager.grow(table, 9)
    manager.release(table, [1, 2, 3, 4, 5, 6, 7, 8, 9], 9)
    assert manager.reuse([9, 9, 9, 9, 5, 6, 7, 8, 9])[1] == 0
    assert manager.reuse([1, 2, 3, 4, 5, 6, 7, 8, 9])[1] == 8


def test_the_least_recently_used_goes_first_and_the_end_before_the_start() -> None:
    manager = BlockManager(4, LEN)
    for tokens in ([1] * 8, [2] * 8):
        table, _, _ = manager.reuse(tokens)
        manager.grow(table, 8)
        manager.release(table, tokens, 8)
    assert manager.num_free == 4
    taken = BlockTable()
    manager.grow(taken, LEN)
    assert manager.reuse([1] * 9)[1] == 4  # its second block was the oldest
    assert manager.reuse([2] * 9)[1] == 8


def test_a_prompt_seen_before_is_not_computed_again(tiny: TinyModel) -> None:
    prompt = [(7 * i) % 200 for i in range(100)]

    async def main() -> tuple[list[Chunk], int]:
        async with engine(tiny) as e:
            first = await read(e.submit(prompt, GREEDY))
            computed = e.stats().prefill_tokens
            again = await read(e.submit(prompt, GREEDY))
            longer = await read(e.submit([*prompt, *first.token_ids[:4], 5], GREEDY))
            other = await read(e.submit([*prompt[:70], 1, 2, 3], GREEDY))
            return [first, again, longer, other], e.stats().prefill_tokens - computed

    (first, again, longer, other), computed = asyncio.run(main())
    assert [c.usage.cached_tokens for c in (first, again, longer, other)] == [0, 99, 104, 70]
    assert again.token_ids == first.token_ids
    assert computed < 20

    async def cold(tokens: list[int]) -> Chunk:
        async with engine(tiny) as e:
            return await read(e.submit(tokens, GREEDY))

    assert asyncio.run(cold([*prompt, *first.token_ids[:4], 5])).token_ids == longer.token_ids
    assert asyncio.run(cold([*prompt[:70], 1, 2, 3])).token_ids == other.token_ids


def test_several_answers_to_one_prompt_share_it(tiny: TinyModel) -> None:
    prompt = [(11 * i) % 200 for i in range(90)]

    async def main() -> tuple[list[Chunk], int]:
        async with engine(tiny, limits=SchedulerLimits(prefill_busy=16, prefill_idle=32)) as e:
            grammar = ArrayGrammar(tiny.vocabulary)
            params = [SamplingParams(seed=i, max_tokens=20) for i in range(6)]
            chunks = await read_all([e.submit(prompt, each, grammar) for each in params])
            return chunks, e.stats().prefill_tokens

    chunks, prefilled = asyncio.run(main())
    assert sorted(c.usage.cached_tokens for c in chunks)[1:] == [89] * 5
    assert prefilled < 90 + 5 * 4
    assert len({c.token_ids for c in chunks}) > 1


def test_the_cache_gives_way_and_outputs_stay(tiny: TinyModel) -> None:
    """Ten conversations take turns in memory that holds two of them."""
    prompts = [[(i * 13 + 5 * j) % 200 for j in range(40 + 3 * i)] for i in range(10)]

    async def main(num_blocks: int) -> list[Chunk]:
        async with engine(tiny, kv_bytes=num_blocks * BLOCK_BYTES, limits=SchedulerLimits(max_running=3)) as e:
            done = []
            for _ in range(2):
                done += await read_all([e.submit(p, GREEDY) for p in prompts])
            assert e.stats().free_blocks == e.stats().total_blocks
            return done

    tight, roomy = asyncio.run(main(6)), asyncio.run(main(60))
    assert [c.token_ids for c in tight] == [c.token_ids for c in roomy]
    assert sum(c.usage.cached_tokens for c in tight) < sum(c.usage.cached_tokens for c in roomy)


def test_nothing_is_found_again_where_that_is_switched_off(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny, prefix_caching=False) as e:
            return [await read(e.submit([7] * 80, GREEDY)) for _ in range(2)]

    first, second = asyncio.run(main())
    assert first.usage.cached_tokens == second.usage.cached_tokens == 0
    assert first.token_ids == second.token_ids
