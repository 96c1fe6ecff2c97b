"""Small modules of a model's own code that one compiled call replaces, each only where it is proved to compute the same.

Knows shapes, not architectures: a module with a gate, an up and a down projection may be a gated MLP, one with a weight and an
epsilon may be an RMS norm. Random rows go through both; what differs stays as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from constrained.decode.cpu_attention import CPU_DTYPES
from constrained.decode.linears import PackedLinear, can_pack, pack_linears, row_dtype
from constrained.decode.norm_kernels import norm_rows

_TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
_NUM_ROWS = 5
_PROJECTIONS = ("gate_proj", "up_proj", "down_proj")


class PackedMlp:
    """down(silu(gate(x)) * up(x)) in two products."""

    def __init__(self, mlp: Any) -> None:
        self._gate_up = PackedLinear([mlp.gate_proj, mlp.up_proj], is_gated=True)
        self._down = PackedLinear([mlp.down_proj])

    def __call__(self, rows: Tensor) -> Tensor:
        return self._down(self._gate_up(rows))


class PackedNorm:
    """An RMS norm in one call; `offset` is added to its weight, which scales what is rounded already or not."""

    def __init__(self, norm: Any, eps: float, offset: float, *, rounds_first: bool) -> None:
        self._weight = norm.weight.detach().float().numpy() + offset
        self._bits, self._shift = CPU_DTYPES[norm.weight.dtype]
        self._eps = eps
        self._rounds_first = rounds_first

    def __call__(self, rows: Tensor) -> Tensor:
        flat = rows.reshape(-1, rows.shape[-1])
        out = torch.empty(flat.shape, dtype=rows.dtype)
        if len(flat):
            source, target = flat.contiguous().view(self._bits).numpy(), out.view(self._bits).numpy()
            norm_rows(source, self._weight, self._eps, self._shift, self._rounds_first, target)
        return out.view(rows.shape)


def swap_modules(model: nn.Module) -> None:
    """Replace what can be replaced, once: gated MLPs, all other linear layers, norms."""
    leave = set[nn.Module]()
    module: Any
    for module in list(model.modules()):
        if all(can_pack(getattr(module, name, nn.Identity())) for name in _PROJECTIONS):
            if isinstance(module.forward, PackedMlp) or _swap_mlp(module):
                leave |= {getattr(module, name) for name in _PROJECTIONS}
        elif type(module).__name__.endswith("RMSNorm") and not isinstance(module.forward, PackedNorm):
            _swap_norm(module)
    pack_linears(model, leave)


def _swap_mlp(module: Any) -> bool:
    dtype, width = row_dtype(module.gate_proj), module.gate_proj.in_features
    return _swap(module, _rows(width, dtype), (PackedMlp(module) for _ in range(1)))


def _swap_norm(module: Any) -> None:
    weight, eps = getattr(module, "weight", None), getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if not isinstance(weight, Tensor) or weight.dim() != 1 or weight.device.type != "cpu" or not isinstance(eps, float):
        return
    if weight.dtype in CPU_DTYPES:
        ways = ((0.0, True), (1.0, False), (0.0, False))
        norms = (PackedNorm(module, eps, offset, rounds_first=first) for offset, first in ways)
        _swap(module, _rows(len(weight), weight.dtype), norms)


def _rows(width: int, dtype: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(1, _NUM_ROWS, width, generator=generator).mul(2.0).to(dtype)


@torch.inference_mode()
def _swap(module: Any, rows: Tensor, ways: Iterable[Callable[[Tensor], Tensor]]) -> bool:
    """Take the first way that computes what the module does; whether there is one."""
    has_hooks = any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    if has_hooks or len(inspect.signature(module.forward).parameters) != 1:
        return False
    expected = module(rows)
    for way in ways:
        got = way(rows)
        if got.shape == expected.shape and _distance(got, expected) < _TOLERANCES[rows.dtype]:
            module.forward = way
            return True
    return False


def _distance(got: Tensor, expected: Tensor) -> float:
    return float((got.float() - expected.float()).norm() / expected.float().norm().clamp_min(1e-20))
