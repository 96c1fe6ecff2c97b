"""Our own forward pass of the Llama family on a CPU: one call of compiled code a step and thread, in place of a dozen small
operations a layer, each of which would wake the other threads anew.

Knows the weights of Llama, Mistral and Qwen2 by their names in transformers. Any other model, device or dtype takes the
model-agnostic path of `runner`; whether this one computes the model exactly is asked by the same self-test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from constrained.decode.attention import AttentionTraits
from constrained.decode.batch import PackedBatch
from constrained.decode.cpu_attention import CPU_DTYPES, CpuPagedAttention
from constrained.decode.mask_kernels import NO_ROWS, Greedy
from constrained.decode.packing import is_packable, pack
from constrained.decode.shares import LAST_RUN, counters, start_run
from constrained.decode.step_kernels import PHASES_A_LAYER, PHASES_AT_END, Buffers, Cache, Step, Weights, run_step
from constrained.decode.team import Team

_FAMILIES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")
_FIXED_TURNS = ("default", "linear", "llama3", "yarn")  # a position is turned the same whatever else a step holds


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
        and all(is_packable(module, model.dtype) for module in _linears(model))
    )


def _linears(model: Any) -> list[Any]:
    mixers, mlps = [layer.self_attn for layer in model.model.layers], [layer.mlp for layer in model.model.layers]
    mixing = [linear for mixer in mixers for linear in (mixer.q_proj, mixer.k_proj, mixer.v_proj, mixer.o_proj)]
    return [*mixing, *(linear for mlp in mlps for linear in (mlp.gate_proj, mlp.up_proj, mlp.down_proj)), model.lm_head]


class FusedForward:
    """Computes a packed batch over `backend`; the weights are copies, the model's own stay as they are."""

    def __init__(self, model: Any, backend: CpuPagedAttention, traits: dict[int, AttentionTraits]) -> None:
        config, body = model.config, model.model
        self._backend = backend
        self._rotary: nn.Module = body.rotary_emb
        self._eps = float(config.rms_norm_eps)
        self._num_heads, self._num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._dim = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        self._widths = (int(config.hidden_size), int(config.intermediate_size), len(model.lm_head.weight))
        self._dtype = model.dtype
        self._bits, self._shift = CPU_DTYPES[model.dtype]
        self._weights = _weights(model, self._bits)
        keys, values = backend.stacked()
        ordered = [traits[i] for i in range(len(body.layers))]
        scalings, windows = [t.scaling for t in ordered], [t.window for t in ordered]
        self._cache = Cache(keys, values, np.array(scalings, np.float64), np.array(windows, np.int64))
        self._turns = _Turns(body.rotary_emb, self._dim)
        self._parts = counters(PHASES_A_LAYER * len(body.layers) + PHASES_AT_END)
        self._run = 0
        self._team = Team(torch.get_num_threads())
        self._buffers = self._rows = self._allocate(0)
        self._logits = torch.empty(0, self._widths[2], dtype=self._dtype)

    @property
    def num_layers(self) -> int:
        return len(self._cache.windows)

    def logits(self, batch: PackedBatch, greedy: Greedy = NO_ROWS) -> Tensor:
        """[rows that are wanted, vocabulary], until the next call; `greedy` gets its tokens as far as its slots are known."""
        self._backend.begin(batch)
        cos, sin, turns = self._turns.of(batch)
        step = Step(batch.token_ids, batch.slots, cos, sin, turns, self._backend.pieces, batch.tables, batch.logit_rows)
        buffers = self._room(batch.num_rows, len(batch.logit_rows))
        self._run = self._run % LAST_RUN + 1
        start_run(self._parts, self._run)
        rest = greedy, self._eps, self._shift, self._parts, self._run
        self._team.run(run_step, self._weights, self._cache, step, buffers, *rest)
        return self._logits[: len(batch.logit_rows)]

    def close(self) -> None:
        self._team.close()

    def _room(self, num_rows: int, num_wanted: int) -> Buffers:
        """The first rows of the buffers, which grow where there are not enough."""
        if num_rows == len(self._rows.residual) and num_wanted == len(self._rows.wanted):
            return self._rows
        if num_rows > len(self._buffers.residual):
            self._buffers = self._allocate(max(num_rows, 2 * len(self._buffers.residual)))
        if num_wanted > len(self._logits):
            self._logits = torch.empty(num_wanted, self._widths[2], dtype=self._dtype)
        rows = Buffers._make(buffer[:num_rows] for buffer in self._buffers)
        wanted, logits = self._buffers.wanted[:num_wanted], self._view(self._logits)[:num_wanted]
        self._rows = rows._replace(wanted=wanted, logits=logits)
        return self._rows

    def _allocate(self, num_rows: int) -> Buffers:
        hidden, intermediate, _ = self._widths
        heads, kv_heads, dim = self._num_heads, self._num_kv_heads, self._dim

        def rows(width: int) -> Any:
            return self._view(torch.zeros(num_rows, width, dtype=self._dtype))

        return Buffers(
            residual=rows(hidden),
            delta=rows(hidden),
            normed=rows(hidden),
            qkv=rows((heads + 2 * kv_heads) * dim),
            query=np.zeros((num_rows, heads, dim), np.uint32),
            result=np.zeros((num_rows, heads, dim), np.uint32),
            attended=rows(heads * dim),
            active=rows(intermediate),
            wanted=rows(hidden),
            logits=rows(0),
        )

    def _view(self, tensor: Tensor) -> Any:
        return tensor.view(self._bits).numpy()


def _weights(model: Any, bits: torch.dtype) -> Weights:
    layers, dtype = model.model.layers, model.dtype
    norms = [norm for layer in layers for norm in (layer.input_layernorm, layer.post_attention_layernorm)]
    mixers, mlps = [layer.self_attn for layer in layers], [layer.mlp for layer in layers]
    return Weights(
        embed=model.model.embed_tokens.weight.detach().contiguous().view(bits).numpy(),
        norms=np.stack([norm.weight.detach().float().numpy() for norm in (*norms, model.model.norm)]),
        qkv=pack([(mixer.q_proj, mixer.k_proj, mixer.v_proj) for mixer in mixers], dtype),
        out=pack([(mixer.o_proj,) for mixer in mixers], dtype),
        gate_up=pack([(mlp.gate_proj, mlp.up_proj) for mlp in mlps], dtype, is_gated=True),
        down=pack([(mlp.down_proj,) for mlp in mlps], dtype),
        head=pack([(model.lm_head,)], dtype),
    )


class _Turns:
    """Cosines and sines of positions, computed once by the model's own module where it turns each position alike always."""

    def __init__(self, rotary: nn.Module, dim: int) -> None:
        self._rotary = rotary
        self._half = dim // 2
        self._is_fixed = getattr(rotary, "rope_type", None) in _FIXED_TURNS
        self._cos = self._sin = np.empty((0, self._half), np.float32)

    def of(self, batch: PackedBatch) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        """[T, dim / 2] each, float32, and the place of each row among them."""
        if not self._is_fixed:
            return *self._compute(batch.positions), np.arange(batch.num_rows)
        length = int(batch.ends.max())
        if length > len(self._cos):
            self._cos, self._sin = self._compute(np.arange(max(256, 2 * length), dtype=np.int64))
        return self._cos, self._sin, batch.positions

    def _compute(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        turns = self._rotary(torch.empty(0, dtype=torch.float32), torch.from_numpy(positions)[None])
        cos, sin = (np.ascontiguousarray(turn[0, :, : self._half].numpy()) for turn in turns)
        return cos, sin
