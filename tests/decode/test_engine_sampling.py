"""What a request may ask of the sampler, end to end: stops, biases, penalties, held-back ends, log-probabilities, seeds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
import torch

from constrained.decode.admission import admit
from constrained.decode.choices import ChoiceWorker
from constrained.decode.request import Chunk, SamplingParams
from constrained.decode.rows import RowTable
from constrained.errors import RequestError
from tests.decode.mocks import EOS, ArrayGrammar, TinyModel
from tests.decode.test_engine import PROMPTS, engine, read, read_all

GREEDY = SamplingParams(temperature=0, max_tokens=24)


def generate(model: TinyModel, params: list[SamplingParams], grammar: Any = None, **options: Any) -> list[Chunk]:
    async def main() -> list[Chunk]:
        async with engine(model, **options) as e:
            return await read_all([e.submit(PROMPTS[1], each, grammar) for each in params])

    return asyncio.run(main())


def logits_after(model: TinyModel, prompt: list[int], tokens: tuple[int, ...]) -> torch.Tensor:
    """[tokens, vocabulary]: what the model itself says before each token."""
    model.hf.set_attn_implementation("eager")
    ids = torch.tensor([[*prompt, *tokens]])
    return model.hf(ids).logits[0, len(prompt) - 1 : -1]


def test_every_two_bytes_of_a_text_stop_it_where_they_first_stand(tiny: TinyModel) -> None:
    ascii_only = dict.fromkeys(range(128, 256), -50.0)
    params = SamplingParams(temperature=0.8, seed=4, max_tokens=20, logit_bias=ascii_only)
    (free,) = generate(tiny, [params])
    stops = [free.data[i : i + 2].decode() for i in range(1, len(free.data) - 1)]
    for stop, chunk in zip(stops, generate(tiny, [replace(params, stop=(s,)) for s in stops]), strict=True):
        assert chunk.data == free.data[: free.data.find(stop.encode())]
        assert (chunk.finish_reason, chunk.stop_string) == ("stop", stop)


def test_held_back_bytes_come_when_the_text_ends(tiny: TinyModel) -> None:
    (free,) = generate(tiny, [replace(GREEDY, logit_bias=dict.fromkeys(range(128, 256), -50.0))])
    stop = free.data[-2:].decode() + "never"
    (chunk,) = generate(tiny, [replace(GREEDY, logit_bias=dict.fromkeys(range(128, 256), -50.0), stop=(stop,))])
    assert (chunk.data, chunk.stop_string) == (free.data, None)


def test_a_stop_token_ends_free_text_and_shows_nothing(tiny: TinyModel) -> None:
    (free,) = generate(tiny, [GREEDY])
    (cut,) = generate(tiny, [replace(GREEDY, stop_token_ids=frozenset({free.token_ids[3]}))])
    at = free.token_ids.index(free.token_ids[3])
    assert (cut.token_ids, cut.finish_reason) == (free.token_ids[: at + 1], "stop")
    assert cut.data == b"".join(tiny.vocabulary.token_bytes[t] for t in free.token_ids[:at])


def test_the_end_is_held_back_for_min_tokens(tiny: TinyModel) -> None:
    wants_end = {EOS: 100.0}
    at_once, later = generate(
        tiny, [replace(GREEDY, logit_bias=wants_end), replace(GREEDY, logit_bias=wants_end, min_tokens=9)]
    )
    assert at_once.token_ids == (EOS,)
    assert len(later.token_ids) == 10
    assert later.token_ids.index(EOS) == 9


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_held_back_end_is_masked_or_shifted_alike(tiny: TinyModel, temperature: float) -> None:
    (free,) = generate(tiny, [replace(GREEDY, temperature=temperature, seed=2)])
    ends = frozenset(free.token_ids[:3])
    held = replace(GREEDY, temperature=temperature, seed=2, stop_token_ids=ends, min_tokens=7)
    masked, shifted = generate(tiny, [held, replace(held, logprobs=0)])
    assert masked.token_ids == shifted.token_ids
    assert not ends & set(masked.token_ids[:7])
    assert generate(tiny, [replace(held, min_tokens=0)])[0].token_ids == free.token_ids[:1]


@pytest.mark.parametrize("num_said", [0, 2, 5])
def test_an_end_is_held_back_behind_guesses_too(tiny: TinyModel, num_said: int) -> None:
    sequence = admit(tiny, 256, [1], replace(GREEDY, min_tokens=4), None, None)
    for token in range(num_said):
        sequence.append(token)
    worker = ChoiceWorker(RowTable(2, tiny.vocabulary.num_words, torch.device("cpu")))
    (choices,) = worker.start([sequence], [[7, 8, 9]]).wait(1.0)
    worker.close()
    assert choices is not None
    assert [choice is not None for choice in choices] == [num_said + i < 4 for i in range(4)]


def test_a_bias_decides_and_a_penalty_avoids_repetition(tiny: TinyModel) -> None:
    biased, varied, plain = generate(
        tiny,
        [
            replace(GREEDY, logit_bias={65: 100.0}),
            replace(GREEDY, presence_penalty=100.0),
            replace(GREEDY, repetition_penalty=1.0),
        ],
    )
    assert biased.data == b"A" * 24
    assert len(set(varied.token_ids)) == len(varied.token_ids)
    assert plain.token_ids == generate(tiny, [GREEDY])[0].token_ids


def test_a_seed_holds_with_everything_on_whatever_else_is_in_the_batch(tiny: TinyModel) -> None:
    params = SamplingParams(
        temperature=1.2, top_k=50, top_p=0.9, min_p=0.01, seed=5, max_tokens=30, repetition_penalty=1.2, frequency_penalty=0.3,
        presence_penalty=0.2, logit_bias={70: 1.0}, min_tokens=4, logprobs=2,
    )  # fmt: skip
    (alone,) = generate(tiny, [params])
    others = [replace(params, seed=i, top_k=0, logprobs=None, temperature=i % 2) for i in range(6)]
    assert generate(tiny, [*others, params])[-1].token_ids == alone.token_ids
    assert generate(tiny, [replace(params, seed=6)])[0].token_ids != alone.token_ids


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_log_probabilities_are_those_of_the_model(tiny: TinyModel, temperature: float) -> None:
    params = SamplingParams(temperature=temperature, seed=3, max_tokens=12, logprobs=3, top_k=20, frequency_penalty=0.5)
    (chunk,) = generate(tiny, [params])
    expected = logits_after(tiny, PROMPTS[1], chunk.token_ids).log_softmax(dim=-1)
    assert [entry.token_id for entry in chunk.logprobs] == list(chunk.token_ids)
    for entry, row in zip(chunk.logprobs, expected, strict=True):
        assert entry.logprob == pytest.approx(row[entry.token_id].item(), abs=1e-3)
        best = row.topk(3)
        assert [token for token, _ in entry.top] == best.indices.tolist()
        assert [value for _, value in entry.top] == pytest.approx(best.values.tolist(), abs=1e-3)


def test_log_probabilities_under_a_grammar_are_of_what_it_allows_or_of_all_on_request(tiny: TinyModel) -> None:
    grammar = ArrayGrammar(tiny.vocabulary)
    params = SamplingParams(temperature=1.0, seed=8, max_tokens=12, logprobs=4)
    masked, unmasked = generate(tiny, [params, replace(params, unmasked_logprobs=True)], grammar)
    assert masked.token_ids == unmasked.token_ids
    logits = logits_after(tiny, PROMPTS[1], masked.token_ids)
    matcher = grammar.matcher()
    for token, row, under, free in zip(masked.token_ids, logits, masked.logprobs, unmasked.logprobs, strict=True):
        words = matcher.mask_row().words
        allowed = torch.tensor([bool((int(words[i // 32]) >> (i % 32)) & 1) for i in range(len(row))])
        assert free.logprob == pytest.approx(row.log_softmax(dim=-1)[token].item(), abs=1e-3)
        if under.logprob != 0.0:
            expected = row.masked_fill(~allowed, float("-inf")).log_softmax(dim=-1)
            assert under.logprob == pytest.approx(expected[token].item(), abs=1e-3)
        assert all(allowed[other] for other, _ in under.top)
        assert matcher.accept_token(token)


def test_no_log_probabilities_where_none_were_asked_for(tiny: TinyModel) -> None:
    none, chosen_only = generate(tiny, [GREEDY, replace(GREEDY, logprobs=0)])
    assert none.logprobs == ()
    assert len(chosen_only.logprobs) == 24
    assert all(entry.top == () for entry in chosen_only.logprobs)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        (SamplingParams(stop=("a",)), "stop"),
        (SamplingParams(stop_token_ids=frozenset({3})), "stop_token_ids"),
        (SamplingParams(logit_bias={10**6: 1.0}), "logit_bias"),
    ],
)
def test_what_a_grammar_or_the_vocabulary_cannot_honour_is_refused(tiny: TinyModel, params: SamplingParams, field: str) -> None:
    async def main() -> None:
        async with engine(tiny) as e:
            with pytest.raises(RequestError) as caught:
                e.submit([1], params, ArrayGrammar(tiny.vocabulary))
            assert caught.value.field == field
            await read(e.submit([1], SamplingParams(max_tokens=1)))

    asyncio.run(main())
