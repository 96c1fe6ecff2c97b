"""Any causal LM over packed rows and paged memory: equal to the model's own forward and generate, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    BloomConfig,
    FalconConfig,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GptOssConfig,
    MambaConfig,
    MistralConfig,
    Phi3Config,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from constrained.decode.batch import Span
from constrained.decode.runner import ModelRunner
from constrained.decode.selftest import check_model
from constrained.errors import InternalError, UnsupportedModelError
from tests.decode.mocks import random_model, tiny_config

SIZES: dict[str, Any] = {
    "vocab_size": 301,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
CONFIGS: dict[str, PreTrainedConfig] = {
    "llama": tiny_config(),
    "mistral with a window": MistralConfig(**SIZES, sliding_window=8),
    "qwen2": Qwen2Config(**SIZES),
    "qwen3": Qwen3Config(**SIZES, head_dim=16),
    "gemma": GemmaConfig(**SIZES, head_dim=8),
    "gemma2 with softcap and windows": Gemma2Config(**SIZES, head_dim=8, sliding_window=8),
    "gemma3 with windows": Gemma3TextConfig(**SIZES, head_dim=8, sliding_window=8),
    "gpt2": GPT2Config(
        vocab_size=301, n_embd=48, n_layer=2, n_head=4, n_positions=256, bos_token_id=None, eos_token_id=None, pad_token_id=0
    ),
    "gpt-oss with sinks": GptOssConfig(
        **SIZES,
        head_dim=8,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=8,
        rope_parameters={"rope_type": "default"},
    ),
}


def make_runner(config: PreTrainedConfig, dtype: torch.dtype = torch.float32) -> ModelRunner:
    return ModelRunner(random_model(config, dtype), "tiny", kv_bytes=1 << 22, max_tokens=2048)


def greedy(runner: ModelRunner, prompts: list[list[int]], num_tokens: int) -> list[list[int]]:
    """Decode all prompts in one batch; each has four blocks of its own."""
    tokens = [list(prompt) for prompt in prompts]
    computed = [0] * len(prompts)
    for _ in range(num_tokens):
        spans = [
            Span(t[done:], done, range(4 * i, 4 * i + 4), 1) for i, (t, done) in enumerate(zip(tokens, computed, strict=True))
        ]
        computed = [len(t) for t in tokens]
        for sequence, token in zip(tokens, runner.forward(spans).argmax(dim=-1).tolist(), strict=True):
            sequence.append(token)
    return [t[len(p) :] for t, p in zip(tokens, prompts, strict=True)]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_logits_and_greedy_text_equal_the_models_own(config: PreTrainedConfig) -> None:
    runner = make_runner(config)
    check_model(runner)
    prompts = [[(i * 17 + j * 5) % 256 for j in range(n)] for i, n in enumerate((1, 33, 7))]
    got = greedy(runner, prompts, 12)
    runner.model.set_attn_implementation("eager")
    for prompt, tokens in zip(prompts, got, strict=True):
        ids = torch.tensor([prompt])
        out = runner.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False, pad_token_id=0
        )
        assert tokens[: out.shape[1] - len(prompt)] == out[0, len(prompt) :].tolist()


@pytest.mark.parametrize("name", ["llama", "gemma2 with softcap and windows", "gpt2"])
def test_bfloat16_passes_the_self_test(name: str) -> None:
    check_model(make_runner(CONFIGS[name], torch.bfloat16))


@pytest.mark.parametrize(
    "config",
    [
        BloomConfig(vocab_size=300, hidden_size=48, n_layer=2, n_head=4),
        MambaConfig(vocab_size=300, hidden_size=48, num_hidden_layers=2),
        FalconConfig(vocab_size=300, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, alibi=True),
    ],
    ids=["bloom", "mamba", "falcon"],
)
def test_other_attention_is_refused_by_name(config: PreTrainedConfig) -> None:
    with pytest.raises(UnsupportedModelError, match=r"tiny .*cannot be served"):
        make_runner(config)


def test_a_model_that_ignores_positions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = make_runner(tiny_config())
    forward = runner.model.model.forward
    monkeypatch.setattr(runner.model.model, "forward", lambda **inputs: forward(**(inputs | {"position_ids": None})))
    with pytest.raises(UnsupportedModelError, match="logits differ"):
        check_model(runner)


def test_a_window_that_a_layer_does_not_ask_for_is_refused() -> None:
    runner = make_runner(tiny_config())
    runner.model.config.layer_types = ["full_attention", "sliding_attention"]
    runner.model.config.sliding_window = 4096
    with pytest.raises(UnsupportedModelError, match="window"):
        check_model(runner)


def test_an_unknown_kind_of_attention_is_refused() -> None:
    runner = make_runner(tiny_config())
    runner.model.config.layer_types = ["full_attention", "chunked_attention"]
    with pytest.raises(UnsupportedModelError, match="chunked_attention"):
        check_model(runner)


def test_the_model_cannot_run_outside_of_the_engine() -> None:
    runner = make_runner(tiny_config())
    with pytest.raises(InternalError, match="no engine"):
        runner.model(input_ids=torch.tensor([[1, 2]]))


def test_memory_is_bounded_by_bytes_and_by_need() -> None:
    model = random_model(tiny_config())
    block_bytes = 2 * 2 * (8 + 8) * 4 * ModelRunner.block_len
    assert ModelRunner(model, "tiny", 10 * block_bytes, 10**9).num_blocks == 10
    assert ModelRunner(model, "tiny", 1 << 30, 6 * ModelRunner.block_len - 1).num_blocks == 6


def test_longrope_bounds_the_positions_that_a_batch_agrees_on() -> None:
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
    runner = make_runner(Phi3Config(**SIZES, original_max_position_embeddings=64, rope_parameters=rope))
    check_model(runner)
    assert runner.max_positions == 64
    assert make_runner(tiny_config()).max_positions is None
