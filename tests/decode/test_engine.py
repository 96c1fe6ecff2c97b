"""The engine end to end on a tiny random model: batches, grammars, budgets, seeds, cancellation, faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf
from typing import Any

import pytest
import torch

from constrained.decode.async_engine import AsyncEngine, Generation
from constrained.decode.options import EngineOptions
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.scheduler import SchedulerLimits
from constrained.errors import BudgetError, ContextLengthError, InternalError, OverloadedError, RequestError
from tests.decode.mocks import EOS, ArrayGrammar, ArrayMatcher, MockRow, TinyModel, byte_vocabulary
from tests.decode.stepping import in_step, together

PROMPTS = [[(i * 31 + j * 7) % 200 for j in range(n)] for i, n in enumerate((3, 40, 1, 17, 65, 9))]
BLOCK_BYTES = 2 * 2 * (8 + 8) * 4 * 32


@asynccontextmanager
async def engine(model: TinyModel, **options: Any) -> AsyncIterator[AsyncEngine]:
    """An engine whose steps do not depend on the clock: each waits for its masks, and prefill is not fitted to the pace."""
    limits = replace(options.pop("limits", SchedulerLimits()), stretch=inf)
    made = AsyncEngine(model, EngineOptions(**{"limits": limits, "mask_patience_s": 60.0, **options}))
    try:
        yield made
    finally:
        await made.close()


async def read(generation: Generation) -> Chunk:
    """All chunks as one."""
    data, tokens, logprobs = b"", (), ()
    async for chunk in generation:
        data += chunk.data
        tokens += chunk.token_ids
        logprobs += chunk.logprobs
    return Chunk(data, tokens, chunk.finish_reason, chunk.error, chunk.usage, logprobs, chunk.stop_string)


async def read_all(generations: list[Generation]) -> list[Chunk]:
    return list(await asyncio.gather(*map(read, generations)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.005)


def assert_array(chunk: Chunk) -> None:
    assert chunk.error is None
    assert chunk.finish_reason == "stop"
    value = json.loads(chunk.data)
    assert isinstance(value, list)
    assert set(chunk.data) <= set(b"[],12")


def test_a_batch_equals_generate(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny, limits=SchedulerLimits(prefill_busy=7, prefill_idle=30)) as e:
            with together(e):
                generations = [e.submit(p, SamplingParams(temperature=0, max_tokens=20)) for p in PROMPTS]
            return await read_all(generations)

    chunks = asyncio.run(main())
    tiny.hf.set_attn_implementation("eager")
    for prompt, chunk in zip(PROMPTS, chunks, strict=True):
        ids = torch.tensor([prompt])
        out = tiny.hf.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False, pad_token_id=EOS)
        assert list(chunk.token_ids) == out[0, len(prompt) :].tolist()
        assert chunk.finish_reason == ("stop" if chunk.token_ids[-1] == EOS else "length")
        assert chunk.data == b"".join(tiny.vocabulary.token_bytes[t] for t in chunk.token_ids)
        assert chunk.usage.prompt_tokens == len(prompt)
        assert chunk.usage.completion_tokens == len(chunk.token_ids)
        assert 0 < chunk.usage.ttft_ms <= chunk.usage.total_ms
        assert chunk.usage.queue_ms <= chunk.usage.ttft_ms


def test_eos_ends_a_sequence_without_a_grammar(tiny: TinyModel) -> None:
    first = TinyModel(hf=tiny.hf)

    async def main(model: TinyModel) -> Chunk:
        async with engine(model) as e:
            return await read(e.submit(PROMPTS[0], SamplingParams(temperature=0, max_tokens=8)))

    tokens = asyncio.run(main(first)).token_ids
    ended = asyncio.run(main(TinyModel(hf=tiny.hf, eos_token_ids=frozenset({tokens[2]}))))
    assert ended.finish_reason == "stop"
    assert ended.token_ids == tokens[: tokens.index(tokens[2]) + 1]


def test_constrained_and_free_sequences_share_a_batch(tiny: TinyModel) -> None:
    grammar = ArrayGrammar(tiny.vocabulary)

    async def main() -> tuple[list[Chunk], Any]:
        async with engine(tiny) as e:
            with together(e):
                params = [SamplingParams(seed=i, max_tokens=40) for i in range(24)]
                generations = [e.submit(PROMPTS[i % 6], p, grammar if i % 3 else None) for i, p in enumerate(params)]
            return await read_all(generations), e.stats()

    chunks, stats = asyncio.run(main())
    for i, chunk in enumerate(chunks):
        if i % 3:
            assert_array(chunk)
    assert any(chunk.usage.closed_by_budget for chunk in chunks)
    assert len({chunk.data for chunk in chunks}) > 12
    assert (stats.running, stats.waiting, stats.free_blocks) == (0, 0, stats.total_blocks)
    assert stats.tokens == sum(len(chunk.token_ids) for chunk in chunks)
    assert stats.row_uploads == len(grammar.row_ids)
    assert stats.mask_ms > 0


@pytest.mark.parametrize("max_tokens", range(3, 16))
def test_a_budget_always_yields_a_whole_document(tiny: TinyModel, max_tokens: int) -> None:
    """Long tokens open four arrays at once, so what is sampled must be taken back where the budget is too small for it."""
    grammar = ArrayGrammar(tiny.vocabulary)

    async def main() -> list[Chunk]:
        async with engine(tiny) as e:
            params = [SamplingParams(temperature=3.0, seed=i, max_tokens=max_tokens) for i in range(12)]
            return await read_all([e.submit([5, i], p, grammar) for i, p in enumerate(params)])

    for chunk in asyncio.run(main()):
        assert_array(chunk)
        assert len(chunk.token_ids) <= max_tokens
        assert chunk.usage.closed_by_budget == (chunk.usage.forced_tokens > 0)


def test_a_seed_gives_the_same_output_whatever_else_is_in_the_batch(tiny: TinyModel) -> None:
    params = SamplingParams(temperature=1.3, top_p=0.95, seed=11, max_tokens=25)

    async def main() -> list[Chunk]:
        async with engine(tiny, limits=SchedulerLimits(prefill_busy=5)) as e:
            alone = await read(e.submit(PROMPTS[1], params))
            with together(e):
                others = [e.submit(p, SamplingParams(seed=i, max_tokens=30)) for i, p in enumerate(PROMPTS)]
                in_a_batch = e.submit(PROMPTS[1], params)
                other_seed = e.submit(PROMPTS[1], SamplingParams(temperature=1.3, top_p=0.95, seed=12, max_tokens=25))
            await read_all(others)
            return [alone, await read(in_a_batch), await read(other_seed)]

    alone, in_a_batch, other_seed = asyncio.run(main())
    assert alone.token_ids == in_a_batch.token_ids != other_seed.token_ids


def test_preempted_sequences_end_as_they_would_have(tiny: TinyModel) -> None:
    async def main(num_blocks: int) -> tuple[list[Chunk], int]:
        async with engine(tiny, kv_bytes=num_blocks * BLOCK_BYTES) as e:
            params = [SamplingParams(seed=i, max_tokens=70) for i in range(5)]
            grammars = [ArrayGrammar(tiny.vocabulary) if i == 4 else None for i in range(5)]
            with together(e):
                generations = [e.submit([i, 3], p, g) for i, (p, g) in enumerate(zip(params, grammars, strict=True))]
            chunks = await read_all(generations)
            assert e.stats().free_blocks == num_blocks
            return chunks, e.stats().preemptions

    roomy, none = asyncio.run(main(40))
    tight, some = asyncio.run(main(6))
    assert none == 0 < some
    assert [c.token_ids for c in tight] == [c.token_ids for c in roomy]


def test_cancellation_frees_the_slot_before_the_next_step(tiny: TinyModel) -> None:
    async def main() -> tuple[Chunk, Chunk]:
        async with engine(tiny, limits=SchedulerLimits(max_running=1)) as e:
            first = in_step(e).submit([1], SamplingParams(max_tokens=250, seed=0), ArrayGrammar(tiny.vocabulary))
            await anext(first)
            second = e.submit([2], SamplingParams(max_tokens=3, temperature=0))
            first.cancel()
            return await read(first), await read(second)

    first, second = asyncio.run(main())
    assert (first.finish_reason, second.finish_reason) == ("cancelled", "length")


def test_closing_cancels_what_runs_and_waits(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny, limits=SchedulerLimits(max_running=1)) as e:
            in_step(e)
            generations = [e.submit([i], SamplingParams(temperature=0, max_tokens=250)) for i in range(3)]
            await anext(generations[0])
            await e.close()
            with pytest.raises(OverloadedError, match="closing"):
                e.submit([1], SamplingParams())
            return await read_all(generations)

    assert {chunk.finish_reason for chunk in asyncio.run(main())} == {"cancelled"}


class BrokenMatcher(ArrayMatcher):
    """Fails in one method after a few tokens."""

    def __init__(self, grammar: ArrayGrammar, method: str) -> None:
        super().__init__(grammar)
        self.method = method

    def fail(self, method: str) -> None:
        if method == self.method and len(self.history) > 2:
            raise ZeroDivisionError(method)

    def mask_row(self) -> MockRow:
        self.fail("mask_row")
        row = super().mask_row()
        if self.method == "row" and len(self.history) > 2:
            return MockRow(10**6, row.words[:-1])
        if self.method == "empty" and len(self.history) > 2:
            return MockRow(10**6 + 1, row.words * 0)
        return row

    def accept_token(self, token_id: int) -> bool:
        self.fail("accept_token")
        return super().accept_token(token_id) and not (self.method == "refuse" and len(self.history) > 2)


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("mask_row", ZeroDivisionError),
        ("accept_token", ZeroDivisionError),
        ("refuse", InternalError),
        ("row", InternalError),
        ("empty", InternalError),
    ],
)
def test_a_fault_in_one_sequence_fails_that_one_alone(tiny: TinyModel, method: str, error: type[Exception]) -> None:
    class Broken(ArrayGrammar):
        def matcher(self) -> ArrayMatcher:
            return BrokenMatcher(self, method)

    async def main() -> list[Chunk]:
        async with engine(tiny) as e:
            grammars = [ArrayGrammar(tiny.vocabulary), Broken(tiny.vocabulary), None]
            grammars[1].rows = grammars[0].rows
            grammars[1].row_ids = grammars[0].row_ids
            params = SamplingParams(temperature=1.0, seed=3, max_tokens=30)
            with together(e):
                generations = [e.submit([i, 7], params, g) for i, g in enumerate(grammars)]
            chunks = await read_all(generations)
            assert e.stats().free_blocks == e.stats().total_blocks
            return chunks

    good, broken, free = asyncio.run(main())
    assert_array(good)
    assert free.finish_reason in ("stop", "length")
    assert broken.finish_reason == "error"
    assert isinstance(broken.error, error)


def test_a_forward_pass_that_raises_fails_its_sequences_and_leaves_no_slot_behind(tiny: TinyModel) -> None:
    async def main() -> tuple[list[Chunk], Chunk]:
        async with engine(tiny) as e:
            runner = e._engine._runner
            forward = runner.forward
            runner.forward = lambda *_: 1 / 0
            failed = await read_all([e.submit(p, SamplingParams(), ArrayGrammar(tiny.vocabulary)) for p in PROMPTS])
            runner.forward = forward
            assert e.stats().free_blocks == e.stats().total_blocks
            return failed, await read(e.submit([1], SamplingParams(max_tokens=2, temperature=0)))

    failed, later = asyncio.run(main())
    assert all(chunk.finish_reason == "error" and isinstance(chunk.error, ZeroDivisionError) for chunk in failed)
    assert later.finish_reason == "length"


def test_the_death_of_the_thread_reaches_every_caller(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny, limits=SchedulerLimits(max_running=1)) as e:
            in_step(e)
            generations = [e.submit([i], SamplingParams(max_tokens=200, temperature=0)) for i in range(3)]
            await anext(generations[0])
            e._engine._scheduler.schedule = lambda: 1 / 0
            chunks = await read_all(generations)
            with pytest.raises(InternalError, match="died"):
                e.submit([1], SamplingParams())
            return chunks

    for chunk in asyncio.run(main()):
        assert chunk.finish_reason == "error"
        assert isinstance(chunk.error, InternalError)


def test_a_death_between_two_sequences_of_a_step_leaves_nobody_waiting(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny) as e:
            stepper, calls = e._engine._stepper, []
            emit = stepper._emit

            def dies_at_the_second(*arguments: Any) -> None:
                calls.append(arguments)
                if len(calls) == 2:
                    raise ZeroDivisionError
                emit(*arguments)

            stepper._emit = dies_at_the_second
            with together(e):
                generations = [e.submit([i], SamplingParams(max_tokens=1, temperature=0)) for i in range(2)]
            return await read_all(generations)

    first, second = asyncio.run(main())
    assert first.finish_reason == "length"
    assert isinstance(second.error, InternalError)


def test_what_cannot_be_done_is_refused_before_the_first_step(tiny: TinyModel) -> None:
    grammar = ArrayGrammar(tiny.vocabulary)
    foreign = ArrayGrammar(byte_vocabulary().__class__.from_bytes([b"[", b"]", b""], [2]))

    async def main() -> None:
        async with engine(tiny) as e:
            with pytest.raises(BudgetError, match="smallest document"):
                e.submit([1], SamplingParams(max_tokens=2), grammar)
            with pytest.raises(ContextLengthError, match="256"):
                e.submit([1] * 256, SamplingParams())
            with pytest.raises(ContextLengthError, match="needed"):
                e.submit([1] * 254, SamplingParams(), grammar)
            with pytest.raises(RequestError, match="no token"):
                e.submit([], SamplingParams())
            with pytest.raises(RequestError, match="not in the vocabulary"):
                e.submit([10**6], SamplingParams())
            with pytest.raises(RequestError, match="another vocabulary"):
                e.submit([1], SamplingParams(), foreign)
            clipped = await read(e.submit([1] * 250, SamplingParams(max_tokens=100), grammar))
            assert len(clipped.token_ids) <= 6
            assert_array(clipped)

    asyncio.run(main())


def test_a_full_queue_is_an_error_and_drains(tiny: TinyModel) -> None:
    async def main() -> None:
        async with engine(tiny, limits=SchedulerLimits(max_running=1), max_waiting=2) as e:
            running = in_step(e).submit([1], SamplingParams(max_tokens=250, temperature=0))
            await anext(running)
            waiting = [e.submit([1], SamplingParams(max_tokens=2)) for _ in range(2)]
            with pytest.raises(OverloadedError, match="2 sequences wait"):
                e.submit([1], SamplingParams(max_tokens=2))
            running.cancel()
            await read_all(waiting)
            await read(e.submit([1], SamplingParams(max_tokens=2)))

    asyncio.run(main())


def test_one_engine_serves_several_event_loops(tiny: TinyModel) -> None:
    made = AsyncEngine(tiny)

    async def main() -> Chunk:
        return await read(made.submit(PROMPTS[0], SamplingParams(temperature=0, max_tokens=5)))

    assert asyncio.run(main()).token_ids == asyncio.run(main()).token_ids

    async def abandon() -> None:
        made.submit(PROMPTS[0], SamplingParams(temperature=0, max_tokens=250))

    asyncio.run(abandon())
    asyncio.run(until_idle(made))
    asyncio.run(made.close())


async def until_idle(made: AsyncEngine) -> None:
    await until(lambda: made.stats().running == made.stats().waiting == 0)


def test_a_closed_engine_gives_the_model_its_own_attention_back(tiny: TinyModel) -> None:
    ids = torch.tensor([PROMPTS[1]])

    async def run() -> None:
        async with engine(tiny) as served:
            await read(served.submit(PROMPTS[0], SamplingParams(temperature=0, max_tokens=2)))

    before = tiny.hf(ids).logits
    asyncio.run(run())
    assert torch.allclose(tiny.hf(ids).logits, before)
