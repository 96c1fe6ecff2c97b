"""Weights of linear layers laid out in panels for the kernels of `tiles`.

A panel holds `COLUMNS` outputs, input by input, so that a product reads it from one end to the other. Outputs are filled up
to whole panels by zeros.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from constrained.decode.quantized import Int8Linear
from constrained.decode.tiles import COLUMNS

Linear = nn.Linear | Int8Linear


class Packed(NamedTuple):
    """The weights of a few layers that are alike.

    `words` [layers, panels, steps, COLUMNS] are int32, each two inputs in bfloat16 or one in float32, or int8
    [layers, panels, steps, COLUMNS * inputs a step] with a scale for each output.
    """

    words: NDArray[Any]
    scales: NDArray[np.float32]  # [layers, panels * COLUMNS]
    bias: NDArray[np.float32]  # [layers, panels * COLUMNS]


def is_packable(layer: Any, dtype: torch.dtype) -> TypeGuard[Linear]:
    """Whether the kernels take rows of `dtype` through this layer."""
    if type(layer) not in (nn.Linear, Int8Linear) or dtype not in (torch.float32, torch.bfloat16) or layer.in_features % 2:
        return False
    return isinstance(layer, Int8Linear) or layer.weight.dtype == dtype


def pack(layers: Seq[Seq[Linear]], dtype: torch.dtype, *, is_gated: bool = False) -> Packed:
    """Each of `layers` is one product: those that take the same input, side by side, or a gate and what it gates."""
    inputs = 2 if dtype == torch.bfloat16 else 1
    join = _interleaved if is_gated else _beside
    first = join([part.weight for part in layers[0]])
    num_panels = -(-len(first) // COLUMNS)
    words = torch.zeros(len(layers), num_panels, first.shape[1] // inputs, COLUMNS, inputs, dtype=first.dtype)
    scales, bias = (torch.zeros(len(layers), num_panels * COLUMNS) for _ in range(2))
    for i, parts in enumerate(layers):
        weight = join([part.weight for part in parts])
        padded = nn.functional.pad(weight, (0, 0, 0, num_panels * COLUMNS - len(weight)))
        words[i] = padded.view(num_panels, COLUMNS, -1, inputs).transpose(1, 2)
        scales[i, : len(weight)] = join([_scales(part) for part in parts])
        bias[i, : len(weight)] = join([_bias(part) for part in parts])
    flat = words.flatten(3)
    return Packed((flat if flat.dtype == torch.int8 else flat.view(torch.int32)).numpy(), scales.numpy(), bias.numpy())


def _scales(layer: Linear) -> Tensor:
    return layer.scales.float() if isinstance(layer, Int8Linear) else torch.ones(layer.out_features)


def _bias(layer: Linear) -> Tensor:
    return torch.zeros(layer.out_features) if layer.bias is None else layer.bias.detach().float()


def _beside(parts: Seq[Tensor]) -> Tensor:
    return torch.cat([part.detach() for part in parts])


def _interleaved(parts: Seq[Tensor]) -> Tensor:
    """Rows of two matrices, half a panel of each in turn, so that a tile holds a gate beside what it gates."""
    half = COLUMNS // 2
    missing = -len(parts[0]) % half
    filled = [torch.cat([part.detach(), part.new_zeros(missing, *part.shape[1:])]) for part in parts]
    return torch.stack([part.view(-1, half, *part.shape[1:]) for part in filled], dim=1).flatten(0, 2)
