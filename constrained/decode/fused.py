"""Our own forward pass of the Llama family on a CPU: query, key and value in one product, gate and up in another, and one
numba kernel wherever transformers runs a dozen small operations.

Knows the weights of Llama, Mistral and Qwen2 by their names in transformers. Any other model, device or dtype takes the
model-agnostic path of `runner`; whether this one computes the model exactly is asked by the same self-test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from constrained.decode.attention import AttentionTraits
from constrained.decode.batch import PackedBatch
from constrained.decode.cpu_attention import CPU_DTYPES, CpuPagedAttention
from constrained.decode.fused_kernels import add_and_norm, rotate
from constrained.decode.linears import linear_of

_FAMILIES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")

Linear = Callable[[Tensor], Tensor]
Bits = NDArray[Any]


def is_fusable(model: Any, traits: dict[int, AttentionTraits]) -> bool:
    """Whether the model is of a family, dtype and device that the fused pass computes."""
    config = model.config
    return (
        type(model).__name__ in _FAMILIES
        and model.device.type == "cpu"
        and model.dtype in CPU_DTYPES
        and getattr(config, "hidden_act", "") == "silu"
        and getattr(config, "pretraining_tp", 1) == 1
        and all(not layer.softcap and layer.sinks is None for layer in traits.values())
    )


@dataclass(frozen=True, slots=True)
class _Layer:
    """One decoder layer's weights, laid out for the kernels."""

    norm: NDArray[np.float32]
    qkv: Linear
    out: Linear
    mlp_norm: NDArray[np.float32]
    gate_up: Linear
    down: Linear
    traits: AttentionTraits


class FusedForward:
    """Computes a packed batch over `backend`; the weights are copies, the model's own stay as they are."""

    def __init__(self, model: Any, backend: CpuPagedAttention, traits: dict[int, AttentionTraits]) -> None:
        config, body = model.config, model.model
        self._backend = backend
        self._embed: nn.Embedding = body.embed_tokens
        self._rotary: nn.Module = body.rotary_emb
        self._eps = float(config.rms_norm_eps)
        self._num_heads, self._num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._dim = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        self._width = int(config.hidden_size)
        self._dtype = model.dtype
        self._bits, self._shift = CPU_DTYPES[model.dtype]
        self._layers = [_layer(layer, traits[i]) for i, layer in enumerate(body.layers)]
        self._norm = _floats(body.norm)
        self._head = linear_of([model.lm_head])

    @property
    def num_layers(self) -> int:
        return len(self._layers)

    def logits(self, batch: PackedBatch) -> Tensor:
        """[rows that are wanted, vocabulary]"""
        self._backend.begin(batch)
        residual = self._embed(torch.from_numpy(batch.token_ids))
        cos, sin = self._turns(batch.positions)
        normed, attended = (self._empty(batch.num_rows, width) for width in (self._width, self._num_heads * self._dim))
        delta = self._view(residual)[:0]
        for i, layer in enumerate(self._layers):
            self._add_and_norm(residual, delta, layer.norm, normed)
            self._attend(i, layer, layer.qkv(normed), cos, sin, attended)
            self._add_and_norm(residual, self._view(layer.out(attended)), layer.mlp_norm, normed)
            gate, up = layer.gate_up(normed).chunk(2, dim=1)
            delta = self._view(layer.down(nn.functional.silu(gate).mul_(up)))
        rows = batch.logit_rows
        last, wanted = residual[torch.from_numpy(rows)], self._empty(len(rows), self._width)
        self._add_and_norm(last, delta[rows], self._norm, wanted)
        return self._head(wanted)

    def _attend(
        self, i: int, layer: _Layer, qkv: Tensor, cos: NDArray[np.float32], sin: NDArray[np.float32], out: Tensor
    ) -> None:
        if not self._backend.has_long_spans:
            self._backend.attend_rows(i, self._view(qkv), cos, sin, layer.traits, self._view(out))
            return
        rotate(self._view(qkv), cos, sin, self._num_heads + self._num_kv_heads, self._dim, self._shift)
        heads = qkv.view(len(qkv), -1, self._dim).transpose(0, 1)
        query, key, value = torch.split(heads, [self._num_heads, self._num_kv_heads, self._num_kv_heads])
        out.copy_(self._backend.attend(i, query, key, value, layer.traits).flatten(1))

    def _add_and_norm(self, residual: Tensor, delta: Bits, weight: NDArray[np.float32], out: Tensor) -> None:
        add_and_norm(self._view(residual), delta, weight, self._eps, self._shift, self._view(out))

    def _turns(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Cosines and sines [N, dim / 2] in float32."""
        kind = torch.empty(0, dtype=torch.float32)
        turns = self._rotary(kind, torch.from_numpy(positions)[None])
        cos, sin = (np.ascontiguousarray(turn[0, :, : self._dim // 2].numpy()) for turn in turns)
        return cos, sin

    def _view(self, tensor: Tensor) -> Bits:
        return np.asarray(tensor.view(self._bits).numpy())

    def _empty(self, num_rows: int, width: int) -> Tensor:
        return torch.empty(num_rows, width, dtype=self._dtype)


def _layer(layer: Any, traits: AttentionTraits) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    return _Layer(
        norm=_floats(layer.input_layernorm),
        qkv=linear_of([attention.q_proj, attention.k_proj, attention.v_proj]),
        out=linear_of([attention.o_proj]),
        mlp_norm=_floats(layer.post_attention_layernorm),
        gate_up=linear_of([mlp.gate_proj, mlp.up_proj]),
        down=linear_of([mlp.down_proj]),
        traits=traits,
    )


def _floats(norm: Any) -> NDArray[np.float32]:
    return np.asarray(norm.weight.detach().float().numpy())
