"""Our own forward pass computes what transformers does, and is left out where it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, LlamaConfig, MistralConfig, PreTrainedConfig, Qwen2Config

from constrained.decode.batch import Span
from constrained.decode.fused_kernels import add_and_norm, narrow
from constrained.decode.options import EngineOptions
from constrained.decode.preparation import prepare
from constrained.decode.runner import ModelRunner
from constrained.decode.selftest import check_model
from constrained.errors import UnsupportedModelError
from tests.decode.mocks import tiny_config
from tests.decode.test_runner import CONFIGS, SIZES, greedy, make_runner

FUSED: dict[str, PreTrainedConfig] = {
    "llama": tiny_config(),
    "llama with biases and tied embeddings": LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
    "llama with a head dimension of its own": LlamaConfig(**SIZES, head_dim=16),
    "llama with scaled positions": LlamaConfig(
        **SIZES,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    ),
    "mistral with a window": MistralConfig(**SIZES, sliding_window=8),
    "qwen2": Qwen2Config(**SIZES),
}


def fused_runner(config: PreTrainedConfig, dtype: torch.dtype = torch.float32) -> ModelRunner:
    runner = make_runner(config, dtype)
    check_model(runner, lambda _: runner.fuse())
    assert runner.is_fused
    return runner


@pytest.mark.parametrize("config", FUSED.values(), ids=FUSED)
def test_greedy_text_is_the_models_own(config: PreTrainedConfig) -> None:
    runner = fused_runner(config)
    prompts = [[(i * 17 + j * 5) % 256 for j in range(n)] for i, n in enumerate((1, 33, 7))]
    got = greedy(runner, prompts, 12)
    runner.model.set_attn_implementation("eager")
    for prompt, tokens in zip(prompts, got, strict=True):
        ids = torch.tensor([prompt])
        out = runner.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, pad_token_id=0
        )
        assert tokens[: out.shape[1] - len(prompt)] == out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", ["llama", "qwen2"])
def test_bfloat16_passes_the_self_test(name: str) -> None:
    fused_runner(FUSED[name], torch.bfloat16)


@pytest.mark.parametrize("config", [GPT2Config(vocab_size=301, n_embd=48, n_layer=2, n_head=4), CONFIGS["gemma"]])
def test_other_families_take_the_other_path(config: Any) -> None:
    runner = make_runner(config)
    prepare(runner, EngineOptions(), 256)
    assert not runner.is_fused


def test_a_family_member_that_computes_something_else_takes_the_other_path(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runner = make_runner(tiny_config())
    for layer in runner.model.model.layers:
        monkeypatch.setattr(layer.mlp, "act_fn", torch.nn.ReLU())
    prepare(runner, EngineOptions(), 256)
    assert not runner.is_fused
    assert "fused forward pass is left out" in caplog.text


def test_what_neither_path_computes_is_refused() -> None:
    runner = make_runner(tiny_config())
    runner.model.config.layer_types = ["full_attention", "chunked_attention"]
    with pytest.raises(UnsupportedModelError, match="chunked_attention"):
        prepare(runner, EngineOptions(), 256)


def bits(tensor: torch.Tensor) -> Any:
    return tensor.view(torch.uint16 if tensor.dtype == torch.bfloat16 else torch.int32).numpy()


@pytest.mark.parametrize(("dtype", "shift"), [(torch.float32, 0), (torch.bfloat16, 16)])
def test_kernels_equal_torch(dtype: torch.dtype, shift: int) -> None:
    torch.manual_seed(0)
    residual, delta, weight = torch.randn(5, 48).to(dtype), torch.randn(5, 48).to(dtype), torch.rand(48)
    expected_sum = residual + delta
    normed = torch.empty(5, 48, dtype=dtype)
    add_and_norm(bits(residual), bits(delta), weight.numpy(), 1e-5, shift, bits(normed))
    assert torch.equal(residual, expected_sum)
    expected = torch.nn.functional.rms_norm(expected_sum.float(), (48,), weight, 1e-5)
    assert torch.allclose(normed.float(), expected, rtol=2e-2 if shift else 1e-5, atol=1e-6)


def test_rounding_is_to_the_nearest_even() -> None:
    values = torch.tensor([1.0, 1.00390625, 1.01171875, -3.3, 1e-30, 65504.0, 0.0, -0.0])
    out = torch.empty(8, dtype=torch.bfloat16)
    narrow(values.numpy().view(np.uint32), 16, bits(out))
    assert torch.equal(out, values.to(torch.bfloat16))


@pytest.mark.parametrize("num_threads", [1, 3])
def test_a_sequence_does_not_depend_on_those_beside_it_nor_on_threads(num_threads: int) -> None:
    """To the last bit, in bfloat16: greedy text is the same whatever else runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        runner = fused_runner(FUSED["llama"], torch.bfloat16)
    finally:
        torch.set_num_threads(before)
    spans = [Span([(7 * i + j) % 256 for j in range(1 + 9 * (i % 3))], 0, [i], 1) for i in range(14)]
    together = runner.forward(spans).clone()
    for span, logits in zip(spans, together, strict=True):
        assert torch.equal(runner.forward([span])[0], logits)
    runner.unfuse()
