"""Modules that are swapped compute what they did; what computes something else is left alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from constrained.decode.linears import PackedLinear
from constrained.decode.options import EngineOptions
from constrained.decode.preparation import prepare
from constrained.decode.swaps import PackedMlp, PackedNorm, swap_modules
from tests.decode.mocks import random_model, tiny_config
from tests.decode.test_runner import CONFIGS, greedy, make_runner

NORMS, MLPS = ("llama", "qwen3", "gemma", "gemma3 with windows"), ("llama", "qwen2", "qwen3")


def swapped(model: nn.Module, kind: type) -> list[nn.Module]:
    return [module for module in model.modules() if isinstance(module.forward, kind)]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_greedy_text_of_any_model_stays_its_own(config: PreTrainedConfig) -> None:
    prompts = [[(i * 17 + j * 5) % 256 for j in range(n)] for i, n in enumerate((1, 33, 7))]
    runner = make_runner(config)
    expected = greedy(runner, prompts, 12)
    prepare(runner, EngineOptions(fuse=False), 256)
    assert swapped(runner.model, PackedLinear) or swapped(runner.model, PackedMlp) or config.model_type in ("gpt2",)
    assert greedy(runner, prompts, 12) == expected
    runner.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
def test_every_norm_is_known_whatever_its_weights_are_scaled_by(name: str, dtype: torch.dtype) -> None:
    model = random_model(CONFIGS[name], dtype)
    norms = [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]
    for norm in norms:
        norm.weight.copy_(torch.randn(norm.weight.shape).to(dtype))
    swap_modules(model)
    assert swapped(model, PackedNorm) == norms


@pytest.mark.parametrize("name", MLPS)
def test_every_gated_mlp_is_known(name: str) -> None:
    model = random_model(CONFIGS[name])
    swap_modules(model)
    swap_modules(model)
    assert [type(module).__name__.endswith("MLP") for module in swapped(model, PackedMlp)] == [True] * len(model.model.layers)


def test_another_activation_is_left_alone() -> None:
    model = random_model(CONFIGS["gemma"])
    swap_modules(model)
    assert not swapped(model, PackedMlp)
    assert len(swapped(model, PackedLinear)) == 7 * len(model.model.layers) + 1


class OtherRMSNorm(nn.Module):
    """Looks like a norm, and subtracts the mean as well."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(16), requires_grad=False), 1e-6

    def forward(self, rows: Tensor) -> Tensor:
        return nn.functional.layer_norm(rows, (16,), self.weight)


def test_what_computes_something_else_is_left_alone() -> None:
    model = nn.Sequential(OtherRMSNorm())
    swap_modules(model)
    assert not swapped(model, PackedNorm)


def test_hooks_are_kept() -> None:
    model = random_model(tiny_config())
    calls: list[Any] = []
    model.model.layers[0].mlp.gate_proj.register_forward_hook(lambda *call: calls.append(call))
    swap_modules(model)
    assert len(swapped(model, PackedMlp)) == len(model.model.layers) - 1
    model(torch.tensor([[1, 2, 3]]))
    assert len(calls) == 1
