"""The hook through which any transformers model attends to our own paged KV cache.

The model runs without a cache of its own on one packed row [1, N]; each of its attention layers lands in `_attend`,
which hands query, key and value to the backend that the running thread has activated. transformers builds no mask for
an attention function whose name it does not know in its mask registry.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import AttentionInterface

from constrained.decode.batch import PackedBatch
from constrained.decode.blocks import Copy
from constrained.errors import InternalError

ATTENTION_NAME = "constrained_paged"


@dataclass(frozen=True, slots=True)
class AttentionTraits:
    """What a layer asks beyond plain causal attention. `window` 0 is unlimited, `softcap` 0 is off."""

    scaling: float
    window: int = 0
    softcap: float = 0.0
    sinks: Tensor | None = None  # [query heads]


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What one attention layer keeps per token."""

    num_kv_heads: int
    key_dim: int
    value_dim: int


class AttentionBackend(Protocol):
    """Holds the keys and values of every layer in blocks, and attends to them."""

    def copy_blocks(self, copies: Seq[Copy]) -> None:
        """Copy whole blocks (source, target) in every layer, one after the other."""

    def begin(self, batch: PackedBatch) -> None:
        """Prepare for the layers of one step."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
        """Store key and value [heads, N, dim] of this step's rows, then attend; returns [N, query heads, value dim]."""


class _Active(threading.local):
    backend: AttentionBackend | None = None
    layers: list[int]


_active = _Active()


@contextmanager
def active(backend: AttentionBackend) -> Iterator[list[int]]:
    """Attention layers that run on this thread go to `backend`; gives the list of layers called so far."""
    _active.backend, _active.layers = backend, []
    try:
        yield _active.layers
    finally:
        _active.backend = None


def _attend(
    module: torch.nn.Module,
    query: Tensor,  # [1, query heads, N, key dim]
    key: Tensor,  # [1, kv heads, N, key dim]
    value: Tensor,  # [1, kv heads, N, value dim]
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    if _active.backend is None:
        raise InternalError(f"the model's attention is {ATTENTION_NAME!r}, but no engine runs this forward pass")
    if attention_mask is not None or options.get("position_bias") is not None or options.get("is_causal") is False:
        raise InternalError("the model brings a mask or a bias of its own into attention")
    traits = AttentionTraits(
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        window=options.get("sliding_window") or 0,
        softcap=options.get("softcap") or 0.0,
        sinks=options.get("s_aux"),
    )
    layer: Any = module.layer_idx
    _active.layers.append(layer)
    return _active.backend.attend(layer, query[0], key[0], value[0], traits).unsqueeze(0), None


AttentionInterface.register(ATTENTION_NAME, _attend)


class ShapeRecorder:
    """A backend that attends to nothing but the diagonal and notes what each layer keeps; one probe pass fills it."""

    def __init__(self) -> None:
        self.layers: dict[int, LayerShape] = {}
        self.traits: dict[int, AttentionTraits] = {}

    def copy_blocks(self, copies: Seq[Copy]) -> None:
        """Nothing to copy: nothing is kept."""

    def begin(self, batch: PackedBatch) -> None:
        """Nothing to prepare: nothing is kept."""

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, traits: AttentionTraits) -> Tensor:
        self.layers[layer] = LayerShape(key.shape[0], key.shape[-1], value.shape[-1])
        self.traits[layer] = traits
        return value.repeat_interleave(query.shape[0] // value.shape[0], dim=0).transpose(0, 1)
