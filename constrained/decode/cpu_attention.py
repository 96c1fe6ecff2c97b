"""Paged KV on a CPU: numba for short spans (decode rows, forced tokens), SDPA for longer prefill chunks."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from constrained.decode.attention import AttentionTraits, LayerShape
from constrained.decode.attention_kernels import BLOCK_LEN, attend, write_kv
from constrained.decode.batch import PackedBatch
from constrained.decode.blocks import Copy
from constrained.decode.dense_attention import dense_attention
from constrained.decode.fused_kernels import Bits, Floats

# dtype of the cache -> (integers of the same width, left shift that makes them float32)
CPU_DTYPES = {torch.float32: (torch.int32, 0), torch.bfloat16: (torch.uint16, 16)}
_MOST_KERNEL_ROWS = 16
_TOKENS_A_THREAD = 1024  # fewer are not worth waking another thread in every layer
_NO_SINKS = np.empty(0, np.float32)


class CpuPagedAttention:
    """An `AttentionBackend` for float32 and bfloat16; memory is allocated here, once."""

    def __init__(self, layers: dict[int, LayerShape], num_blocks: int, dtype: torch.dtype) -> None:
        self._bits, self._shift = CPU_DTYPES[dtype]
        self._helpers = ThreadPoolExecutor(max(1, torch.get_num_threads() - 1), thread_name_prefix="constrained-attention")

        def blocks(num_layers: int, *shape: int) -> Tensor:
            return torch.zeros(num_layers, num_blocks, *shape, dtype=dtype)

        shapes = set(layers.values())
        self._keys, self._values = dict[int, Tensor](), dict[int, Tensor]()
        for shape in shapes:
            alike = [i for i in sorted(layers) if layers[i] == shape]
            keys = blocks(len(alike), shape.num_kv_heads, shape.key_dim, BLOCK_LEN)
            values = blocks(len(alike), shape.num_kv_heads, BLOCK_LEN, shape.value_dim)
            self._keys |= dict(zip(alike, keys, strict=True))
            self._values |= dict(zip(alike, values, strict=True))
            self._stacked = keys, values
        self._key_bits = {i: t.view(self._bits).numpy() for i, t in self._keys.items()}
        self._value_bits = {i: t.view(self._bits).numpy() for i, t in self._values.items()}

    @property
    def slots(self) -> NDArray[np.int64]:
        """Where the keys and values of each of this step's rows go."""
        return self._slots

    def stacked(self) -> tuple[Bits, Bits]:
        """The memory of all layers [layers, num_blocks, ...], where they are alike."""
        keys, values = (memory.view(self._bits).numpy() for memory in self._stacked)
        return keys, values

    def copy_blocks(self, copies: Seq[Copy]) -> None:
        for memory in (*self._keys.values(), *self._values.values()):
            for source, target in copies:
                memory[target] = memory[source]

    def begin(self, batch: PackedBatch) -> None:
        counts = np.diff(batch.row_starts)
        sequence_of = np.repeat(np.arange(batch.num_sequences), counts)
        self._batch = batch
        self._slots = batch.tables[sequence_of, batch.positions // BLOCK_LEN] * BLOCK_LEN + batch.positions % BLOCK_LEN
        self._short = np.flatnonzero(counts <= _MOST_KERNEL_ROWS)
        self._shares = self._shared_out(batch.ends[self._short])
        self._long = [int(i) for i in np.flatnonzero(counts > _MOST_KERNEL_ROWS)]

    def _shared_out(self, ends: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The short spans, dealt out so that each thread looks at about as many tokens; one share where there are few."""
        num_threads = min(torch.get_num_threads(), int(ends.sum()) // _TOKENS_A_THREAD, len(ends))
        if num_threads <= 1:
            return [self._short]
        longest_first = self._short[np.argsort(-ends, kind="stable")]
        return [longest_first[i::num_threads] for i in range(num_threads)]

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
        write_kv(
            key.contiguous().view(self._bits).numpy(),
            value.contiguous().view(self._bits).numpy(),
            self._key_bits[layer],
            self._value_bits[layer],
            self._slots,
        )
        if not self._long:
            return self._attend_short(layer, query, value.shape[-1], traits)
        out = query.new_empty(query.shape[1], query.shape[0], value.shape[-1])
        if len(self._short):
            out.copy_(self._attend_short(layer, query, value.shape[-1], traits))
        for i in self._long:
            start, stop = int(self._batch.row_starts[i]), int(self._batch.row_starts[i + 1])
            rows = slice(start, stop)
            if self._batch.ends[i] == stop - start:
                past_keys, past_values = key[:, rows], value[:, rows]
            else:
                past_keys, past_values = self._gather(layer, i)
            out[rows] = dense_attention(query[:, rows], past_keys, past_values, traits)
        return out

    def _attend_short(self, layer: int, query: Tensor, value_dim: int, traits: AttentionTraits) -> Tensor:
        rows = query.transpose(0, 1).to(torch.float32, memory_format=torch.contiguous_format)
        out = torch.empty(rows.shape[0], rows.shape[1], value_dim)
        sinks = _NO_SINKS if traits.sinks is None else traits.sinks.detach().float().numpy()
        self._run_kernel(layer, rows.numpy(), traits, sinks, out.numpy())
        return out.to(query.dtype)

    def _run_kernel(self, layer: int, query: Floats, traits: AttentionTraits, sinks: Floats, out: Floats) -> None:
        """The kernel over the short spans, on as many threads as there is work for."""
        batch = self._batch

        def run(sequences: NDArray[np.int64]) -> None:
            attend(
                query,
                self._key_bits[layer],
                self._value_bits[layer],
                self._shift,
                sequences,
                batch.row_starts,
                batch.ends,
                batch.tables,
                traits.scaling,
                traits.window,
                float(traits.softcap),
                sinks,
                out,
            )

        helped = [self._helpers.submit(run, share) for share in self._shares[1:]]
        run(self._shares[0])
        for future in helped:
            future.result()

    def _gather(self, layer: int, sequence: int) -> tuple[Tensor, Tensor]:
        """Keys and values [kv heads, length, dim] of one sequence."""
        end = int(self._batch.ends[sequence])
        table = torch.from_numpy(self._batch.tables[sequence, : -(-end // BLOCK_LEN)])
        keys = self._keys[layer][table].permute(1, 0, 3, 2).flatten(1, 2)
        values = self._values[layer][table].permute(1, 0, 2, 3).flatten(1, 2)
        return keys[:, :end], values[:, :end]
