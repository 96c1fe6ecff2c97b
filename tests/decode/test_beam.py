"""Beam search equals a search by brute force over the model's own log-probabilities, and keeps grammars and budgets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import torch

from constrained.decode.beam import Hypothesis, beam_search
from constrained.errors import BudgetError, RequestError
from tests.decode.mocks import EOS, ArrayGrammar, TinyModel
from tests.decode.test_engine import engine

PROMPT = [7, 8, 9, 10]


def search(model: TinyModel, grammar: Any = None, **options: Any) -> list[Hypothesis]:
    async def main() -> list[Hypothesis]:
        async with engine(model) as e:
            found = await beam_search(e, PROMPT, grammar, **options)
            assert e.stats().free_blocks == e.stats().total_blocks
            return found

    return asyncio.run(main())


def logprobs(model: TinyModel, tokens: tuple[int, ...]) -> torch.Tensor:
    model.hf.set_attn_implementation("eager")
    return model.hf(torch.tensor([[*PROMPT, *tokens]])).logits[0, -1].log_softmax(dim=-1)


def test_free_text_equals_the_search_by_hand(tiny: TinyModel) -> None:
    found = search(tiny, width=3, n=3, max_tokens=4, length_penalty=0.0)
    beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    done: list[tuple[float, tuple[int, ...]]] = []
    for length in range(4):
        grown = [(s + v, (*t, i)) for s, t in beams for i, v in enumerate(logprobs(tiny, t).tolist())]
        beams = []
        for score, tokens in sorted(grown, reverse=True):
            if len(beams) == 3:
                break
            (done if tokens[-1] == EOS or length == 3 else beams).append((score, tokens))
            if length == 3 and len(done) >= 3:
                break
    done.sort(reverse=True)
    assert [h.token_ids for h in found] == [tokens for _, tokens in done[:3]]
    assert [h.logprob for h in found] == pytest.approx([score for score, _ in done[:3]], abs=1e-3)


@pytest.mark.parametrize("max_tokens", [3, 5, 8, 20])
def test_every_output_under_a_grammar_is_whole_and_fits(tiny: TinyModel, max_tokens: int) -> None:
    found = search(tiny, ArrayGrammar(tiny.vocabulary), width=4, n=4, max_tokens=max_tokens)
    assert found
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({h.token_ids for h in found}) == len(found)
    for hypothesis in found:
        assert hypothesis.finish_reason == "stop"
        assert len(hypothesis.token_ids) <= max_tokens
        assert isinstance(json.loads(hypothesis.data), list)


def test_a_wider_search_finds_nothing_worse(tiny: TinyModel) -> None:
    narrow, wide = (search(tiny, width=w, max_tokens=5, length_penalty=0.0)[0] for w in (1, 8))
    assert wide.logprob >= narrow.logprob - 1e-4


@pytest.mark.parametrize(
    ("options", "error"),
    [({"width": 0}, RequestError), ({"width": 51}, RequestError), ({"n": 5}, RequestError), ({"max_tokens": 2}, BudgetError)],
)
def test_what_cannot_be_searched_is_refused(tiny: TinyModel, options: dict[str, int], error: type[Exception]) -> None:
    with pytest.raises(error):
        search(tiny, ArrayGrammar(tiny.vocabulary), **options)
