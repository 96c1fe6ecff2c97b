"""Decode attention in Triton's interpreter, against torch, and compiled for devices that are not here.

In processes of their own, since Triton asks the environment once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


COMPILE = """
from triton import next_power_of_2
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from constrained.decode import triton_decode, triton_masking

NUMBERS = {"scaling": "fp32", "softcap": "fp32"}


def built(kernel, capability, pointers, constants):
    names = kernel.arg_names
    kinds = {n: "constexpr" if n in constants else pointers.get(n) or NUMBERS.get(n) or "i32" for n in names}
    source = ASTSource(kernel, kinds, {(names.index(n),): value for n, value in constants.items()})
    done = compile(source, target=GPUTarget("cuda", capability, 32), options={"num_stages": 2})
    assert done.asm["cubin"] and done.metadata.shared <= 99 << 10  # what a program has on the smallest of these devices


def attention(capability, dtype, size, group, dim, parts, window=0, softcap=False, sinks=False):
    half, single = "*" + dtype, "*fp32"
    pointers = dict.fromkeys(("query", "keys", "values", "sinks"), half) | dict.fromkeys(("tables", "ends"), "*i64")
    pointers |= {"out": half if parts == 1 else single, "peaks": single, "sums": single}
    room = next_power_of_2(dim)
    constants = dict(GROUP=group, ROWS=max(16, next_power_of_2(group)), KEY_DIM=dim, KEY_ROOM=room, VALUE_DIM=dim)
    constants |= dict(VALUE_ROOM=room, BLOCK_LEN=32, TILE=triton_decode._tile(dim, size), PARTS=parts, WINDOW=window)
    constants |= dict(HAS_SOFTCAP=softcap, HAS_SINKS=sinks, PRECISION="ieee")
    built(triton_decode._attend, capability, pointers, constants)


attention(90, "bf16", 2, 4, 128, 1)
attention(80, "bf16", 2, 4, 128, 8)
attention(90, "fp16", 2, 8, 64, 1, window=128, sinks=True)
attention(89, "bf16", 2, 2, 256, 2, window=4096, softcap=True)
attention(80, "fp32", 4, 1, 80, 1)
join = dict.fromkeys(("parts", "peaks", "sums"), "*fp32") | {"out": "*bf16"}
built(triton_decode._join, 80, join, dict(PARTS=8, VALUE_DIM=80, VALUE_ROOM=128))
scores = {"logits": "*bf16", "table": "*i32", "slots": "*i64", "inverses": "*fp32", "out": "*fp32"}
built(triton_masking._scores, 90, scores, dict(BLOCK=triton_masking._BLOCK))
print("compiled")
"""


def run(code: str, **changes: str) -> tuple[str, str]:
    environment = {**os.environ, "TRITON_DEFAULT_FP_FUSION": "1", **changes}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.stderr


def test_the_kernel_equals_torch() -> None:
    said, errors = run(CHECK, TRITON_INTERPRET="1")
    assert said == "equal", errors


def test_the_kernels_compile_for_devices_that_are_not_here(tmp_path: Path) -> None:
    """To machine code: the interpreter knows nothing of types, shapes in registers and shared memory."""
    said, errors = run(COMPILE, TRITON_CACHE_DIR=str(tmp_path))
    assert said == "compiled", errors
