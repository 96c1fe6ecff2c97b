"""Every attention backend equals attention over each sequence's whole past, whatever the step mixes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from constrained.decode.attention import AttentionTraits, LayerShape
from constrained.decode.attention_kernels import BLOCK_LEN
from constrained.decode.batch import Span, pack
from constrained.decode.cpu_attention import CpuPagedAttention
from constrained.decode.crew import Crew
from constrained.decode.dense_attention import dense_attention
from constrained.decode.torch_attention import TorchPagedAttention

SHAPE = LayerShape(num_kv_heads=2, key_dim=22, value_dim=12)
NUM_HEADS = 6
NUM_BLOCKS = 16
TRAITS = {
    "plain": AttentionTraits(scaling=0.3),
    "window": AttentionTraits(scaling=0.3, window=9),
    "softcap": AttentionTraits(scaling=0.3, softcap=2.0),
    "sinks": AttentionTraits(scaling=0.3, sinks=torch.linspace(-2, 3, NUM_HEADS)),
}
# Lengths by step of three sequences: prefill in chunks, decode rows, forced runs; blocks are shuffled.
STEPS = ((40, 3, 1), (1, 1, 60), (5, 1, 1), (20, 70, 1), (1, 1, 1))
BLOCKS = ((7, 2, 11, 4), (0, 9, 1, 3), (5, 8, 6, 10))


def make(kind: str, dtype: torch.dtype) -> CpuPagedAttention | TorchPagedAttention:
    if kind == "cpu":
        return CpuPagedAttention({0: SHAPE}, NUM_BLOCKS, dtype)
    return TorchPagedAttention({0: SHAPE}, NUM_BLOCKS, BLOCK_LEN, dtype, torch.device("cpu"))


@pytest.mark.parametrize("traits", TRAITS.values(), ids=TRAITS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize("kind", ["cpu", "torch"])
def test_equals_attention_over_the_whole_past(kind: str, dtype: torch.dtype, tolerance: float, traits: AttentionTraits) -> None:
    torch.manual_seed(0)
    backend = make(kind, dtype)
    past: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[], [], []]
    lengths = [0, 0, 0]
    for counts in STEPS:
        spans = [Span([0] * n, lengths[i], BLOCKS[i], 0) for i, n in enumerate(counts)]
        batch = pack(spans)
        query = torch.randn(NUM_HEADS, batch.num_rows, SHAPE.key_dim).to(dtype)
        key = torch.randn(SHAPE.num_kv_heads, batch.num_rows, SHAPE.key_dim).to(dtype)
        value = torch.randn(SHAPE.num_kv_heads, batch.num_rows, SHAPE.value_dim).to(dtype)
        backend.begin(batch)
        got = backend.attend(0, query, key, value, traits)
        for i, count in enumerate(counts):
            rows = slice(int(batch.row_starts[i]), int(batch.row_starts[i + 1]))
            past[i].append((key[:, rows], value[:, rows]))
            lengths[i] += count
            keys, values = (torch.cat(parts, dim=1).float() for parts in zip(*past[i], strict=True))
            expected = dense_attention(query[:, rows].float(), keys, values, traits)
            assert (got[rows].float() - expected).abs().max() <= tolerance


def test_window_and_causality_by_hand() -> None:
    """With equal scores a row's output is the mean of the values it may see."""
    value = torch.arange(10.0).reshape(1, 10, 1)
    query, key = torch.zeros(1, 10, 4), torch.zeros(1, 10, 4)
    out = dense_attention(query, key, value, AttentionTraits(scaling=1.0, window=3))[:, 0, 0]
    assert out.tolist() == pytest.approx([0, 0.5] + [i - 1.0 for i in range(2, 10)])


def test_what_an_earlier_owner_left_in_a_block_is_never_read() -> None:
    for kind in ("cpu", "torch"):
        backend = make(kind, torch.float32)
        shape = (SHAPE.num_kv_heads, 10)
        poison = torch.full((*shape, SHAPE.key_dim), float("nan")), torch.full((*shape, SHAPE.value_dim), float("nan"))
        query = torch.randn(NUM_HEADS, 10, SHAPE.key_dim)
        backend.begin(pack([Span([0] * 10, 0, [3], 0)]))
        backend.attend(0, query, *poison, TRAITS["plain"])
        backend.begin(pack([Span([0], 0, [3], 0)]))
        clean = torch.randn(2, 1, SHAPE.key_dim), torch.randn(2, 1, SHAPE.value_dim)
        out = backend.attend(0, query[:, :1], *clean, TRAITS["plain"])
        assert np.isfinite(out.numpy()).all(), kind


@pytest.mark.parametrize("num_threads", [2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_threads_share_the_work_and_change_nothing(num_threads: int, dtype: torch.dtype) -> None:
    outputs = []
    for threads in (1, num_threads):
        torch.manual_seed(1)
        backend, crew = CpuPagedAttention({0: SHAPE}, NUM_BLOCKS, dtype), Crew(threads, dtype)
        backend.begin(pack([Span([0] * n, 0, BLOCKS[i], 0) for i, n in enumerate((16, 90, 5))]))
        parts = [torch.randn(heads, 111, dim).to(dtype) for heads, dim in ((NUM_HEADS, 22), (2, 22), (2, 12))]
        with crew.at_work():
            outputs.append([backend.attend(0, *parts, TRAITS["plain"]) for _ in range(20)])
        crew.close()
    assert all(torch.equal(outputs[0][0], out) for out in (*outputs[0], *outputs[1]))
