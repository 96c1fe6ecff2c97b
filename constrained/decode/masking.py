"""Masks, argmax and draws in plain torch, on any device: what `mask_kernels.py` does on a CPU, said once more.

`table` is int32 [capacity, num_words], `slots` int64 [B]; bit i of word w is token 32 w + i.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor


def allowed_tokens(table: Tensor, slots: Tensor, width: int) -> Tensor:
    """Bool [B, width]; False beyond the words."""
    shifts = torch.arange(32, device=table.device, dtype=torch.int32)
    bits = (table[slots][:, :, None] >> shifts) & 1
    allowed = bits.flatten(1).bool()
    missing = width - allowed.shape[1]
    return torch.nn.functional.pad(allowed, (0, missing)) if missing > 0 else allowed[:, :width]


def mask_logits(logits: Tensor, table: Tensor, slots: Tensor) -> Tensor:
    """Logits [B, V] with -inf wherever the row's bit is 0, and beyond the words."""
    return logits.masked_fill(~allowed_tokens(table, slots, logits.shape[1]), float("-inf"))


def masked_scores(logits: Tensor, table: Tensor, slots: Tensor, inverses: Tensor) -> Tensor:
    """Float32 [B, V]: `mask_logits`, times `inverses` [B]; one kernel where the device has Triton."""
    if logits.is_cuda and find_spec("triton") is not None:
        from constrained.decode import triton_masking

        return triton_masking.masked_scores(logits, table, slots, inverses)
    return mask_logits(logits.float(), table, slots) * inverses[:, None]


def masked_argmax(logits: Tensor, table: Tensor, slots: Tensor) -> Tensor:
    """The best allowed token [B]; -1 where none is finite, or where one is NaN or +inf."""
    return finite_argmax(mask_logits(logits, table, slots))


def finite_argmax(scores: Tensor) -> Tensor:
    """The best token [B] of scores [B, V]; -1 where none is finite, or where one is NaN or +inf."""
    peaks, tokens = scores.max(dim=-1)
    return torch.where(peaks.isfinite(), tokens, -1)


def draw(weights: Tensor, uniforms: Tensor) -> Tensor:
    """Inverse transform sampling of weights [B, V] by uniforms [B]; -1 where they do not sum to a positive number."""
    sums = weights.double().cumsum(dim=-1)
    total = sums[:, -1:]
    tokens = torch.searchsorted(sums, uniforms.double()[:, None] * total, right=True)
    positions = torch.arange(weights.shape[1], device=weights.device)
    last = torch.where(weights > 0, positions, -1).amax(dim=-1, keepdim=True)
    tokens = torch.minimum(tokens, last)
    return torch.where((total > 0) & total.isfinite(), tokens, -1)[:, 0]
