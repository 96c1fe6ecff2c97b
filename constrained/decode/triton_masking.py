"""The mask on a CUDA device in one Triton kernel: gather each row's mask, apply it, divide by the temperature.

`masking.masked_scores` says the same in torch. Imported only where there is such a device, or Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 4096


@triton.jit  # type: ignore[untyped-decorator]
def _scores(  # type: ignore[no-untyped-def]
    logits, table, slots, inverses, out, width, num_words, stride, BLOCK: tl.constexpr
) -> None:
    row = tl.program_id(0)
    tokens = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = tokens < width
    place = tokens // 32
    slot = tl.load(slots + row).to(tl.int64)
    words = tl.load(table + slot * num_words + place, mask=place < num_words, other=0)
    allowed = ((words >> (tokens % 32)) & 1) == 1
    values = tl.load(logits + row.to(tl.int64) * stride + tokens, mask=inside, other=0.0).to(tl.float32)
    scores = tl.where(allowed, values * tl.load(inverses + row), float("-inf"))
    tl.store(out + row.to(tl.int64) * width + tokens, scores, mask=inside)


def masked_scores(logits: Tensor, table: Tensor, slots: Tensor, inverses: Tensor) -> Tensor:
    """Float32 [B, V]: logits [B, V] times `inverses` [B] where the rows `slots` [B] of `table` allow, else -inf."""
    num_rows, width = logits.shape
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    out = torch.empty(num_rows, width, dtype=torch.float32, device=logits.device)
    kernel: Any = _scores
    kernel[(num_rows, triton.cdiv(width, _BLOCK))](
        logits, table, slots, inverses, out, width, table.shape[1], logits.stride(0), BLOCK=_BLOCK
    )
    return out
