"""Linear layers with int8 weights, one scale per output row: half the memory of bfloat16, and half the traffic of a step.

Only the weights are quantised, once, when the model is loaded; sums are the kernels' own. On a CPU this is quicker for
very few rows and slower for many.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_MOST_KERNEL_ROWS = 16  # beyond, writing the weights out once costs less than the kernel's rows


class Int8Linear(nn.Module):
    """Stands in for a `torch.nn.Linear`; `weight` is int8 [out, in], `scales` [out]."""

    weight: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, scales: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.register_buffer("weight", weight)
        self.register_buffer("scales", scales)
        self.register_buffer("bias", bias)

    @classmethod
    def of(cls, layer: nn.Linear) -> Int8Linear:
        """Symmetric, rounded to the nearest, the largest magnitude of each row at 127."""
        weight = layer.weight.detach().float()
        scales = (weight.abs().amax(dim=1) / 127.0).clamp_min(1e-12)
        rounded = (weight / scales[:, None]).round().to(torch.int8)
        bias = None if layer.bias is None else layer.bias.detach()
        return cls(rounded, scales.to(layer.weight.dtype), bias)

    def forward(self, rows: Tensor) -> Tensor:
        flat = rows.reshape(-1, self.in_features)
        if len(flat) > _MOST_KERNEL_ROWS:
            out = flat @ (self.weight.to(flat.dtype) * self.scales[:, None]).t()
        else:
            out = torch._weight_int8pack_mm(flat, self.weight, self.scales)
        if self.bias is not None:
            out = out + self.bias
        return out.view(*rows.shape[:-1], self.out_features)


def quantize(model: nn.Module) -> int:
    """Replace every plain linear layer in place; how many there were. The embedding stays as it is."""
    count = 0
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                setattr(parent, name, Int8Linear.of(child))
                count += 1
    return count
