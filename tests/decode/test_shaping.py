"""Penalties equal transformers' and OpenAI's formulas; bias adds; the end is held back; drafts leave no trace."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import RepetitionPenaltyLogitsProcessor

from constrained.decode.request import SamplingParams
from constrained.decode.shaping import LogitShaper, adjust
from constrained.errors import RequestError

WIDTH = 300
TOKENS = st.lists(st.integers(0, WIDTH - 1), max_size=120)


def shaped(shaper: LogitShaper, logits: torch.Tensor, num_output: int, drafts: list[int] = []) -> torch.Tensor:  # noqa: B006
    scores = logits.clone()
    adjust(scores, [shaper.adjustment(num_output, drafts)])
    return scores


@given(TOKENS, TOKENS)
def test_the_repetition_penalty_is_that_of_transformers(prompt: list[int], output: list[int]) -> None:
    logits = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(1))
    shaper = LogitShaper(SamplingParams(repetition_penalty=1.7), prompt, ())
    for token in output:
        shaper.add(token)
    seen = torch.tensor([prompt + output], dtype=torch.int64)
    expected = RepetitionPenaltyLogitsProcessor(1.7)(seen, logits.clone()) if prompt + output else logits
    assert torch.allclose(shaped(shaper, logits, len(output)), expected)


@given(TOKENS, TOKENS)
def test_presence_and_frequency_look_at_the_output_alone(prompt: list[int], output: list[int]) -> None:
    logits = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(2))
    shaper = LogitShaper(SamplingParams(presence_penalty=0.5, frequency_penalty=-0.25), prompt, ())
    for token in output:
        shaper.add(token)
    counts = torch.bincount(torch.tensor(output, dtype=torch.int64), minlength=WIDTH)
    expected = logits - 0.5 * (counts > 0) + 0.25 * counts
    assert torch.allclose(shaped(shaper, logits, len(output)), expected)


@given(TOKENS, TOKENS)
def test_drafts_count_as_output_and_leave_no_trace(output: list[int], drafts: list[int]) -> None:
    logits = torch.randn(1, WIDTH, generator=torch.Generator().manual_seed(3))
    params = SamplingParams(repetition_penalty=1.3, frequency_penalty=0.5, presence_penalty=0.1)
    shaper, other = LogitShaper(params, [1, 2], ()), LogitShaper(params, [1, 2], ())
    for token in output:
        shaper.add(token)
        other.add(token)
    for token in drafts:
        other.add(token)
    before = shaped(shaper, logits, len(output))
    assert torch.equal(shaped(shaper, logits, len(output) + len(drafts), drafts), shaped(other, logits, 0))
    assert torch.equal(shaped(shaper, logits, len(output)), before)


def test_bias_adds_and_the_end_is_held_back() -> None:
    logits = torch.zeros(2, WIDTH)
    shaper = LogitShaper(SamplingParams(logit_bias={5: 2.0, 9: -3.5}, min_tokens=3), [5], {7, 8})
    adjust(logits, [shaper.adjustment(2), shaper.adjustment(3)])
    assert logits[0].isinf().nonzero().flatten().tolist() == [7, 8]
    assert logits[1].isfinite().all()
    assert logits[:, [5, 9]].tolist() == [[2.0, -3.5]] * 2
    assert logits[1].count_nonzero() == 2


def test_rows_without_adjustment_stay() -> None:
    logits = torch.randn(3, WIDTH)
    before = logits.clone()
    shaper = LogitShaper(SamplingParams(logit_bias={3: 1.0}), [], ())
    adjust(logits, [None, shaper.adjustment(0), None])
    assert torch.equal(logits[[0, 2]], before[[0, 2]])
    assert (logits - before).nonzero().tolist() == [[1, 3]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("repetition_penalty", 0.0),
        ("presence_penalty", float("nan")),
        ("frequency_penalty", float("inf")),
        ("logit_bias", {1: float("-inf")}),
        ("stop", ("a", "")),
        ("min_tokens", -1),
        ("min_tokens", 2000),
        ("logprobs", -1),
        ("logprobs", 101),
        ("time_limit_s", 0.0),
    ],
)
def test_values_out_of_range_are_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(RequestError, match=field) as caught:
        SamplingParams(**{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field
