"""Masks, argmax and draws: numba equals torch equals brute force; truncation equals transformers' own warpers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from constrained.decode import mask_kernels, masking
from constrained.decode.request import SamplingParams
from constrained.decode.sampler import Pick, Sampler
from constrained.decode.seeds import SeededStream
from constrained.errors import RequestError

WIDTH, NUM_WORDS = 1013, 31  # the logits are wider than the words
GREEDY = SamplingParams(temperature=0)


def make_table() -> torch.Tensor:
    """Rows: all, random, one bit, none, the last words only."""
    words = np.random.default_rng(0).integers(-(2**31), 2**31, (5, NUM_WORDS), np.int64).astype(np.int32)
    words[0], words[2:] = -1, 0
    words[2, 4] = 1 << 9
    words[4, 30] = -(2**31)
    return torch.from_numpy(words)


def brute_force(table: torch.Tensor, slot: int) -> list[int]:
    return [i for i in range(min(WIDTH, NUM_WORDS * 32)) if (int(table[slot, i // 32]) >> (i % 32)) & 1]


def test_masks_equal_brute_force() -> None:
    table, slots = make_table(), np.arange(5)
    logits = torch.randn(5, WIDTH)
    by_torch = masking.mask_logits(logits, table, torch.from_numpy(slots))
    by_kernel = logits.clone()
    mask_kernels.mask_logits(by_kernel.numpy(), table.numpy(), slots)
    assert torch.equal(by_torch, by_kernel)
    for slot in slots:
        allowed = brute_force(table, slot)
        assert by_kernel[slot].isfinite().nonzero().flatten().tolist() == allowed
        assert torch.equal(by_kernel[slot, allowed], logits[slot, allowed])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_greedy_is_the_first_best_allowed_token(dtype: torch.dtype) -> None:
    table = make_table()
    slots = [0, 1, 2, 3, 4, 1, 1, 1]
    logits = torch.randn(len(slots), WIDTH).to(dtype)
    logits[5] = -3.0  # all equal
    logits[6] = float("-inf")
    logits[7] = -logits[7].abs() - 1
    expected = [
        max(brute_force(table, slot), key=lambda i, row=row: logits[row, i].item(), default=-1)
        for row, slot in enumerate(slots)
    ]
    expected[6] = -1
    got = Sampler(table).sample(logits, [Pick(slot, GREEDY, 0.0) for slot in slots])
    assert got == expected
    assert masking.masked_argmax(logits, table, torch.tensor(slots)).tolist()[:5] == expected[:5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_greedy_over_runs_of_allowed_tokens(dtype: torch.dtype) -> None:
    """Words of allowed tokens lie in runs of every length, rows of logits apart from each other, and the best come twice."""
    chance = np.random.default_rng(3)
    words = chance.choice(np.array([-1, -1, -1, -1, -1, -1, 0, 12345], np.int32), (64, 32))
    words[:8] = -1
    logits = torch.from_numpy(chance.integers(-40, 40, (64, WIDTH + 7))).to(dtype)[:, :WIDTH]
    table = torch.from_numpy(words)
    allowed = torch.from_numpy((words[:, :, None] >> np.arange(32)) & 1).flatten(1)[:, :WIDTH].bool()
    expected = logits.float().masked_fill(~allowed, float("-inf")).argmax(dim=1).tolist()
    assert Sampler(table).sample(logits, [Pick(slot, GREEDY, 0.0) for slot in range(64)]) == expected


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("kernels", [True, False])
def test_a_broken_row_yields_no_token_and_harms_no_other(bad: float, temperature: float, kernels: bool) -> None:
    logits = torch.zeros(3, WIDTH)
    logits[0, 7] = bad
    logits[1] = float("-inf")
    logits[2, 9] = 1000.0
    params = SamplingParams(temperature=temperature)
    got = Sampler(make_table(), kernels).sample(logits, [Pick(0, params, 0.5)] * 3)
    assert got == [-1, -1, 9]


def test_draws_are_the_inverse_of_the_distribution_function() -> None:
    weights = torch.rand(4, WIDTH) * (torch.rand(4, WIDTH) < 0.3)
    weights[3] = 0.0
    uniforms = np.array([0.0, 0.4, 1.0 - 2.0**-53, 0.5])
    got = np.empty(4, np.int64)
    mask_kernels.draw(weights.numpy(), uniforms, got)
    assert got.tolist() == masking.draw(weights, torch.from_numpy(uniforms)).tolist()
    positive = weights.numpy()[2].nonzero()[0]
    assert got[2] == positive[-1]
    assert got[0] == weights.numpy()[0].nonzero()[0][0]
    assert got[3] == -1


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=0.7),
        SamplingParams(top_k=5),
        SamplingParams(top_p=0.6),
        SamplingParams(top_p=0.999),
        SamplingParams(min_p=0.2),
        SamplingParams(temperature=1.5, top_k=40, top_p=0.8, min_p=0.1),
        SamplingParams(temperature=2.0, top_k=2000, top_p=1e-6),
    ],
    ids=str,
)
def test_the_distribution_equals_transformers(params: SamplingParams) -> None:
    """A grid of uniforms shows the whole distribution: each token gets its share of the grid."""
    torch.manual_seed(1)
    table, num = make_table(), 4000
    logits = torch.randn(1, WIDTH) * 3
    masked = masking.mask_logits(logits, table, torch.tensor([1]))
    scores = TemperatureLogitsWarper(params.temperature)(None, masked)
    if params.top_k:
        scores = TopKLogitsWarper(min(params.top_k, len(brute_force(table, 1))))(None, scores)
    if params.top_p < 1:
        scores = TopPLogitsWarper(params.top_p)(None, scores)
    if params.min_p:
        scores = MinPLogitsWarper(params.min_p)(None, scores)
    expected = torch.softmax(scores, dim=-1)[0]
    picks = [Pick(1, params, (i + 0.5) / num) for i in range(num)]
    got = torch.tensor(Sampler(table).sample(logits.expand(num, -1), picks))
    shares = torch.bincount(got, minlength=WIDTH) / num
    assert (shares - expected).abs().max() <= 2 / num
    assert not shares[expected == 0].any()


def test_rows_of_one_batch_do_not_touch_each_other() -> None:
    table = make_table()
    logits = torch.randn(6, WIDTH)
    picks = [
        Pick(0, GREEDY, 0.1),
        Pick(1, SamplingParams(top_k=3), 0.2),
        Pick(1, SamplingParams(), 0.3),
        Pick(0, SamplingParams(top_p=0.5), 0.4),
        Pick(4, SamplingParams(temperature=1e-5), 0.5),
        Pick(1, GREEDY, 0.6),
    ]
    alone = [Sampler(table).sample(logits[i : i + 1], [pick])[0] for i, pick in enumerate(picks)]
    assert Sampler(table).sample(logits, picks) == alone
    assert Sampler(table, kernels=False).sample(logits, picks) == alone


def test_a_seed_gives_even_numbers_that_depend_on_position_alone() -> None:
    numbers = [SeededStream(5).uniform(i) for i in range(4000)]
    assert numbers == [SeededStream(5).uniform(i) for i in range(4000)]
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    assert ((counts - 200) ** 2 / 200).sum() < 45  # chi-square, 19 degrees of freedom, p = 0.0007
    assert SeededStream(6).uniform(0) != numbers[0]
    assert SeededStream(None).uniform(0) != SeededStream(None).uniform(0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_k", -1),
        ("min_p", 2.0),
        ("max_tokens", 0),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(RequestError, match=field) as caught:
        SamplingParams(**{field: value})
    assert caught.value.field == field
