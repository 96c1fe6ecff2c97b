"""Paged KV in plain torch, for any device: blocks [num_blocks, block_len, kv heads, dim] per layer.

Decode rows (one new token each) go together (`paged_decode`), longer spans sequence by sequence. One block more than asked for,
`scratch_block`, is nobody's: padding of recorded steps writes into it.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
import torch
from torch import Tensor

from constrained.decode.attention import AttentionTraits, LayerShape
from constrained.decode.batch import PackedBatch
from constrained.decode.blocks import Copy
from constrained.decode.dense_attention import dense_attention
from constrained.decode.graphs import StaticStep
from constrained.decode.paged_decode import decode_attention, gathered_decode, reads_in_place


class TorchPagedAttention:
    """An `AttentionBackend`; memory is allocated here, once."""

    def __init__(
        self, layers: dict[int, LayerShape], num_blocks: int, block_len: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        def blocks(heads: int, dim: int) -> Tensor:
            return torch.zeros(num_blocks + 1, block_len, heads, dim, dtype=dtype, device=device)

        self._keys = {i: blocks(shape.num_kv_heads, shape.key_dim) for i, shape in layers.items()}
        self._values = {i: blocks(shape.num_kv_heads, shape.value_dim) for i, shape in layers.items()}
        self.scratch_block = num_blocks
        self.reads_in_place = reads_in_place(device)
        self._decode = decode_attention(device)
        self._block_len = block_len
        self._device = device

    def gather(self) -> None:
        """Attend to decode rows in plain torch from now on."""
        self.reads_in_place, self._decode = False, gathered_decode

    def copy_blocks(self, copies: Seq[Copy]) -> None:
        for memory in (*self._keys.values(), *self._values.values()):
            for source, target in copies:
                memory[target] = memory[source]

    def begin(self, batch: PackedBatch) -> None:
        counts = np.diff(batch.row_starts)
        single = np.flatnonzero(counts == 1)
        width = -(-int(batch.ends[single].max(initial=0)) // self._block_len)
        self._slots = self._to_device(batch.slots)
        self._single_rows = None if len(single) == len(counts) else self._to_device(batch.row_starts[single])
        self._single_tables = self._to_device(batch.tables[single, :width])
        self._single_ends = self._to_device(batch.ends[single])
        self._spans = [
            (int(batch.row_starts[i]), int(batch.row_starts[i + 1]), int(batch.ends[i]), self._to_device(batch.tables[i]))
            for i in np.flatnonzero(counts > 1)
        ]

    def begin_static(self, step: StaticStep) -> None:
        """Prepare for the layers of a step that is recorded: all of it is one new token a sequence."""
        self._slots, self._single_rows, self._spans = step.slots, None, []
        self._single_tables, self._single_ends = step.tables, step.ends

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
        self._keys[layer].flatten(0, 1).index_copy_(0, self._slots, key.transpose(0, 1))
        self._values[layer].flatten(0, 1).index_copy_(0, self._slots, value.transpose(0, 1))
        rows = query.transpose(0, 1)
        if self._single_rows is None:
            return self._attend_single(layer, rows, traits)
        out = query.new_empty(query.shape[1], query.shape[0], value.shape[-1])
        for start, stop, end, table in self._spans:
            keys, values = (memory[layer][table].flatten(0, 1)[:end].transpose(0, 1) for memory in (self._keys, self._values))
            out[start:stop] = dense_attention(query[:, start:stop], keys, values, traits)
        if len(self._single_rows):
            out[self._single_rows] = self._attend_single(layer, rows[self._single_rows], traits)
        return out

    def _attend_single(self, layer: int, rows: Tensor, traits: AttentionTraits) -> Tensor:
        """rows [S, heads, dim], one a sequence -> [S, heads, value dim]."""
        keys, values = self._keys[layer], self._values[layer]
        return self._decode(rows, keys, values, self._single_tables, self._single_ends, traits)

    def _to_device(self, array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device, non_blocking=True)
