"""The Triton kernel in Triton's interpreter, against torch; a process of its own, since Triton asks the environment once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is not installed")

CHECK = """
import torch
from constrained.decode import masking, triton_masking

torch.manual_seed(0)
table = torch.randint(-(2**31), 2**31, (7, 157), dtype=torch.int64).to(torch.int32)
table[0], table[1] = -1, 0
slots = torch.tensor([0, 1, 2, 6, 3, 3])
inverses = torch.tensor([1.0, 2.0, 0.5, 1e6, 1.0, 0.7])
for width in (157 * 32, 157 * 32 - 5, 157 * 32 + 40, 31, 4096):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        logits = torch.randn(6, width).to(dtype)
        wide = torch.randn(6, 2 * width).to(dtype)[:, :width]
        for each in (logits, wide, torch.randn(width, 6).to(dtype).t()):
            got = triton_masking.masked_scores(each, table, slots, inverses)
            expected = masking.masked_scores(each, table, slots, inverses)
            assert torch.equal(got.isinf(), expected.isinf()), (width, dtype)
            assert torch.allclose(got.nan_to_num(neginf=0), expected.nan_to_num(neginf=0)), (width, dtype)
print("equal")
"""


def test_the_kernel_equals_torch() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "equal", done.stderr
