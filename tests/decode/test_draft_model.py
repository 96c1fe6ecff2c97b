"""A draft model changes the number of steps and nothing else; over many seeds the distribution is that of the model."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
import torch

from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.scheduler import SchedulerLimits
from constrained.decode.speculation import Speculation
from constrained.errors import OptionError
from tests.decode.mocks import ArrayGrammar, TinyModel, byte_vocabulary, random_model, tiny_config
from tests.decode.stepping import together
from tests.decode.test_engine import PROMPTS, assert_array, engine, read_all


@pytest.fixture(scope="module")
def draft(tiny: TinyModel) -> TinyModel:
    """The model itself, a little out of tune."""
    hf = random_model(tiny_config())
    hf.load_state_dict(tiny.hf.state_dict())
    torch.manual_seed(3)
    for parameter in hf.parameters():
        parameter.add_(0.02 * torch.randn_like(parameter) * parameter.abs().mean())
    return TinyModel(hf=hf, name="draft")


def generate(model: TinyModel, params: list[SamplingParams], grammar: Any, **options: Any) -> tuple[list[Chunk], Any]:
    async def main() -> tuple[list[Chunk], Any]:
        async with engine(model, **options) as e:
            prompts = [PROMPTS[i % len(PROMPTS)] for i in range(len(params))]
            with together(e):
                generations = [e.submit(p, each, grammar) for p, each in zip(prompts, params, strict=True)]
            return await read_all(generations), e.stats()

    return asyncio.run(main())


@pytest.mark.parametrize("constrained", [False, True])
def test_the_tokens_are_the_same_with_and_without(tiny: TinyModel, draft: TinyModel, constrained: bool) -> None:
    grammar = ArrayGrammar(tiny.vocabulary) if constrained else None
    params = [
        SamplingParams(temperature=0, max_tokens=40),
        SamplingParams(temperature=1.0, seed=1, max_tokens=40),
        SamplingParams(temperature=0.7, top_k=5, seed=2, max_tokens=25, repetition_penalty=1.1),
    ]
    plain, before = generate(tiny, params, grammar)
    guessed, after = generate(tiny, params, grammar, draft_model=draft, speculation=Speculation(4))
    for a, b in zip(plain, guessed, strict=True):
        assert (a.token_ids, a.finish_reason) == (b.token_ids, b.finish_reason)
        if constrained:
            assert_array(b)
    assert sum(c.usage.accepted_tokens for c in guessed) > sum(c.usage.drafted_tokens for c in guessed) / 2
    assert after.steps < before.steps * 0.7


def quantile_of_chi_square(freedom: int) -> float:
    """At 0.999, by the approximation of Wilson and Hilferty (1931)."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + 3.09 * part**0.5) ** 3)


def test_the_distribution_is_kept(tiny: TinyModel, draft: TinyModel) -> None:
    """Chi-square over the third token, given what the model itself says after the first two."""
    num, hot = 600, dict.fromkeys((65, 66, 67), 12.0)
    params = [SamplingParams(temperature=1.0, seed=seed, max_tokens=3, logit_bias=hot) for seed in range(num)]
    options: dict[str, Any] = {"draft_model": draft, "speculation": Speculation(3, max_batch=64)}
    limits = SchedulerLimits(max_running=64)

    async def main() -> list[Chunk]:
        async with engine(tiny, limits=limits, max_waiting=num, **options) as e:
            with together(e):
                generations = [e.submit([1, 2, 3], each) for each in params]
            return await read_all(generations)

    chunks = asyncio.run(main())
    counts = Counter(chunk.token_ids[:3] for chunk in chunks)
    tiny.hf.set_attn_implementation("eager")
    bias = torch.zeros(tiny.vocabulary.size)
    bias[[65, 66, 67]] = 12.0

    def after(tokens: tuple[int, ...]) -> torch.Tensor:
        return (tiny.hf(torch.tensor([[1, 2, 3, *tokens]])).logits[0, -1] + bias).softmax(dim=-1)

    likely = (65, 66, 67)
    first = after(())
    shares = {(a, b, c): first[a] * after((a,))[b] * after((a, b))[c] for a in likely for b in likely for c in likely}
    cells = [(counts[tokens], num * float(share)) for tokens, share in shares.items() if num * share >= 5]
    rest = (num - sum(seen for seen, _ in cells), num - sum(expected for _, expected in cells))
    cells += [rest] if rest[1] >= 5 else []
    chi_square = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    assert len(cells) >= 5
    assert chi_square < quantile_of_chi_square(len(cells) - 1)
    assert sum(chunk.usage.accepted_tokens for chunk in chunks) > num / 2


def test_a_draft_model_of_another_vocabulary_is_refused(tiny: TinyModel) -> None:
    foreign = TinyModel(hf=tiny.hf, vocabulary=byte_vocabulary().__class__.from_bytes([b"a", b"b", b""], [2]))
    with pytest.raises(OptionError, match="vocabulary"):
        generate(tiny, [], None, draft_model=foreign)


def test_a_draft_model_that_fails_is_left_out(tiny: TinyModel, draft: TinyModel) -> None:
    async def main() -> Chunk:
        async with engine(tiny, draft_model=draft) as e:
            e._engine._speculator._runner.forward = lambda spans: 1 / 0
            chunks = await read_all([e.submit(PROMPTS[0], SamplingParams(temperature=0, max_tokens=9))])
            return chunks[0]

    assert len(asyncio.run(main()).token_ids) == 9
