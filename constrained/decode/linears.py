"""Linear layers with weights in panels, computed by several threads without waking any: see `job_kernels`.

Knows no model: every plain `torch.nn.Linear` and every int8 one on a CPU is served. The packed copies stand beside the
original weights, which embeddings may share, so they cost their size in memory.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Sequence as Seq
from typing import Any

import torch
from torch import Tensor, nn

from constrained.decode.crew import box_of_this_thread, sample_of
from constrained.decode.job_kernels import share_product
from constrained.decode.packing import Linear, is_packable, pack
from constrained.decode.quantized import Int8Linear
from constrained.decode.tiles import COLUMNS


class PackedLinear:
    """The product with one packed weight [out, in], or with a gate and what it gates; any number of rows."""

    def __init__(self, layers: Seq[Linear], *, is_gated: bool = False) -> None:
        dtype = row_dtype(layers[0])
        packed = pack([layers], dtype, is_gated=is_gated)
        self._keep = packed  # its memory is known to the kernels by address
        words, size = packed.words[0], 2 if dtype == torch.bfloat16 else 4
        width = COLUMNS // 2 if is_gated else COLUMNS
        self._num_in, self._size = layers[0].in_features, size
        self._num_out = layers[0].out_features if is_gated else sum(layer.out_features for layer in layers)
        self._padded = words.shape[0] * width
        weights = (words.ctypes.data, words.shape[1] * words.shape[2] * words.itemsize, words.shape[0], words.shape[1])
        self._weights = (*weights, words.itemsize, packed.scales.ctypes.data, packed.bias.ctypes.data, int(is_gated))
        self._sample = sample_of(dtype)
        self._last = (self._padded * size, width * size, COLUMNS * 4)

    def __call__(self, rows: Tensor) -> Tensor:
        flat = rows.reshape(-1, self._num_in)
        if flat.stride(1) != 1:
            flat = flat.contiguous()
        out = torch.empty(flat.shape[0], self._padded, dtype=rows.dtype)
        if flat.shape[0]:
            stride, width, columns = self._last
            at = flat.data_ptr(), flat.stride(0) * self._size, flat.shape[0], self._size
            share_product(box_of_this_thread(), self._sample, *at, *self._weights, out.data_ptr(), stride, width, columns)
        if self._padded != self._num_out:
            out = out[:, : self._num_out]
        return out.view(*rows.shape[:-1], self._num_out) if rows.dim() != 2 else out


def pack_linears(model: nn.Module, leave: Collection[nn.Module] = ()) -> int:
    """Pack what can be packed, once, but for the layers to `leave`; returns how many layers are packed now."""
    layers: list[Any] = [module for module in model.modules() if can_pack(module) and module not in leave]
    for layer in layers:
        if not isinstance(layer.forward, PackedLinear):
            layer.forward = PackedLinear([layer])
    return len(layers)


def can_pack(module: nn.Module) -> bool:
    """Whether the kernels compute this layer as it is."""
    if not isinstance(module, Linear) or module.weight.device.type != "cpu":
        return False
    return is_packable(module, row_dtype(module))


def row_dtype(layer: Linear) -> torch.dtype:
    """Of what goes through a layer."""
    return layer.scales.dtype if isinstance(layer, Int8Linear) else layer.weight.dtype
