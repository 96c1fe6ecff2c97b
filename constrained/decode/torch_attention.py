"""Paged KV in plain torch, for any device: blocks [num_blocks, block_len, kv heads, dim] per layer.

Decode rows (one new token each) go through one padded attention; longer spans go sequence by sequence.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from constrained.decode.attention import AttentionTraits, LayerShape
from constrained.decode.batch import PackedBatch
from constrained.decode.blocks import Copy
from constrained.decode.dense_attention import dense_attention


class TorchPagedAttention:
    """An `AttentionBackend`; memory is allocated here, once."""

    def __init__(
        self, layers: dict[int, LayerShape], num_blocks: int, block_len: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        def blocks(heads: int, dim: int) -> Tensor:
            return torch.zeros(num_blocks, block_len, heads, dim, dtype=dtype, device=device)

        self._keys = {i: blocks(shape.num_kv_heads, shape.key_dim) for i, shape in layers.items()}
        self._values = {i: blocks(shape.num_kv_heads, shape.value_dim) for i, shape in layers.items()}
        self._block_len = block_len
        self._device = device

    def copy_blocks(self, copies: Seq[Copy]) -> None:
        for memory in (*self._keys.values(), *self._values.values()):
            for source, target in copies:
                memory[target] = memory[source]

    def begin(self, batch: PackedBatch) -> None:
        counts = np.diff(batch.row_starts)
        self._slots = self._to_device(batch.slots)
        single = np.flatnonzero(counts == 1)
        self._spans = [
            (int(batch.row_starts[i]), int(batch.row_starts[i + 1]), int(batch.ends[i]), self._to_device(batch.tables[i]))
            for i in np.flatnonzero(counts > 1)
        ]
        self._single_rows = self._to_device(batch.row_starts[single])
        width = -(-int(batch.ends[single].max(initial=0)) // self._block_len)
        self._single_tables = self._to_device(batch.tables[single, :width])
        self._single_ends = self._to_device(batch.ends[single])
        self._num_single = len(single)

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
        self._keys[layer].flatten(0, 1).index_copy_(0, self._slots, key.transpose(0, 1))
        self._values[layer].flatten(0, 1).index_copy_(0, self._slots, value.transpose(0, 1))
        out = query.new_empty(query.shape[1], query.shape[0], value.shape[-1])
        for start, stop, end, table in self._spans:
            past_keys, past_values = self._gather(layer, table[None], end)
            out[start:stop] = dense_attention(query[:, start:stop], past_keys[0], past_values[0], traits)
        if self._num_single:
            out[self._single_rows] = self._attend_single(layer, query[:, self._single_rows], traits)
        return out

    def _gather(self, layer: int, tables: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values [S, kv heads, length, dim] of the sequences with `tables` [S, blocks]."""
        keys = self._keys[layer][tables].flatten(1, 2)[:, :length]
        values = self._values[layer][tables].flatten(1, 2)[:, :length]
        return keys.transpose(1, 2), values.transpose(1, 2)

    def _attend_single(self, layer: int, query: Tensor, traits: AttentionTraits) -> Tensor:
        """query [heads, S, dim], one row per sequence -> [S, heads, value dim]."""
        keys, values = self._gather(layer, self._single_tables, self._single_tables.shape[1] * self._block_len)
        if traits.softcap or traits.sinks is not None:
            ends = self._single_ends.tolist()
            rows = [
                dense_attention(query[:, i : i + 1], keys[i, :, :end], values[i, :, :end], traits) for i, end in enumerate(ends)
            ]
            return torch.cat(rows)
        positions = torch.arange(keys.shape[2], device=self._device)[None]
        visible = positions < self._single_ends[:, None]
        # What an earlier owner left behind the end of a block may be NaN, which no mask would hide.
        for past in (keys, values):
            past.masked_fill_(~visible[:, None, :, None], 0.0)
        if traits.window:
            visible &= positions >= self._single_ends[:, None] - traits.window
        groups = query.shape[0] // keys.shape[1]
        keys, values = keys.repeat_interleave(groups, dim=1), values.repeat_interleave(groups, dim=1)
        out = scaled_dot_product_attention(
            query.transpose(0, 1)[:, :, None], keys, values, attn_mask=visible[:, None, None], scale=traits.scaling
        )
        return out[:, :, 0]

    def _to_device(self, array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device, non_blocking=True)
