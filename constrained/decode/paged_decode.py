"""Attention of decode rows, one new token a sequence, over paged KV memory on any device: shapes and work depend on the
shapes of the arguments alone, nothing is asked of the host, so that a step of it can be recorded and replayed (`graphs`).

On a CUDA device with Triton one kernel reads the blocks in place (`triton_decode`); elsewhere torch gathers them here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from constrained.decode.attention import AttentionTraits


def reads_in_place(device: torch.device) -> bool:
    """Whether blocks are read where they lie, so that a table may be far wider than what its sequence needs."""
    return device.type == "cuda" and find_spec("triton") is not None


def decode_attention(device: torch.device) -> Callable[..., Tensor]:
    """What computes as `gathered_decode` does, in the best way that the device has."""
    if reads_in_place(device):
        from constrained.decode import triton_decode

        return triton_decode.paged_decode
    return gathered_decode


def gathered_decode(
    query: Tensor,  # [S, query heads, key dim]
    keys: Tensor,  # [num_blocks, block_len, kv heads, key dim]
    values: Tensor,  # [num_blocks, block_len, kv heads, value dim]
    tables: Tensor,  # [S, W] blocks; any valid number behind those that a sequence has
    ends: Tensor,  # [S] lengths, the new token included; at least 1
    traits: AttentionTraits,
) -> Tensor:
    """[S, query heads, value dim]. All blocks of the tables are copied, and what a sequence does not have is masked."""
    past_keys = keys[tables].flatten(1, 2).transpose(1, 2)  # [S, kv heads, L, key dim]
    past_values = values[tables].flatten(1, 2).transpose(1, 2)
    positions = torch.arange(past_keys.shape[2], device=query.device)[None]
    visible = positions < ends[:, None]
    # What an earlier owner left behind the end of a block may be NaN, which no mask would hide.
    for past in (past_keys, past_values):
        past.masked_fill_(~visible[:, None, :, None], 0.0)
    if traits.window:
        visible &= positions >= ends[:, None] - traits.window
    # The heads of a group stand below each other as rows, so that no key is copied for them.
    num_kv_heads = keys.shape[2]
    rows = query.reshape(len(query), num_kv_heads, -1, query.shape[2])  # [S, kv heads, group, key dim]
    if traits.softcap or traits.sinks is not None:
        out = _explicit(rows, past_keys, past_values, visible, traits)
    else:
        mask = visible[:, None, None]
        out = scaled_dot_product_attention(rows, past_keys, past_values, attn_mask=mask, scale=traits.scaling)
    return out.flatten(1, 2)


def _explicit(rows: Tensor, keys: Tensor, values: Tensor, visible: Tensor, traits: AttentionTraits) -> Tensor:
    scores = torch.matmul(rows, keys.transpose(2, 3)).float() * traits.scaling
    if traits.softcap:
        scores = torch.tanh(scores / traits.softcap) * traits.softcap
    scores = scores.masked_fill(~visible[:, None, None], float("-inf"))
    if traits.sinks is not None:
        sinks = traits.sinks.float().view(1, *rows.shape[1:3], 1).expand(len(rows), -1, -1, 1)
        scores = torch.cat([scores, sinks], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., : keys.shape[2]]
    return torch.matmul(weights.to(values.dtype), values)
