"""Attention of one sequence's rows over its whole past in plain torch: any device, any number of rows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from constrained.decode.attention import AttentionTraits


def dense_attention(query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
    """Causal attention of the last n positions to all L.

    query [heads, n, key dim], key [kv heads, L, key dim], value [kv heads, L, value dim] -> [n, heads, value dim].
    """
    groups = query.shape[0] // key.shape[0]
    num_rows, num_keys = query.shape[1], key.shape[1]
    square = num_rows == num_keys and not (traits.window and traits.window < num_keys)
    if traits.softcap or traits.sinks is not None:
        key, value = key.repeat_interleave(groups, dim=0), value.repeat_interleave(groups, dim=0)
        return _explicit(query, key, value, traits).transpose(0, 1)
    if square:
        key, value = key.repeat_interleave(groups, dim=0), value.repeat_interleave(groups, dim=0)
        out = scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True, scale=traits.scaling)
        return out[0].transpose(0, 1)
    # The heads of a group stand below each other as rows, so that no key is copied for them.
    rows = query.reshape(key.shape[0], groups * num_rows, -1)
    mask = _visible(num_rows, num_keys, traits.window, query.device).repeat(groups, 1)
    out = scaled_dot_product_attention(rows[None], key[None], value[None], attn_mask=mask, scale=traits.scaling)
    return out[0].reshape(query.shape[0], num_rows, -1).transpose(0, 1)


def _visible(num_rows: int, num_keys: int, window: int, device: torch.device) -> Tensor:
    """[n, L]: True where row i, at position L - n + i, may look."""
    rows = torch.arange(num_keys - num_rows, num_keys, device=device)[:, None]
    keys = torch.arange(num_keys, device=device)[None]
    visible = keys <= rows
    return visible & (keys > rows - window) if window else visible


def _explicit(query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
    scores = torch.matmul(query, key.transpose(1, 2)).float() * traits.scaling
    if traits.softcap:
        scores = torch.tanh(scores / traits.softcap) * traits.softcap
    visible = _visible(query.shape[1], key.shape[1], traits.window, query.device)
    scores = scores.masked_fill(~visible, float("-inf"))
    if traits.sinks is not None:
        sinks = traits.sinks.float().reshape(-1, 1, 1).expand(-1, scores.shape[1], 1)
        scores = torch.cat([scores, sinks], dim=-1)
    weights = torch.softmax(scores, dim=-1)[..., : key.shape[1]]
    return torch.matmul(weights.to(value.dtype), value)
