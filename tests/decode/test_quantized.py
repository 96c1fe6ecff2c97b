"""Int8 weights: near the layer that they stand in for, the same for any number of rows, in both forward passes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from constrained.decode.options import EngineOptions
from constrained.decode.preparation import prepare
from constrained.decode.quantized import Int8Linear, quantize
from constrained.decode.runner import ModelRunner
from tests.decode.mocks import random_model, tiny_config
from tests.decode.test_runner import CONFIGS, greedy


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_a_quantised_layer_is_near_its_original(dtype: torch.dtype, bias: bool) -> None:
    torch.manual_seed(0)
    layer = nn.Linear(64, 96, bias=bias, dtype=dtype).requires_grad_(False)
    quantised = Int8Linear.of(layer)
    for num_rows in (1, 16, 17, 50):
        rows = torch.randn(1, num_rows, 64, dtype=dtype)
        got, expected = quantised(rows).float(), layer(rows).float()
        assert got.shape == expected.shape
        assert (got - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize("fuse", [True, False])
def test_a_quantised_model_decodes_as_its_own_forward_says(fuse: bool) -> None:
    model = random_model(tiny_config())
    assert quantize(model) == 2 * 7 + 1
    runner = ModelRunner(model, "tiny", 1 << 22, 2048)
    prepare(runner, EngineOptions(fuse=fuse), 256)
    assert runner.is_fused == fuse
    prompts = [[(i * 7 + j) % 200 for j in range(n)] for i, n in enumerate((3, 40))]
    got = greedy(runner, prompts, 8)
    runner.model.set_attn_implementation("eager")
    for prompt, tokens in zip(prompts, got, strict=True):
        ids = torch.tensor([prompt])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False, pad_token_id=0)
        assert tokens[: out.shape[1] - len(prompt)] == out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_float16_passes_the_self_test(name: str) -> None:
    runner = ModelRunner(random_model(CONFIGS[name], torch.float16), "tiny", 1 << 22, 2048)
    prepare(runner, EngineOptions(), 256)
