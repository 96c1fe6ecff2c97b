"""Paged KV on a CPU, for any model's attention layers; threads share the rows and heads of a step, see `job_kernels`."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
import torch
from torch import Tensor

from constrained.decode.attention import AttentionTraits, LayerShape
from constrained.decode.attention_kernels import BLOCK_LEN
from constrained.decode.batch import PackedBatch
from constrained.decode.batch_kernels import cut_pieces
from constrained.decode.blocks import Copy
from constrained.decode.crew import box_of_this_thread, sample_of
from constrained.decode.fused_kernels import Bits
from constrained.decode.job_kernels import share_attention

# dtype of the cache -> (integers of the same width, left shift that makes them float32)
CPU_DTYPES = {torch.float32: (torch.int32, 0), torch.bfloat16: (torch.uint16, 16)}
_ROWS_A_PIECE = 16
_NO_SINKS = np.empty(0, np.float32)


class CpuPagedAttention:
    """An `AttentionBackend` for float32 and bfloat16; memory is allocated here, once."""

    def __init__(self, layers: dict[int, LayerShape], num_blocks: int, dtype: torch.dtype) -> None:
        self._bits, _ = CPU_DTYPES[dtype]
        self._sample = sample_of(dtype)
        self._keys, self._values = dict[int, Tensor](), dict[int, Tensor]()
        for shape in set(layers.values()):
            alike = [i for i in sorted(layers) if layers[i] == shape]
            keys = torch.zeros(len(alike), num_blocks, shape.num_kv_heads, shape.key_dim, BLOCK_LEN, dtype=dtype)
            values = torch.zeros(len(alike), num_blocks, shape.num_kv_heads, BLOCK_LEN, shape.value_dim, dtype=dtype)
            self._keys |= dict(zip(alike, keys, strict=True))
            self._values |= dict(zip(alike, values, strict=True))
            self._stacked = keys, values
        self._key_bits = {i: t.view(self._bits).numpy() for i, t in self._keys.items()}
        self._value_bits = {i: t.view(self._bits).numpy() for i, t in self._values.items()}

    def stacked(self) -> tuple[Bits, Bits]:
        """The memory of all layers [layers, num_blocks, ...], where they are alike."""
        keys, values = (memory.view(self._bits).numpy() for memory in self._stacked)
        return keys, values

    def copy_blocks(self, copies: Seq[Copy]) -> None:
        for memory in (*self._keys.values(), *self._values.values()):
            for source, target in copies:
                memory[target] = memory[source]

    def begin(self, batch: PackedBatch) -> None:
        self.tables, self.slots = batch.tables, batch.slots
        pieces = np.empty((batch.num_sequences + batch.num_rows // _ROWS_A_PIECE, 4), np.int64)
        self.pieces = pieces[: cut_pieces(batch.row_starts, batch.ends, _ROWS_A_PIECE, pieces)]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
        num_heads, num_rows, key_dim = query.shape
        value_dim = value.shape[-1]
        out = torch.empty(num_rows, num_heads * value_dim, dtype=query.dtype)
        share_attention(
            box_of_this_thread(),
            self._sample,
            self._by_rows(query),
            self._by_rows(key),
            self._by_rows(value),
            self._key_bits[layer],
            self._value_bits[layer],
            self.slots,
            self.pieces,
            self.tables,
            traits.scaling,
            traits.window,
            float(traits.softcap),
            _NO_SINKS if traits.sinks is None else traits.sinks.detach().float().numpy(),
            np.empty((num_rows, num_heads, key_dim), np.uint32),
            np.empty((num_rows, num_heads, value_dim), np.float32),
            out.view(self._bits).numpy(),
        )
        return out.view(num_rows, num_heads, value_dim)

    def _by_rows(self, heads: Tensor) -> Bits:
        """[heads, N, dim] as bits [N, heads, dim]."""
        bits: Bits = heads.transpose(0, 1).contiguous().view(self._bits).numpy()
        return bits
