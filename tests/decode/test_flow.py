"""Who goes when: pauses, slow readers, steering, priorities, time limits, late masks, forced tokens."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from constrained import Vocabulary
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.scheduler import PATIENCE, SchedulerLimits
from constrained.errors import BudgetError, ContextLengthError, RequestError
from tests.decode.mocks import ArrayGrammar, ArrayMatcher, MockRow, Place, TinyModel
from tests.decode.stepping import in_step, together
from tests.decode.test_engine import PROMPTS, assert_array, engine, read, read_all, until
from tests.decode.test_scheduler import make, run, sequence

LONG = SamplingParams(temperature=0, max_tokens=60)


def test_a_paused_sequence_leaves_its_slot_and_goes_on_as_it_would_have(tiny: TinyModel) -> None:
    async def main() -> tuple[Chunk, Chunk]:
        async with engine(tiny, limits=SchedulerLimits(max_running=1)) as e:
            whole = await read(e.submit(PROMPTS[1], LONG))
            first = in_step(e).submit(PROMPTS[1], LONG)
            chunks = [await anext(first)]
            await first.pause()
            other = await read(e.submit(PROMPTS[2], SamplingParams(max_tokens=3)))
            assert other.usage.completion_tokens <= 3
            assert (e.stats().paused, e.stats().running) == (1, 0)
            first.resume()
            chunks.append(await read(first))
            return whole, Chunk(b"", tuple(t for c in chunks for t in c.token_ids))

    whole, paused = asyncio.run(main())
    assert paused.token_ids == whole.token_ids


def test_a_paused_sequence_can_be_cancelled(tiny: TinyModel) -> None:
    async def main() -> Chunk:
        async with engine(tiny) as e:
            first = in_step(e).submit(PROMPTS[1], LONG)
            await anext(first)
            await first.pause()
            first.cancel()
            chunk = await read(first)
            await until(lambda: e.stats().paused == 0)
            assert e.stats().free_blocks == e.stats().total_blocks
            return chunk

    assert asyncio.run(main()).finish_reason == "cancelled"


def test_a_reader_that_stalls_pauses_its_own_sequence_alone(tiny: TinyModel) -> None:
    async def main() -> tuple[Chunk, Chunk]:
        async with engine(tiny, max_unread=8) as e:
            stalled = in_step(e).submit(PROMPTS[1], SamplingParams(temperature=0, max_tokens=200))
            await until(lambda: e.stats().paused == 1)
            assert e.stats().tokens == 9  # the one that is too many is the last
            other = await read(e.submit(PROMPTS[0], LONG))
            assert e.stats().paused == 1
            return await read(stalled), other

    stalled, other = asyncio.run(main())
    assert len(stalled.token_ids) == 200
    assert len(other.token_ids) == 60


def test_chunks_that_are_pushed_are_those_that_would_be_read(tiny: TinyModel) -> None:
    async def main() -> tuple[Chunk, list[Chunk]]:
        async with engine(tiny, max_unread=8) as e:
            params = SamplingParams(temperature=0, max_tokens=200)
            whole = await read(e.submit(PROMPTS[1], params))
            late = in_step(e).submit(PROMPTS[1], params)
            await until(lambda: e.stats().paused == 1)  # what waited is given first, and it goes on
            pushed: list[Chunk] = []
            late.deliver_to(pushed.append)
            await until(lambda: pushed[-1].finish_reason is not None)
            return whole, pushed

    whole, pushed = asyncio.run(main())
    assert tuple(token for chunk in pushed for token in chunk.token_ids) == whole.token_ids
    assert b"".join(chunk.data for chunk in pushed) == whole.data
    assert [chunk.finish_reason for chunk in pushed[:-1]] == [None] * (len(pushed) - 1)


def test_steering_goes_on_from_the_same_place_in_the_grammar(tiny: TinyModel) -> None:
    prompt = [(3 * i) % 200 for i in range(80)]

    async def main() -> tuple[bytes, Chunk, int, list[int]]:
        async with engine(tiny) as e:
            generation = in_step(e).submit(prompt, SamplingParams(seed=1, max_tokens=60), ArrayGrammar(tiny.vocabulary))
            start = await anext(generation)
            await generation.pause()
            context = generation.context
            before = e.stats().prefill_tokens
            await generation.steer([*context, 90, 91, 92])
            generation.resume()
            rest = await read(generation)
            return start.data, rest, e.stats().prefill_tokens - before, context

    start, rest, prefilled, context = asyncio.run(main())
    assert context[:80] == prompt
    assert_array(Chunk(start + rest.data, (), rest.finish_reason))
    assert prefilled <= 4  # the blocks of all that was seen before are found again
    assert rest.usage.completion_tokens <= 60


def test_a_value_replaced_in_the_context_is_what_the_model_sees(tiny: TinyModel) -> None:
    prompt, most = [(5 * i) % 200 for i in range(70)], 150  # enough that it does not end before it pauses
    params = SamplingParams(temperature=0, max_tokens=most)

    async def main() -> tuple[list[int], Chunk, Chunk]:
        async with engine(tiny) as e:
            generation = in_step(e).submit(prompt, params)
            start = await anext(generation)
            await generation.pause()
            changed = generation.context
            changed[66] = 199
            await generation.steer(changed)
            generation.resume()
            rest = await read(generation)
            while len(rest.token_ids) < most - len(changed) + 70:
                rest.token_ids = (*start.token_ids, *rest.token_ids)
            expected = await read(e.submit(changed, params))
            return changed, rest, expected

    changed, rest, expected = asyncio.run(main())
    length = most - (len(changed) - 70)
    assert rest.token_ids[-length:] == expected.token_ids[:length]


def test_a_document_goes_on_behind_a_prefix(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny) as e:
            grammar = ArrayGrammar(tiny.vocabulary)
            with pytest.raises(RequestError, match="prefix"):
                e.submit([1], SamplingParams(), grammar, prefix=b"[3")
            with pytest.raises(BudgetError):
                e.submit([1], SamplingParams(max_tokens=2), grammar, prefix=b"[[[")
            params = [SamplingParams(seed=i, max_tokens=12) for i in range(4)]
            return await read_all([e.submit([1, *b"[1,["], each, grammar, prefix=b"[1,[") for each in params])

    for chunk in asyncio.run(main()):
        assert chunk.finish_reason == "stop"
        assert isinstance(json.loads(b"[1,[" + chunk.data), list)


def test_what_cannot_be_steered_is_refused(tiny: TinyModel) -> None:
    async def main() -> None:
        async with engine(tiny) as e:
            generation = in_step(e).submit([1], LONG, ArrayGrammar(tiny.vocabulary))
            await generation.pause()
            with pytest.raises(ContextLengthError):
                await generation.steer([1] * 256)
            with pytest.raises(RequestError, match="no token"):
                await generation.steer([])
            generation.resume()
            assert_array(await read(generation))
            with pytest.raises(RequestError, match="ended"):
                await generation.steer([1])

    asyncio.run(main())


def test_higher_priority_goes_first_and_nobody_starves() -> None:
    scheduler, _ = make(max_running=1)
    low = sequence(3)
    scheduler.add(low)
    first = sequence(3, priority=1)
    scheduler.add(first)
    for _ in range(PATIENCE - 1):
        run(scheduler)
        assert low not in scheduler.running
        (done,) = scheduler.running
        scheduler.remove(done)
        scheduler.add(sequence(3, priority=1))
    run(scheduler)
    scheduler.remove(scheduler.running[0])
    scheduler.add(sequence(3, priority=1))
    run(scheduler)
    assert scheduler.running == [low]


def test_a_time_limit_cuts_text_and_closes_a_document(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny) as e:
            params = SamplingParams(temperature=0, max_tokens=250, time_limit_s=1e-6)
            endless = SamplingParams(temperature=0, max_tokens=250, time_limit_s=1e-6, unmasked_logprobs=True, logprobs=0)
            grammar = ArrayGrammar(tiny.vocabulary)
            return await read_all([e.submit([1], params), e.submit([1], params, grammar), e.submit([1], endless, grammar)])

    text, document, with_logprobs = asyncio.run(main())
    assert text.finish_reason == "length"
    for chunk in (document, with_logprobs):
        assert_array(chunk)
        assert chunk.usage.closed_by_budget
    assert len(with_logprobs.logprobs) == len(with_logprobs.token_ids)


class SlowMatcher(ArrayMatcher):
    """Makes no mask before it may."""

    def __init__(self, grammar: ArrayGrammar, may_answer: threading.Event) -> None:
        super().__init__(grammar)
        self.may_answer = may_answer

    def mask_row(self) -> MockRow:
        self.may_answer.wait()
        return super().mask_row()


class SlowGrammar(ArrayGrammar):
    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self.may_answer = threading.Event()

    def matcher(self) -> ArrayMatcher:
        return SlowMatcher(self, self.may_answer)


def test_a_late_mask_delays_its_own_sequence_alone(tiny: TinyModel) -> None:
    async def main() -> tuple[list[Chunk], Any]:
        async with engine(tiny, mask_patience_s=0.001) as e:
            grammar = SlowGrammar(tiny.vocabulary)
            with together(e):
                slow = e.submit([1], SamplingParams(seed=3, max_tokens=12), grammar)
                quick = e.submit([2], SamplingParams(seed=4, max_tokens=40))
            try:
                async with asyncio.timeout(120):
                    first = await read(quick)
            finally:
                grammar.may_answer.set()
            return [first, await read(slow)], e.stats()

    (quick, slow), stats = asyncio.run(main())
    assert_array(slow)
    assert quick.finish_reason in ("stop", "length")
    assert stats.sat_out > 0

    async def alone() -> Chunk:
        async with engine(tiny) as e:
            return await read(e.submit([1], SamplingParams(seed=3, max_tokens=12), ArrayGrammar(tiny.vocabulary)))

    assert asyncio.run(alone()).token_ids == slow.token_ids


class ForcedMatcher(ArrayMatcher):
    """Forces the beginning [[1,2, as long as the array follows it."""

    def forced_tokens(self) -> list[int]:
        tokens = [ord("["), ord("["), self.grammar.texts.index(b"1,2,")]
        places = [Place().run(b"".join(self.grammar.texts[token] for token in tokens[:n])) for n in range(4)]
        num_seen = len(self.history)
        return tokens[num_seen - 1 :] if self.history == places[:num_seen] else []


class ForcedGrammar(ArrayGrammar):
    def matcher(self) -> ArrayMatcher:
        return ForcedMatcher(self)


def test_forced_tokens_stream_at_once_and_cost_no_step(tiny: TinyModel) -> None:
    async def main() -> tuple[Chunk, Chunk, int]:
        async with engine(tiny) as e:
            params = SamplingParams(seed=2, max_tokens=40, logprobs=1)
            generation = in_step(e).submit(PROMPTS[1], params, ForcedGrammar(tiny.vocabulary))
            first = await anext(generation)
            return first, await read(generation), e.stats().steps

    first, rest, steps = asyncio.run(main())
    assert first.data.startswith(b"[[1,2,")
    assert first.usage.forced_tokens >= 3
    assert_array(Chunk(first.data + rest.data, (), rest.finish_reason))
    assert [entry.logprob for entry in first.logprobs[:3]] == [0.0] * 3
    assert steps <= rest.usage.completion_tokens - rest.usage.forced_tokens + 1


def test_forced_tokens_stop_where_the_budget_needs_the_rest(tiny: TinyModel) -> None:
    async def main() -> list[Chunk]:
        async with engine(tiny) as e:
            grammar = ForcedGrammar(tiny.vocabulary)
            params = [SamplingParams(seed=i, max_tokens=n, temperature=2.0) for i, n in enumerate(range(3, 14))]
            return await read_all([e.submit([9], each, grammar) for each in params])

    for budget, chunk in zip(range(3, 14), asyncio.run(main()), strict=True):
        assert_array(chunk)
        assert len(chunk.token_ids) <= budget
