"""Speculation changes the number of steps and nothing else: the same tokens, greedy or drawn, with a grammar or without."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.seeds import SeededStream
from constrained.decode.sequence import Sequence
from constrained.decode.speculation import PromptLookup, Speculation, allowed_drafts
from constrained.errors import OptionError
from tests.decode.mocks import EOS, ArrayGrammar, TinyModel
from tests.decode.stepping import together
from tests.decode.test_engine import assert_array, engine, read_all

LOOKUP = Speculation(num_tokens=5, max_batch=8, shortest=1)
REPEAT = {65: 6.0, 66: 6.0}  # few tokens are likely, so that guesses are often right
PARAMS = [
    SamplingParams(temperature=0, max_tokens=50),
    SamplingParams(temperature=1.0, seed=1, max_tokens=50, logit_bias=REPEAT),
    SamplingParams(temperature=0, max_tokens=50, frequency_penalty=0.4, logprobs=2),
    SamplingParams(temperature=1.0, top_p=0.9, seed=3, max_tokens=50),
    SamplingParams(temperature=0.5, seed=4, max_tokens=33, stop=("zz",)),
]


def generate(model: TinyModel, params: list[SamplingParams], grammar: Any, **options: Any) -> tuple[list[Chunk], Any]:
    async def main() -> tuple[list[Chunk], Any]:
        async with engine(model, **options) as e:
            prompts = [[5, 6, 7, 5, 6, 7, i] for i in range(len(params))]
            with together(e):
                generations = [e.submit(p, each, grammar) for p, each in zip(prompts, params, strict=True)]
            return await read_all(generations), e.stats()

    return asyncio.run(main())


def num_steps(chunk: Chunk) -> int:
    """The steps that free text took: each gives one token, and the guesses that it confirms."""
    return chunk.usage.completion_tokens - chunk.usage.accepted_tokens


def lookup(tokens: list[int], num_tokens: int, **options: int) -> list[int]:
    sequence = Sequence(tokens, SamplingParams(), 50, None, SeededStream(0))
    return PromptLookup(Speculation(**options)).propose([sequence], num_tokens)[0]


def test_lookup_takes_the_newest_place_after_the_longest_end() -> None:
    assert lookup([1, 2, 3, 9, 8, 7, 4, 2, 3, 6, 5, 1, 2, 3], 3, longest=3, shortest=1) == [9, 8, 7]
    assert lookup([1, 2, 3, 9, 8, 7, 4, 2, 3, 6, 5, 2, 3], 2, longest=3, shortest=1) == [6, 5]
    assert lookup([1, 2, 1, 2], 5, longest=2, shortest=2) == [1, 2, 1, 2, 1]
    assert lookup([1, 2, 3], 5, longest=2, shortest=1) == []
    assert lookup([7, 7], 3, longest=2, shortest=1) == [7, 7, 7]


def test_lookup_follows_a_growing_text() -> None:
    sequence = Sequence([1, 2, 3, 4], SamplingParams(), 50, None, SeededStream(0))
    speculator = PromptLookup(Speculation(longest=2, shortest=1))
    assert speculator.propose([sequence], 2) == [[]]
    for token in (1, 2):
        sequence.append(token)
    assert speculator.propose([sequence], 2) == [[3, 4]]
    speculator.forget(sequence)
    assert speculator.propose([sequence], 3) == [[3, 4, 1]]


def test_drafts_end_where_grammar_or_budget_end(tiny: TinyModel) -> None:
    matcher = ArrayGrammar(tiny.vocabulary).matcher()
    sequence = Sequence([1], SamplingParams(), 20, matcher, SeededStream(0))
    drafts = [ord(c) for c in "[1,2x1"]
    assert allowed_drafts(sequence, drafts) == drafts[:4]
    assert len(matcher.history) == 1
    assert allowed_drafts(sequence, [ord(c) for c in "[1]"]) == [ord("["), ord("1")]
    sequence.max_tokens = 6
    assert allowed_drafts(sequence, [ord("[")] * 5) == [ord("[")] * 2
    sequence.max_tokens = 1
    assert allowed_drafts(sequence, drafts) == []


@pytest.mark.parametrize("constrained", [False, True])
def test_the_tokens_are_the_same_with_and_without(tiny: TinyModel, constrained: bool) -> None:
    grammar = ArrayGrammar(tiny.vocabulary) if constrained else None
    params = [p for p in PARAMS if not (constrained and (p.stop or p.logit_bias))]
    plain, before = generate(tiny, params, grammar)
    guessed, after = generate(tiny, params, grammar, speculation=LOOKUP)
    for a, b in zip(plain, guessed, strict=True):
        assert (a.token_ids, a.data, a.finish_reason) == (b.token_ids, b.data, b.finish_reason)
        for x, y in zip(a.logprobs, b.logprobs, strict=True):
            assert x.logprob == pytest.approx(y.logprob, abs=1e-3)
        if constrained:
            assert_array(b)
    assert after.steps <= before.steps
    if not constrained:
        assert (before.steps, after.steps) == (max(map(num_steps, plain)), max(map(num_steps, guessed)))
    assert sum(c.usage.accepted_tokens for c in guessed) > 0
    assert all(c.usage.accepted_tokens <= c.usage.drafted_tokens for c in guessed)


def test_tight_budgets_hold_under_speculation(tiny: TinyModel) -> None:
    grammar = ArrayGrammar(tiny.vocabulary)
    params = [SamplingParams(temperature=1.5, seed=i, max_tokens=3 + i % 9) for i in range(4)]
    plain, _ = generate(tiny, params, grammar)
    guessed, _ = generate(tiny, params, grammar, speculation=LOOKUP)
    for a, b, each in zip(plain, guessed, params, strict=True):
        assert_array(b)
        assert a.token_ids == b.token_ids
        assert len(b.token_ids) <= each.max_tokens


def test_a_large_batch_is_left_alone(tiny: TinyModel) -> None:
    def num_drafted(max_batch: int) -> int:
        params = [SamplingParams(temperature=0, max_tokens=40, logit_bias={EOS: -50.0})] * 4
        chunks, _ = generate(tiny, params, None, speculation=Speculation(max_batch=max_batch, shortest=1))
        return sum(chunk.usage.drafted_tokens for chunk in chunks)

    assert num_drafted(3) == 0 < num_drafted(4)


@pytest.mark.parametrize("options", [{"num_tokens": 0}, {"num_tokens": 16}, {"longest": 1, "shortest": 2}, {"max_batch": 0}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(OptionError):
        Speculation(**options)
