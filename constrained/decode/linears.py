"""Linear layers with weights laid out once for oneDNN, instead of anew in every call: about half the time on a CPU.

Knows no model: every plain `torch.nn.Linear` in bfloat16 is served, all else stays as it is. The packed copies stand
beside the original weights, which embeddings may share, so they cost their size in memory.
"""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor, nn


class PackedLinear:
    """The product with one packed weight [out, in], and its bias."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._num_out = weight.shape[0]
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        self._bias = bias

    def __call__(self, rows: Tensor) -> Tensor:
        if not rows.numel():
            return rows.new_empty(*rows.shape[:-1], self._num_out)
        out: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._weight, self._bias, "none", [], "")
        return out


def can_pack() -> bool:
    """Whether oneDNN computes bfloat16 on this CPU."""
    return bool(torch._C._has_mkldnn and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack_linears(model: nn.Module) -> int:
    """Pack what can be packed, once; returns how many layers are packed now."""
    if not can_pack():
        return 0
    layers = [module for module in model.modules() if _is_packable(module)]
    for layer in layers:
        if not isinstance(layer.forward, PackedLinear):
            layer.forward = PackedLinear(layer.weight, layer.bias)  # type: ignore[method-assign, assignment]
    return len(layers)


def _is_packable(module: nn.Module) -> TypeGuard[nn.Linear]:
    if type(module) is not nn.Linear:
        return False
    return module.weight.dtype == torch.bfloat16 and module.weight.device.type == "cpu"
