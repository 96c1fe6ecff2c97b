"""Decode attention in Triton's interpreter, against torch; a process of its own, as Triton asks the environment once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

CHECK = """
import torch
from constrained.decode import triton_decode
from constrained.decode.attention import AttentionTraits
from constrained.decode.paged_decode import gathered_decode

torch.manual_seed(0)
BLOCK_LEN, NUM_BLOCKS = 32, 23
ENDS = torch.tensor([1, 31, 32, 33, 64, 65, 150, 200])
TABLES = torch.stack([torch.randperm(NUM_BLOCKS)[:7] for _ in ENDS])
SHAPES = [(6, 2, 22, 12), (8, 8, 16, 16), (4, 1, 80, 64), (40, 2, 8, 8)]


def case(shape, dtype, traits, parts, tables=TABLES):
    heads, kv_heads, key_dim, value_dim = shape
    query = torch.randn(heads, len(ENDS), key_dim).to(dtype).transpose(0, 1)
    keys, values = (torch.randn(NUM_BLOCKS, BLOCK_LEN, kv_heads, d).to(dtype) for d in (key_dim, value_dim))
    for i, end in enumerate(ENDS.tolist()):  # what lies behind the end is never read
        if end % BLOCK_LEN and not (TABLES[:, : -(-int(ENDS.max()) // BLOCK_LEN)] == TABLES[i, end // BLOCK_LEN]).sum() > 1:
            keys[TABLES[i, end // BLOCK_LEN], end % BLOCK_LEN :] = float("nan")
            values[TABLES[i, end // BLOCK_LEN], end % BLOCK_LEN :] = float("nan")
    got = triton_decode.paged_decode(query, keys, values, tables, ENDS, traits, parts)
    expected = gathered_decode(query.float(), keys.float(), values.float(), TABLES, ENDS, traits)
    assert got.shape == (len(ENDS), heads, value_dim) and got.dtype == dtype
    tolerance = 3e-6 if dtype == torch.float32 else 3e-2
    assert (got.float() - expected).abs().max() <= tolerance, (shape, dtype, traits, parts)


for shape in SHAPES:
    sinks = torch.randn(shape[0])
    traits = {
        "plain": AttentionTraits(shape[2] ** -0.5),
        "window": AttentionTraits(0.3, window=40),
        "short window": AttentionTraits(0.3, window=3),
        "softcap": AttentionTraits(0.3, softcap=2.0),
        "all": AttentionTraits(0.3, window=70, softcap=5.0, sinks=sinks),
    }
    for i, each in enumerate(traits.values()):
        for parts in (1, 2, 4) if shape == SHAPES[0] else ((1, 4)[i % 2],):
            case(shape, torch.float32, each, parts)
    case(shape, torch.float16, traits["all"], 2)
    case(shape, torch.float16, traits["plain"], None)  # not bfloat16: the interpreter's dot takes its bits for integers
case(SHAPES[0], torch.float32, AttentionTraits(0.3), 2, TABLES.t().contiguous().t())
assert [triton_decode.num_parts(*each) for each in ((1, 8, 8192), (64, 8, 8192), (1, 8, 300), (4, 8, 32768))] == [16, 1, 1, 16]
print("equal")
"""


def test_the_kernel_equals_torch() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "equal", done.stderr
